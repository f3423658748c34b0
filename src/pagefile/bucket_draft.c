/*
 * bucket_draft.c - makes the image of a bucket from an older one and from records.
 *
 * Small records are compressed together into the bucket's own block, in the order of their ids; older versions of a
 * page with the latest one as their dictionary, as in a log. A large record has an extent of its own, and if the block
 * is full, further records share blocks in extents. Extents are written behind all others, before the image: nobody
 * knows of them before that is in place.
 */
#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "pagefile/bucket.h"

#include <stdlib.h>

enum { SLOTS_WORN = 0xe000 }; /* a block whose slots are used up to here is built from the start */

int wb_bucket_draft_init(struct wb_bucket_draft *draft, size_t large_bytes)
{
    WB_CHECK(large_bytes > 0);
    *draft = (struct wb_bucket_draft){.large_bytes = large_bytes};
    int err = wb_block_builder_new(&draft->builder);
    return err < 0 ? err : wb_block_reader_new(&draft->zstd);
}

void wb_bucket_draft_release(struct wb_bucket_draft *draft)
{
    wb_block_builder_free(draft->builder);
    wb_block_reader_free(draft->zstd);
    wb_bucket_release(&draft->bucket);
    wb_buf_release(&draft->block);
    wb_buf_release(&draft->extents);
    wb_vec_release(&draft->items);
    wb_vec_release(&draft->order);
    wb_vec_release(&draft->pieces);
    wb_vec_release(&draft->pages);
    wb_vec_release(&draft->dead);
    *draft = (struct wb_bucket_draft){0};
}

void wb_bucket_draft_begin(struct wb_bucket_draft *draft, struct wb_bucket_file *file, uint64_t *end, uint64_t number,
                           uint64_t stamp)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(number < file->count);
    WB_CHECK(*end >= wb_bucket_extents_at(file));
    draft->file = file;
    draft->end = end;
    wb_vec_clear(&draft->items);
    wb_vec_clear(&draft->bucket.versions);
    wb_vec_clear(&draft->bucket.pages);
    draft->bucket.number = number;
    draft->bucket.stamp = stamp;
    draft->bucket.overflow_at = draft->bucket.overflow_bytes = 0;
}

/* ---- blocks -------------------------------------------------------------------------------------------------- */

static bool is_small(const struct wb_bucket_draft *draft, const struct wb_bucket_item *item)
{
    return item->record.len < draft->large_bytes;
}

/* Adds the page of an item to the next block. */
static int add_page(struct wb_bucket_draft *draft, const struct wb_bucket_item *item)
{
    WB_CHECK(item->record.len > 0);
    return wb_vec_push(&draft->pages,
                       (struct wb_block_page){.id = item->version.id, .record = item->record, .site = item->site});
}

/* Finds for older versions the latest one, if it is in the same block. */
static void link_versions(struct wb_bucket_draft *draft, const struct wb_bucket_item *const *items)
{
    struct wb_block_page *pages = draft->pages.items;

    for (size_t i = 0, next; i < draft->pages.count; i = next) {
        uint32_t latest = 0;
        for (next = i; next < draft->pages.count && wb_pageid_equal(pages[next].id, pages[i].id); next++)
            if (!items[next]->old)
                latest = (uint32_t)next + 1;
        for (size_t k = i; k < next && latest; k++)
            pages[k].newest = k + 1 == latest ? 0 : latest;
    }
}

/* Builds a block of the pages, which are those of the items from order[first] on; it will go to an extent. */
static int build_extent(struct wb_bucket_draft *draft, struct wb_block_builder *builder, size_t first)
{
    struct wb_bucket_piece piece = {.first = first, .count = draft->pages.count, .at = draft->extents.len};

    WB_CHECK(piece.count > 0);
    WB_CHECK(first + piece.count <= draft->order.count);
    int err = wb_block_build(builder, draft->pages.items, draft->pages.count, &draft->extents);
    if (err < 0)
        return err;
    for (size_t i = 0; i < piece.count; i++)
        draft->order.items[first + i]->version.block_slot = draft->pages.items[i].slot;
    piece.bytes = draft->extents.len - piece.at;
    return wb_vec_push(&draft->pieces, piece);
}

