/*
 * scan_check.c - whether a scan would come to a node that is down. A server that sends pages asks this
 * before the first byte, because afterwards nothing but a cut can say that something is missing.
 */
#include "base/check.h"
#include "store/scan/disk_scan.h"
#include "store/scan/sorted_scan.h"

/* The nodes that are down. */
struct nodes_down WB_VEC_OF(uint32_t);

static int find_down(struct wb_repo *repo, struct nodes_down *down)
{
    struct wb_node *ignored;
    int err = wb_pagefile_renew_nodes(&repo->files);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    for (size_t i = 0; i < repo->nodes.items.count && err == 0; i++) {
        uint32_t number = repo->nodes.items.items[i].row.number;
        err = wb_nodes_find(&repo->nodes, number, &ignored);
        if (err == WB_E_DOWN)
            err = wb_vec_push(down, number);
    }
    return err;
}

/* Segments are read in the order of their numbers, whatever is visible in them. */
static int look_at_segments(const struct wb_disk_scan *scan, const struct nodes_down *down, uint32_t *node_out)
{
    struct wb_overview overview;
    int err = wb_pagefile_overview(&scan->repo->files, &overview);

    WB_CHECK(*node_out == 0);
    for (size_t i = 0; i < overview.rows.count && err == 0 && !scan->gone_phase; i++) {
        const struct wb_catalog_segment *row = &overview.rows.items[i];
        uint32_t origin = wb_catalog_segment_origin(row);
        if (row->live == 0 || origin < scan->told.segment || (scan->until.segment && origin > scan->until.segment))
            continue;
        for (size_t k = 0; k < down->count && *node_out == 0; k++)
            if (down->items[k] == row->node)
                *node_out = row->node;
    }
    wb_catalog_rows_release(&overview.rows);
    return err;
}

int wb_disk_scan_check(struct wb_store *store, const struct wb_store_scan_options *options)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_store_scan *scan = NULL;
    struct nodes_down down = {0};
    struct wb_node *ignored;
    uint32_t node = 0;
    int err = find_down(repo, &down);

    WB_CHECK(options->without_count == 0);
    if (err == 0 && down.count)
        err = wb_disk_scan_open(store, options, &scan);
    if (err == 0 && scan)
        err = wb_sorted_scan_is(scan) ? wb_sorted_scan_needs(scan, down.items, down.count, &node)
                                      : look_at_segments((const struct wb_disk_scan *)scan, &down, &node);
    wb_store_scan_close(scan);
    wb_vec_release(&down);
    return err == 0 && node ? wb_nodes_find(&repo->nodes, node, &ignored) : err; /* it may be back by now */
}
