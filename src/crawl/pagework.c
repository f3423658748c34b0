/*
 * pagework.c - the outcome of a request for a page, a sitemap or a probe.
 *
 * In this order, so that kill -9 between any two steps loses nothing and fetches nothing
 * twice: the page to the spool, the page to the store (in memory), facts and links to the journal, links
 * to the queues. The store comes before the journal because it says whether the page was taken. What is told to the log
 * waits for the commit.
 */
#include "crawl/webknown.h"
#include "base/mem.h"

#include <stdio.h>

#define ALIAS_REASON "the same robots.txt and root page"

/* What became of a page, collected on the way to the journal and the log. */
struct outcome {
    struct wb_errand *errand;
    struct wb_fetch_result *result;
    struct wb_edit edit;
    const char *word;      /* for the log */
    const char *message;
    int error;             /* of the tables */
    const struct wb_page *page; /* to be stored; NULL: none */
};

static void outcome_init(struct outcome *o, struct wb_errand *errand, struct wb_fetch_result *result, uint8_t outcome, const char *word)
{
    *o = (struct outcome){.errand = errand, .result = result, .word = word};
    o->edit.kind = WB_EDIT_PAGE;
    o->edit.time_ms = result->sent_ms;
    o->edit.page = (struct wb_edit_page){.url = wb_buf_slice(&errand->url), .outcome = outcome, .status = result->status,
                                         .depth = errand->item.depth, .hops = errand->item.hops, .took_ms = result->took_ms,
                                         .bytes = result->body.len, .lifetime = errand->worker->plan->options->lifetime_days};
}

/* Spool and log, then journal: what the journal says must not be lost any more. */
static int outcome_tell(struct outcome *o)
{
    struct wb_worker *w = o->errand->worker;
    struct wb_fetch_event event = {.url = o->edit.page.url, .result = o->word, .message = o->message, .status = o->result->status,
                                   .ms = o->result->took_ms, .bytes = o->edit.page.bytes, .time_ms = o->result->sent_ms, .error = o->error};
    int err = wb_event_page(w, &event, o->page);

    return err < 0 ? err : wb_visit_note(w, o->errand->site, &o->edit);
}

/* ---- after the root ---------------------------------------------------------------------------------- */

struct twin {
    const struct wb_site *site;
    char *name;  /* of a site with the same probe */
};

static int compare_row(void *context, const struct wb_site_row *row)
{
    struct twin *twin = context;

    if (row->id == twin->site->id || row->state == WB_SITE_ALIAS)
        return 0;
    twin->name = wb_strndup(row->name.ptr, row->name.len);
    return twin->name ? 1 : WB_E_NOMEM;
}

/* Another name of the same address with the same rules and the same root, which is the same site; NULL: there is none. */
static int find_twin(struct wb_worker *w, const struct wb_site *site, char **name_out)
{
    struct twin twin = {.site = site};
    char address[WB_ADDRESS_TEXT_MAX], probe[WB_PROBE_TEXT_MAX];
    const char *closed = wb_visit_closed_twin(w, site);

    *name_out = NULL;
    if (closed)
        return (*name_out = wb_strdup(closed)) ? 0 : WB_E_NOMEM;
    for (struct wb_site *other = w->sites, *next; other; other = next) {
        next = other->list_next;
        if (other == site || other->guest || other->place != site->place || other->root_digest != site->root_digest ||
            other->rules_digest != site->rules_digest || other->rules_state != WB_RULES_KNOWN)
            continue;
        /* The name that was known first is the site's, also where the other one's root came sooner and nothing else did yet. */
        if (other->id > site->id && other->pages <= 1 && !other->in_flight) {
            wb_visit_close(w, other, WB_SITE_ALIAS, ALIAS_REASON, site->name);
            continue;
        }
        *name_out = wb_strdup(other->name);
        return *name_out ? 0 : WB_E_NOMEM;
    }
    wb_site_probe(site, probe);
    wb_address_format(&site->address, address);
    int err = wb_dispenser_twins(w->dispenser, wb_slice_str(address), wb_slice_str(probe), compare_row, &twin);
    *name_out = twin.name;
    return err < 0 ? err : 0;
}

