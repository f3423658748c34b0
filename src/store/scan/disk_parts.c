/*
 * disk_parts.c - the files from which a scan reads. Segments are passed in the order of the numbers that their
 * places have. Usually such a number is that of one file. If the segment was split (docs/design/0040-splits.md), all
 * its parts are open at the same time, and their blocks are merged by name:
 *
 *   part 1    block 64    .           block 9000            in this order:  64 of part 1
 *   part 2    .           block 4000  block 9000                            4000 of part 2
 *                                                                           9000 of both, merged by slot
 *
 * So the pages come in the order of their places, as if there had been no split, and a scan that began
 * before it can go on after it.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/scan/disk_scan.h"

#include <stdlib.h>

/* ---- parts ---------------------------------------------------------------------------------------------- */

int wb_disk_scan_add_part(struct wb_disk_scan *scan)
{
    struct wb_disk_scan_part *part = wb_alloc_zero(1, sizeof *part);
    int err = part ? wb_block_reader_new(&part->zstd) : WB_E_NOMEM;

    WB_CHECK(scan->open <= scan->parts.count);
    if (err == 0)
        err = wb_block_reader_new(&part->zstd_old);
    if (err == 0)
        err = wb_vec_push(&scan->parts, part);
    if (err < 0 && part) {
        wb_block_reader_free(part->zstd);
        wb_block_reader_free(part->zstd_old);
        wb_free(part);
        return err;
    }
    if (err == 0)
        part->segment = WB_SEGMENT_INIT;
    return err;
}

static void close_part(struct wb_disk_scan_part *part)
{
    WB_CHECK(part->walking || !part->block);
    if (part->walking)
        wb_segment_walk_release(&part->walk);
    part->walking = part->done = part->plain = false;
    part->block = NULL;
    if (part->ahead)
        wb_scan_ahead_give_back(part->ahead);
    part->ahead = NULL;
    wb_segment_close(&part->segment);
}

void wb_disk_scan_leave(struct wb_disk_scan *scan)
{
    WB_CHECK(scan->open <= scan->parts.count);
    WB_CHECK(scan->here <= scan->open);
    for (size_t i = 0; i < scan->open; i++)
        close_part(scan->parts.items[i]);
    scan->open = scan->here = 0;
    scan->at = NULL;
    wb_busy_end(&scan->repo->busy, &scan->busy);
}

/* Tells writers, who avoid nodes that are busy, which ones the open parts are on. */
static void mark_nodes(struct wb_disk_scan *scan)
{
    uint32_t first = UINT32_MAX, last = 0;

    WB_CHECK(scan->open > 0);
    for (size_t i = 0; i < scan->open; i++) {
        uint32_t node = scan->parts.items[i]->row.node;
        first = node < first ? node : first;
        last = node > last ? node : last;
    }
    scan->busy = wb_busy_begin(&scan->repo->busy, WB_BUSY_STREAM, first, last);
}

void wb_disk_scan_parts_release(struct wb_disk_scan *scan)
{
    wb_disk_scan_leave(scan);
    for (size_t i = 0; i < scan->parts.count; i++) {
        struct wb_disk_scan_part *part = scan->parts.items[i];
        WB_CHECK(!part->walking);
        wb_block_reader_free(part->zstd);
        wb_block_reader_free(part->zstd_old);
        wb_vec_release(&part->known);
        wb_free(part);
    }
    wb_vec_release(&scan->parts);
    wb_scan_ahead_free(scan->ahead);
    scan->ahead = NULL;
}

/* Moves the walk to the first block that is not before `logical`. */
static void seek(struct wb_disk_scan_part *part, uint64_t logical)
{
    WB_CHECK(part->walk.next <= part->walk.end);
    WB_CHECK(part->walking);
    part->walk.next = wb_segment_seek(&part->segment, logical, part->walk.end);
}

int wb_disk_scan_open_file(struct wb_disk_scan *scan, const struct wb_catalog_segment *row,
                           struct wb_segment *segment_out)
{
    struct wb_node *node;
    int err = wb_nodes_refresh(&scan->nodes, &scan->txn);

    WB_CHECK(row->number > 0);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    if (err == 0)
        err = wb_nodes_find(&scan->nodes, row->node, &node);
    return err < 0 ? err : wb_segment_open(node, scan->repo->superblock.id, row, false, segment_out);
}

