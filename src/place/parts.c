/*
 * parts.c - finds the segment of a place, after segments were split (docs/design/0040-splits.md).
 *
 * Nearly always, that is the segment whose number the place has, and one row of the catalog is read. Only if that one
 * does not have the page's id in its range, or is gone, we look among those that were split off from it. Their list
 * may be old: what it says is checked against the row. Two segments of one origin never have an id in common, so a row
 * that fits is the right one.
 */
#include "place/parts.h"
#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>

static int compare_parts(const void *a, const void *b)
{
    const struct wb_part *x = a, *y = b;

    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    return wb_catalog_range_compare(&x->range, &y->range);
}

uint32_t wb_parts_find(const struct wb_parts *parts, uint32_t origin, struct wb_pageid id)
{
    size_t low = 0, high = parts->count;

    WB_CHECK(origin > 0);
    while (low < high) { /* the first one of this origin */
        size_t middle = (low + high) / 2;
        if (parts->items[middle].origin < origin)
            low = middle + 1;
        else
            high = middle;
    }
    /* There are not many of one origin. They are in the order of their prefixes, of which several can have the id. */
    for (size_t i = low; i < parts->count; i++) {
        const struct wb_part *part = &parts->items[i];
        if (part->origin != origin || part->range.prefix > id.hi)
            break;
        if (wb_catalog_range_has(&part->range, id))
            return part->number;
    }
    return 0;
}

static int add_part(void *context, const struct wb_catalog_segment *row)
{
    struct wb_parts *parts = context;

    WB_CHECK(row->number > 0);
    WB_CHECK(wb_catalog_range_is_valid(&row->range));
    if (!row->origin && !row->split)
        return 0;
    return wb_vec_push(parts, (struct wb_part){wb_catalog_segment_origin(row), row->number, row->range});
}

int wb_parts_read(struct wb_catalog_txn *txn, struct wb_parts *parts)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    wb_vec_clear(parts);
    int err = wb_catalog_segment_each(txn, add_part, parts);
    if (err < 0)
        wb_vec_clear(parts);
    else if (parts->count > 1)
        qsort(parts->items, parts->count, sizeof *parts->items, compare_parts);
    return err;
}

/* Reads the row that the list names. *found_out: it is the one. */
static int try_list(struct wb_catalog_txn *txn, const struct wb_parts *parts, uint32_t origin, struct wb_pageid id,
                    struct wb_catalog_segment *row_out, bool *found_out)
{
    WB_CHECK(origin > 0);
    uint32_t number = wb_parts_find(parts, origin, id);
    int err = number ? wb_catalog_segment_get(txn, number, row_out) : WB_E_NOTFOUND;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    *found_out = err == 0 && wb_catalog_segment_origin(row_out) == origin && wb_catalog_range_has(&row_out->range, id);
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_parts_row_of(struct wb_catalog_txn *txn, struct wb_parts *parts, uint32_t origin, struct wb_pageid id,
                    struct wb_catalog_segment *row_out)
{
    WB_CHECK(origin > 0);
    bool found = false;
    int err = wb_catalog_segment_get(txn, origin, row_out);

    if (err == 0 && wb_catalog_range_has(&row_out->range, id))
        return 0;
    if (err == 0 || err == WB_E_NOTFOUND)
        err = try_list(txn, parts, origin, id, row_out, &found);
    if (err == 0 && !found)
        err = wb_parts_read(txn, parts);
    if (err == 0 && !found)
        err = try_list(txn, parts, origin, id, row_out, &found);
    if (err == 0 && !found)
        err = wb_catalog_corrupt(txn->catalog, WB_CATALOG_SEGMENTS, "a segment without a row");
    return err;
}
