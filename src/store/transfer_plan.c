/*
 * transfer_plan.c - the first steps of a transfer: lists the pages that wait, and finds out which of them readers have
 * already. Reads catalogs only. The list takes 24 bytes for each page that waits.
 */
#include "base/check.h"
#include "store/transfer.h"

#include <stdlib.h>

static int list_page(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_transfer *t = context;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    bool involved = entry->history || entry->floor_ms != INT64_MIN;
    return wb_vec_push(&t->pages, (struct wb_transfer_page){.id = id, .versions = true, .involved = involved});
}

/* Events come in the order of ids; those of pages that have no version are put behind the others, and sorted later. */
struct event_listing {
    struct wb_transfer *t;
    size_t with_versions; /* the number of pages that have versions */
};

static int list_event(void *context, const struct wb_catalog_event *event)
{
    struct event_listing *l = context;
    struct wb_transfer *t = l->t;
    size_t low = 0, high = l->with_versions;

    WB_CHECK(t->pages.count >= l->with_versions);
    if (event->kind == WB_CATALOG_EVENT_NAME)
        return 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (wb_pageid_compare(t->pages.items[middle].id, event->id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct wb_transfer_page *last = t->pages.count ? &t->pages.items[t->pages.count - 1] : NULL;
    if (low < l->with_versions && wb_pageid_equal(t->pages.items[low].id, event->id))
        t->pages.items[low].involved = true;
    else if (t->pages.count == l->with_versions || !wb_pageid_equal(last->id, event->id))
        return wb_vec_push(&t->pages, (struct wb_transfer_page){.id = event->id, .involved = true});
    return 0;
}

static int compare_pages(const void *a, const void *b)
{
    return wb_pageid_compare(((const struct wb_transfer_page *)a)->id, ((const struct wb_transfer_page *)b)->id);
}

int wb_transfer_list(struct wb_transfer *t)
{
    struct event_listing events = {.t = t};
    int err = wb_catalog_entry_each(&t->waiting, WB_CATALOG_PAGES, list_page, t);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    events.with_versions = t->pages.count;
    if (err == 0)
        err = wb_catalog_event_each(&t->waiting, list_event, &events);
    t->revisits = wb_catalog_count(&t->waiting, WB_CATALOG_REVISITS);
    if (err == 0 && t->pages.count > events.with_versions)
        qsort(t->pages.items, t->pages.count, sizeof *t->pages.items, compare_pages);
    return err;
}

int wb_transfer_intersect(struct wb_transfer *t)
{
    struct wb_catalog_txn txn = {0};
    struct wb_catalog_entry entry;
    int err = wb_catalog_txn_read(t->to->catalog, &txn);

    WB_CHECK(t->known == 0);
    for (size_t i = 0; i < t->pages.count && err == 0; i++) {
        WB_CHECK(i == 0 || compare_pages(&t->pages.items[i - 1], &t->pages.items[i]) < 0);
        err = wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, t->pages.items[i].id, &entry);
        t->pages.items[i].known = err == 0;
        t->known += err == 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
        if (err == 0 && i % 4096 == 0)
            err = wb_transfer_progress(t);
    }
    wb_catalog_txn_abort(&txn);
    return err;
}

const struct wb_transfer_page *wb_transfer_find(const struct wb_transfer *t, struct wb_pageid id)
{
    struct wb_transfer_page key = {.id = id};

    WB_CHECK(t->pages.items || t->pages.count == 0);
    return t->pages.count ? bsearch(&key, t->pages.items, t->pages.count, sizeof key, compare_pages) : NULL;
}
