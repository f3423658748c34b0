/*
 * metrics.c - GET /metrics: what a Prometheus server collects. Counters of requests are kept here; the other numbers
 * are asked for when somebody looks.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/kept.h"
#include "base/mem.h"
#include "os/clock.h"
#include "serve/backups.h"
#include "serve/server.h"

#include <inttypes.h>

enum { ROUTES_MAX = 64, CLASSES = 6 };

/* Upper bounds of the histogram, in microseconds. */
static const uint64_t bounds[] = {500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000, 5000000};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

struct route_count {
    _Atomic uint64_t requests[CLASSES]; /* by the first digit of the status */
    _Atomic uint64_t bytes, microseconds;
    _Atomic uint64_t within[BOUNDS + 1];
};

#define METRICS_MAGIC 0x57424d54u

struct wb_metrics {
    uint32_t magic; /* METRICS_MAGIC from new to free */
    struct route_count routes[ROUTES_MAX]; /* the last one: no route */
};

int wb_metrics_new(struct wb_metrics **metrics_out)
{
    WB_CHECK(wb_route_count() < ROUTES_MAX); /* the last place is for requests without a route */
    *metrics_out = wb_alloc_zero(1, sizeof **metrics_out);
    if (!*metrics_out)
        return WB_E_NOMEM;
    (*metrics_out)->magic = METRICS_MAGIC;
    return 0;
}

void wb_metrics_free(struct wb_metrics *metrics)
{
    if (!metrics)
        return;
    WB_CHECK(metrics->magic == METRICS_MAGIC);
    metrics->magic = 0;
    wb_free(metrics);
}

void wb_metrics_count(struct wb_metrics *metrics, const struct wb_http_request *request, unsigned status,
                      uint64_t bytes, uint64_t microseconds)
{
    WB_CHECK(metrics->magic == METRICS_MAGIC);
    size_t route = request && !request->also ? wb_route_number(request->path) : SIZE_MAX;
    struct route_count *c = &metrics->routes[route < ROUTES_MAX ? route : ROUTES_MAX - 1];
    size_t i = 0;

    while (i < BOUNDS && microseconds > bounds[i])
        i++;
    atomic_fetch_add_explicit(&c->requests[status / 100 < CLASSES ? status / 100 : 0], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->microseconds, microseconds, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->within[i], 1, memory_order_relaxed);
}

void wb_metrics_sum(const struct wb_metrics *metrics, uint64_t *requests_out, uint64_t *failed_out)
{
    WB_CHECK(metrics->magic == METRICS_MAGIC);
    *requests_out = *failed_out = 0;
    for (size_t r = 0; r < ROUTES_MAX; r++)
        for (size_t i = 0; i < CLASSES; i++) {
            uint64_t count = atomic_load_explicit(&metrics->routes[r].requests[i], memory_order_relaxed);
            *requests_out += count;
            *failed_out += i == 5 ? count : 0;
        }
}

/* ---- the text ------------------------------------------------------------------------------------ */

static int add_family(struct wb_buf *out, const char *name, const char *type, const char *help)
{
    return wb_buf_printf(out, "# HELP webbase_%s %s\n# TYPE webbase_%s %s\n", name, help, name, type);
}

static int add_gauge(struct wb_buf *out, const char *name, const char *help, uint64_t value)
{
    int err = add_family(out, name, "gauge", help);

    return err < 0 ? err : wb_buf_printf(out, "webbase_%s %" PRIu64 "\n", name, value);
}

static uint64_t all_requests(const struct route_count *c)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < CLASSES; i++)
        sum += c->requests[i];
    return sum;
}

static int add_requests(struct wb_buf *out, struct wb_metrics *m)
{
    int err = add_family(out, "http_requests_total", "counter", "Requests by path and class of status.");

    for (size_t r = 0; r < ROUTES_MAX; r++)
        for (size_t i = 0; i < CLASSES && err == 0; i++)
            if (m->routes[r].requests[i] || (i == 2 && r < wb_route_count()))
                err = wb_buf_printf(out, "webbase_http_requests_total{path=\"%s\",status=\"%zuxx\"} %" PRIu64 "\n",
                                    wb_route_path(r), i, m->routes[r].requests[i]);
    return err;
}

static int add_bytes(struct wb_buf *out, struct wb_metrics *m)
{
    int err = add_family(out, "http_response_bytes_total", "counter", "Bytes of replies by path.");

    for (size_t r = 0; r < ROUTES_MAX && err == 0; r++)
        if (all_requests(&m->routes[r]))
            err = wb_buf_printf(out, "webbase_http_response_bytes_total{path=\"%s\"} %" PRIu64 "\n", wb_route_path(r),
                                m->routes[r].bytes);
    return err;
}

