/*
 * takedown.c - removes a page or a whole site on request: at once, everywhere, and for good.
 *
 *   1 bar       in the store, durable: from now on no process can store it, not even one that has already fetched it
 *   2 journal   records it, so that webdb can show it
 *   3 store     all versions of the pages are removed, from all snapshots; no page must be read for this, so damaged
 *               ones are removed too
 *   4 spools    those of dead crawlers are emptied into the store, which refuses what is barred
 *   5 merge     webdb
 *
 * A takedown that is killed after step 1 has barred the pages, and the next expunge removes what is left of them. Their
 * bytes disappear from disk with the next compaction, which rewrites the blocks that held them. Links to them stay.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/removal.h"
#include "cycle/update.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

#define TAKEDOWN_MAGIC 0x57425444u

struct takedown {
    uint32_t magic;             /* TAKEDOWN_MAGIC while wb_expunge() is at work */
    const char *what;
    bool allow;
    const struct wb_cycle_sink *sink;
    wb_expunge_each each;
    void *context;
    struct wb_webdb *webdb;     /* NULL: there is none */
    struct wb_removal removal;
    struct wb_buf site;
    bool barred;                /* step 1 is done, so nobody can store the pages again */
    uint64_t noted;             /* journal records written */
    uint64_t looked_at;         /* stored pages, for progress */
    struct wb_expunge_stat *stat;
};

static int go_on(const struct takedown *t, uint64_t done)
{
    if (wb_stop_requested() || (t->sink->progress && !t->sink->progress(t->sink->context, "removing", done, 0)))
        return wb_fail(WB_E_STOPPED, "stopped");
    return 0;
}

/* Sets or lifts the bar. Lifting a missing bar is an error only if webdb does not show one either. */
static int change_bar(struct takedown *t, const struct wb_store_bar *bar, bool *lifted_out)
{
    WB_CHECK(t->magic == TAKEDOWN_MAGIC && !t->barred);
    *lifted_out = false;
    if (!t->allow) {
        int err = wb_store_bar(t->removal.store, bar);
        t->barred = err == 0;
        return err;
    }
    int err = wb_store_allow(t->removal.store, bar);
    *lifted_out = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int fail_not_barred(const struct takedown *t)
{
    return wb_fail(WB_E_NOTFOUND, "%s: nothing of that name was taken down", t->what);
}

/* ---- one page ---------------------------------------------------------------------------------------------- */

static int note_page(struct takedown *t, struct wb_slice url, const struct wb_webdb_page *page)
{
    WB_CHECK(t->allow || t->barred);
    bool barred = page && (page->flags & WB_PAGE_BARRED);

    if (t->allow && !barred)
        return 0;
    t->noted++;
    if (t->allow)
        return wb_removal_note(&t->removal, url, WB_EXPUNGE_ALLOWED);
    return barred ? 0 : wb_removal_note(&t->removal, url, WB_EXPUNGE_BARRED);
}

/* A page that cannot be removed must not keep the others from being removed: warn and count it. */
static int cannot_remove(struct takedown *t, struct wb_slice name)
{
    char text[WB_ERROR_MESSAGE_MAX];

    snprintf(text, sizeof text, "%.*s: could not be removed: %s", (int)(name.len < 400 ? name.len : 400), name.ptr,
             wb_error_message());
    if (t->sink->warn)
        t->sink->warn(t->sink->context, text);
    t->stat->left++;
    return 0;
}

/* name: the URL, or the page id if the URL is unknown. */
static int drop_id(struct takedown *t, struct wb_pageid id, struct wb_slice site, struct wb_slice name, uint64_t bytes)
{
    WB_CHECK(!t->allow && t->barred && t->removal.everywhere);
    int there = wb_removal_store(&t->removal, id, site, t->removal.now_ms);

    if (there == WB_E_CORRUPT)
        return cannot_remove(t, name);
    if (there <= 0)
        return there;
    t->stat->pages++;
    t->stat->bytes += bytes;
    if (t->each)
        t->each(t->context, name, "taken down");
    return 0;
}

static int drop_page(struct takedown *t, struct wb_slice url, uint64_t bytes)
{
    struct wb_pageid id;
    int err = wb_removal_id(&t->removal, url, &id);

    return err < 0 ? err : drop_id(t, id, wb_key_site(wb_buf_slice(&t->removal.key)), url, bytes);
}

/* True if the store has any version of the page, readable or not; fills *page_out if it can be read. */
static bool is_stored(struct takedown *t, struct wb_pageid id, struct wb_page *page_out)
{
    int err = wb_removal_read(&t->removal, id, page_out);

    if (err < 0)
        *page_out = (struct wb_page){0};
    return err == 0 || err == WB_E_CORRUPT || err == WB_E_DOWN;
}

/* Looks a page up in webdb. 1 if it is known; *href_out is its URL as webdb has it, or else as given. */
static int look_up(struct takedown *t, struct wb_slice url, struct wb_webdb_page *page_out, struct wb_buf *href_out)
{
    int err = t->webdb ? wb_webdb_get_page(t->webdb, url, page_out) : WB_E_NOTFOUND;

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    int copied = wb_buf_append_slice(href_out, err == 0 ? page_out->url : wb_url_href(&t->removal.url));
    return copied < 0 ? copied : err == 0;
}

static int take_url(struct takedown *t)
{
    struct wb_slice url = wb_slice_str(t->what);
    struct wb_buf href = WB_BUF_INIT;
    struct wb_store_bar bar = {.kind = WB_STORE_BAR_PAGE, .time_ms = t->removal.now_ms};
    struct wb_webdb_page page;
    struct wb_page stored = {0};
    bool lifted = false, was_stored = false;
    int err = wb_removal_id(&t->removal, url, &bar.id);

    if (err == 0) {
        bar.site = wb_key_site(wb_buf_slice(&t->removal.key));
        err = change_bar(t, &bar, &lifted);
    }
    int known = err == 0 ? look_up(t, url, &page, &href) : err;
    err = known < 0 ? known : note_page(t, wb_buf_slice(&href), known ? &page : NULL);
    if (err == 0 && t->allow && t->noted == 0 && !lifted)
        err = fail_not_barred(t);
    if (err == 0)
        err = wb_removal_noted(&t->removal);
    if (err == 0 && !t->allow) {
        was_stored = is_stored(t, bar.id, &stored);
        err = drop_page(t, wb_buf_slice(&href), stored.body.len);
    }
    if (err == 0)
        err = wb_removal_commit(&t->removal);
    t->stat->known += known > 0 && !was_stored && !t->allow;
    wb_buf_release(&href);
    return err;
}

/* ---- a site ------------------------------------------------------------------------------------------------- */

/* Calls each with every page of the site that webdb knows. */
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

/* Removes a page that webdb may not know yet. If it can be read, webdb will show it as taken down. */
static int drop_listed(struct takedown *t, struct wb_pageid id)
{
    char name[WB_PAGEID_HEX + 1];
    struct wb_webdb_page known;
    struct wb_page stored;
    bool readable = is_stored(t, id, &stored) && stored.url.len;
    int err = readable && t->webdb ? wb_webdb_get_page(t->webdb, stored.url, &known) : WB_E_NOTFOUND;

    if (readable && err == WB_E_NOTFOUND)
        err = note_page(t, stored.url, NULL);
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_INVALID)
        return err;
    wb_pageid_hex(id, name);
    return drop_id(t, id, wb_buf_slice(&t->site), readable ? stored.url : wb_slice_str(name), stored.body.len);
}

