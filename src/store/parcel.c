/*
 * parcel.c - packs pages into parcels and unpacks them. The same for all organisations; it works on bytes in memory and
 * never touches a file.
 *
 * A parcel that is unpacked may come from another machine. So everything is checked again that a store checks when it
 * reads a block from disk: header, directory and frames by their checksums, and that each record belongs to its
 * page. And because the sender of a parcel could also make the checksums, no length is believed that no
 * store would have written.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "block/block.h"
#include "store/store.h"

enum {
    UNPACKER_MAGIC = 0x57425550,
    PACKER_MAGIC = 0x5742504b,
    HEADS_MAX = 64 << 20, /* no frame has more bytes than this beside its largest body */
    ZSTD_BLOCK_MAX = 128 << 10,
    PACKED_RAW_MAX = WB_BLOCK_RAW_TARGET,
    PACKED_PAGES_MAX = 1024,
};

/* ---- unpacking ------------------------------------------------------------------------------------- */

struct wb_store_unpacker {
    uint32_t magic;
    struct wb_block_index index;
    struct wb_block_reader *zstd, *zstd_old; /* the second one is for entries that are flagged as old */
    const struct wb_store_parcel_page *pages;
    size_t count;
    WB_VEC(uint16_t) entries; /* the entry of each page */
    WB_VEC(uint16_t) by_slot; /* if the entries are not sorted: the entry of each slot, or NO_ENTRY */
};

enum { NO_ENTRY = 0xffff };
_Static_assert((int)WB_BLOCK_PAGES_MAX < (int)NO_ENTRY, "the number of an entry fits into 16 bits");

int wb_store_unpacker_new(struct wb_store_unpacker **unpacker_out)
{
    struct wb_store_unpacker *unpacker = wb_alloc_zero(1, sizeof *unpacker);

    *unpacker_out = NULL;
    if (!unpacker)
        return WB_E_NOMEM;
    unpacker->magic = UNPACKER_MAGIC;
    int err = wb_block_reader_new(&unpacker->zstd);
    if (err == 0)
        err = wb_block_reader_new(&unpacker->zstd_old);
    if (err < 0) {
        wb_store_unpacker_free(unpacker);
        return err;
    }
    *unpacker_out = unpacker;
    return 0;
}

void wb_store_unpacker_free(struct wb_store_unpacker *unpacker)
{
    if (!unpacker)
        return;
    WB_CHECK(unpacker->magic == UNPACKER_MAGIC);
    unpacker->magic = 0;
    wb_block_index_release(&unpacker->index);
    wb_block_reader_free(unpacker->zstd);
    wb_block_reader_free(unpacker->zstd_old);
    wb_vec_release(&unpacker->entries);
    wb_vec_release(&unpacker->by_slot);
    wb_free(unpacker);
}

static int not_there(void)
{
    return wb_fail(WB_E_CORRUPT, "a parcel does not have the pages that it should have");
}

/* Fills by_slot. */
static int sort_entries(struct wb_store_unpacker *unpacker)
{
    const struct wb_block_index *index = &unpacker->index;
    int err = wb_vec_reserve(&unpacker->by_slot, UINT16_MAX + (size_t)1);

    WB_CHECK(!index->sorted);
    if (err < 0)
        return err;
    memset(unpacker->by_slot.items, 0xff, (UINT16_MAX + (size_t)1) * sizeof *unpacker->by_slot.items);
    for (size_t i = 0; i < index->entries.count; i++)
        unpacker->by_slot.items[index->entries.items[i].slot] = (uint16_t)i;
    return 0;
}

/* Finds the entry of each page. */
static int find_entries(struct wb_store_unpacker *unpacker, const struct wb_store_parcel *parcel)
{
    const struct wb_block_index *index = &unpacker->index;
    size_t next = 0, at;
    int err = index->sorted ? 0 : sort_entries(unpacker);

    WB_CHECK(parcel->count <= index->entries.count);
    if (err == 0)
        err = wb_vec_reserve(&unpacker->entries, parcel->count);
    for (size_t i = 0; i < parcel->count && err == 0; i++) {
        const struct wb_store_parcel_page *page = &parcel->pages[i];
        if (i > 0 && page->slot <= parcel->pages[i - 1].slot)
            return not_there();
        if (index->sorted) {
            while (next < index->entries.count && index->entries.items[next].slot < page->slot)
                next++;
            at = next;
        } else {
            at = unpacker->by_slot.items[page->slot];
        }
        if (at >= index->entries.count || index->entries.items[at].slot != page->slot ||
            !wb_pageid_equal(index->entries.items[at].id, page->id) ||
            index->entries.items[at].flags & WB_BLOCK_ENTRY_DEAD)
            return not_there();
        unpacker->entries.items[i] = (uint16_t)at;
    }
    return err;
}