static int add_durations(struct wb_buf *out, struct wb_metrics *m)
{
    static const char name[] = "webbase_http_request_duration_seconds";
    int err = add_family(out, "http_request_duration_seconds", "histogram", "Time until a reply was made.");

    for (size_t r = 0; r < ROUTES_MAX && err == 0; r++) {
        struct route_count *c = &m->routes[r];
        uint64_t sum = 0;
        if (all_requests(c) == 0)
            continue;
        for (size_t i = 0; i < BOUNDS && err == 0; i++) {
            sum += c->within[i];
            err = wb_buf_printf(out, "%s_bucket{path=\"%s\",le=\"%g\"} %" PRIu64 "\n", name, wb_route_path(r),
                                (double)bounds[i] / 1e6, sum);
        }
        sum += c->within[BOUNDS];
        if (err == 0)
            err = wb_buf_printf(out,
                                "%s_bucket{path=\"%s\",le=\"+Inf\"} %" PRIu64 "\n%s_sum{path=\"%s\"} %g\n"
                                "%s_count{path=\"%s\"} %" PRIu64 "\n",
                                name, wb_route_path(r), sum, name, wb_route_path(r), (double)c->microseconds / 1e6,
                                name, wb_route_path(r), sum);
    }
    return err;
}

static int add_repository(struct wb_buf *out, const struct wb_answer_stat *s)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } gauges[] = {
        {"pages", "Stored pages.", s->store.pages},
        {"versions", "Versions that can be read.", s->store.versions},
        {"sites", "Sites with a stored page.", s->store.sites},
        {"page_bytes", "Bodies of the latest versions, uncompressed.", s->store.bytes_pages},
        {"stored_bytes", "Everything in the repository's directory.", s->store.bytes_stored},
        {"dead_bytes", "What compaction could free.", s->store.bytes_dead},
        {"snapshots", "Snapshots that can be read.", s->store.snapshots},
        {"epoch", "Epoch of the last commit.", s->store.epoch},
        {"known_urls", "URLs that webdb knows.", s->webdb.pages},
        {"links", "Links that webdb knows.", s->webdb.links},
        {"unmerged_bytes", "Bytes of the journal that are not merged.", s->unmerged},
        {"generation", "The active generation.", s->index.generation},
        {"generation_pages", "Pages of the active generation.", s->index.pages},
        {"generation_bytes", "Bytes of the active generation.", s->index.bytes},
    };
    int err = 0;

    for (size_t i = 0; i < sizeof gauges / sizeof *gauges && err == 0; i++)
        err = add_gauge(out, gauges[i].name, gauges[i].help, gauges[i].value);
    return err;
}

/* What `webbase nodes` prints, except for directories, which do not concern readers. */
struct node_metrics WB_VEC_OF(struct wb_store_node);

static int keep_node(void *context, const struct wb_store_node *node)
{
    struct wb_store_node copy = *node;

    copy.dir = copy.why = NULL; /* they do not outlive this call */
    return wb_vec_push((struct node_metrics *)context, copy);
}

static int add_info(struct wb_buf *out, const struct node_metrics *nodes)
{
    int err = add_family(out, "node_info", "gauge", "1 for each node: its role and its organisation.");

    for (size_t i = 0; i < nodes->count && err == 0; i++)
        err = wb_buf_printf(out, "webbase_node_info{node=\"%" PRIu32 "\",role=\"%s\",organisation=\"%s\"} 1\n",
                            nodes->items[i].number, wb_store_node_role_word(nodes->items[i].role),
                            wb_organisation_word(nodes->items[i].organisation));
    return err;
}

static int add_states(struct wb_buf *out, const struct node_metrics *nodes)
{
    int err = add_family(out, "node_state", "gauge", "1 for the state that a node is in, 0 for the others.");

    for (size_t i = 0; i < nodes->count && err == 0; i++)
        for (unsigned state = 0; state <= WB_STORE_NODE_DOWN && err == 0; state++)
            err = wb_buf_printf(out, "webbase_node_state{node=\"%" PRIu32 "\",state=\"%s\"} %d\n",
                                nodes->items[i].number, wb_store_node_state_word((enum wb_store_node_state)state),
                                nodes->items[i].state == (enum wb_store_node_state)state);
    return err;
}

