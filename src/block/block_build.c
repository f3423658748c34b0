/*
 * block_build.c - writes a block: compresses its frames, with their bases as dictionaries,
 * and writes header and directory (see block.c for the bytes). block_plan.c decides which
 * records are in which frame. It never touches a file. Several builders can work at once,
 * one per thread.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "block/block.h"
#include "block/block_bytes.h"
#include "block/block_plan.h"

#include <zstd.h>

/*
 * Chosen from the curves in docs/design/0001-blocks.md and docs/performance.md (Versions). The tables are no larger
 * than the lead requires. Older versions are compressed once, by compaction, and differ little: a thorough search pays.
 */
enum { ZSTD_LEVEL = 3, HISTORY_LEVEL = 9, HURRY_LEVEL = 1, FRAME_HASH_LOG = 15 };

enum {
    BUILDER_MAGIC = 0x57424242,
    BODIES_APART_MIN = 1 << 10, /* a frame with fewer bytes of bodies is decompressed as a whole to read its heads */
    DIVIDE_MIN = 4 << 10,       /* a zstd block of bodies is closed when it reaches this many bytes */
    FLUSH_ROOM = 64,            /* what each division may cost beyond ZSTD_compressBound() */
};

/*
 * Tells zstd that all input stays where it is until the frame is complete, so that zstd keeps
 * no copy of it. This is ZSTD_c_stableInBuffer = 1; see FORCE_ATTACH about the name. Input
 * that comes in several calls needs zstd 1.5.4.
 */
#define STABLE_INPUT ZSTD_c_experimentalParam9, 1

/*
 * Tells zstd to search the dictionary's tables where they are, instead of copying them
 * for every page, which is 40 % faster on pages of 20 KB. This is ZSTD_c_forceAttachDict =
 * ZSTD_dictForceAttach, spelled with the names that zstd.h has outside its unstable part.
 */
#define FORCE_ATTACH ZSTD_c_experimentalParam4, 1

struct wb_block_builder {
    uint32_t magic;
    ZSTD_CCtx *plain_zstd, *frame_zstd, *history_zstd; /* without base; based on the lead; older versions */
    int32_t lead_loaded, base_loaded;                  /* the dictionaries of the last two, as frames of the plan */
    struct wb_buf raw, base;                           /* a frame before it is compressed, and a base */
};

static void set(ZSTD_CCtx *zstd, ZSTD_cParameter parameter, int value)
{
    WB_CHECK(zstd != NULL);

    size_t rc = ZSTD_CCtx_setParameter(zstd, parameter, value);

    WB_CHECK(!ZSTD_isError(rc));
}

