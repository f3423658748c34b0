/*
 * errand.c - a request, from its making until its answer is looked at.
 *
 *   new -> send -> (wire) -> errand_done -> [held for a moment] -> wb_rules_done() or wb_pagework_done() -> free
 *
 * This file starts requests, counts them, and passes on their answers. It never decides what an answer means.
 *
 * Answers are held so that several pages can be digested together. MD5 can use only a part of a processor, because
 * each of its steps needs the result of the one before; eight pages side by side take about as long as one
 * (src/page/md5.c). So if a site has no interval, and something else to ask for meanwhile, its pages wait until there
 * are several. No page waits for longer than a few milliseconds, nor past anything that depends on it: the end of the
 * site's queue or budget, another kind of answer of the site, a commit. A held page is not in the spool yet; after
 * kill -9 it is requested again, like a request under way.
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"
#include "os/limits.h"

#include <event2/event.h>

enum {
    RETRY_MS = 100,             /* before a request for which there was no file descriptor is made again */
    UNANSWERED_MAX = 3,         /* after so many kept connections without a response a site gets a new one each time */
    HOLD_MS = 3,
    HELD_BYTES_MAX = 256 << 10, /* a larger page would keep one lane of the digest busy and the others idle */
};

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

struct wb_errand *wb_errand_new(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    struct wb_errand *errand = w->errands.free;

    WB_CHECK(!errand || errand->magic == 0);
    if (errand)
        w->errands.free = errand->next_free;
    else
        errand = wb_alloc_zero(1, sizeof *errand);
    if (!errand)
        return NULL;
    struct wb_buf url = errand->url, key = errand->key, head = errand->head;
    wb_buf_clear(&url);
    wb_buf_clear(&key);
    *errand = (struct wb_errand){.magic = WB_ERRAND_MAGIC, .worker = w, .site = site, .url = url, .key = key,
                                 .head = head};
    return errand;
}

void wb_errand_free(struct wb_errand *errand)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->worker->magic == WB_WORKER_MAGIC);
    struct wb_worker *w = errand->worker;

    if (errand->reserved) {
        WB_CHECK(atomic_fetch_sub(&w->mine->reserved, 1) > 0);
        atomic_fetch_sub(&w->tally->reserved, 1);
    }
    errand->reserved = false;
    errand->magic = 0;
    errand->next_free = w->errands.free;
    w->errands.free = errand;
}

static void drop_arrivals(struct wb_errands *errands)
{
    for (unsigned i = 0; i < errands->arrival_count; i++) {
        WB_CHECK(errands->arrivals[i].errand->site->held > 0);
        errands->arrivals[i].errand->site->held--;
        wb_buf_release(&errands->arrivals[i].result.body);
        wb_errand_free(errands->arrivals[i].errand);
    }
    errands->arrival_count = 0;
}

void wb_errand_release_all(struct wb_errands *errands)
{
    drop_arrivals(errands);
    while (errands->free) {
        struct wb_errand *errand = errands->free;
        WB_CHECK(errand->magic == 0);
        errands->free = errand->next_free;
        wb_buf_release(&errand->url);
        wb_buf_release(&errand->key);
        wb_buf_release(&errand->head);
        wb_free(errand);
    }
}

int wb_errand_barred(const struct wb_errand *errand)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->key.len > 0);
    return wb_store_barred(errand->worker->repo.store, errand->id, wb_key_site(wb_buf_slice(&errand->key)));
}

bool wb_errand_is_root(const struct wb_errand *errand)
{
    return wb_slice_equal(errand->item.path, WB_SLICE_LIT("/"));
}

/* ---- pages that are held ----------------------------------------------------------------------------------------- */

/* Keeps an answer for later and takes over its body. Returns false if it must be looked at now. */
static bool hold_arrival(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_errands *errands = &errand->worker->errands;
    struct wb_site *site = errand->site;

    if (errand->item.kind != WB_ITEM_PAGE || result->error || result->status / 100 != 2 ||
        result->body.len > HELD_BYTES_MAX)
        return false;
    /* A site with an interval is in no hurry. While a site waits for its root page, it has nothing else to ask for. */
    if (site->page_delay_ms > 0 || site->root.probing || site->root.awaited)
        return false;
    wb_buf_clear(&errand->head);
    if (wb_buf_append_slice(&errand->head, result->head) < 0)
        return false;
    /* The caller that fills the last place looks at all of them, and nothing arrives meanwhile. */
    WB_CHECK(errands->arrival_count < WB_ARRIVALS_MAX && !errands->taking);
    struct wb_arrival *arrival = &errands->arrivals[errands->arrival_count++];
    *arrival = (struct wb_arrival){.errand = errand, .result = *result};
    arrival->result.head = wb_buf_slice(&errand->head);
    arrival->result.message = "";
    result->body = WB_BUF_INIT; /* moved */
    site->held++;
    struct timeval in = {0, HOLD_MS * 1000};
    if (!evtimer_pending(errands->arrivals_due, NULL))
        event_add(errands->arrivals_due, &in);
    return true;
}

