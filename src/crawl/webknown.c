/*
 * webknown.c - what a crawler process asks the web database: has a URL been heard of, which pages has a site, what did its
 * robots.txt say. It only reads, from the generation that was the newest when the process began. Whether a page was taken
 * down is asked of the store, which answers for this moment. If that cannot be read, the process ends and fetches nothing,
 * so that a barred page is never fetched by mistake.
 */
#include "crawl/webknown.h"
#include "webdb/webdb.h"

int wb_known_open(struct wb_worker *w)
{
    int err = wb_webdb_open(w->plan->options->dir, &w->webdb);

    return err == WB_E_NOTFOUND ? 0 : err;
}

void wb_known_close(struct wb_worker *w)
{
    wb_webdb_close(w->webdb);
    w->webdb = NULL;
}

/* 1 with a page, 0: webdb does not know it. */
static int find_page(struct wb_worker *w, struct wb_slice url, struct wb_webdb_page *page_out)
{
    if (!w->webdb)
        return 0;
    int err = wb_webdb_get_page(w->webdb, url, page_out);
    if (err == WB_E_NOTFOUND || err == WB_E_INVALID)
        return 0;
    return err < 0 ? err : 1;
}

int wb_known_url(struct wb_worker *w, const struct wb_url *url)
{
    struct wb_webdb_page known;
    struct wb_page page;
    struct wb_slice href = wb_url_href(url);

    if (url->has_fragment)
        href.len = url->fragment_at - 1;
    int got = find_page(w, href, &known);
    if (got != 0)
        return got;
    int err = wb_store_get(w->store, wb_pageid_of_key(wb_buf_slice(&w->key)), &page, &w->known_mem);
    if (err == WB_E_NOTFOUND)
        return 0;
    return err < 0 && err != WB_E_CORRUPT ? err : 1;
}

int wb_known_barred(struct wb_worker *w, const struct wb_errand *errand)
{
    return wb_store_barred(w->store, errand->id, wb_key_site(wb_buf_slice(&errand->key)));
}

int wb_known_recall(struct wb_worker *w, struct wb_site *site)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    int got = 0;

    if (!w->webdb)
        return 0;
    int err = wb_webdb_pages_of_site(w->webdb, wb_slice_str(site->name), &pages);
    while (err >= 0 && (got = wb_webdb_pages_next(pages, &page)) > 0) {
        struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = page.depth};
        if (page.has_content && !(page.flags & (WB_PAGE_BARRED | WB_PAGE_GONE | WB_PAGE_LOADED)))
            err = wb_links_follow(w, site, page.url, &item, WB_ADMIT_QUIET | WB_ADMIT_SEED);
    }
    wb_webdb_pages_close(pages);
    return err < 0 ? err : got;
}

int wb_known_rules(struct wb_worker *w, struct wb_site *site)
{
    struct wb_webdb_rules known;

    if (!w->webdb || site->rules_state == WB_RULES_KNOWN)
        return 0;
    int err = wb_webdb_get_rules(w->webdb, wb_slice_str(site->name), &known);
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT)
        return 0; /* it is asked for again */
    struct wb_edit_rules rules = {.status = known.status, .text = known.text, .expires_ms = known.expires_ms};
    return err < 0 ? err : wb_rules_restore(w, site, &rules);
}