static bool is_root(const struct wb_errand *errand)
{
    return wb_slice_equal(errand->item.path, WB_SLICE_LIT("/"));
}

bool wb_page_alias(struct wb_worker *w, struct wb_site *site)
{
    char *twin = NULL;

    site->probing = false;
    int err = find_twin(w, site, &twin);
    if (err < 0)
        wb_worker_fail(w, err);
    if (!twin)
        return false;
    wb_visit_close(w, site, WB_SITE_ALIAS, ALIAS_REASON, twin);
    wb_free(twin);
    return true;
}

/* The root's bytes are known. True where the site turned out to be an alias, and is closed. */
static bool root_came(struct wb_errand *errand, const uint8_t md5[WB_MD5_BYTES])
{
    errand->site->root_digest = wb_pageid_get(md5).hi | 1;
    return errand->site->probing && wb_page_alias(errand->worker, errand->site);
}

/* The outcome of the root decides on seeds that wait for it. */
static int root_decides(struct wb_errand *errand, bool reachable)
{
    return is_root(errand) ? wb_visit_root(errand->worker, errand->site, reachable) : 0;
}

/* ---- content ------------------------------------------------------------------------------------------ */

static int follow_links(struct wb_errand *errand, const struct wb_edit_link *links, size_t count)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = (uint16_t)(errand->item.depth + 1)};

    if (errand->item.depth >= errand->worker->plan->options->max_depth)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if ((links[i].flags & (WB_EDIT_LINK_FOLLOW | WB_EDIT_LINK_NOFOLLOW)) != WB_EDIT_LINK_FOLLOW)
            continue;
        int err = wb_links_follow(errand->worker, errand->site, links[i].url, &item, 0);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Feeds that a root page names tell of new pages, as sitemaps do. */
static int follow_feeds(struct wb_errand *errand, const struct wb_extract *extract)
{
    struct wb_item item = {.kind = WB_ITEM_SITEMAP, .depth = 1};
    struct wb_worker *w = errand->worker;
    unsigned feeds = 0;

    if (!is_root(errand) || w->plan->options->ignore_sitemaps || w->plan->options->max_depth == 0)
        return 0;
    for (size_t i = 0; i < extract->link_count && feeds < 4; i++) {
        if (!(extract->links[i].rels & WB_EXTRACT_REL_FEED))
            continue;
        int err = wb_links_follow(w, errand->site, extract->links[i].url, &item, 0);
        if (err < 0)
            return err;
        feeds++;
    }
    return 0;
}

static int extract_page(struct outcome *o, const struct wb_page *page, struct wb_extract *extract)
{
    struct wb_worker *w = o->errand->worker;

    int err = wb_pagefacts_read(&w->facts, page, w->plan->agent, WB_EXTRACT_LINKS, &o->edit.page, extract);
    if (err == 0)
        wb_trap_learn(&o->errand->site->trap, o->errand->item.path, extract->simhash);
    return err;
}