/* Digests all bodies at once, the longest first, so that the lanes end at about the same time. */
static void digest_arrivals(struct wb_arrival *arrivals, unsigned count)
{
    struct wb_page pages[WB_ARRIVALS_MAX], *order[WB_ARRIVALS_MAX] = {NULL};

    WB_CHECK(count > 0 && count <= WB_ARRIVALS_MAX);
    for (unsigned i = 0, at; i < count; i++) {
        pages[i] = (struct wb_page){.body = wb_buf_slice(&arrivals[i].result.body)};
        for (at = i; at > 0 && order[at - 1]->body.len < pages[i].body.len; at--)
            order[at] = order[at - 1];
        order[at] = &pages[i];
    }
    wb_page_digest_many(order, count);
    for (unsigned i = 0; i < count; i++) {
        struct wb_errand *errand = arrivals[i].errand;
        memcpy(errand->body_md5, pages[i].md5, sizeof errand->body_md5);
        memcpy(errand->body_sha1, pages[i].sha1, sizeof errand->body_sha1);
        errand->digested = true;
    }
}

void wb_errand_take_arrivals(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    struct wb_errands *errands = &w->errands;

    if (!errands->arrival_count || errands->taking)
        return;
    errands->taking = true;
    digest_arrivals(errands->arrivals, errands->arrival_count);
    for (unsigned i = 0; i < errands->arrival_count; i++) {
        struct wb_arrival *arrival = &errands->arrivals[i];
        WB_CHECK(arrival->errand->magic == WB_ERRAND_MAGIC && arrival->errand->site->held > 0);
        arrival->errand->site->held--;
        if (w->failed.code == 0) {
            wb_tally_doing(w->mine, WB_STAGE_READING, wb_tally_subject(wb_buf_slice(&arrival->errand->url)));
            wb_pagework_done(arrival->errand, &arrival->result);
        }
        /* After a failure the stage stays as it is, so that the parent can see it. */
        if (w->failed.code == 0)
            wb_tally_doing(w->mine, WB_STAGE_NONE, 0);
        wb_buf_release(&arrival->result.body);
        wb_errand_free(arrival->errand);
    }
    errands->arrival_count = 0;
    errands->taking = false;
}

/* ---- file descriptors -------------------------------------------------------------------------------------------- */

void wb_errand_warn_files(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    if (w->frontier.in_flight < w->frontier.in_flight_max || !w->errands.few_files)
        return;
    if (atomic_exchange(&w->tally->files_told, true))
        return;
    wb_eventlog_warn(w, "a process may have only %llu files open (ulimit -n): it makes %u requests at a time, not more",
                     (unsigned long long)wb_limits_files(), w->frontier.in_flight_max);
}

