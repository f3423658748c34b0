/*
 * capacity.c - a repository of limited size (run --capacity): who may come in, and who has to leave.
 *
 * generate asks about newcomers before a crawl; after it, what is too much is removed, the least valuable first:
 * from the store, then by records in the journal, from which webdb learns that nothing is stored of these pages. If it
 * is killed in between, the next update sees that they are not stored (reconcile.c).
 */
#include "cycle/capacity.h"
#include "base/check.h"
#include "base/error.h"
#include "cycle/rankscore.h"
#include "cycle/removal.h"
#include "os/stop.h"

#include <math.h>
#include <stdlib.h>

enum { PAGE_BYTES = 20000, BATCH_PAGES = 1000, PROGRESS_PAGES = 4096 };

static bool is_limited(const struct wb_capacity *capacity)
{
    return capacity->pages || capacity->bytes;
}

/* The bytes of an average page; a guess if nothing is stored. */
static uint64_t average(uint64_t pages, uint64_t bytes)
{
    return pages ? bytes / pages + 1 : PAGE_BYTES;
}

/* How many pages more have room. */
static uint64_t room_for(const struct wb_capacity *capacity, uint64_t pages, uint64_t bytes)
{
    uint64_t room = UINT64_MAX;

    if (capacity->pages)
        room = capacity->pages > pages ? capacity->pages - pages : 0;
    if (capacity->bytes) {
        uint64_t more = capacity->bytes > bytes ? (capacity->bytes - bytes) / average(pages, bytes) : 0;
        room = more < room ? more : room;
    }
    return room;
}

bool wb_capacity_full(const struct wb_capacity *capacity, uint64_t pages, uint64_t bytes)
{
    return is_limited(capacity) && room_for(capacity, pages, bytes) == 0;
}

bool wb_capacity_is_stored(const struct wb_webdb_page *page)
{
    return (page->has_content || page->location.len) && !(page->flags & WB_PAGE_LOADED);
}

bool wb_capacity_is_newcomer(const struct wb_webdb_page *page)
{
    return !wb_capacity_is_stored(page) && page->outcome != WB_OUTCOME_UNCHANGED;
}

/* ---- newcomers ------------------------------------------------------------------------------------------------- */

int wb_admission_open(struct wb_admission *admission, const struct wb_capacity *capacity, struct wb_store *store)
{
    struct wb_store_stat stat;

    *admission = (struct wb_admission){.room = 0};
    int err = wb_store_stat(store, &stat);
    if (err < 0)
        return err;
    admission->room = room_for(capacity, stat.pages, stat.bytes_pages);
    /* More than that cannot come in, even if all that is stored leaves. */
    admission->newcomers.max = admission->room + stat.pages;
    return 0;
}

void wb_admission_release(struct wb_admission *admission)
{
    wb_pick_release(&admission->newcomers);
    wb_vec_release(&admission->stored);
}

int wb_admission_stored(struct wb_admission *admission, const struct wb_webdb_page *page)
{
    return wb_vec_push(&admission->stored, isfinite(page->score) ? page->score : 0);
}

int wb_admission_offer(struct wb_admission *admission, const struct wb_webdb_page *page)
{
    double score = isfinite(page->score) ? page->score : 0;
    struct wb_pick_item item = {.number = page->number, .tier = WB_PICK_TIER_VALUE,
                                .value = ldexp(score, -(page->failures < 64 ? page->failures : 64))};

    WB_CHECK(wb_capacity_is_newcomer(page));
    return wb_pick_offer(&admission->newcomers, &item);
}

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int compare_items(const void *a, const void *b)
{
    return wb_pick_item_before(a, b) ? -1 : wb_pick_item_before(b, a);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const struct wb_pick_item *)a)->number, y = ((const struct wb_pick_item *)b)->number;

    return x < y ? -1 : x > y;
}

void wb_admission_decide(struct wb_admission *admission)
{
    struct wb_pick *new = &admission->newcomers;
    size_t admitted = 0;

    if (admission->stored.count)
        qsort(admission->stored.items, admission->stored.count, sizeof *admission->stored.items, compare_values);
    if (new->count)
        qsort(new->items, new->count, sizeof *new->items, compare_items);
    while (admitted < new->count) {
        size_t place = admitted < admission->room ? SIZE_MAX : admitted - (size_t)admission->room;
        if (place != SIZE_MAX && (place >= admission->stored.count ||
                                  !(new->items[admitted].value > admission->stored.items[place])))
            break;
        admitted++;
    }
    new->count = admitted;
    if (admitted)
        qsort(new->items, admitted, sizeof *new->items, compare_numbers);
}

bool wb_admission_has(const struct wb_admission *admission, uint64_t number)
{
    struct wb_pick_item key = {.number = number};

    return admission->newcomers.count && bsearch(&key, admission->newcomers.items, admission->newcomers.count,
                                                 sizeof key, compare_numbers);
}

/* ---- removing -------------------------------------------------------------------------------------------------- */

/* A stored page that may have to leave. */
struct evictable {
    double value;
    uint64_t number, bytes;
};

struct eviction {
    const char *dir;
    const struct wb_capacity *capacity;
    const struct wb_cycle_sink *sink;
    wb_evict_each each;
    void *context;
    struct wb_webdb *webdb;
    struct wb_removal removal;
    struct wb_rankscore scores;
    WB_VEC(struct evictable) pages; /* the least valuable first */
    size_t next;                    /* the first of them that was not looked at */
    uint64_t evicted;
};

