/*
 * pagework.c - decides what the answer to a request for a page, a sitemap or a probe means.
 *
 *   2xx            content: pagekeep.c                        404, 410         the page is gone
 *   304            our version is still right: pagekeep.c     429, 503         the whole site is left alone
 *   3xx            stored, and the target is followed         anything else    an error; some are tried again
 *
 * Each outcome is written before it has consequences, in an order in which kill -9 between any two steps loses nothing
 * and fetches nothing twice: the page to the store (in memory), the page and its line to the spool, facts and links to
 * the journal, links to the queues. The line is passed on to the readers of the log after the commit.
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"

#include <stdio.h>

enum { REFUSED_TRIES_MAX = 3 }; /* requests for a page that are answered with 429 or 503 */

/* ---- outcomes ---------------------------------------------------------------------------------------------------- */

void wb_outcome_init(struct wb_outcome *o, struct wb_errand *errand, struct wb_fetch_result *result, uint8_t outcome,
                     const char *word)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && !errand->rules && errand->key.len > 0);
    *o = (struct wb_outcome){.errand = errand, .result = result, .word = word};
    o->edit.kind = WB_EDIT_PAGE;
    o->edit.time_ms = result->sent_ms;
    o->edit.page = (struct wb_edit_page){.url = wb_buf_slice(&errand->url), .outcome = outcome,
                                         .status = result->status, .depth = errand->item.depth,
                                         .hops = errand->item.hops, .took_ms = result->took_ms,
                                         .bytes = result->body.len,
                                         .lifetime = errand->worker->plan->options->lifetime_days};
}

int wb_outcome_tell(struct wb_outcome *o)
{
    WB_CHECK(o->errand->magic == WB_ERRAND_MAGIC);
    WB_CHECK(!o->page || o->errand->worker->uncommitted.pages > 0); /* the store has it before the journal says so */
    struct wb_worker *w = o->errand->worker;
    struct wb_eventlog_entry entry = {.url = o->edit.page.url, .result = o->word, .message = o->message,
                                      .status = o->result->status, .ms = o->result->took_ms, .error = o->error,
                                      .bytes = o->edit.page.bytes, .time_ms = o->result->sent_ms,
                                      .site = o->errand->site};
    /* The spool first: once the journal says that a page was fetched, the page must not get lost. */
    int err = wb_eventlog_page(w, &entry, o->page);

    return err < 0 ? err : wb_visit_note(w, o->errand->site, &o->edit);
}

int wb_pagework_decide_root(struct wb_errand *errand, bool reachable)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->site->magic == WB_SITE_MAGIC);
    return wb_errand_is_root(errand) ? wb_visit_root(errand->worker, errand->site, reachable) : 0;
}

int wb_pagework_barred(struct wb_errand *errand)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->site->magic == WB_SITE_MAGIC);
    struct wb_worker *w = errand->worker;
    int err = 0;

    wb_eventlog_skip(w, wb_buf_slice(&errand->url), "expunged");
    wb_news_mark(w, errand->site, errand->id, true);
    if (wb_errand_is_root(errand)) {
        errand->site->root.probing = false;
        err = wb_pagework_decide_root(errand, false);
    }
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

int wb_pagework_forbidden(struct wb_errand *errand)
{
    struct wb_edit edit = {.kind = WB_EDIT_PAGE};

    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && !errand->rules);
    edit.page = (struct wb_edit_page){.url = wb_buf_slice(&errand->url), .outcome = WB_OUTCOME_ROBOTS,
                                      .depth = errand->item.depth, .hops = errand->item.hops};
    wb_eventlog_skip(errand->worker, edit.page.url, "robots");
    wb_worker_dirty(errand->worker);
    return wb_visit_note(errand->worker, errand->site, &edit);
}

/* ---- answers without content ------------------------------------------------------------------------------------- */

/* A failure that may pass: the same request can succeed later. */
static bool is_passing(int error)
{
    return error == WB_FETCH_CONNECT || error == WB_FETCH_TIMEOUT || error == WB_FETCH_RESET ||
           error == WB_FETCH_EMPTY || error == WB_FETCH_PARTIAL;
}