/* Links of a page that was not fetched in full are followed as those of one that was. */
static int content_known(struct outcome *o, const struct wb_page *page)
{
    struct wb_errand *errand = o->errand;
    struct wb_worker *w = errand->worker;
    struct wb_extract extract;

    int err = extract_page(o, page, &extract);
    if (err < 0)
        return err;
    wb_seen_mark(&errand->site->seen, errand->id, true);
    err = outcome_tell(o);
    wb_tally_add(&w->tally->unchanged, 1);
    if (err == 0 && is_root(errand)) {
        err = root_decides(errand, true);
        if (err == 0 && root_came(errand, page->md5))
            return 0;
    }
    if (err == 0)
        err = follow_links(errand, o->edit.page.links, o->edit.page.link_count);
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

static int page_failed(struct wb_errand *errand, struct wb_fetch_result *result, int error, const char *message);

static int fill_page(struct wb_errand *errand, struct wb_fetch_result *result, struct wb_page *page)
{
    struct wb_worker *w = errand->worker;
    struct wb_slice type;
    uint32_t days = w->plan->options->lifetime_days;
    int err = 0;

    *page = (struct wb_page){.id = errand->id, .url = wb_buf_slice(&errand->url), .key = wb_buf_slice(&errand->key), .head = result->head,
                             .type = WB_SLICE_EMPTY, .charset = WB_SLICE_EMPTY, .body = wb_buf_slice(&result->body), .time_ms = result->sent_ms,
                             .body_bytes = result->body.len, .lifetime = days, .lifetime_count = days, .status = result->status,
                             .kind = WB_PAGE_RESPONSE, .truncated = result->truncated};
    wb_buf_clear(&w->media_mem);
    if (wb_http_header(result->head, "content-type", &type))
        err = wb_media_type_parse(type, &w->media_mem, &page->type, &page->charset);
    if (errand->digested) {
        memcpy(page->md5, errand->body_md5, sizeof page->md5);
        memcpy(page->sha1, errand->body_sha1, sizeof page->sha1);
        page->digested = true;
    }
    wb_page_digest(page);
    return err;
}

static int store_page(struct wb_worker *w, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    int err = wb_store_put(w->store, page, outcome_out);

    w->uncommitted_pages++;
    w->uncommitted_bytes += page->body.len;
    wb_worker_dirty(w);
    return err;
}

/* Taken down since it was asked for: nothing is kept of it, the journal is not told of what was in it. */
static int page_barred(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    int err = 0;

    wb_event_skip(w, wb_buf_slice(&errand->url), "expunged");
    wb_seen_mark(&errand->site->seen, errand->id, true);
    if (is_root(errand)) {
        errand->site->probing = false;
        err = root_decides(errand, false);
    }
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/*
 * The store has a version that is dated later, though not so far ahead that its clock must have been wrong: nothing was
 * stored, and the journal must not believe so. The page is asked for again when it is due.
 */
static int page_older(struct outcome *o)
{
    struct wb_errand *errand = o->errand;

    o->edit.page = (struct wb_edit_page){.url = o->edit.page.url, .outcome = WB_OUTCOME_ERROR, .status = o->edit.page.status,
                                         .depth = o->edit.page.depth, .hops = o->edit.page.hops, .took_ms = o->edit.page.took_ms,
                                         .bytes = o->edit.page.bytes, .lifetime = o->edit.page.lifetime, .reason = WB_SLICE_LIT("older")};
    o->word = "older";
    o->message = "not stored: the stored version is dated later than this answer";
    wb_seen_mark(&errand->site->seen, errand->id, true);
    return outcome_tell(o);
}

/* New bytes: the page goes to spool, journal and store. */
static int content_new(struct outcome *o, const struct wb_page *page)
{
    struct wb_errand *errand = o->errand;
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_extract extract;
    enum wb_store_outcome put;

    int copy = page->body.len ? wb_seen_add(&w->contents, w->plan->options->dir, wb_pageid_get(page->md5)) : 1;
    if (copy < 0)
        return copy;
    int err = extract_page(o, page, &extract);
    if (err == 0)
        err = store_page(w, page, &put);
    if (err < 0)
        return err;
    if (put == WB_STORE_PUT_BARRED)
        return page_barred(errand);
    o->page = put == WB_STORE_PUT_OLDER ? NULL : page;
    const struct wb_edit_link *links = o->edit.page.links;
    size_t link_count = o->edit.page.link_count;
    if (put == WB_STORE_PUT_OLDER) {
        err = page_older(o);
        goto follow;
    }
    if (page->truncated) {
        o->edit.page.outcome = WB_OUTCOME_TRUNCATED;
        o->word = "truncated";
    } else if (copy == 0) {
        o->edit.page.outcome = WB_OUTCOME_DUPLICATE;
        o->word = "duplicate";
        wb_tally_add(&w->tally->duplicates, 1);
    }
    wb_seen_mark(&site->seen, errand->id, true);
    err = outcome_tell(o);
    site->pages++;
    if (errand->reserved)
        atomic_fetch_sub(&w->mine->reserved, 1);
    errand->reserved = false; /* it counts for good */
    wb_tally_add(&w->tally->pages, 1);
    wb_tally_add(&w->tally->bytes, page->body.len);
follow:
    if (err == 0 && is_root(errand)) {
        err = root_decides(errand, true);
        if (err == 0 && root_came(errand, page->md5))
            return 0;
        if (err == 0)
            err = follow_feeds(errand, &extract);
    }
    if (err == 0)
        err = follow_links(errand, links, link_count);
    if (err == 0)
        wb_dispatch_later(w, site);
    return err;
}

static int page_came(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct outcome o;
    struct wb_page page;

    int err = fill_page(errand, result, &page);
    if (err < 0)
        return err;
    if (errand->known && !page.truncated && memcmp(page.md5, errand->md5, WB_MD5_BYTES) == 0) {
        outcome_init(&o, errand, result, WB_OUTCOME_UNCHANGED, "unchanged");
        err = wb_store_touch(w->store, errand->id, result->sent_ms);
        w->uncommitted_pages++;
        wb_worker_dirty(w);
        if (err != WB_E_NOTFOUND)
            return err < 0 ? err : content_known(&o, &page);
        /* Our version was removed since we asked: this one is new. */
    }
    outcome_init(&o, errand, result, WB_OUTCOME_STORED, "stored");
    return content_new(&o, &page);
}

/* "The same as yours", but ours is gone or damaged: the page is asked for again, this time without conditions. */
static int ask_again(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_item item = errand->item;

    if (++item.tries >= WB_PAGE_TRIES_MAX)
        return page_failed(errand, result, WB_CRAWL_STATUS, "status 304, and no version of ours to go with it");
    int err = wb_item_push(errand->worker->spill, &errand->site->again, &item);
    if (err == 0)
        wb_dispatch_later(errand->worker, errand->site);
    return err;
}

static int not_modified(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct outcome o;
    struct wb_page page;

    outcome_init(&o, errand, result, WB_OUTCOME_UNCHANGED, "unchanged");
    int err = wb_store_get(w->store, errand->id, &page, &w->old_mem);
    if (err == 0) {
        o.edit.page.bytes = page.body_bytes;
        err = wb_store_touch(w->store, errand->id, result->sent_ms);
    }
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT)
        return ask_again(errand, result);
    if (err < 0)
        return err;
    w->uncommitted_pages++;
    wb_worker_dirty(w);
    return content_known(&o, &page);
}

int wb_page_reuse(struct wb_errand *errand, const struct wb_page *page)
{
    struct wb_fetch_result result = {.status = page->status, .sent_ms = page->time_ms};
    struct outcome o;

    outcome_init(&o, errand, &result, WB_OUTCOME_UNCHANGED, "fresh");
    o.edit.page.bytes = page->body_bytes;
    return content_known(&o, page);
}

int wb_page_refused(struct wb_errand *errand)
{
    struct wb_worker *w = errand->worker;
    struct wb_edit edit = {.kind = WB_EDIT_PAGE};

    edit.page = (struct wb_edit_page){.url = wb_buf_slice(&errand->url), .outcome = WB_OUTCOME_ROBOTS, .depth = errand->item.depth,
                                      .hops = errand->item.hops};
    wb_event_skip(w, edit.page.url, "robots");
    wb_worker_dirty(w);
    return wb_visit_note(w, errand->site, &edit);
}

/* ---- other answers ----------------------------------------------------------------------------------- */

static int page_failed(struct wb_errand *errand, struct wb_fetch_result *result, int error, const char *message)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct outcome o;
    bool down = error == WB_FETCH_CONNECT;
    bool passing = down || error == WB_FETCH_TIMEOUT || error == WB_FETCH_RESET || error == WB_FETCH_EMPTY || error == WB_FETCH_PARTIAL;
    bool again = passing && errand->item.tries + 1 < WB_PAGE_TRIES_MAX;

    outcome_init(&o, errand, result, again ? WB_OUTCOME_LATER : WB_OUTCOME_ERROR, "error");
    o.error = error;
    o.message = message;
    o.edit.page.reason = wb_slice_str(wb_crawl_error_word(error));
    int err = outcome_tell(&o);
    if (again) {
        struct wb_item item = errand->item;
        item.tries++;
        if (err == 0)
            err = wb_item_push(w->spill, &site->queue, &item);
    } else {
        wb_seen_mark(&site->seen, errand->id, true);
        if (err == 0)
            err = root_decides(errand, false);
    }
    if (is_root(errand))
        site->probing = false;
    if (err == 0 && down)
        wb_visit_back_off(w, site, 0, "connect");
    else if (err == 0)
        wb_dispatch_later(w, site);
    return err;
}

