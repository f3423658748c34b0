/* init_options.h - what is decided when a repository is created (wb_store_create()). */
#ifndef WB_PLACE_INIT_OPTIONS_H
#define WB_PLACE_INIT_OPTIONS_H

#include "catalog/terms.h"
#include "place/design.h"

/* Nodes to be made: directories of the caller's choice, or, if dirs is NULL, a number of them in the repository. */
struct wb_store_node_list {
    const char *const *dirs;
    size_t count; /* 0: one node */
};

struct wb_store_options {
    struct wb_design design;                /* all zero means the default, Incr[hash,log] */
    struct wb_store_history history;        /* all zero means newest */
    struct wb_store_node_list nodes;        /* in a batch design, the read nodes */
    struct wb_store_node_list update_nodes; /* batch designs only */
    uint32_t first_node;                    /* the number of the first node; 0 means 1 */
};

#endif