int wb_pagework_failed(struct wb_errand *errand, struct wb_fetch_result *result, int error, const char *message)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && error > 0 && error < WB_CRAWL_ERROR_COUNT);
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_outcome o;
    bool down = error == WB_FETCH_CONNECT;
    bool again = is_passing(error) && errand->item.tries + 1 < WB_PAGE_TRIES_MAX;

    wb_outcome_init(&o, errand, result, again ? WB_OUTCOME_LATER : WB_OUTCOME_ERROR, "error");
    o.error = error;
    o.message = message;
    o.edit.page.reason = wb_slice_str(wb_crawl_error_word(error));
    int err = wb_outcome_tell(&o);
    if (again) {
        struct wb_item item = errand->item;
        item.tries++;
        if (err == 0)
            err = wb_item_push(w->repo.spill, &site->queue, &item);
    } else {
        wb_news_mark(w, site, errand->id, true);
        if (err == 0)
            err = wb_pagework_decide_root(errand, false);
    }
    if (wb_errand_is_root(errand))
        site->root.probing = false;
    if (err == 0 && down)
        wb_visit_back_off(w, site, 0, "connect");
    else if (err == 0)
        wb_dispatch_later(w, site);
    return err;
}

static int page_gone(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_outcome o;

    wb_outcome_init(&o, errand, result, WB_OUTCOME_GONE, "gone");
    int err = wb_outcome_tell(&o);
    wb_tally_add(&w->tally->gone, 1);
    wb_news_mark(w, errand->site, errand->id, true);
    if (wb_errand_is_root(errand))
        errand->site->root.probing = false;
    if (err == 0)
        err = wb_pagework_decide_root(errand, false);
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/* 429 and 503: leaves the whole site alone for as long as the server says. */
static int page_later(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_item item = errand->item;
    struct wb_slice value;
    struct wb_outcome o;
    char words[32];
    int64_t until = 0;
    bool enough = ++item.tries >= REFUSED_TRIES_MAX;

    wb_outcome_init(&o, errand, result, enough ? WB_OUTCOME_ERROR : WB_OUTCOME_LATER, "error");
    o.error = WB_CRAWL_STATUS;
    snprintf(words, sizeof words, "status %u", result->status);
    o.message = words;
    o.edit.page.reason = WB_SLICE_LIT("status");
    int err = wb_outcome_tell(&o);
    if (wb_http_header(result->head, "retry-after", &value))
        wb_http_retry_after(value, wb_clock_now_ms(), &until);
    if (enough)
        wb_news_mark(w, site, errand->id, true);
    else if (err == 0)
        err = wb_item_push(w->repo.spill, &site->again, &item);
    if (err == 0 && enough)
        err = wb_pagework_decide_root(errand, false);
    if (err == 0)
        wb_visit_back_off(w, site, until, words);
    return err;
}

/* ---- redirects --------------------------------------------------------------------------------------------------- */

/* Follows a redirect to another spelling of the same page, to a page of this site, or to another site. */
static int follow_redirect(struct wb_errand *errand, struct wb_slice location)
{
    WB_CHECK(errand->item.hops < WB_PAGE_HOPS_MAX);
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = errand->item.depth, .hops = (uint8_t)(errand->item.hops + 1)};

    if (wb_pageid_equal(wb_pageid_of_key(wb_buf_slice(&w->scratch.key)), errand->id)) {
        if (wb_slice_equal(location, wb_buf_slice(&errand->url)))
            return 0;
        item.https = wb_slice_equal(wb_url_scheme(&w->scratch.target), WB_SLICE_LIT("https"));
        item.path = wb_site_path(&w->scratch.target);
        wb_news_mark(w, site, errand->id, false);
        return wb_item_push(w->repo.spill, &site->again, &item);
    }
    return wb_links_follow(w, site, location, &item, WB_LINKS_FRONT);
}