/* Whether a frame may have as many bytes as it claims. zstd needs at least four for each of its blocks. */
static bool is_plausible(const struct wb_block_frame *frame)
{
    uint64_t blocks = frame->stored_bytes / 4;

    return frame->raw_bytes <= (uint64_t)WB_STORE_BODY_MAX + HEADS_MAX && frame->raw_bytes <= blocks * ZSTD_BLOCK_MAX;
}

int wb_store_unpacker_open(struct wb_store_unpacker *unpacker, const struct wb_store_parcel *parcel)
{
    struct wb_block_head head;

    WB_CHECK(unpacker->magic == UNPACKER_MAGIC);
    WB_CHECK(parcel->count > 0);
    unpacker->count = 0;
    if (parcel->bytes.len < WB_BLOCK_HEADER_BYTES)
        return wb_fail(WB_E_CORRUPT, "a parcel is too short");
    int err = wb_block_head_read(parcel->bytes.ptr, &head);
    if (err == 0 && (head.bytes != parcel->bytes.len || parcel->count > head.count))
        err = wb_fail(WB_E_CORRUPT, "a parcel does not have the length that it should have");
    if (err == 0)
        err = wb_block_index_read(&head, parcel->bytes.ptr + WB_BLOCK_HEADER_BYTES, &unpacker->index);
    for (size_t i = 0; err == 0 && i < unpacker->index.frames.count; i++)
        if (!is_plausible(&unpacker->index.frames.items[i]))
            err = wb_fail(WB_E_CORRUPT, "a parcel claims more bytes than there can be");
    if (err == 0)
        err = find_entries(unpacker, parcel);
    if (err < 0)
        return err;
    unpacker->pages = parcel->pages;
    unpacker->count = parcel->count;
    wb_block_reader_open_bytes(unpacker->zstd, &unpacker->index, parcel->bytes.ptr);
    wb_block_reader_open_bytes(unpacker->zstd_old, &unpacker->index, parcel->bytes.ptr);
    return 0;
}

/* Completes a page that was read. */
static int complete(const struct wb_store_parcel_page *known, struct wb_page *page)
{
    page->id = wb_pageid_of_key(page->key);
    if (!wb_pageid_equal(page->id, known->id))
        return wb_fail(WB_E_CORRUPT, "the page %.*s is in the place of another one", WB_SLICE_ARG(page->key));
    page->epoch = known->epoch;
    if (!known->own_time) {
        page->time_ms = known->time_ms;
        page->lifetime_count = known->lifetime_count;
    }
    if (!known->own_lifetime)
        page->lifetime = known->lifetime;
    return 0;
}

static struct wb_block_reader *reader_of(struct wb_store_unpacker *unpacker, size_t at)
{
    WB_CHECK(unpacker->magic == UNPACKER_MAGIC);
    WB_CHECK(at < unpacker->count);

    const struct wb_block_entry *entry = &unpacker->index.entries.items[unpacker->entries.items[at]];

    return entry->flags & WB_BLOCK_ENTRY_OLD ? unpacker->zstd_old : unpacker->zstd;
}

int wb_store_unpacker_page(struct wb_store_unpacker *unpacker, size_t at, struct wb_page *page_out)
{
    int err = wb_block_read_page(reader_of(unpacker, at), unpacker->entries.items[at], page_out);

    return err < 0 ? err : complete(&unpacker->pages[at], page_out);
}

int wb_store_unpacker_facts(struct wb_store_unpacker *unpacker, size_t at, struct wb_page *page_out)
{
    int err = wb_block_read_facts(reader_of(unpacker, at), unpacker->entries.items[at], page_out);

    return err < 0 ? err : complete(&unpacker->pages[at], page_out);
}

/* ---- packing --------------------------------------------------------------------------------------- */

/* A page that was added. */
struct packed_page {
    size_t at, bytes; /* its record, in `records` */
    uint64_t site;
};

