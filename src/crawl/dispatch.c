/*
 * dispatch.c - which request a site that is due makes: a favour for another site, its own
 * robots.txt, or the next URL of its queue that may be asked for. It starts requests and
 * hands their outcomes on; it decides nothing about what came.
 */
#include "crawl/webknown.h"
#include "base/check.h"
#include "base/mem.h"
#include "crawl/fetchcount.h"
#include "os/limits.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

enum {
    SKIPS_MAX = 2000,     /* URLs looked at before others get their turn */
    RETRY_MS = 100,       /* when all pages that are allowed are being fetched */
    DNS_RETRY_MS = 5000,
    UNANSWERED_MAX = 3,   /* kept connections that ended without a response: the site gets a new one for each request */
};

/* ---- errands ------------------------------------------------------------------------------------ */

struct wb_errand *wb_errand_new(struct wb_worker *w, struct wb_site *site)
{
    struct wb_errand *errand = w->free_errands;

    if (errand)
        w->free_errands = errand->next_free;
    else
        errand = wb_alloc_zero(1, sizeof *errand);
    if (!errand)
        return NULL;
    struct wb_buf url = errand->url, key = errand->key, head = errand->head;
    wb_buf_clear(&url);
    wb_buf_clear(&key);
    *errand = (struct wb_errand){.worker = w, .site = site, .url = url, .key = key, .head = head};
    return errand;
}

void wb_errand_free(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;

    if (errand->reserved) {
        atomic_fetch_sub(&w->mine->reserved, 1);
        atomic_fetch_sub(&w->tally->reserved, 1);
    }
    errand->reserved = false;
    errand->next_free = w->free_errands;
    w->free_errands = errand;
}

/* That there could be more requests at a time, were there more file descriptors: once a crawl. */
static void tell_files(struct wb_worker *w)
{
    if (w->frontier.in_flight < w->frontier.in_flight_max || !w->few_files || atomic_exchange(&w->tally->files_told, true))
        return;
    wb_event_warn(w, "a process may have only %llu files open (ulimit -n): it makes %u requests at a time, not more",
                  (unsigned long long)wb_limits_files(), w->frontier.in_flight_max);
}

/* Fewer at a time from now on: the process has no file descriptors for more. */
static void use_fewer_files(struct wb_worker *w)
{
    unsigned max = w->frontier.in_flight ? w->frontier.in_flight : 1;

    w->few_files = true;
    if (max < w->frontier.in_flight_max)
        w->frontier.in_flight_max = max;
    tell_files(w);
}

/* What a request tells about the connections of its site. */
static void note_connection(struct wb_site *site, const struct wb_fetch_result *result)
{
    site->unanswered = result->unanswered;
    if (result->unanswered)
        site->unanswered_count++;
    else if (result->reused && !result->error)
        site->unanswered_count = 0;
}

/*
 * A request that must be made once more, when the clock allows it, and does not count as a failure: its connection had been
 * closed, it made way for others, or there was no file descriptor for it. True where that is so.
 */
