/*
 * catalog_range.h - sets of page ids: cells and ranges.
 *
 * The ids are divided into 1024 *cells* of equal size: the first ten bits of an id are the number of its cell. With
 * hash distribution each node takes some of the cells (place/share.h). So any number of nodes can have nearly the same
 * number of ids, and when a node comes or goes, no other cells change hands than those that it takes or gives.
 *
 * A *range* is the ids that begin with some bits, except those in its gaps: cells of which it has no ids. A segment has
 * one, in which the ids of all its pages are. All bytes zero: the range of all ids.
 *
 *   bits = 2, prefix = 01...        cells 256 to 511
 *   gaps = {300 to 511}             ... of which only 256 to 299 are left
 *
 * Only pageid.hi matters for any of this. Ranges of more bits than a cell has lie within one cell and have no gaps.
 * A range is never empty, and has no gaps outside of its prefix: so equal sets made from the same prefix are equal byte
 * by byte.
 */
#ifndef WB_CATALOG_RANGE_H
#define WB_CATALOG_RANGE_H

#include "page/page.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- cells -------------------------------------------------------------------------------------------------- */

enum { WB_CELL_BITS = 10, WB_CELLS = 1 << WB_CELL_BITS, WB_CELLS_BYTES = WB_CELLS / 8 };

/* A set of cells. All bytes zero: none. */
struct wb_cells {
    uint64_t words[WB_CELLS / 64];
};

/* The cell of the ids with this pageid.hi. */
static inline uint32_t wb_cell_of(uint64_t hi)
{
    return (uint32_t)(hi >> (64 - WB_CELL_BITS));
}

static inline bool wb_cells_has(const struct wb_cells *cells, uint32_t cell)
{
    return cells->words[cell / 64] >> cell % 64 & 1;
}

void wb_cells_add(struct wb_cells *cells, uint32_t cell);
void wb_cells_remove(struct wb_cells *cells, uint32_t cell);
uint32_t wb_cells_count(const struct wb_cells *cells);

/* As bytes: cell n is bit n % 8 of byte n / 8. */
void wb_cells_write(const struct wb_cells *cells, char bytes_out[WB_CELLS_BYTES]);
void wb_cells_read(const char bytes[WB_CELLS_BYTES], struct wb_cells *cells_out);

/* ---- ranges ------------------------------------------------------------------------------------------------- */

struct wb_catalog_range {
    uint64_t prefix;      /* the first `bits` bits of pageid.hi; the others are 0 */
    uint32_t bits;        /* 0 to 64 */
    struct wb_cells gaps; /* the cells with this prefix that it does not have */
};

static inline uint64_t wb_catalog_range_mask(const struct wb_catalog_range *range)
{
    return range->bits ? ~(uint64_t)0 << (64 - range->bits) : 0;
}

/* Whether the range has this id. */
static inline bool wb_catalog_range_has(const struct wb_catalog_range *range, struct wb_pageid id)
{
    return (id.hi & wb_catalog_range_mask(range)) == range->prefix && !wb_cells_has(&range->gaps, wb_cell_of(id.hi));
}

/* Whether it obeys the rules above; what was read from a file may not. */
bool wb_catalog_range_is_valid(const struct wb_catalog_range *range);

bool wb_catalog_range_equal(const struct wb_catalog_range *a, const struct wb_catalog_range *b);

/* By prefix, then bits, then gaps: a range comes before those inside it. */
int wb_catalog_range_compare(const struct wb_catalog_range *a, const struct wb_catalog_range *b);

/* Whether outer has all ids of inner. */
bool wb_catalog_range_within(const struct wb_catalog_range *inner, const struct wb_catalog_range *outer);

/*
 * The range of all ids in these cells, which must not be none. Its prefix is the longest one with a multiple of `step`
 * bits that all of them have.
 */
struct wb_catalog_range wb_catalog_range_of_cells(const struct wb_cells *cells, uint32_t step);

/* The cells that a range has ids of. */
void wb_catalog_range_cells(const struct wb_catalog_range *range, struct wb_cells *cells_out);

/* Takes away all ids that are not in these cells. Returns false, and changes nothing, if none would be left. */
bool wb_catalog_range_keep(struct wb_catalog_range *range, const struct wb_cells *cells);

/* The part with the ids that begin with the first `bits` bits of hi. Returns false if there are none. */
bool wb_catalog_range_part(const struct wb_catalog_range *range, uint64_t hi, uint32_t bits,
                           struct wb_catalog_range *part_out);

/* ---- counting, in steps of pageid.hi ---------------------------------------------------------------------- */

/* How many values of pageid.hi it has, and how many of them are less than hi. */
unsigned __int128 wb_catalog_range_size(const struct wb_catalog_range *range);
unsigned __int128 wb_catalog_range_before(const struct wb_catalog_range *range, uint64_t hi);

/* The value that has so many before it, fewer than the size. */
uint64_t wb_catalog_range_at(const struct wb_catalog_range *range, uint64_t before);

/* The first and the last one. */
uint64_t wb_catalog_range_first(const struct wb_catalog_range *range);
uint64_t wb_catalog_range_last(const struct wb_catalog_range *range);

#endif