/* Builds blocks of the items from order[first] on: large ones alone, the others together, as many as a block takes. */
static int build_extents(struct wb_bucket_draft *draft, struct wb_block_builder *builder, size_t first)
{
    int err = 0;

    wb_buf_clear(&draft->extents);
    wb_vec_clear(&draft->pieces);
    for (size_t i = first, n; i < draft->order.count && err == 0; i += n) {
        struct wb_bucket_item **items = draft->order.items + i;
        uint64_t raw = 0;
        wb_vec_clear(&draft->pages);
        for (n = 0; i + n < draft->order.count && err == 0 && n < WB_BUCKET_BLOCK_PAGES_MAX; n++) {
            if (n > 0 && (!is_small(draft, items[0]) || !is_small(draft, items[n]) ||
                          raw + items[n]->record.len > WB_BUCKET_BLOCK_RAW_MAX))
                break;
            raw += items[n]->record.len;
            err = add_page(draft, items[n]);
        }
        if (err == 0) {
            link_versions(draft, (const struct wb_bucket_item *const *)items);
            err = build_extent(draft, builder, i);
        }
    }
    return err;
}

/* Writes these blocks, which are neighbours in the file, and tells their items where they are. */
static int write_extents(struct wb_bucket_draft *draft)
{
    uint64_t start = *draft->end;

    if (draft->extents.len == 0)
        return 0;
    if (start + draft->extents.len > WB_BUCKET_EXTENT_MAX)
        return wb_fail(WB_E_LIMIT, "%s would be too long", draft->file->file.path);
    for (size_t p = 0; p < draft->pieces.count; p++) {
        const struct wb_bucket_piece *piece = &draft->pieces.items[p];
        wb_block_stamp(draft->extents.ptr + piece->at, start + piece->at, draft->bucket.stamp);
        for (size_t i = piece->first; i < piece->first + piece->count; i++) {
            draft->order.items[i]->version.extent_at = start + piece->at;
            draft->order.items[i]->version.extent_bytes = piece->bytes;
        }
    }
    int err = wb_node_file_write_at(&draft->file->file, start, draft->extents.ptr, draft->extents.len);
    if (err == 0)
        *draft->end = start + draft->extents.len;
    return err;
}

/*
 * Decides which items go to the bucket's own block, in which there is room for `raw` bytes and `pages` pages. Puts
 * these first into draft->order, and returns their number; the others, except those that have their extent, follow.
 */
static int divide(struct wb_bucket_draft *draft, uint64_t raw, size_t pages, size_t *own_out)
{
    size_t own = 0, others = 0, taken = 0;

    wb_vec_clear(&draft->order);
    int err = wb_vec_reserve(&draft->order, draft->items.count + 1);
    if (err < 0)
        return err;
    struct wb_bucket_item **order = draft->order.items;
    for (size_t i = 0; i < draft->items.count; i++) {
        struct wb_bucket_item *item = &draft->items.items[i];
        if (item->record.len && is_small(draft, item) && item->record.len <= raw && own < pages) {
            raw -= item->record.len;
            order[own++] = item;
        }
    }
    WB_CHECK(own <= pages);
    for (size_t i = 0; i < draft->items.count; i++) {
        struct wb_bucket_item *item = &draft->items.items[i];
        if (taken < own && order[taken] == item)
            taken++;
        else if (item->record.len)
            order[own + others++] = item;
    }
    draft->order.count = own + others;
    *own_out = own;
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct wb_bucket_version *y = &((const struct wb_bucket_item *)b)->version;

    return wb_bucket_version_compare(&((const struct wb_bucket_item *)a)->version, y->id, &y->place);
}

static int compare_versions(const void *a, const void *b)
{
    const struct wb_bucket_version *y = b;

    return wb_bucket_version_compare(a, y->id, &y->place);
}

/* Adds the items to the directory, and makes the bytes of the image. */
static int finish(struct wb_bucket_draft *draft, struct wb_slice block)
{
    struct wb_bucket *bucket = &draft->bucket;
    int err = wb_vec_reserve(&bucket->versions, bucket->versions.count + draft->items.count + 1);

    for (size_t i = 0; i < draft->items.count && err == 0; i++)
        bucket->versions.items[bucket->versions.count++] = draft->items.items[i].version;
    if (err < 0)
        return err;
    if (bucket->versions.count > 1)
        qsort(bucket->versions.items, bucket->versions.count, sizeof *bucket->versions.items, compare_versions);
    if (bucket->versions.count >= UINT32_MAX || bucket->pages.count >= UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "a bucket of %s has too many versions", draft->file->file.path);
    bucket->overflow_at = 0;
    uint64_t bytes = WB_BUCKET_HEAD_BYTES + (uint64_t)bucket->versions.count * WB_BUCKET_VERSION_BYTES +
                     bucket->pages.count * WB_BUCKET_PAGE_BYTES + block.len;
    if (bytes > draft->file->bucket_bytes) {
        bucket->overflow_at = *draft->end;
        *draft->end += bytes - draft->file->bucket_bytes;
    }
    err = wb_bucket_encode(draft->file, block, bucket);
    WB_CHECK(err < 0 || bucket->image.len == bytes);
    return err;
}

