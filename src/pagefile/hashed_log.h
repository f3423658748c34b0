/*
 * hashed_log.h - the organisation hashed-log: logs of a few megabytes, each for a range of page ids.
 *
 * It is the log organisation (repo.h), except for two things: which segment a new page is appended to, and the order of
 * scans (sorted_scan.h). docs/design/0041-hashed-log.md has the reasons.
 *
 *   all ids of the node    0.......................................f      its log is full (it was the first one)
 *   16 ranges              0       1       2    ...                f      those of 0 and 2 are full
 *   16 of each full one    00..0f          20..2f                         new pages with ids 2... go here
 *
 * A range is *divided* when its segments have reached a size together, or when there is a segment of a narrower range
 * inside it. New pages go to the narrowest range that is not divided. Nothing but the rows of segments says which
 * ranges there are, so there is nothing that a crash could leave behind. Segments of a divided range stay as they are
 * until compact() divides them (docs/design/0053-one-mover.md).
 *
 * Pages are gathered in memory and sorted by range, so that each range gets a block of useful size. A group that is too
 * small for that, such as that of a crawler that commits every few pages, stops at wider ranges.
 */
#ifndef WB_PAGEFILE_HASHED_LOG_H
#define WB_PAGEFILE_HASHED_LOG_H

#include "pagefile/pagefile_files.h"

enum { WB_HASHED_LOG_BITS = 4 }; /* by which a range is divided */

/* What is stored in the segments of exactly one range of a node. */
struct wb_hashed_range {
    struct wb_bin bin;
    uint64_t bytes;
};

/* The ranges that have segments, and how far a group is divided. All bytes zero: nothing is divided. */
struct wb_hashed_ranges {
    WB_VEC(struct wb_hashed_range) items; /* by node, then by prefix, wider ones first */
    uint64_t limit;                       /* so many bytes make a range a divided one */
    unsigned levels;                      /* below the ranges of nodes, at most */
};

/* Reads the ranges, for a group whose records have so many bytes. Includes what this writer has not committed yet. */
int wb_hashed_ranges_read(struct wb_pagefile *files, uint64_t group_bytes, struct wb_hashed_ranges *ranges_out);
void wb_hashed_ranges_release(struct wb_hashed_ranges *ranges);

/* Whether new pages go to narrower ranges. */
bool wb_hashed_ranges_divided(const struct wb_hashed_ranges *ranges, const struct wb_bin *bin);

/* Narrows the bin for a page. */
void wb_hashed_ranges_narrow(const struct wb_hashed_ranges *ranges, struct wb_pageid id, struct wb_bin *bin_inout);

/* The segments of divided ranges that are worth it (wb_pagefile_kind.splits). */
int wb_hashed_splits(const struct wb_catalog_rows *rows, wb_pagefile_each_split each, void *context);

#endif
