/*
 * log_compact.h - a compaction in progress, shared by the two files that carry it out:
 *
 *   log_compact.c  chooses segments, locks them, publishes their new revisions
 *   log_copy.c     copies the blocks of one segment without its dead pages
 */
#ifndef WB_STORE_LOG_COMPACT_H
#define WB_STORE_LOG_COMPACT_H

#include "store/log.h"

enum {
    WB_LOG_COMPACTION_MAGIC = 0x57424350,
};

/* Blocks that another thread is writing to the file, while we fill the next buffer. */
struct wb_log_compact_write {
    const struct wb_file *file;
    struct wb_buf bytes;
    uint64_t at;
    struct wb_error_copy error;
};

/* A block that should have been scrubbed, but a live page in it cannot be read. */
struct wb_log_unscrubbed {
    uint64_t at;
    bool lost; /* true: it was scrubbed, and the unreadable page is lost; false: it was left as it is */
    char why[160];
};

struct wb_log_compaction {
    uint32_t magic;
    struct wb_log *log;

    /* ---- the current segment ---- */
    struct wb_catalog_txn txn;     /* the state in which its pages are judged; held until it is copied */
    struct wb_catalog_segment row;
    struct wb_segment from, to;
    struct wb_log_live live;       /* which of its pages are alive, in the order of the file */
    size_t judged;                 /* entries of live that belong to blocks that were already copied */
    size_t damages;                /* damaged parts that were already passed */
    WB_VEC(struct wb_segment_map_entry) map;
    WB_VEC(struct wb_log_unscrubbed) unscrubbed;
    struct wb_buf out;             /* blocks that were not yet handed to the writing thread ... */
    uint64_t out_at;               /* ... and where in the file they will be */
    uint64_t kept;                 /* live pages that were copied */
    uint64_t lead_dead;            /* dead pages that were copied because other pages need their bytes in the lead */

    /* ---- for all segments ---- */
    struct wb_log_compact_write writing;
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
 * the file. Fills c->map, c->kept, c->lead_dead and c->unscrubbed; c->out_at is where the
 * blocks end.
 */
int wb_log_copy_blocks(struct wb_log_compaction *c);

#endif
