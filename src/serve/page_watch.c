/*
 * page_watch.c - what people watch, as pages: GET /dash/sites, /dash/fetches, /dash/orders. They work without scripts;
 * dash.js asks for the same pages again, and puts the part with data-live in its place.
 */
#include "base/check.h"
#include "base/error.h"
#include "fetch/fetch.h"
#include "os/clock.h"
#include "serve/htmlpen.h"
#include "serve/orders.h"
#include "serve/watch.h"

#include <stdio.h>

enum { ORDERS_SHOWN = 200, ORDERS_MAX = 1000 };

static void begin(struct wb_call *call, struct wb_htmlpen *h, const char *title)
{
    wb_page_begin(call, h,
                  &(struct wb_page_frame){.title = wb_slice_str(title), .place = WB_PAGE_DASH, .script = "dash.js"});
    wb_htmlpen_put(
        h, "<nav class=\"crumbs\" aria-label=\"Where this is\"><a href=\"/dash\">Dashboard</a></nav>\n<h1>{}</h1>\n",
        wb_htmlpen_str(title));
}

/* When this was true, and the same page again, for those whose browser does not ask for it by itself. */
static void add_moment(struct wb_call *call, struct wb_htmlpen *h)
{
    struct wb_slice query = call->request->query;

    wb_htmlpen_put(h, "<p class=\"quiet moment\">As of {}. <a href=\"{}{}{}\">Refresh</a></p>\n",
                   wb_htmlpen_time(wb_clock_wall_ms()), wb_htmlpen_text(call->request->path),
                   wb_htmlpen_str(query.ptr ? "?" : ""), wb_htmlpen_text(query.ptr ? query : WB_SLICE_EMPTY));
}

static void add_option(struct wb_htmlpen *h, const char *value, const char *text, struct wb_slice chosen)
{
    wb_htmlpen_put(
        h, "<option value=\"{}\"{}>{}</option>", wb_htmlpen_str(value),
        wb_htmlpen_markup(wb_slice_equal(chosen, wb_slice_str(value)) ? WB_SLICE_LIT(" selected") : WB_SLICE_EMPTY),
        wb_htmlpen_str(text));
}

/* ---- sites ------------------------------------------------------------------------------------------------------- */

static void add_sites_form(struct wb_htmlpen *h, const struct wb_watch_search *s, const struct wb_watch_sites *sites)
{
    char text[64];

    wb_htmlpen_put(
        h,
        "<form class=\"filter\" action=\"/dash/sites\" method=\"get\" role=\"search\" aria-label=\"Sites\">\n"
        "<label>Name contains <input name=\"q\" value=\"{}\" autocomplete=\"off\" spellcheck=\"false\"></label>\n"
        "<label>State <select name=\"state\">",
        wb_htmlpen_text(s->search.text));
    add_option(h, "any", "any", s->state);
    for (enum wb_site_state state = WB_SITE_UNRESOLVED; state <= WB_SITE_REFUSED; state++) {
        snprintf(text, sizeof text, "%s (%llu)", wb_watch_state_word(state), (unsigned long long)sites->states[state]);
        add_option(h, wb_watch_state_word(state), text, s->state);
    }
    wb_htmlpen_put(h,
                   "</select></label>\n<input type=\"hidden\" name=\"sort\" value=\"{}\">"
                   "<input type=\"hidden\" name=\"order\" value=\"{}\">\n<button>Show</button>\n</form>\n",
                   wb_htmlpen_text(s->sort), wb_htmlpen_str(s->search.descending ? "down" : "up"));
}

/* The address of the same search, in another order or from another place. */
static void add_sites_link(struct wb_htmlpen *h, const struct wb_watch_search *s, struct wb_slice sort, bool down,
                           uint64_t offset)
{
    wb_htmlpen_put(h, "/dash/sites?q={}&amp;state={}&amp;sort={}&amp;order={}&amp;offset={}",
                   wb_htmlpen_param(s->search.text), wb_htmlpen_param(s->state), wb_htmlpen_param(sort),
                   wb_htmlpen_str(down ? "down" : "up"), wb_htmlpen_plain(offset));
    if (s->search.max != WB_WATCH_ROWS)
        wb_htmlpen_put(h, "&amp;limit={}", wb_htmlpen_plain(s->search.max));
}

