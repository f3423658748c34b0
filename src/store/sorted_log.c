/*
 * sorted_log.c - the source of sorted scans that reads segments (sorted_scan.h).
 *
 * The items of a chunk are read in the order of the disk: segment by segment, block by block. Every segment has a range
 * of ids, so a chunk that ends where ranges end has all pages of the blocks that it touches, except in segments of
 * wider ranges: logs that were full before their range was divided.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "store/sorted_scan.h"

#include <stdlib.h>

struct sorted_log {
    struct wb_log *log;
    struct wb_log_nodes nodes;
    struct wb_block_reader *zstd;
    WB_VEC(struct wb_sorted_item *) order; /* the items of the chunk in the order of the disk */
    WB_VEC(uint64_t) entries;              /* of a block: its entry << 32 | its item, in the order of the directory */
};

static void close_source(void *context)
{
    struct sorted_log *source = context;

    wb_block_reader_free(source->zstd);
    wb_vec_release(&source->order);
    wb_vec_release(&source->entries);
    wb_log_nodes_release(&source->nodes);
    wb_free(source);
}

static int open_source(struct wb_log *log, void **context_out)
{
    struct sorted_log *source = wb_alloc_zero(1, sizeof *source);

    WB_CHECK(log->magic == WB_LOG_MAGIC);
    *context_out = NULL;
    if (!source)
        return WB_E_NOMEM;
    source->log = log;
    wb_log_nodes_init(&source->nodes, log->dir, &log->superblock);
    int err = wb_block_reader_new(&source->zstd);
    if (err < 0) {
        close_source(source);
        return err;
    }
    *context_out = source;
    return 0;
}

/* The nearest place from `hi` on at which a range of a segment ends, or the next one begins. */
static int find_edge(void *context, const struct wb_log_rows *rows, uint64_t hi, uint64_t *edge_out)
{
    uint64_t edge = UINT64_MAX;

    WB_CHECK(context != NULL);
    for (size_t i = 0; i < rows->count; i++) {
        const struct wb_catalog_range *range = &rows->items[i].range;
        uint64_t end = range->prefix | ~wb_catalog_range_mask(range);
        WB_CHECK(wb_catalog_range_is_valid(range));
        if (range->prefix > hi)
            end = range->prefix - 1;
        if (end >= hi && end < edge)
            edge = end;
    }
    *edge_out = edge;
    return 0;
}

/* ---- loading ---------------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const struct wb_catalog_place *x = &(*(struct wb_sorted_item *const *)a)->entry.place;
    const struct wb_catalog_place *y = &(*(struct wb_sorted_item *const *)b)->entry.place;

    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->logical != y->logical)
        return x->logical < y->logical ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static int compare_entries(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The row of a segment; NULL if there is none. */
static const struct wb_catalog_segment *find_row(const struct wb_log_rows *rows, uint32_t number)
{
    size_t low = 0, high = rows->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rows->items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->count && rows->items[low].number == number ? &rows->items[low] : NULL;
}