/* The process has run out of file descriptors: makes fewer requests at a time from now on. */
static void use_fewer_files(struct wb_worker *w)
{
    WB_CHECK(w->frontier.in_flight <= w->frontier.in_flight_max);
    unsigned max = w->frontier.in_flight ? w->frontier.in_flight : 1;

    w->errands.few_files = true;
    if (max < w->frontier.in_flight_max)
        w->frontier.in_flight_max = max;
    wb_errand_warn_files(w);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* Learns what a request shows about the connections of its site. */
static void note_connection(struct wb_site *site, const struct wb_fetch_result *result)
{
    site->unanswered = result->unanswered;
    if (result->unanswered)
        site->unanswered_count++;
    else if (result->reused && !result->error)
        site->unanswered_count = 0;
}

/*
 * Repeats a request that did not fail because of its site: a kept connection had been closed, the request made way for
 * others, or there was no file descriptor for it. Returns false if none of these holds.
 */
static bool repeat_request(struct wb_errand *errand, const struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    int err = 0;

    if (errand->favour || (result->error != WB_FETCH_STOPPED && result->error != WB_FETCH_FILES && !result->unanswered))
        return false;
    if (result->error == WB_FETCH_FILES)
        site->next_ms = wb_clock_now_ms() + RETRY_MS;
    if (!errand->rules) {
        err = wb_item_push(w->repo.spill, &site->again, &errand->item);
        if (errand->item.kind == WB_ITEM_SITEMAP) {
            WB_CHECK(site->sitemaps > 0);
            site->sitemaps--;
        }
    }
    if (err < 0)
        wb_worker_fail(w, err);
    else
        wb_dispatch_later(w, site);
    return true;
}

static void errand_done(void *context, struct wb_fetch_result *result)
{
    struct wb_errand *errand = context;
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    bool rules = errand->rules || errand->favour;
    int64_t now = wb_clock_now_ms();

    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    site->gives_way = false;
    wb_frontier_end(&w->frontier, site, now, result->status != 0);
    WB_CHECK(atomic_fetch_sub(&w->mine->in_flight, 1) > 0);
    if (result->error == WB_FETCH_FILES)
        use_fewer_files(w);
    else
        wb_tally_add(&w->tally->requests, 1);
    wb_tally_add(&w->tally->wire_bytes, result->wire_bytes);
    site->asked_ms = result->sent_ms;
    site->heard_ms = result->heard_ms ? result->heard_ms : now;
    site->answered_ms = now;
    wb_site_rest_after(site);
    note_connection(site, result);
    if (!rules && !atomic_load(&w->mine->careful) && hold_arrival(errand, result)) {
        if (w->errands.arrival_count == WB_ARRIVALS_MAX)
            wb_errand_take_arrivals(w);
        wb_dispatch_later(w, site);
        wb_dispatch(w);
        return;
    }
    /* This outcome may close the site, so look at the answers that came before it first. */
    if (site->held)
        wb_errand_take_arrivals(w);
    wb_tally_doing(w->mine, WB_STAGE_READING, wb_tally_subject(wb_buf_slice(&errand->url)));
    if (repeat_request(errand, result))
        ;
    else if (rules)
        wb_rules_done(errand, result);
    else
        wb_pagework_done(errand, result);
    /* After a failure the stage stays as it is, so that the parent can see it. */
    if (w->failed.code == 0 && atomic_load(&w->mine->stage) == WB_STAGE_READING)
        wb_tally_doing(w->mine, WB_STAGE_NONE, 0);
    wb_errand_free(errand);
    wb_dispatch(w);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/*
 * Takes the place of a request whose answer ended worker processes before. It counts as an error, so that one bad page
 * costs one page and not the crawl.
 */
static void bad_done(evutil_socket_t fd, short what, void *context)
{
    struct wb_errand *errand = context;
    struct wb_fetch_result result = {.error = WB_FETCH_OTHER, .sent_ms = wb_clock_now_ms(),
                                     .message = "the answer ended a crawler process more than once"};

    (void)fd, (void)what;
    errand_done(errand, &result);
}

static int start_fetch(struct wb_errand *errand, const struct wb_fetch_request *request)
{
    WB_CHECK(request->address.family != 0);
    struct wb_worker *w = errand->worker;
    uint64_t subject = wb_tally_subject(request->url);

    if (wb_tally_is_bad(w->tally, subject))
        return event_base_once(w->loop.base, -1, EV_TIMEOUT, bad_done, errand, NULL) < 0 ? wb_fail_nomem() : 0;
    bool alone = atomic_load(&w->mine->in_flight) == 0;
    wb_tally_doing(w->mine, alone ? WB_STAGE_SENT : WB_STAGE_NONE, alone ? subject : 0);
    return wb_fetch_start(w->fetcher, request, errand_done, errand);
}

void wb_errand_send(struct wb_errand *errand, const struct wb_fetch_request *request)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_fetch_request sent = *request;
    char address[WB_ADDRESS_TEXT_MAX];
    struct wb_edit edit = {.kind = WB_EDIT_REQUEST};

    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && site->magic == WB_SITE_MAGIC);
    WB_CHECK(request->url.len && (!errand->favour || errand->rules));
    /* Only a site that is not waiting anywhere makes requests, and never before its address is known. */
    WB_CHECK(site->frontier_address && !site->resolving && !site->refusal && !site->stopped && !w->loop.stopping);
    /* The interval is over. */
    WB_CHECK(site->next_ms <= wb_clock_now_ms() && site->not_before_ms <= wb_clock_now_ms());
    wb_address_format(&site->address, address);
    edit.text = wb_slice_str(address);
    sent.fresh = site->unanswered || site->unanswered_count >= UNANSWERED_MAX;
    int err = wb_visit_note(w, site, &edit);
    if (err == 0)
        err = start_fetch(errand, &sent);
    if (err < 0) {
        wb_errand_free(errand);
        wb_worker_fail(w, err);
        return;
    }
    wb_frontier_begin(&w->frontier, site, wb_clock_now_ms());
    atomic_fetch_add(&w->mine->in_flight, 1);
    /* A lower bound; the answer tells when the request was really sent. */
    site->next_ms = wb_clock_now_ms() + site->delay_ms;
}
