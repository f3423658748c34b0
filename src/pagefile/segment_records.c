/*
 * segment_records.c - the records of all versions of a state, segment by segment (wb_pagefile_kind.each_record).
 */
#include "base/check.h"
#include "pagefile/segment_live.h"
#include "pagefile/segment_tail.h"

/* A segment that is being read. */
struct records_read {
    struct wb_pagefile *files;
    struct wb_segment segment;
    struct wb_segment_live_walk walk;
    struct wb_buf record;
    wb_pagefile_each_record each;
    void *context;
};

/* The page at entry i of the block that the walk has found. */
static int read_entry(struct records_read *r, size_t i)
{
    const struct wb_block_index *index = &r->walk.walk.index;
    const struct wb_block_entry *entry = &index->entries.items[i];
    struct wb_pagefile_record record = {
        .id = entry->id,
        .place = {r->segment.origin, entry->slot, index->head.logical},
        .record = &r->record,
    };
    int err = wb_block_read_record(r->files->source.zstd, i, &r->record);

    if (err == 0)
        err = wb_pagefile_page(wb_buf_slice(&r->record), entry->id, NULL, &record.page);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    return r->each(r->context, &record);
}

static int read_segment(struct records_read *r, const struct wb_catalog_segment *row)
{
    const char *block;
    struct wb_node *node;
    uint64_t at;
    int got = 0, err = wb_nodes_find(r->files->nodes, row->node, &node);

    if (err == 0)
        err = wb_segment_open(node, r->files->superblock->id, row, false, &r->segment);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    err = wb_segment_live_begin(&r->walk, r->files->reader, &r->segment, row);
    while (err == 0 && (got = wb_segment_live_next(&r->walk, &block, &at)) > 0) {
        if (r->walk.damage)
            continue;
        wb_block_reader_open_bytes(r->files->source.zstd, &r->walk.walk.index, block);
        for (size_t i = 0; i < r->walk.walk.index.entries.count && err == 0; i++)
            if (!r->walk.dead[i])
                err = read_entry(r, i);
    }
    wb_segment_live_release(&r->walk);
    wb_segment_close(&r->segment);
    return err < 0 ? err : got;
}

int wb_segment_each_record(struct wb_pagefile *files, wb_pagefile_each_record each, void *context)
{
    struct records_read r = {.files = files, .segment = WB_SEGMENT_INIT, .each = each, .context = context};
    struct wb_catalog_rows rows = {0};
    int err = wb_catalog_rows_read(files->reader, &rows);

    WB_CHECK(files->reader->kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < rows.count && err == 0; i++)
        if (rows.items[i].live)
            err = read_segment(&r, &rows.items[i]);
    wb_catalog_rows_release(&rows);
    wb_buf_release(&r.record);
    return err;
}
