/*
 * page_dash.c - GET /dash: the dashboard. Without scripts it shows the state of this moment; dash.js adds charts, keeps
 * everything current from /api/dash, and sends the operator's orders.
 */
#include "base/error.h"
#include "serve/dash.h"
#include "serve/htmlpen.h"

#include <stdio.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* One number with a name. The id is what dash.js updates. */
static void add_tile(struct wb_htmlpen *h, const char *id, const char *name, struct wb_htmlpen_value value)
{
    wb_htmlpen_put(h, "<div class=\"tile\"><dt>{}</dt><dd id=\"{}\">{}</dd></div>\n", wb_htmlpen_str(name),
                   wb_htmlpen_str(id), value);
}

static void add_tiles(struct wb_htmlpen *h, const struct wb_answer_stat *s)
{
    char text[32];

    wb_htmlpen_raw(h, "<dl class=\"tiles\">\n");
    add_tile(h, "pages", "Pages", wb_htmlpen_number(s->store.pages));
    add_tile(h, "versions", "Versions", wb_htmlpen_number(s->store.versions));
    add_tile(h, "sites", "Sites", wb_htmlpen_number(s->store.sites));
    add_tile(h, "known", "Known URLs", wb_htmlpen_number(s->webdb.pages));
    add_tile(h, "stored", "Stored", wb_htmlpen_bytes(s->store.bytes_stored));
    snprintf(text, sizeof text, "%.1f %%",
             s->store.bytes_stored ? 100.0 * (double)s->store.bytes_dead / (double)s->store.bytes_stored : 0.0);
    add_tile(h, "fragmented", "Of this free to compact", wb_htmlpen_str(text));
    add_tile(h, "unmerged", "Journal to merge", wb_htmlpen_bytes(s->unmerged));
    add_tile(h, "generation", "Generation", wb_htmlpen_plain(s->index.generation));
    add_tile(h, "snapshots", "Snapshots", wb_htmlpen_number(s->store.snapshots));
    add_tile(h, "streams", "Streams in progress", wb_htmlpen_str("\xE2\x80\x93"));
    add_tile(h, "freshness", "Fresh, estimated", wb_htmlpen_str("\xE2\x80\x93"));
    add_tile(h, "age", "Mean age", wb_htmlpen_str("\xE2\x80\x93"));
    wb_htmlpen_raw(h, "</dl>\n");
}

/* ---- charts ------------------------------------------------------------------------------------------------------ */

static void add_charts(struct wb_htmlpen *h)
{
    static const char *const charts[][2] = {
        {"rate", "Pages per second"},
        {"errors", "Failed requests per second"},
        {"queues", "Sites and queues"},
        {"traffic", "Received per second"},
        {"store", "Store"},
        {"fresh", "Freshness and age"},
        {"requests", "Answers per second"},
        {"open", "Connections and streams"},
    };

    wb_htmlpen_raw(
        h, "<section aria-labelledby=\"hour\">\n<h2 id=\"hour\">The last hour</h2>\n"
           "<noscript><p class=\"note\">The charts need JavaScript. <a href=\"/api/dash\">The numbers</a> do not."
           "</p></noscript>\n<div class=\"charts\">\n");
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++)
        wb_htmlpen_put(h, "<figure><figcaption>{}</figcaption><div class=\"chart\" id=\"chart-{}\"></div></figure>\n",
                       wb_htmlpen_str(charts[i][1]), wb_htmlpen_str(charts[i][0]));
    wb_htmlpen_raw(h, "</div>\n</section>\n");
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct dash_nodes {
    struct wb_htmlpen *h;
    size_t count;
    bool down; /* one of them is */
};

static int count_node(void *context, const struct wb_store_node *node)
{
    struct dash_nodes *nodes = context;

    nodes->count++;
    nodes->down = nodes->down || node->state == WB_STORE_NODE_DOWN;
    return 0;
}

static int add_node(void *context, const struct wb_store_node *n)
{
    struct dash_nodes *nodes = context;

    wb_htmlpen_put(nodes->h,
                   "<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td>{}</td>"
                   "<td>{}</td><td>{}</td><td>{} / {} / {}</td></tr>\n",
                   wb_htmlpen_plain(n->number), wb_htmlpen_str(wb_store_node_role_word(n->role)),
                   wb_htmlpen_str(wb_store_node_state_word(n->state)), wb_htmlpen_number(n->pages),
                   wb_htmlpen_bytes(n->used), wb_htmlpen_bytes(n->free), wb_htmlpen_bytes(n->capacity),
                   wb_htmlpen_number(n->gets), wb_htmlpen_number(n->puts), wb_htmlpen_number(n->streams));
    return nodes->h->err;
}

