/*
 * compact.h - a compaction in progress, shared by the two files that carry it out:
 *
 *   compact.c  chooses segments, locks them, publishes their new revisions
 *   compact_copy.c     copies the blocks of one segment without its dead pages
 *   compact_group.c    moves old versions next to newer ones of the same page
 */
#ifndef WB_MOVE_COMPACT_H
#define WB_MOVE_COMPACT_H

#include "pagefile/segment_live.h"

#define WB_COMPACT_LOCK "compact.lock" /* locked by a compaction */

enum {
    WB_COMPACTION_MAGIC = 0x57424350,
};

/* Blocks that another thread is writing to the file, while we fill the next buffer. */
struct wb_compact_write {
    const struct wb_node_file *file;
    struct wb_buf bytes;
    uint64_t at;
    struct wb_error_copy error;
};

/* A block that should have been scrubbed, but a live page in it cannot be read. */
struct wb_compact_unscrubbed {
    uint64_t at;
    bool lost; /* true: it was scrubbed, and the unreadable page is lost; false: it was left as it is */
    char why[160];
};

/* A block with damaged frames. They were copied as they are, and its other pages as usual. */
struct wb_compact_maimed {
    uint64_t at; /* of the first of these frames, in the old file */
    struct wb_block_damage damage;
};

/* A page that has old versions somewhere else than its latest one. */
struct wb_compact_plan_item {
    struct wb_catalog_place place; /* of the latest version */
    struct wb_pageid id;
};

/* An old version that was copied, and where it will be. */
struct wb_compact_move {
    struct wb_pageid id;
    struct wb_catalog_place from, to;
    uint32_t stored_bytes;
};

struct wb_compaction {
    uint32_t magic;
    struct wb_repo *repo;

    /* ---- the current segment ---- */
    struct wb_catalog_txn txn;     /* the state in which its pages are judged; held until it is copied */
    struct wb_catalog_segment row;
    struct wb_segment from, to;
    struct wb_segment_live live;   /* which of its pages are alive, in the order of the file */
    size_t judged;                 /* entries of live that belong to blocks that were already copied */
    size_t damages;                /* damaged parts that were already passed */
    WB_VEC(struct wb_segment_map_entry) map;
    WB_VEC(struct wb_compact_unscrubbed) unscrubbed;
    WB_VEC(struct wb_compact_maimed) maimed;
    struct wb_buf out;             /* blocks that were not yet handed to the writing thread ... */
    uint64_t out_at;               /* ... and where in the file they will be */
    uint64_t kept;                 /* live pages that were copied */
    uint64_t old;                  /* ... of which so many are flagged as not the latest version of their page */
    bool unflagged;                /* some are not flagged, because their block could only be copied as it is */
    uint64_t lead_dead;            /* dead pages that were copied because other pages need their bytes in the lead */

    size_t plan_at;                /* the first item of the plan that was not looked at */
    WB_VEC(struct wb_compact_move) moves;         /* versions that were added to its blocks */
    WB_VEC(struct wb_block_page) extras;          /* what is added to the current block ... */
    WB_VEC(struct wb_buf) extra_records;          /* ... with its bytes */
    size_t extra_bytes;

    /* ---- for all segments ---- */
    WB_VEC(struct wb_compact_plan_item) plan; /* by the place of the latest version */
    struct wb_epochs held;                    /* epochs whose versions do not move */
    struct wb_pageview view;
    bool grouping;                        /* the first round: only segments that the plan names */
    struct wb_compact_write writing;
    struct wb_pool *pool;          /* the writing thread */
    struct wb_block_builder *builder;
    struct wb_block_reader *zstd;
    wb_store_progress progress;
    void *progress_context;
    wb_store_found found;
    void *found_context;
    uint64_t done, total;
    struct wb_store_compact_counts result;
};

/*
 * Copies all blocks of c->from that have live pages to c->to, and waits until they are in
 * the file. Fills c->map, c->kept, c->lead_dead, c->unscrubbed and c->maimed; c->out_at is
 * where the blocks end.
 */
int wb_compact_copy(struct wb_compaction *c);

/* Makes sure that no other process compacts, splits or moves segments of the same repository. WB_E_BUSY. */
int wb_compact_lock(const struct wb_repo *repo, struct wb_file *lock_out);

/* ---- old versions (compact_group.c) ---- */

/* Finds out which pages have old versions that can be moved. */
int wb_compact_group_plan(struct wb_compaction *c);

/* Whether a segment has the latest version of such a page, and takes its old ones. */
bool wb_compact_group_wants(const struct wb_compaction *c, const struct wb_catalog_segment *row);

/* Begins with the first item of the current segment. */
void wb_compact_group_begin(struct wb_compaction *c);

/* Fills c->extras with what is to be added to the block that is copied next. */
int wb_compact_group_block(struct wb_compaction *c, const struct wb_block_index *index);

/* The extras are in the block: remembers under which slots. */
void wb_compact_group_place(struct wb_compaction *c, uint64_t logical);

/* They could not be added. */
void wb_compact_group_forget(struct wb_compaction *c);
void wb_compact_group_clear(struct wb_compaction *c);

/* After the segment was published: tells the catalog where the versions are now. */
int wb_compact_group_relocate(struct wb_compaction *c);

#endif
