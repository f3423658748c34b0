/*
 * news.c - what another repository needs to go on with a site, if this one is gone.
 *
 * The truth about a site is its chain in our journal. When several repositories share a dispenser, a site may move to
 * one that does not have that journal. So with each commit the worker also tells the dispenser, in lines of text:
 *
 *   +0003p-/path?query   a URL entered the queue: depth (hex), p page or m sitemap, s https or - http, path
 *   =0123...ef           the page with this id was dealt with
 *   ?0123...ef           it must be dealt with once more
 *
 * The process that takes the site over reads them after everything else. Seeds are not told: the dispenser has them.
 * This file never decides what is fetched, and what it loses costs a request, never a page.
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"

#include <inttypes.h>

enum { HEAD_BYTES = 7, ID_BYTES = 33 };

/* ---- gathering --------------------------------------------------------------------------------------------------- */

int wb_news_known(struct wb_worker *w, struct wb_site *site, const struct wb_item *item)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    if (!site->tells)
        return 0;
    WB_CHECK(item->kind == WB_ITEM_PAGE || item->kind == WB_ITEM_SITEMAP);
    wb_worker_dirty(w);
    return wb_buf_printf(&site->news, "+%04x%c%c%.*s\n", (unsigned)wb_depth_code(item->depth),
                         item->kind == WB_ITEM_PAGE ? 'p' : 'm', item->https ? 's' : '-', WB_SLICE_ARG(item->path));
}

void wb_news_mark(struct wb_worker *w, struct wb_site *site, struct wb_pageid id, bool done)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    wb_seen_mark(&site->seen, id, done);
    if (!site->tells)
        return;
    wb_worker_dirty(w);
    if (wb_buf_printf(&site->news, "%c%016" PRIx64 "%016" PRIx64 "\n", done ? '=' : '?', id.hi, id.lo) < 0)
        wb_worker_fail(w, WB_E_NOMEM);
}

int wb_news_close(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    WB_CHECK(site->tells || site->news.len == 0);
    struct wb_news *news = site->news.len ? wb_vec_add(&w->news) : NULL;

    if (!site->news.len)
        return 0;
    if (!news)
        return WB_E_NOMEM;
    *news = (struct wb_news){.site = site->id, .text = wb_buf_take(&site->news)};
    return 0;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static void clear(struct wb_news_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        wb_buf_release(&list->items[i].text);
    wb_vec_clear(list);
}

int wb_news_tell(struct wb_worker *w)
{
    struct wb_site_news *rows = NULL;
    int err = 0;

    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    for (struct wb_site *site = NULL; err == 0 && (site = wb_site_set_next(&w->sites, site));)
        err = wb_news_close(w, site);
    if (err < 0 || w->news.count == 0)
        return err;
    rows = wb_alloc_zero(w->news.count, sizeof *rows);
    if (!rows)
        return WB_E_NOMEM;
    for (size_t i = 0; i < w->news.count; i++)
        rows[i] = (struct wb_site_news){w->news.items[i].site, wb_buf_slice(&w->news.items[i].text)};
    err = wb_dispenser_tell(w->repo.dispenser, w->plan->run, rows, w->news.count);
    wb_free(rows);
    if (err == 0)
        clear(&w->news);
    return err;
}

void wb_news_release(struct wb_news_list *list)
{
    clear(list);
    wb_vec_release(list);
}

/* ---- listening --------------------------------------------------------------------------------------------------- */

/* Reads hexadecimal digits. False if there are others. */
static bool read_hex(struct wb_slice text, uint64_t *value_out)
{
    *value_out = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789abcdef", *at = text.ptr[i] ? strchr(digits, text.ptr[i]) : NULL;
        if (!at)
            return false;
        *value_out = *value_out << 4 | (uint64_t)(at - digits);
    }
    return text.len > 0;
}

static int hear_known(struct wb_worker *w, struct wb_site *site, struct wb_slice line)
{
    uint64_t depth;

    if (line.len <= HEAD_BYTES || !read_hex(wb_slice(line.ptr + 1, 4), &depth) || !wb_depth_is_code(depth))
        return 0;
    struct wb_item item = {.kind = line.ptr[5] == 'm' ? WB_ITEM_SITEMAP : WB_ITEM_PAGE,
                           .depth = wb_depth_of_code(depth)};
    struct wb_slice path = wb_slice(line.ptr + HEAD_BYTES, line.len - HEAD_BYTES);
    int err = wb_site_url(site, line.ptr[6] == 's', path, &w->scratch.url_text);
    if (err == 0)
        err = wb_links_follow(w, site, wb_buf_slice(&w->scratch.url_text), &item, WB_LINKS_QUIET | WB_LINKS_SEED);
    return err < 0 ? err : 0;
}

static int hear_mark(struct wb_worker *w, struct wb_site *site, struct wb_slice line)
{
    struct wb_pageid id;

    if (line.len != ID_BYTES || !read_hex(wb_slice(line.ptr + 1, 16), &id.hi) ||
        !read_hex(wb_slice(line.ptr + 17, 16), &id.lo))
        return 0;
    int err = wb_seen_add(&site->seen, w->plan->options->dir, id);
    if (err >= 0)
        wb_seen_mark(&site->seen, id, line.ptr[0] == '=');
    return err < 0 ? err : 0;
}

struct hearing {
    struct wb_worker *w;
    struct wb_site *site;
};

static int hear(void *context, struct wb_slice text)
{
    const struct hearing *h = context;
    struct wb_slice line;
    int err = 0;

    while (err == 0 && wb_slice_next_line(&text, &line)) {
        if (line.len && line.ptr[0] == '+')
            err = hear_known(h->w, h->site, line);
        else if (line.len && (line.ptr[0] == '=' || line.ptr[0] == '?'))
            err = hear_mark(h->w, h->site, line);
    }
    return err;
}

static int stop_at_once(void *context, struct wb_slice text)
{
    (void)context, (void)text;
    return 1;
}

/* Whether the site was elsewhere in this run: 1, 0 or an error. */
static int was_elsewhere(struct wb_worker *w, const struct wb_site *site)
{
    return wb_dispenser_news(w->repo.dispenser, w->plan->run, site->id, false, stop_at_once, NULL);
}

int wb_news_restore(struct wb_worker *w, struct wb_site *site, bool whole)
{
    struct hearing h = {w, site};
    struct wb_pageid id;

    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && site->in_flight == 0);
    int away = !site->tells ? 0 : whole ? was_elsewhere(w, site) : 1;
    if (away <= 0)
        return away;
    int err = wb_dispenser_news(w->repo.dispenser, w->plan->run, site->id, true, hear, &h);
    if (err == 0)
        err = wb_site_url(site, site->https, WB_SLICE_LIT("/"), &w->scratch.url_text);
    if (err < 0 || wb_worker_parse(w, wb_buf_slice(&w->scratch.url_text), &id) < 0 || !wb_seen_marked(&site->seen, id))
        return err;
    /* The root page was asked for there, and compared with others. Seeds that wait for it do not wait any longer. */
    site->root.probing = false;
    return site->root.state == WB_ROOT_UNKNOWN ? wb_visit_root(w, site, false) : 0;
}