static int page_gone(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct outcome o;

    outcome_init(&o, errand, result, WB_OUTCOME_GONE, "gone");
    int err = outcome_tell(&o);
    wb_tally_add(&w->tally->gone, 1);
    wb_seen_mark(&errand->site->seen, errand->id, true);
    if (is_root(errand))
        errand->site->probing = false;
    if (err == 0)
        err = root_decides(errand, false);
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/* 429 and 503: the whole site is left alone for as long as it says. */
static int page_later(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_item item = errand->item;
    struct wb_slice value;
    struct outcome o;
    char words[32];
    int64_t until = 0;
    bool enough = ++item.tries >= WB_REFUSED_TRIES_MAX;

    outcome_init(&o, errand, result, enough ? WB_OUTCOME_ERROR : WB_OUTCOME_LATER, "error");
    o.error = WB_CRAWL_STATUS;
    snprintf(words, sizeof words, "status %u", result->status);
    o.message = words;
    o.edit.page.reason = WB_SLICE_LIT("status");
    int err = outcome_tell(&o);
    if (wb_http_header(result->head, "retry-after", &value))
        wb_http_retry_after(value, wb_worker_now(w), &until);
    if (enough)
        wb_seen_mark(&site->seen, errand->id, true);
    else if (err == 0)
        err = wb_item_push(w->spill, &site->again, &item);
    if (err == 0 && enough)
        err = root_decides(errand, false);
    if (err == 0)
        wb_visit_back_off(w, site, until, words);
    return err;
}

/* Where a redirect leads: to another spelling of the same page, to a page of this site, or elsewhere. */
static int follow_redirect(struct wb_errand *errand, struct wb_slice location)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = errand->item.depth, .hops = (uint8_t)(errand->item.hops + 1)};

    if (wb_pageid_equal(wb_pageid_of_key(wb_buf_slice(&w->key)), errand->id)) {
        if (wb_slice_equal(location, wb_buf_slice(&errand->url)))
            return 0;
        item.https = wb_slice_equal(wb_url_scheme(&w->target), WB_SLICE_LIT("https"));
        item.path = wb_site_path(&w->target);
        wb_seen_mark(&site->seen, errand->id, false);
        return wb_item_push(w->spill, &site->again, &item);
    }
    return wb_links_follow(w, site, location, &item, WB_ADMIT_FRONT);
}

