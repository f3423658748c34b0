/*
 * dispatch.c - which request a site makes when it is its turn:
 *
 *   refused site         its queue is reported and the site closed (names.c)
 *   address expired      its name is looked up (names.c)
 *   favour for another   that other site's robots.txt is requested (rules.c)
 *   rules not known      its own robots.txt is requested (rules.c)
 *   otherwise            the next URL of its queue that may be asked for
 *
 * This file decides what is asked for. It never decides what an answer means.
 */
#include "base/check.h"
#include "crawl/worker.h"

#include <event2/event.h>

enum {
    SKIPS_MAX = 2000,     /* URLs of a queue looked at before other sites get their turn */
    RETRY_MS = 100,       /* when requests under way may reach --max-pages */
};

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* Reserves one of --max-pages for this errand. Returns false if all are stored or reserved. */
static bool reserve(struct wb_worker *w, struct wb_errand *errand)
{
    WB_CHECK(!errand->reserved);
    uint64_t max = w->plan->options->max_pages;

    if (!max)
        return true;
    if (atomic_fetch_add(&w->tally->reserved, 1) >= max) {
        atomic_fetch_sub(&w->tally->reserved, 1);
        return false;
    }
    atomic_fetch_add(&w->mine->reserved, 1);
    errand->reserved = true;
    return true;
}

static bool fetches_used_up(const struct wb_worker *w)
{
    uint64_t max = w->plan->options->max_fetches;

    return max && atomic_load(&w->tally->fetches) >= max;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* What becomes of an item of the queue. */
enum item_fate {
    ITEM_SKIPPED, /* there is no request for it: try the next item */
    ITEM_SENT,    /* a request for it is under way */
    ITEM_PUT_OFF, /* it is back in the queue, and the site waits */
    ITEM_CLOSED,  /* the site turned out to be an alias: it is closed, and its memory is gone */
};

/*
 * Looks for the version that we have. ITEM_SENT: the page must be requested, with the validators of our version if
 * there is one. ITEM_SKIPPED: our version is fresh enough, and its links were followed. ITEM_CLOSED, or an error.
 */
static int look_in_store(struct wb_errand *errand, struct wb_fetch_request *request)
{
    WB_CHECK(errand->key.len > 0 && !errand->known);
    struct wb_worker *w = errand->worker;
    struct wb_page page;
    int err = wb_store_get(w->repo.store, errand->id, &page, &w->scratch.old_page);

    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_DOWN)
        return ITEM_SENT;
    if (err < 0)
        return err;
    int64_t fresh_ms = w->plan->options->fresh_ms, now = wb_clock_now_ms();
    /* A page from the future has no age: the clock was wrong when it was fetched, or it is wrong now. */
    bool fresh = fresh_ms && page.time_ms + fresh_ms > now && page.time_ms <= now + WB_PATIENCE_MS;
    /* This visit has fetched it, because another page needs it; only its links are of interest now. */
    bool unread = wb_seen_marked(&errand->site->unread, errand->id);
    if (fresh && wb_http_status_redirects(page.status)) {
        err = wb_pagework_reuse_redirect(errand, &page);
        return err < 0 ? err : err == 1 ? ITEM_SENT : ITEM_SKIPPED;
    }
    if (fresh || unread) {
        err = wb_pagekeep_reuse(errand, &page);
        return err < 0 ? err : err == 1 ? ITEM_CLOSED : ITEM_SKIPPED;
    }
    errand->known = true;
    memcpy(errand->md5, page.md5, sizeof errand->md5);
    if (page.truncated || page.status != 200)
        return ITEM_SENT;
    wb_http_header(page.head, "etag", &request->etag);
    wb_http_header(page.head, "last-modified", &request->modified);
    return ITEM_SENT;
}

