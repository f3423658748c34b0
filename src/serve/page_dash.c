/*
 * page_dash.c - GET /dash: the dashboard. Without scripts it shows the state of this moment and the past as pictures
 * and tables; dash.js keeps everything current, and sends the operator's orders.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "serve/backups.h"
#include "serve/dash_state.h"
#include "serve/page_charts.h"
#include "serve/watch.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_WANTED = 240 };

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* One number with a name. The id is what dash.js updates. */
static void add_tile(struct wb_htmlpen *h, const char *id, const char *name, struct wb_htmlpen_value value)
{
    wb_htmlpen_put(h, "<div class=\"tile\"><dt>{}</dt><dd id=\"{}\">{}</dd></div>\n", wb_htmlpen_str(name),
                   wb_htmlpen_str(id), value);
}

/* A number of the last sample. */
static void add_sampled(struct wb_htmlpen *h, const char *id, const char *name, const struct wb_dash_now *now,
                        enum wb_dash_number number)
{
    char text[WB_PAGE_NUMBER_MAX];

    add_tile(h, id, name,
             wb_htmlpen_str(wb_page_number(now->sample.numbers[number], wb_dash_numbers[number].unit, text)));
}

static void add_tiles(struct wb_call *call, struct wb_htmlpen *h, const struct wb_answer_stat *s)
{
    struct wb_dash_now now;
    char text[32];

    if (!wb_dash_now(call->server->dash, &now)) /* the server has just begun */
        now.sample.numbers[WB_DASH_STREAMS] = now.sample.numbers[WB_DASH_FRESHNESS] = now.sample.numbers[WB_DASH_AGE] =
            NAN;
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
    add_sampled(h, "streams", "Streams in progress", &now, WB_DASH_STREAMS);
    add_sampled(h, "freshness", "Fresh, estimated", &now, WB_DASH_FRESHNESS);
    add_sampled(h, "age", "Mean age", &now, WB_DASH_AGE);
    wb_htmlpen_raw(h, "</dl>\n");
}

/* ---- what is going on -------------------------------------------------------------------------------------------- */

static void add_state(struct wb_htmlpen *h, const struct wb_dash_state *state)
{
    wb_htmlpen_put(h, "<p class=\"state\" id=\"state\" role=\"status\">{}",
                   wb_htmlpen_text(wb_buf_slice(&state->text)));
    if (state->until_ms)
        wb_htmlpen_put(h, " {}.", wb_htmlpen_time(state->until_ms));
    wb_htmlpen_put(h, "</p>\n<p class=\"problem\" id=\"problem\"{}>{}</p>\n<p class=\"quiet\" id=\"orders-now\"></p>\n",
                   wb_htmlpen_markup(state->problem.len ? WB_SLICE_EMPTY : WB_SLICE_LIT(" hidden")),
                   wb_htmlpen_text(wb_buf_slice(&state->problem)));
}

/* A path as a word of a shell. */
static int quote(struct wb_slice path, struct wb_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,";
    bool quoted = path.len == 0;
    int err = 0;

    for (size_t i = 0; i < path.len; i++)
        quoted = quoted || !strchr(plain, path.ptr[i]);
    if (!quoted)
        return wb_buf_append_slice(out, path);
    err = wb_buf_append_char(out, '\'');
    for (size_t i = 0; i < path.len && err == 0; i++)
        err = path.ptr[i] == '\'' ? wb_buf_append_str(out, "'\\''") : wb_buf_append_char(out, path.ptr[i]);
    return err < 0 ? err : wb_buf_append_char(out, '\'');
}