/* A head of a column; one with a key sorts. */
static void add_head(struct wb_htmlpen *h, const struct wb_watch_search *s, const char *title, const char *key,
                     bool number)
{
    bool now = key && wb_slice_equal(s->sort, wb_slice_str(key));
    bool down = now && s->search.descending;

    wb_htmlpen_put(h, "<th scope=\"col\"{}{}>",
                   wb_htmlpen_markup(number ? WB_SLICE_LIT(" class=\"number\"") : WB_SLICE_EMPTY),
                   wb_htmlpen_markup(!now   ? WB_SLICE_EMPTY
                                     : down ? WB_SLICE_LIT(" aria-sort=\"descending\"")
                                            : WB_SLICE_LIT(" aria-sort=\"ascending\"")));
    if (key) {
        wb_htmlpen_raw(h, "<a href=\"");
        /* Of numbers, the largest are of interest first. */
        add_sites_link(h, s, wb_slice_str(key), now ? !down : number, 0);
        wb_htmlpen_put(h, "\">{}</a>{}</th>", wb_htmlpen_str(title),
                       wb_htmlpen_str(!now   ? ""
                                      : down ? " \xE2\x86\x93"
                                             : " \xE2\x86\x91"));
    } else {
        wb_htmlpen_put(h, "{}</th>", wb_htmlpen_str(title));
    }
}

static void add_site(struct wb_htmlpen *h, const struct wb_watch_site *site)
{
    const struct wb_site_row *row = &site->row;
    uint64_t left = site->known > site->fetched ? site->known - site->fetched : 0;
    char rate[48];

    wb_htmlpen_put(h, "<tr><td><a href=\"/site?host={}&amp;why=1\">{}</a></td><td class=\"state-{}\">{}</td>",
                   wb_htmlpen_param(row->name), wb_htmlpen_text(row->name),
                   wb_htmlpen_str(wb_watch_state_word(row->state)), wb_htmlpen_str(wb_watch_state_word(row->state)));
    if (site->queued != WB_RECENT_UNKNOWN && row->state == WB_SITE_CLAIMED)
        wb_htmlpen_put(h, "<td class=\"number\">{}</td>", wb_htmlpen_number(site->queued));
    else if (site->is_known)
        wb_htmlpen_put(h, "<td class=\"number\" title=\"known, but never fetched\">{}</td>", wb_htmlpen_number(left));
    else
        wb_htmlpen_raw(h, "<td class=\"number\">\xE2\x80\x93</td>");
    snprintf(rate, sizeof rate, "%.2g", (double)site->requests * 60000 / WB_WATCH_RECENT_MS);
    wb_htmlpen_put(h,
                   "<td class=\"number\">{}</td><td class=\"number{}\">{}</td><td class=\"number\">{}</td>"
                   "<td class=\"why\">{}</td><td>",
                   wb_htmlpen_str(site->requests ? rate : "0"), wb_htmlpen_str(site->errors ? " bad" : ""),
                   wb_htmlpen_number(site->errors), wb_htmlpen_number(row->pages > 0 ? (uint64_t)row->pages : 0),
                   wb_htmlpen_text(site->why));
    if (row->state == WB_SITE_WAITING && row->next_ms > 0)
        wb_htmlpen_put(h, "{}", wb_htmlpen_time(row->next_ms));
    wb_htmlpen_raw(h, "</td></tr>\n");
}

static void add_sites_table(struct wb_htmlpen *h, const struct wb_watch_search *s, const struct wb_watch_sites *sites)
{
    wb_htmlpen_raw(
        h,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Sites\"><table class=\"sites\">\n<thead><tr>");
    add_head(h, s, "Site", "name", false);
    add_head(h, s, "State", "state", false);
    add_head(h, s, "Queue", NULL, true);
    add_head(h, s, "Requests/min", NULL, true);
    add_head(h, s, "Errors", NULL, true);
    add_head(h, s, "Pages", "pages", true);
    add_head(h, s, "Why", "failures", false);
    add_head(h, s, "Next visit", "next", false);
    wb_htmlpen_raw(h, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < sites->count; i++)
        add_site(h, &sites->items[i]);
    if (sites->count == 0)
        wb_htmlpen_raw(h, "<tr><td colspan=\"8\">None.</td></tr>\n");
    wb_htmlpen_raw(h, "</tbody>\n</table></div>\n");
}

