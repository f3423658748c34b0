/*
 * segment_kind.c - the organisations log and hashed-log: pages are appended to segments in blocks.
 */
#include "base/check.h"
#include "pagefile/append_block.h"
#include "pagefile/hashed_log.h"
#include "pagefile/segment_tail.h"
#include "pagefile/sorted_source.h"

enum {
    GROUPS = 2, /* hashed-log: a group is as large as so many of a log */
    NODES_SEGMENT_BYTES = 16 << 20,
};

/*
 * With several nodes, segments of the log organisation are small, so that those that follow each other are on different
 * nodes, and a scan can read from all of them (scan_ahead.h).
 */
static uint64_t log_limit(const struct wb_pagefile *files)
{
    uint64_t limit = wb_pagefile_sizes.segment_bytes;

    return files->nodes->items.count > 1 && limit > NODES_SEGMENT_BYTES ? NODES_SEGMENT_BYTES : limit;
}

static uint64_t hashed_limit(const struct wb_pagefile *files)
{
    (void)files;
    return wb_pagefile_sizes.hashed_bytes;
}

uint64_t wb_segment_limit(const struct wb_pagefile *files)
{
    WB_CHECK(files->kind->file_limit != NULL);
    return files->kind->file_limit(files);
}

/* With pages of several sites, waiting for a larger group pays, because pages of one site are then stored together. */
static size_t log_group_limit(const struct wb_pagefile *files)
{
    return files->writer->group_mixed ? wb_pagefile_sizes.group_bytes : wb_pagefile_sizes.group_bytes / 4;
}

/* Its pages are divided by their ids, whichever site they are of. */
static size_t hashed_group_limit(const struct wb_pagefile *files)
{
    (void)files;
    return GROUPS * wb_pagefile_sizes.group_bytes;
}

/* A seal that cannot be read says nothing: a damaged segment is reported when somebody reads from it. */
static void sealed_at(struct wb_pagefile *files, const struct wb_catalog_segment *row, uint64_t *commit_out)
{
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_node *node;

    *commit_out = 0;
    if (wb_nodes_find(files->nodes, row->node, &node) == 0 &&
        wb_segment_open(node, files->superblock->id, row, false, &segment) == 0)
        wb_segment_last_seal(&segment, commit_out);
    wb_segment_close(&segment);
}

/* The record of a put whose block was appended. */
static int pending(struct wb_pagefile *files, const struct wb_put *put, struct wb_buf *record_out)
{
    struct wb_pagefile_writer *writer = files->writer;
    size_t i = 0;

    WB_CHECK(put->placed);
    int err = wb_append_runs_end(files);
    while (i < writer->tails.count && writer->tails.items[i].segment.number != put->place.segment)
        i++;
    WB_CHECK(i < writer->tails.count);
    return err < 0 ? err
                   : wb_segment_read_record(&writer->tails.items[i].segment, &files->source, &put->place, put->id,
                                            record_out);
}

static int remove_file(struct wb_node *node, uint32_t number, uint32_t revision)
{
    char name[WB_SEGMENT_NAME_MAX];

    wb_segment_name(number, revision, name);
    return wb_node_remove(node, name);
}

#define SEGMENT_FUNCTIONS                                                                                              \
    .whole_blocks = true, .recover = wb_segment_recover, .sealed_at = sealed_at, .seal = wb_segment_seal_any,          \
    .flush_start = wb_flush_start, .flush_all = wb_flush_all, .flush_drop = wb_flush_drop, .pending = pending,         \
    .read = wb_segment_read_place, .each_record = wb_segment_each_record, .name = wb_segment_name,                     \
    .parse_name = wb_segment_name_parse, .remove = remove_file

const struct wb_pagefile_kind wb_pagefile_log = {
    SEGMENT_FUNCTIONS,
    .file_limit = log_limit,
    .group_limit = log_group_limit,
};

const struct wb_pagefile_kind wb_pagefile_hashed_log = {
    SEGMENT_FUNCTIONS,          .divided = true,          .file_limit = hashed_limit, .group_limit = hashed_group_limit,
    .splits = wb_hashed_splits, .sorted = &wb_sorted_log,
};
