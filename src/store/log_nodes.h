/*
 * log_nodes.h - which node holds what, for the files of the log.
 *
 * The nodes are rows of the catalog. Segments, and so pages, belong to a *bin*: a node, and a range of page ids. All
 * pages of a segment are of one bin. With hash distribution a node takes the ids in its ranges; with uniform
 * distribution any node takes any id, and the range of its bins is that of all ids. The organisation hashed-log
 * divides bins further, into ranges whose logs have a few megabytes each.
 */
#ifndef WB_STORE_LOG_NODES_H
#define WB_STORE_LOG_NODES_H

#include "store/catalog.h"

struct wb_log;

struct wb_log_bin {
    uint32_t node;
    struct wb_catalog_range range;
};

static inline bool wb_log_bin_equal(const struct wb_log_bin *a, const struct wb_log_bin *b)
{
    return a->node == b->node && a->range.prefix == b->range.prefix && a->range.bits == b->range.bits;
}

/* The directory of a node, for reading. WB_E_DOWN: the message names the node and says what is wrong with it. */
int wb_log_node_dir(struct wb_log *log, uint32_t node, const char **dir_out);

/*
 * The bin for a new page. With hash distribution it follows from the id; WB_E_DOWN if that node cannot be used. With
 * uniform distribution, nodes that are down, full, read-only, leaving or busy streaming are avoided; WB_E_DOWN if there
 * is no other.
 */
int wb_log_bin_of(struct wb_log *log, struct wb_pageid id, struct wb_log_bin *bin_out);

#endif
