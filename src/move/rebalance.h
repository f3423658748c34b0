/*
 * rebalance.h - adding and removing nodes while everything goes on:
 *
 *   rebalance.c   the two commands
 *   settle.c      ... and moving the pages to where they belong
 *
 *   add      1 the directory becomes a node   2 it gets its share of the ids: new pages go there   3 settle   4 done
 *   remove   1 its ids go to other nodes   2 settle   3 it is taken off the table   4 its directory is cleared
 *
 * Each step is one commit, or can be repeated; so the command can be repeated after it was interrupted.
 */
#ifndef WB_MOVE_REBALANCE_H
#define WB_MOVE_REBALANCE_H

#include "move/move.h"
#include "store/inside.h"

/* ---- settling (settle.c) -------------------------------------------------------------------------------------- */

struct wb_settled {
    uint64_t stuck;   /* files that stay where they are, and can be read as before, because they are damaged */
    uint64_t carried; /* damaged files or buckets that were moved nevertheless, as they are */
    struct wb_error_copy damage; /* the first damage that was met; code 0: none */
};

/* Moves all pages to where the table of nodes says. Places do not change. */
int wb_settle(struct wb_repo *repo, wb_store_progress progress, void *context, struct wb_settled *settled_out);

/* The bins of a file by the table of nodes, its own first. Returns how many; 1 if all its pages belong to one node. */
size_t wb_settle_plan(const struct wb_nodes *nodes, const struct wb_catalog_segment *row,
                      struct wb_bin bins[WB_BINS_MAX]);

/* wb_move_node_add() and wb_move_node_remove(). */
int wb_rebalance_add(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                     uint32_t *number_out);
int wb_rebalance_remove(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context);

#endif