/* ---- from items alone ------------------------------------------------------------------------------------------- */

int wb_bucket_draft_compress(struct wb_bucket_draft *draft, struct wb_block_builder *builder)
{
    size_t own = 0;

    WB_CHECK(draft->bucket.versions.count == 0);
    if (draft->items.count > 1)
        qsort(draft->items.items, draft->items.count, sizeof *draft->items.items, compare_items);
    int err = divide(draft, WB_BUCKET_BLOCK_RAW_MAX, WB_BUCKET_BLOCK_PAGES_MAX, &own);
    if (err == 0)
        err = build_extents(draft, builder, own);
    wb_vec_clear(&draft->pages);
    for (size_t i = 0; i < own && err == 0; i++)
        err = add_page(draft, draft->order.items[i]);
    wb_buf_clear(&draft->block);
    if (err < 0 || own == 0)
        return err;
    link_versions(draft, (const struct wb_bucket_item *const *)draft->order.items);
    err = wb_block_build(builder, draft->pages.items, own, &draft->block);
    if (err < 0)
        return err;
    wb_block_stamp(draft->block.ptr, draft->bucket.number + 1, draft->bucket.stamp);
    for (size_t i = 0; i < own; i++)
        draft->order.items[i]->version.block_slot = draft->pages.items[i].slot;
    return 0;
}

int wb_bucket_draft_store(struct wb_bucket_draft *draft)
{
    int err = write_extents(draft);

    WB_CHECK(draft->bucket.versions.count == 0);
    return err < 0 ? err : finish(draft, wb_buf_slice(&draft->block));
}

int wb_bucket_draft_build(struct wb_bucket_draft *draft)
{
    int err = wb_bucket_draft_compress(draft, draft->builder);

    return err < 0 ? err : wb_bucket_draft_store(draft);
}

/* ---- from an older image ------------------------------------------------------------------------------------------
 */

/* What stays of the block of an older bucket. */
struct block_rest {
    size_t live, dead; /* entries that versions need, and others */
    uint64_t raw;      /* bytes of the records of the former */
};

/* Copies the versions that stay, and finds out which entries of the block they need. */
static int keep_versions(struct wb_bucket_draft *draft, const struct wb_bucket *old, const bool *drop,
                         struct block_rest *rest_out)
{
    int err = wb_vec_reserve(&draft->dead, old->index.entries.count + 1);

    *rest_out = (struct block_rest){0};
    if (err == 0)
        err = wb_vec_reserve(&draft->bucket.versions, old->versions.count + 1);
    if (err < 0)
        return err;
    for (size_t i = 0; i < old->index.entries.count; i++)
        draft->dead.items[i] = true;
    for (size_t i = 0; i < old->versions.count; i++) {
        const struct wb_bucket_version *version = &old->versions.items[i];
        size_t at;
        if (drop[i])
            continue;
        draft->bucket.versions.items[draft->bucket.versions.count++] = *version;
        if (version->extent_at)
            continue;
        bool found = wb_block_find_slot(&old->index, version->block_slot, &at);
        WB_CHECK(found);
        draft->dead.items[at] = false;
    }
    for (size_t i = 0; i < old->index.entries.count; i++) {
        const struct wb_block_entry *entry = &old->index.entries.items[i];
        rest_out->live += !draft->dead.items[i];
        rest_out->dead += draft->dead.items[i];
        rest_out->raw += draft->dead.items[i] ? 0 : (uint64_t)entry->head_bytes + entry->body_bytes;
    }
    return 0;
}

/* Bytes of extents that only versions to be dropped have. */
static uint64_t lost_extents(const struct wb_bucket *old, const bool *drop)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < old->versions.count; i++) {
        const struct wb_bucket_version *version = &old->versions.items[i];
        bool counted = !drop[i] || version->extent_at == 0;
        for (size_t k = 0; k < old->versions.count && !counted; k++)
            counted = old->versions.items[k].extent_at == version->extent_at && (!drop[k] || k < i);
        bytes += counted ? 0 : version->extent_bytes;
    }
    return bytes;
}