/* Opens one more part of the current segment, at the place where the scan is. */
static int open_part(struct wb_disk_scan *scan, const struct wb_catalog_segment *row)
{
    int err = scan->open < scan->parts.count ? 0 : wb_disk_scan_add_part(scan);

    WB_CHECK(row->number > 0);
    WB_CHECK(wb_catalog_segment_origin(row) == scan->origin);
    if (err < 0)
        return err;
    struct wb_disk_scan_part *part = scan->parts.items[scan->open];
    part->row = *row;
    if (!scan->ahead || !wb_scan_ahead_take(scan->ahead, row, &part->segment, &part->ahead))
        err = wb_disk_scan_open_file(scan, row, &part->segment);
    if (err < 0)
        return err;
    scan->open++;
    wb_segment_walk_init(&part->walk, &part->segment, wb_segment_blocks_end(row));
    part->walk.ahead = part->ahead;
    part->walking = true;
    if (scan->told.segment == scan->origin)
        seek(part, scan->told.logical);
    return 0;
}

/* ---- from segment to segment ----------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const struct wb_catalog_segment *x = a, *y = b;
    uint32_t of_x = wb_catalog_segment_origin(x), of_y = wb_catalog_segment_origin(y);

    if (of_x != of_y)
        return of_x < of_y ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void wb_disk_scan_sort(struct wb_catalog_rows *rows)
{
    bool split = false;

    WB_CHECK(rows->count <= rows->cap);
    for (size_t i = 0; i < rows->count && !split; i++)
        split = rows->items[i].origin != 0;
    if (split) /* otherwise they are in order */
        qsort(rows->items, rows->count, sizeof *rows->items, compare_rows);
}

/* The first row that is behind `origin`. */
static size_t first_behind(const struct wb_disk_scan *scan, uint32_t origin)
{
    size_t low = 0, high = scan->rows.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (wb_catalog_segment_origin(&scan->rows.items[middle]) <= origin)
            low = middle + 1;
        else
            high = middle;
    }
    WB_CHECK(low <= scan->rows.count);
    return low;
}

static struct wb_disk_scan_part *part_of(const struct wb_disk_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    for (size_t i = 0; i < scan->open; i++)
        if (scan->parts.items[i]->row.number == row->number)
            return scan->parts.items[i];
    return NULL;
}

/* Whether the scan reads the segment: there is something in it, and its node is not left out. */
static bool is_open_for(const struct wb_disk_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->node > 0);
    for (size_t i = 0; i < scan->without_count; i++)
        if (scan->without[i] == row->node)
            return false;
    return row->live > 0;
}

/* Whether the open files are those that the newest state of the catalog has. */
static bool is_current(struct wb_disk_scan *scan)
{
    size_t found = 0;

    WB_CHECK(scan->open > 0);
    WB_CHECK(scan->origin > 0);
    for (size_t i = first_behind(scan, scan->origin - 1); i < scan->rows.count; i++) {
        const struct wb_catalog_segment *row = &scan->rows.items[i];
        if (wb_catalog_segment_origin(row) != scan->origin)
            break;
        struct wb_disk_scan_part *part = part_of(scan, row);
        if (part ? part->segment.revision != row->revision : is_open_for(scan, row))
            return false;
        if (!part)
            continue;
        part->walk.end = wb_segment_blocks_end(row);
        part->row = *row;
        found++;
    }
    return found == scan->open;
}

/* Opens all parts of the segment whose first row is `first`. Returns whether there is anything in it. */
static int open_parts(struct wb_disk_scan *scan, size_t first)
{
    int err = 0;

    WB_CHECK(scan->open == 0);
    WB_CHECK(first < scan->rows.count);
    scan->origin = wb_catalog_segment_origin(&scan->rows.items[first]);
    for (size_t i = first; i < scan->rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &scan->rows.items[i];
        if (wb_catalog_segment_origin(row) != scan->origin)
            break;
        if (is_open_for(scan, row))
            err = open_part(scan, row);
    }
    if (err < 0)
        wb_disk_scan_leave(scan);
    else if (scan->open)
        mark_nodes(scan);
    return err < 0 ? err : scan->open > 0;
}

/* With several nodes, reads what comes next from all of them at the same time. */
static void look_ahead(struct wb_disk_scan *scan, size_t first)
{
    size_t end = scan->until.segment ? first_behind(scan, scan->until.segment) : scan->rows.count;

    WB_CHECK(first < scan->rows.count);
    WB_CHECK(scan->open == 0);
    if (wb_nodes_refresh(&scan->nodes, &scan->txn) < 0 || wb_nodes_count(&scan->nodes) < 2)
        return; /* an error is found again when the segment is opened */
    if (!scan->ahead && wb_scan_ahead_new(scan->shares, &scan->ahead) < 0)
        return;
    uint32_t origin = wb_catalog_segment_origin(&scan->rows.items[first]);
    if (scan->told.segment == origin) /* the walk begins in the middle of it */
        first = first_behind(scan, origin);
    if (first < end)
        wb_scan_ahead_plan(scan->ahead, &scan->nodes, scan->repo->superblock.id, &scan->rows.items[first], end - first);
}

