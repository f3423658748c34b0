/*
 * sorted_hash.c - the source of sorted scans that reads buckets (sorted_source.h). Each bucket is read once. All
 * versions that a scan shows are pinned, so they are in their buckets, whatever commits happen in the meantime.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "pagefile/hash_store.h"
#include "pagefile/sorted_source.h"

struct hash_source {
    struct wb_nodes nodes;
    struct wb_hash_files files;
    struct wb_bucket bucket;
    struct wb_bucket_reader reader;
};

static void close_source(void *context)
{
    struct hash_source *source = context;

    wb_hash_files_release(&source->files);
    wb_nodes_release(&source->nodes);
    wb_bucket_release(&source->bucket);
    wb_bucket_reader_release(&source->reader);
    wb_free(source);
}

static int open_source(const struct wb_pagefile *files, void **context_out)
{
    struct hash_source *source = wb_alloc_zero(1, sizeof *source);

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    *context_out = NULL;
    if (!source)
        return WB_E_NOMEM;
    wb_nodes_init(&source->nodes, files->dir, files->superblock);
    source->files.nodes = &source->nodes;
    source->files.repository = files->superblock->id;
    int err = wb_bucket_reader_init(&source->reader);
    if (err < 0) {
        close_source(source);
        return err;
    }
    *context_out = source;
    return 0;
}

/* The nearest place from `hi` on at which a bucket ends. */
static int find_edge(void *context, const struct wb_catalog_rows *rows, uint64_t hi, uint64_t *edge_out)
{
    WB_CHECK(context != NULL);
    *edge_out = UINT64_MAX;
    for (size_t i = 0; i < rows->count; i++) {
        const struct wb_catalog_segment *row = &rows->items[i];
        struct wb_bucket_file shape = {.range = row->range, .count = row->map_count};
        uint64_t end = wb_catalog_range_last(&row->range);
        if (row->range.prefix > hi)
            end = row->range.prefix - 1;
        else if (end >= hi && row->map_count)
            end = wb_bucket_edge(&shape, wb_bucket_of(&shape, (struct wb_pageid){.hi = hi}));
        if (end >= hi && end < *edge_out)
            *edge_out = end;
    }
    return 0;
}

/* Remembers damage, once for each bucket. Other errors are returned. */
static int bucket_error(struct wb_sorted_chunk *chunk, int err, uint32_t file, uint64_t bucket)
{
    WB_CHECK(err < 0);
    return err == WB_E_CORRUPT ? wb_sorted_damaged(chunk, file, bucket + 1) : err;
}

/* Appends the record of an item whose bucket is in memory. */
static int load_item(struct hash_source *source, const struct wb_bucket_file *file, struct wb_sorted_chunk *chunk,
                     struct wb_sorted_item *item)
{
    size_t at;
    int err = 0;

    if (!wb_bucket_find(&source->bucket, item->id, &item->entry.place, &at))
        err = wb_bucket_corrupt(file, source->bucket.number, "a page that the catalog knows is not in it");
    size_t start = chunk->texts[0].len;
    if (err == 0)
        err = wb_bucket_append_record(&source->reader, file, &source->bucket, at, chunk->facts, &chunk->texts[0]);
    if (err < 0)
        return bucket_error(chunk, err, file->number, source->bucket.number);
    item->text = 0;
    item->at = start;
    item->bytes = chunk->texts[0].len - start;
    return 0;
}

/*
 * Loads the items of one file; there may be items of other files between them. If its node is down, the chunk ends
 * before the first of them: *count_inout.
 */
static int load_file(struct hash_source *source, struct wb_sorted_chunk *chunk, const struct wb_catalog_segment *row,
                     size_t *count_inout)
{
    struct wb_bucket_file *file = NULL;
    uint64_t loaded = UINT64_MAX, damaged = UINT64_MAX;
    int err = 0;

    for (size_t i = 0; i < *count_inout && err == 0; i++) {
        struct wb_sorted_item *item = &chunk->items.items[i];
        if (wb_hash_row_of(chunk->rows, item->id, &item->entry.place) != row)
            continue;
        if (!file) {
            err = wb_hash_file(&source->files, row, &file);
            if (err == WB_E_DOWN && i > 0) {
                *count_inout = i;
                return 0;
            }
            if (err < 0)
                return bucket_error(chunk, err, row->number, UINT64_MAX - 1);
        }
        uint64_t number = wb_bucket_of(file, item->id);
        if (number == damaged)
            continue;
        if (number != loaded) {
            wb_bucket_reader_forget(&source->reader);
            err = wb_bucket_read(file, number, &source->bucket);
            loaded = err == 0 ? number : UINT64_MAX;
        }
        if (err < 0) {
            damaged = number;
            err = bucket_error(chunk, err, row->number, number);
        } else {
            err = load_item(source, file, chunk, item);
        }
    }
    return err;
}

static int load_chunk(void *context, struct wb_sorted_chunk *chunk)
{
    struct hash_source *source = context;
    size_t count = chunk->items.count;
    int err = wb_nodes_refresh(&source->nodes, chunk->txn);

    if (err == 0)
        err = wb_hash_files_refresh(&source->files, chunk->txn);
    if (err == 0 && chunk->bytes <= 2 * (uint64_t)wb_sorted_hash.chunk_bytes) /* so that it need not grow bit by bit */
        err = wb_buf_reserve(&chunk->texts[0], (size_t)chunk->bytes);
    WB_CHECK(chunk->items.count > 0);
    for (size_t i = 0; i < chunk->items.count; i++)
        chunk->items.items[i].bytes = 0;
    for (size_t i = 0; i < chunk->rows->count && err == 0; i++)
        err = load_file(source, chunk, &chunk->rows->items[i], &count);
    chunk->items.count = err == 0 ? count : chunk->items.count;
    for (size_t i = 0; i < chunk->items.count && err == 0; i++) {
        const struct wb_sorted_item *item = &chunk->items.items[i];
        if (!wb_hash_row_of(chunk->rows, item->id, &item->entry.place))
            err = wb_catalog_corrupt(chunk->txn->catalog, WB_CATALOG_SEGMENTS, "a page in a file that is not there");
    }
    return err;
}

const struct wb_sorted_source wb_sorted_hash = {
    .chunk_bytes = 16 << 20,
    .open = open_source,
    .close = close_source,
    .edge = find_edge,
    .load = load_chunk,
};
