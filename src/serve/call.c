/* call.c - what handlers need to answer a call: parameters, the searcher, JSON, errors. */
#include "base/check.h"
#include "base/error.h"
#include "os/clock.h"
#include "serve/server.h"

#include <inttypes.h>
#include <string.h>

#define RETRY_SECONDS "2"  /* what made the server busy passes by itself: an index is built, a transfer ends */
#define CROWD_SECONDS "60" /* what readers have left behind goes with time */

enum { LOOK_NS = 250 * 1000 * 1000 }; /* how often a new generation is looked for */

bool wb_call_is_fresh(const struct wb_call *call)
{
    return call->magic == WB_CALL_MAGIC && call->body == WB_CALL_NOTHING && !call->reply->source &&
           call->reply->body.len == 0 && call->worker->magic == WB_SERVE_WORKER_MAGIC &&
           pthread_equal(call->worker->thread, pthread_self());
}

void wb_call_type(struct wb_call *call, const char *type)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    if (wb_http_reply_field(call->reply, "Content-Type", wb_slice_str(type)) < 0)
        wb_call_fail(call, WB_E_NOMEM);
}

/* ---- errors -------------------------------------------------------------------------------------- */

static unsigned status_of(int err)
{
    WB_CHECK(err < 0);
    switch (err) {
    case WB_E_NOTFOUND:
        return 404;
    case WB_E_INVALID:
    case WB_E_PROTO:
    case WB_E_LIMIT:
        return 400;
    case WB_E_DENIED:
        return 403;
    case WB_E_CROWDED:
        return 429;
    case WB_E_BUSY:
    case WB_E_DOWN: /* a node, which may come back */
    case WB_E_NOMEM:
    case WB_E_STOPPED:
        return 503;
    default:
        return 500;
    }
}

void wb_call_fail(struct wb_call *call, int err)
{
    WB_CHECK(err < 0);
    const char *message = wb_error_message();
    unsigned status = status_of(err);

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    call->body = WB_CALL_ENDED;

    wb_route_fail(wb_route_find(call->request->path), call->request, call->reply, status,
                  message[0] ? message : wb_error_words(err));
    if (status == 503 || status == 429)
        (void)wb_http_reply_field(call->reply, "Retry-After",
                                  status == 503 ? WB_SLICE_LIT(RETRY_SECONDS) : WB_SLICE_LIT(CROWD_SECONDS));
}

/* ---- parameters ---------------------------------------------------------------------------------- */

struct wb_slice wb_call_param(struct wb_call *call, const char *name)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct wb_slice value = wb_http_param(call->request, name);

    return value.ptr || !call->form ? value : wb_http_form_value(call->form, name);
}

int wb_call_form(struct wb_call *call)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(!call->form);
    struct wb_slice type = wb_http_field(call->request, "Content-Type"), body = call->request->body;

    if (body.len == 0)
        return 0;
    if (wb_slice_starts_nocase(type, WB_SLICE_LIT("application/json")))
        return wb_fail(WB_E_INVALID, "the body is a form here (application/x-www-form-urlencoded), not JSON");
    return wb_http_form_read(body, &call->form);
}

int wb_call_required(struct wb_call *call, const char *name, struct wb_slice *value_out)
{
    *value_out = wb_call_param(call, name);
    return value_out->len ? 0 : wb_fail(WB_E_INVALID, "the parameter %s is missing", name);
}

int wb_call_number(struct wb_call *call, const char *name, uint64_t fallback, uint64_t max, uint64_t *value_out)
{
    WB_CHECK(fallback <= max);
    struct wb_slice text = wb_call_param(call, name);

    *value_out = fallback;
    if (!text.ptr)
        return 0;
    if (!wb_slice_to_u64(text, value_out))
        return wb_fail(WB_E_INVALID, "%s=%.*s is not a number from 0", name, WB_SLICE_ARG(text));
    if (*value_out > max)
        return wb_fail(WB_E_INVALID, "%s=%.*s is more than the largest number possible, %" PRIu64, name,
                       WB_SLICE_ARG(text), max);
    return 0;
}

