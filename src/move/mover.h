/*
 * mover.h - moves pages from where they are to where they should be.
 *
 * Everything that gives pages another file is one operation: a file is *replaced* by one file for each of some bins. A
 * bin is a node and a range of ids (bin.h); its file gets the live pages in that range. Dead pages stay behind.
 *
 *   compaction   one bin, that of the file itself                    compact.c
 *   moving       one bin, with another node                          settle.c
 *   dividing     several bins, on this node or others                compact.c (hashed-log), settle.c
 *
 * Places do not change (docs/design/0040-splits.md), only the rows of files do. A file is replaced in three steps:
 *
 *   1 hold      compact.lock, the lock on the file, a state of the catalog in which its pages are judged
 *   2 copy      into new files that nobody knows yet, complete and synced
 *   3 publish   one transaction: the new rows; the old file is retired, and deleted when no reader needs it
 *
 * A crash before 3 leaves files without rows, which the next writer removes; after 3 everything is done. What was
 * replaced already needs no work any more, so an interrupted command is repeated from its beginning.
 *
 *   mover.c        a run; segments: steps 1 and 3
 *   mover_copy.c   ... step 2: copies their blocks, and checks each byte that it copies
 *   mover_group.c  ... and puts old versions next to newer ones
 *   mover_rewrite.c  files that are rewritten: all steps in one transaction of the catalog
 *   segment_live.c         which pages of a segment are alive
 */
#ifndef WB_MOVE_MOVER_H
#define WB_MOVE_MOVER_H

#include "pagefile/pagefile.h"
#include "move/move.h"
#include "store/inside.h"

enum { WB_MOVER_MAGIC = 0x57424d56 };

#define WB_MOVE_LOCK "compact.lock" /* held while files are replaced */

/* What to do if something in the file cannot be read. */
enum wb_move_damage {
    WB_MOVE_REFUSE, /* nothing is changed: WB_E_CORRUPT names the first place */
    WB_MOVE_KEEP,   /* bytes that live pages need are kept as they are, others are dropped, and both is reported */
    WB_MOVE_CARRY,  /* the same, even if the catalog contradicts the file: it cannot stay where it is */
};

/* A damaged place in a file that was replaced. */
struct wb_move_finding {
    bool problem; /* its bytes are in the new file, too */
    char file[WB_SEGMENT_NAME_MAX];
    uint64_t at;
    char message[WB_ERROR_MESSAGE_MAX];
};

struct wb_move_ops;
struct wb_mover_group;

/* A run of the mover: a compaction, or a round of settling. */
struct wb_mover {
    uint32_t magic;
    struct wb_repo *repo;
    const struct wb_move_ops *ops;
    struct wb_file lock; /* compact.lock, if it is held during the whole run */
    wb_store_progress progress;
    void *progress_context;
    const char *stopped;                     /* what to say if progress() ends the run */
    uint64_t done, total;                    /* bytes */
    WB_VEC(struct wb_move_finding) findings; /* in the file that was replaced last */
    struct wb_move_compact_counts counts;
    struct wb_mover_group *group; /* old versions to be put next to newer ones; NULL: none */
    struct wb_pool *pool;         /* a thread that writes */
    struct wb_block_builder *builder;
    struct wb_block_reader *zstd;
};

/* Release it even if this fails. */
int wb_mover_init(struct wb_mover *mover, struct wb_repo *repo, wb_store_progress progress, void *progress_context,
                  const char *stopped);
void wb_mover_release(struct wb_mover *mover);

/* Keeps other processes from replacing files of this repository until the end of the run. WB_E_BUSY. */
int wb_mover_lock(struct wb_mover *mover);

/* Reports progress. WB_E_STOPPED. */
int wb_mover_report(struct wb_mover *mover);

/* Adds a damaged place. */
int wb_mover_find(struct wb_mover *mover, const struct wb_store_finding *finding);

/* How files are replaced: copied before the transaction, or rewritten in it (wb_pagefile_kind.rewrite). */
struct wb_move_ops {
    /* They consist of blocks: old versions can be put into those of newer ones, and dead files need not be read. */
    bool blocks;

    /* Whether a file is worth a copy without its dead pages. */
    bool (*needs_work)(const struct wb_mover *mover, const struct wb_catalog_segment *row);

    /*
     * Replaces a file. The ranges of the bins are disjoint, and together they are that of the file. The first bin gets
     * the number of the file, with the next revision; each other a new file whose origin it is. A bin without pages
     * gets none. Counts, and fills mover->findings. With WB_MOVE_KEEP there is one bin.
     *
     * WB_E_BUSY: a writer appends to it, another process has the lock, or its bin is another one by now. WB_E_NOTFOUND:
     * it is gone. Waits for no one.
     */
    int (*replace)(struct wb_mover *mover, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                   size_t count, enum wb_move_damage damage);
};
extern const struct wb_move_ops wb_move_copied, wb_move_rewritten;

/* ops->replace(), while others see that something is stored on the nodes of the bins (busy.h). */
int wb_move_replace(struct wb_mover *mover, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                    size_t count, enum wb_move_damage damage);

