/*
 * sorted_log.c - the source of sorted scans that reads segments (sorted_source.h).
 *
 * The items of a chunk are read in the order of the disk: segment by segment, block by block. Every segment has a range
 * of ids, so a chunk that ends where ranges end has all pages of the blocks that it touches, except in segments of
 * wider ranges: logs that were full before their range was divided.
 *
 * Decompressing takes most of the time, so a chunk is divided into pieces (sorted_pieces.h), which are read by a thread
 * for each processor, each into a text of its own. The items are sorted by node first: with several nodes, different
 * threads read from different disks.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/largepage.h"
#include "os/limits.h"
#include "pagefile/sorted_pieces.h"

#include <stdlib.h>

enum {
    SPARSE = 4, /* a segment with so many times more pages than a chunk wants is a wide one */
    SPARE = 16, /* texts have this part more than they will need, about */
};

static void close_source(void *context)
{
    struct wb_sorted_pieces *source = context;

    wb_pool_free(source->pool);
    for (size_t i = 0; i < WB_SORTED_WORKERS; i++) {
        struct wb_sorted_worker *worker = &source->workers[i];
        wb_segment_reader_release(&worker->reader);
        wb_vec_release(&worker->entries);
        wb_buf_release(&worker->record);
        wb_buf_release(&worker->window);
    }
    for (size_t i = 0; i < WB_SORTED_SHARE * WB_SORTED_WORKERS; i++)
        wb_vec_release(&source->pieces[i].found);
    wb_vec_release(&source->order);
    wb_vec_release(&source->wide);
    wb_vec_release(&source->parts);
    wb_nodes_release(&source->nodes);
    pthread_mutex_destroy(&source->lock);
    wb_free(source);
}

static int open_source(const struct wb_pagefile *files, void **context_out)
{
    struct wb_sorted_pieces *source = wb_alloc_zero(1, sizeof *source);

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    *context_out = NULL;
    if (!source)
        return WB_E_NOMEM;
    source->files = files;
    pthread_mutex_init(&source->lock, NULL);
    wb_nodes_init(&source->nodes, files->dir, files->superblock);
    for (uint32_t i = 0; i < WB_SORTED_WORKERS; i++) {
        source->workers[i].source = source;
        source->workers[i].number = i;
    }
    *context_out = source;
    return 0;
}

/* The nearest place from `hi` on at which a range of a segment ends, or the next one begins. */
static int find_edge(void *context, const struct wb_catalog_rows *rows, uint64_t hi, uint64_t *edge_out)
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

/* ---- the order of the disk ----------------------------------------------------------------------------------------
 */

static int compare_places(const void *a, const void *b)
{
    const struct wb_sorted_place *x = a, *y = b;
    const struct wb_catalog_place *p = &x->item->entry.place, *q = &y->item->entry.place;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (p->logical != q->logical)
        return p->logical < q->logical ? -1 : 1;
    return (p->slot > q->slot) - (p->slot < q->slot);
}

/* The row of a segment: its index, or SIZE_MAX if there is none. */
static size_t find_row(const struct wb_catalog_rows *rows, uint32_t number)
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

/* The row of the segment that has the item: that of its place, or one that was split off from it (parts.c). */
static int locate(struct wb_sorted_pieces *source, const struct wb_sorted_chunk *chunk,
                  const struct wb_sorted_item *item, size_t *row_out)
{
    uint32_t number = item->entry.place.segment;

    WB_CHECK(number > 0);
    *row_out = find_row(chunk->rows, number);
    if (*row_out == SIZE_MAX || !wb_catalog_range_has(&chunk->rows->items[*row_out].range, item->id)) {
        number = wb_parts_find(&source->parts, number, item->id);
        *row_out = number ? find_row(chunk->rows, number) : SIZE_MAX;
    }
    if (*row_out == SIZE_MAX)
        return wb_catalog_corrupt(chunk->txn->catalog, WB_CATALOG_SEGMENTS, "a segment without a row");
    return 0;
}

/* ---- dividing the work --------------------------------------------------------------------------------------- */

static bool is_known(const struct wb_sorted_pieces *source, uint32_t segment)
{
    for (size_t i = 0; i < source->wide.count; i++)
        if (source->wide.items[i] == segment)
            return true;
    return false;
}

/*
 * Finds the segments that have many more pages than are wanted: those of wider ranges. The first time, such a segment
 * is read as a whole, so that a disk need not seek; then it is in the page cache, and single pages are read from it.
 */
static int mark_sparse(struct wb_sorted_pieces *source, const struct wb_catalog_rows *rows)
{
    struct wb_sorted_place *order = source->order.items;
    size_t count = source->order.count;
    int err = 0;

    for (size_t i = 0, next; i < count && err == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (order[next].row != order[i].row)
                break;
        WB_CHECK(order[i].row < rows->count);
        const struct wb_catalog_segment *row = &rows->items[order[i].row];
        bool wide = next - i < row->live / SPARSE, known = wide && is_known(source, row->number);
        for (size_t k = i; k < next; k++)
            order[k].sparse = known;
        if (wide && !known)
            err = wb_vec_push(&source->wide, row->number);
    }
    return err;
}