/* Whether an item may be asked for: not dealt with yet, not taken down, allowed by robots.txt. 1, 0 or an error. */
static int check_item(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    const struct wb_item *item = &errand->item;
    struct wb_slice url = wb_buf_slice(&errand->url);
    struct wb_robots_verdict verdict = {.allowed = true};

    if (item->kind != WB_ITEM_PROBE && wb_seen_marked(&site->seen, errand->id))
        return 0;
    if (item->kind == WB_ITEM_SITEMAP && !site->sitemaps_due)
        return 0;
    int barred = wb_errand_barred(errand), err = 0;
    if (barred < 0)
        return barred;
    if (site->rules.robots)
        wb_robots_check(site->rules.robots, url, &verdict);
    /* What a page needs may itself need something: a style sheet is read for that, whatever its type. */
    bool wanted = item->kind != WB_ITEM_PAGE || item->depth.need ||
                  wb_crawl_types_promise(&w->plan->options->types, item->path);
    if (verdict.allowed && !barred && wanted)
        return 1;
    wb_news_mark(w, site, errand->id, true);
    if (item->kind == WB_ITEM_PROBE)
        site->root.probing = false;
    else if (barred)
        wb_eventlog_skip(w, url, "expunged");
    else if (!wanted)
        wb_eventlog_skip(w, url, "unwanted");
    else if (item->kind == WB_ITEM_PAGE)
        err = wb_pagework_forbidden(errand);
    else
        wb_eventlog_skip(w, url, "robots");
    if (err == 0 && item->kind == WB_ITEM_PAGE && wb_slice_equal(item->path, WB_SLICE_LIT("/")))
        err = wb_visit_root(w, site, false);
    return err;
}

/* Reads the URL of an item into the errand. WB_E_NOMEM, or another error if it is not a URL that has a key. */
static int aim(struct wb_errand *errand, const struct wb_item *item)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && !errand->rules);
    struct wb_worker *w = errand->worker;

    int err = wb_site_url(errand->site, item->https, item->path, &errand->url);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&errand->url), NULL, &w->scratch.url);
    if (err == 0)
        err = wb_url_key(&w->scratch.url, &errand->key);
    if (err < 0)
        return err;
    errand->id = wb_pageid_of_key(wb_buf_slice(&errand->key));
    errand->item = *item;
    return 0;
}

/* Requests under way may use up the limit: the item waits until their outcome is known. */
static int put_off(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    int err = wb_item_push(w->repo.spill, &site->again, &errand->item);

    site->next_ms = wb_clock_now_ms() + RETRY_MS;
    wb_dispatch_later(w, site);
    return err < 0 ? err : ITEM_PUT_OFF;
}

/* Makes the request of an item, or decides against it. Returns an enum item_fate or an error. */
static int start_item(struct wb_errand *errand, struct wb_item *item)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_fetch_request request = {.address = site->address};

    int err = aim(errand, item);
    if (err < 0)
        return err == WB_E_NOMEM ? err : ITEM_SKIPPED;
    err = check_item(errand);
    if (err <= 0)
        return err < 0 ? err : ITEM_SKIPPED;
    if (item->kind == WB_ITEM_PAGE) {
        err = look_in_store(errand, &request);
        if (err != ITEM_SENT)
            return err;
        err = reserve(w, errand) ? wb_tally_count_fetch(w->tally, w->plan->options->max_fetches, &w->plan->fetches) : 0;
        if (err <= 0)
            return err < 0 ? err : put_off(errand);
    }
    request.url = wb_buf_slice(&errand->url);
    errand->item.path = wb_slice(errand->url.ptr + errand->url.len - item->path.len, item->path.len);
    if (item->kind == WB_ITEM_SITEMAP)
        site->sitemaps++;
    wb_errand_send(errand, &request);
    return ITEM_SENT;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

/* The queue is empty: takes more seeds from the dispenser, or ends the visit. */
static void queue_empty(struct wb_worker *w, struct wb_site *site)
{
    uint64_t count = 0;

    WB_CHECK(site->queue.count == 0 && site->again.count == 0);
    if (site->held) {
        wb_errand_take_arrivals(w);
        wb_dispatch_later(w, site);
        return;
    }
    if (site->in_flight || site->rules.away)
        return;
    int err = wb_visit_seeds(w, site, &count);
    if (err < 0)
        wb_worker_fail(w, err);
    else if (count)
        wb_dispatch_later(w, site);
    else
        wb_visit_close(w, site, WB_SITE_DONE, "", NULL);
}