static int compare_evictables(const void *a, const void *b)
{
    const struct evictable *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->number > y->number ? -1 : x->number < y->number;
}

static int go_on(struct eviction *e, uint64_t done)
{
    if (done % PROGRESS_PAGES)
        return 0;
    if (wb_stop_requested() || (e->sink->progress && !e->sink->progress(e->sink->context, "evicting", done, 0)))
        return wb_fail(WB_E_STOPPED, "stopped");
    return 0;
}

/* The ranks are no condition: without them, scores are those that webdb has. */
static int set_score(struct eviction *e, struct wb_webdb_page *page)
{
    int err = wb_rankscore_set(&e->scores, page);

    if (err < 0 && err != WB_E_NOMEM) {
        wb_rankscore_close(&e->scores);
        err = 0;
    }
    return err;
}

static int list_pages(struct eviction *e)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_count count;
    struct wb_webdb_page page;
    uint64_t walked = 0;
    int got = 0;

    wb_webdb_count(e->webdb, &count);
    if (wb_rankscore_open(&e->scores, e->dir, count.edition) < 0)
        wb_rankscore_close(&e->scores);
    int err = wb_webdb_pages(e->webdb, &pages);
    while (err == 0 && (got = wb_webdb_pages_next(pages, &page)) > 0) {
        err = go_on(e, walked++);
        if (err == 0)
            err = set_score(e, &page);
        struct evictable item = {isfinite(page.score) ? page.score : 0, page.number,
                                 page.has_content ? page.bytes : 0};
        if (err == 0 && wb_capacity_is_stored(&page))
            err = wb_vec_push(&e->pages, item);
    }
    wb_webdb_pages_close(pages);
    if (e->pages.count)
        qsort(e->pages.items, e->pages.count, sizeof *e->pages.items, compare_evictables);
    return err < 0 ? err : got;
}

/* 1: the page was stored, and leaves with the next commit. 0: it was not. */
static int evict_page(struct eviction *e, const struct evictable *item)
{
    struct wb_buf url = WB_BUF_INIT;
    struct wb_pageid id;
    int64_t stored_ms = 0;
    int there = 0, err = wb_webdb_page_url(e->webdb, item->number, &url);

    if (err == 0)
        err = wb_removal_id(&e->removal, wb_buf_slice(&url), &id);
    if (err == 0)
        err = wb_store_time(e->removal.store, id, &stored_ms);
    if (err == 0 && stored_ms > e->removal.now_ms) /* by a clock that was ahead: it is removed as of then */
        e->removal.now_ms = stored_ms;
    if (err == 0)
        err = wb_removal_store(&e->removal, id, wb_key_site(wb_buf_slice(&e->removal.key)), e->removal.now_ms);
    if (err > 0) {
        there = 1;
        err = wb_removal_expired(&e->removal, wb_buf_slice(&url));
        if (err == 0 && e->each)
            e->each(e->context, wb_buf_slice(&url), item->value);
    }
    wb_buf_release(&url);
    return err == WB_E_NOTFOUND ? 0 : err < 0 ? err : there;
}

/* Removes some of what is too much. *done_out: nothing is any more, or nothing is left to remove. */
static int evict_some(struct eviction *e, bool *done_out)
{
    struct wb_store_stat stat;
    int err = wb_store_stat(e->removal.store, &stat), there;
    uint64_t pages = stat.pages, bytes = stat.bytes_pages;

    *done_out = true;
    for (unsigned n = 0; err == 0 && n < BATCH_PAGES && e->next < e->pages.count; n++) {
        if (!(e->capacity->pages && pages > e->capacity->pages) && !(e->capacity->bytes && bytes > e->capacity->bytes))
            break;
        const struct evictable *item = &e->pages.items[e->next++];
        there = evict_page(e, item);
        err = there < 0 ? there : go_on(e, e->next);
        if (there <= 0)
            continue;
        pages--;
        bytes -= item->bytes < bytes ? item->bytes : bytes;
        e->evicted++;
        *done_out = false; /* the store says what that was good for */
    }
    return err < 0 ? err : wb_removal_commit(&e->removal);
}

int wb_evict(const char *dir, const struct wb_capacity *capacity, const struct wb_cycle_sink *sink, wb_evict_each each,
             void *context, uint64_t *evicted_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct eviction e = {.dir = dir, .capacity = capacity, .sink = sink ? sink : &quiet, .each = each,
                         .context = context};
    struct wb_store_stat stat = {.pages = 0};
    bool done = false;

    *evicted_out = 0;
    if (!is_limited(capacity))
        return 0;
    int err = wb_removal_open(dir, false, &e.removal);
    e.removal.reason = WB_EXPUNGE_EVICTED;
    if (err == 0)
        err = wb_store_stat(e.removal.store, &stat);
    bool over = (capacity->pages && stat.pages > capacity->pages) ||
                (capacity->bytes && stat.bytes_pages > capacity->bytes);
    if (err == 0 && over)
        err = wb_webdb_open(dir, &e.webdb);
    if (err == 0 && over)
        err = list_pages(&e);
    while (err == 0 && over && !done)
        err = evict_some(&e, &done);
    if (err == 0)
        err = wb_removal_noted(&e.removal);
    *evicted_out = e.evicted;
    wb_rankscore_close(&e.scores);
    wb_webdb_close(e.webdb);
    wb_removal_close(&e.removal);
    wb_vec_release(&e.pages);
    return err;
}