/* Where the pages are: only of interest if there are several nodes, or if the one is down. dash.js decides it anew. */
static void add_nodes(struct wb_call *call, struct wb_htmlpen *h, const struct wb_answer_stat *s)
{
    struct dash_nodes nodes = {.h = h};
    char design[WB_DESIGN_TEXT_MAX];
    int err = wb_store_node_each(call->worker->store, count_node, &nodes);

    wb_design_format(&s->store.design, design);
    wb_htmlpen_raw(h, nodes.count > 1 || nodes.down ? "<section id=\"nodes\">\n" : "<section id=\"nodes\" hidden>\n");
    wb_htmlpen_put(h, "<h2>Nodes</h2>\n<p class=\"quiet\">Design: <code>{}</code></p>\n", wb_htmlpen_str(design));
    wb_htmlpen_raw(h, "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\" class=\"number\">No.</th>"
                      "<th scope=\"col\">Role</th><th scope=\"col\">State</th><th scope=\"col\" class=\"number\">"
                      "Pages</th><th scope=\"col\">Used</th><th scope=\"col\">Free</th><th scope=\"col\">Capacity</th>"
                      "<th scope=\"col\">Gets / puts / streams</th></tr></thead>\n<tbody id=\"node-rows\">\n");
    if (err == 0)
        err = wb_store_node_each(call->worker->store, add_node, &nodes);
    wb_htmlpen_raw(h, "</tbody>\n</table></div>\n</section>\n");
    if (h->err == 0)
        h->err = err;
}

static int add_snapshot(void *context, const struct wb_store_snapshot *s)
{
    struct wb_htmlpen *h = context;
    char holder[WB_ANSWER_HOLDER_MAX];

    wb_htmlpen_put(h, "<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td>",
                   wb_htmlpen_plain(s->number), wb_htmlpen_text(wb_slice_str(s->name)), wb_htmlpen_time(s->time_ms),
                   wb_htmlpen_number(s->pages));
    for (size_t i = 0; i < s->holder_count; i++)
        wb_htmlpen_put(h, "{}{}", wb_htmlpen_str(i ? ", " : ""),
                       wb_htmlpen_str(wb_answer_holder(&s->holders[i], holder)));
    wb_htmlpen_raw(h, "</td></tr>\n");
    return h->err;
}

static int add_stream(void *context, const struct wb_stream_named *s)
{
    struct wb_htmlpen *h = context;

    wb_htmlpen_put(
        h, "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n",
        wb_htmlpen_str(s->name), wb_htmlpen_plain(s->snapshot), wb_htmlpen_number(s->delivered),
        wb_htmlpen_str(s->damaged    ? "damaged"
                       : s->finished ? "finished"
                                     : "open"),
        wb_htmlpen_time(s->saved_ms));
    return h->err;
}

static void add_lists(struct wb_call *call, struct wb_htmlpen *h)
{
    wb_htmlpen_raw(
        h, "<section>\n<h2>Snapshots</h2>\n<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\" "
           "class=\"number\">No.</th>"
           "<th scope=\"col\">Name</th><th scope=\"col\">Sealed</th><th scope=\"col\" class=\"number\">Pages</th>"
           "<th scope=\"col\">Held by</th></tr></thead>\n<tbody id=\"snapshot-rows\">\n");
    int err = wb_store_snapshot_each(call->worker->store, add_snapshot, h);
    wb_htmlpen_raw(
        h, "</tbody>\n</table></div>\n</section>\n<section>\n<h2>Named streams</h2>\n<div class=\"wide\"><table>\n"
           "<thead><tr><th scope=\"col\">Name</th><th scope=\"col\" class=\"number\">Snapshot</th><th scope=\"col\" "
           "class=\"number\">Delivered</th>"
           "<th scope=\"col\">State</th><th scope=\"col\">Last heard from</th></tr></thead>\n"
           "<tbody id=\"stream-rows\">\n");
    if (err == 0)
        err = wb_stream_named_each(call->server->streams, add_stream, h);
    wb_htmlpen_raw(h, "</tbody>\n</table></div>\n</section>\n");
    if (h->err == 0)
        h->err = err;
}