/* Compresses everything again that stays, together with the items. */
static int build_anew(struct wb_bucket_draft *draft, const struct wb_bucket *old, const bool *drop)
{
    struct wb_arena arena = {0};
    struct wb_buf record = WB_BUF_INIT;
    int err = 0;

    wb_vec_clear(&draft->bucket.versions);
    wb_block_reader_open_bytes(draft->zstd, &old->index, old->image.ptr + old->block_at);
    for (size_t i = 0; i < old->versions.count && err == 0; i++) {
        struct wb_bucket_item item = {.version = old->versions.items[i]};
        struct wb_catalog_entry entry;
        size_t at;
        if (drop[i])
            continue;
        if (item.version.extent_at == 0) {
            bool found = wb_block_find_slot(&old->index, item.version.block_slot, &at);
            WB_CHECK(found);
            err = wb_block_read_record(draft->zstd, at, &record);
            if (err == 0)
                err = wb_arena_copy(&arena, wb_buf_slice(&record), &item.record);
            item.old = !wb_bucket_find_page(&draft->bucket, item.version.id, &entry) ||
                       !wb_catalog_place_equal(&entry.place, &item.version.place);
        }
        if (err == 0)
            err = wb_vec_push(&draft->items, item);
    }
    if (err == 0)
        err = wb_bucket_draft_build(draft);
    else if (err == WB_E_CORRUPT)
        err = wb_bucket_corrupt(draft->file, old->number, "a page in it cannot be read");
    wb_buf_release(&record);
    wb_arena_release(&arena);
    return err;
}

/* Makes the new block: the old one without its dead pages, and with the first items of draft->order. */
static int change_block(struct wb_bucket_draft *draft, const struct wb_bucket *old, const struct block_rest *rest,
                        size_t own)
{
    struct wb_bucket_item **order = draft->order.items;
    const char *block = old->image.ptr + old->block_at;
    int err = 0;

    wb_buf_clear(&draft->block);
    wb_vec_clear(&draft->pages);
    for (size_t i = 0; i < own && err == 0; i++)
        err = add_page(draft, order[i]);
    if (err < 0 || (rest->live == 0 && own == 0))
        return err;
    if (rest->live == 0) {
        link_versions(draft, (const struct wb_bucket_item *const *)order);
        err = wb_block_build(draft->builder, draft->pages.items, own, &draft->block);
    } else if (rest->dead == 0 && own == 0) {
        err = wb_buf_append(&draft->block, block, old->image.len - old->block_at);
    } else {
        struct wb_block_change change = {
            .dead = draft->dead.items, .extra = draft->pages.items, .extra_count = draft->pages.count};
        err = wb_block_rewrite(draft->builder, draft->zstd, &old->index, block, &change, &draft->block);
    }
    if (err < 0)
        return err == WB_E_CORRUPT ? wb_bucket_corrupt(draft->file, old->number, "its block cannot be changed") : err;
    wb_block_stamp(draft->block.ptr, draft->bucket.number + 1, draft->bucket.stamp);
    for (size_t i = 0; i < own; i++)
        order[i]->version.block_slot = draft->pages.items[i].slot;
    return 0;
}

int wb_bucket_draft_change(struct wb_bucket_draft *draft, const struct wb_bucket *old, const bool *drop,
                           uint64_t *dead_bytes_out)
{
    struct block_rest rest;
    size_t own = 0;

    WB_CHECK(draft->bucket.number == old->number);
    *dead_bytes_out = old->overflow_bytes + lost_extents(old, drop);
    int err = keep_versions(draft, old, drop, &rest);
    if (err < 0)
        return err;
    bool worn = old->index.entries.count && old->index.head.next_slot >= SLOTS_WORN;
    if (worn && rest.live)
        return build_anew(draft, old, drop);
    if (draft->items.count > 1)
        qsort(draft->items.items, draft->items.count, sizeof *draft->items.items, compare_items);
    uint64_t raw = rest.raw < WB_BUCKET_BLOCK_RAW_MAX ? WB_BUCKET_BLOCK_RAW_MAX - rest.raw : 0;
    size_t pages = rest.live < WB_BUCKET_BLOCK_PAGES_MAX ? WB_BUCKET_BLOCK_PAGES_MAX - rest.live : 0;
    err = divide(draft, raw, pages, &own);
    if (err == 0)
        err = build_extents(draft, draft->builder, own);
    if (err == 0)
        err = write_extents(draft);
    if (err == 0)
        err = change_block(draft, old, &rest, own);
    return err < 0 ? err : finish(draft, wb_buf_slice(&draft->block));
}
