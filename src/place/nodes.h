/*
 * nodes.h - which node holds what, for the files of the log.
 *
 * The nodes are rows of the catalog. Segments, and so pages, belong to a *bin*: a node, and a range of page ids. All
 * pages of a segment are of one bin. With hash distribution a node takes the ids in its ranges; with uniform
 * distribution any node takes any id, and the range of its bins is that of all ids. The organisation hashed-log divides
 * bins further, into ranges whose logs have a few megabytes each.
 *
 * A handle, a scan and a verification have a table of nodes each, because they may run in different threads. A node is
 * looked at whenever one of its files is about to be opened, and found to be down if its directory is not the one that
 * the catalog means (node.h). So a directory that disappears, or in whose place another one appears, is noticed before
 * anything in it is touched, and so is its return. Files that are open stay usable.
 */
#ifndef WB_PLACE_NODES_H
#define WB_PLACE_NODES_H

#include "base/vec.h"
#include "place/design.h"
#include "place/node.h"
#include "catalog/catalog.h"

struct wb_repo;
struct wb_superblock;

struct wb_bin {
    uint32_t node;
    struct wb_catalog_range range;
};

static inline bool wb_bin_equal(const struct wb_bin *a, const struct wb_bin *b)
{
    return a->node == b->node && a->range.prefix == b->range.prefix && a->range.bits == b->range.bits;
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* A node as it was found when it was looked at last. */
struct wb_known_node {
    struct wb_catalog_node row;
    char *dir;                     /* as this process opens it */
    struct wb_node *reach;         /* for requests */
    bool down;
    char why[512];                 /* of a node that is down: the whole message */
    int64_t looked_ns;             /* when the following was found out; 0: not yet */
    bool read_only, full, busy;
    int64_t failed_ns;             /* when something could not be written there; 0: never */
};

/* In a repository of one node in its own directory the table is empty: that node has the number 1 and is never down. */
struct wb_nodes {
    const char *dir;               /* of the repository; borrowed */
    const uint8_t *repository;     /* its id; borrowed */
    struct wb_node *own;           /* for requests to the repository's own directory; opened when it is needed */
    enum wb_distribution distribution;
    uint32_t first, last;          /* the numbers that a node can get */
    uint64_t version;              /* of the rows (wb_catalog_version) */
    WB_VEC(struct wb_known_node) items; /* in the order of their numbers */
    size_t turn;                   /* uniform distribution: the node that takes new pages */
};

/* dir and the superblock must stay. */
void wb_nodes_init(struct wb_nodes *nodes, const char *dir, const struct wb_superblock *superblock);
void wb_nodes_release(struct wb_nodes *nodes);

/* Reads the rows, if they are others than last time. The transaction is one for reading. */
int wb_nodes_refresh(struct wb_nodes *nodes, struct wb_catalog_txn *txn);

/* How many nodes there are, and the number of each; i counts from 0. */
size_t wb_nodes_count(const struct wb_nodes *nodes);
uint32_t wb_nodes_number(const struct wb_nodes *nodes, size_t i);

/*
 * A node, for reading its files. WB_E_DOWN, with a message that names the node and says what is wrong with it. Good
 * until the next refresh; files that are open stay good.
 */
int wb_nodes_find(struct wb_nodes *nodes, uint32_t number, struct wb_node **node_out);

/* The same without asking the node anything; NULL if there is none. Whoever opens its files learns if it is down. */
struct wb_node *wb_nodes_reach(struct wb_nodes *nodes, uint32_t number);

/* wb_nodes_find() for making, changing or deleting files. WB_E_DOWN also if it is read-only. */
int wb_nodes_find_to_write(struct wb_nodes *nodes, uint32_t number, struct wb_node **node_out);

/* Whether the catalog has such a node. */
bool wb_nodes_has(const struct wb_nodes *nodes, uint32_t number);

/*
 * How a node is reached: wb_node_open(). It is a variable as a test seam only: tests put a transport between the store
 * and its nodes.
 */
extern int (*wb_nodes_open)(const char *dir, const struct wb_node_identity *identity, struct wb_node **node_out);

/* ---- for the handle of a store ---------------------------------------------------------------------------------- */

/* Whether all of them can be written, as far as was known a moment ago. Costs nothing then. */
bool wb_nodes_all_writable(struct wb_nodes *nodes);

/* wb_nodes_find() in the handle's table. */
int wb_repo_node(struct wb_repo *repo, uint32_t number, struct wb_node **node_out);

/*
 * The directory of a node that is not down, for whoever makes it a node no more. Files in it are reached by requests
 * only.
 */
int wb_repo_node_dir(struct wb_repo *repo, uint32_t number, const char **dir_out);

/* What the files of a node take on its disk, by a listing. WB_E_DOWN. */
struct wb_repo_usage {
    uint64_t bytes;
    uint64_t retired; /* ... of which those that were replaced, and that a reader may still need */
};
int wb_repo_node_usage(struct wb_repo *repo, uint32_t number, struct wb_repo_usage *usage_out); /* repo_nodes.c */

/* Whether the error means that a node cannot be used, while others can. */
bool wb_repo_node_failed(const struct wb_repo *repo, int err);

/*
 * The bin for a new page. With hash distribution it follows from the id; WB_E_DOWN if that node cannot be used. With
 * uniform distribution, nodes that are down, full, read-only, leaving or busy streaming are avoided; WB_E_DOWN if there
 * is no other.
 */
int wb_bin_of(struct wb_repo *repo, struct wb_pageid id, struct wb_bin *bin_out);

/* Whether new pages of this bin still go there: nodes may have been added or removed. */
bool wb_bin_is_current(struct wb_nodes *nodes, const struct wb_bin *bin);

/* Something could not be written to a node: new pages avoid it for a while, if they can. */
void wb_nodes_avoid(struct wb_nodes *nodes, uint32_t number);

/* Takes up the newest table of nodes. */
int wb_nodes_renew(struct wb_repo *repo);

/* If the node of a bin is leaving, or gone, puts another one in its place. Returns 1 if it did. */
int wb_bin_renew(struct wb_repo *repo, struct wb_pageid id, struct wb_bin *bin_inout);

/* Uniform distribution: the next node takes what comes now. */
void wb_nodes_turn(struct wb_repo *repo);

/* How many nodes take new pages in turn; 1 with hash distribution. */
size_t wb_nodes_in_turn(struct wb_repo *repo);

/*
 * Something could not be written to a bin: with uniform distribution, finds another one, and avoids this node for a
 * while. Otherwise, or if there is no other, returns the error err, whose message then names the node.
 */
int wb_bin_instead(struct wb_repo *repo, struct wb_pageid id, int err, struct wb_bin *bin_inout);

#endif