static void add_sites_paging(struct wb_htmlpen *h, const struct wb_watch_search *s, const struct wb_watch_sites *sites)
{
    uint64_t offset = s->search.offset, max = s->search.max;

    if (sites->total == 0)
        return;
    wb_htmlpen_put(h, "<nav class=\"paging\" aria-label=\"More sites\"><ul><li>{} to {} of {}</li>",
                   wb_htmlpen_number(sites->count ? offset + 1 : 0), wb_htmlpen_number(offset + sites->count),
                   wb_htmlpen_number(sites->total));
    if (offset) {
        wb_htmlpen_raw(h, "<li><a href=\"");
        add_sites_link(h, s, s->sort, s->search.descending, offset > max ? offset - max : 0);
        wb_htmlpen_raw(h, "\" rel=\"prev\">Previous</a></li>");
    }
    if (max && offset + sites->count < sites->total) {
        wb_htmlpen_raw(h, "<li><a href=\"");
        add_sites_link(h, s, s->sort, s->search.descending, offset + max);
        wb_htmlpen_raw(h, "\" rel=\"next\">Next</a></li>");
    }
    wb_htmlpen_raw(h, "</ul></nav>\n");
}

void wb_handle_sites_page(struct wb_call *call)
{
    struct wb_watch_sites sites = {.count = 0};
    struct wb_watch_search search;
    struct wb_htmlpen h;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_watch_search_read(call, &search);
    if (err == 0)
        err = wb_watch_sites_read(call->server, &search, &sites);
    if (err == 0) {
        begin(call, &h, "Sites");
        add_sites_form(&h, &search, &sites);
        wb_htmlpen_raw(&h, "<div data-live=\"5\" id=\"live-sites\">\n");
        add_moment(call, &h);
        if (!sites.known)
            wb_htmlpen_raw(&h, "<p>No crawl has been given a site yet.</p>\n");
        add_sites_table(&h, &search, &sites);
        add_sites_paging(&h, &search, &sites);
        wb_htmlpen_raw(
            &h, "</div>\n<p class=\"quiet\">Requests per minute and errors are those of the last five minutes, as "
                "far as the <a href=\"/dash/fetches\">log of fetches</a> reaches back. The queue is that of "
                "the crawler at the last request; for other sites it is how many URLs are known that were "
                "never fetched.</p>\n");
        wb_page_end(call, &h);
    } else {
        wb_call_fail(call, err);
    }
    wb_watch_sites_release(&sites);
}

/* ---- fetches ----------------------------------------------------------------------------------------------------- */

