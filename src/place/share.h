/*
 * share.h - which node takes which ids, with hash distribution. All 1024 cells (catalog_range.h) are dealt to the
 * nodes, so that two nodes never differ by more than one:
 *
 *   created    three nodes           341, 341 and 342 cells, in the order of the ids
 *   added      a fourth node         takes 256: 85, 85 and 86 of the others, the last ones that each has
 *   removed    the second node       gives its 256 to the others: 86, 85 and 85, so that all have 341 or 342 again
 *
 * Nothing else changes hands: a node that comes gets its share of the pages, one that leaves gives away its own, and no
 * page moves between two other nodes. What a node gives to another one is neighbouring cells wherever possible.
 */
#ifndef WB_PLACE_SHARE_H
#define WB_PLACE_SHARE_H

#include "catalog/catalog.h"

#include <stddef.h>

/* The cells of the i-th of so many nodes of a new repository; i counts from 0. */
struct wb_cells wb_share_of_new(size_t i, size_t count);

/* Takes cells from the other nodes until this one has its share. Until now it has none. */
int wb_share_take(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *node);

/* Gives all cells of a node that leaves, which is one of the rows, to those of the others that do not. */
int wb_share_give(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *leaving);

#endif
