/*
 * api_watch.c - what people watch, as JSON.
 *
 *   GET /api/sites?q=&state=&sort=&order=&limit=&offset=    {"total":12,"states":{...},"sites":[{"site":...},...]}
 *   GET /api/fetches?q=&site=&status=&error=&after=&limit=  {"newest":77,"fetches":[{"number":77,...},...]}   token
 *   GET /api/orders?limit=                                  {"orders":[{"time":...,"what":"pause",...},...]}  token
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/orders.h"
#include "serve/watch.h"

enum { ORDERS = 100, ORDERS_MAX = 1000 };

static void no_store(struct wb_call *call)
{
    (void)wb_http_reply_field(call->reply, "Cache-Control", WB_SLICE_LIT("no-store"));
}

/* ---- sites ------------------------------------------------------------------------------------------------------- */

static void add_site(struct wb_json *j, const struct wb_watch_site *site)
{
    const struct wb_site_row *row = &site->row;

    wb_json_object(j);
    wb_json_field_slice(j, "site", row->name);
    wb_json_field_str(j, "state", wb_watch_state_word(row->state));
    wb_json_field_text(j, "why", site->why);
    wb_json_field_time(j, "next", row->state == WB_SITE_WAITING ? row->next_ms : 0);
    wb_json_key(j, "queued");
    if (site->queued == WB_RECENT_UNKNOWN)
        wb_json_null(j);
    else
        wb_json_u64(j, site->queued);
    wb_json_field_i64(j, "pages", row->pages);
    wb_json_field_u64(j, "known", site->known);
    wb_json_field_u64(j, "fetched", site->fetched);
    wb_json_field_u64(j, "requests", site->requests);
    wb_json_field_u64(j, "errors", site->errors);
    wb_json_field_i64(j, "failures", row->attempts);
    wb_json_field_u64(j, "visits", row->visit);
    wb_json_field_time(j, "asked", site->asked_ms);
    wb_json_field_text(j, "class", row->class_name);
    wb_json_object_end(j);
}

static void answer_sites(struct wb_call *call, const struct wb_watch_sites *sites)
{
    struct wb_json j;

    wb_call_json(call, &j);
    wb_json_field_u64(&j, "total", sites->total);
    wb_json_key(&j, "states");
    wb_json_object(&j);
    for (enum wb_site_state state = WB_SITE_UNRESOLVED; state <= WB_SITE_REFUSED; state++)
        wb_json_field_u64(&j, wb_watch_state_word(state), sites->states[state]);
    wb_json_object_end(&j);
    wb_json_key(&j, "sites");
    wb_json_array(&j);
    for (size_t i = 0; i < sites->count; i++)
        add_site(&j, &sites->items[i]);
    wb_json_array_end(&j);
    no_store(call);
    wb_call_json_end(call, &j, 0);
}

void wb_handle_sites(struct wb_call *call)
{
    struct wb_watch_sites sites = {.count = 0};
    struct wb_watch_search search;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_watch_search_read(call, &search);
    if (err == 0)
        err = wb_watch_sites_read(call->server, &search, &sites);
    if (err == 0)
        answer_sites(call, &sites);
    else
        wb_call_fail(call, err);
    wb_watch_sites_release(&sites);
}

/* ---- fetches ----------------------------------------------------------------------------------------------------- */

static int add_fetch(void *context, const struct wb_recent_fetch *fetch)
{
    struct wb_json *j = context;

    wb_json_object(j);
    wb_json_field_u64(j, "number", fetch->number);
    wb_json_field_time(j, "time", fetch->time_ms);
    wb_json_field_slice(j, "url", fetch->url);
    wb_json_field_bool(j, "cut", fetch->cut);
    wb_json_field_u64(j, "status", fetch->status);
    wb_json_field_slice(j, "result", fetch->result);
    wb_json_field_text(j, "reason", fetch->reason);
    wb_json_field_u64(j, "bytes", fetch->bytes);
    wb_json_field_u64(j, "ms", fetch->took_ms);
    wb_json_object_end(j);
    return j->err;
}

void wb_handle_fetches(struct wb_call *call)
{
    struct wb_watch_filter filter;
    uint64_t newest;
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_watch_filter_read(call, &filter);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    wb_call_json(call, &j);
    wb_json_key(&j, "fetches");
    wb_json_array(&j);
    err = wb_watch_fetches_read(call->server, &filter, add_fetch, &j, &newest);
    wb_json_array_end(&j);
    wb_json_field_u64(&j, "newest", newest);
    no_store(call);
    wb_call_json_end(call, &j, err);
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static int add_order(void *context, const struct wb_order *order)
{
    struct wb_json *j = context;

    wb_json_object(j);
    wb_json_field_time(j, "time", order->time_ms);
    wb_json_field_slice(j, "what", order->what);
    wb_json_field_text(j, "subject", order->subject);
    wb_json_field_bool(j, "ok", order->ok);
    wb_json_field_slice(j, "said", order->said);
    wb_json_object_end(j);
    return j->err;
}

void wb_handle_orders(struct wb_call *call)
{
    struct wb_json j;
    uint64_t limit;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_call_number(call, "limit", ORDERS, ORDERS_MAX, &limit);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    wb_call_json(call, &j);
    wb_json_key(&j, "orders");
    wb_json_array(&j);
    err = wb_orders_read(call->server->options->dir, (size_t)limit, add_order, &j);
    wb_json_array_end(&j);
    no_store(call);
    wb_call_json_end(call, &j, err);
}
