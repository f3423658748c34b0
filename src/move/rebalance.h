/*
 * rebalance.h - adding and removing nodes while everything goes on:
 *
 *   rebalance.c   the two commands
 *   ranges.c      ... which node takes which ids
 *   settle.c      ... and moving the pages to where they belong, for the organisations that have segments
 *
 *   add      1 the directory becomes a node   2 it gets its share of the ids: new pages go there   3 settle   4 done
 *   remove   1 its ids go to other nodes      2 settle   3 it is taken off the table              4 the directory is
 * none
 *
 * Each step is one commit, or can be repeated; so whoever repeats the command goes on where it was interrupted.
 */
#ifndef WB_MOVE_REBALANCE_H
#define WB_MOVE_REBALANCE_H

#include "store/repo.h"
#include "move/split.h"

/* ---- ranges (ranges.c) -------------------------------------------------------------------------------- */

/* Whether two ranges are the halves of one, and that one. */
bool wb_ranges_are_halves(const struct wb_catalog_range *a, const struct wb_catalog_range *b);
void wb_ranges_widen(struct wb_catalog_range *range);

/* Gives a new node half of the largest range of the node that has the most. WB_E_LIMIT. */
int wb_ranges_take(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *node);

/* Gives the ranges of a node that leaves to the one that has the other half, or else to the one that has the least. */
int wb_ranges_give(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *leaving);

/* ---- settling ------------------------------------------------------------------------------------------------- */

/* How far a settling is. */
struct wb_settling {
    struct wb_repo *repo;
    wb_store_progress progress;
    void *context;
    uint64_t done, total; /* bytes */
    uint64_t moved;       /* things that the last round has moved ... */
    uint64_t busy;        /* ... or could not, because another process has locked them */
    uint64_t stuck;       /* ... or because they are damaged: they stay where they are, and can be read as before */
    uint64_t carried;     /* in all rounds: damaged files that were moved nevertheless, as they are */
    struct wb_error_copy damage; /* the first damage that was met; code 0: none */
};

/* Remembers damage, whose message is the current one. */
void wb_settling_damage(struct wb_settling *s);

/* Reports progress. WB_E_STOPPED if that is wanted. */
int wb_settling_report(struct wb_settling *s);

/*
 * One round: moves everything that is not where the table of nodes says (hash distribution), or that is on a node that
 * is leaving. Each organisation has one; it counts in s what it did. Places must not change.
 */
int wb_settle_segments(struct wb_settling *s);
int wb_hash_settle_files(struct wb_settling *s); /* hash_settle.c */

/* The children of a segment, by the table of nodes. Returns how many; 1 if all its pages belong to one node. */
size_t wb_settle_plan(const struct wb_nodes *nodes, const struct wb_catalog_segment *row,
                      struct wb_split_child children[WB_SPLIT_CHILDREN_MAX]);

/* wb_store_node_add() and wb_store_node_remove(). */
int wb_repo_node_add(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                     uint32_t *number_out);
int wb_repo_node_remove(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context);

#endif
