/* resync.h - private to warc: finding the next record after damage. */
#ifndef WB_WARC_RESYNC_H
#define WB_WARC_RESYNC_H

#include "warc/warcreader.h"

/* Where a search for the next header stands. Positions count from the first byte that the reader sees. */
struct wb_scan {
    size_t at;         /* where it looks next, or the header it found */
    size_t keep;       /* bytes at the front that stay in memory; what lies between them and `at` is dropped when memory is needed */
    uint64_t dropped;
    bool line_start;   /* a line starts at `at` */
};

/*
 * Looks for a header that can be read, at or behind scan->at, to the end of the
 * newest unit: 1 and scan->at is where it starts. 0: there is none before that end, or
 * before `limit` bytes (dropped ones included); scan->at is where looking would go on.
 */
int wb_resync_scan(struct wb_warc_reader *r, struct wb_scan *scan, uint64_t limit);

/* Puts the reader before the next record: 1, 0 where there is none any more, or an error that is final. */
int wb_resync_find(struct wb_warc_reader *r);

#endif
