/*
 * expunge.c - pages that are no longer on the web leave the latest state of the repository (WebBase, section 3.2).
 * Their versions stay as long as snapshots and the history policy keep them.
 *
 *   gone       the last answer was 404 or 410
 *   expired    its lifetime has ended, a crawl was told to visit it and has finished with its site, but did not fetch
 *              it; or its site is an alias of another one and is not visited any more
 *   moved      it redirects elsewhere, and the lifetime of the stored copy has ended
 *   barred     it was taken down by an expunge that was killed before it had removed everything
 *
 * A page whose site could not be visited is reprieved. A page that no crawl was told to visit stays until one was: a
 * machine that was off for months throws nothing away. The order is store, journal, merge. If it is killed in between,
 * the next expunge finds the same pages again, because webdb still has them.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/removal.h"
#include "cycle/update.h"
#include "os/stop.h"

#include <stdio.h>

#define PROGRESS_PAGES 4096

#define EXPUNGE_MAGIC 0x57424558u

struct expunge {
    uint32_t magic; /* EXPUNGE_MAGIC while wb_expunge_expired() is at work */
    const struct wb_update_options *options;
    const struct wb_cycle_sink *sink;
    wb_expunge_each each;
    void *context;
    struct wb_webdb *webdb;
    struct wb_fetchlist *list;   /* NULL: not opened yet */
    struct wb_removal removal;
    struct wb_expunge_stat *stat;
    uint64_t walked, total;
};

static void warn(void *context, const char *message)
{
    const struct expunge *x = context;

    WB_CHECK(x->magic == EXPUNGE_MAGIC);
    if (x->sink->warn)
        x->sink->warn(x->sink->context, message);
}

static int go_on(struct expunge *x)
{
    if (x->walked++ % PROGRESS_PAGES)
        return 0;
    if (wb_stop_requested() ||
        (x->sink->progress && !x->sink->progress(x->sink->context, "expunging", x->walked, x->total)))
        return wb_fail(WB_E_STOPPED, "stopped");
    return 0;
}

/* ---- which pages ---------------------------------------------------------------------------------------------- */

/* What the dispenser knows about a page's site. */
static int look_up_site(struct expunge *x, const struct wb_webdb_page *page, enum wb_listed_state *state_out)
{
    const struct wb_update_options *o = x->options;
    struct wb_listed_site listed;
    struct wb_pageid id;

    *state_out = WB_LISTED_UNKNOWN;
    int err = x->list ? 0 : wb_fetchlist_open(o->dir, o->dispenser, NULL, warn, x, &x->list);
    if (err == 0)
        err = wb_removal_id(&x->removal, page->url, &id);
    if (err < 0)
        return err;
    WB_CHECK(x->list && x->removal.key.len > 0);
    wb_fetchlist_site(x->list, wb_key_site(wb_buf_slice(&x->removal.key)), &listed);
    *state_out = listed.state;
    return 0;
}

static int judge_expired(struct expunge *x, const struct wb_webdb_page *page, const char **reason_out)
{
    enum wb_listed_state state;

    if (!wb_update_dispenser_known(x->options))
        return 0;
    int err = look_up_site(x, page, &state);
    if (err < 0)
        return err;
    if (state == WB_LISTED_ALIAS || (page->asked_ms && state == WB_LISTED_DONE))
        *reason_out = "expired";
    else
        x->stat->reprieved += page->asked_ms != 0;
    return 0;
}

/* Reads what is stored of a page if it is older than the last visit. WB_E_NOTFOUND: nothing that could be read. */
static int read_older(struct expunge *x, const struct wb_webdb_page *page, struct wb_page *stored_out)
{
    struct wb_pageid id;
    int64_t time_ms = 0;

    int err = wb_removal_id(&x->removal, page->url, &id);
    if (err == 0)
        err = wb_store_time(x->removal.store, id, &time_ms);
    if (err == 0 && time_ms >= page->last_tried_ms)
        return WB_E_NOTFOUND;
    if (err == 0)
        err = wb_store_get(x->removal.store, id, stored_out, &x->removal.mem);
    return err == WB_E_CORRUPT || err == WB_E_DOWN ? WB_E_NOTFOUND : err;
}

