/*
 * transfer_plan.c - the first steps of a transfer: lists the pages that wait, and finds out which of them readers have
 * already. Reads catalogs only. The list takes 64 bytes for each page that waits.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"
#include "os/clock.h"
#include "move/transfer.h"

#include <stdlib.h>

enum {
    PROGRESS_PAGES = 4096,
    PART_PAGES = 2,   /* in a part of the list, if ids are spread evenly */
    WORTH_A_WALK = 8, /* so many rows are passed in the time in which one is found */
};

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
    int err = wb_vec_reserve(&t->pages, (size_t)wb_catalog_count(&t->waiting, WB_CATALOG_PAGES));

    if (err == 0)
        err = wb_catalog_entry_each(&t->waiting, list_page, t);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    events.with_versions = t->pages.count;
    if (err == 0)
        err = wb_catalog_event_each(&t->waiting, list_event, &events);
    t->revisits = wb_catalog_count(&t->waiting, WB_CATALOG_REVISITS);
    if (err == 0 && t->pages.count > events.with_versions)
        qsort(t->pages.items, t->pages.count, sizeof *t->pages.items, compare_pages);
    return err < 0 ? err : wb_transfer_divide(t);
}

static int list_site(void *context, struct wb_slice site, uint64_t pages)
{
    struct wb_transfer *t = context;
    struct wb_transfer_site listed = {.hash = wb_hash64(site.ptr, site.len), .name = t->names.len, .len = site.len};
    int err = wb_buf_append_slice(&t->names, site);
    uint64_t as_name = listed.hash;
    uint8_t digits[8];

    /* Two kinds of keys are not the name of a site: catalog_sites.c. Either has the hash of a name, and can be a key.
     */
    if (wb_slice_equal(site, WB_SLICE_LIT("-")))
        listed.hash = wb_hash64("", 0);
    else if (site.len == 17 && site.ptr[0] == '#' &&
             wb_hex_decode(wb_slice(site.ptr + 1, site.len - 1), digits, sizeof digits))
        listed.hash = wb_get64_be(digits);
    listed.named = listed.hash == as_name;
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

/* ---- the intersection -------------------------------------------------------------------------------------- */

/* An intersection under way. */
struct intersecting {
    struct wb_transfer *t;
    bool gone; /* some pages on the read nodes are gone, but have a past */
    int64_t now_ms;
    size_t next; /* the page of the list that is compared next */
};

/* Judges a page of the list; entry is that of the read nodes, or NULL. */
static void judge(struct intersecting *i, struct wb_transfer_page *page, const struct wb_catalog_entry *entry)
{
    WB_CHECK(!page->known);
    page->known = entry != NULL;
    i->t->known += page->known;
    /* Clear cases only: neither times that cannot be, nor pages that are gone but have a past. */
    page->certain = entry ? page->content != entry->content && page->time_ms > entry->time_ms &&
                                !wb_store_time_is_ahead(entry->time_ms, i->now_ms) && page->time_ms > entry->floor_ms
                          : !i->gone;
}

/* Looks up each of a few pages. */
static int look_up_each(struct intersecting *i, struct wb_catalog_txn *txn)
{
    struct wb_catalog_entry entry;
    int err = 0;

    WB_CHECK(txn->kind == WB_CATALOG_TXN_HELD);
    for (; i->next < i->t->pages.count && err == 0; i->next++) {
        struct wb_transfer_page *page = &i->t->pages.items[i->next];
        err = wb_catalog_entry_get(txn, page->id, &entry);
        if (err == 0 || err == WB_E_NOTFOUND)
            judge(i, page, err == 0 ? &entry : NULL);
        err = err == WB_E_NOTFOUND ? 0 : err;
        if (err == 0 && i->next % PROGRESS_PAGES == 0)
            err = wb_transfer_progress(i->t);
    }
    return err;
}

/* A page of the read nodes: those of the list that come before it are not there. Both are in the order of ids. */
static int meet(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct intersecting *i = context;
    struct wb_transfer *t = i->t;
    int order = 1, err = 0;

    WB_CHECK(i->next <= t->pages.count);
    while (i->next < t->pages.count && (order = wb_pageid_compare(t->pages.items[i->next].id, id)) <= 0) {
        judge(i, &t->pages.items[i->next], order == 0 ? entry : NULL);
        if (i->next++ % PROGRESS_PAGES == 0)
            err = wb_transfer_progress(t);
        if (order == 0 || err < 0)
            break;
    }
    return err < 0 ? err : i->next == t->pages.count; /* the rows behind the list do not matter */
}

int wb_transfer_intersect(struct wb_transfer *t)
{
    struct intersecting i = {.t = t, .now_ms = wb_clock_wall_ms()};
    struct wb_catalog_summary summary = {0};
    struct wb_catalog_txn txn = {0};
    int err = wb_catalog_txn_read(t->to->catalog, &txn);

    WB_CHECK(t->known == 0);
    for (size_t k = 1; k < t->pages.count; k++)
        WB_CHECK(compare_pages(&t->pages.items[k - 1], &t->pages.items[k]) < 0);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    t->read_revisits = summary.revisits;
    i.gone = summary.gone > 0;
    /* To pass a row takes less time than to find one. */
    bool few = err == 0 && t->pages.count < wb_catalog_count(&txn, WB_CATALOG_PAGES) / WORTH_A_WALK;
    if (err == 0)
        err = few ? look_up_each(&i, &txn) : wb_catalog_entry_each(&txn, meet, &i);
    err = err > 0 ? 0 : err;
    for (; i.next < t->pages.count && err == 0; i.next++)
        judge(&i, &t->pages.items[i.next], NULL);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* ---- finding a page ---------------------------------------------------------------------------------------- */

/* The part of the list in which a page with this id is. */
static size_t part_of(const struct wb_transfer *t, struct wb_pageid id)
{
    WB_CHECK(t->part_bits > 0 && t->part_bits < 64);
    return (size_t)(id.hi >> (64 - t->part_bits));
}

int wb_transfer_divide(struct wb_transfer *t)
{
    size_t parts, part = 0;

    WB_CHECK(t->pages.count < UINT32_MAX);
    for (t->part_bits = 1; t->part_bits < 31 && (size_t)PART_PAGES << t->part_bits < t->pages.count;)
        t->part_bits++;
    parts = (size_t)1 << t->part_bits;
    wb_vec_clear(&t->starts);
    if (wb_vec_reserve(&t->starts, parts + 1) < 0)
        return WB_E_NOMEM;
    for (size_t i = 0; i < t->pages.count; i++)
        for (size_t mine = part_of(t, t->pages.items[i].id); part <= mine; part++)
            t->starts.items[part] = (uint32_t)i;
    for (; part <= parts; part++)
        t->starts.items[part] = (uint32_t)t->pages.count;
    t->starts.count = parts + 1;
    return 0;
}

void wb_transfer_foresee(const struct wb_transfer *t, struct wb_pageid id)
{
    WB_CHECK(t->starts.count > 0);
    __builtin_prefetch(t->pages.items + t->starts.items[part_of(t, id)]);
}

struct wb_transfer_page *wb_transfer_find(const struct wb_transfer *t, struct wb_pageid id)
{
    WB_CHECK(t->starts.count > 0);

    size_t part = part_of(t, id), low = t->starts.items[part], high = t->starts.items[part + 1];

    /* Ids are hashes, so there are few pages in a part; but somebody may have chosen them. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = wb_pageid_compare(t->pages.items[middle].id, id);
        if (order == 0)
            return &t->pages.items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