int wb_block_builder_new(struct wb_block_builder **builder_out)
{
    struct wb_block_builder *builder = wb_alloc_zero(1, sizeof *builder);

    *builder_out = NULL;
    if (!builder)
        return WB_E_NOMEM;
    builder->magic = BUILDER_MAGIC;
    builder->plain_zstd = ZSTD_createCCtx();
    builder->frame_zstd = ZSTD_createCCtx();
    builder->history_zstd = ZSTD_createCCtx();
    if (!builder->plain_zstd || !builder->frame_zstd || !builder->history_zstd) {
        wb_block_builder_free(builder);
        return wb_fail_nomem();
    }
    set(builder->plain_zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    set(builder->frame_zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    set(builder->history_zstd, ZSTD_c_compressionLevel, HISTORY_LEVEL);
    set(builder->frame_zstd, ZSTD_c_strategy, ZSTD_dfast);
    set(builder->frame_zstd, ZSTD_c_chainLog, FRAME_HASH_LOG - 1);
    set(builder->frame_zstd, ZSTD_c_hashLog, FRAME_HASH_LOG);
    set(builder->frame_zstd, FORCE_ATTACH);
    set(builder->plain_zstd, STABLE_INPUT);
    set(builder->frame_zstd, STABLE_INPUT);
    set(builder->history_zstd, STABLE_INPUT);
    *builder_out = builder;
    return 0;
}

void wb_block_builder_hurry(struct wb_block_builder *builder)
{
    WB_CHECK(builder->magic == BUILDER_MAGIC);
    set(builder->plain_zstd, ZSTD_c_compressionLevel, HURRY_LEVEL);
    set(builder->frame_zstd, ZSTD_c_compressionLevel, HURRY_LEVEL);
    set(builder->frame_zstd, ZSTD_c_strategy, ZSTD_fast);
}

void wb_block_builder_free(struct wb_block_builder *builder)
{
    if (!builder)
        return;
    WB_CHECK(builder->magic == BUILDER_MAGIC);
    builder->magic = 0;
    ZSTD_freeCCtx(builder->plain_zstd);
    ZSTD_freeCCtx(builder->frame_zstd);
    ZSTD_freeCCtx(builder->history_zstd);
    wb_buf_release(&builder->raw);
    wb_buf_release(&builder->base);
    wb_free(builder);
}

/* ---- frames -------------------------------------------------------------------------------- */

/* Puts the heads of a frame's records into raw_out, and then the bodies. */
static int gather(const struct wb_block_plan *plan, const struct wb_block_plan_frame *frame, struct wb_buf *raw_out,
                  size_t *heads_out)
{
    const struct wb_block_item *items = plan->items.items + frame->first;
    int err = 0;

    WB_CHECK(!frame->from);
    WB_CHECK(frame->count > 0);
    wb_buf_clear(raw_out);
    for (size_t i = 0; i < frame->count && err == 0; i++)
        err = wb_buf_append(raw_out, items[i].head, items[i].head_bytes);
    *heads_out = raw_out->len;
    for (size_t i = 0; i < frame->count && err == 0; i++)
        err = wb_buf_append(raw_out, items[i].body, items[i].body_bytes);
    WB_CHECK(err < 0 || raw_out->len <= UINT32_MAX);
    return err;
}

/*
 * Appends raw to out as one zstd frame of several zstd blocks, so that a reader can stop at
 * the end of one: one block with the heads, then one or a few with the bodies of `count`
 * items. All bodies of a zstd block together have DIVIDE_MIN bytes or more. Frames of older
 * versions have count 0: a version often takes fewer bytes than dividing them would.
 */
static int compress(ZSTD_CCtx *zstd, struct wb_slice raw, size_t heads, const struct wb_block_item *items, size_t count,
                    struct wb_buf *out, uint32_t *heads_stored_out)
{
    WB_CHECK(raw.len > 0);
    WB_CHECK(heads <= raw.len);

    size_t room = ZSTD_compressBound(raw.len) + FLUSH_ROOM * (count + 1), end = heads, left = 0;
    int err = wb_buf_reserve(out, room);

    if (err < 0)
        return err;
    ZSTD_outBuffer to = {out->ptr + out->len, room, 0};
    ZSTD_inBuffer from = {raw.ptr, heads, 0};
    ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
    left = ZSTD_CCtx_setPledgedSrcSize(zstd, raw.len);
    if (raw.len - heads >= BODIES_APART_MIN && !ZSTD_isError(left))
        left = ZSTD_compressStream2(zstd, &to, &from, ZSTD_e_flush);
    size_t divided = to.pos;
    for (size_t i = 0; i < count && divided && left == 0; i++) {
        end += items[i].body_bytes;
        if (end - from.pos < DIVIDE_MIN || raw.len - end < DIVIDE_MIN)
            continue;
        from.size = end;
        left = ZSTD_compressStream2(zstd, &to, &from, ZSTD_e_flush);
    }
    from.size = raw.len;
    if (left == 0)
        left = ZSTD_compressStream2(zstd, &to, &from, ZSTD_e_end);
    if (left != 0) /* with enough room for the output, nothing else can go wrong */
        return wb_fail_nomem();
    WB_CHECK(to.pos > divided);
    WB_CHECK(to.pos <= UINT32_MAX);
    out->len += to.pos;
    *heads_stored_out = (uint32_t)(divided ? divided : to.pos);
    return 0;
}

/* Loads the raw bytes of a frame of the plan as the dictionary of zstd, unless it has it already. */
static int load_base(struct wb_block_builder *builder, const struct wb_block_plan *plan, ZSTD_CCtx *zstd,
                     int32_t number, int32_t *loaded)
{
    const struct wb_block_plan_frame *frame = &plan->frames.items[number];
    struct wb_slice raw = frame->raw;
    size_t heads;

    WB_CHECK(builder->magic == BUILDER_MAGIC);
    WB_CHECK((size_t)number < plan->frames.count);
    if (*loaded == number)
        return 0;
    if (!frame->from) {
        int err = gather(plan, frame, &builder->base, &heads);
        if (err < 0)
            return err;
        raw = wb_buf_slice(&builder->base);
    }
    WB_CHECK(raw.len > 0);
    *loaded = -1;
    ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_CCtx_loadDictionary(zstd, raw.ptr, raw.len)))
        return wb_fail_nomem();
    *loaded = number;
    return 0;
}

