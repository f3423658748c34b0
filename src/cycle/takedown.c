/*
 * takedown.c - removal on request: a page, or all pages of a site, at once and from everything; they are not fetched again.
 *
 * The journal comes first, then the store, then the merge. Whoever is killed between has at least said so: the next update bars
 * the pages, and the next expunge removes barred pages that are still in the store. Their bytes are gone from
 * disk with the next compaction, which rewrites what they lay in. Links that lead to them stay links.
 */
#include "base/error.h"
#include "cycle/removal.h"
#include "cycle/update.h"
#include "os/stop.h"

struct takedown {
    const char *what;
    bool allow;
    const struct wb_cycle_sink *sink;
    wb_expunge_each each;
    void *context;
    struct wb_webdb *webdb;     /* NULL: there is none yet */
    struct wb_removal removal;
    struct wb_buf site;
    uint64_t noted;
    struct wb_expunge_stat *stat;
};

static int go_on(const struct takedown *t, uint64_t done)
{
    if (wb_stop_requested() || (t->sink->progress && !t->sink->progress(t->sink->context, "removing", done, 0)))
        return wb_fail(WB_E_STOPPED, "stopped");
    return 0;
}

static int fail_unknown(const struct takedown *t)
{
    if (t->allow)
        return wb_fail(WB_E_NOTFOUND, "%s: nothing of that name was taken down", t->what);
    return wb_fail(WB_E_NOTFOUND, "%s: nothing is known by that name", t->what);
}

/* ---- one page ---------------------------------------------------------------------------------------------- */

static int note_page(struct takedown *t, struct wb_slice url, const struct wb_webdb_page *page)
{
    bool barred = page && (page->flags & WB_PAGE_BARRED);

    if (t->allow && !barred)
        return 0;
    t->noted++;
    if (t->allow)
        return wb_removal_note(&t->removal, url, WB_EXPUNGE_ALLOWED);
    return barred ? 0 : wb_removal_note(&t->removal, url, WB_EXPUNGE_BARRED);
}

static int drop_page(struct takedown *t, struct wb_slice url, uint64_t bytes)
{
    struct wb_pageid id;
    int err = wb_removal_id(&t->removal, url, &id);

    if (err < 0)
        return err;
    int there = wb_removal_store(&t->removal, id);
    if (there <= 0)
        return there;
    t->stat->pages++;
    t->stat->bytes += bytes;
    if (t->each)
        t->each(t->context, url, "taken down");
    return 0;
}

static bool is_stored(struct takedown *t, struct wb_slice url, uint64_t *bytes_out)
{
    struct wb_pageid id;
    struct wb_page page;

    *bytes_out = 0;
    if (wb_removal_id(&t->removal, url, &id) < 0)
        return false;
    int err = wb_store_get(t->removal.store, id, &page, &t->removal.mem);
    *bytes_out = err == 0 ? page.body.len : 0;
    return err == 0 || err == WB_E_CORRUPT;
}

static int take_url(struct takedown *t)
{
    struct wb_slice url = wb_slice_str(t->what);
    struct wb_buf href = WB_BUF_INIT;
    struct wb_webdb_page page;
    uint64_t bytes;
    int err = t->webdb ? wb_webdb_get_page(t->webdb, url, &page) : WB_E_NOTFOUND;
    bool known = err == 0;

    if (err == WB_E_NOTFOUND)
        err = 0;
    bool stored = err == 0 && is_stored(t, url, &bytes);
    if (err == 0)
        err = wb_buf_append_slice(&href, known ? page.url : wb_url_href(&t->removal.url));
    if (err == 0 && !known && !stored)
        err = fail_unknown(t);
    if (err == 0)
        err = note_page(t, wb_buf_slice(&href), known ? &page : NULL);
    if (err == 0 && t->allow && t->noted == 0)
        err = fail_unknown(t);
    if (err == 0)
        err = wb_removal_noted(&t->removal);
    if (err == 0 && !t->allow)
        err = drop_page(t, wb_buf_slice(&href), bytes);
    if (err == 0)
        err = wb_removal_commit(&t->removal);
    t->stat->known += known && !stored && !t->allow;
    wb_buf_release(&href);
    return err;
}

/* ---- a site ------------------------------------------------------------------------------------------------- */

/* Calls with each page that webdb has of the site. */
static int each_known(struct takedown *t, int (*each)(struct takedown *t, const struct wb_webdb_page *page))
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    int got = 0, err = t->webdb ? wb_webdb_pages_of_site(t->webdb, wb_buf_slice(&t->site), &pages) : 0;

    for (uint64_t n = 0; err == 0 && pages && (got = wb_webdb_pages_next(pages, &page)) > 0; n++) {
        err = n % 1024 ? 0 : go_on(t, n);
        if (err == 0)
            err = each(t, &page);
    }
    wb_webdb_pages_close(pages);
    return err < 0 ? err : got;
}

static int note_known(struct takedown *t, const struct wb_webdb_page *page)
{
    t->stat->known += !page->has_content;
    return note_page(t, page->url, page);
}