static void add_cycle(struct wb_htmlpen *h, const struct wb_answer_stat *s)
{
    wb_htmlpen_raw(h, "<section>\n<h2>Cycle</h2>\n<dl class=\"facts\" id=\"cycle\">\n");
    if (s->has_cycle) {
        wb_htmlpen_fact(h, "Number", wb_htmlpen_number(s->cycle.cycle));
        wb_htmlpen_fact(h, "Step", wb_htmlpen_str(wb_cycle_step_word(s->cycle.step)));
        wb_htmlpen_fact(h, "Began", wb_htmlpen_time(s->cycle.began_ms));
        wb_htmlpen_fact(h, "Listed", wb_htmlpen_number(s->cycle.listed));
        wb_htmlpen_fact(h, "Fetched", wb_htmlpen_number(s->cycle.fetched));
        wb_htmlpen_fact(h, "Stored", wb_htmlpen_number(s->cycle.stored));
        wb_htmlpen_fact(h, "Errors", wb_htmlpen_number(s->cycle.errors));
    } else {
        wb_htmlpen_raw(h, "<div><dt>None has been started.</dt></div>\n");
    }
    wb_htmlpen_raw(h, "</dl>\n</section>\n");
}

/* Only dash.js knows what a crawl does at the moment. */
static void add_crawl(struct wb_htmlpen *h)
{
    wb_htmlpen_raw(h, "<div class=\"two\">\n<section>\n<h2>Crawl</h2>\n<dl class=\"facts\" id=\"crawl\"></dl>\n"
                      "</section>\n<section>\n<h2>Errors by kind</h2>\n<table class=\"bars\"><tbody id=\"error-rows\">"
                      "</tbody></table>\n</section>\n</div>\n");
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* The forms do nothing without dash.js, which sends the token; so they are hidden until it shows them. */
static void add_orders(struct wb_htmlpen *h)
{
    wb_htmlpen_raw(
        h,
        "<section id=\"orders\" hidden aria-labelledby=\"orders-title\">\n<h2 id=\"orders-title\">Operator</h2>\n"
        "<form id=\"token-form\" class=\"order\"><label for=\"token\">Token (the file <code>token</code> in the "
        "repository)</label><input id=\"token\" type=\"password\" autocomplete=\"off\" required>"
        "<button>Use</button></form>\n"
        "<div id=\"order-forms\" hidden>\n"
        "<form class=\"order\" data-call=\"/api/control/pause\"><button>Pause the crawl</button></form>\n"
        "<form class=\"order\" data-call=\"/api/control/resume\"><button>Resume</button></form>\n"
        "<form class=\"order\" data-call=\"/api/control/stop\"><label for=\"stop-site\">Stop a site</label>"
        "<input id=\"stop-site\" name=\"site\" placeholder=\"example.org\" required><button>Stop</button></form>\n"
        "<form class=\"order\" data-call=\"/api/control/delay\"><label for=\"delay-site\">Seconds between requests to"
        "</label><input id=\"delay-site\" name=\"site\" placeholder=\"example.org\" required>"
        "<input name=\"delay\" type=\"number\" min=\"0\" step=\"any\" value=\"10\" aria-label=\"Seconds\" required>"
        "<button>Set</button></form>\n"
        "<form class=\"order\" data-call=\"/api/push\"><label for=\"push-url\">A page has changed</label>"
        "<input id=\"push-url\" name=\"url\" type=\"url\" placeholder=\"https://example.org/\" required>"
        "<button>Push</button></form>\n"
        "<form class=\"order danger\" data-call=\"/api/expunge\" data-sure=\"Remove this everywhere and keep it out?\">"
        "<label for=\"expunge-what\">Take down a URL or a host</label>"
        "<input id=\"expunge-what\" name=\"what\" required><button>Take down</button></form>\n"
        "<p><button type=\"button\" id=\"forget\">Forget the token</button></p>\n</div>\n"
        "<p id=\"order-answer\" role=\"status\"></p>\n</section>\n");
}

void wb_handle_dash_page(struct wb_call *call)
{
    struct wb_answer_stat stat;
    struct wb_htmlpen h;

    int err = wb_answer_stat_read(call->server->options->dir, call->worker->store, &stat);
    if (err == 0) {
        wb_page_begin(
            call, &h,
            &(struct wb_page_frame){
                .title = WB_SLICE_LIT("Dashboard"), .place = WB_PAGE_DASH, .script = "dash.js", .charts = true});
        wb_htmlpen_raw(&h, "<h1>Dashboard</h1>\n");
        wb_htmlpen_put(
            &h, "<p class=\"state\" id=\"state\" role=\"status\">{}</p>\n<p class=\"quiet\" id=\"orders-now\"></p>\n",
            wb_htmlpen_str(stat.cycle.running ? "The loop is running." : "The loop is not running."));
        add_tiles(&h, &stat);
        add_charts(&h);
        add_crawl(&h);
        add_cycle(&h, &stat);
        add_nodes(call, &h, &stat);
        add_lists(call, &h);
        add_orders(&h);
        wb_page_end(call, &h);
    } else {
        wb_call_fail(call, err);
    }
    wb_answer_stat_release(&stat);
}
