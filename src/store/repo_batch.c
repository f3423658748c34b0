/*
 * repo_batch.c - reads many pages at once. All places are looked up first, then the pages are read in the
 * order of the disk, so that each block is read once however its pages are asked for.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/repo.h"

#include <stdlib.h>

enum { BATCH_MAX = 4096 }; /* pages whose places are known at a time */

struct batch_item {
    size_t index; /* in the caller's list */
    struct wb_catalog_entry entry;
    int err;
};

static int compare_items(const void *a, const void *b)
{
    const struct wb_catalog_place *x = &((const struct batch_item *)a)->entry.place;
    const struct wb_catalog_place *y = &((const struct batch_item *)b)->entry.place;

    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->logical != y->logical)
        return x->logical < y->logical ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

struct batch {
    struct wb_repo *repo;
    const struct wb_pageid *ids;
    const struct wb_store_when *when;
    struct batch_item *items;
    size_t count;
};

/* Reads the page of one item and passes it on. */
static int pass_item(struct batch *b, struct batch_item *item, struct wb_buf *memory, wb_store_each_page each,
                     void *context)
{
    struct wb_pageid id = b->ids[item->index];
    struct wb_page page = {0};
    int err = item->err;

    WB_CHECK(memory != NULL);
    if (err == 0)
        err = wb_repo_read_entry(b->repo, id, &item->entry, &page, memory);
    if (err == WB_E_CORRUPT && item->err == 0) { /* it may have been moved since we looked it up */
        err = wb_repo_find(b->repo, id, b->when, &item->entry);
        if (err == 0)
            err = wb_repo_read_entry(b->repo, id, &item->entry, &page, memory);
    }
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_CORRUPT && err != WB_E_DOWN)
        return err;
    return each(context, item->index, err, err == 0 ? &page : NULL);
}

int wb_repo_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t count,
                     const struct wb_store_when *when, wb_store_each_page each, void *context)
{
    struct batch b = {.repo = wb_repo_of(store), .ids = ids, .when = when};
    struct wb_buf memory = WB_BUF_INIT;
    int err = 0;

    WB_CHECK(count > 0);
    WB_CHECK(each != NULL);
    b.items = wb_alloc((count < BATCH_MAX ? count : BATCH_MAX) * sizeof *b.items);
    if (!b.items)
        return WB_E_NOMEM;
    for (size_t at = 0; at < count && err == 0; at += b.count) {
        b.count = count - at < BATCH_MAX ? count - at : BATCH_MAX;
        for (size_t i = 0; i < b.count && err == 0; i++) {
            b.items[i] = (struct batch_item){.index = at + i};
            err = wb_repo_find(b.repo, ids[at + i], when, &b.items[i].entry);
            b.items[i].err = err;
            err = err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
        }
        if (err == 0)
            qsort(b.items, b.count, sizeof *b.items, compare_items);
        for (size_t i = 0; i < b.count && err == 0; i++)
            err = pass_item(&b, &b.items[i], &memory, each, context);
    }
    wb_buf_release(&memory);
    wb_free(b.items);
    return err;
}
