/*
 * transfer_blocks.c - brings plain pages. Where both parts consist of segments, a
 * block whose pages will all be stored, and in one bin, is copied as it is, without decompressing anything. Pages of
 * other blocks are put one by one; and if the read nodes have buckets, in the order of their ids, so that each commit
 * merges into few of them.
 *
 * Pages that cannot be read stay on the update nodes. Everything else is brought, and then the damage is reported.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "block/block.h"
#include "store/inside.h"
#include "move/transfer.h"

enum { SORTED_AT_ONCE = 4096 };

struct block_bringing {
    struct wb_transfer *t;
    struct wb_block_index index;
    struct wb_store_unpacker *unpacker;
    WB_VEC(struct wb_repo_block_page) pages;  /* what is known of the pages of a block ... */
    WB_VEC(struct wb_transfer_page *) listed; /* ... and the same pages in the list */
    const struct wb_named_site *site;          /* of the last page: its neighbours mostly have the same */
};

/* ---- whole blocks ---------------------------------------------------------------------------------------- */

/* Whether this is a plain page that is to be brought. */
static bool is_wanted(const struct wb_transfer_page *waiting)
{
    return waiting && waiting->plain && !waiting->brought;
}

/* What is known of one page of the block. False if it must be put by itself. */
static bool describe(struct block_bringing *b, const struct wb_store_parcel_page *from,
                     const struct wb_transfer_page *waiting, struct wb_repo_block_page *to_out)
{
    size_t at;

    WB_CHECK(b->t->waiting.kind == WB_CATALOG_TXN_HELD);
    /* One that arrived after it was listed is another version, of which the list knows nothing. */
    struct wb_catalog_place place = wb_disk_scan_place(&from->position);
    if (!is_wanted(waiting) || !wb_catalog_place_equal(&waiting->entry.place, &place) ||
        !wb_block_find_slot(&b->index, from->slot, &at) || !wb_pageid_equal(b->index.entries.items[at].id, from->id) ||
        b->index.entries.items[at].flags)
        return false;
    if (!b->site || b->site->hash != waiting->entry.site)
        b->site = wb_site_names_find(&b->t->sites, waiting->entry.site);
    if (!b->site || !b->site->named)
        return false;
    *to_out = (struct wb_repo_block_page){
        .id = from->id,
        .slot = from->slot,
        .site = wb_site_names_text(&b->t->sites, b->site),
        .differs = !from->own_time || !from->own_lifetime,
        .entry = {.time_ms = waiting->entry.time_ms,
                  .content = waiting->entry.content,
                  .body_bytes = waiting->entry.body_bytes,
                  .stored_bytes = waiting->entry.stored_bytes,
                  .lifetime = waiting->entry.lifetime,
                  .lifetime_count = waiting->entry.lifetime_count},
    };
    memcpy(to_out->sha1, b->index.entries.items[at].digests + WB_MD5_BYTES, WB_SHA1_BYTES);
    return true;
}

/* Copies the block of a parcel: 1; 0 if its pages must be put one by one. */
static int copy_block(struct block_bringing *b, const struct wb_store_parcel *parcel)
{
    struct wb_transfer *t = b->t;
    struct wb_block_damage damage;
    struct wb_block_head head;
    int err = parcel->bytes.len < WB_BLOCK_HEADER_BYTES ? WB_E_CORRUPT : wb_block_head_read(parcel->bytes.ptr, &head);

    WB_CHECK(parcel->count > 0);
    if (!t->to->files.kind->whole_blocks || err < 0 || head.bytes != parcel->bytes.len || head.count != parcel->count)
        return err < 0 && err != WB_E_CORRUPT ? err : 0;
    err = wb_block_index_read(&head, parcel->bytes.ptr + WB_BLOCK_HEADER_BYTES, &b->index);
    wb_vec_clear(&b->pages);
    wb_vec_clear(&b->listed);
    if (err == 0)
        err = wb_vec_reserve(&b->pages, parcel->count);
    if (err == 0)
        err = wb_vec_reserve(&b->listed, parcel->count);
    for (size_t i = 0; i < parcel->count && err == 0; i++)
        wb_transfer_foresee(t, parcel->pages[i].id);
    /* Damage must not replace what readers have. */
    int got = err < 0 ? err : wb_block_check(&b->index, parcel->bytes.ptr, NULL, &damage);
    for (size_t i = 0; i < parcel->count && got > 0; i++) {
        b->listed.items[b->listed.count++] = wb_transfer_find(t, parcel->pages[i].id);
        got = describe(b, &parcel->pages[i], b->listed.items[i], &b->pages.items[b->pages.count++]);
    }
    uint8_t refused = 0;
    if (got > 0) { /* a block is of one bin, or is not copied */
        err = wb_transfer_refused(t, parcel->pages[0].id, true, &refused);
        if (err < 0 || refused)
            return err;
        got = wb_repo_put_block(t->to, parcel->bytes, b->pages.items, b->pages.count);
    }
    if (got <= 0) /* its pages are put one by one: that shows what is wrong, or which of them a node does not take */
        return got == WB_E_CORRUPT || (got == WB_E_DOWN && t->to->writer->files.failed.code == 0) ? 0 : got;
    struct wb_repo_writer *writer = t->to->writer;
    for (size_t i = 0; i < parcel->count; i++) {
        writer->ops.items[writer->ops.count - 1 - i].kind = WB_OP_COPY; /* what is decided about the page is here */
        b->listed.items[i]->brought = true;
    }
    for (size_t i = 0; i < parcel->count && err == 0; i++)
        err = wb_transfer_count(t, b->listed.items[i], parcel->bytes.len / parcel->count);
    return err < 0 ? err : 1;
}

