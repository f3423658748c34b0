/*
 * convert_source.c - the state of a repository that is being copied (convert.h). It is held, as by a scan: other
 * processes may write and compact meanwhile, and every file that the state needs stays. Nothing is changed.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/batch/batched.h"
#include "move/convert.h"
#include "pagefile/segment_live.h"

int wb_convert_source_open(const char *dir, struct wb_convert_source *source)
{
    uint64_t epoch;

    *source = (struct wb_convert_source){.dir = dir};
    int err = wb_superblock_read(dir, &source->superblock);
    if (err < 0)
        return err;
    wb_nodes_init(&source->nodes, dir, &source->superblock);
    source->hash = source->superblock.design.read.organisation == WB_ORGANISATION_HASH;
    source->files.nodes = &source->nodes;
    source->files.repository = source->superblock.id;
    err = source->hash ? wb_bucket_reader_init(&source->buckets) : wb_segment_reader_init(&source->reader);
    if (err == 0)
        err = wb_catalog_open(dir, WB_TREE_READ, &source->catalog);
    if (err == 0)
        err = wb_repo_pin_epoch(source->catalog, 0, &epoch);
    if (err == 0)
        err = wb_catalog_txn_read(source->catalog, &source->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&source->txn, &source->summary);
    if (err == 0)
        err = wb_nodes_refresh(&source->nodes, &source->txn);
    WB_CHECK(err < 0 || source->txn.kind == WB_CATALOG_TXN_HELD);
    return err;
}

void wb_convert_source_close(struct wb_convert_source *source)
{
    if (source->txn.catalog)
        wb_catalog_txn_abort(&source->txn);
    wb_catalog_close(source->catalog);
    wb_hash_files_release(&source->files);
    wb_bucket_release(&source->bucket);
    wb_bucket_reader_release(&source->buckets);
    wb_segment_reader_release(&source->reader);
    wb_vec_release(&source->parts);
    if (source->nodes.dir)
        wb_nodes_release(&source->nodes);
    wb_buf_release(&source->record);
}

/* Checks the nodes that have any version. */
static int check_nodes(struct wb_convert_source *source)
{
    struct wb_catalog_rows rows = {0};
    struct wb_node *node;
    int err = wb_catalog_rows_read(&source->txn, &rows);

    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < wb_nodes_count(&source->nodes) && err == 0; i++) {
        uint32_t number = wb_nodes_number(&source->nodes, i);
        bool needed = false;
        for (size_t k = 0; k < rows.count; k++)
            needed = needed || (rows.items[k].node == number && rows.items[k].live);
        err = needed ? wb_nodes_find(&source->nodes, number, &node) : 0;
    }
    wb_catalog_rows_release(&rows);
    return err;
}

int wb_convert_source_check(const char *dir)
{
    struct wb_convert_source source;
    int err = wb_convert_source_open(dir, &source);

    if (err == 0)
        err = check_nodes(&source);
    char *update = err == 0 && source.superblock.design.batch ? wb_path_join(dir, WB_BATCHED_UPDATE_DIR) : NULL;
    bool batch = source.superblock.design.batch;
    wb_convert_source_close(&source);
    if (err < 0 || !batch)
        return err;
    err = update ? wb_convert_source_open(update, &source) : WB_E_NOMEM;
    if (err == 0)
        err = check_nodes(&source);
    if (update)
        wb_convert_source_close(&source);
    wb_free(update);
    return err;
}

/* ---- records of a log --------------------------------------------------------------------------------------- */

/* A segment that is being read. */
struct convert_segment {
    struct wb_convert_source *source;
    struct wb_segment segment;
    struct wb_segment_walk walk;
    struct wb_segment_live live;
    size_t at; /* the number of the next block's first entry in live */
    wb_convert_each each;
    void *context;
};

/* The page at entry i of the block that the walk has found. */
static int read_entry(struct convert_segment *s, size_t i, uint64_t logical)
{
    const struct wb_block_entry *entry = &s->walk.index.entries.items[i];
    struct wb_convert_source *source = s->source;
    struct wb_convert_record record = {
        .id = entry->id,
        .place = {s->segment.origin, entry->slot, logical},
        .record = &source->record,
    };
    int err = wb_block_read_record(source->reader.zstd, i, &source->record);

    WB_CHECK(s->segment.magic == WB_SEGMENT_MAGIC);
    if (err == 0)
        err = wb_repo_page(wb_buf_slice(&source->record), entry->id, NULL, &record.page);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    return s->each(s->context, &record);
}

static int read_block(struct convert_segment *s, const struct wb_block_head *head, const char *block)
{
    int err = 0;

    WB_CHECK(s->at + head->count <= s->live.count);
    wb_block_reader_open_bytes(s->source->reader.zstd, &s->walk.index, block);
    for (size_t i = 0; i < head->count && err == 0; i++)
        if (!s->live.dead[s->at + i])
            err = read_entry(s, i, head->logical);
    s->at += head->count;
    return err;
}

static int read_segment(struct convert_segment *s, const struct wb_catalog_segment *row)
{
    struct wb_block_head head;
    const char *block;
    struct wb_node *node;
    uint64_t at;
    int got = 0, err = wb_nodes_find(&s->source->nodes, row->node, &node);

    if (err == 0)
        err = wb_segment_open(node, s->source->superblock.id, row, false, &s->segment);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    wb_segment_walk_init(&s->walk, &s->segment, wb_segment_blocks_end(row));
    err = wb_segment_live_read(&s->source->txn, &s->segment, row, &s->live);
    s->at = 0;
    while (err == 0 && (got = wb_segment_walk_next(&s->walk, &head, &block, &at)) != 0) {
        if (got < 0 && got != WB_E_CORRUPT)
            err = got;
        else if (got > 0)
            err = read_block(s, &head, block);
    }
    if (err == 0 && s->at != s->live.count)
        err = wb_fail(WB_E_IO, "%s: read twice, with different results", s->segment.file.path);
    wb_segment_live_release(&s->live);
    wb_segment_walk_release(&s->walk);
    wb_segment_close(&s->segment);
    return err;
}

static int read_segments(struct wb_convert_source *source, wb_convert_each each, void *context)
{
    struct convert_segment s = {.source = source, .segment = WB_SEGMENT_INIT, .each = each, .context = context};
    struct wb_catalog_rows rows = {0};
    int err = wb_catalog_rows_read(&source->txn, &rows);

    WB_CHECK(each != NULL);
    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(!source->hash);
    for (size_t i = 0; i < rows.count && err == 0; i++)
        if (rows.items[i].live)
            err = read_segment(&s, &rows.items[i]);
    wb_catalog_rows_release(&rows);
    return err;
}

int wb_convert_records(struct wb_convert_source *source, wb_convert_each each, void *context)
{
    return source->hash ? wb_convert_bucket_records(source, each, context) : read_segments(source, each, context);
}

int wb_convert_record_at(struct wb_convert_source *source, struct wb_pageid id, const struct wb_catalog_place *place,
                         struct wb_buf *record_out)
{
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_catalog_segment row;
    struct wb_node *node;

    if (source->hash)
        return wb_convert_bucket_record_at(source, id, place, record_out);
    int err = wb_parts_row_of(&source->txn, &source->parts, place->segment, id, &row);
    if (err == 0)
        err = wb_nodes_find(&source->nodes, row.node, &node);
    if (err == 0)
        err = wb_segment_open(node, source->superblock.id, &row, false, &segment);
    if (err == 0)
        err = wb_segment_read_record(&segment, &source->reader, place, id, record_out);
    wb_segment_close(&segment);
    return err;
}
