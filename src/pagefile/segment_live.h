/* segment_live.h - which pages of a segment are alive. */
#ifndef WB_PAGEFILE_SEGMENT_LIVE_H
#define WB_PAGEFILE_SEGMENT_LIVE_H

#include "store/repo.h"

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
int wb_segment_live_read(struct wb_catalog_txn *txn, const struct wb_segment *segment,
                         const struct wb_catalog_segment *row, struct wb_segment_live *live_out);
void wb_segment_live_release(struct wb_segment_live *live);

#endif