/* Whether the site may make one more request now. Closes a site that has used up its budget. */
static bool may_start(struct wb_worker *w, struct wb_site *site)
{
    /* Several requests at a time only if the option asks for that, and there is no interval to keep. */
    if (site->in_flight >= (site->page_delay_ms == 0 ? w->plan->options->connections : 1))
        return false;
    if (site->held && site->pages + site->held + site->in_flight >= site->budget)
        wb_errand_take_arrivals(w);
    if (site->pages >= site->budget) {
        if (!site->in_flight)
            wb_visit_close(w, site, WB_SITE_DONE, "budget", NULL);
        return false;
    }
    /* Requests under way may use up the budget. If they do not, their end puts the site back into the frontier. */
    if (site->pages + site->in_flight >= site->budget)
        return false;
    return !((site->root.probing || site->root.awaited) && site->in_flight);
}

/* Takes items from the queue until one is sent or put off, or the site has had its share. */
static int start_next(struct wb_errand *errand, bool *empty_out)
{
    struct wb_worker *w = errand->worker;
    struct wb_item item;
    int fate = ITEM_SKIPPED;

    *empty_out = false;
    for (int i = 0; i < SKIPS_MAX && fate == ITEM_SKIPPED; i++) {
        int got = wb_site_pop(errand->site, w->repo.spill, &w->scratch.item, &item);
        if (got <= 0) {
            *empty_out = got == 0;
            return got;
        }
        fate = start_item(errand, &item);
    }
    return fate;
}

static void start_page(struct wb_worker *w, struct wb_site *site)
{
    struct wb_errand *errand;
    bool empty = false;

    WB_CHECK(!site->guest && !site->rules.away && site->rules.state == WB_RULES_KNOWN);
    if (!may_start(w, site))
        return;
    errand = wb_errand_new(w, site);
    if (!errand) {
        wb_worker_fail(w, WB_E_NOMEM);
        return;
    }
    int fate = start_next(errand, &empty);
    if (fate == ITEM_SENT) {
        if (site->in_flight < w->plan->options->connections && site->page_delay_ms == 0 && !site->root.probing &&
            !site->root.awaited)
            wb_dispatch_later(w, site);
        return;
    }
    wb_errand_free(errand);
    if (fate < 0)
        wb_worker_fail(w, fate);
    else if (empty)
        queue_empty(w, site);
    else if (fate == ITEM_SKIPPED)
        wb_dispatch_later(w, site);
}

/* ---- sites that were taken down ---------------------------------------------------------------------------------- */

enum search {
    SEARCH_UNFINISHED, /* not among the URLs looked at so far */
    SEARCH_FOUND,
    SEARCH_NONE,       /* the queue has none */
};

/*
 * Looks in the queue of a barred site for a page that is allowed nevertheless, and puts it in front. Reports the barred
 * ones. Returns an enum search or an error.
 */
static int find_allowed(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    struct wb_item item;
    int got = 1;

    for (int i = 0; i < SKIPS_MAX && got > 0; i++) {
        got = wb_site_pop(errand->site, w->repo.spill, &w->scratch.item, &item);
        if (got <= 0)
            break;
        int err = aim(errand, &item);
        if (err == WB_E_NOMEM)
            return err;
        if (err < 0)
            continue;
        err = wb_errand_barred(errand);
        if (err >= 0)
            err = err == 0 ? 1 : check_item(errand); /* writes the line of a barred page */
        if (err < 0)
            return err;
        if (err > 0)
            return (err = wb_item_push(w->repo.spill, &errand->site->again, &item)) < 0 ? err : SEARCH_FOUND;
    }
    return got < 0 ? got : got == 0 ? SEARCH_NONE : SEARCH_UNFINISHED;
}

/*
 * A site that was taken down is not even asked for its robots.txt, unless a page of it is allowed. Returns true if the
 * site was dealt with here.
 */