/*
 * Reads where an answer redirects to, as a copy in w->scratch.url_text, because following the redirect parses the
 * target again. *itself_out: to another spelling of the same page. WB_E_PROTO if it leads nowhere.
 */
static int read_target(struct wb_errand *errand, struct wb_slice head, struct wb_slice *target_out, bool *itself_out)
{
    struct wb_worker *w = errand->worker;
    struct wb_slice location;

    int err = wb_http_location(head, wb_buf_slice(&errand->url), &w->scratch.base, &w->scratch.target, &location);
    if (err == 0)
        err = wb_url_key(&w->scratch.target, &w->scratch.key);
    if (err < 0)
        return err;
    *itself_out = wb_pageid_equal(wb_pageid_of_key(wb_buf_slice(&w->scratch.key)), errand->id);
    wb_buf_clear(&w->scratch.url_text);
    err = wb_buf_append_slice(&w->scratch.url_text, location);
    *target_out = wb_buf_slice(&w->scratch.url_text);
    return err;
}

/* Tells a redirect, and follows it. */
static int redirect_came(struct wb_outcome *o)
{
    WB_CHECK(o->edit.page.outcome == WB_OUTCOME_REDIRECT && o->edit.page.location.len > 0);
    struct wb_errand *errand = o->errand;
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;

    int err = wb_outcome_tell(o);
    wb_tally_add(&w->tally->redirects, 1);
    wb_news_mark(w, site, errand->id, true);
    if (wb_errand_is_root(errand))
        site->root.probing = false;
    if (err == 0)
        err = follow_redirect(errand, o->edit.page.location);
    if (err >= 0 && wb_errand_is_root(errand))
        err = wb_pagework_decide_root(errand, true);
    if (err >= 0)
        wb_dispatch_later(w, site);
    return err < 0 ? err : 0;
}

/*
 * The redirect is stored, so that the archive leads on where the web did. But a redirect to another spelling of the
 * same page (from http to https, from /a to /a/) is not: both have one key, and what is stored there is the page
 * itself.
 */
static int page_redirects(struct wb_errand *errand, struct wb_fetch_result *result)
{
    enum wb_store_outcome put = WB_STORE_PUT_OLDER;
    struct wb_slice target;
    struct wb_outcome o;
    struct wb_page page;
    bool itself = false;

    int err = read_target(errand, result->head, &target, &itself);
    if (err < 0)
        return err == WB_E_NOMEM ? err : wb_pagework_failed(errand, result, WB_CRAWL_LOCATION, wb_error_message());
    if (errand->item.hops >= WB_PAGE_HOPS_MAX)
        return wb_pagework_failed(errand, result, WB_CRAWL_REDIRECTS, "too many redirects in a row");
    wb_outcome_init(&o, errand, result, WB_OUTCOME_REDIRECT, "redirect");
    o.edit.page.location = target;
    err = itself ? 0 : wb_pagekeep_redirect(errand, result, &page, &put);
    if (err == 0 && put == WB_STORE_PUT_BARRED)
        return wb_pagework_barred(errand);
    /* The spool gets further captures, too: the journal could not bring one back. */
    if (put != WB_STORE_PUT_OLDER && put != WB_STORE_PUT_KNOWN)
        o.page = &page;
    return err < 0 ? err : redirect_came(&o);
}

int wb_pagework_reuse_redirect(struct wb_errand *errand, const struct wb_page *page)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && !errand->known);
    struct wb_fetch_result result = {.status = page->status, .sent_ms = page->time_ms};
    struct wb_outcome o;
    bool itself;

    wb_outcome_init(&o, errand, &result, WB_OUTCOME_REDIRECT, "fresh");
    o.edit.page.bytes = page->body_bytes;
    int err = read_target(errand, page->head, &o.edit.page.location, &itself);
    if (err == WB_E_NOMEM)
        return err;
    return err < 0 || itself || errand->item.hops >= WB_PAGE_HOPS_MAX ? 1 : redirect_came(&o);
}

