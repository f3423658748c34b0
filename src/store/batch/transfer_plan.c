/*
 * transfer_plan.c - the first steps of a transfer: lists the pages that wait, and finds out which of them readers have
 * already. Reads catalogs only. The list takes 64 bytes for each page that waits.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"
#include "os/clock.h"
#include "store/batch/transfer.h"

#include <stdlib.h>

static int list_page(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_transfer *t = context;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    bool involved = entry->history || entry->floor_ms != INT64_MIN;
    struct wb_transfer_page page = {
        .id = id,
        .content = entry->content,
        .time_ms = entry->time_ms,
        .site = entry->site,
        .body_bytes = entry->body_bytes,
        .stored_bytes = entry->stored_bytes,
        .status = entry->status,
        .lifetime = entry->lifetime,
        .lifetime_count = entry->lifetime_count,
        .slot = entry->place.slot,
        .versions = true,
        .involved = involved,
    };
    return wb_vec_push(&t->pages, page);
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

static int list_site(void *context, struct wb_slice site, uint64_t pages)
{
    struct wb_transfer *t = context;
    struct wb_transfer_site listed = {wb_hash64(site.ptr, site.len), t->names.len, site.len, 0};
    int err = wb_buf_append_slice(&t->names, site);
    uint8_t digits[8];

    /* Two kinds of keys are not the name of a site: catalog_sites.c. Either has the hash of a name, and can be a key.
     */
    if (wb_slice_equal(site, WB_SLICE_LIT("-")))
        listed.hash = wb_hash64("", 0);
    else if (site.len == 17 && site.ptr[0] == '#' &&
             wb_hex_decode(wb_slice(site.ptr + 1, site.len - 1), digits, sizeof digits))
        listed.hash = wb_get64_be(digits);
    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    (void)pages;
    return err < 0 ? err : wb_vec_push(&t->sites, listed);
}

static int compare_sites(const void *a, const void *b)
{
    const struct wb_transfer_site *x = a, *y = b;

    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

int wb_transfer_list_sites(struct wb_transfer *t)
{
    int err = wb_catalog_site_each(&t->waiting, list_site, t);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    if (err == 0 && t->sites.count > 1)
        qsort(t->sites.items, t->sites.count, sizeof *t->sites.items, compare_sites);
    return err;
}

struct wb_transfer_site *wb_transfer_site(struct wb_transfer *t, uint64_t hash)
{
    struct wb_transfer_site key = {.hash = hash};

    WB_CHECK(t->sites.items || t->sites.count == 0);
    return t->sites.count ? bsearch(&key, t->sites.items, t->sites.count, sizeof key, compare_sites) : NULL;
}

struct wb_slice wb_transfer_site_name(const struct wb_transfer *t, const struct wb_transfer_site *site)
{
    WB_CHECK(site->name + site->len <= t->names.len);
    return wb_slice(t->names.ptr + site->name, site->len);
}

int wb_transfer_intersect(struct wb_transfer *t)
{
    struct wb_catalog_txn txn = {0};
    struct wb_catalog_entry entry;
    struct wb_catalog_summary summary = {0};
    int64_t now_ms = wb_clock_wall_ms();
    int err = wb_catalog_txn_read(t->to->catalog, &txn);

    WB_CHECK(t->known == 0);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    t->read_revisits = summary.revisits;
    for (size_t i = 0; i < t->pages.count && err == 0; i++) {
        WB_CHECK(i == 0 || compare_pages(&t->pages.items[i - 1], &t->pages.items[i]) < 0);
        err = wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, t->pages.items[i].id, &entry);
        struct wb_transfer_page *page = &t->pages.items[i];
        t->known += err == 0;
        /* Clear cases only: neither times that cannot be, nor pages that are gone but have a past. */
        page->certain = err == 0 ? page->content != entry.content && page->time_ms > entry.time_ms &&
                                       !wb_store_time_is_ahead(entry.time_ms, now_ms) && page->time_ms > entry.floor_ms
                                 : err == WB_E_NOTFOUND && summary.gone == 0;
        page->known = err == 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
        if (err == 0 && i % 4096 == 0)
            err = wb_transfer_progress(t);
    }
    wb_catalog_txn_abort(&txn);
    return err;
}

struct wb_transfer_page *wb_transfer_find(const struct wb_transfer *t, struct wb_pageid id)
{
    struct wb_transfer_page key = {.id = id};

    WB_CHECK(t->pages.items || t->pages.count == 0);
    return t->pages.count ? bsearch(&key, t->pages.items, t->pages.count, sizeof key, compare_pages) : NULL;
}
