/*
 * hashed_log.c - which ranges of page ids have logs of their own (hashed_log.h).
 */
#include "pagefile/hashed_log.h"
#include "base/check.h"
#include "move/split.h"

#include <stdlib.h>

enum {
    GROUPS = 2,        /* a group is as large as so many of a log */
    GROUP_PARTS = 256, /* a group is divided into at most so many ranges */
    TAILS_MAX = 512,   /* a writer has about so many segments open at most */
    SPLIT_LEAST = 4,   /* a segment is split if it has this part of the limit: smaller ones are not worth 16 files */
    CHILDREN = 1 << WB_HASHED_LOG_BITS,
    NODES_SEGMENT_BYTES = 16 << 20,
};

bool wb_hashed_log_is(const struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    return repo->superblock.design.read.organisation == WB_ORGANISATION_HASHED_LOG;
}

/*
 * With several nodes, segments of the log organisation are small, so that those that follow each other are on different
 * nodes, and a scan can read from all of them (scan_ahead.h).
 */
uint64_t wb_segment_limit(const struct wb_repo *repo)
{
    uint64_t limit = wb_pagefile_sizes.segment_bytes;

    if (wb_hashed_log_is(repo))
        return wb_pagefile_sizes.hashed_bytes;
    return repo->nodes.items.count > 1 && limit > NODES_SEGMENT_BYTES ? NODES_SEGMENT_BYTES : limit;
}

size_t wb_group_limit(const struct wb_repo_writer *writer, const struct wb_repo *repo)
{
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    if (wb_hashed_log_is(repo)) /* its pages are divided by their ids, whichever site they are of */
        return GROUPS * wb_pagefile_sizes.group_bytes;
    return writer->group_mixed ? wb_pagefile_sizes.group_bytes : wb_pagefile_sizes.group_bytes / 4;
}

/* ---- ranges ------------------------------------------------------------------------------------------ */

static int compare_bins(const struct wb_bin *x, const struct wb_bin *y)
{
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->range.prefix != y->range.prefix)
        return x->range.prefix < y->range.prefix ? -1 : 1;
    return (x->range.bits > y->range.bits) - (x->range.bits < y->range.bits);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct wb_hashed_range *x = a, *y = b;

    return compare_bins(&x->bin, &y->bin);
}

/* Adds up what belongs to the same range. */
static void merge_ranges(struct wb_hashed_ranges *ranges)
{
    size_t kept = 0;

    if (ranges->items.count)
        qsort(ranges->items.items, ranges->items.count, sizeof *ranges->items.items, compare_ranges);
    for (size_t i = 0; i < ranges->items.count; i++) {
        struct wb_hashed_range *range = &ranges->items.items[i];
        WB_CHECK(wb_catalog_range_is_valid(&range->bin.range));
        if (kept && wb_bin_equal(&ranges->items.items[kept - 1].bin, &range->bin))
            ranges->items.items[kept - 1].bytes += range->bytes;
        else
            ranges->items.items[kept++] = *range;
    }
    ranges->items.count = kept;
}

static int add_rows(const struct wb_catalog_rows *rows, struct wb_hashed_ranges *ranges)
{
    int err = wb_vec_reserve(&ranges->items, ranges->items.count + rows->count);

    for (size_t i = 0; i < rows->count && err == 0; i++)
        ranges->items.items[ranges->items.count++] =
            (struct wb_hashed_range){.bin = {rows->items[i].node, rows->items[i].range}, .bytes = rows->items[i].bytes};
    WB_CHECK(ranges->items.count <= ranges->items.cap);
    return err;
}

/* In how many ranges the ids are before the organisation divides them: each node has at least one. */
static uint64_t count_node_ranges(const struct wb_repo *repo)
{
    uint64_t count = 0;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    for (size_t i = 0; i < repo->nodes.items.count; i++) {
        const struct wb_catalog_node *row = &repo->nodes.items.items[i].row;
        count += repo->nodes.distribution == WB_DISTRIBUTION_HASH ? row->range_count : 1;
    }
    return count ? count : 1;
}

/* How far a group is divided, so that each range gets enough for a block, and not too many segments are open. */
static unsigned choose_levels(const struct wb_repo *repo, uint64_t group_bytes)
{
    uint64_t parts = count_node_ranges(repo), group = GROUPS * wb_pagefile_sizes.group_bytes;
    unsigned levels = 0;

    WB_CHECK(parts > 0);
    WB_CHECK(group > 0);
    for (; levels < 64 / WB_HASHED_LOG_BITS; levels++) {
        parts *= CHILDREN;
        if (group_bytes < group / GROUP_PARTS * parts || repo->writer->tails.count + parts > TAILS_MAX)
            break;
    }
    return levels;
}