static int page_redirects(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_slice location;
    struct outcome o;

    int err = wb_pagefacts_location(result->head, wb_buf_slice(&errand->url), &w->base_url, &w->target, &location);
    if (err == 0)
        err = wb_url_key(&w->target, &w->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : page_failed(errand, result, WB_CRAWL_LOCATION, wb_error_message());
    if (errand->item.hops >= WB_PAGE_HOPS_MAX)
        return page_failed(errand, result, WB_CRAWL_REDIRECTS, "too many redirects in a row");
    outcome_init(&o, errand, result, WB_OUTCOME_REDIRECT, "redirect");
    /* Parsing the target anew must not touch the text that the journal is given. */
    wb_buf_clear(&w->url_text);
    err = wb_buf_append_slice(&w->url_text, location);
    if (err < 0)
        return err;
    o.edit.page.location = wb_buf_slice(&w->url_text);
    err = outcome_tell(&o);
    wb_tally_add(&w->tally->redirects, 1);
    wb_seen_mark(&site->seen, errand->id, true);
    if (is_root(errand))
        site->probing = false;
    if (err == 0)
        err = follow_redirect(errand, o.edit.page.location);
    if (err >= 0 && is_root(errand))
        err = root_decides(errand, true);
    if (err >= 0)
        wb_dispatch_later(w, site);
    return err < 0 ? err : 0;
}

/* ---- sitemaps and probes -------------------------------------------------------------------------------- */

static int take_hints(struct wb_errand *errand, struct wb_edit *edit)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;

    for (size_t i = 0; i < edit->link_count; i++) {
        bool nested = edit->links[i].tag == WB_EDIT_TAG_SITEMAP;
        struct wb_item item = {.kind = nested ? WB_ITEM_SITEMAP : WB_ITEM_PAGE, .depth = 1};
        if (nested && (site->sitemaps + site->again.count > WB_SITEMAPS_MAX))
            continue;
        int err = wb_links_follow(w, site, edit->links[i].url, &item, nested ? WB_ADMIT_FRONT : 0);
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
    struct wb_fetch_event event = {.url = edit.text, .result = "sitemap", .status = result->status, .ms = result->took_ms,
                                   .bytes = result->body.len, .time_ms = result->sent_ms, .error = (int)result->error,
                                   .message = result->error ? result->message : NULL};
    struct wb_extract extract = {0};
    int err = 0;

    wb_seen_mark(&site->seen, errand->id, true);
    site->sitemaps_ms = result->sent_ms;
    if (!result->error && result->status / 100 != 2)
        event.error = WB_CRAWL_STATUS;
    if (!event.error) {
        err = wb_sitemap_extract(w->facts.extractor, wb_buf_slice(&errand->url), wb_buf_slice(&result->body), &extract);
        if (err == 0)
            err = wb_pagefacts_links(&w->facts, &extract, false, &edit.link_count);
        edit.links = w->facts.links;
    }
    if (err == 0)
        err = wb_visit_note(w, site, &edit);
    wb_event_fetch(w, &event);
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
        err = fill_page(errand, result, &page);
        if (err == 0 && root_came(errand, page.md5))
            return 0;
    }
    errand->site->probing = false;
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/* ---- all of them ------------------------------------------------------------------------------------------ */

static int page_outcome(struct wb_errand *errand, struct wb_fetch_result *result)
{
    char words[32];

    if (result->error)
        return page_failed(errand, result, (int)result->error, result->message);
    errand->site->attempts = 0;
    int barred = wb_known_barred(errand->worker, errand);
    if (barred != 0)
        return barred < 0 ? barred : page_barred(errand);
    if (wb_http_status_redirects(result->status))
        return page_redirects(errand, result);
    switch (result->status) {
    case 304:
        if (errand->known)
            return not_modified(errand, result);
        break;
    case 404:
    case 410:
        return page_gone(errand, result);
    default:
        if (result->status / 100 == 2)
            return page_came(errand, result);
        break;
    }
    snprintf(words, sizeof words, "status %u", result->status);
    return page_failed(errand, result, WB_CRAWL_STATUS, words);
}

void wb_page_done(struct wb_errand *errand, struct wb_fetch_result *result)
{
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
