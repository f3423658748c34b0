/*
 * store_nodes.h - the part of the door (store.h) that concerns nodes. They are added and removed by move.h.
 *
 * A *node* is a directory that holds pages, typically a disk of its own. In a batch design, update nodes take what is
 * put, and readers see the read nodes only; wb_move_transfer() brings the pages from one to the other.
 */
#ifndef WB_STORE_STORE_NODES_H
#define WB_STORE_STORE_NODES_H

#include "place/design.h"

struct wb_store;

/* ---- nodes ----------------------------------------------------------------------------------------------- */

enum wb_store_node_role { WB_STORE_NODE_BOTH, WB_STORE_NODE_UPDATE, WB_STORE_NODE_READ };
enum wb_store_node_state {
    WB_STORE_NODE_IDLE,
    WB_STORE_NODE_STREAMING, /* a scan of some process is reading from it */
    WB_STORE_NODE_STORING,   /* a writer of some process has pages for it that are not committed */
    WB_STORE_NODE_DOWN,      /* it cannot be used: see why */
};

/* A row of the paper's table of nodes (section 3). */
struct wb_store_node {
    uint32_t number;
    const char *dir; /* as it was given; relative to the repository if it is inside */
    enum wb_store_node_role role;
    enum wb_organisation_kind organisation;
    enum wb_store_node_state state;
    const char *why;                 /* of a node that is down, otherwise empty */
    uint64_t capacity, used, free;   /* bytes; used: by this repository. 0 if it is down */
    double fragmentation;            /* the part of `used` that compaction would free */
    uint64_t pages;                  /* latest versions that are on it; known even if it is down */
    uint64_t gets, puts, streams;    /* requests under way, of all processes */
    bool arriving, leaving;          /* it is being added, or removed, or that was interrupted */
};

/* "both", "update", "read"; "idle", "streaming", "storing", "down". */
const char *wb_store_node_role_word(enum wb_store_node_role role);
const char *wb_store_node_state_word(enum wb_store_node_state state);

/* Calls each() for all nodes in the order of their numbers. each() must not call the store. */
int wb_store_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                       void *context);

#endif