/* A copy that was stored before the page redirected stays until its lifetime ends, because the page may come back. */
static int moved_for_long(struct expunge *x, const struct wb_webdb_page *page, bool *yes_out)
{
    struct wb_page stored;

    int err = read_older(x, page, &stored);
    /* The redirect itself may be stored as a page: that one stays. */
    *yes_out = err == 0 && stored.status / 100 == 2 && stored.lifetime &&
               x->removal.now_ms - stored.time_ms >= (int64_t)stored.lifetime * WB_DAY_MS;
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* The page is gone, and what is stored is a redirect, of which webdb has no content. Imported errors stay. */
static int redirect_is_gone(struct expunge *x, const struct wb_webdb_page *page, bool *yes_out)
{
    struct wb_page stored;

    int err = read_older(x, page, &stored);
    *yes_out = err == 0 && wb_http_status_redirects(stored.status);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* *reason_out says why the page is removed; NULL: it stays. */
static int judge_page(struct expunge *x, const struct wb_webdb_page *page, const char **reason_out)
{
    bool yes = false;
    int err = 0;

    WB_CHECK(!x->removal.everywhere);
    *reason_out = NULL;
    if (page->has_content && (page->flags & WB_PAGE_GONE)) {
        *reason_out = "gone";
    } else if (page->has_content && page->expires_ms && page->expires_ms <= x->removal.now_ms) {
        err = judge_expired(x, page, reason_out);
    } else if (!page->has_content && page->location.len && page->last_tried_ms) {
        err = moved_for_long(x, page, &yes);
        if (yes)
            *reason_out = "moved";
    } else if (!page->has_content && (page->flags & WB_PAGE_GONE) && page->last_tried_ms) {
        err = redirect_is_gone(x, page, &yes);
        if (yes)
            *reason_out = "gone";
    }
    return err;
}

/* ---- removing them ----------------------------------------------------------------------------------------- */

/* Since when the page has been gone: when it answered so, or when its lifetime ended. */
static int64_t gone_since(const struct wb_webdb_page *page)
{
    bool expired = page->has_content && !(page->flags & WB_PAGE_GONE);

    return expired ? page->expires_ms : page->last_tried_ms;
}

static int remove_page(struct expunge *x, const struct wb_webdb_page *page, const char *reason)
{
    WB_CHECK(!x->removal.everywhere && reason); /* the history of an expired page stays */
    int64_t gone_ms = gone_since(page), stored_ms = 0;
    struct wb_pageid id;

    int err = wb_removal_id(&x->removal, page->url, &id);
    if (err < 0)
        return err;
    /* It was seen later than that, by somebody of whom webdb has not heard yet: it is not gone. */
    if (wb_store_time(x->removal.store, id, &stored_ms) == 0 && stored_ms > gone_ms)
        return 0;
    int there = wb_removal_store(&x->removal, id, wb_key_site(wb_buf_slice(&x->removal.key)), gone_ms);
    if (there < 0)
        return there;
    if (there) {
        x->stat->pages++;
        x->stat->bytes += page->bytes;
        if (x->each)
            x->each(x->context, page->url, reason);
    }
    /* webdb has nothing else about a redirect to forget. */
    return page->has_content ? wb_removal_expired(&x->removal, page->url) : 0;
}

/* ---- unfinished takedowns ---------------------------------------------------------------------------- */

struct unfinished {
    struct wb_buf ids;   /* ids of barred pages, WB_PAGEID_BYTES each */
    struct wb_buf sites; /* barred sites, one per line */
};

static int gather_bar(void *context, const struct wb_store_bar *bar)
{
    struct unfinished *u = context;
    char bytes[WB_PAGEID_BYTES];

    if (bar->except)
        return 0;
    if (bar->kind == WB_STORE_BAR_PAGE) {
        wb_pageid_put(bar->id, bytes);
        return wb_buf_append(&u->ids, bytes, sizeof bytes);
    }
    int err = wb_buf_append_slice(&u->sites, bar->site);
    return err < 0 ? err : wb_buf_append_char(&u->sites, '\n');
}

/* Removes a barred page that is still stored. If it cannot be read, its URL is unknown and the operator must name it.
 */
static int finish_page(struct expunge *x, struct wb_pageid id)
{
    WB_CHECK(x->removal.everywhere);
    struct wb_page page = {0};
    char name[WB_PAGEID_HEX + 1], text[WB_ERROR_MESSAGE_MAX + 64];
    int err = wb_removal_read(&x->removal, id, &page);

    wb_pageid_hex(id, name);
    if (err == WB_E_CORRUPT || err == WB_E_DOWN) {
        snprintf(text, sizeof text, "%s was taken down but is still stored: repeat 'expunge URL' (%s)", name,
                 wb_error_message());
        warn(x, text);
        x->stat->left++;
        return 0;
    }
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    int there = wb_removal_store(&x->removal, id, wb_key_site(page.key), x->removal.now_ms);
    if (there <= 0)
        return there;
    x->stat->pages++;
    x->stat->bytes += page.body.len;
    if (x->each)
        x->each(x->context, page.url.len ? page.url : wb_slice_str(name), "barred");
    return 0;
}

struct barred_site {
    struct expunge *expunge;
    struct wb_slice name;
};

/* Pages of the site that were allowed individually stay. */
static int finish_listed(void *context, struct wb_pageid id)
{
    struct barred_site *site = context;
    struct expunge *x = site->expunge;
    int barred = wb_store_barred(x->removal.store, id, site->name);
    int there = barred > 0 ? wb_removal_store(&x->removal, id, site->name, x->removal.now_ms) : barred;

    WB_CHECK(site->expunge->magic == EXPUNGE_MAGIC && site->expunge->removal.everywhere);
    x->stat->pages += there > 0;
    return there;
}

static int finish_site(struct expunge *x, struct wb_slice name)
{
    struct barred_site site = {x, name};

    return wb_removal_each_of_site(&x->removal, name, finish_listed, &site);
}

static int finish_takedowns(struct expunge *x)
{
    WB_CHECK(!x->removal.everywhere && x->removal.uncommitted == 0);
    struct unfinished u = {WB_BUF_INIT, WB_BUF_INIT};
    int err = wb_store_bar_each(x->removal.store, gather_bar, &u);
    struct wb_slice rest = wb_buf_slice(&u.sites), site;

    x->removal.everywhere = true;
    for (size_t at = 0; at < u.ids.len && err == 0; at += WB_PAGEID_BYTES)
        err = finish_page(x, wb_pageid_get(u.ids.ptr + at));
    while (err == 0 && wb_slice_next_line(&rest, &site))
        err = finish_site(x, site);
    if (err == 0)
        err = wb_removal_commit(&x->removal);
    WB_CHECK(err < 0 || x->removal.uncommitted == 0); /* what follows is another commit */
    x->removal.everywhere = false;
    wb_buf_release(&u.ids);
    wb_buf_release(&u.sites);
    return err;
}

/* ---- all pages -------------------------------------------------------------------------------------------------- */

static int walk_pages(struct expunge *x)
{
    WB_CHECK(x->webdb && !x->removal.everywhere);
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_count count;
    struct wb_webdb_page page;
    const char *reason;
    int got = 0, err = wb_webdb_pages(x->webdb, &pages);

    wb_webdb_count(x->webdb, &count);
    x->total = count.pages;
    while (err == 0 && (got = wb_webdb_pages_next(pages, &page)) > 0) {
        err = go_on(x);
        if (err == 0)
            err = judge_page(x, &page, &reason);
        if (err == 0 && reason)
            err = remove_page(x, &page, reason);
    }
    wb_webdb_pages_close(pages);
    return err < 0 ? err : got;
}

int wb_expunge_expired(const struct wb_update_options *options, const struct wb_cycle_sink *sink, wb_expunge_each each,
                       void *context, struct wb_expunge_stat *stat_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct expunge x = {.magic = EXPUNGE_MAGIC, .options = options, .sink = sink ? sink : &quiet, .each = each,
                        .context = context, .stat = stat_out};
    struct wb_webdb_merge merge;

    *stat_out = (struct wb_expunge_stat){0};
    int err = wb_removal_open(options->dir, false, &x.removal);
    if (err == 0)
        err = finish_takedowns(&x);
    if (err == 0)
        err = wb_webdb_open(options->dir, &x.webdb);
    if (err == WB_E_NOTFOUND && x.removal.store) {
        err = 0; /* nothing was ever merged: nothing is known to have gone */
        goto done;
    }
    if (err == 0)
        err = walk_pages(&x);
    if (err == 0)
        err = wb_removal_commit(&x.removal);
    bool noted = x.removal.log != NULL;
    if (err == 0)
        err = wb_removal_noted(&x.removal);
    wb_webdb_close(x.webdb);
    x.webdb = NULL;
    if (err == 0 && noted)
        err = wb_update(options, sink, &merge, NULL);
done:
    wb_fetchlist_close(x.list);
    wb_webdb_close(x.webdb);
    wb_removal_close(&x.removal);
    return err;
}