struct wb_store_packer {
    uint32_t magic;
    bool finished; /* the next page begins a new parcel */
    struct wb_block_builder *builder;
    struct wb_buf records, block;
    WB_VEC(struct packed_page) packed;
    WB_VEC(struct wb_block_page) block_pages;
    WB_VEC(struct wb_store_parcel_page) pages;
};

int wb_store_packer_new(struct wb_store_packer **packer_out)
{
    struct wb_store_packer *packer = wb_alloc_zero(1, sizeof *packer);

    *packer_out = NULL;
    if (!packer)
        return WB_E_NOMEM;
    packer->magic = PACKER_MAGIC;
    int err = wb_block_builder_new(&packer->builder);
    if (err < 0) {
        wb_store_packer_free(packer);
        return err;
    }
    wb_block_builder_hurry(packer->builder);
    *packer_out = packer;
    return 0;
}

void wb_store_packer_free(struct wb_store_packer *packer)
{
    if (!packer)
        return;
    WB_CHECK(packer->magic == PACKER_MAGIC);
    packer->magic = 0;
    wb_block_builder_free(packer->builder);
    wb_buf_release(&packer->records);
    wb_buf_release(&packer->block);
    wb_vec_release(&packer->packed);
    wb_vec_release(&packer->block_pages);
    wb_vec_release(&packer->pages);
    wb_free(packer);
}

int wb_store_packer_add(struct wb_store_packer *packer, const struct wb_page *page,
                        const struct wb_store_position *position)
{
    WB_CHECK(packer->magic == PACKER_MAGIC);
    WB_CHECK(page->body.len == page->body_bytes);
    if (packer->finished) {
        wb_buf_clear(&packer->records);
        wb_vec_clear(&packer->packed);
        wb_vec_clear(&packer->pages);
        packer->finished = false;
    }
    WB_CHECK(packer->packed.count < WB_BLOCK_PAGES_MAX);
    struct wb_slice site = wb_key_site(page->key);
    struct packed_page packed = {.at = packer->records.len, .site = wb_hash64(site.ptr, site.len)};
    struct wb_store_parcel_page known = {
        .id = page->id,
        .position = position ? *position : (struct wb_store_position){{0}},
        .time_ms = page->time_ms,
        .slot = (uint16_t)packer->packed.count,
        .lifetime = page->lifetime,
        .lifetime_count = page->lifetime_count,
        .epoch = page->epoch,
    };
    int err = wb_page_encode(page, &packer->records);
    packed.bytes = packer->records.len - packed.at;
    if (err == 0)
        err = wb_vec_push(&packer->pages, known);
    if (err == 0) {
        err = wb_vec_push(&packer->packed, packed);
        packer->pages.count -= err < 0;
    }
    if (err < 0)
        packer->records.len = packed.at;
    return err;
}

bool wb_store_packer_full(const struct wb_store_packer *packer)
{
    WB_CHECK(packer->magic == PACKER_MAGIC);
    return !packer->finished &&
           (packer->records.len >= PACKED_RAW_MAX || packer->packed.count >= PACKED_PAGES_MAX);
}

int wb_store_packer_finish(struct wb_store_packer *packer, struct wb_store_parcel *parcel_out)
{
    size_t count = packer->packed.count;

    WB_CHECK(packer->magic == PACKER_MAGIC);
    WB_CHECK(count > 0);
    WB_CHECK(!packer->finished);
    packer->finished = true;
    wb_buf_clear(&packer->block);
    int err = wb_vec_reserve(&packer->block_pages, count);
    for (size_t i = 0; i < count && err == 0; i++)
        packer->block_pages.items[i] = (struct wb_block_page){
            .id = packer->pages.items[i].id,
            .record = wb_slice(packer->records.ptr + packer->packed.items[i].at, packer->packed.items[i].bytes),
            .site = packer->packed.items[i].site,
        };
    if (err == 0)
        err = wb_block_build(packer->builder, packer->block_pages.items, count, &packer->block);
    if (err < 0)
        return err;
    wb_block_stamp(packer->block.ptr, 0, 0);
    for (size_t i = 0; i < count; i++) {
        packer->pages.items[i].slot = packer->block_pages.items[i].slot;
        WB_CHECK(i == 0 || packer->pages.items[i].slot > packer->pages.items[i - 1].slot);
    }
    *parcel_out = (struct wb_store_parcel){wb_buf_slice(&packer->block), packer->pages.items, count};
    return 0;
}
