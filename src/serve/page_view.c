/*
 * page_view.c - GET /page?url=[&a=TIME&b=TIME]: what is known about one page, as a page for people.
 *
 * A URL that was never fetched has a page too, as long as links lead to it. What is not known at all is a 404.
 */
#include "serve/page_view.h"
#include "base/check.h"
#include "base/error.h"
#include "extract/extract.h"
#include "url/url.h"

#include <stdio.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The newest version, also of a page that is gone from the web but has a history. */
static int read_stored(struct wb_page_view *v)
{
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME, .time_ms = INT64_MAX};
    int err = wb_store_timeline(v->call->worker->store, v->id, &v->timeline);

    if (err == 0)
        err = wb_store_get_when(v->call->worker->store, v->id, &when, &v->page, &v->mem);
    if (err == 0)
        err = wb_url_public(v->page.url, &v->public, &v->page.url);
    v->stored = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* A page of the index that the store does not have was taken down or is gone: then its title is nobody's business. */
static int read_indexed(struct wb_page_view *v)
{
    WB_CHECK(!v->searcher);
    WB_CHECK(v->docid == WB_DOCID_NONE);
    struct wb_slice title;
    int err = wb_call_searcher(v->call, &v->searcher);

    if (err == WB_E_BUSY)
        return 0; /* there is no index yet: the store knows enough */
    if (err == 0)
        err = wb_searcher_find(v->searcher, v->stored ? v->page.url : v->url, &v->docid);
    if (err == 0) {
        struct wb_index *index = wb_searcher_index(v->searcher);
        bool is_page = v->docid < wb_index_info(index)->pages;
        if (is_page && !v->stored)
            v->docid = WB_DOCID_NONE;
        else if (is_page && wb_index_title(index, v->docid, &title) == 0)
            err = wb_buf_append_slice(&v->title, title);
    }
    if (err == WB_E_NOTFOUND || err == WB_E_INVALID) {
        v->docid = WB_DOCID_NONE;
        return 0;
    }
    return err;
}

/* The title of a page that the index does not know yet. */
static int read_title(struct wb_page_view *v)
{
    struct wb_extract_input input = {
        .url = v->page.url, .type = v->page.type, .charset = v->page.charset, .body = v->page.body};
    struct wb_extract extract;

    int err = wb_extract(v->call->worker->extractor, &input, &extract);
    return err < 0 ? err : wb_buf_append_slice(&v->title, extract.title);
}