static bool ask_again(struct wb_errand *errand, const struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    int err = 0;

    if (errand->favour || (result->error != WB_FETCH_STOPPED && result->error != WB_FETCH_FILES && !result->unanswered))
        return false;
    if (result->error == WB_FETCH_FILES)
        site->next_ms = wb_worker_now(w) + RETRY_MS;
    if (!errand->rules) {
        err = wb_item_push(w->spill, &site->again, &errand->item);
        if (errand->item.kind == WB_ITEM_SITEMAP)
            site->sitemaps--;
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
    int64_t now = wb_worker_now(w);

    site->gives_way = false;
    wb_frontier_end(&w->frontier, site, now, result->status != 0);
    atomic_fetch_sub(&w->mine->in_flight, 1);
    if (result->error == WB_FETCH_FILES)
        use_fewer_files(w);
    else
        wb_tally_add(&w->tally->requests, 1);
    wb_tally_add(&w->tally->wire_bytes, result->wire_bytes);
    int64_t next = wb_site_rest(result->sent_ms, now, rules ? site->delay_ms : site->page_delay_ms);
    if (next > site->next_ms)
        site->next_ms = next;
    note_connection(site, result);
    if (!rules && !atomic_load(&w->mine->careful) && wb_arrival_hold(errand, result)) {
        if (w->arrival_count == WB_ARRIVALS_MAX)
            wb_arrivals_take(w);
        wb_dispatch_later(w, site);
        wb_dispatch(w);
        return;
    }
    /* Whatever this outcome does to the site, what came before it counts. */
    if (site->held)
        wb_arrivals_take(w);
    wb_tally_doing(w->mine, WB_STAGE_READING, wb_tally_subject(wb_buf_slice(&errand->url)));
    if (ask_again(errand, result))
        ;
    else if (rules)
        wb_rules_done(errand, result);
    else
        wb_page_done(errand, result);
    /* After a failure it stays, for the parent to see; another request may have been sent meanwhile. */
    if (w->failed.code == 0 && atomic_load(&w->mine->stage) == WB_STAGE_READING)
        wb_tally_doing(w->mine, WB_STAGE_NONE, 0);
    wb_errand_free(errand);
    wb_dispatch(w);
}

/* Its answer ended processes before: it counts as an error without being asked for, so that one page costs that page. */
static void bad_done(evutil_socket_t fd, short what, void *context)
{
    struct wb_errand *errand = context;
    struct wb_fetch_result result = {.error = WB_FETCH_OTHER, .message = "the answer ended a crawler process more than once",
                                     .sent_ms = wb_worker_now(errand->worker)};

    (void)fd, (void)what;
    errand_done(errand, &result);
}

static int start_fetch(struct wb_errand *errand, const struct wb_fetch_request *request)
{
    struct wb_worker *w = errand->worker;
    uint64_t subject = wb_tally_subject(request->url);

    if (wb_tally_is_bad(w->tally, subject))
        return event_base_once(w->base, -1, EV_TIMEOUT, bad_done, errand, NULL) < 0 ? wb_fail_nomem() : 0;
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
    wb_frontier_begin(&w->frontier, site, wb_worker_now(w));
    atomic_fetch_add(&w->mine->in_flight, 1);
    /* Held until the answer says when it was really sent. */
    site->next_ms = wb_worker_now(w) + site->delay_ms;
}

/* ---- addresses ------------------------------------------------------------------------------------ */

struct lookup {
    struct wb_worker *w;
    char name[];
};

/* The site will not be contacted; its URLs get their lines when it is called. */
static void refuse_site(struct wb_worker *w, struct wb_site *site, int error, const char *reason)
{
    wb_free(site->refusal);
    site->refusal = wb_strdup(reason);
    site->refusal_error = error;
    if (!site->refusal)
        wb_worker_fail(w, WB_E_NOMEM);
    else
        wb_dispatch_later(w, site);
}

/* The line of a page that is not asked for, unless it was before. */
static int refuse_page(struct wb_worker *w, struct wb_site *site, const struct wb_item *item)
{
    struct wb_fetch_event event = {.error = site->refusal_error, .message = site->refusal, .time_ms = wb_worker_now(w)};

    if (item->kind != WB_ITEM_PAGE)
        return 0;
    int err = wb_site_url(site, item->https, item->path, &w->url_text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&w->url_text), NULL, &w->url);
    if (err == 0)
        err = wb_url_key(&w->url, &w->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    struct wb_pageid id = wb_pageid_of_key(wb_buf_slice(&w->key));
    if (wb_seen_marked(&site->seen, id))
        return 0;
    wb_seen_mark(&site->seen, id, true);
    event.url = wb_buf_slice(&w->url_text);
    wb_event_fetch(w, &event);
    return 0;
}

/* Every URL that waits gets a line that says why it was not asked for; then the site is closed. */
static void refuse_pages(struct wb_worker *w, struct wb_site *site)
{
    struct wb_item item;
    int got = 1;

    for (int i = 0; i < SKIPS_MAX && got > 0; i++) {
        got = wb_site_pop(site, w->spill, &w->item_mem, &item);
        if (got > 0 && refuse_page(w, site, &item) < 0)
            got = WB_E_NOMEM;
    }
    if (got < 0)
        wb_worker_fail(w, got);
    else if (got > 0)
        wb_dispatch_later(w, site);
    else
        wb_visit_close(w, site, WB_SITE_REFUSED, site->refusal, NULL);
}

/* One address that may be contacted is enough, as in the parent (resolve.c); else *private_out says what they are. */
static const struct wb_address *choose_address(struct wb_worker *w, const struct wb_dns_answer *answer, const char **private_out)
{
    *private_out = NULL;
    for (unsigned i = 0; answer->status == WB_DNS_OK && i < answer->count; i++) {
        const char *private = wb_worker_refuses(w, &answer->addresses[i]);
        if (!private)
            return &answer->addresses[i];
        *private_out = private;
    }
    return NULL;
}

static void lookup_done(void *context, const struct wb_dns_answer *answer)
{
    struct lookup *lookup = context;
    struct wb_worker *w = lookup->w;
    struct wb_site *site = wb_worker_site(w, wb_slice_str(lookup->name));
    const char *private = NULL;
    char words[96];

    wb_free(lookup);
    if (!site || !site->resolving)
        return;
    site->resolving = false;
    if (site->held)
        wb_arrivals_take(w);
    const struct wb_address *good = choose_address(w, answer, &private);
    if (good) {
        int err = wb_frontier_move(&w->frontier, site, good);
        if (err < 0)
            wb_worker_fail(w, err);
        site->address_expires_ms = answer->expires_ms;
    }
    if (!good)
        wb_favours_fail(w, site, private ? "private" : "dns");
    if (good)
        wb_dispatch_later(w, site);
    else if (site->guest)
        wb_visit_close(w, site, WB_SITE_READY, "", NULL);
    else if (private) {
        snprintf(words, sizeof words, "private address (%s); --allow-private would allow it", private);
        refuse_site(w, site, WB_CRAWL_PRIVATE, words);
    } else if (answer->status == WB_DNS_NONE)
        refuse_site(w, site, WB_CRAWL_DNS, answer->message);
    else
        wb_visit_back_off(w, site, wb_worker_now(w) + DNS_RETRY_MS, answer->message);
    wb_dispatch(w);
}

static void look_up(struct wb_worker *w, struct wb_site *site)
{
    struct lookup *lookup = wb_alloc_zero(1, sizeof *lookup + strlen(site->name) + 1);
    int err = WB_E_NOMEM;

    if (lookup) {
        lookup->w = w;
        strcpy(lookup->name, site->name);
        wb_buf_clear(&w->url_text);
        err = wb_site_url(site, site->https, WB_SLICE_LIT("/"), &w->url_text);
        if (err == 0)
            err = wb_url_parse(wb_buf_slice(&w->url_text), NULL, &w->url);
    }
    if (err == 0) {
        struct wb_slice host;
        uint16_t port;
        wb_site_endpoint(&w->url, &host, &port);
        site->resolving = true;
        err = wb_dns_resolve(w->dns, host, port, lookup_done, lookup);
    }
    if (err < 0) {
        site->resolving = false;
        wb_free(lookup);
        wb_worker_fail(w, err);
    }
}

/* ---- pages ---------------------------------------------------------------------------------------- */

/* Whether one more page may be fetched under --max-pages. */
static bool reserve(struct wb_worker *w, struct wb_errand *errand)
{
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

/* Whether one more page may be asked for: 1, 0 or an error. What is counted stays counted, whatever comes of it. */
static int count_fetch(struct wb_worker *w)
{
    uint64_t max = w->plan->options->max_fetches;
    unsigned long long number = atomic_load(&w->tally->fetches);

    do {
        if (max && number >= max)
            return 0;
    } while (!atomic_compare_exchange_weak(&w->tally->fetches, &number, number + 1));
    int err = w->plan->fetches.fd >= 0 ? wb_fetchcount_note(&w->plan->fetches, number) : 0;
    return err < 0 ? err : 1;
}

/* The version that we have: 1 where it is fresh enough to be left alone (its links are followed), 0 otherwise. */
static int look_in_store(struct wb_errand *errand, struct wb_fetch_request *request)
{
    struct wb_worker *w = errand->worker;
    struct wb_page page;
    int err = wb_store_get(w->store, errand->id, &page, &w->old_mem);

    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT)
        return 0;
    if (err < 0)
        return err;
    int64_t fresh_ms = w->plan->options->fresh_ms, now = wb_worker_now(w);
    /* A page from the future has no age: the clock was wrong when it came, or is wrong now. */
    if (fresh_ms && page.time_ms + fresh_ms > now && page.time_ms <= now + WB_PATIENCE_MS)
        return (err = wb_page_reuse(errand, &page)) < 0 ? err : 1;
    errand->known = true;
    memcpy(errand->md5, page.md5, sizeof errand->md5);
    if (page.truncated || page.status != 200)
        return 0;
    wb_http_header(page.head, "etag", &request->etag);
    wb_http_header(page.head, "last-modified", &request->modified);
    return 0;
}

/* Whether an item may be asked for at all: not done yet, not taken down, allowed by the rules. 1, 0 or an error. */
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
    int barred = wb_known_barred(w, errand), err = 0;
    if (barred < 0)
        return barred;
    if (site->robots)
        wb_robots_check(site->robots, url, &verdict);
    if (verdict.allowed && !barred)
        return 1;
    wb_seen_mark(&site->seen, errand->id, true);
    if (item->kind == WB_ITEM_PROBE)
        site->probing = false;
    else if (barred)
        wb_event_skip(w, url, "expunged");
    else if (item->kind == WB_ITEM_PAGE)
        err = wb_page_refused(errand);
    else
        wb_event_skip(w, url, "robots");
    if (err == 0 && item->kind == WB_ITEM_PAGE && wb_slice_equal(item->path, WB_SLICE_LIT("/")))
        err = wb_visit_root(w, site, false);
    return err;
}

