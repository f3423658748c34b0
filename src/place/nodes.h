/*
 * nodes.h - the table of nodes: which nodes a repository has, which of them can be used, and which one takes a new
 * page.
 *
 * The nodes are rows of the catalog. With hash distribution each of them takes the ids in its cells (share.h); with
 * uniform distribution any node takes any id.
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

struct wb_superblock;

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* A node as it was found when it was looked at last. */
struct wb_known_node {
    struct wb_catalog_node row;
    struct wb_catalog_range range; /* of the ids that it takes; all with uniform distribution */
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
    uint8_t takers[WB_CELLS];           /* hash distribution: the node that takes each cell, as an index of items */
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

/* The same without asking the node anything; NULL if there is none. Opening one of its files shows if it is down. */
struct wb_node *wb_nodes_reach(struct wb_nodes *nodes, uint32_t number);

/* wb_nodes_find() for making, changing or deleting files. WB_E_DOWN also if it is read-only. */
int wb_nodes_find_to_write(struct wb_nodes *nodes, uint32_t number, struct wb_node **node_out);

/* Whether the catalog has such a node. */
bool wb_nodes_has(const struct wb_nodes *nodes, uint32_t number);

/* What the file webbase.node in the directory of a node must say. */
struct wb_node_identity wb_nodes_identity(const uint8_t *repository, const struct wb_catalog_node *row);

/* The directory of a node, as a process opens it; allocated (wb_free), NULL when out of memory. */
char *wb_nodes_path(const char *repository_dir, const struct wb_catalog_node *row);

/* The directory of a node that is not down, for a caller that is removing the node. Its files need node_file.h. */
int wb_nodes_dir(struct wb_nodes *nodes, uint32_t number, const char **dir_out);

/* Whether all of them can be written, as far as was known a moment ago. Costs nothing then. */
bool wb_nodes_all_writable(struct wb_nodes *nodes);

/* Whether the error means that a node cannot be used, while others can. */
bool wb_nodes_failed(const struct wb_nodes *nodes, int err);

/* Something could not be written to a node: new pages avoid it for a while, if they can. */
void wb_nodes_avoid(struct wb_nodes *nodes, uint32_t number);

/* ---- where new pages go (bin.h) --------------------------------------------------------------------------------- */

/* The node with this number, as it was found last; NULL if there is none. */
const struct wb_known_node *wb_nodes_known(const struct wb_nodes *nodes, uint32_t number);

/*
 * The node that takes a new page: *index_out is its place among the items, of which there are some. With hash
 * distribution it follows from the id. With uniform distribution it is the one whose turn it is, or the next one that
 * is not down, full, read-only, leaving or busy streaming. WB_E_DOWN if there is none that can be written.
 */
int wb_nodes_choose(struct wb_nodes *nodes, struct wb_pageid id, size_t *index_out);

/* Uniform distribution: the next node takes what comes now. */
void wb_nodes_turn(struct wb_nodes *nodes);

/* How many nodes take new pages in turn; 1 with hash distribution. */
size_t wb_nodes_in_turn(struct wb_nodes *nodes);

#endif