/* Strangers are not told where a repository is. */
static void add_beginning(struct wb_call *call, struct wb_htmlpen *h)
{
    bool own = call->request->loopback && !call->server->options->open;
    char *path = own ? wb_path_real(call->server->options->dir) : NULL;
    struct wb_buf word = WB_BUF_INIT;
    int err = path ? quote(wb_slice_str(path), &word) : wb_buf_append_str(&word, "DIR");

    wb_htmlpen_raw(h,
                   "<section id=\"begin\" aria-labelledby=\"begin-title\">\n<h2 id=\"begin-title\">How to begin</h2>\n"
                   "<p>There is nothing in this repository yet. Crawl a site, and then build the index:</p>\n");
    wb_htmlpen_put(
        h,
        "<pre tabindex=\"0\" aria-label=\"Commands\">webbase -r {} crawl https://example.org/ --max-pages 1000\n"
        "webbase -r {} index</pre>\n",
        wb_htmlpen_text(wb_buf_slice(&word)), wb_htmlpen_text(wb_buf_slice(&word)));
    wb_htmlpen_put(
        h,
        "{}<p>The page shows what the crawl does while it runs, and the search finds its pages as soon as the "
        "index is there; this server need not be started again.</p>\n</section>\n",
        wb_htmlpen_markup(path ? WB_SLICE_EMPTY
                               : WB_SLICE_LIT("<p><code>DIR</code> is the directory of the repository.</p>\n")));
    if (h->err == 0)
        h->err = err;
    wb_buf_release(&word);
    wb_free(path);
}

/* ---- what people watch ------------------------------------------------------------------------------------------- */

/* Sites in numbers; dash.js puts the first rows of the table in their place. */
static void add_sites(struct wb_call *call, struct wb_htmlpen *h)
{
    struct wb_dispenser_stat stat;
    bool known;
    int err = wb_watch_counts(call->server, &stat, &known);

    wb_htmlpen_raw(
        h, "<section aria-labelledby=\"sites-title\">\n<h2 id=\"sites-title\">Sites that are crawled</h2>\n"
           "<div data-live=\"5\" data-part=\"live-sites\" data-from=\"/dash/sites?limit=10&amp;sort=state\">\n");
    if (err < 0) {
        wb_htmlpen_put(h, "<p class=\"problem\">They cannot be read: {}.</p>\n", wb_htmlpen_str(wb_error_message()));
    } else if (known) {
        wb_htmlpen_raw(h, "<dl class=\"facts\">\n");
        wb_htmlpen_fact(h, "Being crawled", wb_htmlpen_number(stat.claimed));
        wb_htmlpen_fact(h, "Ready", wb_htmlpen_number(stat.ready));
        wb_htmlpen_fact(h, "Waiting", wb_htmlpen_number(stat.waiting));
        wb_htmlpen_fact(h, "Done", wb_htmlpen_number(stat.done));
        wb_htmlpen_fact(h, "Not looked up yet", wb_htmlpen_number(stat.unresolved));
        wb_htmlpen_fact(h, "Other names", wb_htmlpen_number(stat.alias));
        wb_htmlpen_fact(h, "Refused", wb_htmlpen_number(stat.refused));
        wb_htmlpen_raw(h, "</dl>\n");
    } else {
        wb_htmlpen_raw(h, "<p>No crawl has been given a site yet.</p>\n");
    }
    wb_htmlpen_raw(h, "</div>\n<p><a href=\"/dash/sites\">All sites: search and sort</a></p>\n</section>\n");
}

