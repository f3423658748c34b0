/*
 * page_search.c - GET /?q=&sort=&one_per_site=&fold=&offset=: the search page. It works without scripts.
 *
 * Facets are links that add a field to the query (site:example.org), so that the query always says what is shown.
 */
#include "base/check.h"
#include "base/error.h"
#include "os/clock.h"
#include "serve/page_hits.h"
#include "serve/page_missing.h"
#include "serve/page_query.h"

#include <stdio.h>

enum { FACET_VALUES = 8, PAGES_SHOWN = 9 };

struct search_view {
    struct wb_call *call;
    struct wb_htmlpen h;
    struct wb_slice query, sort;
    bool one_per_site, fold;
    struct wb_search_options search;
    struct wb_results results;
    double ms;
};

/* A link to this search with some things different. */
static void add_address(struct search_view *v, struct wb_slice query, struct wb_slice sort, bool one, uint64_t offset)
{
    wb_htmlpen_put(&v->h, "/?q={}", wb_htmlpen_param(query));
    if (sort.len)
        wb_htmlpen_put(&v->h, "&amp;sort={}", wb_htmlpen_param(sort));
    if (one)
        wb_htmlpen_raw(&v->h, "&amp;one_per_site=1");
    if (!v->fold)
        wb_htmlpen_raw(&v->h, "&amp;fold=0");
    if (offset)
        wb_htmlpen_put(&v->h, "&amp;offset={}", wb_htmlpen_plain(offset));
    if (wb_call_param(v->call, "limit").ptr)
        wb_htmlpen_put(&v->h, "&amp;limit={}", wb_htmlpen_plain(v->search.limit));
}

/* ---- above the results ------------------------------------------------------------------------------------------- */

static void add_total(struct search_view *v)
{
    const struct wb_results *r = &v->results;
    char ms[32];

    snprintf(ms, sizeof ms, v->ms < 10 ? "%.1f" : "%.0f", v->ms);
    wb_htmlpen_put(&v->h, "<p class=\"total\" role=\"status\">{}{} {}", wb_htmlpen_str(r->exact ? "" : "at least "),
                   wb_htmlpen_number(r->total), wb_htmlpen_str(r->total == 1 ? "result" : "results"));
    if (r->hit_total != r->total)
        wb_htmlpen_put(&v->h, ", {}{} after folding", wb_htmlpen_str(r->hit_total_exact ? "" : "about "),
                       wb_htmlpen_number(r->hit_total));
    if (r->hit_count)
        wb_htmlpen_put(&v->h, ", {} to {} shown", wb_htmlpen_number(v->search.offset + 1),
                       wb_htmlpen_number(v->search.offset + r->hit_count));
    wb_htmlpen_put(&v->h, " \xC2\xB7 {} ms</p>\n", wb_htmlpen_str(ms));
    if (r->cut)
        wb_htmlpen_raw(&v->h,
                       "<p class=\"note\">The time for this query ran out. These are the best pages that were found "
                       "until then; there may be more.</p>\n");
}

static void add_order(struct search_view *v, const char *name, const char *words)
{
    struct wb_slice sort = wb_slice_str(name);
    bool now = wb_slice_equal(v->sort, sort);

    wb_htmlpen_raw(&v->h, "<a href=\"");
    add_address(v, v->query, sort, v->one_per_site, 0);
    wb_htmlpen_put(&v->h, "\"{}>{}</a>\n",
                   wb_htmlpen_markup(now ? WB_SLICE_LIT(" aria-current=\"true\"") : WB_SLICE_EMPTY),
                   wb_htmlpen_str(words));
}