int wb_hashed_ranges_read(struct wb_repo *repo, uint64_t group_bytes, struct wb_hashed_ranges *ranges_out)
{
    struct wb_repo_writer *writer = repo->writer;
    struct wb_repo_overview o = {0};

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(wb_hashed_log_is(repo));
    *ranges_out = (struct wb_hashed_ranges){.limit = wb_pagefile_sizes.hashed_bytes};
    int err = wb_repo_overview(repo, &o);
    if (err == 0)
        err = add_rows(&o.rows, ranges_out);
    for (size_t i = 0; i < writer->tails.count && err == 0; i++) {
        const struct wb_tail *tail = &writer->tails.items[i];
        WB_CHECK(tail->bytes >= tail->bytes_committed);
        err = wb_vec_push(&ranges_out->items, (struct wb_hashed_range){tail->bin, tail->bytes - tail->bytes_committed});
    }
    wb_catalog_rows_release(&o.rows);
    if (err < 0) {
        wb_hashed_ranges_release(ranges_out);
        return err;
    }
    merge_ranges(ranges_out);
    ranges_out->levels = choose_levels(repo, group_bytes);
    return 0;
}

void wb_hashed_ranges_release(struct wb_hashed_ranges *ranges)
{
    wb_vec_release(&ranges->items);
}

bool wb_hashed_ranges_divided(const struct wb_hashed_ranges *ranges, const struct wb_bin *bin)
{
    const struct wb_hashed_range *items = ranges->items.items;
    size_t low = 0, high = ranges->items.count;

    WB_CHECK(wb_catalog_range_is_valid(&bin->range));
    if (bin->range.bits > 64 - WB_HASHED_LOG_BITS)
        return false;
    while (low < high) { /* the first one that is not before the bin */
        size_t middle = (low + high) / 2;
        if (compare_bins(&items[middle].bin, bin) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < ranges->items.count && wb_bin_equal(&items[low].bin, bin)) {
        if (items[low].bytes >= ranges->limit)
            return true;
        low++;
    }
    /* Behind the range itself come those that are inside it. */
    return low < ranges->items.count && items[low].bin.node == bin->node &&
           items[low].bin.range.prefix <= (bin->range.prefix | ~wb_catalog_range_mask(&bin->range));
}

/* The part of the range that has the id, or part number `index`. */
static struct wb_catalog_range part_of(const struct wb_catalog_range *range, uint64_t hi)
{
    struct wb_catalog_range part = {.bits = range->bits + WB_HASHED_LOG_BITS};

    WB_CHECK(part.bits <= 64);
    part.prefix = hi & wb_catalog_range_mask(&part);
    WB_CHECK(wb_catalog_range_is_valid(&part));
    return part;
}

void wb_hashed_ranges_narrow(const struct wb_hashed_ranges *ranges, struct wb_pageid id, struct wb_bin *bin_inout)
{
    WB_CHECK(wb_catalog_range_has(&bin_inout->range, id));
    for (unsigned level = 0; level < ranges->levels && wb_hashed_ranges_divided(ranges, bin_inout); level++)
        bin_inout->range = part_of(&bin_inout->range, id.hi);
    WB_CHECK(wb_catalog_range_has(&bin_inout->range, id));
}

/* ---- splitting --------------------------------------------------------------------------------------------- */

static bool is_worth_it(const struct wb_hashed_ranges *ranges, const struct wb_catalog_segment *row)
{
    struct wb_bin bin = {row->node, row->range};

    WB_CHECK(row->number > 0);
    return row->live > 0 && row->bytes >= ranges->limit / SPLIT_LEAST && wb_hashed_ranges_divided(ranges, &bin);
}

static int split_segment(struct wb_repo *repo, const struct wb_catalog_segment *row)
{
    struct wb_split_child children[CHILDREN];
    unsigned shift = 64 - row->range.bits - WB_HASHED_LOG_BITS;

    WB_CHECK(row->range.bits <= 64 - WB_HASHED_LOG_BITS);
    for (uint64_t i = 0; i < CHILDREN; i++)
        children[i] =
            (struct wb_split_child){.range = part_of(&row->range, row->range.prefix | i << shift), .node = row->node};
    return wb_split(repo, row->number, children, CHILDREN);
}

int wb_hashed_log_split(struct wb_repo *repo, bool (*stop)(void *context),
                        void (*damaged)(void *context, const struct wb_catalog_segment *row), void *context,
                        struct wb_store_compact_counts *counts_inout)
{
    struct wb_hashed_ranges ranges = {.limit = wb_pagefile_sizes.hashed_bytes};
    struct wb_repo_overview o = {0};
    int err = wb_repo_overview(repo, &o);

    WB_CHECK(wb_hashed_log_is(repo));
    WB_CHECK(repo->writer->tails.count == 0);
    if (err == 0)
        err = add_rows(&o.rows, &ranges);
    merge_ranges(&ranges);
    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &o.rows.items[i];
        if (!is_worth_it(&ranges, row))
            continue;
        err = stop(context) ? wb_fail(WB_E_STOPPED, "stopped") : split_segment(repo, row);
        if (err == 0) {
            counts_inout->files++;
            counts_inout->pages += row->live;
        }
        if (err == WB_E_CORRUPT)
            damaged(context, row);
        if (err == WB_E_BUSY || err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_DOWN)
            err = 0; /* it stays as it is */
    }
    wb_catalog_rows_release(&o.rows);
    wb_hashed_ranges_release(&ranges);
    return err;
}
