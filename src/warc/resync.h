/*
 * resync.h - private to warc: finds the next record after damage.
 *
 * Used by the reader (wb_resync_find) and by the salvage, which needs to know where the
 * record after a broken one starts (wb_resync_scan).
 */
#ifndef WB_WARC_RESYNC_H
#define WB_WARC_RESYNC_H

#include "warc/warcreader.h"

/* The state of a search for the next header. Positions count from the first byte that the reader sees. */
struct wb_resync {
    size_t at;         /* the next position to look at, or the header that was found */
    size_t keep;       /* the first `keep` bytes stay in memory; those from there to `at` may be dropped */
    uint64_t dropped;  /* how many bytes were dropped so far */
    bool line_start;   /* a line starts at `at` */
};

/*
 * Searches for a valid header from scan->at to the end of the newest unit. Returns 1 with
 * scan->at at its start; 0 if there is none before that end or within `limit` bytes
 * (dropped ones included), with scan->at where a search would continue.
 */
int wb_resync_scan(struct wb_warc_reader *r, struct wb_resync *scan, uint64_t limit);

/* Positions the reader before the next record. Returns 1, 0 if there is none, or an error that is final. */
int wb_resync_find(struct wb_warc_reader *r);

#endif
