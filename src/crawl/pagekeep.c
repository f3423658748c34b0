/*
 * pagekeep.c - what is done with the content of a page: extracting, storing, following its links.
 *
 *   new bytes        extract -> store_page (in memory) -> spool and log -> journal -> links into queues
 *   the same bytes   a further capture of the stored version; its links are followed as if it were new
 *   an unwanted type not stored (--types); its links are followed
 *   a redirect       stored like a page; it has no links, and pagework.c follows where it leads
 *
 * The store comes before the journal because the store says what it does with the page: the page may have been taken
 * down, its content may be known, or the store may have a newer version and keep no older ones. What an answer means
 * was decided before, in pagework.c.
 */
#include "base/check.h"
#include "crawl/worker.h"

enum { FEEDS_MAX = 4 }; /* of a root page */

/* ---- links ------------------------------------------------------------------------------------------------------- */

static int follow_links(struct wb_errand *errand, const struct wb_edit_page *page)
{
    for (size_t i = 0; i < page->link_count; i++) {
        int err = wb_links_follow_edit(errand->worker, errand->site, page, &page->links[i], 0);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Feeds that a root page names tell of new pages, as sitemaps do. */
static int follow_feeds(struct wb_errand *errand, const struct wb_extract *extract)
{
    struct wb_item item = {.kind = WB_ITEM_SITEMAP, .depth.links = 1};
    struct wb_worker *w = errand->worker;
    unsigned feeds = 0;

    if (!wb_errand_is_root(errand) || w->plan->options->ignore_sitemaps || w->plan->options->max_depth == 0 ||
        errand->item.depth.need)
        return 0;
    for (size_t i = 0; i < extract->link_count && feeds < FEEDS_MAX; i++) {
        if (!(extract->links[i].rels & WB_EXTRACT_REL_FEED))
            continue;
        int err = wb_links_follow(w, errand->site, extract->links[i].url, &item, 0);
        if (err < 0)
            return err;
        feeds++;
    }
    return 0;
}

static int extract_page(struct wb_outcome *o, const struct wb_page *page, struct wb_extract *extract)
{
    struct wb_worker *w = o->errand->worker;

    unsigned wants = WB_EXTRACT_LINKS | (w->plan->options->with ? WB_EXTRACT_NEEDS : 0u);

    struct wb_pagefacts facts;
    int err = wb_factfinder_read(&w->finder, page, w->plan->agent, wants, &facts, extract);
    if (err < 0)
        return err;
    wb_edit_page_describe(&o->edit.page, page, &facts);
    struct wb_errand *errand = o->errand;
    wb_trap_learn(&errand->site->trap, errand->item.path, extract->simhash);
    if (errand->item.depth.need && strcmp(extract->module, "html") == 0)
        err = wb_seen_add(&errand->site->unread, w->plan->options->dir, errand->id);
    return err < 0 ? err : 0;
}

/* ---- content that we have ---------------------------------------------------------------------------------------- */

/*
 * Our version is still right. Its links are followed as if it had been fetched. Returns 1 if the page is the root and
 * shows that the site is an alias: the site is closed then.
 */
static int content_known(struct wb_outcome *o, const struct wb_page *page)
{
    struct wb_errand *errand = o->errand;
    struct wb_worker *w = errand->worker;
    struct wb_extract extract;

    int err = extract_page(o, page, &extract);
    if (err < 0)
        return err;
    wb_news_mark(w, errand->site, errand->id, true);
    err = wb_outcome_tell(o);
    wb_tally_add(&w->tally->unchanged, 1);
    if (err == 0 && wb_errand_is_root(errand)) {
        err = wb_pagework_decide_root(errand, true);
        if (err == 0 && wb_names_root_came(w, errand->site, page->md5))
            return 1;
    }
    if (err == 0)
        err = follow_links(errand, &o->edit.page);
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/* "Not modified", but our version is gone, damaged or out of reach: asks again, this time without conditions. */
static int ask_again(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_item item = errand->item;

    if (++item.tries >= WB_PAGE_TRIES_MAX)
        return wb_pagework_failed(errand, result, WB_CRAWL_STATUS, "status 304, and no version of ours to go with it");
    int err = wb_item_push(errand->worker->repo.spill, &errand->site->again, &item);
    if (err == 0)
        wb_dispatch_later(errand->worker, errand->site);
    return err;
}

int wb_pagekeep_not_modified(struct wb_errand *errand, struct wb_fetch_result *result)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->known);
    struct wb_worker *w = errand->worker;
    struct wb_outcome o;
    struct wb_page page;

    wb_outcome_init(&o, errand, result, WB_OUTCOME_UNCHANGED, "unchanged");
    int err = wb_store_get(w->repo.store, errand->id, &page, &w->scratch.old_page);
    if (err == 0) {
        o.edit.page.bytes = page.body_bytes;
        err = wb_store_touch(w->repo.store, errand->id, result->sent_ms);
    }
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_DOWN)
        return ask_again(errand, result);
    if (err < 0)
        return err;
    w->uncommitted.pages++;
    wb_worker_dirty(w);
    err = content_known(&o, &page);
    return err < 0 ? err : 0;
}

