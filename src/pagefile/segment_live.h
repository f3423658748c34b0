/* segment_live.h - which pages of a segment are alive, and a walk over its blocks that knows that. */
#ifndef WB_PAGEFILE_SEGMENT_LIVE_H
#define WB_PAGEFILE_SEGMENT_LIVE_H

#include "pagefile/pagefile_files.h"

/* A damaged part of a segment file: from a block that cannot be read to the next one that can. */
struct wb_segment_damage {
    uint64_t at, end;
    size_t first, count; /* the blocks in it that have live pages: a range of wb_segment_live.blocks */
    uint64_t pages;      /* the number of live pages in those blocks */
    char why[160];
};

/*
 * Which pages of a segment are dead or old, in the order of the entries in the file; and which
 * parts of the file are damaged. Only the catalog knows which pages are in a damaged part.
 */
struct wb_segment_live {
    bool *dead;
    bool *old;                                  /* alive, but not the latest version of its page */
    uint64_t epoch;                             /* in which that is so */
    size_t count;                               /* entries in the directories of all readable blocks */
    WB_VEC(struct wb_segment_damage) damages;   /* in the order of the file */
    WB_VEC(struct wb_segment_map_entry) blocks; /* those in damaged parts with live pages, in file order */
    uint64_t nowhere;                           /* live pages whose block the file does not have at all */
};

/* All bytes zero: not begun. */
struct wb_segment_live_walk {
    struct wb_segment_walk walk; /* walk.index is that of the block */
    struct wb_segment_live live;
    const bool *dead, *old;                 /* flags for the entries of the block */
    const struct wb_segment_damage *damage; /* not NULL: this is no block, but a damaged part */
    size_t judged, damages;                 /* entries and damaged parts that were passed */
};

/* Finds out what is alive in a state that is held. Release the walk even if this fails. */
int wb_segment_live_begin(struct wb_segment_live_walk *walk, struct wb_catalog_txn *txn,
                          const struct wb_segment *segment, const struct wb_catalog_segment *row);
void wb_segment_live_release(struct wb_segment_live_walk *walk);

/* Returns 1 and the next block or damaged part, in the order of the file; 0 at the end; or an error. */
int wb_segment_live_next(struct wb_segment_live_walk *walk, const char **block_out, uint64_t *at_out);

#endif