static bool pass_barred(struct wb_worker *w, struct wb_site *site)
{
    const struct wb_pageid no_page = {0, 0};
    int barred = site->guest ? 0 : wb_store_barred(w->repo.store, no_page, wb_slice_str(site->name));
    struct wb_errand *errand = NULL;

    if (barred == 0)
        return false;
    int found = barred;
    if (barred > 0) {
        errand = wb_errand_new(w, site);
        found = errand ? find_allowed(errand) : WB_E_NOMEM;
    }
    if (errand)
        wb_errand_free(errand);
    if (found < 0)
        wb_worker_fail(w, found);
    else if (found == SEARCH_NONE)
        queue_empty(w, site);
    else if (found == SEARCH_UNFINISHED)
        wb_dispatch_later(w, site);
    return found != SEARCH_FOUND;
}

/* ---- orders of an operator --------------------------------------------------------------------------------------- */

/*
 *   pause   wb_dispatch() begins no request while it lasts
 *   delay   the site's interval becomes at least that long; robots.txt and the seeds may still ask for a longer one
 *   stop    the site is given back once its requests under way have ended. Its visit stays unfinished: the dispenser
 *           lets it wait for longer than any crawl should need, and the next crawl ends that wait
 */

void wb_dispatch_obey_site(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    const struct wb_tally_order *order = wb_tally_order_find(&w->tally->orders, site->key);
    int64_t before_ms = site->page_delay_ms;

    if (!order)
        return;
    if (atomic_load(&order->stopped))
        site->stopped = w->obeyed.stopped = true;
    site->ordered_delay_ms = atomic_load(&order->delay_ms);
    wb_rules_set_delays(w, site);
    /* The wait that has begun gets longer, too. A request under way sets next_ms by the new interval when it ends. */
    if (site->page_delay_ms > before_ms && !site->in_flight)
        site->not_before_ms = site->next_ms + site->page_delay_ms - before_ms;
}

/* A stopped site that can be given back now; NULL: there is none. *left_out: some others cannot yet. */
static struct wb_site *find_stopped(struct wb_worker *w, bool *left_out)
{
    struct wb_site *found = NULL;

    *left_out = false;
    for (struct wb_site *site = NULL; !found && (site = wb_site_set_next(&w->sites, site));) {
        if (!site->stopped)
            continue;
        if (site->in_flight || site->held || site->resolving)
            *left_out = true;
        else
            found = site;
    }
    return found;
}

static void give_back(struct wb_worker *w, struct wb_site *site)
{
    if (!site->guest) /* a guest returns to the state that it came from */
        site->next_ms = wb_clock_now_ms() + WB_BACK_OFF_MAX_MS;
    wb_visit_close(w, site, WB_SITE_WAITING, WB_TALLY_STOPPED, NULL);
}

void wb_dispatch_obey(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && !w->loop.dispatching);
    unsigned changes = atomic_load(&w->tally->orders.changes);
    bool left = true;

    if (changes != w->obeyed.changes)
        for (struct wb_site *site = NULL; (site = wb_site_set_next(&w->sites, site));)
            wb_dispatch_obey_site(w, site);
    w->obeyed.changes = changes;
    if (!w->obeyed.stopped)
        return;
    for (struct wb_site *site; w->failed.code == 0 && (site = find_stopped(w, &left));) {
        /* Those who wait for a robots.txt that leads here must not wait forever. This may close other sites. */
        if (site->favours)
            wb_rules_fail_favours(w, site, "stopped");
        else
            give_back(w, site);
    }
    w->obeyed.stopped = left;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/*
 * Whether the site has nothing to do before an answer comes. A site whose rules are asked for elsewhere does favours
 * meanwhile: if two robots.txt lead to each other, each site waits for a favour of the other.
 */
static bool must_wait(const struct wb_site *site)
{
    return site->resolving || (site->rules.away && !site->favours);
}