/* What only the operator may see; with a token, dash.js puts the first rows in place. */
static void add_fetches(struct wb_htmlpen *h)
{
    wb_htmlpen_raw(h,
                   "<section aria-labelledby=\"fetches-title\">\n<h2 id=\"fetches-title\">Latest fetches</h2>\n"
                   "<div data-live=\"2\" data-part=\"live-fetches\" data-token data-from=\"/dash/fetches?limit=12\">\n"
                   "<p>Only operators see them: the page asks for the token, as a password of any name.</p>\n</div>\n"
                   "<p><a href=\"/dash/fetches\">All latest fetches, with filters</a></p>\n</section>\n");
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

/* Where the pages are: only of interest if there are several nodes, or if the one is down. dash.js decides it again. */
static void add_nodes(struct wb_call *call, struct wb_htmlpen *h, const struct wb_answer_stat *s)
{
    struct dash_nodes nodes = {.h = h};
    char design[WB_DESIGN_TEXT_MAX];
    int err = wb_store_node_each(call->worker->store, count_node, &nodes);

    wb_design_format(&s->store.design, design);
    wb_htmlpen_raw(h, nodes.count > 1 || nodes.down ? "<section id=\"nodes\">\n" : "<section id=\"nodes\" hidden>\n");
    wb_htmlpen_put(h, "<h2>Nodes</h2>\n<p class=\"quiet\">Design: <code>{}</code></p>\n", wb_htmlpen_str(design));
    wb_htmlpen_raw(h, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Nodes\"><table>\n<thead><tr><th "
                      "scope=\"col\" class=\"number\">No.</th>"
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
        h, "<section>\n<h2>Snapshots</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
           "aria-label=\"Snapshots\"><table>\n<thead><tr><th scope=\"col\" "
           "class=\"number\">No.</th>"
           "<th scope=\"col\">Name</th><th scope=\"col\">Sealed</th><th scope=\"col\" class=\"number\">Pages</th>"
           "<th scope=\"col\">Held by</th></tr></thead>\n<tbody id=\"snapshot-rows\">\n");
    size_t before = h->out->len;
    int err = wb_store_snapshot_each(call->worker->store, add_snapshot, h);
    if (h->out->len == before)
        wb_htmlpen_raw(h, "<tr><td colspan=\"5\">None.</td></tr>\n");
    wb_htmlpen_raw(
        h, "</tbody>\n</table></div>\n</section>\n<section>\n<h2>Named streams</h2>\n<div class=\"wide\" "
           "tabindex=\"0\" role=\"region\" aria-label=\"Named streams\"><table>\n"
           "<thead><tr><th scope=\"col\">Name</th><th scope=\"col\" class=\"number\">Snapshot</th><th scope=\"col\" "
           "class=\"number\">Delivered</th>"
           "<th scope=\"col\">State</th><th scope=\"col\">Last heard from</th></tr></thead>\n"
           "<tbody id=\"stream-rows\">\n");
    before = h->out->len;
    if (err == 0)
        err = wb_stream_named_each(call->server->streams, add_stream, h);
    if (h->out->len == before)
        wb_htmlpen_raw(h, "<tr><td colspan=\"5\">None.</td></tr>\n");
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

/* ---- crawls ------------------------------------------------------------------------------------------------------ */

struct error_counts {
    json_t *kinds; /* word: count */
    uint64_t most;
};

static int count_errors(struct wb_call *call, struct error_counts *errors)
{
    struct wb_buf lines = WB_BUF_INIT;
    struct wb_slice rest, line;
    const char *kind;
    json_t *count;

    int err = wb_dash_crawls(call->server->dash, &lines);
    rest = wb_buf_slice(&lines);
    while (err == 0 && wb_slice_next_line(&rest, &line)) {
        json_t *status = json_loadb(line.ptr, line.len, 0, NULL);
        json_object_foreach(json_object_get(status, "errors"), kind, count)
        {
            json_int_t sum = json_integer_value(json_object_get(errors->kinds, kind)) + json_integer_value(count);
            json_object_set_new(errors->kinds, kind, json_integer(sum));
            errors->most = (uint64_t)sum > errors->most ? (uint64_t)sum : errors->most;
        }
        json_decref(status);
    }
    wb_buf_release(&lines);
    return err;
}

static void add_errors(struct wb_call *call, struct wb_htmlpen *h)
{
    struct error_counts errors = {.kinds = json_object()};
    const char *kind;
    json_t *count;
    int err = errors.kinds ? count_errors(call, &errors) : WB_E_NOMEM;

    wb_htmlpen_raw(h, "<section>\n<h2>Errors by kind</h2>\n<table class=\"bars\"><tbody id=\"error-rows\">\n");
    json_object_foreach(errors.kinds, kind, count) wb_htmlpen_put(
        h,
        "<tr><td>{}</td><td><meter aria-hidden=\"true\" min=\"0\" max=\"{}\" value=\"{}\"></meter></td>"
        "<td class=\"number\">{}</td></tr>\n",
        wb_htmlpen_str(kind), wb_htmlpen_plain(errors.most), wb_htmlpen_plain((uint64_t)json_integer_value(count)),
        wb_htmlpen_number((uint64_t)json_integer_value(count)));
    if (errors.most == 0)
        wb_htmlpen_raw(h, "<tr><td>None.</td></tr>\n");
    wb_htmlpen_raw(h, "</tbody></table>\n</section>\n");
    json_decref(errors.kinds);
    if (h->err == 0)
        h->err = err;
}

/* As the last sample has it. */
static void add_crawl(struct wb_call *call, struct wb_htmlpen *h)
{
    static const struct {
        const char *name;
        enum wb_dash_number number;
    } facts[] = {
        {"Requests", WB_DASH_CRAWL_REQUESTS},    {"Pages stored", WB_DASH_CRAWL_PAGES},
        {"Unchanged", WB_DASH_CRAWL_UNCHANGED},  {"Gone", WB_DASH_CRAWL_GONE},
        {"Errors", WB_DASH_CRAWL_ERRORS},        {"Queued URLs", WB_DASH_CRAWL_QUEUED},
        {"Sites at work", WB_DASH_CRAWL_ACTIVE}, {"Of these waiting", WB_DASH_CRAWL_WAITING},
    };
    struct wb_dash_now now;

    wb_htmlpen_raw(h, "<div class=\"two\">\n<section>\n<h2>Crawl</h2>\n<dl class=\"facts\" id=\"crawl\">\n");
    if (wb_dash_now(call->server->dash, &now) && now.sample.numbers[WB_DASH_CRAWLS] > 0)
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
            wb_htmlpen_fact(h, facts[i].name, wb_htmlpen_number((uint64_t)now.sample.numbers[facts[i].number]));
    else
        wb_htmlpen_raw(h, "<div><dt>None is running.</dt></div>\n");
    wb_htmlpen_raw(h, "</dl>\n</section>\n");
    add_errors(call, h);
    wb_htmlpen_raw(h, "</div>\n");
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/*
 * The forms do nothing without dash.js, which sends the token; so they are hidden until it shows them. What was done
 * before is beside them.
 */
static void add_orders(struct wb_htmlpen *h)
{
    wb_htmlpen_raw(
        h,
        "<section id=\"orders\" aria-labelledby=\"orders-title\">\n<h2 id=\"orders-title\">Operator</h2>\n"
        "<noscript><p class=\"note\">The buttons need JavaScript. <code>webbase control</code> and <code>webbase "
        "expunge</code> do the same.</p></noscript>\n"
        "<div id=\"order-area\" hidden>\n"
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
        "<p id=\"order-answer\" role=\"status\"></p>\n</div>\n"
        "<div data-live=\"5\" data-part=\"live-orders\" data-token data-from=\"/dash/orders?limit=5\"></div>\n"
        "<p><a href=\"/dash/orders\">All that operators did</a> (asks for the token)</p>\n</section>\n");
}

static void show(struct wb_call *call, const struct wb_answer_stat *stat, const struct wb_dash_state *state,
                 const struct wb_dash_past *past, const struct wb_dash_past_choice *choice)
{
    struct wb_htmlpen h;

    wb_page_begin(call, &h,
                  &(struct wb_page_frame){
                      .title = WB_SLICE_LIT("Dashboard"), .place = WB_PAGE_DASH, .script = "dash.js", .charts = true});
    wb_htmlpen_raw(&h, "<h1>Dashboard</h1>\n");
    add_state(&h, state);
    if (state->empty)
        add_beginning(call, &h);
    add_tiles(call, &h, stat);
    wb_page_charts(&h, past, choice);
    add_crawl(call, &h);
    add_sites(call, &h);
    add_fetches(&h);
    add_cycle(&h, stat);
    wb_backups_section(&h, &stat->backups);
    add_nodes(call, &h, stat);
    add_lists(call, &h);
    add_orders(&h);
    wb_page_end(call, &h);
}

void wb_handle_dash_page(struct wb_call *call)
{
    const struct wb_dash_past_choice *choice;
    struct wb_dash_state state = {.until_ms = 0};
    struct wb_dash_past past = {.count = 0};
    struct wb_dash_past_range range;
    struct wb_answer_stat stat = {.unmerged = 0};

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_dash_past_params(call, STEPS_WANTED, &range, &choice);
    if (err == 0)
        err = wb_dash_past_read(call->server->dash, &range, &past);
    if (err == 0)
        err = wb_answer_stat_read(call->server->options->dir, call->worker->store, &stat);
    if (err == 0)
        err = wb_dash_state_read(call->server, &stat, &state);
    if (err == 0)
        show(call, &stat, &state, &past, choice);
    else
        wb_call_fail(call, err);
    wb_answer_stat_release(&stat);
    wb_dash_state_release(&state);
    wb_dash_past_release(&past);
}
