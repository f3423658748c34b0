/*
 * page_site.c - GET /site?host=[&why=1]: one site: how many pages of which kinds, its most important and its newest
 * ones, what webdb knows about its visits, and its robots.txt. With why=1 also whether it is being crawled, which has
 * to read the journal.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/htmlpen.h"

#include <stdio.h>

enum { PAGES_SHOWN = 10, VALUES_SHOWN = 10 };

struct site_view {
    struct wb_call *call;
    struct wb_htmlpen h;
    struct wb_buf host;  /* in the spelling of keys, with a NUL behind it */
    struct wb_buf query; /* site:HOST with pages of any status */
    struct wb_results best, newest;
    bool indexed;
    struct wb_webdb *webdb; /* NULL: there is none */
    struct wb_webdb_site known;
    bool is_known;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int search(struct site_view *v, struct wb_searcher *searcher, const char *sort, bool facets,
                  struct wb_results *results)
{
    struct wb_search_options options = {.query = wb_buf_slice(&v->query),
                                        .limit = PAGES_SHOWN,
                                        .count = true,
                                        .facets = facets ? (1u << WB_FACETS) - 1 : 0,
                                        .give_up = wb_patience_begin(v->call->worker)};
    int err = wb_answer_sort(searcher, wb_slice_str(sort), &options.sort);

    if (err == 0)
        err = wb_search(searcher, &options, results);
    wb_patience_end(v->call->worker);
    return err;
}

static int read_index(struct site_view *v)
{
    struct wb_searcher *searcher = NULL;
    int err = wb_call_searcher(v->call, &searcher);

    if (err == WB_E_BUSY)
        return 0; /* there is no index yet: webdb may know something */
    if (err == 0)
        err = search(v, searcher, "rank", true, &v->best);
    if (err == 0)
        err = search(v, searcher, "date", false, &v->newest);
    v->indexed = err == 0;
    return err;
}

