/*
 * segment_tail.h - segments of a repository that is open: reading a place, appending behind what is committed, leaving.
 *
 *   segment_open.c     reads single records
 *   segment_records.c  reads all records of a state
 *   segment_tail.c     the segments that a writer appends to
 *   segment_recover.c  what a crash left of segments
 *   segment_kind.c     the tables of the organisations log and hashed-log
 */
#ifndef WB_PAGEFILE_SEGMENT_TAIL_H
#define WB_PAGEFILE_SEGMENT_TAIL_H

#include "pagefile/pagefile_files.h"

/* Reads the record of a place. files->reader must be awake. */
int wb_segment_read_place(struct wb_pagefile *files, struct wb_pageid id, const struct wb_catalog_place *place,
                          struct wb_buf *record_out);

/* The records of all versions of a state (segment_records.c; wb_pagefile_kind.each_record). */
int wb_segment_each_record(struct wb_pagefile *files, wb_pagefile_each_record each, void *context);

/*
 * Opens a segment for appending and locks it; WB_E_BUSY if another process has the
 * lock. Reads the row again under the lock, because the segment may have grown.
 */
int wb_segment_claim(struct wb_pagefile *files, const struct wb_catalog_segment *seen, struct wb_segment *segment_out,
                     struct wb_catalog_segment *row_out);

/* Adds a tail for the bin, the last one of all: an unfinished segment that nobody has locked, or a new one. */
int wb_tail_open(struct wb_pagefile *files, const struct wb_bin *bin);

/* Changes the rows of the segments that were appended to. */
int wb_tails_apply(struct wb_pagefile_edit *edit);

/* After a commit: closes segments that are full. The others stay open for more blocks. */
void wb_tails_close_full(struct wb_pagefile *files);

/* After a failed commit: cuts off what was appended. */
void wb_tails_cut(struct wb_pagefile *files);

/* Leaves the segments that were appended to: cuts off uncommitted bytes, writes seals, gives up the locks. */
void wb_tails_release(struct wb_pagefile *files);

/*
 * Writes a seal into the newest segment that no other process has locked. For a writer
 * that committed without appending anything, and so has no segment of its own to seal.
 */
void wb_segment_seal_any(struct wb_pagefile *files, uint64_t commit);

/* When a writer opens: cuts off the tails of a node's segments, and removes files without rows. */
int wb_segment_recover(struct wb_pagefile *files, uint32_t node);

/* A segment that has reached this size takes no more pages. */
uint64_t wb_segment_limit(const struct wb_pagefile *files);

#endif