/* Writes one frame to the end of out, copied or compressed. */
static int write_frame(struct wb_block_builder *builder, struct wb_block_plan *plan, struct wb_block_plan_frame *frame,
                       struct wb_buf *out)
{
    const struct wb_block_frame *from = frame->from;
    size_t start = out->len, heads;
    ZSTD_CCtx *zstd = builder->plain_zstd;
    int err = 0;

    WB_CHECK(builder->magic == BUILDER_MAGIC);
    WB_CHECK(frame->base < (int32_t)plan->frames.count);
    if (from) {
        frame->stored_bytes = from->stored_bytes;
        frame->raw_bytes = from->raw_bytes;
        frame->check = from->check;
        frame->heads_stored = from->heads_stored;
        return wb_buf_append(out, plan->block + from->at, from->stored_bytes);
    }
    bool history = plan->items.items[frame->first].newest >= 0;
    if (frame->base >= 0 && frame->base == plan->lead && !history) {
        zstd = builder->frame_zstd;
        err = load_base(builder, plan, zstd, frame->base, &builder->lead_loaded);
    } else if (frame->base >= 0) {
        zstd = builder->history_zstd;
        err = load_base(builder, plan, zstd, frame->base, &builder->base_loaded);
    }
    if (err == 0)
        err = gather(plan, frame, &builder->raw, &heads);
    if (err == 0)
        err = compress(zstd, wb_buf_slice(&builder->raw), heads, &plan->items.items[frame->first],
                       history ? 0 : frame->count, out, &frame->heads_stored);
    if (err < 0)
        return err;
    frame->raw_bytes = (uint32_t)builder->raw.len;
    frame->stored_bytes = (uint32_t)(out->len - start);
    frame->check = wb_hash32(out->ptr + start, frame->stored_bytes);
    return 0;
}

/* The lead comes first, so that a reader gets it together with the directory. */
static int write_frames(struct wb_block_builder *builder, struct wb_block_plan *plan, struct wb_buf *out)
{
    int err = 0;

    WB_CHECK(plan->frames.count > 0);
    WB_CHECK(plan->lead < (int32_t)plan->frames.count);
    builder->lead_loaded = builder->base_loaded = -1;
    if (plan->lead > 0)
        err = write_frame(builder, plan, &plan->frames.items[plan->lead], out);
    for (size_t i = 0; i < plan->frames.count && err == 0; i++)
        if (i == 0 || (int32_t)i != plan->lead)
            err = write_frame(builder, plan, &plan->frames.items[i], out);
    return err;
}

/* ---- the directory ------------------------------------------------------------------------------- */

enum { ENTRY_BYTES_MAX = 1 + 3 + 5 + 5 + WB_PAGEID_BYTES + WB_RECORD_DIGEST_BYTES };

/* Writes the entry of an item; before is the item before it, or NULL. Returns its length. */
static size_t put_entry(const struct wb_block_item *item, const struct wb_block_item *before, char *to)
{
    bool same = before && wb_pageid_equal(before->id, item->id);
    bool next = item->slot == (before ? before->slot + 1 : 0);
    size_t n = 1;

    WB_CHECK(!before || before->slot != item->slot);
    WB_CHECK(item->digests != NULL);
    to[0] = (char)((item->dead ? ENTRY_DEAD : 0) | (same ? ENTRY_SAME_PAGE : 0) | (next ? 0 : ENTRY_SLOT) |
                   (item->old ? ENTRY_OLD : 0));
    if (!next)
        n += wb_put_varint(to + n, item->slot);
    n += wb_put_varint(to + n, item->head_bytes);
    n += wb_put_varint(to + n, item->body_bytes);
    if (!same) {
        wb_pageid_put(item->id, to + n);
        n += WB_PAGEID_BYTES;
    }
    memcpy(to + n, item->digests, WB_RECORD_DIGEST_BYTES);
    return n + WB_RECORD_DIGEST_BYTES;
}