/* Whether there is such a page in a parcel: after a node has failed, most were brought before. */
static bool has_something(const struct wb_transfer *t, const struct wb_store_parcel *parcel)
{
    bool any = false;

    WB_CHECK(parcel->count > 0);
    for (size_t i = 0; i < parcel->count && !any; i++)
        any = is_wanted(wb_transfer_find(t, parcel->pages[i].id));
    return any;
}

/* Puts those pages of a parcel that are to be brought. */
static int put_pages(struct block_bringing *b, const struct wb_store_parcel *parcel)
{
    struct wb_page page;
    int err = has_something(b->t, parcel) ? wb_store_unpacker_open(b->unpacker, parcel) : 1;

    WB_CHECK(parcel->count > 0);
    if (err)
        return err < 0 ? wb_transfer_absorb(b->t, err) : 0;
    for (size_t i = 0; i < parcel->count && err == 0; i++) {
        struct wb_transfer_page *waiting = wb_transfer_find(b->t, parcel->pages[i].id);
        if (!is_wanted(waiting))
            continue;
        err = wb_store_unpacker_page(b->unpacker, i, &page);
        bool sound = err == 0;
        err = wb_transfer_absorb(b->t, err);
        if (sound)
            err = wb_transfer_bring_plain(b->t, waiting, &page);
    }
    return err;
}

/* Scans what waits: in the order of ids for buckets; otherwise block by block, if there are blocks. */
static int open_scan(struct wb_transfer *t, struct wb_store_scan **scan_out)
{
    struct wb_store_scan_options options = {.without = t->without.items, .without_count = t->without.count};
    bool blocks = t->to->files.kind->whole_blocks && t->from->files.kind->whole_blocks;

    WB_CHECK(t->pages.count > 0);
    return blocks ? wb_disk_scan_blocks(t->batch->update, &options, scan_out)
                  : wb_store_scan_open(t->batch->update, &options, scan_out);
}

static int bring_parcels(struct block_bringing *b)
{
    struct wb_store_parcel parcel;
    struct wb_store_scan *scan = NULL;
    int err = open_scan(b->t, &scan), got = 1;

    WB_CHECK(b->t->pages.count > 0);
    while (err == 0) {
        got = wb_store_scan_parcel(scan, &parcel);
        if (got == WB_E_CORRUPT) {
            err = wb_transfer_absorb(b->t, got);
            continue; /* behind what is damaged */
        }
        if (got <= 0)
            break;
        int copied = copy_block(b, &parcel);
        err = copied == 0 ? put_pages(b, &parcel) : copied < 0 ? copied : 0;
    }
    wb_store_scan_close(scan);
    return err < 0 ? err : got;
}

/* ---- in the order of ids ---------------------------------------------------------------------------------- */

static int bring_sorted_page(void *context, size_t index, int err, const struct wb_page *page)
{
    struct wb_transfer *t = context;

    (void)index;
    WB_CHECK(err < 0 || page != NULL);
    if (err == WB_E_NOTFOUND) /* taken down meanwhile */
        return 0;
    if (err < 0)
        return wb_transfer_absorb(t, err);
    struct wb_transfer_page *waiting = wb_transfer_find(t, page->id);
    WB_CHECK(waiting != NULL);
    return wb_transfer_bring_plain(t, waiting, page);
}

static int bring_sorted(struct wb_transfer *t)
{
    struct wb_store_when latest = {.kind = WB_STORE_WHEN_LATEST};
    struct wb_pageid *ids = wb_alloc(SORTED_AT_ONCE * sizeof *ids);
    int err = ids ? 0 : WB_E_NOMEM;

    WB_CHECK(t->pages.count > 0);
    for (size_t i = 0; i < t->pages.count && err == 0;) {
        size_t count = 0;
        for (; i < t->pages.count && count < SORTED_AT_ONCE; i++)
            if (is_wanted(&t->pages.items[i]) && t->pages.items[i].out == 0)
                ids[count++] = t->pages.items[i].id;
        if (count)
            err = wb_store_get_many(t->batch->update, ids, count, &latest, bring_sorted_page, t);
    }
    wb_free(ids);
    return err;
}

/* Says what will be put. */
static int announce(struct wb_transfer *t)
{
    size_t pages = t->pages.count < WB_TRANSFER_COMMIT_PAGES ? t->pages.count : WB_TRANSFER_COMMIT_PAGES;
    struct wb_append_expected expected = {.pages = pages + WB_BLOCK_PAGES_MAX};

    WB_CHECK(t->pages.count > 0);
    for (size_t i = 0; i < t->pages.count; i++) {
        expected.record_bytes += t->pages.items[i].entry.body_bytes;
        expected.stored_bytes += t->pages.items[i].entry.stored_bytes;
    }
    return wb_repo_expect_blocks(t->to, &expected);
}

int wb_transfer_bring_blocks(struct wb_transfer *t)
{
    struct block_bringing b = {.t = t};
    bool blocks = t->to->files.kind->whole_blocks;

    /* Scans of the other organisations are in the order of ids already. */
    if (!blocks && !t->from->files.kind->sorted)
        return bring_sorted(t);
    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    int err = wb_store_unpacker_new(&b.unpacker);
    if (err == 0 && blocks)
        err = announce(t);
    if (err == 0)
        err = bring_parcels(&b);
    wb_store_unpacker_free(b.unpacker);
    wb_block_index_release(&b.index);
    wb_vec_release(&b.pages);
    wb_vec_release(&b.listed);
    return err;
}
