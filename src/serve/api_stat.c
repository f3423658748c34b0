/*
 * api_stat.c - the repository as a whole.
 *
 *   GET /api/stat        what `webbase stat --json` prints
 *   GET /api/snapshots   {"snapshots":[what `webbase snapshot list --json` prints]}
 *   GET /healthz         {"ok":true}; 503 if the repository cannot be read
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/server.h"

void wb_handle_stat(struct wb_call *call)
{
    struct wb_answer_stat stat;
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_answer_stat_read(call->server->options->dir, call->worker->store, &stat);
    if (err == 0) {
        wb_call_json(call, &j);
        wb_answer_stat(&j, &stat, false);
        wb_call_json_end(call, &j, 0);
    } else {
        wb_call_fail(call, err);
    }
    wb_answer_stat_release(&stat);
}

static int add_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct wb_json *j = context;

    wb_json_object(j);
    wb_answer_snapshot(j, snapshot);
    wb_json_object_end(j);
    return 0;
}

void wb_handle_snapshots(struct wb_call *call)
{
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    wb_call_json(call, &j);
    wb_json_key(&j, "snapshots");
    wb_json_array(&j);
    int err = wb_store_snapshot_each(call->worker->store, add_snapshot, &j);
    wb_json_array_end(&j);
    wb_call_json_end(call, &j, err);
}

void wb_handle_health(struct wb_call *call)
{
    struct wb_store_history history;
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_store_history(call->worker->store, &history); /* the cheapest question to the catalog */
    if (err < 0) {
        wb_http_reply_error(call->reply, 503, "the repository cannot be read: %s", wb_error_message());
        return;
    }
    wb_call_json(call, &j);
    wb_json_field_bool(&j, "ok", true);
    wb_call_json_end(call, &j, 0);
}