static int read_webdb(struct site_view *v)
{
    WB_CHECK(!v->webdb);
    WB_CHECK(v->host.len > 0);
    int err = wb_webdb_open(v->call->server->options->dir, &v->webdb);

    if (err == 0)
        err = wb_webdb_get_site(v->webdb, wb_buf_slice(&v->host), &v->known);
    v->is_known = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int read_site(struct site_view *v)
{
    struct wb_slice host;
    int err = wb_call_required(v->call, "host", &host);

    if (err == 0)
        err = wb_selection_host("host", host, &v->host);
    if (err == 0)
        err = wb_buf_terminate(&v->host);
    if (err == 0)
        err = wb_buf_printf(&v->query, "site:%.*s status:>=100", WB_SLICE_ARG(wb_buf_slice(&v->host)));
    if (err == 0)
        err = read_index(v);
    if (err == 0)
        err = read_webdb(v);
    if (err == 0 && v->best.total == 0 && !v->is_known)
        err = wb_fail(WB_E_NOTFOUND, "no page of %s is known", v->host.ptr);
    return err;
}

/* ---- showing ----------------------------------------------------------------------------------------------------- */

static void add_facts(struct site_view *v)
{
    struct wb_htmlpen *h = &v->h;
    char rate[64];

    wb_htmlpen_raw(h, "<section aria-labelledby=\"facts\">\n<h2 id=\"facts\">Facts</h2>\n<dl class=\"facts\">\n");
    if (v->indexed)
        wb_htmlpen_fact(h, "Stored pages in the index", wb_htmlpen_number(v->best.total));
    if (v->is_known) {
        wb_htmlpen_fact(h, "Known pages", wb_htmlpen_number(v->known.pages));
        wb_htmlpen_fact(h, "Fetched pages", wb_htmlpen_number(v->known.fetched));
        wb_htmlpen_fact(h, "Visits", wb_htmlpen_number(v->known.visits));
        wb_htmlpen_fact(h, "Changes seen", wb_htmlpen_number(v->known.changes));
    }
    if (v->is_known && v->known.days > 0 && v->known.changes) {
        snprintf(rate, sizeof rate, "every %.3g days", v->known.days / (double)v->known.changes);
        wb_htmlpen_fact(h, "A page changes", wb_htmlpen_str(rate));
    }
    wb_htmlpen_raw(h, "</dl>\n</section>\n");
}

/* The values of a facet as bars; each leads to the search that finds these pages. */
static void add_bars(struct site_view *v, enum wb_facet facet, const char *title)
{
    const char *field = wb_answer_facet_name(facet);
    size_t count = v->best.facet_counts[facet];

    if (count == 0)
        return;
    wb_htmlpen_put(&v->h, "<section>\n<h2>{}</h2>\n<table class=\"bars\">\n", wb_htmlpen_str(title));
    for (size_t i = 0; i < count && i < VALUES_SHOWN; i++) {
        const struct wb_facet_value *value = &v->best.facets[facet][i];
        wb_htmlpen_put(&v->h, "<tr><th scope=\"row\"><a href=\"/?q=site:{}+{}:{}{}\">{}</a></th>",
                       wb_htmlpen_param(wb_buf_slice(&v->host)), wb_htmlpen_str(field), wb_htmlpen_param(value->value),
                       wb_htmlpen_str(facet == WB_FACET_STATUS ? "" : "+status:%3E=100"),
                       wb_htmlpen_text(value->value));
        wb_htmlpen_put(&v->h,
                       "<td><meter aria-hidden=\"true\" min=\"0\" max=\"{}\" value=\"{}\"></meter></td><td "
                       "class=\"number\">{}</td></tr>\n",
                       wb_htmlpen_plain(v->best.total), wb_htmlpen_plain(value->count),
                       wb_htmlpen_number(value->count));
    }
    wb_htmlpen_raw(&v->h, "</table>\n");
    if (count > VALUES_SHOWN)
        wb_htmlpen_put(&v->h, "<p class=\"quiet\">and {} more</p>\n", wb_htmlpen_number(count - VALUES_SHOWN));
    wb_htmlpen_raw(&v->h, "</section>\n");
}

static void add_pages(struct site_view *v, const char *title, const char *sort, const struct wb_results *results)
{
    if (results->hit_count == 0)
        return;
    wb_htmlpen_put(&v->h, "<section>\n<h2>{}</h2>\n<ul class=\"links\">\n", wb_htmlpen_str(title));
    for (size_t i = 0; i < results->hit_count; i++) {
        const struct wb_hit *hit = &results->hits[i];
        wb_htmlpen_raw(&v->h, "<li>");
        wb_htmlpen_page_link(&v->h, hit->url, hit->title.len ? hit->title : hit->url);
        wb_htmlpen_put(&v->h, " <span class=\"quiet\">{}</span> <span class=\"address\">{}</span></li>\n",
                       wb_htmlpen_time(hit->time_ms), wb_htmlpen_text(hit->url));
    }
    wb_htmlpen_put(&v->h,
                   "</ul>\n<p><a href=\"/?q=site:{}+status:%3E=100&amp;sort={}\">All of them</a></p>\n</section>\n",
                   wb_htmlpen_param(wb_buf_slice(&v->host)), wb_htmlpen_str(sort));
}

static void add_rules(struct site_view *v)
{
    struct wb_webdb_rules rules;

    if (!v->webdb || wb_webdb_get_rules(v->webdb, wb_buf_slice(&v->host), &rules) < 0)
        return; /* unknown, or damaged: the rest of the page does not need it */
    wb_htmlpen_put(&v->h,
                   "<section>\n<h2>robots.txt</h2>\n<details><summary>As it was read last</summary>\n<pre>{}</pre>"
                   "</details>\n</section>\n",
                   wb_htmlpen_text(rules.text));
}

static int add_why(struct site_view *v)
{
    struct wb_why why;
    bool asked;
    int err = wb_call_flag(v->call, "why", &asked);

    if (err < 0)
        return err;
    wb_htmlpen_raw(&v->h, "<section>\n<h2>Crawling</h2>\n");
    if (asked) {
        err = wb_why(v->call->server->options->dir, NULL, NULL, v->host.ptr, &why);
        if (err == 0)
            wb_htmlpen_put(&v->h, "<p>{}</p>\n", wb_htmlpen_text(wb_buf_slice(&why.reason)));
        if (err == 0 && why.next_ms)
            wb_htmlpen_put(&v->h, "<p>The next request is due {}.</p>\n", wb_htmlpen_time(why.next_ms));
        wb_why_release(&why);
        if (err == WB_E_NOTFOUND) {
            wb_htmlpen_raw(&v->h, "<p>No crawl has been given this site.</p>\n");
            err = 0;
        }
    } else {
        wb_htmlpen_put(&v->h, "<p><a href=\"/site?host={}&amp;why=1\">Is it being crawled?</a></p>\n",
                       wb_htmlpen_param(wb_buf_slice(&v->host)));
    }
    wb_htmlpen_raw(&v->h, "</section>\n");
    return err;
}

static int show(struct site_view *v)
{
    struct wb_slice host = wb_buf_slice(&v->host);

    wb_page_begin(v->call, &v->h, &(struct wb_page_frame){.title = host, .place = WB_PAGE_SITE});
    wb_htmlpen_put(&v->h, "<article>\n<h1>{}</h1>\n", wb_htmlpen_text(host));
    wb_htmlpen_put(&v->h,
                   "<nav class=\"actions\" aria-label=\"This site\"><a class=\"main\" href=\"/?q=site:{}\">Search its "
                   "pages</a>\n<a href=\"/captures?url={}/*\">Captures</a>\n"
                   "<a href=\"/cdx?url={}&amp;matchType=domain&amp;output=text\">CDX</a></nav>\n",
                   wb_htmlpen_param(host), wb_htmlpen_param(host), wb_htmlpen_param(host));
    if (v->best.cut || v->newest.cut)
        wb_htmlpen_raw(&v->h,
                       "<p class=\"note\">The time for counting ran out; there are more pages than shown here.</p>\n");
    add_facts(v);
    wb_htmlpen_raw(&v->h, "<div class=\"two\">\n");
    add_bars(v, WB_FACET_TYPE, "Types");
    add_bars(v, WB_FACET_STATUS, "Status");
    add_bars(v, WB_FACET_LANG, "Languages");
    if (v->best.facet_counts[WB_FACET_SITE] > 1)
        add_bars(v, WB_FACET_SITE, "Hosts");
    wb_htmlpen_raw(&v->h, "</div>\n<div class=\"two\">\n");
    add_pages(v, "Most important pages", "rank", &v->best);
    add_pages(v, "Newest pages", "date", &v->newest);
    wb_htmlpen_raw(&v->h, "</div>\n");
    int err = add_why(v);
    if (err < 0)
        return err;
    add_rules(v);
    wb_htmlpen_raw(&v->h, "</article>\n");
    wb_page_end(v->call, &v->h);
    return 0;
}

void wb_handle_site_page(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct site_view v = {.call = call};
    int err = read_site(&v);

    if (err == 0)
        err = show(&v);
    if (err < 0)
        wb_call_fail(call, err);
    wb_results_release(&v.best);
    wb_results_release(&v.newest);
    wb_webdb_close(v.webdb);
    wb_buf_release(&v.host);
    wb_buf_release(&v.query);
}