static void put_frame_rows(const struct wb_block_plan *plan, char *to)
{
    WB_CHECK(plan->frames.count < BLOCK_NO_BASE);
    for (size_t i = 0; i < plan->frames.count; i++, to += FRAME_ROW_BYTES) {
        const struct wb_block_plan_frame *frame = &plan->frames.items[i];
        WB_CHECK(frame->stored_bytes > 0);
        wb_put32(to + FRAME_STORED_AT, frame->stored_bytes);
        wb_put32(to + FRAME_RAW_AT, frame->raw_bytes);
        wb_put32(to + FRAME_CHECK_AT, frame->check);
        wb_put32(to + FRAME_HEADS_AT, frame->heads_stored);
        wb_put16(to + FRAME_BASE_AT, (uint16_t)(frame->base < 0 ? BLOCK_NO_BASE : frame->base));
        wb_put16(to + FRAME_COUNT_AT, (uint16_t)frame->count);
    }
}

static void put_head(const struct wb_block_plan *plan, size_t directory_bytes, char *block, size_t bytes)
{
    WB_CHECK(plan->next_slot <= BLOCK_SLOTS_MAX);
    WB_CHECK(plan->items.count <= WB_BLOCK_PAGES_MAX);
    memset(block, 0, WB_BLOCK_HEADER_BYTES);
    memcpy(block, BLOCK_MAGIC, sizeof BLOCK_MAGIC - 1);
    wb_put16(block + HEAD_FORMAT_AT, BLOCK_FORMAT);
    wb_put16(block + HEAD_COUNT_AT, (uint16_t)plan->items.count);
    wb_put16(block + HEAD_FRAMES_AT, (uint16_t)plan->frames.count);
    wb_put16(block + HEAD_LEAD_AT, (uint16_t)(plan->lead < 0 ? 0 : plan->lead));
    wb_put32(block + HEAD_DIRECTORY_BYTES_AT, (uint32_t)directory_bytes);
    wb_put32(block + HEAD_NEXT_SLOT_AT, plan->next_slot);
    wb_put64(block + HEAD_BYTES_AT, bytes);
    wb_put64(block + HEAD_SITE_AT, plan->site);
    wb_put64(block + HEAD_DIRECTORY_CHECK_AT, wb_hash64(block + WB_BLOCK_HEADER_BYTES, directory_bytes));
    wb_block_stamp(block, plan->logical, plan->commit);
}

/* Tells the callers' pages where they are, and what removing them would free: a share of the frame, and the entry. */
static void tell_pages(const struct wb_block_plan *plan)
{
    char entry[ENTRY_BYTES_MAX];

    WB_CHECK(plan->frames.count > 0);
    for (size_t i = 0; i < plan->frames.count; i++) {
        const struct wb_block_plan_frame *frame = &plan->frames.items[i];
        WB_CHECK(frame->first + frame->count <= plan->items.count);
        for (size_t j = frame->first; j < frame->first + frame->count; j++) {
            const struct wb_block_item *item = &plan->items.items[j];
            if (!item->page)
                continue;
            uint64_t raw = (uint64_t)item->head_bytes + item->body_bytes;
            size_t row = put_entry(item, j ? item - 1 : NULL, entry);
            item->page->slot = item->slot;
            item->page->stored_bytes =
                (int32_t)i == plan->lead ? 0 : (uint32_t)(frame->stored_bytes * raw / frame->raw_bytes + row);
        }
    }
}

int wb_block_plan_write(struct wb_block_builder *builder, struct wb_block_plan *plan, struct wb_buf *out)
{
    WB_CHECK(builder->magic == BUILDER_MAGIC);
    WB_CHECK(plan->items.count > 0);

    char entry[ENTRY_BYTES_MAX];
    size_t start = out->len, table_bytes = plan->frames.count * FRAME_ROW_BYTES, directory_bytes = table_bytes;

    for (size_t i = 0; i < plan->items.count; i++)
        directory_bytes += put_entry(&plan->items.items[i], i ? &plan->items.items[i - 1] : NULL, entry);
    int err = wb_buf_reserve(out, WB_BLOCK_HEADER_BYTES + directory_bytes);
    if (err < 0)
        return err;
    out->len += WB_BLOCK_HEADER_BYTES + directory_bytes;
    err = write_frames(builder, plan, out);
    if (err < 0) {
        out->len = start;
        return err;
    }
    char *to = out->ptr + start + WB_BLOCK_HEADER_BYTES;
    put_frame_rows(plan, to);
    to += table_bytes;
    for (size_t i = 0; i < plan->items.count; i++)
        to += put_entry(&plan->items.items[i], i ? &plan->items.items[i - 1] : NULL, to);
    WB_CHECK(to == out->ptr + start + WB_BLOCK_HEADER_BYTES + directory_bytes);
    put_head(plan, directory_bytes, out->ptr + start, out->len - start);
    tell_pages(plan);
    return 0;
}