static int read_view(struct wb_page_view *v)
{
    int err = wb_call_required(v->call, "url", &v->url);

    if (err == 0)
        err = wb_which_page(v->url, &v->id);
    if (err == 0)
        err = read_stored(v);
    if (err == 0)
        err = read_indexed(v);
    if (err == 0 && v->stored && v->title.len == 0)
        err = read_title(v);
    if (err == 0 && !v->stored && v->docid == WB_DOCID_NONE)
        err = wb_which_missing(v->call->worker->store, v->id, v->url, WB_SLICE_EMPTY, "this repository");
    return err;
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static const void *fact_of(struct wb_page_view *v, enum wb_fact fact)
{
    WB_CHECK(v->docid == WB_DOCID_NONE || v->searcher);
    const void *values = NULL;
    struct wb_index *index = v->searcher ? wb_searcher_index(v->searcher) : NULL;

    if (v->docid == WB_DOCID_NONE || (fact >= WB_FACT_FIRST_OF_PAGES && v->docid >= wb_index_info(index)->pages))
        return NULL;
    return wb_index_fact(index, fact, &values) == 0 ? values : NULL; /* a damaged column is left out */
}

/* The page that this one is nearly the same as, unless that was taken down since. */
static void add_near(struct wb_page_view *v)
{
    const uint32_t *near = fact_of(v, WB_FACT_NEAR);
    const uint8_t *ids = fact_of(v, WB_FACT_ID);
    struct wb_slice url;
    int64_t time_ms;

    if (!near || !ids || near[v->docid] == v->docid)
        return;
    struct wb_pageid id = wb_pageid_get(ids + (size_t)near[v->docid] * WB_PAGEID_BYTES);
    if (wb_store_time(v->call->worker->store, id, &time_ms) < 0 ||
        wb_index_url(wb_searcher_index(v->searcher), near[v->docid], &url) < 0)
        return;
    wb_htmlpen_raw(&v->h, "<div><dt>Nearly the same as</dt><dd>");
    wb_htmlpen_page_link(&v->h, url, url);
    wb_htmlpen_raw(&v->h, "</dd></div>\n");
}

static void add_index_facts(struct wb_page_view *v)
{
    const uint32_t *inlinks, *outlinks = fact_of(v, WB_FACT_OUTLINKS), *words = fact_of(v, WB_FACT_WORDS);
    const double *rank = fact_of(v, WB_FACT_RANK);
    const uint16_t *depth = fact_of(v, WB_FACT_DEPTH);
    const int64_t *published = fact_of(v, WB_FACT_PUBLISHED), *changed = fact_of(v, WB_FACT_CHANGED);
    char text[64];

    if (v->docid == WB_DOCID_NONE)
        return;
    if (wb_searcher_inlinks(v->searcher, &inlinks) == 0)
        wb_htmlpen_fact(&v->h, "Pages that link to it", wb_htmlpen_number(inlinks[v->docid]));
    if (outlinks)
        wb_htmlpen_fact(&v->h, "Pages that it links to", wb_htmlpen_number(outlinks[v->docid]));
    if (rank) {
        snprintf(text, sizeof text, "%.3g", rank[v->docid]);
        wb_htmlpen_fact(&v->h, "PageRank", wb_htmlpen_str(text));
    }
    if (depth && depth[v->docid] != UINT16_MAX)
        wb_htmlpen_fact(&v->h, "Links from a seed", wb_htmlpen_number(depth[v->docid]));
    if (words)
        wb_htmlpen_fact(&v->h, "Words", wb_htmlpen_number(words[v->docid]));
    if (published && published[v->docid])
        wb_htmlpen_fact(&v->h, "Published", wb_htmlpen_time(published[v->docid]));
    if (changed && changed[v->docid])
        wb_htmlpen_fact(&v->h, "Last changed", wb_htmlpen_time(changed[v->docid]));
    add_near(v);
}

static void add_facts(struct wb_page_view *v)
{
    const struct wb_page *page = &v->page;
    char text[32];

    wb_htmlpen_raw(&v->h, "<section aria-labelledby=\"facts\">\n<h2 id=\"facts\">Facts</h2>\n<dl class=\"facts\">\n");
    if (v->stored) {
        wb_htmlpen_fact(&v->h, "Fetched", wb_htmlpen_time(page->time_ms));
        snprintf(text, sizeof text, "%u", page->status);
        wb_htmlpen_fact(&v->h, "Status", wb_htmlpen_str(text));
        wb_htmlpen_fact(&v->h, "Type", wb_htmlpen_text(page->type.len ? page->type : WB_SLICE_LIT("not stated")));
        if (page->charset.len)
            wb_htmlpen_fact(&v->h, "Encoding", wb_htmlpen_text(page->charset));
        wb_htmlpen_fact(&v->h, "Size", wb_htmlpen_bytes(page->body.len));
    }
    if (v->timeline.gone_ms)
        wb_htmlpen_fact(&v->h, "Gone since", wb_htmlpen_time(v->timeline.gone_ms));
    add_index_facts(v);
    wb_htmlpen_raw(&v->h, "</dl>\n</section>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void add_site_link(struct wb_page_view *v, struct wb_slice url)
{
    struct wb_url parts = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    if (wb_url_parse(url, NULL, &parts) == 0 && wb_url_key(&parts, &key) == 0)
        wb_htmlpen_put(&v->h, "<a href=\"/site?host={}\">Site</a>\n",
                       wb_htmlpen_param(wb_key_site(wb_buf_slice(&key))));
    wb_url_release(&parts);
    wb_buf_release(&key);
}

static void add_heading(struct wb_page_view *v)
{
    struct wb_slice url = v->stored ? v->page.url : v->url;
    struct wb_htmlpen *h = &v->h;

    wb_htmlpen_put(h, "<h1>{}</h1>\n<p class=\"address\">{}</p>\n",
                   wb_htmlpen_text(v->title.len ? wb_buf_slice(&v->title) : url), wb_htmlpen_text(url));
    if (!v->stored)
        wb_htmlpen_raw(h, "<p class=\"note\">This page was never fetched. What is known comes from links to it.</p>\n");
    if (v->timeline.gone_ms)
        wb_htmlpen_raw(h, "<p class=\"note\">This page is gone from the web. Its last version is kept.</p>\n");
    wb_htmlpen_raw(h, "<nav class=\"actions\" aria-label=\"This page\">\n");
    if (v->stored) {
        int64_t time = v->page.time_ms;
        wb_htmlpen_put(h, "<a class=\"main\" href=\"/web/{}/{}\">Stored copy</a>\n", wb_htmlpen_digits(time),
                       wb_htmlpen_text(url));
        wb_htmlpen_put(h, "<a href=\"/web/{}id_/{}\">Original bytes</a>\n", wb_htmlpen_digits(time),
                       wb_htmlpen_text(url));
        wb_htmlpen_put(h, "<a href=\"/calendar?url={}\">Calendar</a>\n<a href=\"/files?url={}\">Files</a>\n",
                       wb_htmlpen_param(url), wb_htmlpen_param(url));
    }
    if (wb_htmlpen_is_web_url(url))
        wb_htmlpen_put(h, "<a href=\"{}\" rel=\"noreferrer noopener nofollow\">On the web</a>\n", wb_htmlpen_text(url));
    add_site_link(v, url);
    wb_htmlpen_put(h,
                   "<a href=\"/api/page?url={}\">JSON</a>\n<a href=\"/cdx?url={}&amp;output=text\">CDX</a>\n"
                   "<a href=\"/timemap/link/{}\">TimeMap</a>\n</nav>\n",
                   wb_htmlpen_param(url), wb_htmlpen_param(url), wb_htmlpen_text(url));
}

static int show(struct wb_page_view *v)
{
    struct wb_slice a = wb_http_param(v->call->request, "a"), b = wb_http_param(v->call->request, "b");
    struct wb_slice title = v->title.len ? wb_buf_slice(&v->title) : v->url;
    int err = 0;

    wb_page_begin(v->call, &v->h, &(struct wb_page_frame){.title = title, .place = WB_PAGE_VIEW});
    wb_htmlpen_raw(&v->h, "<article>\n");
    add_heading(v);
    if (a.ptr || b.ptr)
        err = wb_page_changes(v, a, b);
    if (err < 0)
        return err;
    add_facts(v);
    wb_page_versions(v);
    wb_page_links(v);
    wb_page_similar(v);
    wb_htmlpen_raw(&v->h, "</article>\n");
    wb_page_end(v->call, &v->h);
    return 0;
}

void wb_handle_page_view(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_page_view v = {.call = call, .docid = WB_DOCID_NONE};
    int err = read_view(&v);

    if (err == 0)
        err = show(&v);
    if (err < 0)
        wb_call_fail(call, err);
    wb_store_timeline_release(&v.timeline);
    wb_buf_release(&v.mem);
    wb_buf_release(&v.public);
    wb_buf_release(&v.title);
}