int wb_pagekeep_reuse(struct wb_errand *errand, const struct wb_page *page)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && !errand->known);
    struct wb_fetch_result result = {.status = page->status, .sent_ms = page->time_ms};
    struct wb_outcome o;

    wb_outcome_init(&o, errand, &result, WB_OUTCOME_UNCHANGED, "fresh");
    o.edit.page.bytes = page->body_bytes;
    return content_known(&o, page);
}

/* ---- new content ------------------------------------------------------------------------------------------------- */

int wb_pagekeep_fill(struct wb_errand *errand, struct wb_fetch_result *result, struct wb_page *page_out)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->key.len > 0 && errand->url.len > 0);
    struct wb_worker *w = errand->worker;
    struct wb_slice type;
    uint32_t days = w->plan->options->lifetime_days;
    int err = 0;

    *page_out = (struct wb_page){.id = errand->id, .url = wb_buf_slice(&errand->url), .key = wb_buf_slice(&errand->key),
                             .head = result->head, .type = WB_SLICE_EMPTY, .charset = WB_SLICE_EMPTY,
                             .body = wb_buf_slice(&result->body), .time_ms = result->sent_ms,
                             .body_bytes = result->body.len, .lifetime = days, .lifetime_count = days,
                             .status = result->status, .kind = WB_PAGE_RESPONSE, .truncated = result->truncated};
    wb_buf_clear(&w->scratch.media_type);
    if (wb_http_header(result->head, "content-type", &type))
        err = wb_media_type_parse(type, &w->scratch.media_type, &page_out->type, &page_out->charset);
    if (errand->digested) {
        memcpy(page_out->md5, errand->body_md5, sizeof page_out->md5);
        memcpy(page_out->sha1, errand->body_sha1, sizeof page_out->sha1);
        page_out->digested = true;
    }
    wb_page_digest(page_out);
    return err;
}

static int store_page(struct wb_worker *w, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && page->digested && page->key.len > 0);
    int err = wb_store_put(w->repo.store, page, outcome_out);

    w->uncommitted.pages++;
    w->uncommitted.bytes += page->body.len;
    wb_worker_dirty(w);
    return err;
}

/* Without a stated type, the page is of the type that its bytes are read as. */
static bool is_wanted(const struct wb_worker *w, const struct wb_page *page)
{
    const struct wb_crawl_types *types = &w->plan->options->types;

    return wb_crawl_types_have(types, page->type.len ? page->type : wb_extract_sniff(page->body));
}

int wb_pagekeep_redirect(struct wb_errand *errand, struct wb_fetch_result *result, struct wb_page *page_out,
                         enum wb_store_outcome *put_out)
{
    *put_out = WB_STORE_PUT_OLDER;
    int err = wb_pagekeep_fill(errand, result, page_out);
    if (err == 0 && is_wanted(errand->worker, page_out))
        err = store_page(errand->worker, page_out, put_out);
    /* Its node is down. Where the page leads to is in the journal, and the page is stored when it is due again. */
    return err == WB_E_DOWN ? 0 : err;
}

/*
 * The store has a version that is dated later, though not so far ahead that its clock must have been wrong, and its
 * history policy keeps none that is older; or it has a capture of the same moment. Nothing was stored, and the journal
 * must not say otherwise. The page is asked for again when it is due.
 */
static int page_older(struct wb_outcome *o)
{
    struct wb_errand *errand = o->errand;

    o->edit.page = (struct wb_edit_page){.url = o->edit.page.url, .outcome = WB_OUTCOME_ERROR,
                                         .status = o->edit.page.status, .depth = o->edit.page.depth,
                                         .hops = o->edit.page.hops, .took_ms = o->edit.page.took_ms,
                                         .bytes = o->edit.page.bytes, .lifetime = o->edit.page.lifetime,
                                         .reason = WB_SLICE_LIT("older")};
    o->word = "older";
    o->message = "not stored: the stored version is dated later than this answer";
    wb_news_mark(errand->worker, errand->site, errand->id, true);
    return wb_outcome_tell(o);
}

/* The store took the page: writes its outcome and counts it. copy: another page has the same bytes. */
static int tell_stored(struct wb_outcome *o, const struct wb_page *page, bool copy)
{
    WB_CHECK(o->edit.page.outcome == WB_OUTCOME_STORED && !o->page);
    struct wb_errand *errand = o->errand;
    struct wb_worker *w = errand->worker;

    if (page->truncated) {
        o->edit.page.outcome = WB_OUTCOME_TRUNCATED;
        o->word = "truncated";
    } else if (copy) {
        o->edit.page.outcome = WB_OUTCOME_DUPLICATE;
        o->word = "duplicate";
        wb_tally_add(&w->tally->duplicates, 1);
    }
    o->page = page;
    wb_news_mark(w, errand->site, errand->id, true);
    int err = wb_outcome_tell(o);
    errand->site->pages++;
    if (errand->reserved)
        WB_CHECK(atomic_fetch_sub(&w->mine->reserved, 1) > 0);
    errand->reserved = false; /* it counts for good */
    wb_tally_add(&w->tally->pages, 1);
    wb_tally_add(&w->tally->bytes, page->body.len);
    return err;
}

