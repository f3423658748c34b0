/*
 * sorted_pieces.c - reads the records of a piece of a chunk (sorted_pieces.h), segment by segment, in the order of the
 * disk. Nothing here knows about the catalog, except the rows of segments.
 */
#include "pagefile/sorted_pieces.h"
#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>

enum { CACHE_BYTES = 16 << 20 }; /* of starts of blocks; a worker that has more gives them up */

static int compare_entries(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Remembers damage, whose message is the current one. */
static int note_damage(struct wb_sorted_piece *piece, uint32_t segment, uint64_t at)
{
    struct wb_sorted_found found = {.segment = segment, .at = at};

    WB_CHECK(segment > 0);
    if (piece->found.count) { /* once for all pages of a block */
        const struct wb_sorted_found *last = &piece->found.items[piece->found.count - 1];
        if (last->segment == segment && last->at == at)
            return 0;
    }
    wb_error_save(WB_E_CORRUPT, &found.error);
    return wb_vec_push(&piece->found, found);
}

/* Adds to the current message in which block the damage is, and remembers it. Other errors are returned. */
static int block_error(struct wb_sorted_worker *worker, const struct wb_segment *segment, int err, uint64_t logical)
{
    char why[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(err < 0);
    if (err != WB_E_CORRUPT)
        return err;
    strcpy(why, wb_error_message());
    wb_fail(err, "%s: block %llu: %s", segment->file.path, (unsigned long long)logical, why);
    return note_damage(worker->piece, segment->number, logical);
}

/* Finds the entries of a block that are wanted: places[0] to places[count - 1]. */
static int find_entries(struct wb_sorted_worker *worker, const struct wb_block_index *index,
                        const struct wb_sorted_place *places, size_t count)
{
    WB_CHECK(count > 0);
    int err = wb_vec_reserve(&worker->entries, count);

    wb_vec_clear(&worker->entries);
    for (size_t i = 0; i < count && err == 0; i++) {
        size_t at;
        if (!wb_block_find_slot(index, places[i].item->entry.place.slot, &at) ||
            !wb_pageid_equal(index->entries.items[at].id, places[i].item->id))
            err = wb_fail(WB_E_CORRUPT, "the page of slot %u is not there", places[i].item->entry.place.slot);
        else
            worker->entries.items[worker->entries.count++] = (uint64_t)at << 32 | i;
    }
    if (!index->sorted && worker->entries.count) /* in the order of the directory, each frame is decompressed once */
        qsort(worker->entries.items, worker->entries.count, sizeof *worker->entries.items, compare_entries);
    return err;
}

/* Reads the wanted records of the block that the walk has found. */
static int read_records(struct wb_sorted_worker *worker, const struct wb_segment *segment,
                        const struct wb_sorted_place *places, size_t count)
{
    uint64_t logical = places[0].item->entry.place.logical;
    int err = 0;

    WB_CHECK(worker->entries.count <= count);
    for (size_t i = 0; i < worker->entries.count && err == 0; i++) {
        struct wb_sorted_item *item = places[worker->entries.items[i] & UINT32_MAX].item;
        size_t at = (size_t)(worker->entries.items[i] >> 32), start = worker->text->len;
        err = (worker->source->chunk->facts ? wb_block_read_head : wb_block_append_record)(worker->reader.zstd, at,
                                                                                           worker->text);
        if (err < 0) {
            err = block_error(worker, segment, err, logical);
        } else {
            item->text = worker->number;
            item->at = start;
            item->bytes = worker->text->len - start;
        }
    }
    return err;
}

/* Reads a block. All its items are in places[0] to places[count - 1]. */
static int load_block(struct wb_sorted_worker *worker, struct wb_segment_walk *walk,
                      const struct wb_sorted_place *places, size_t count)
{
    uint64_t logical = places[0].item->entry.place.logical, at;
    struct wb_block_head head;
    const char *block;

    WB_CHECK(walk->segment->magic == WB_SEGMENT_MAGIC);
    int err = wb_segment_locate(walk->segment, logical, &at);
    if (err == 0 && (at < WB_SEGMENT_HEADER_BYTES || at >= walk->end))
        err = wb_fail(WB_E_CORRUPT, "the block is outside of its file");
    if (err < 0)
        return block_error(worker, walk->segment, err, logical);
    walk->next = at;
    err = wb_segment_walk_next(walk, &head, &block, &at);
    if (err == WB_E_CORRUPT) /* the message names the file and the place already */
        return note_damage(worker->piece, walk->segment->number, logical);
    if (err < 0)
        return err;
    WB_CHECK(err == 1);
    err = head.logical == logical ? 0 : wb_fail(WB_E_CORRUPT, "another block is in its place");
    if (err == 0)
        err = find_entries(worker, &walk->index, places, count);
    if (err == WB_E_CORRUPT) /* the other pages of the block are read */
        err = block_error(worker, walk->segment, err, logical);
    if (err < 0 || head.logical != logical)
        return err;
    wb_block_reader_open_bytes(worker->reader.zstd, &walk->index, block);
    return read_records(worker, walk->segment, places, count);
}

static int open_segment(struct wb_sorted_pieces *source, const struct wb_catalog_segment *row,
                        struct wb_segment *segment_out)
{
    struct wb_node *node;

    WB_CHECK(row->number > 0);
    pthread_mutex_lock(&source->lock);
    int err = wb_nodes_find(&source->nodes, row->node, &node);
    pthread_mutex_unlock(&source->lock);
    return err < 0 ? err : wb_segment_open(node, source->files->superblock->id, row, false, segment_out);
}

/* Reads the items of a segment block by block, in large pieces. */
static int load_blocks(struct wb_sorted_worker *worker, const struct wb_segment *segment, uint64_t end,
                       const struct wb_sorted_place *places, size_t count)
{
    struct wb_segment_walk walk;
    int err = 0;

    WB_CHECK(count > 0);
    wb_segment_walk_init(&walk, segment, end);
    walk.window = worker->window;
    worker->window = WB_BUF_INIT;
    for (size_t i = 0, next; i < count && err == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (places[next].item->entry.place.logical != places[i].item->entry.place.logical)
                break;
        err = load_block(worker, &walk, places + i, next - i);
    }
    wb_buf_clear(&walk.window);
    worker->window = walk.window;
    walk.window = WB_BUF_INIT;
    wb_segment_walk_release(&walk);
    return err;
}

/*
 * Reads single pages, in the order of the disk. The directories and leads of their blocks are kept for the next chunk,
 * which needs other pages of the same blocks.
 */
static int load_singly(struct wb_sorted_worker *worker, const struct wb_segment *segment,
                       const struct wb_sorted_place *places, size_t count)
{
    int err = 0;

    WB_CHECK(!worker->source->chunk->facts);
    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_sorted_item *item = places[i].item;
        err = wb_segment_read_record(segment, &worker->reader, &item->entry.place, item->id, &worker->record);
        size_t start = worker->text->len;
        if (err == 0)
            err = wb_buf_append_slice(worker->text, wb_buf_slice(&worker->record));
        if (err == 0) {
            item->text = worker->number;
            item->at = start;
            item->bytes = worker->record.len;
        } else if (err == WB_E_CORRUPT) {
            err = note_damage(worker->piece, segment->number, item->entry.place.logical);
        }
    }
    return err;
}

/* Where the blocks end that a piece has of a segment: if the next piece has more of them, nothing is read of those. */
static uint64_t find_end(const struct wb_sorted_pieces *source, const struct wb_segment *segment,
                         const struct wb_catalog_segment *row, const struct wb_sorted_place *places, size_t count)
{
    const struct wb_sorted_place *behind = places + count;
    uint64_t last, next;

    WB_CHECK(count > 0);
    WB_CHECK(behind <= source->order.items + source->order.count);
    if (behind < source->order.items + source->order.count && behind->row == places[0].row &&
        wb_segment_locate(segment, places[count - 1].item->entry.place.logical, &last) == 0 &&
        wb_segment_locate(segment, behind->item->entry.place.logical, &next) == 0 && last < next &&
        next <= wb_segment_blocks_end(row))
        return next;
    return wb_segment_blocks_end(row);
}

/* Reads the items of one segment. */
static int load_segment(struct wb_sorted_worker *worker, const struct wb_sorted_place *places, size_t count)
{
    const struct wb_catalog_segment *row = &worker->source->chunk->rows->items[places[0].row];
    struct wb_segment segment = WB_SEGMENT_INIT;
    int err = open_segment(worker->source, row, &segment);

    WB_CHECK(count > 0);
    if (err == WB_E_CORRUPT)
        return note_damage(worker->piece, row->number, 0);
    if (err < 0)
        return err;
    if (places[0].sparse && !worker->source->chunk->facts)
        err = load_singly(worker, &segment, places, count);
    else
        err = load_blocks(worker, &segment, find_end(worker->source, &segment, row, places, count), places, count);
    wb_segment_close(&segment);
    return err;
}

static int load_piece(struct wb_sorted_worker *worker)
{
    const struct wb_sorted_place *order = worker->piece->places;
    size_t count = worker->piece->count;
    int err = worker->reader.zstd ? 0 : wb_segment_reader_init(&worker->reader);

    WB_CHECK(worker->text != NULL);
    for (size_t i = 0, next; i < count && err == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (order[next].row != order[i].row)
                break;
        err = load_segment(worker, order + i, next - i);
    }
    return err;
}

void wb_sorted_work(void *context)
{
    struct wb_sorted_worker *worker = context;
    struct wb_sorted_pieces *source = worker->source;

    for (;;) {
        pthread_mutex_lock(&source->lock);
        size_t at = source->next_piece;
        source->next_piece += at < source->piece_count;
        pthread_mutex_unlock(&source->lock);
        if (at == source->piece_count)
            break;
        /* All begin in different parts of the order, with several nodes: on different ones. */
        worker->piece = &source->pieces[at % source->worker_count * source->share + at / source->worker_count];
        int err = load_piece(worker);
        if (err < 0)
            wb_error_save(err, &worker->piece->error);
    }
    if (worker->reader.cache.bytes > CACHE_BYTES)
        wb_block_cache_release(&worker->reader.cache);
}
