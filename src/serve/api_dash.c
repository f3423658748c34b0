/*
 * api_dash.c - GET /api/dash?since=: what the dashboard shows, as JSON.
 *
 *   {"interval":1,"series":{"time":[1768435200000,...],"pages":[123,...],...},"crawls":[what `webbase control` reads],
 *    "stat":{what `webbase stat --json` prints},"state":{"text":"Crawling:
 * ...","until":null,"problem":null},"nodes":[...],"snapshots":[...],"streams":[...],"http":{...}}
 *
 * since: only samples after this time, in milliseconds since 1970. Unknown numbers are null.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/dash_state.h"

#include <math.h>

enum { SNAPSHOTS_SHOWN = 100 };

/* ---- samples ----------------------------------------------------------------------------------------------------- */

struct series {
    struct wb_dash_sample *samples;
    struct wb_buf mem;
};

static int keep_sample(void *context, const struct wb_dash_sample *sample)
{
    return wb_buf_append(context, sample, sizeof *sample);
}

static void add_number(struct wb_json *j, double number)
{
    if (isnan(number))
        wb_json_null(j);
    else if (number == floor(number) && number < 9e15)
        wb_json_i64(j, (int64_t)number);
    else
        wb_json_double(j, number);
}

static int add_series(struct wb_call *call, struct wb_json *j, int64_t since_ms)
{
    struct wb_buf copy = WB_BUF_INIT; /* so that the samples are locked for a moment only */
    int err = wb_dash_each(call->server->dash, since_ms, keep_sample, &copy);
    const struct wb_dash_sample *samples = (const void *)copy.ptr;
    size_t count = copy.len / sizeof *samples;

    wb_json_key(j, "series");
    wb_json_object(j);
    wb_json_key(j, "time");
    wb_json_array(j);
    for (size_t i = 0; i < count; i++)
        wb_json_i64(j, samples[i].time_ms);
    wb_json_array_end(j);
    for (size_t n = 0; n < WB_DASH_NUMBERS; n++) {
        wb_json_key(j, wb_dash_numbers[n].name);
        wb_json_array(j);
        for (size_t i = 0; i < count; i++)
            add_number(j, samples[i].numbers[n]);
        wb_json_array_end(j);
    }
    wb_json_object_end(j);
    wb_buf_release(&copy);
    return err;
}

/* Each line is an object already. */
static int add_crawls(struct wb_call *call, struct wb_json *j)
{
    struct wb_buf lines = WB_BUF_INIT;
    struct wb_slice rest, line;
    bool comma = false;

    int err = wb_dash_crawls(call->server->dash, &lines);
    wb_json_key(j, "crawls");
    wb_json_array(j);
    rest = wb_buf_slice(&lines);
    while (err == 0 && wb_slice_next_line(&rest, &line)) {
        err = comma ? wb_buf_append_char(j->buf, ',') : 0;
        if (err == 0)
            err = wb_buf_append_slice(j->buf, line);
        comma = true;
    }
    wb_json_array_end(j);
    wb_buf_release(&lines);
    return err;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct dash_snapshots {
    struct wb_json *j;
    size_t count;
};

static int add_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct dash_snapshots *list = context;

    if (list->count++ >= SNAPSHOTS_SHOWN)
        return 0; /* /api/snapshots has all; here it is said how many there are */
    wb_json_object(list->j);
    wb_answer_snapshot(list->j, snapshot);
    wb_json_object_end(list->j);
    return 0;
}

static int add_snapshots(struct wb_call *call, struct wb_json *j)
{
    struct dash_snapshots list = {.j = j};

    wb_json_key(j, "snapshots");
    wb_json_array(j);
    int err = wb_store_snapshot_each(call->worker->store, add_snapshot, &list);
    wb_json_array_end(j);
    wb_json_field_u64(j, "snapshot_count", list.count);
    return err;
}

static int add_node(void *context, const struct wb_store_node *node)
{
    struct wb_json *j = context;

    wb_json_object(j);
    wb_answer_node(j, node, false);
    wb_json_object_end(j);
    return 0;
}

static int add_nodes(struct wb_call *call, struct wb_json *j)
{
    wb_json_key(j, "nodes");
    wb_json_array(j);
    int err = wb_store_node_each(call->worker->store, add_node, j);
    wb_json_array_end(j);
    return err;
}

static int add_stream(void *context, const struct wb_stream_named *named)
{
    struct wb_json *j = context;

    wb_json_object(j);
    wb_json_field_str(j, "name", named->name);
    wb_json_field_u64(j, "snapshot", named->snapshot);
    wb_json_field_u64(j, "delivered", named->delivered);
    wb_json_field_bool(j, "finished", named->finished);
    wb_json_field_bool(j, "damaged", named->damaged);
    wb_json_field_time(j, "saved", named->saved_ms);
    wb_json_object_end(j);
    return 0;
}

static int add_streams(struct wb_call *call, struct wb_json *j)
{
    wb_json_key(j, "streams");
    wb_json_array(j);
    int err = wb_stream_named_each(call->server->streams, add_stream, j);
    wb_json_array_end(j);
    return err;
}

static int add_stat(struct wb_call *call, struct wb_json *j)
{
    struct wb_dash_state state = {.until_ms = 0};
    struct wb_answer_stat stat;
    int err = wb_answer_stat_read(call->server->options->dir, call->worker->store, &stat);

    if (err == 0) {
        wb_json_key(j, "stat");
        wb_json_object(j);
        wb_answer_stat(j, &stat, false);
        wb_json_object_end(j);
        err = wb_dash_state_read(call->server, &stat, &state);
    }
    if (err == 0) {
        wb_json_key(j, "state");
        wb_json_object(j);
        wb_json_field_slice(j, "text", wb_buf_slice(&state.text));
        wb_json_field_time(j, "until", state.until_ms);
        wb_json_field_text(j, "problem", wb_buf_slice(&state.problem));
        wb_json_object_end(j);
    }
    wb_dash_state_release(&state);
    wb_answer_stat_release(&stat);
    return err;
}

void wb_handle_dash_data(struct wb_call *call)
{
    struct wb_json j;
    uint64_t since;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_call_number(call, "since", 0, INT64_MAX, &since);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    wb_call_json(call, &j);
    wb_json_field_u64(&j, "interval", WB_DASH_INTERVAL_MS / 1000);
    wb_json_field_time(&j, "began", call->server->began_ms);
    err = add_series(call, &j, (int64_t)since);
    if (err == 0)
        err = add_crawls(call, &j);
    if (err == 0)
        err = add_stat(call, &j);
    if (err == 0)
        err = add_nodes(call, &j);
    if (err == 0)
        err = add_snapshots(call, &j);
    if (err == 0)
        err = add_streams(call, &j);
    (void)wb_http_reply_field(call->reply, "Cache-Control", WB_SLICE_LIT("no-store"));
    wb_call_json_end(call, &j, err);
}