/* ---- sitemaps and probes ----------------------------------------------------------------------------------------- */

static int take_hints(struct wb_errand *errand, struct wb_edit *edit)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;

    for (size_t i = 0; i < edit->link_count; i++) {
        bool nested = edit->links[i].tag == WB_PAGELINK_TAG_SITEMAP;
        struct wb_item item = {.kind = nested ? WB_ITEM_SITEMAP : WB_ITEM_PAGE, .depth.links = 1};
        if (nested && (site->sitemaps + site->again.count > WB_SITEMAPS_MAX))
            continue;
        int err = wb_links_follow(w, site, edit->links[i].url, &item, nested ? WB_LINKS_FRONT : 0);
        if (err < 0)
            return err;
    }
    return 0;
}

static int sitemap_came(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_edit edit = {.kind = WB_EDIT_HINTS, .text = wb_buf_slice(&errand->url)};
    struct wb_eventlog_entry entry = {.url = edit.text, .result = "sitemap", .status = result->status,
                                      .ms = result->took_ms, .bytes = result->body.len, .time_ms = result->sent_ms,
                                      .error = (int)result->error, .message = result->error ? result->message : NULL};
    struct wb_extract extract = {0};
    int err = 0;

    wb_news_mark(w, site, errand->id, true);
    site->sitemaps_ms = result->sent_ms;
    if (!result->error && result->status / 100 != 2)
        entry.error = WB_CRAWL_STATUS;
    if (!entry.error) {
        err = wb_sitemap_extract(w->finder.extractor, wb_buf_slice(&errand->url), wb_buf_slice(&result->body),
                                 &extract);
        if (err == 0)
            err = wb_factfinder_links(&w->finder, &extract, false, &edit.links, &edit.link_count);
    }
    if (err == 0)
        err = wb_visit_note(w, site, &edit);
    wb_eventlog_fetch(w, &entry);
    if (err == 0)
        err = take_hints(errand, &edit);
    if (err == 0)
        wb_dispatch_later(w, site);
    return err;
}

static int probe_came(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_page page;
    int err = 0;

    if (!result->error && result->status / 100 == 2) {
        err = wb_pagekeep_fill(errand, result, &page);
        if (err == 0 && wb_names_root_came(w, errand->site, page.md5))
            return 0;
    }
    errand->site->root.probing = false;
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int page_outcome(struct wb_errand *errand, struct wb_fetch_result *result)
{
    char words[32];

    if (result->error)
        return wb_pagework_failed(errand, result, (int)result->error, result->message);
    errand->site->attempts = 0;
    int barred = wb_errand_barred(errand);
    if (barred != 0)
        return barred < 0 ? barred : wb_pagework_barred(errand);
    if (wb_http_status_redirects(result->status))
        return page_redirects(errand, result);
    switch (result->status) {
    case 304:
        if (errand->known)
            return wb_pagekeep_not_modified(errand, result);
        break;
    case 404:
    case 410:
        return page_gone(errand, result);
    default:
        if (result->status / 100 == 2)
            return wb_pagekeep_came(errand, result);
        break;
    }
    snprintf(words, sizeof words, "status %u", result->status);
    return wb_pagework_failed(errand, result, WB_CRAWL_STATUS, words);
}

void wb_pagework_done(struct wb_errand *errand, struct wb_fetch_result *result)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->site->magic == WB_SITE_MAGIC);
    WB_CHECK(!errand->rules && errand->key.len > 0);
    struct wb_worker *w = errand->worker;
    int err;

    if (result->error == WB_FETCH_STOPPED)
        return;
    if (errand->item.kind != WB_ITEM_PROBE && !result->error && (result->status == 429 || result->status == 503))
        err = page_later(errand, result);
    else if (errand->item.kind == WB_ITEM_SITEMAP)
        err = sitemap_came(errand, result);
    else if (errand->item.kind == WB_ITEM_PROBE)
        err = probe_came(errand, result);
    else
        err = page_outcome(errand, result);
    if (err < 0)
        wb_worker_fail(w, err);
}
