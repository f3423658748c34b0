/*
 * scan_ahead.h - reads the next segments of a scan ahead, from all nodes at the same time.
 *
 * A scan passes the segments in the order of their numbers. With several nodes, a segment has at most a few megabytes
 * (wb_segment_limit), and neighbours are on different nodes. So, while the pages of one are returned, a thread for
 * each node reads the next ones into memory:
 *
 *   scan       1 . . . . 2 . . . . 3 . . . .
 *   node A     1 3 3 3 3 3 5 5 5 5 5 ...         a segment can be used while it is being read
 *   node B     2 2 2 2 2 4 4 4 4 4 ...
 *
 * What was read ahead is only a copy of bytes that never change: those of a committed revision. A reader that does not
 * find a segment here, because something went wrong or has changed, reads the file, and finds out what is the matter.
 */
#ifndef WB_STORE_SCAN_AHEAD_H
#define WB_STORE_SCAN_AHEAD_H

#include "store/repo.h"

/* The number of scans that pass over the same segments at the same time (1: just one) divides the memory. */
struct wb_scan_ahead;
int wb_scan_ahead_new(uint32_t scans, struct wb_scan_ahead **ahead_out);

/* Ends its threads. Nothing that was taken may be in use. NULL is fine. */
void wb_scan_ahead_free(struct wb_scan_ahead *ahead);

/*
 * Says which segments come next: those of count rows, in this order. Begins to read the first of them, as many as there
 * is room for; forgets what was read of others. Rows without live pages are passed over. If a node is down, or memory
 * is short, nothing is read of that; this is not an error.
 */
void wb_scan_ahead_plan(struct wb_scan_ahead *ahead, struct wb_nodes *nodes, const uint8_t *repo_id,
                        const struct wb_catalog_segment *rows, size_t count);

/*
 * Takes the segment of a row, if it is being read ahead: *segment_out is open, and *bytes_out provides bytes to a walk
 * (segment.h). Returns false if it is not there: then both are as they were. Before the segment is closed,
 * wb_scan_ahead_give_back() must be called.
 */
bool wb_scan_ahead_take(struct wb_scan_ahead *ahead, const struct wb_catalog_segment *row,
                        struct wb_segment *segment_out, struct wb_segment_ahead **bytes_out);
void wb_scan_ahead_give_back(struct wb_segment_ahead *bytes);

#endif