static int drop_known(struct takedown *t, const struct wb_webdb_page *page)
{
    return drop_page(t, page->url, page->bytes);
}

/* Calls with each page that the store has of the site, old versions included. */
static int each_stored(struct takedown *t, enum wb_scan_view view, int (*each)(struct takedown *t, const struct wb_page *page))
{
    struct wb_scan_options options = {.view = view, .site = wb_buf_slice(&t->site)};
    struct wb_scan *scan = NULL;
    struct wb_page page;
    int got = 0, err = wb_scan_open(t->removal.store, &options, &scan);

    for (uint64_t n = 0; err == 0 && (got = wb_scan_next(scan, &page)) != 0; n++) {
        if (got == WB_E_CORRUPT)
            continue;
        err = got < 0 ? got : n % 1024 ? 0 : go_on(t, n);
        if (err == 0)
            err = each(t, &page);
    }
    wb_scan_close(scan);
    return err;
}

/* What webdb has not been told of yet. */
static int note_stored(struct takedown *t, const struct wb_page *stored)
{
    struct wb_webdb_page page;
    int err = t->webdb ? wb_webdb_get_page(t->webdb, stored->url, &page) : WB_E_NOTFOUND;

    if (err == WB_E_NOTFOUND)
        return note_page(t, stored->url, NULL);
    return err == WB_E_INVALID ? 0 : err;
}

static int drop_stored(struct takedown *t, const struct wb_page *page)
{
    return drop_page(t, page->url, page->body_bytes);
}

static int take_site(struct takedown *t)
{
    int err = each_known(t, note_known);

    if (err == 0 && !t->allow)
        err = each_stored(t, WB_SCAN_LATEST, note_stored);
    if (err == 0 && t->noted == 0)
        err = fail_unknown(t);
    if (err == 0)
        err = wb_removal_noted(&t->removal);
    if (err < 0 || t->allow)
        return err;
    err = each_known(t, drop_known);
    if (err == 0)
        err = wb_removal_commit(&t->removal);
    if (err == 0)
        err = each_stored(t, WB_SCAN_LATEST, drop_stored);
    if (err == 0)
        err = wb_removal_commit(&t->removal);
    if (err == 0)
        err = each_stored(t, WB_SCAN_GENERATION, drop_stored);
    return err < 0 ? err : wb_removal_commit(&t->removal);
}

/* ---- begin and end -------------------------------------------------------------------------------------------- */

/* "Example.org:8080" in the spelling that keys have. */
static int read_site(struct takedown *t)
{
    struct wb_buf text = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = WB_URL_INIT;

    int err = wb_buf_printf(&text, "http://%s/", t->what);
    if (err == 0 && (strpbrk(t->what, "/?#@\\ ") || !t->what[0] || wb_url_parse(wb_buf_slice(&text), NULL, &url) < 0))
        err = wb_fail(WB_E_INVALID, "%s is neither a URL nor a host", t->what);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_buf_append_slice(&t->site, wb_key_site(wb_buf_slice(&key)));
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&text);
    return err;
}

/* What crawlers that died had in hand comes into the store first: it would come there later otherwise. */
static int settle(struct takedown *t, const struct wb_update_options *options)
{
    struct wb_fetchlist *list = NULL;

    if (!wb_update_dispenser_known(options))
        return 0;
    int err = wb_fetchlist_open(options->dir, options->dispenser, NULL, t->sink->warn, t->sink->context, &list);
    wb_fetchlist_close(list);
    return err;
}

static int take_down(struct takedown *t, const struct wb_update_options *options)
{
    bool is_url = strstr(t->what, "://") != NULL;
    struct wb_url url = WB_URL_INIT;
    int err = 0;

    if (is_url)
        err = wb_url_parse(wb_slice_str(t->what), NULL, &url);
    if (err == 0 && is_url && !wb_url_is_http(&url))
        err = wb_fail(WB_E_INVALID, "%s is no URL of http or https", t->what);
    wb_url_release(&url);
    if (err == 0 && !is_url)
        err = read_site(t);
    if (err == 0)
        err = settle(t, options);
    if (err == 0)
        err = wb_removal_open(options->dir, true, &t->removal);
    if (err < 0)
        return err;
    err = wb_webdb_open(options->dir, &t->webdb);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    return is_url ? take_url(t) : take_site(t);
}

int wb_expunge(const struct wb_update_options *options, const char *what, bool allow, const struct wb_cycle_sink *sink, wb_expunge_each each,
               void *context, struct wb_expunge_stat *stat_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct takedown t = {.what = what, .allow = allow, .sink = sink ? sink : &quiet, .each = each, .context = context, .stat = stat_out};
    struct wb_webdb_merge merge;

    *stat_out = (struct wb_expunge_stat){0};
    int err = take_down(&t, options);
    wb_webdb_close(t.webdb);
    wb_removal_close(&t.removal);
    wb_buf_release(&t.site);
    return err < 0 ? err : wb_update(options, sink, &merge, NULL);
}