static void start_site(struct wb_worker *w, struct wb_site *site)
{
    int64_t now = wb_clock_now_ms();

    WB_CHECK(site->magic == WB_SITE_MAGIC && site->turn.at == 0 && site->next_ms <= now);
    if (must_wait(site) || fetches_used_up(w) || site->stopped)
        return; /* wb_dispatch_obey() gives a stopped site back */
    if (site->not_before_ms > now) {
        site->next_ms = site->not_before_ms;
        wb_dispatch_later(w, site);
        return;
    }
    if (site->refusal)
        wb_names_refuse_queue(w, site);
    else if (site->address_expires_ms <= now && !site->in_flight)
        wb_names_look_up(w, site);
    else if (wb_rules_next_favour(w, site))
        return;
    else if (site->rules.state == WB_RULES_UNKNOWN || site->rules.expires_ms <= now) {
        if (!site->in_flight && !pass_barred(w, site))
            wb_rules_ask(w, site);
    } else
        start_page(w, site);
}

void wb_dispatch_later(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    if (site->turn.at || must_wait(site))
        return;
    if (wb_frontier_put(&w->frontier, site) < 0)
        wb_worker_fail(w, WB_E_NOMEM);
}

static bool gives_way(void *context)
{
    const struct wb_errand *errand = context;

    WB_CHECK(errand->magic == WB_ERRAND_MAGIC);
    return errand->site->gives_way && !errand->favour;
}

void wb_dispatch_make_way(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && !w->loop.dispatching);
    int64_t now = wb_clock_now_ms();
    bool any = false;

    /* If it is us who hold a response up, its site is not slow. */
    if (!w->frontier.lined_up || w->plan->options->max_rate)
        return;
    for (struct wb_site *site = NULL; (site = wb_site_set_next(&w->sites, site));) {
        site->gives_way = wb_frontier_gives_way(&w->frontier, site, now);
        any |= site->gives_way;
    }
    if (any)
        wb_fetch_stop(w->fetcher, gives_way, "made way for other sites of the address");
}

/* Wakes the loop when the next site is due. */
static void set_timer(struct wb_worker *w)
{
    int64_t next = wb_frontier_next_ms(&w->frontier);

    WB_CHECK(w->failed.code < 0 || wb_frontier_exhausted(&w->frontier));
    if (next == INT64_MAX) {
        event_del(w->loop.due);
        return;
    }
    int64_t wait = next - wb_clock_now_ms();
    struct timeval tv = {wait > 0 ? wait / 1000 : 0, wait > 0 ? (wait % 1000) * 1000 : 0};
    event_add(w->loop.due, &tv);
}

/*
 * A careful worker makes one request at a time, because workers before it died and the parent wants to know over which
 * page. Its answer calls wb_dispatch() again.
 */
static bool one_is_enough(const struct wb_worker *w)
{
    return atomic_load(&w->mine->careful) && atomic_load(&w->mine->in_flight);
}

/* --max-rate is used up: waits before other requests begin. They would only fill the buffers of the network. */
static bool wait_for_pace(struct wb_worker *w)
{
    int64_t wait_us = wb_fetch_pace_wait_ns(&w->tally->pace) / 1000;
    struct timeval tv = {wait_us / 1000000, wait_us % 1000000};

    if (wait_us > 0)
        event_add(w->loop.due, &tv);
    return wait_us > 0;
}

void wb_dispatch(struct wb_worker *w)
{
    struct wb_site *site;

    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    if (w->loop.dispatching || w->loop.stopping || w->leases.lost || w->failed.code < 0 || wb_worker_slept(w))
        return;
    if (atomic_load(&w->tally->orders.paused)) {
        event_del(w->loop.due); /* the tick looks again */
        return;
    }
    if (wait_for_pace(w))
        return;
    w->loop.dispatching = true;
    while (w->failed.code == 0 && !one_is_enough(w) && (site = wb_frontier_pop(&w->frontier, wb_clock_now_ms())))
        start_site(w, site);
    wb_errand_warn_files(w);
    /* The loop sends these requests after we return. By then their records must be safe from our death, so that the
       process that continues the visit keeps the interval. */
    int err = w->uncommitted.journal_unflushed ? wb_journal_writer_flush(w->repo.journal) : 0;
    if (err < 0)
        wb_worker_fail(w, err);
    else
        w->uncommitted.journal_unflushed = false;
    w->loop.dispatching = false;
    if (!one_is_enough(w))
        set_timer(w);
}