/* Finds out where all items are, and puts them into the order of the disk. */
static int order_items(struct wb_sorted_pieces *source, struct wb_sorted_chunk *chunk)
{
    int err = wb_vec_reserve(&source->order, chunk->items.count);

    WB_CHECK(chunk->txn->kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(chunk->items.count > 0);
    if (err == 0)
        err = wb_nodes_refresh(&source->nodes, chunk->txn);
    if (err == 0)
        err = wb_parts_read(chunk->txn, &source->parts);
    for (size_t i = 0; i < chunk->items.count && err == 0; i++) {
        struct wb_sorted_place *place = &source->order.items[i];
        place->item = &chunk->items.items[i];
        place->item->bytes = 0;
        err = locate(source, chunk, place->item, &place->row);
        place->node = err == 0 ? chunk->rows->items[place->row].node : 0;
    }
    source->order.count = err == 0 ? chunk->items.count : 0;
    if (err < 0)
        return err;
    qsort(source->order.items, source->order.count, sizeof *source->order.items, compare_places);
    return mark_sparse(source, chunk->rows);
}

/* How many threads read a chunk: one for each processor, or for each node. */
static size_t count_workers(const struct wb_sorted_pieces *source, const struct wb_sorted_chunk *chunk)
{
    size_t count = wb_limits_processors(), nodes = wb_nodes_count(&source->nodes);
    uint64_t blocks = chunk->bytes / wb_pagefile_sizes.block_bytes;

    WB_CHECK(chunk->items.count > 0);
    count = count > nodes ? count : nodes;
    count = count < blocks ? count : (size_t)blocks; /* for less than a block, a thread is not worth it */
    return !chunk->alone || count == 0 ? 1 : count < WB_SORTED_WORKERS ? count : WB_SORTED_WORKERS;
}

static uint64_t size_of(const struct wb_sorted_chunk *chunk, const struct wb_sorted_place *place)
{
    return chunk->facts ? 1 : 1 + place->item->entry.body_bytes;
}

static bool same_block(const struct wb_sorted_place *a, const struct wb_sorted_place *b)
{
    return a->row == b->row && a->item->entry.place.logical == b->item->entry.place.logical;
}

/* Cuts the order into pieces of the same size that end where blocks end. */
static void cut_pieces(struct wb_sorted_pieces *source, struct wb_sorted_chunk *chunk, size_t workers)
{
    const struct wb_sorted_place *order = source->order.items;
    size_t count = source->order.count, from = 0, share = workers > 1 ? WB_SORTED_SHARE : 1, pieces = share * workers;
    uint64_t all = 0, passed = 0;

    WB_CHECK(workers > 0);
    WB_CHECK(pieces <= WB_SORTED_SHARE * WB_SORTED_WORKERS);
    for (size_t i = 0; i < count; i++)
        all += size_of(chunk, &order[i]);
    for (size_t i = 0; i < pieces; i++) {
        struct wb_sorted_piece *piece = &source->pieces[i];
        size_t to = from;
        while (to < count && (i + 1 == pieces || passed < all / pieces * (i + 1) ||
                              (to > 0 && same_block(&order[to - 1], &order[to]))))
            passed += size_of(chunk, &order[to++]);
        piece->places = order + from;
        piece->count = to - from;
        piece->error.code = 0;
        wb_vec_clear(&piece->found);
        from = to;
    }
    WB_CHECK(from == count);
    source->chunk = chunk;
    source->piece_count = pieces;
    source->worker_count = workers;
    source->share = share;
    source->next_piece = 0;
}

/*
 * Prepares the texts of the workers. Each has room for all records, so that it need not grow bit by bit, whichever
 * worker does most. Room that is not used costs no memory.
 */
static int prepare(struct wb_sorted_pieces *source, struct wb_sorted_chunk *chunk, size_t workers)
{
    uint64_t bytes = chunk->bytes + chunk->bytes / SPARE;
    int err = 0;

    WB_CHECK(workers <= WB_SORTED_WORKERS);
    for (size_t i = 0; i < workers && err == 0; i++) {
        struct wb_buf *text = source->workers[i].text = &chunk->texts[i];
        size_t before = text->cap;
        if (bytes <= 2 * (uint64_t)wb_sorted_log.chunk_bytes) /* one page may have hundreds of megabytes */
            err = wb_buf_reserve(text, (size_t)bytes);
        if (err == 0 && text->cap > before)
            wb_largepage_want(text->ptr, text->cap);
    }
    return err;
}

/* Passes on what was found, in the order of the pieces. */
static int collect(struct wb_sorted_pieces *source, struct wb_sorted_chunk *chunk)
{
    int err = 0;

    for (size_t i = 0; i < source->piece_count && err == 0; i++) {
        const struct wb_sorted_piece *piece = &source->pieces[i];
        for (size_t k = 0; k < piece->found.count && err == 0; k++) {
            wb_error_restore(&piece->found.items[k].error);
            err = wb_sorted_damaged(chunk, piece->found.items[k].segment, piece->found.items[k].at);
        }
        if (err == 0 && piece->error.code < 0)
            err = wb_error_restore(&piece->error);
    }
    return err;
}

static int load_chunk(void *context, struct wb_sorted_chunk *chunk)
{
    struct wb_sorted_pieces *source = context;
    int err = order_items(source, chunk);

    if (err < 0)
        return err;
    size_t workers = count_workers(source, chunk);
    cut_pieces(source, chunk, workers);
    err = prepare(source, chunk, workers);
    if (err == 0 && workers > 1 && !source->pool)
        err = wb_pool_new((unsigned)workers - 1, &source->pool);
    for (size_t i = 1; i < workers && err == 0; i++)
        err = wb_pool_submit(source->pool, wb_sorted_work, &source->workers[i]);
    if (err == 0)
        wb_sorted_work(&source->workers[0]);
    if (source->pool)
        wb_pool_wait(source->pool);
    return err < 0 ? err : collect(source, chunk);
}

const struct wb_sorted_source wb_sorted_log = {
    .chunk_bytes = 64 << 20,
    .open = open_source,
    .close = close_source,
    .edge = find_edge,
    .load = load_chunk,
};