static int add_node_requests(struct wb_buf *out, const struct node_metrics *nodes)
{
    int err = add_family(out, "node_requests", "gauge", "Requests of all processes under way, by kind.");

    for (size_t i = 0; i < nodes->count && err == 0; i++) {
        const struct wb_store_node *n = &nodes->items[i];
        err = wb_buf_printf(out,
                            "webbase_node_requests{node=\"%" PRIu32 "\",kind=\"get\"} %" PRIu64
                            "\nwebbase_node_requests{node=\"%" PRIu32 "\",kind=\"put\"} %" PRIu64
                            "\nwebbase_node_requests{node=\"%" PRIu32 "\",kind=\"stream\"} %" PRIu64 "\n",
                            n->number, n->gets, n->number, n->puts, n->number, n->streams);
    }
    return err;
}

/* What a node has one number of. A node that is down has no sample of what only the node itself knows. */
static int add_numbers(struct wb_buf *out, const struct node_metrics *nodes)
{
    static const struct {
        const char *name, *help;
        size_t at; /* in struct wb_store_node */
        bool down; /* known even if the node is down */
    } gauges[] = {
        {"node_pages", "Latest versions of pages on a node.", offsetof(struct wb_store_node, pages), true},
        {"node_capacity_bytes", "Size of the file system of a node.", offsetof(struct wb_store_node, capacity), false},
        {"node_used_bytes", "What this repository uses on a node.", offsetof(struct wb_store_node, used), false},
        {"node_free_bytes", "What is free on a node.", offsetof(struct wb_store_node, free), false},
    };
    int err = 0;

    for (size_t g = 0; g < sizeof gauges / sizeof *gauges && err == 0; g++) {
        err = add_family(out, gauges[g].name, "gauge", gauges[g].help);
        for (size_t i = 0; i < nodes->count && err == 0; i++) {
            const struct wb_store_node *n = &nodes->items[i];
            if (n->state != WB_STORE_NODE_DOWN || gauges[g].down)
                err = wb_buf_printf(out, "webbase_%s{node=\"%" PRIu32 "\"} %" PRIu64 "\n", gauges[g].name, n->number,
                                    *(const uint64_t *)((const char *)n + gauges[g].at));
        }
    }
    return err;
}

static int add_nodes(struct wb_buf *out, struct wb_store *store)
{
    struct node_metrics nodes = {0};
    int err = wb_store_node_each(store, keep_node, &nodes);

    if (err == 0)
        err = add_info(out, &nodes);
    if (err == 0)
        err = add_states(out, &nodes);
    if (err == 0)
        err = add_numbers(out, &nodes);
    if (err == 0)
        err = add_node_requests(out, &nodes);
    wb_vec_release(&nodes);
    return err;
}

static int add_connections(struct wb_buf *out, struct wb_server *server)
{
    struct wb_httpd_stat s;

    wb_httpd_stat(server->httpd, &s);
    int err = add_gauge(out, "http_connections", "Open connections.", s.connections);
    if (err == 0)
        err = add_gauge(out, "http_streams", "Replies that are made piece by piece.", s.sources);
    if (err == 0)
        err = add_gauge(out, "http_waiting", "Requests that wait for a thread.", s.waiting);
    if (err == 0)
        err = add_family(out, "http_connections_refused_total", "counter", "Connections beyond the limits.");
    return err < 0 ? err : wb_buf_printf(out, "webbase_http_connections_refused_total %" PRIu64 "\n", s.refused);
}

/* What the caches of this process keep, and what they may keep. */
static int add_caches(struct wb_buf *out)
{
    int err = add_family(out, "cache_bytes", "gauge", "Memory that is kept of what could be read or made again.");

    for (enum wb_kept kind = 0; kind < WB_KEPT_COUNT && err == 0; kind++)
        err = wb_buf_printf(out, "webbase_cache_bytes{cache=\"%s\"} %" PRIu64 "\n", wb_kept_word(kind),
                            wb_kept_bytes(kind));
    return err < 0 ? err : add_gauge(out, "cache_limit_bytes", "How much all caches together may keep.",
                                     wb_kept_bound());
}

void wb_handle_metrics(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_buf *out = &call->reply->body;
    struct wb_answer_stat stat;

    wb_call_type(call, "text/plain; version=0.0.4; charset=utf-8");
    int err = wb_answer_stat_read(call->server->options->dir, call->worker->store, &stat);
    if (err == 0)
        err = add_repository(out, &stat);
    if (err == 0)
        err = wb_backups_metrics(&stat.backups, wb_clock_wall_ms(), out);
    if (err == 0)
        err = add_nodes(out, call->worker->store);
    if (err == 0)
        err = add_connections(out, call->server);
    if (err == 0)
        err = add_caches(out);
    if (err == 0)
        err = add_requests(out, call->server->metrics);
    if (err == 0)
        err = add_bytes(out, call->server->metrics);
    if (err == 0)
        err = add_durations(out, call->server->metrics);
    if (err < 0)
        wb_call_fail(call, err);
    wb_answer_stat_release(&stat);
}