/* Adds to the current message in which block the damage is, and remembers it. Other errors are returned. */
static int block_error(const struct wb_segment *segment, struct wb_sorted_chunk *chunk, int err, uint64_t logical)
{
    char why[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(err < 0);
    if (err != WB_E_CORRUPT)
        return err;
    strcpy(why, wb_error_message());
    wb_fail(err, "%s: block %llu: %s", segment->file.path, (unsigned long long)logical, why);
    return wb_sorted_damaged(chunk, segment->number, logical);
}

/* Finds the entries of a block that are wanted: items[0] to items[count - 1]. */
static int find_entries(struct sorted_log *source, const struct wb_block_index *index, struct wb_sorted_item **items,
                        size_t count)
{
    int err = wb_vec_reserve(&source->entries, count);

    WB_CHECK(count > 0);
    wb_vec_clear(&source->entries);
    for (size_t i = 0; i < count && err == 0; i++) {
        size_t at;
        if (!wb_block_find_slot(index, items[i]->entry.place.slot, &at) ||
            !wb_pageid_equal(index->entries.items[at].id, items[i]->id))
            err = wb_fail(WB_E_CORRUPT, "the page of slot %u is not there", items[i]->entry.place.slot);
        else
            source->entries.items[source->entries.count++] = (uint64_t)at << 32 | i;
    }
    if (!index->sorted && source->entries.count) /* in the order of the directory, each frame is decompressed once */
        qsort(source->entries.items, source->entries.count, sizeof *source->entries.items, compare_entries);
    return err;
}

/* Reads the wanted records of the block that the walk has found. */
static int read_records(struct sorted_log *source, const struct wb_segment *segment, struct wb_sorted_chunk *chunk,
                        struct wb_sorted_item **items, size_t count)
{
    uint64_t logical = items[0]->entry.place.logical;
    int err = 0;

    WB_CHECK(source->entries.count <= count);
    for (size_t i = 0; i < source->entries.count && err == 0; i++) {
        struct wb_sorted_item *item = items[source->entries.items[i] & UINT32_MAX];
        size_t at = (size_t)(source->entries.items[i] >> 32), start = chunk->text.len;
        err = (chunk->facts ? wb_block_read_head : wb_block_append_record)(source->zstd, at, &chunk->text);
        if (err < 0) {
            err = block_error(segment, chunk, err, logical);
        } else {
            item->at = start;
            item->bytes = chunk->text.len - start;
        }
    }
    return err;
}

/* Reads a block. All its items are in items[0] to items[count - 1]. */
static int load_block(struct sorted_log *source, struct wb_segment_walk *walk, struct wb_sorted_chunk *chunk,
                      struct wb_sorted_item **items, size_t count)
{
    uint64_t logical = items[0]->entry.place.logical, at;
    struct wb_block_head head;
    const char *block;

    WB_CHECK(walk->segment->magic == WB_SEGMENT_MAGIC);
    int err = wb_segment_locate(walk->segment, logical, &at);
    if (err == 0 && (at < WB_SEGMENT_HEADER_BYTES || at >= walk->end))
        err = wb_fail(WB_E_CORRUPT, "the block is outside of its file");
    if (err < 0)
        return block_error(walk->segment, chunk, err, logical);
    walk->next = at;
    err = wb_segment_walk_next(walk, &head, &block, &at);
    if (err == WB_E_CORRUPT) /* the message names the file and the place already */
        return wb_sorted_damaged(chunk, walk->segment->number, logical);
    if (err < 0)
        return err;
    WB_CHECK(err == 1);
    err = head.logical == logical ? 0 : wb_fail(WB_E_CORRUPT, "another block is in its place");
    if (err == 0)
        err = find_entries(source, &walk->index, items, count);
    if (err == WB_E_CORRUPT) /* the other pages of the block are read */
        err = block_error(walk->segment, chunk, err, logical);
    if (err < 0 || head.logical != logical)
        return err;
    wb_block_reader_open_bytes(source->zstd, &walk->index, block);
    return read_records(source, walk->segment, chunk, items, count);
}

/* Reads the items of one segment. */
static int load_segment(struct sorted_log *source, struct wb_sorted_chunk *chunk, struct wb_sorted_item **items,
                        size_t count)
{
    uint32_t number = items[0]->entry.place.segment;
    const struct wb_catalog_segment *row = find_row(chunk->rows, number);
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_segment_walk walk;
    int err;

    WB_CHECK(count > 0);
    if (!row)
        return wb_catalog_corrupt(chunk->txn->catalog, WB_CATALOG_SEGMENTS, "a missing segment");
    const char *dir;
    err = wb_log_nodes_refresh(&source->nodes, chunk->txn);
    if (err == 0)
        err = wb_log_nodes_dir(&source->nodes, row->node, &dir);
    if (err == 0)
        err = wb_segment_open(dir, source->log->superblock.id, row, false, &segment);
    if (err == WB_E_CORRUPT)
        return wb_sorted_damaged(chunk, number, 0);
    if (err < 0)
        return err;
    wb_segment_walk_init(&walk, &segment, wb_log_blocks_end(row));
    for (size_t i = 0, next; i < count && err == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (items[next]->entry.place.logical != items[i]->entry.place.logical)
                break;
        err = load_block(source, &walk, chunk, items + i, next - i);
    }
    wb_segment_walk_release(&walk);
    wb_segment_close(&segment);
    return err;
}

static int load_chunk(void *context, struct wb_sorted_chunk *chunk)
{
    struct sorted_log *source = context;
    int err = wb_vec_reserve(&source->order, chunk->items.count);

    WB_CHECK(chunk->txn->kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(chunk->items.count > 0);
    if (err < 0)
        return err;
    source->order.count = chunk->items.count;
    for (size_t i = 0; i < chunk->items.count; i++) {
        source->order.items[i] = &chunk->items.items[i];
        chunk->items.items[i].bytes = 0;
    }
    struct wb_sorted_item **order = source->order.items;
    qsort(order, source->order.count, sizeof *order, compare_places);
    for (size_t i = 0, next; i < source->order.count && err == 0; i = next) {
        for (next = i + 1; next < source->order.count; next++)
            if (order[next]->entry.place.segment != order[i]->entry.place.segment)
                break;
        err = load_segment(source, chunk, order + i, next - i);
    }
    return err;
}

const struct wb_sorted_source wb_sorted_log = {
    .chunk_bytes = 64 << 20,
    .open = open_source,
    .close = close_source,
    .edge = find_edge,
    .load = load_chunk,
};
