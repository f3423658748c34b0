/*
 * append_sync.h - makes what a writer has appended durable, while something else happens.
 */
#ifndef WB_PAGEFILE_APPEND_SYNC_H
#define WB_PAGEFILE_APPEND_SYNC_H

#include "pagefile/pagefile_files.h"

/* A file that is synced. */
struct wb_append_sync_job {
    const struct wb_node_file *file;
    uint32_t node;
    size_t turn; /* how many files of its node come before it */
    struct wb_error_copy error;
};

/* Files that are being synced. */
struct wb_append_sync {
    struct wb_append_sync_job *jobs; /* NULL: none */
    size_t count;
    struct wb_pool *pool; /* whose threads sync them; NULL: they were synced at once */
};

/*
 * Begins to sync the segments that were appended to since the last commit. If there is `more` to do that takes longer
 * than waking a thread, returns at once. Nothing may be appended, and no segment closed, before wb_append_sync_end().
 */
int wb_append_sync_begin(struct wb_pagefile *files, bool more, struct wb_append_sync *sync_out);

/* Returns when everything is on disk; or the first error. Does nothing if nothing was begun, or it has ended before. */
int wb_append_sync_end(struct wb_pagefile *files, struct wb_append_sync *sync);

#endif
