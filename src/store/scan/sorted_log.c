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
#include "store/scan/sorted_scan.h"

#include <stdlib.h>

/* An item, and the segment that has it. */
struct sorted_place {
    struct wb_sorted_item *item;
    size_t row; /* the index of its row */
};

struct sorted_log {
    struct wb_log *log;
    struct wb_log_nodes nodes;
    struct wb_block_reader *zstd;
    struct wb_log_parts parts;
    WB_VEC(struct sorted_place) order; /* the items of the chunk in the order of the disk */
    struct wb_buf window;              /* of the last walk, for the next one */
    WB_VEC(uint64_t) entries;          /* of a block: its entry << 32 | its item, in the order of the directory */
};

static void close_source(void *context)
{
    struct sorted_log *source = context;

    wb_block_reader_free(source->zstd);
    wb_vec_release(&source->order);
    wb_vec_release(&source->parts);
    wb_vec_release(&source->entries);
    wb_buf_release(&source->window);
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
    const struct sorted_place *x = a, *y = b;
    const struct wb_catalog_place *p = &x->item->entry.place, *q = &y->item->entry.place;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (p->logical != q->logical)
        return p->logical < q->logical ? -1 : 1;
    return (p->slot > q->slot) - (p->slot < q->slot);
}

static int compare_entries(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The row of a segment: its index, or SIZE_MAX if there is none. */
static size_t find_row(const struct wb_log_rows *rows, uint32_t number)
{
    size_t low = 0, high = rows->count;

    WB_CHECK(number > 0);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rows->items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->count && rows->items[low].number == number ? low : SIZE_MAX;
}

/* The row of the segment that has the item: that of its place, or one that was split off from it (log_parts.c). */
static int locate(struct sorted_log *source, const struct wb_sorted_chunk *chunk, const struct wb_sorted_item *item,
                  size_t *row_out)
{
    uint32_t number = item->entry.place.segment;

    WB_CHECK(number > 0);
    *row_out = find_row(chunk->rows, number);
    if (*row_out == SIZE_MAX || !wb_catalog_range_has(&chunk->rows->items[*row_out].range, item->id)) {
        number = wb_log_parts_find(&source->parts, number, item->id);
        *row_out = number ? find_row(chunk->rows, number) : SIZE_MAX;
    }
    if (*row_out == SIZE_MAX)
        return wb_catalog_corrupt(chunk->txn->catalog, WB_CATALOG_SEGMENTS, "a segment without a row");
    return 0;
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

/* Finds the entries of a block that are wanted: places[0] to places[count - 1]. */
static int find_entries(struct sorted_log *source, const struct wb_block_index *index,
                        const struct sorted_place *places, size_t count)
{
    int err = wb_vec_reserve(&source->entries, count);

    WB_CHECK(count > 0);
    wb_vec_clear(&source->entries);
    for (size_t i = 0; i < count && err == 0; i++) {
        size_t at;
        if (!wb_block_find_slot(index, places[i].item->entry.place.slot, &at) ||
            !wb_pageid_equal(index->entries.items[at].id, places[i].item->id))
            err = wb_fail(WB_E_CORRUPT, "the page of slot %u is not there", places[i].item->entry.place.slot);
        else
            source->entries.items[source->entries.count++] = (uint64_t)at << 32 | i;
    }
    if (!index->sorted && source->entries.count) /* in the order of the directory, each frame is decompressed once */
        qsort(source->entries.items, source->entries.count, sizeof *source->entries.items, compare_entries);
    return err;
}

/* Reads the wanted records of the block that the walk has found. */
static int read_records(struct sorted_log *source, const struct wb_segment *segment, struct wb_sorted_chunk *chunk,
                        const struct sorted_place *places, size_t count)
{
    uint64_t logical = places[0].item->entry.place.logical;
    int err = 0;

    WB_CHECK(source->entries.count <= count);
    for (size_t i = 0; i < source->entries.count && err == 0; i++) {
        struct wb_sorted_item *item = places[source->entries.items[i] & UINT32_MAX].item;
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

/* Reads a block. All its items are in places[0] to places[count - 1]. */
static int load_block(struct sorted_log *source, struct wb_segment_walk *walk, struct wb_sorted_chunk *chunk,
                      const struct sorted_place *places, size_t count)
{
    uint64_t logical = places[0].item->entry.place.logical, at;
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
        err = find_entries(source, &walk->index, places, count);
    if (err == WB_E_CORRUPT) /* the other pages of the block are read */
        err = block_error(walk->segment, chunk, err, logical);
    if (err < 0 || head.logical != logical)
        return err;
    wb_block_reader_open_bytes(source->zstd, &walk->index, block);
    return read_records(source, walk->segment, chunk, places, count);
}

/* Reads the items of one segment. */
static int load_segment(struct sorted_log *source, struct wb_sorted_chunk *chunk, const struct sorted_place *places,
                        size_t count)
{
    const struct wb_catalog_segment *row = &chunk->rows->items[places[0].row];
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_segment_walk walk;
    int err;

    WB_CHECK(count > 0);
    struct wb_node *node;
    err = wb_log_nodes_refresh(&source->nodes, chunk->txn);
    if (err == 0)
        err = wb_log_nodes_find(&source->nodes, row->node, &node);
    if (err == 0)
        err = wb_segment_open(node, source->log->superblock.id, row, false, &segment);
    if (err == WB_E_CORRUPT)
        return wb_sorted_damaged(chunk, row->number, 0);
    if (err < 0)
        return err;
    wb_segment_walk_init(&walk, &segment, wb_log_blocks_end(row));
    walk.window = source->window;
    source->window = WB_BUF_INIT;
    for (size_t i = 0, next; i < count && err == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (places[next].item->entry.place.logical != places[i].item->entry.place.logical)
                break;
        err = load_block(source, &walk, chunk, places + i, next - i);
    }
    wb_buf_clear(&walk.window);
    source->window = walk.window;
    walk.window = WB_BUF_INIT;
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
    err = wb_log_parts_read(chunk->txn, &source->parts);
    source->order.count = chunk->items.count;
    for (size_t i = 0; i < chunk->items.count && err == 0; i++) {
        struct sorted_place *place = &source->order.items[i];
        place->item = &chunk->items.items[i];
        place->item->bytes = 0;
        err = locate(source, chunk, place->item, &place->row);
    }
    if (err < 0)
        return err;
    struct sorted_place *order = source->order.items;
    qsort(order, source->order.count, sizeof *order, compare_places);
    for (size_t i = 0, next; i < source->order.count && err == 0; i = next) {
        for (next = i + 1; next < source->order.count; next++)
            if (order[next].row != order[i].row)
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