int wb_disk_scan_choose(struct wb_disk_scan *scan)
{
    uint32_t passed = scan->origin ? scan->origin : scan->told.segment ? scan->told.segment - 1 : 0;

    WB_CHECK(!scan->gone_phase);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    if (scan->open && !scan->segment_done) {
        if (is_current(scan))
            return 1;
        passed = scan->origin - 1; /* it was compacted, split or moved in the meantime: the same once more */
    }
    wb_disk_scan_leave(scan);
    scan->segment_done = false;
    for (size_t i = first_behind(scan, passed); i < scan->rows.count; i = first_behind(scan, scan->origin)) {
        look_ahead(scan, i);
        int err = open_parts(scan, i);
        if (err < 0)
            scan->failed = scan->origin--; /* the next call tries it again, unless it is passed over */
        if (err != 0)
            return err;
    }
    return 0;
}

/* ---- from block to block ------------------------------------------------------------------------------------ */

bool wb_disk_scan_wants(const struct wb_disk_scan *scan, const struct wb_block_head *head)
{
    char name[12];

    WB_CHECK(scan->shares == 0 || scan->share >= 1);
    WB_CHECK(scan->origin > 0);
    WB_CHECK(head->count > 0);
    if (scan->site && head->site && head->site != scan->site_hash)
        return false;
    if (scan->shares <= 1)
        return true;
    wb_put32(name, scan->origin);
    wb_put64(name + 4, head->logical);
    return wb_hash64(name, sizeof name) % scan->shares == scan->share - 1;
}

/* Finds the next block of a part that is wanted, unless it has one. */
static int advance(struct wb_disk_scan *scan, struct wb_disk_scan_part *part)
{
    uint64_t at;

    WB_CHECK(part->walking);
    while (!part->block && !part->done) {
        int err = wb_segment_walk_next(&part->walk, &part->head, &part->block, &at);
        if (err < 0)
            return err;
        part->done = err == 0;
        if (err > 0 && (!wb_disk_scan_wants(scan, &part->head) ||
                        (scan->told.segment == scan->origin && part->head.logical < scan->told.logical)))
            part->block = NULL;
    }
    return 0;
}

int wb_disk_scan_merge(struct wb_disk_scan *scan)
{
    WB_CHECK(scan->open > 0);
    WB_CHECK(scan->here <= scan->open);
    for (size_t i = 0; i < scan->here; i++)
        scan->parts.items[i]->block = NULL;
    scan->here = 0;
    scan->logical = UINT64_MAX;
    for (size_t i = 0; i < scan->open; i++) {
        struct wb_disk_scan_part *part = scan->parts.items[i];
        int err = advance(scan, part);
        if (err < 0)
            return err;
        if (part->block && part->head.logical < scan->logical)
            scan->logical = part->head.logical;
    }
    for (size_t i = 0; i < scan->open; i++) {
        struct wb_disk_scan_part *part = scan->parts.items[i];
        if (!part->block || part->head.logical != scan->logical)
            continue;
        scan->parts.items[i] = scan->parts.items[scan->here];
        scan->parts.items[scan->here++] = part;
    }
    return scan->here > 0;
}

static int compare_slots(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

int wb_disk_scan_order(struct wb_disk_scan *scan)
{
    int err = 0;

    WB_CHECK(scan->here > 0);
    scan->index = scan->count = 0;
    scan->at = scan->parts.items[0];
    wb_vec_clear(&scan->order);
    for (size_t p = 0; p < scan->here; p++)
        scan->count += scan->parts.items[p]->head.count;
    if (scan->here == 1 && scan->at->walk.index.sorted)
        return 0;
    err = wb_vec_reserve(&scan->order, scan->count);
    for (size_t p = 0; p < scan->here && err == 0; p++) {
        const struct wb_block_index *index = &scan->parts.items[p]->walk.index;
        WB_CHECK(index->entries.count <= WB_BLOCK_PAGES_MAX);
        for (size_t i = 0; i < index->entries.count; i++)
            scan->order.items[scan->order.count++] = (uint64_t)index->entries.items[i].slot << 48 | p << 16 | i;
    }
    if (err == 0)
        qsort(scan->order.items, scan->order.count, sizeof *scan->order.items, compare_slots);
    return err;
}
