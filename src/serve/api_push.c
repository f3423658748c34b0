/*
 * api_push.c - POST /api/push: providers announce pages that are new, changed or gone, or send whole pages.
 *
 *   {"accepted":3,"changed":2,"gone":0,"pages":1,"stored":1,"unchanged":0,"barred":0}
 *
 * Everything in a request is read and checked before anything is done, so a refused request has changed nothing. What
 * a push looks like is the question of cycle/pushlist.h; whose pages it may name is decided here.
 *
 * Each token has a bucket of requests, which fills again as time passes. The loop of httpd looks at it before the body
 * of a request is read. No other thread does, so it has no lock.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/cycle.h"
#include "os/clock.h"
#include "serve/orders.h"
#include "serve/server.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ITEMS_MAX = 10000, /* URLs and pages in one request; IndexNow allows as many */
    REQUESTS_PER_MINUTE = 600,
    PROVIDER_MAX = 300, /* bytes of a provider's name in a head */
};

#define MINUTE_NS (60ll * 1000 * 1000 * 1000)

/* ---- how often ----------------------------------------------------------------------------------- */

struct push_bucket {
    double requests; /* that may be made at once */
    int64_t at_ns;   /* when that was so */
};

#define PUSH_GATE_MAGIC 0x57425047u

struct wb_push_gate {
    uint32_t magic;   /* PUSH_GATE_MAGIC from new to free */
    bool used;
    pthread_t thread; /* that has used it first: the loop of httpd */
    size_t count;
    struct push_bucket buckets[]; /* of the operator, then of each provider */
};

int wb_push_gate_new(size_t provider_count, struct wb_push_gate **gate_out)
{
    struct wb_push_gate *gate = wb_alloc_zero(1, sizeof *gate + (provider_count + 1) * sizeof *gate->buckets);

    *gate_out = gate;
    if (!gate)
        return WB_E_NOMEM;
    gate->magic = PUSH_GATE_MAGIC;
    gate->count = provider_count + 1;
    for (size_t i = 0; i < gate->count; i++)
        gate->buckets[i] = (struct push_bucket){REQUESTS_PER_MINUTE, wb_clock_mono_ns()};
    return 0;
}

void wb_push_gate_free(struct wb_push_gate *gate)
{
    if (!gate)
        return;
    WB_CHECK(gate->magic == PUSH_GATE_MAGIC);
    gate->magic = 0;
    wb_free(gate);
}

/* It has no lock, so all calls come from one thread. */
static void check_thread(struct wb_push_gate *gate)
{
    if (!gate->used)
        gate->thread = pthread_self();
    gate->used = true;
    WB_CHECK(gate->magic == PUSH_GATE_MAGIC);
    WB_CHECK(pthread_equal(gate->thread, pthread_self()));
}

bool wb_push_gate_open(struct wb_server *server, const struct wb_http_request *head, struct wb_http_reply *reply)
{
    bool is_operator;
    const struct wb_serve_provider *provider = wb_access_provider(server, head, &is_operator);
    size_t number = is_operator || !provider ? 0 : 1 + (size_t)(provider - server->options->providers);

    WB_CHECK(number < server->push_gate->count);
    check_thread(server->push_gate);
    struct push_bucket *bucket = &server->push_gate->buckets[number];
    int64_t now_ns = wb_clock_mono_ns();
    WB_CHECK(now_ns >= bucket->at_ns);
    WB_CHECK(bucket->requests >= 0 && bucket->requests <= REQUESTS_PER_MINUTE);
    bucket->requests += (double)(now_ns - bucket->at_ns) * REQUESTS_PER_MINUTE / (double)MINUTE_NS;
    if (bucket->requests > REQUESTS_PER_MINUTE)
        bucket->requests = REQUESTS_PER_MINUTE;
    bucket->at_ns = now_ns;
    if (bucket->requests >= 1) {
        bucket->requests -= 1;
        return true;
    }
    wb_http_reply_error(reply, 429, "more than %d pushes a minute; send several pages with each", REQUESTS_PER_MINUTE);
    (void)wb_http_reply_field(reply, "Retry-After", WB_SLICE_LIT("1"));
    return false;
}

/* ---- whose pages --------------------------------------------------------------------------------- */

