/* parts.h - which segment has a place, after segments were split. */
#ifndef WB_PLACE_PARTS_H
#define WB_PLACE_PARTS_H

#include "base/vec.h"
#include "catalog/catalog.h"

/*
 * A segment can be split: pages whose ids are in some range go to another segment, whose `origin` is the first one.
 * Their places keep the number of the origin. So the segment of a place is the one of this origin whose range has the
 * page's id. For a segment that was never split, that is the segment with that number.
 */

/* One segment that was split, or split off. */
struct wb_part {
    uint32_t origin, number;
    struct wb_catalog_range range;
};

/* The parts that were there when somebody looked last. All bytes zero: none. */
struct wb_parts WB_VEC_OF(struct wb_part);

/* Finds the part that has a page, in a list that may be old. Returns 0 if the list has none. */
uint32_t wb_parts_find(const struct wb_parts *parts, uint32_t origin, struct wb_pageid id);

/* Replaces the list by the parts that there are now. */
int wb_parts_read(struct wb_catalog_txn *txn, struct wb_parts *parts);

/* The row of the segment that has this place. WB_E_CORRUPT if there is none. */
int wb_parts_row_of(struct wb_catalog_txn *txn, struct wb_parts *parts, uint32_t origin, struct wb_pageid id,
                    struct wb_catalog_segment *row_out);

#endif