/* All pages that are allowed are being fetched: the item waits for what comes of them. */
static int put_off(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    int err = wb_item_push(w->spill, &site->again, &errand->item);

    site->next_ms = wb_worker_now(w) + RETRY_MS;
    wb_dispatch_later(w, site);
    return err < 0 ? err : 2;
}

/* What an item names: WB_E_NOMEM, or another error where it is no URL that has a key. */
static int aim(struct wb_errand *errand, const struct wb_item *item)
{
    struct wb_worker *w = errand->worker;

    int err = wb_site_url(errand->site, item->https, item->path, &errand->url);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&errand->url), NULL, &w->url);
    if (err == 0)
        err = wb_url_key(&w->url, &errand->key);
    if (err < 0)
        return err;
    errand->id = wb_pageid_of_key(wb_buf_slice(&errand->key));
    errand->item = *item;
    return 0;
}

/* Makes the request of an item, or decides against it. 1: a request is under way, 0: not, try the next; 2: it waits. */
static int start_item(struct wb_errand *errand, struct wb_item *item)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_fetch_request request = {.address = site->address};

    int err = aim(errand, item);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    err = check_item(errand);
    if (err <= 0)
        return err;
    if (item->kind == WB_ITEM_PAGE) {
        err = look_in_store(errand, &request);
        if (err != 0)
            return err < 0 ? err : 0;
        err = reserve(w, errand) ? count_fetch(w) : 0;
        if (err <= 0)
            return err < 0 ? err : put_off(errand);
    }
    request.url = wb_buf_slice(&errand->url);
    errand->item.path = wb_slice(errand->url.ptr + errand->url.len - item->path.len, item->path.len);
    if (item->kind == WB_ITEM_SITEMAP)
        site->sitemaps++;
    wb_errand_send(errand, &request);
    return 1;
}