static void add_fetches_form(struct wb_htmlpen *h, const struct wb_watch_filter *f, struct wb_slice error)
{
    wb_htmlpen_put(
        h,
        "<form class=\"filter\" action=\"/dash/fetches\" method=\"get\" role=\"search\" aria-label=\"Fetches\">\n"
        "<label>Text <input name=\"q\" value=\"{}\" autocomplete=\"off\" spellcheck=\"false\"></label>\n"
        "<label>Site <input name=\"site\" value=\"{}\" autocomplete=\"off\" spellcheck=\"false\"></label>\n"
        "<label>Status <select name=\"status\">",
        wb_htmlpen_text(f->text), wb_htmlpen_text(f->site));
    add_option(h, "", "any", f->status);
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        add_option(h, classes[i], classes[i], f->status);
    wb_htmlpen_raw(h, "</select></label>\n<label>Errors <select name=\"error\">");
    add_option(h, "", "all fetches", error);
    add_option(h, "any", "only errors", error);
    static const char *const others[] = {"status", "redirects", "location", "dns", "private", "store"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        add_option(h, others[i], others[i], error);
    for (enum wb_fetch_error kind = WB_FETCH_OK + 1; kind <= WB_FETCH_OTHER; kind++)
        add_option(h, wb_fetch_error_word(kind), wb_fetch_error_word(kind), error);
    wb_htmlpen_raw(h, "</select></label>\n<button>Show</button>\n</form>\n");
}

static int add_fetch(void *context, const struct wb_recent_fetch *fetch)
{
    struct wb_htmlpen *h = context;
    bool failed = wb_slice_starts(fetch->result, WB_SLICE_LIT("error:"));

    wb_htmlpen_put(h, "<tr><td>{}</td><td class=\"number\">", wb_htmlpen_time(fetch->time_ms));
    if (fetch->status)
        wb_htmlpen_put(h, "{}", wb_htmlpen_plain(fetch->status));
    else
        wb_htmlpen_raw(h, "\xE2\x80\x93");
    wb_htmlpen_put(h,
                   "</td><td class=\"{}\">{}{}{}</td><td class=\"number\">{}</td><td class=\"number\">{} ms</td><td "
                   "class=\"address\">",
                   wb_htmlpen_str(failed ? "bad" : "good"), wb_htmlpen_text(fetch->result),
                   wb_htmlpen_str(fetch->reason.len ? ": " : ""), wb_htmlpen_text(fetch->reason),
                   wb_htmlpen_bytes(fetch->bytes), wb_htmlpen_number(fetch->took_ms));
    if (fetch->cut)
        wb_htmlpen_put(h, "{}\xE2\x80\xA6", wb_htmlpen_text(fetch->url));
    else
        wb_htmlpen_page_link(h, fetch->url, fetch->url);
    wb_htmlpen_raw(h, "</td></tr>\n");
    return h->err;
}

void wb_handle_fetches_page(struct wb_call *call)
{
    struct wb_watch_filter filter;
    struct wb_htmlpen h;
    uint64_t newest;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_watch_filter_read(call, &filter);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    begin(call, &h, "Fetches");
    add_fetches_form(&h, &filter, wb_call_param(call, "error"));
    wb_htmlpen_raw(&h, "<div data-live=\"2\" id=\"live-fetches\">\n");
    add_moment(call, &h);
    wb_htmlpen_raw(
        &h, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Fetches\"><table class=\"fetches\">\n"
            "<thead><tr><th scope=\"col\">Time</th><th scope=\"col\" class=\"number\">Status</th><th scope=\"col\">"
            "Result</th><th scope=\"col\" class=\"number\">Size</th><th scope=\"col\" class=\"number\">Took</th>"
            "<th scope=\"col\">URL</th></tr></thead>\n<tbody>\n");
    size_t before = h.out->len;
    err = wb_watch_fetches_read(call->server, &filter, add_fetch, &h, &newest);
    if (err == 0 && h.out->len == before)
        wb_htmlpen_raw(&h, newest ? "<tr><td colspan=\"6\">None of the latest fetches is like this.</td></tr>\n"
                                  : "<tr><td colspan=\"6\">Nothing was fetched yet.</td></tr>\n");
    wb_htmlpen_raw(&h,
                   "</tbody>\n</table></div>\n</div>\n<p class=\"quiet\">The newest first; the last 32,768 requests of "
                   "crawls are kept.</p>\n");
    if (h.err == 0)
        h.err = err;
    wb_page_end(call, &h);
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static int add_order(void *context, const struct wb_order *order)
{
    struct wb_htmlpen *h = context;

    wb_htmlpen_put(h, "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td></tr>\n",
                   wb_htmlpen_time(order->time_ms), wb_htmlpen_text(order->what), wb_htmlpen_text(order->subject),
                   wb_htmlpen_str(order->ok ? "good" : "bad"), wb_htmlpen_str(order->ok ? "done" : "failed"),
                   wb_htmlpen_text(order->said));
    return h->err;
}

void wb_handle_orders_page(struct wb_call *call)
{
    struct wb_htmlpen h;
    uint64_t limit;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_call_number(call, "limit", ORDERS_SHOWN, ORDERS_MAX, &limit);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    begin(call, &h, "What operators did");
    wb_htmlpen_raw(&h, "<div data-live=\"5\" id=\"live-orders\">\n");
    add_moment(call, &h);
    wb_htmlpen_raw(&h,
                   "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Orders\"><table class=\"orders\">\n"
                   "<thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Order</th><th scope=\"col\">About</th>"
                   "<th scope=\"col\">Outcome</th><th scope=\"col\">What came of it</th></tr></thead>\n<tbody>\n");
    size_t before = h.out->len;
    err = wb_orders_read(call->server->options->dir, (size_t)limit, add_order, &h);
    if (err == 0 && h.out->len == before)
        wb_htmlpen_raw(&h, "<tr><td colspan=\"5\">Nothing yet.</td></tr>\n");
    wb_htmlpen_raw(&h, "</tbody>\n</table></div>\n</div>\n");
    if (h.err == 0)
        h.err = err;
    wb_page_end(call, &h);
}