int wb_call_flag(struct wb_call *call, const char *name, bool *value_out)
{
    struct wb_slice text = wb_call_param(call, name);

    *value_out = wb_slice_equal(text, WB_SLICE_LIT("1")) || wb_slice_equal(text, WB_SLICE_LIT("true"));
    if (!text.ptr || *value_out || wb_slice_equal(text, WB_SLICE_LIT("0")) ||
        wb_slice_equal(text, WB_SLICE_LIT("false")))
        return 0;
    return wb_fail(WB_E_INVALID, "%s=%.*s is neither 1 nor 0", name, WB_SLICE_ARG(text));
}

int wb_call_escape(struct wb_slice text, struct wb_buf *out)
{
    return wb_buf_append_escaped(out, text, "-_.~/:");
}

/* ---- the searcher -------------------------------------------------------------------------------- */

/* Generations only ascend. A thread that read an older number must not overwrite a newer one. */
static void raise_generation(struct wb_server *server, uint32_t generation)
{
    uint32_t known = atomic_load(&server->generation);

    while (known < generation && !atomic_compare_exchange_weak(&server->generation, &known, generation))
        continue;
}

/* One thread looks for a new generation now and then; the others see what it found. */
static int newest_generation(struct wb_server *server, uint32_t *generation_out)
{
    int64_t now = wb_clock_mono_ns(), looked = atomic_load(&server->looked_ns);
    struct wb_index_info info;

    if ((looked == 0 || now - looked > LOOK_NS) && atomic_compare_exchange_strong(&server->looked_ns, &looked, now)) {
        int err = wb_index_newest(server->options->dir, &info);
        if (err < 0)
            return err;
        raise_generation(server, info.generation);
    }
    *generation_out = atomic_load(&server->generation);
    return 0;
}

/* A generation was opened, so what is kept of those before it can go. */
static void give_up_older(struct wb_server *server, uint32_t generation)
{
    WB_CHECK(generation > 0);
    uint32_t opened = atomic_load(&server->opened);

    while (opened < generation)
        if (atomic_compare_exchange_weak(&server->opened, &opened, generation)) {
            wb_text_cache_forget(server->texts, generation);
            wb_httpd_rest(server->httpd);
            return;
        }
}

/*
 * If the new generation cannot be opened, the old one goes on answering. What is opened may be newer than what was last
 * looked up. The others are told at once, so that a client that has seen an answer of it never gets an older one.
 */
int wb_call_searcher(struct wb_call *call, struct wb_searcher **searcher_out)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->worker->magic == WB_SERVE_WORKER_MAGIC);
    struct wb_serve_worker *worker = call->worker;
    struct wb_searcher *fresh = NULL;
    uint32_t newest = 0;

    int err = newest_generation(call->server, &newest);
    if (worker->searcher && (err < 0 || newest == worker->generation)) {
        *searcher_out = worker->searcher;
        return 0;
    }
    if (err == 0)
        err = wb_searcher_open(call->server->options->dir, &fresh);
    if (err == WB_E_NOTFOUND) /* this is not about what was asked for, but a state that will pass: 503 */
        err = wb_fail(WB_E_BUSY, "there is no index yet; 'webbase index' or 'webbase serve --run' makes one");
    if (err == 0) {
        wb_searcher_close(worker->searcher);
        worker->searcher = fresh;
        wb_searcher_use_cache(fresh, call->server->texts);
        worker->generation = wb_index_info(wb_searcher_index(fresh))->generation;
        raise_generation(call->server, worker->generation);
        give_up_older(call->server, worker->generation);
    }
    *searcher_out = worker->searcher;
    return worker->searcher ? 0 : err;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

void wb_call_json(struct wb_call *call, struct wb_json *j)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->body == WB_CALL_NOTHING);
    wb_call_type(call, "application/json");
    call->body = WB_CALL_JSON;
    wb_json_init(j, &call->reply->body);
    wb_json_object(j);
}

void wb_call_json_end(struct wb_call *call, struct wb_json *j, int err)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->body == WB_CALL_JSON);
    WB_CHECK(err <= 0);
    if (err == 0) {
        wb_json_object_end(j);
        err = wb_json_line(j);
    }
    call->body = WB_CALL_ENDED;
    if (err < 0)
        wb_call_fail(call, err);
}