/* ---- new blocks ------------------------------------------------------------------------------------ */

/* The site that all pages share, or 0 if there are several. */
static uint64_t common_site(const struct wb_block_page *pages, size_t count)
{
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(count > 0);
    for (size_t i = 1; i < count; i++)
        if (pages[i].site != pages[0].site)
            return 0;
    return pages[0].site;
}

/* Adds a page to the plan; newest is an item, or -1. */
static int add_item(struct wb_block_plan *plan, struct wb_block_page *page, int32_t newest)
{
    struct wb_block_item item = wb_block_item_of(page->record);

    WB_CHECK(newest < (int32_t)plan->items.count);
    item.id = page->id;
    item.slot = (uint16_t)plan->items.count;
    item.newest = newest;
    item.old = newest >= 0;
    item.page = page;
    return wb_vec_push(&plan->items, item);
}

/* Where the pages of a new block are, and the lists of their older versions: numbers of pages, or -1. */
struct block_lists {
    int32_t *item;  /* of a page */
    int32_t *older; /* the first older version of a page */
    int32_t *next;  /* the next older version of the same page */
};

/* Fills the plan with the pages, the older versions last. */
static int plan_pages(struct wb_block_plan *plan, struct wb_block_page *pages, size_t count,
                      const struct block_lists *lists)
{
    int err = 0;

    WB_CHECK(plan->items.count == 0);
    WB_CHECK(count > 0);
    for (size_t i = 0; i < count; i++)
        lists->older[i] = -1;
    for (size_t i = count; i-- > 0;) {
        uint32_t newest = pages[i].newest;
        if (newest == 0)
            continue;
        WB_CHECK(newest <= count);
        WB_CHECK(pages[newest - 1].newest == 0);
        lists->next[i] = lists->older[newest - 1];
        lists->older[newest - 1] = (int32_t)i;
    }
    for (size_t i = 0; i < count && err == 0; i++) {
        lists->item[i] = (int32_t)plan->items.count;
        if (pages[i].newest == 0)
            err = add_item(plan, &pages[i], -1);
    }
    for (size_t i = 0; i < count && err == 0; i++)
        for (int32_t j = lists->older[i]; j >= 0 && err == 0; j = lists->next[j])
            err = add_item(plan, &pages[j], lists->item[i]);
    WB_CHECK(err < 0 || plan->items.count == count);
    return err;
}

int wb_block_build(struct wb_block_builder *builder, struct wb_block_page *pages, size_t count,
                   struct wb_buf *block_out)
{
    WB_CHECK(builder->magic == BUILDER_MAGIC);
    WB_CHECK(count > 0);
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);

    struct wb_block_plan plan = {.next_slot = (uint32_t)count, .site = common_site(pages, count)};
    int32_t *room = wb_alloc(3 * count * sizeof *room);
    int err = room ? wb_vec_reserve(&plan.items, count) : WB_E_NOMEM;

    if (err == 0)
        err = plan_pages(&plan, pages, count, &(struct block_lists){room, room + count, room + 2 * count});
    if (err == 0)
        err = wb_block_plan_all(&plan);
    if (err == 0)
        err = wb_block_plan_write(builder, &plan, block_out);
    wb_block_plan_release(&plan);
    wb_free(room);
    return err;
}

void wb_block_stamp(char *block, uint64_t logical, uint64_t commit)
{
    wb_put64(block + HEAD_LOGICAL_AT, logical);
    wb_put64(block + HEAD_COMMIT_AT, commit);
    wb_put64(block + HEAD_CHECK_AT, wb_hash64(block, HEAD_CHECK_AT));
}