/* provider NULL: the operator, to whom all sites belong. A token that was given several times has several hosts. */
static bool owns(const struct wb_server *server, const struct wb_serve_provider *provider, struct wb_slice site)
{
    const struct wb_serve_options *o = server->options;

    for (size_t i = 0; provider && i < o->provider_count; i++)
        if (wb_slice_equal(o->providers[i].token, provider->token) && wb_push_covers(o->providers[i].host, site))
            return true;
    return provider == NULL;
}

/* False if the list names a page of somebody else, which is *foreign_out. */
static bool owns_all(const struct wb_server *server, const struct wb_serve_provider *provider,
                     const struct wb_push_list *list, struct wb_slice *foreign_out)
{
    for (size_t i = 0; i < list->urls.count; i++) {
        *foreign_out = list->urls.items[i].url;
        if (!owns(server, provider, list->urls.items[i].site))
            return false;
    }
    for (size_t i = 0; i < list->pages.count; i++) {
        *foreign_out = list->pages.items[i].url;
        if (!owns(server, provider, wb_key_site(list->pages.items[i].key)))
            return false;
    }
    return true;
}

/* ---- the call ------------------------------------------------------------------------------------ */

static void write_result(struct wb_call *call, const struct wb_push_list *list, const struct wb_push_stat *stat)
{
    struct wb_json j;

    WB_CHECK(stat->changed + stat->gone == list->urls.count);
    WB_CHECK(stat->pages == list->pages.count);
    wb_call_json(call, &j);
    wb_json_field_u64(&j, "accepted", list->urls.count + list->pages.count);
    wb_json_field_u64(&j, "changed", stat->changed);
    wb_json_field_u64(&j, "gone", stat->gone);
    wb_json_field_u64(&j, "pages", stat->pages);
    wb_json_field_u64(&j, "stored", stat->stored);
    wb_json_field_u64(&j, "unchanged", stat->unchanged);
    wb_json_field_u64(&j, "barred", stat->barred);
    wb_call_json_end(call, &j, 0);
}

static void refuse(struct wb_call *call, int err)
{
    wb_call_fail(call, err);
    if (err == WB_E_LIMIT)
        call->reply->status = 413;
}

/* What an operator announces by hand is an order like others; whole pages come from programs. */
static void note_order(struct wb_call *call, const struct wb_push_list *list, int err, const struct wb_push_stat *stat)
{
    WB_CHECK(list->urls.count > 0);
    char said[WB_ERROR_MESSAGE_MAX];
    struct wb_order order = {.time_ms = wb_clock_wall_ms(),
                             .what = WB_SLICE_LIT("push"),
                             .subject = list->urls.items[0].url,
                             .ok = err == 0};

    if (err < 0)
        snprintf(said, sizeof said, "%s", wb_error_message());
    else
        snprintf(said, sizeof said, "noted for the next cycle: %" PRIu64 " changed, %" PRIu64 " gone", stat->changed,
                 stat->gone);
    order.said = wb_slice_str(said);
    (void)wb_orders_note(call->server->options->dir, &order);
}

void wb_handle_push(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    char name[PROVIDER_MAX];
    bool is_operator;
    const struct wb_serve_provider *provider = wb_access_provider(call->server, call->request, &is_operator);
    struct wb_push_reading reading = {
        .name = "the push", .provider = name, .now_ms = wb_clock_wall_ms(), .strict = true, .items_max = ITEMS_MAX};
    struct wb_push_list list = {.refused = 0};
    struct wb_push_stat stat;
    struct wb_slice foreign;

    if (is_operator)
        provider = NULL;
    struct wb_slice words = provider ? provider->host : WB_SLICE_LIT("operator");
    snprintf(name, sizeof name, "%.*s", WB_SLICE_ARG(words));
    int err = wb_push_list_read(call->request->body, &reading, &list);
    if (err < 0)
        refuse(call, err);
    else if (!owns_all(call->server, provider, &list, &foreign))
        wb_http_reply_error(call->reply, 403, "%.*s is not a page of %s; nothing was done",
                            (int)(foreign.len > 200 ? 200 : foreign.len), foreign.ptr, name);
    else if ((err = wb_pusher_apply(call->server->pusher, &list, &stat)) < 0)
        wb_call_fail(call, err);
    else
        write_result(call, &list, &stat);
    if (is_operator && list.urls.count && !list.pages.count)
        note_order(call, &list, err, &stat);
    wb_push_list_release(&list);
}