/* A page has been dealt with: what its site and its links lead to. */
static int go_on(struct wb_errand *errand, const struct wb_page *page, struct wb_extract *extract,
                 const struct wb_edit_page *read)
{
    struct wb_worker *w = errand->worker;
    int err = 0;

    if (wb_errand_is_root(errand)) {
        err = wb_pagework_decide_root(errand, true);
        if (err == 0 && wb_names_root_came(w, errand->site, page->md5))
            return 0;
        if (err == 0)
            err = follow_feeds(errand, extract);
    }
    if (err == 0)
        err = follow_links(errand, read);
    if (err == 0)
        wb_dispatch_later(w, errand->site);
    return err;
}

/*
 * A page with bytes that it did not have before. If the clock went backwards and the store keeps old versions, it was
 * stored as one of these (WB_STORE_PUT_PAST); webdb goes by the time of a visit, so it will not take it for the latest.
 */
static int content_new(struct wb_outcome *o, const struct wb_page *page, enum wb_store_outcome put)
{
    struct wb_errand *errand = o->errand;
    struct wb_worker *w = errand->worker;
    struct wb_extract extract;
    bool refused = put == WB_STORE_PUT_OLDER || put == WB_STORE_PUT_KNOWN;
    int fresh = 1; /* 0: another page has the same bytes */

    if (page->body.len)
        fresh = wb_seen_add(&w->contents, w->plan->options->dir, wb_pageid_get(page->md5));
    if (fresh < 0)
        return fresh;
    int err = extract_page(o, page, &extract);
    if (err < 0)
        return err;
    const struct wb_edit_page read = o->edit.page; /* also if the journal will not say so */
    err = refused ? page_older(o) : tell_stored(o, page, fresh == 0);
    return err < 0 ? err : go_on(errand, page, &extract, &read);
}

/* ---- content that nobody wants ----------------------------------------------------------------------------------- */

/*
 * The page is of a type that --types leaves out: it is not stored, but its links are followed. The journal says that it
 * was looked at, and has its links, so that a restarted crawl does not ask for it again. If an older version is stored,
 * nothing was learned about that one.
 */
static int page_unwanted(struct wb_errand *errand, struct wb_fetch_result *result, const struct wb_page *page)
{
    struct wb_worker *w = errand->worker;
    struct wb_extract extract;
    struct wb_outcome o;

    wb_outcome_init(&o, errand, result, errand->known ? WB_OUTCOME_ERROR : WB_OUTCOME_UNCHANGED, "unwanted");
    const struct wb_edit_page fetched = o.edit.page;
    int err = extract_page(&o, page, &extract);
    if (err < 0)
        return err;
    const struct wb_edit_page read = o.edit.page;
    o.edit.page = fetched;
    o.edit.page.reason = errand->known ? WB_SLICE_LIT("unwanted") : WB_SLICE_EMPTY;
    o.edit.page.type = read.type;
    o.edit.page.links = read.links;
    o.edit.page.link_count = read.link_count;
    wb_news_mark(w, errand->site, errand->id, true);
    wb_worker_dirty(w);
    err = wb_outcome_tell(&o);
    wb_tally_add(&w->tally->skipped, 1);
    return err < 0 ? err : go_on(errand, page, &extract, &read);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

int wb_pagekeep_came(struct wb_errand *errand, struct wb_fetch_result *result)
{
    enum wb_store_outcome put;
    struct wb_outcome o;
    struct wb_page page;

    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && result->status / 100 == 2);
    int err = wb_pagekeep_fill(errand, result, &page);
    if (err == 0 && !is_wanted(errand->worker, &page))
        return page_unwanted(errand, result, &page);
    if (err == 0)
        err = store_page(errand->worker, &page, &put);
    if (err == WB_E_DOWN) /* its node is down: that costs the page, which is asked for again when it is due */
        return wb_pagework_failed(errand, result, WB_CRAWL_STORE, wb_error_message());
    if (err < 0)
        return err;
    if (put == WB_STORE_PUT_BARRED)
        return wb_pagework_barred(errand);
    /* The same bytes with another status or media type are a version of their own, and yet the page is unchanged. But
       if our version was removed after the request was sent, this one is new. */
    bool same = errand->known && memcmp(page.md5, errand->md5, WB_MD5_BYTES) == 0 && put != WB_STORE_PUT_NEW;
    if (page.truncated || (!same && put != WB_STORE_PUT_CAPTURE)) {
        wb_outcome_init(&o, errand, result, WB_OUTCOME_STORED, "stored");
        return content_new(&o, &page, put);
    }
    wb_outcome_init(&o, errand, result, WB_OUTCOME_UNCHANGED, "unchanged");
    if (put == WB_STORE_PUT_VERSION || put == WB_STORE_PUT_PAST)
        o.page = &page;
    err = content_known(&o, &page);
    return err < 0 ? err : 0;
}
