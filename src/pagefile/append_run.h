/*
 * append_run.h - blocks that wait in memory until they are written to a segment together (append_block.c).
 */
#ifndef WB_PAGEFILE_APPEND_RUN_H
#define WB_PAGEFILE_APPEND_RUN_H

#include "base/vec.h"
#include "place/place.h"

/* A block that was put as it is, and waits for its neighbours. */
struct wb_append_run_block {
    size_t at, bytes;       /* where it is in the run */
    size_t first_put, count; /* its pages */
    struct wb_bin bin;
};

/* Blocks that follow each other in a segment, and are written together. */
struct wb_append_run {
    struct wb_buf bytes;
    uint32_t segment; /* a tail; 0: there are no blocks */
    uint64_t at;      /* where the first one will be */
    WB_VEC(struct wb_append_run_block) blocks;
    struct wb_node_file file;   /* the segment's: for the thread that writes ... */
    struct wb_error_copy error; /* ... and its error */
};

#endif