/* The queue is empty: more seeds, or the end of the visit. */
static void queue_empty(struct wb_worker *w, struct wb_site *site)
{
    uint64_t count = 0;

    if (site->held) {
        wb_arrivals_take(w);
        wb_dispatch_later(w, site);
        return;
    }
    if (site->in_flight || site->away)
        return;
    int err = wb_visit_seeds(w, site, &count);
    if (err < 0)
        wb_worker_fail(w, err);
    else if (count)
        wb_dispatch_later(w, site);
    else
        wb_visit_close(w, site, WB_SITE_DONE, "", NULL);
}

static void start_page(struct wb_worker *w, struct wb_site *site)
{
    struct wb_errand *errand;
    struct wb_item item;
    int got = 0;

    /* More than one at a time only where that was asked for, and no interval is to be kept. */
    if (site->in_flight >= (site->page_delay_ms == 0 ? w->plan->options->connections : 1))
        return;
    if (site->held && site->pages + site->held + site->in_flight >= site->budget)
        wb_arrivals_take(w);
    if (site->pages >= site->budget) {
        if (!site->in_flight)
            wb_visit_close(w, site, WB_SITE_DONE, "budget", NULL);
        return;
    }
    /* Those under way may fill the budget; if they do not, their end calls the site again. */
    if (site->pages + site->in_flight >= site->budget)
        return;
    if ((site->probing || site->root_waited) && site->in_flight)
        return;
    errand = wb_errand_new(w, site);
    if (!errand) {
        wb_worker_fail(w, WB_E_NOMEM);
        return;
    }
    for (int i = 0; i < SKIPS_MAX; i++) {
        got = wb_site_pop(site, w->spill, &w->item_mem, &item);
        if (got <= 0)
            break;
        got = start_item(errand, &item);
        if (got < 0)
            break;
        if (got == 1) {
            if (site->in_flight < w->plan->options->connections && site->page_delay_ms == 0 && !site->probing && !site->root_waited)
                wb_dispatch_later(w, site);
            return;
        }
        if (got == 2) {
            wb_errand_free(errand);
            return;
        }
        got = 3;
    }
    wb_errand_free(errand);
    if (got < 0)
        wb_worker_fail(w, got);
    else if (got == 3)
        wb_dispatch_later(w, site);
    else
        queue_empty(w, site);
}

