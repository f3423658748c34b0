/*
 * hashed_log.c - which ranges of page ids have logs of their own (hashed_log.h).
 */
#include "pagefile/hashed_log.h"
#include "base/check.h"

#include <stdlib.h>

enum {
    GROUPS = 2,        /* a group is as large as so many of a log */
    GROUP_PARTS = 256, /* a group is divided into at most so many ranges */
    TAILS_MAX = 512,   /* a writer has about so many segments open at most */
    SPLIT_LEAST = 4,   /* a segment is split if it has this part of the limit: smaller ones are not worth 16 files */
    CHILDREN = 1 << WB_HASHED_LOG_BITS,
    LEVELS_MAX = 64 / WB_HASHED_LOG_BITS,
};

/* ---- ranges ------------------------------------------------------------------------------------------ */

/*
 * By node, prefix and bits. Gaps do not count: while nodes come and go, there can be segments of the same prefix that
 * have more of its ids than the node takes by now.
 */
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
        if (kept && compare_bins(&ranges->items.items[kept - 1].bin, &range->bin) == 0)
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

/* In how many parts a range is divided at some level. */
static uint64_t count_parts(const struct wb_catalog_range *range, unsigned level)
{
    uint32_t step = (uint32_t)WB_HASHED_LOG_BITS, bits = range->bits + step * level;
    struct wb_catalog_range part;
    uint64_t count = 0;

    if (bits > WB_CELL_BITS) /* each level divides each of those before */
        return level == 0 ? 1 : count_parts(range, level - 1) * CHILDREN;
    for (uint64_t i = 0; i < (uint64_t)1 << (bits - range->bits); i++)
        count += wb_catalog_range_part(range, range->prefix | (bits ? i << (64 - bits) : 0), bits, &part);
    return count;
}

/* In how many ranges the ids are at some level, those of all nodes together. */
static uint64_t count_ranges(const struct wb_pagefile *files, unsigned level)
{
    static const struct wb_catalog_range all = {.bits = 0};
    uint64_t count = 0;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    for (size_t i = 0; i < files->nodes->items.count; i++)
        count += count_parts(&files->nodes->items.items[i].range, level);
    return count ? count : count_parts(&all, level);
}

/* How far a group is divided, so that each range gets enough for a block, and not too many segments are open. */
static unsigned choose_levels(const struct wb_pagefile *files, uint64_t group_bytes)
{
    uint64_t group = GROUPS * wb_pagefile_sizes.group_bytes;
    unsigned levels = 0;

    WB_CHECK(group > 0);
    for (; levels < LEVELS_MAX; levels++) {
        uint64_t parts = count_ranges(files, levels + 1);
        if (group_bytes < group / GROUP_PARTS * parts || files->writer->tails.count + parts > TAILS_MAX)
            break;
    }
    return levels;
}

int wb_hashed_ranges_read(struct wb_pagefile *files, uint64_t group_bytes, struct wb_hashed_ranges *ranges_out)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_overview o = {0};

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(files->kind->divided);
    *ranges_out = (struct wb_hashed_ranges){.limit = wb_pagefile_sizes.hashed_bytes};
    int err = wb_pagefile_overview(files, &o);
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
    ranges_out->levels = choose_levels(files, group_bytes);
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
    if (low < ranges->items.count && compare_bins(&items[low].bin, bin) == 0) {
        if (items[low].bytes >= ranges->limit)
            return true;
        low++;
    }
    /* Behind the range itself come those that are inside it. */
    return low < ranges->items.count && items[low].bin.node == bin->node &&
           items[low].bin.range.prefix <= (bin->range.prefix | ~wb_catalog_range_mask(&bin->range));
}

void wb_hashed_ranges_narrow(const struct wb_hashed_ranges *ranges, struct wb_pageid id, struct wb_bin *bin_inout)
{
    WB_CHECK(wb_catalog_range_has(&bin_inout->range, id));
    for (unsigned level = 0; level < ranges->levels && wb_hashed_ranges_divided(ranges, bin_inout); level++) {
        struct wb_catalog_range range = bin_inout->range;
        (void)wb_catalog_range_part(&range, id.hi, range.bits + WB_HASHED_LOG_BITS, &bin_inout->range);
    }
    WB_CHECK(wb_catalog_range_has(&bin_inout->range, id));
}

/* ---- splitting --------------------------------------------------------------------------------------------- */

static bool is_worth_it(const struct wb_hashed_ranges *ranges, const struct wb_catalog_segment *row)
{
    struct wb_bin bin = {row->node, row->range};

    WB_CHECK(row->number > 0);
    return row->live > 0 && row->bytes >= ranges->limit / SPLIT_LEAST && wb_hashed_ranges_divided(ranges, &bin);
}

/* The ranges into which a segment is split, without those that the node does not take. */
static size_t list_bins(const struct wb_catalog_segment *row, struct wb_bin bins[CHILDREN])
{
    uint32_t bits = row->range.bits + WB_HASHED_LOG_BITS;
    size_t count = 0;

    WB_CHECK(bits <= 64);
    for (uint64_t i = 0; i < CHILDREN; i++) {
        bins[count] = (struct wb_bin){.node = row->node};
        count += wb_catalog_range_part(&row->range, row->range.prefix | i << (64 - bits), bits, &bins[count].range);
    }
    return count;
}

int wb_hashed_splits(const struct wb_catalog_rows *rows, wb_pagefile_each_split each, void *context)
{
    struct wb_hashed_ranges ranges = {.limit = wb_pagefile_sizes.hashed_bytes};
    int err = add_rows(rows, &ranges);

    merge_ranges(&ranges);
    for (size_t i = 0; i < rows->count && err == 0; i++) {
        struct wb_bin bins[CHILDREN];
        if (is_worth_it(&ranges, &rows->items[i]))
            err = each(context, &rows->items[i], bins, list_bins(&rows->items[i], bins));
    }
    wb_hashed_ranges_release(&ranges);
    return err;
}
