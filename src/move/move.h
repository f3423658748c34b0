/*
 * move.h - the door of move: how do pages get from where they are to where they should be?
 *
 *   compact    out of files that have dead pages                        compact.c
 *   nodes      to nodes that are added, away from those that leave      rebalance.c
 *   transfer   from the update nodes of a batch design to the others    transfer.c
 *   convert    into a new repository of another design                  convert.c
 *
 * Readers and writers of other processes go on meanwhile, and everything can be interrupted and repeated.
 */
#ifndef WB_MOVE_MOVE_H
#define WB_MOVE_MOVE_H

#include "store/store.h"

/* ---- compaction ------------------------------------------------------------------------------------------- */

struct wb_move_compact_counts {
    uint64_t files;    /* rewritten or deleted */
    uint64_t pages;    /* versions that remain in the rewritten files */
    uint64_t versions; /* old versions that were given up, because nobody keeps them any more */
    uint64_t moved;    /* old versions that were put next to newer ones of the same page */
    uint64_t bytes_before, bytes_after;
    uint64_t skipped; /* files that another process is writing to, or whose node is down */
    uint64_t damaged; /* damaged places that were kept as they are, because they contain live pages */
    uint64_t dropped; /* damaged places that were removed, because all their pages were dead */
};

/*
 * Gives up the versions that nobody keeps any more, and frees the space of everything that is dead. Damage does
 * not stop it. Each damaged place is passed to found(), as a problem if it remains
 * and as a note if it is gone, and everything else is compacted. Returns 0 even if
 * damage remains; see counts_out. progress and found may be NULL.
 */
int wb_move_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                    void *found_context, struct wb_move_compact_counts *counts_out);

/*
 * The same, for a caller that compacts again and again: a file is copied only if a quarter of it can be freed, or if it
 * has something that was taken down. So each byte that dies pays for a few that are copied, however often this is
 * called, and not much more than a quarter of a file is dead.
 */
int wb_move_compact_worthwhile(struct wb_store *store, wb_store_progress progress, void *progress_context,
                               wb_store_found found, void *found_context, struct wb_move_compact_counts *counts_out);

/* ---- nodes ------------------------------------------------------------------------------------------------ */

/*
 * Adds a node in a new or empty directory whose parent exists, and moves its share of the pages there (hash
 * distribution; with uniform it gets new pages only). Readers and writers of other processes go on meanwhile. Can be
 * interrupted at any moment and repeated. update: an update node of a batch design. WB_E_INVALID, by name: the
 * directory is missing, nested in or around another node, in use, or not empty. WB_E_BUSY: nodes are being added or
 * removed by another process.
 */
int wb_move_node_add(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                     uint32_t *number_out);

/* Moves all pages away from the node, then forgets it. WB_E_NOTFOUND; WB_E_INVALID: it is the last one of its role. */
int wb_move_node_remove(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context);

/* ---- batch updates ---------------------------------------------------------------------------------------- */

/* A stage of a transfer that has ended (section 3.3.1 of the paper). */
struct wb_move_stage {
    const char *name;
    int64_t ms;
    uint64_t pages, bytes; /* that it dealt with */
};
typedef void (*wb_move_each_stage)(void *context, const struct wb_move_stage *stage);

/* What a transfer could not bring, because it needs a node that cannot be used. It stays on the update nodes. */
struct wb_move_transfer_wait {
    uint32_t node;
    uint64_t pages;
    uint64_t revisits; /* whose original is not known */
};

struct wb_move_transfer_counts {
    uint64_t added, replaced; /* what readers see change */
    int64_t ms;
    bool finished;    /* it went through all stages, although something may wait */
    uint64_t waiting; /* pages that stay on the update nodes because of nodes ... */
    struct wb_move_transfer_wait waits[2 * WB_DESIGN_NODES_MAX]; /* ... which are these */
    size_t wait_count;
};

/*
 * Brings everything that waits on the update nodes to the read nodes: isolates (waits for scans that are under way,
 * lets no new one begin), transfers, restarts. After a crash in any step every page is old or new, and the next one
 * completes the work. WB_E_INVALID in an incremental design; WB_E_BUSY while another process transfers.
 *
 * A node that is down, or a read node that is read-only or full, does not keep back pages of others: those that need it
 * stay on the update nodes, and the next transfer brings them. Then it returns WB_E_DOWN, and counts_out says how many
 * wait for which node. In the same way damaged pages stay there: WB_E_CORRUPT.
 */
int wb_move_transfer(struct wb_store *store, wb_move_each_stage stage, void *stage_context, wb_store_progress progress,
                     void *progress_context, struct wb_move_transfer_counts *counts_out);

/* ---- conversion -------------------------------------------------------------------------------------------- */

struct wb_move_convert_counts {
    uint64_t pages, versions; /* that the copy has */
    uint64_t bytes;           /* of bodies that were copied */
    uint64_t lost;            /* versions that the copy does not have, because their bytes cannot be read ... */
    uint64_t lost_pages;      /* ... of so many pages */
};

/* A version that a copy does not have, because its bytes cannot be read. */
struct wb_move_lost {
    struct wb_pageid id;
    int64_t time_ms;     /* of its newest capture */
    bool latest;         /* it was the latest version: the copy has only older ones of this page, or none */
    const char *message; /* what is damaged: names the file */
};

/* What a conversion reports and asks for. Each function may be NULL. */
struct wb_move_convert_sink {
    wb_store_progress progress; /* with numbers of pages and versions instead of bytes */

    /* Copies what other rooms keep in the repository, before it becomes one, and before any page is copied. */
    int (*rest)(void *context, const char *from, const char *to);

    /* Called for each version that is lost. */
    void (*lost)(void *context, const struct wb_move_lost *lost);
    void *context;
};

/*
 * Copies the repository `from` into a new one of another design: pages with all versions, captures and epochs,
 * snapshots that a person holds (numbers, names, times), bars, revisits that wait, history policy, and what waits on
 * update nodes. The copy is of one moment; others may write to the source, which is not changed. Until the copy is
 * complete, the target cannot be opened; repeating the call starts from the beginning.
 * Versions whose bytes are damaged are left out and reported: the result is 0, and counts_out->lost says how many.
 * WB_E_DOWN if a node of the source is down, before anything is made; WB_E_CORRUPT if its catalog is damaged.
 * options->history is ignored: the policy is that of the source. WB_E_INVALID, by name: the target is in use, its
 * parent does not exist, or it is inside a repository. WB_E_BUSY: another process makes a repository there.
 */
int wb_move_convert(const char *from, const char *to, const struct wb_store_options *options,
                    const struct wb_move_convert_sink *sink, struct wb_move_convert_counts *counts_out);

#endif