/* Replaces a single file, as a run of its own: a seam for tests. */
int wb_move_file(struct wb_repo *repo, const struct wb_catalog_segment *row, const struct wb_bin *bins, size_t count,
                 enum wb_move_damage damage);

/* ---- segments: what the files of the mover share ------------------------------------------------------------- */

/* A segment that nobody else can change or replace, until it is closed. */
struct wb_move_hold {
    struct wb_file lock;           /* compact.lock, if the run does not have it */
    struct wb_catalog_txn txn;     /* the state in which its pages are judged */
    struct wb_catalog_segment row; /* as of that state */
    struct wb_segment from;        /* its file; its lock keeps writers away */
};

int wb_move_hold_open(struct wb_mover *mover, uint32_t number, struct wb_move_hold *hold_out);
void wb_move_hold_close(struct wb_move_hold *hold);

/* Gives up segments in which nothing is alive, all in one transaction. One that is alive by now stays. */
int wb_move_drop(struct wb_mover *mover, const struct wb_move_hold *holds, size_t count);

/* A page that was copied. */
struct wb_move_page {
    struct wb_pageid id;
    uint64_t logical;
    uint16_t slot;
};

/* The new file of a bin. */
struct wb_move_target {
    struct wb_catalog_segment row;
    struct wb_segment to;
    struct wb_buf out; /* blocks that were not handed to the writing thread yet ... */
    uint64_t out_at;   /* ... and where in the file they will be */
    WB_VEC(struct wb_segment_map_entry) map;
    WB_VEC(struct wb_move_page) pages; /* that were copied, if there are several files */
    uint64_t live, old;                /* pages that were copied; of these, versions that are not the latest */
    uint64_t lead_dead;                /* dead pages that were copied because others need their bytes in the lead */
    bool unflagged;                    /* some old versions are not flagged: their block was copied as it is */
};

/* Blocks that another thread is writing, while we fill the next buffer. */
struct wb_move_write {
    const struct wb_node_file *file;
    struct wb_buf bytes;
    uint64_t at;
    struct wb_error_copy error;
};

/* A segment that is being replaced. */
struct wb_move {
    struct wb_mover *mover;
    enum wb_move_damage damage;
    struct wb_move_hold hold;
    struct wb_segment_live_walk walk;
    struct wb_move_target *files;
    size_t count;
    WB_VEC(bool) dead; /* entries of the current block that the current file does not get */
    struct wb_move_write writing;
    struct wb_pageview_judge judge; /* of pages that may have changed meanwhile */
};

/* Copies all live pages into the files, and waits until they are there. Fills in what move->files know about them. */
int wb_move_copy(struct wb_move *move);

/* ---- old versions (mover_group.c) ----------------------------------------------------------------------------- */

/* A page that has old versions somewhere else than its latest one. */
struct wb_mover_group_item {
    struct wb_catalog_place place; /* of the latest version */
    struct wb_pageid id;
};

/* An old version that was copied, and where it will be. */
struct wb_mover_group_move {
    struct wb_pageid id;
    struct wb_catalog_place from, to;
    uint32_t stored_bytes;
};

/* Old versions that are moved into the blocks of newer ones. */
struct wb_mover_group {
    WB_VEC(struct wb_mover_group_item) plan; /* by the place of the latest version */
    struct wb_epochs held;                   /* epochs whose versions do not move */
    struct wb_pageview view;
    size_t plan_at;                           /* the current segment: the first item that was not looked at, ... */
    WB_VEC(struct wb_mover_group_move) moves; /* ... versions that were added to its blocks, ... */
    WB_VEC(struct wb_block_page) extras;      /* ... what is added to the current block, ... */
    WB_VEC(struct wb_buf) records;            /* ... its bytes, ... */
    size_t bytes;                             /* ... and how many these are */
};
void wb_mover_group_release(struct wb_mover_group *group);

/* Finds out which pages have old versions that can be moved. */
int wb_mover_group_plan(struct wb_mover_group *group, struct wb_repo *repo);

/* Whether a segment has the latest version of such a page, and takes its old ones. */
bool wb_mover_group_wants(const struct wb_mover_group *group, const struct wb_repo *repo,
                          const struct wb_catalog_segment *row);

/* Begins with the first item of a segment. */
void wb_mover_group_begin(struct wb_mover_group *group, const struct wb_catalog_segment *row);

/* Fills group->extras with what is to be added to the block of the segment that is copied next. */
int wb_mover_group_block(struct wb_mover_group *group, struct wb_repo *repo, struct wb_move_hold *hold,
                         const struct wb_block_index *index);

/* The extras are in the block: remembers under which slots. Or they could not be added. */
void wb_mover_group_place(struct wb_mover_group *group, uint32_t segment, uint64_t logical);
void wb_mover_group_forget(struct wb_mover_group *group);

/* After the segment was published: tells the catalog where the versions are now. */
int wb_mover_group_relocate(struct wb_mover_group *group, struct wb_repo *repo, uint64_t *moved_inout);

#endif