/* 1: something of a barred site is allowed nevertheless, and waits in front; 0: nothing so far, 2: nothing at all. */
static int find_allowed(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    struct wb_item item;
    int got = 1;

    for (int i = 0; i < SKIPS_MAX && got > 0; i++) {
        got = wb_site_pop(errand->site, w->spill, &w->item_mem, &item);
        if (got <= 0)
            break;
        int err = aim(errand, &item);
        if (err == WB_E_NOMEM)
            return err;
        if (err < 0)
            continue;
        err = wb_known_barred(w, errand);
        if (err >= 0)
            err = err == 0 ? 1 : check_item(errand); /* what is barred is passed over, with its line */
        if (err < 0)
            return err;
        if (err > 0)
            return (err = wb_item_push(w->spill, &errand->site->again, &item)) < 0 ? err : 1;
    }
    return got < 0 ? got : got == 0 ? 2 : 0;
}

/* A site that was taken down is not even asked for its robots.txt, unless a page of it is allowed. True: it was dealt with here. */
static bool pass_barred(struct wb_worker *w, struct wb_site *site)
{
    const struct wb_pageid no_page = {0, 0};
    int got = site->guest ? 0 : wb_store_barred(w->store, no_page, wb_slice_str(site->name));

    if (got > 0) {
        struct wb_errand *errand = wb_errand_new(w, site);
        got = errand ? find_allowed(errand) : WB_E_NOMEM;
        if (errand)
            wb_errand_free(errand);
        if (got == 1)
            return false;
        if (got == 2)
            queue_empty(w, site);
        else if (got == 0)
            wb_dispatch_later(w, site);
    } else if (got == 0) {
        return false;
    }
    if (got < 0)
        wb_worker_fail(w, got);
    return true;
}

static void start_site(struct wb_worker *w, struct wb_site *site)
{
    int64_t now = wb_worker_now(w);

    if (site->resolving || site->away || fetches_used_up(w))
        return;
    if (site->refusal)
        refuse_pages(w, site);
    else if (site->address_expires_ms <= now && !site->in_flight)
        look_up(w, site);
    else if (wb_favour_next(w, site))
        return;
    else if (site->rules_state == WB_RULES_UNKNOWN || site->rules_expires_ms <= now) {
        if (!site->in_flight && !pass_barred(w, site))
            wb_rules_ask(w, site);
    } else
        start_page(w, site);
}

void wb_dispatch_later(struct wb_worker *w, struct wb_site *site)
{
    if (site->heap_at || site->resolving || site->away)
        return;
    if (wb_frontier_put(&w->frontier, site) < 0)
        wb_worker_fail(w, WB_E_NOMEM);
}

static bool gives_way(void *context)
{
    const struct wb_errand *errand = context;

    return errand->site->gives_way && !errand->favour;
}

void wb_dispatch_make_way(struct wb_worker *w)
{
    int64_t now = wb_worker_now(w);
    bool any = false;

    for (struct wb_site *site = w->frontier.lined_up ? w->sites : NULL; site; site = site->list_next) {
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

    WB_CHECK(w->failed.code < 0 || wb_frontier_settled(&w->frontier));
    if (next == INT64_MAX) {
        event_del(w->due);
        return;
    }
    int64_t wait = next - wb_worker_now(w);
    struct timeval tv = {wait > 0 ? wait / 1000 : 0, wait > 0 ? (wait % 1000) * 1000 : 0};
    event_add(w->due, &tv);
}

/* Processes before this one died: with one request at a time its parent will know of which. The answer calls wb_dispatch() again. */
static bool one_is_enough(const struct wb_worker *w)
{
    return atomic_load(&w->mine->careful) && atomic_load(&w->mine->in_flight);
}

void wb_dispatch(struct wb_worker *w)
{
    struct wb_site *site;

    if (w->dispatching || w->stopping || w->lost || w->failed.code < 0 || wb_worker_slept(w))
        return;
    w->dispatching = true;
    while (w->failed.code == 0 && !one_is_enough(w) && (site = wb_frontier_pop(&w->frontier, wb_worker_now(w))))
        start_site(w, site);
    tell_files(w);
    /* What is about to be sent must be in the journal before: the clocks outlive the process. */
    int err = w->unflushed ? wb_journal_writer_flush(w->journal) : 0;
    if (err < 0)
        wb_worker_fail(w, err);
    else
        w->unflushed = false;
    w->dispatching = false;
    if (!one_is_enough(w))
        set_timer(w);
}
