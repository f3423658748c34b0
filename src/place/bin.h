/*
 * bin.h - where a new page goes. Files of pages, and so pages, belong to a *bin*: a node, and a range of page ids. All
 * pages of a file are of one bin.
 *
 * With hash distribution the range is that of the node's cells (share.h); with uniform distribution it is that of all
 * ids, and any node will do. The organisation hashed-log divides bins further, into ranges whose logs have a few
 * megabytes each (hashed_log.h).
 */
#ifndef WB_PLACE_BIN_H
#define WB_PLACE_BIN_H

#include "place/nodes.h"

struct wb_bin {
    uint32_t node;
    struct wb_catalog_range range;
};

enum { WB_BINS_MAX = 64 }; /* into which a file is divided at once */

static inline bool wb_bin_equal(const struct wb_bin *a, const struct wb_bin *b)
{
    return a->node == b->node && wb_catalog_range_equal(&a->range, &b->range);
}

/*
 * The bin for a new page: WB_E_DOWN if the node that takes its id cannot be used, or with uniform distribution, if no
 * node can (wb_nodes_choose()). After an error, a bin whose node is known is set nevertheless.
 */
int wb_bin_of(struct wb_nodes *nodes, struct wb_pageid id, struct wb_bin *bin_out);

/* Whether new pages of this bin still go there: nodes may have been added or removed. */
bool wb_bin_is_current(const struct wb_nodes *nodes, const struct wb_bin *bin);

/* If the node of a bin is leaving, or gone, puts another one in its place. Returns 1 if it did. */
int wb_bin_renew(struct wb_nodes *nodes, struct wb_pageid id, struct wb_bin *bin_inout);

/*
 * Something could not be written to a bin: with uniform distribution, finds another one, and avoids this node for a
 * while. Otherwise, or if there is no other, returns the error err, whose message then names the node.
 */
int wb_bin_instead(struct wb_nodes *nodes, struct wb_pageid id, int err, struct wb_bin *bin_inout);

#endif