static int drop_stored(void *context, struct wb_pageid id)
{
    struct takedown *t = context;
    uint64_t before = t->stat->pages;
    int err = t->looked_at++ % 1024 ? 0 : go_on(t, t->looked_at);

    WB_CHECK(t->magic == TAKEDOWN_MAGIC);
    if (err == 0)
        err = drop_listed(t, id);
    return err < 0 ? err : t->stat->pages > before;
}

static int take_site(struct takedown *t)
{
    WB_CHECK(t->site.len > 0);
    struct wb_store_bar bar = {.kind = WB_STORE_BAR_SITE, .site = wb_buf_slice(&t->site), .time_ms = t->removal.now_ms};
    bool lifted;
    int err = change_bar(t, &bar, &lifted);

    if (err == 0)
        err = each_known(t, note_known);
    if (err == 0 && t->allow && t->noted == 0 && !lifted)
        err = fail_not_barred(t);
    if (err == 0)
        err = wb_removal_noted(&t->removal);
    if (err < 0 || t->allow)
        return err;
    err = each_known(t, drop_known);
    if (err == 0)
        err = wb_removal_commit(&t->removal);
    if (err == 0)
        err = wb_removal_each_of_site(&t->removal, wb_buf_slice(&t->site), drop_stored, t);
    return err < 0 ? err : wb_removal_noted(&t->removal);
}

/* ---- the whole takedown --------------------------------------------------------------------------------------------
 */

/* Turns "Example.org:8080" into the spelling that normal forms use. */
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

/*
 * Spools of dead crawlers may still hold the bytes of what was taken down. Opening a fetch list recovers them: their
 * pages go to the store, which refuses what is barred.
 */
static int recover_spools(struct takedown *t, const struct wb_update_options *options)
{
    struct wb_fetchlist *list = NULL;

    WB_CHECK(!t->allow && t->barred && t->removal.uncommitted == 0);
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
        err = wb_fail(WB_E_INVALID, "%s is not a URL of http or https", t->what);
    wb_url_release(&url);
    if (err == 0 && !is_url)
        err = read_site(t);
    if (err == 0)
        err = wb_removal_open(options->dir, true, &t->removal);
    if (err < 0)
        return err;
    err = wb_webdb_open(options->dir, &t->webdb);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    err = is_url ? take_url(t) : take_site(t);
    return err < 0 || t->allow ? err : recover_spools(t, options);
}

/* webdb only displays takedowns. If another update is running, the next one will show this takedown. */
static int merge(struct takedown *t, const struct wb_update_options *options)
{
    WB_CHECK(!t->removal.store && !t->removal.log); /* an update would wait for them */
    struct wb_webdb_merge merged;
    int err = wb_update(options, t->sink, &merged, NULL);

    if (err != WB_E_BUSY)
        return err;
    if (t->sink->warn)
        t->sink->warn(t->sink->context, "another update is running: webdb shows this takedown after the next one");
    return 0;
}

int wb_expunge(const struct wb_update_options *options, const char *what, bool allow, const struct wb_cycle_sink *sink,
               wb_expunge_each each, void *context, struct wb_expunge_stat *stat_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct takedown t = {.magic = TAKEDOWN_MAGIC, .what = what, .allow = allow, .sink = sink ? sink : &quiet,
                         .each = each, .context = context, .stat = stat_out};

    *stat_out = (struct wb_expunge_stat){0};
    int err = take_down(&t, options);
    wb_webdb_close(t.webdb);
    wb_removal_close(&t.removal);
    wb_buf_release(&t.site);
    if (err == 0)
        err = merge(&t, options);
    if (err == 0 && stat_out->left)
        err =
            wb_fail(WB_E_CORRUPT, "%s: %" PRIu64 " pages could not be removed; they are barred", what, stat_out->left);
    return err;
}