static void add_tools(struct search_view *v)
{
    wb_htmlpen_raw(&v->h, "<nav class=\"tools\" aria-label=\"Order\">\n<span>Order:</span>\n");
    add_order(v, "", "relevance");
    add_order(v, "date", "newest");
    add_order(v, "rank", "PageRank");
    add_order(v, "url", "address");
    wb_htmlpen_raw(&v->h, "<span class=\"gap\"></span>\n<a href=\"");
    add_address(v, v->query, v->sort, !v->one_per_site, 0);
    wb_htmlpen_put(&v->h, "\">{}</a>\n",
                   wb_htmlpen_str(v->one_per_site ? "All pages of each site" : "One page per site"));
    if (!v->fold || v->results.hit_total != v->results.total) {
        v->fold = !v->fold; /* the link leads to the other way */
        wb_htmlpen_raw(&v->h, "<a href=\"");
        add_address(v, v->query, v->sort, v->one_per_site, 0);
        v->fold = !v->fold;
        wb_htmlpen_put(&v->h, "\">{}</a>\n", wb_htmlpen_str(v->fold ? "Show duplicates" : "Fold duplicates"));
    }
    wb_htmlpen_raw(&v->h, "</nav>\n");
}

static void add_suggestion(struct search_view *v)
{
    if (!v->results.suggestion.ptr)
        return;
    wb_htmlpen_raw(&v->h, "<p class=\"mean\">Did you mean <a href=\"");
    add_address(v, v->results.suggestion, v->sort, v->one_per_site, 0);
    wb_htmlpen_put(&v->h, "\">{}</a>?</p>\n", wb_htmlpen_text(v->results.suggestion));
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void add_page_link(struct search_view *v, uint64_t number, uint64_t current)
{
    if (number == current) {
        wb_htmlpen_put(&v->h, "<li><a class=\"now\" aria-current=\"page\">{}</a></li>\n",
                       wb_htmlpen_number(number + 1));
        return;
    }
    wb_htmlpen_raw(&v->h, "<li><a href=\"");
    add_address(v, v->query, v->sort, v->one_per_site, number * v->search.limit);
    wb_htmlpen_put(&v->h, "\" aria-label=\"Page {}\">{}</a></li>\n", wb_htmlpen_number(number + 1),
                   wb_htmlpen_number(number + 1));
}

static void add_step(struct search_view *v, const char *rel, const char *words, uint64_t offset)
{
    wb_htmlpen_put(&v->h, "<li><a rel=\"{}\" href=\"", wb_htmlpen_str(rel));
    add_address(v, v->query, v->sort, v->one_per_site, offset);
    wb_htmlpen_put(&v->h, "\">{}</a></li>\n", wb_htmlpen_str(words));
}

static void add_paging(struct search_view *v)
{
    uint64_t limit = v->search.limit, offset = v->search.offset, total = v->results.hit_total;

    if (limit == 0 || (total <= limit && offset == 0))
        return;
    uint64_t pages = (total + limit - 1) / limit, current = offset / limit;
    uint64_t first = current > PAGES_SHOWN / 2 ? current - PAGES_SHOWN / 2 : 0;
    wb_htmlpen_raw(&v->h, "<nav class=\"paging\" aria-label=\"Pages of results\"><ul>\n");
    if (offset)
        add_step(v, "prev", "Previous", offset > limit ? offset - limit : 0);
    for (uint64_t i = first; i < pages && i < first + PAGES_SHOWN; i++)
        add_page_link(v, i, current);
    if (offset + limit < total)
        add_step(v, "next", "Next", offset + limit);
    wb_htmlpen_raw(&v->h, "</ul></nav>\n");
}

/* ---- facets ------------------------------------------------------------------------------------------------------ */

static void add_facet_value(struct search_view *v, const char *field, const struct wb_facet_value *value)
{
    struct wb_buf query = WB_BUF_INIT;
    int err = wb_page_query_refine(v->query, field, value->value, &query);

    if (err == 0) {
        wb_htmlpen_raw(&v->h, "<li><a href=\"");
        add_address(v, wb_buf_slice(&query), v->sort, v->one_per_site, 0);
        wb_htmlpen_put(&v->h, "\">{}</a> <span class=\"count\">{}</span></li>\n", wb_htmlpen_text(value->value),
                       wb_htmlpen_number(value->count));
    } else if (v->h.err == 0) {
        v->h.err = err;
    }
    wb_buf_release(&query);
}

static void add_facet(struct search_view *v, enum wb_facet facet, const char *title)
{
    const char *field = wb_answer_facet_name(facet);
    size_t count = v->results.facet_counts[facet];

    if (count == 0 || (count == 1 && wb_page_query_has(v->query, field)))
        return;
    wb_htmlpen_put(&v->h, "<section class=\"facet\">\n<h2>{}</h2>\n<ul>\n", wb_htmlpen_str(title));
    for (size_t i = 0; i < count && i < FACET_VALUES; i++)
        add_facet_value(v, field, &v->results.facets[facet][i]);
    if (count > FACET_VALUES)
        wb_htmlpen_put(&v->h, "<li class=\"quiet\">and {} more</li>\n", wb_htmlpen_number(count - FACET_VALUES));
    wb_htmlpen_raw(&v->h, "</ul>\n</section>\n");
}

/* The fields in the query that a facet may have added, each with a link that removes it. */
static void add_chips(struct search_view *v)
{
    struct wb_buf rest = WB_BUF_INIT;
    struct wb_slice term;
    size_t count = 0;
    int got = 0;

    while (v->h.err == 0 && (got = wb_page_query_term(v->query, count, &term, &rest)) > 0) {
        wb_htmlpen_raw(&v->h, count++ == 0 ? "<p class=\"chips\">" : " ");
        wb_htmlpen_raw(&v->h, "<a class=\"chip\" href=\"");
        add_address(v, wb_buf_slice(&rest), v->sort, v->one_per_site, 0);
        wb_htmlpen_put(&v->h,
                       "\"><span class=\"hidden\">Remove </span>{}<span aria-hidden=\"true\"> \xC3\x97</span></a>",
                       wb_htmlpen_text(term));
    }
    if (v->h.err == 0 && got < 0)
        v->h.err = got;
    wb_htmlpen_raw(&v->h, count ? "</p>\n" : "");
    wb_buf_release(&rest);
}

/* No results. To the URL of a page that is not here, there is a site and the live web. */
static void add_none(struct search_view *v)
{
    wb_htmlpen_put(&v->h, "<p class=\"none\">No page matches <b>{}</b>{}.</p>\n", wb_htmlpen_text(v->query),
                   wb_htmlpen_str(v->search.offset ? " at this place" : ""));
    if (!wb_htmlpen_is_web_url(v->query))
        return;
    wb_htmlpen_raw(&v->h, "<p class=\"quiet\">This page is not stored. There may be ");
    wb_page_missing_site(&v->h, v->query, "other captures of its site");
    wb_htmlpen_put(&v->h, "or <a href=\"{}\" rel=\"noopener noreferrer nofollow\">the page on the live web</a>.</p>\n",
                   wb_htmlpen_text(v->query));
}

static void add_results(struct search_view *v)
{
    struct wb_slice accepted = wb_http_field(v->call->request, "Accept-Language");

    wb_htmlpen_put(&v->h, "<h1 class=\"hidden\">Results for {}</h1>\n", wb_htmlpen_text(v->query));
    wb_htmlpen_raw(&v->h, "<div class=\"columns\">\n<div class=\"results\">\n");
    add_total(v);
    add_chips(v);
    add_tools(v);
    add_suggestion(v);
    if (v->results.hit_count == 0)
        add_none(v);
    wb_htmlpen_put(&v->h, "<ol class=\"hits\" start=\"{}\">\n", wb_htmlpen_plain(v->search.offset + 1));
    for (size_t i = 0; i < v->results.hit_count; i++)
        wb_page_hit(&v->h, &v->results.hits[i], accepted);
    wb_htmlpen_raw(&v->h, "</ol>\n");
    add_paging(v);
    wb_htmlpen_raw(&v->h, "</div>\n<aside class=\"facets\" aria-label=\"Narrow the results\">\n");
    add_facet(v, WB_FACET_SITE, "Sites");
    add_facet(v, WB_FACET_TYPE, "Types");
    add_facet(v, WB_FACET_LANG, "Languages");
    add_facet(v, WB_FACET_STATUS, "Status");
    wb_htmlpen_raw(&v->h, "</aside>\n</div>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

/* A query that is wrong is shown with its place marked. */
static void add_mistake(struct search_view *v, const char *message)
{
    size_t at = v->results.bad_at < v->query.len ? v->results.bad_at : v->query.len;
    size_t length = at < v->query.len ? wb_page_query_word(wb_slice(v->query.ptr + at, v->query.len - at)) : 0;
    WB_CHECK(length <= v->query.len - at);

    v->call->reply->status = 400;
    wb_htmlpen_put(&v->h, "<h1>This query cannot be understood</h1>\n<p class=\"problem\">{}</p>\n",
                   wb_htmlpen_str(message));
    wb_htmlpen_put(&v->h, "<pre class=\"mistake\">{}<mark>{}</mark>{}</pre>\n",
                   wb_htmlpen_text(wb_slice(v->query.ptr, at)),
                   length ? wb_htmlpen_text(wb_slice(v->query.ptr + at, length)) : wb_htmlpen_str("\xE2\x80\xB8"),
                   wb_htmlpen_text(wb_slice(v->query.ptr + at + length, v->query.len - at - length)));
    wb_htmlpen_raw(&v->h,
                   "<p class=\"quiet\">Words that belong together are written in \"quotes\", alternatives with OR and "
                   "(parentheses), conditions as site:example.org or inlinks:&gt;=10.</p>\n");
}

static void add_front(struct wb_call *call, struct wb_htmlpen *h)
{
    struct wb_store_stat stat;
    struct wb_index_info info;

    wb_htmlpen_raw(h, "<h1 class=\"hidden\">Search the collection</h1>\n");
    if (wb_store_stat(call->worker->store, &stat) < 0 || wb_index_newest(call->server->options->dir, &info) < 0)
        return; /* the box is enough */
    if (stat.pages == 0 && info.generation == 0) {
        wb_htmlpen_raw(h, "<p class=\"collection\">Nothing is stored yet: "
                          "<a href=\"/dash#begin\">how to begin</a></p>\n");
        return;
    }
    wb_htmlpen_put(h, "<p class=\"collection\">{} {} of {} {}", wb_htmlpen_number(stat.pages),
                   wb_htmlpen_str(stat.pages == 1 ? "page" : "pages"), wb_htmlpen_number(stat.sites),
                   wb_htmlpen_str(stat.sites == 1 ? "site" : "sites"));
    if (info.generation)
        wb_htmlpen_put(h, ", indexed {}", wb_htmlpen_time(info.time_ms));
    wb_htmlpen_raw(h, info.generation ? "</p>\n" : ". There is no index yet: run <code>webbase index</code>.</p>\n");
    wb_htmlpen_raw(h, "<p class=\"hints\">Try <code>\"a phrase\"</code>, <code>title:word</code>, "
                      "<code>site:example.org</code>, <code>link:example.org/</code>, <code>inlinks:&gt;=10</code>, "
                      "<code>after:2026-01-01</code>, or the address of a page. Press <kbd>/</kbd> to search from "
                      "anywhere.</p>\n");
}

/* As in "http%3A%2F%2Fexample.org%2F". */
static bool has_escaped_slash(struct wb_slice text)
{
    for (size_t i = 0; i + 3 <= text.len; i++)
        if (wb_slice_starts_nocase(wb_slice(text.ptr + i, text.len - i), WB_SLICE_LIT("%2f")))
            return true;
    return false;
}

/* The page whose URL the query is, as the index knows it. WB_E_NOTFOUND. */
static int find_in_index(struct wb_call *call, struct wb_slice query, struct wb_buf *url_out)
{
    struct wb_searcher *searcher = NULL;
    struct wb_slice url;
    uint32_t docid;

    int err = wb_call_searcher(call, &searcher);
    if (err == 0)
        err = wb_search_url(searcher, query, &docid);
    if (err == 0)
        err = wb_index_url(wb_searcher_index(searcher), docid, &url);
    return err == 0 ? wb_buf_append_slice(url_out, url) : err;
}

/* The same for a page that was stored since the index was built, by its usual spelling. */
static int find_in_store(struct wb_call *call, struct wb_slice query, struct wb_buf *url_out)
{
    struct wb_store_timeline timeline = {0};
    struct wb_pageid id;

    int err = memmem(query.ptr, query.len, "://", 3) ? 0 : wb_buf_append_str(url_out, "http://");
    if (err == 0)
        err = wb_buf_append_slice(url_out, query);
    if (err == 0)
        err = wb_which_page(wb_buf_slice(url_out), &id);
    if (err == 0)
        err = wb_store_timeline(call->worker->store, id, &timeline);
    wb_store_timeline_release(&timeline);
    return err == WB_E_NOMEM ? err : err < 0 ? WB_E_NOTFOUND : 0;
}

/*
 * A URL leads to its page. What could as well be a word (node.js) shows results, of which the page is the first; so
 * does a search in another order, or for more results. Returns 1 if the reply is done.
 */
static int lead_to_page(struct search_view *v)
{
    struct wb_slice query = wb_slice_trim(v->query);
    struct wb_buf target = WB_BUF_INIT, url = WB_BUF_INIT;
    struct wb_call *call = v->call;

    bool words = memchr(query.ptr, ' ', query.len) && !memmem(query.ptr, query.len, "://", 3);
    if (v->sort.len || wb_call_param(call, "offset").ptr || words ||
        !(memchr(query.ptr, '/', query.len) || has_escaped_slash(query)))
        return 0;
    int err = find_in_index(call, query, &url);
    if (err == WB_E_NOTFOUND || err == WB_E_BUSY) /* or there is no index yet */
        err = find_in_store(call, query, &url);
    if (err == 0)
        err = wb_buf_append_str(&target, "/page?url=");
    if (err == 0)
        err = wb_call_escape(wb_buf_slice(&url), &target);
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Location", wb_buf_slice(&target));
    if (err == 0)
        call->reply->status = 302;
    wb_buf_release(&target);
    wb_buf_release(&url);
    return err == 0 ? 1 : err == WB_E_NOTFOUND ? 0 : err;
}

static int read_search(struct search_view *v)
{
    struct wb_searcher *searcher = NULL;
    struct wb_call *call = v->call;

    int err = wb_call_searcher(call, &searcher);
    if (err == 0)
        err = wb_call_search(call, searcher, &v->search);
    if (err < 0)
        return err;
    v->search.facets = (1u << WB_FACETS) - 1;
    v->one_per_site = v->search.collapse_site;
    v->fold = v->search.fold = v->search.fold || wb_call_param(call, "fold").ptr == NULL;
    return wb_search(searcher, &v->search, &v->results);
}

void wb_handle_search_page(struct wb_call *call)
{
    struct search_view v = {.call = call, .query = wb_call_param(call, "q"), .sort = wb_call_param(call, "sort")};
    struct wb_page_frame frame = {.query = v.query, .title = v.query, .place = WB_PAGE_SEARCH};
    int64_t began = wb_clock_mono_ns();
    int err = 0;

    WB_CHECK(wb_call_is_fresh(call));
    if (wb_slice_trim(v.query).len == 0) {
        wb_page_begin(call, &v.h, &(struct wb_page_frame){.place = WB_PAGE_SEARCH});
        add_front(call, &v.h);
        wb_page_end(call, &v.h);
        return;
    }
    int led = lead_to_page(&v);
    if (led > 0)
        return;
    err = led < 0 ? led : read_search(&v);
    wb_patience_end(call->worker);
    v.ms = (double)(wb_clock_mono_ns() - began) / 1e6;
    bool mistaken = err == WB_E_INVALID && v.search.facets != 0;
    if (err < 0 && !mistaken) {
        wb_call_fail(call, err);
    } else {
        char message[WB_ERROR_MESSAGE_MAX];
        snprintf(message, sizeof message, "%s", mistaken ? wb_error_message() : "");
        wb_page_begin(call, &v.h, &frame);
        if (mistaken)
            add_mistake(&v, message);
        else
            add_results(&v);
        wb_page_end(call, &v.h);
    }
    wb_results_release(&v.results);
}
