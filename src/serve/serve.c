/* serve.c - starts the server and stops it again. */
#include "serve/serve.h"
#include "base/check.h"
#include "base/error.h"
#include "base/kept.h"
#include "os/clock.h"
#include "os/heaps.h"
#include "os/random.h"
#include "serve/dash.h"
#include "serve/delivery.h"
#include "serve/guesses.h"
#include "serve/orders.h"
#include "serve/replay_door.h"
#include "serve/runkeeper.h"
#include "serve/server.h"

#include <stdio.h>

enum { TEXTS_BYTES = 64 << 20, TEXTS_PART = 4 };

static int admit(void *context, const struct wb_http_request *head, uint64_t *body_max_out, struct wb_http_reply *reply)
{
    WB_CHECK(((const struct wb_server *)context)->magic == WB_SERVER_MAGIC);
    return head->also ? wb_replay_door_admit(context, head, body_max_out, reply)
                      : wb_route_admit(context, head, body_max_out, reply);
}

static bool is_slow(void *context, const struct wb_http_request *request)
{
    (void)context;
    return request->also || wb_route_is_slow(request);
}

static void handle(void *context, void *worker, const struct wb_http_request *request, struct wb_http_reply *reply)
{
    struct wb_call call = {
        .magic = WB_CALL_MAGIC, .server = context, .worker = worker, .request = request, .reply = reply};

    WB_CHECK(call.server->magic == WB_SERVER_MAGIC);
    WB_CHECK(call.worker->magic == WB_SERVE_WORKER_MAGIC);
    if (request->also)
        wb_replay_door_handle(&call);
    else
        wb_route_find(request->path)->handle(&call); /* there is one: the request was admitted */
    /* What it began, it has ended. */
    WB_CHECK(call.body != WB_CALL_JSON && call.body != WB_CALL_PAGE);
    WB_CHECK(!reply->source || reply->body.len == 0);
    wb_delivery_finish(&call);
    wb_http_form_free(call.form);
    call.magic = 0;
}

static void served(void *context, const struct wb_http_request *request, unsigned status, uint64_t bytes,
                   uint64_t microseconds)
{
    struct wb_server *server = context;

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    wb_metrics_count(server->metrics, request, status, bytes, microseconds);
}

static void certified(void *context, int err)
{
    const struct wb_server *server = context;
    const struct wb_serve_options *o = server->options;
    char message[WB_ERROR_MESSAGE_MAX + 64];

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    snprintf(message, sizeof message, err < 0 ? "%s; the certificate stays" : "%s is in use",
             err < 0 ? wb_error_message() : o->certificate);
    if (o->say)
        o->say(o->context, message);
}

static void say_ready(const struct wb_server *server)
{
    WB_CHECK(server->dash && server->pusher);
    WB_CHECK(server->token[0]); /* a client that is told may ask at once */
    const struct wb_serve_options *o = server->options;
    char url[256];

    snprintf(url, sizeof url, "%s://%s/", o->certificate ? "https" : "http", wb_httpd_address(server->httpd));
    if (o->ready)
        o->ready(o->context, url);
    if (server->door && o->replay_ready) {
        struct wb_slice name = wb_buf_slice(&server->door->name);
        snprintf(url, sizeof url, "%s://%.*s/", server->door->base.tls ? "https" : "http", WB_SLICE_ARG(name));
        o->replay_ready(o->context, url);
    }
}

int wb_serve_verify(const char *dir,
                    void (*found)(void *context, bool problem, const char *file, uint64_t offset,
                                  const char *message),
                    void *context)
{
    int err = wb_chronicle_verify(dir, found, context);

    return err < 0 ? err : wb_orders_verify(dir, found, context);
}

int wb_serve(const struct wb_serve_options *options)
{
    struct wb_server server = {.magic = WB_SERVER_MAGIC, .options = options, .began_ms = wb_clock_now_ms()};
    struct wb_httpd_options httpd = {.listen = options->listen,
                                     .listen_also = options->replay_listen,
                                     .certificate = options->certificate,
                                     .key = options->key,
                                     .workers = options->workers,
                                     .limits = options->limits,
                                     .app = {.context = &server,
                                             .worker_open = wb_serve_worker_open,
                                             .worker_close = wb_serve_worker_close,
                                             .admit = admit,
                                             .is_slow = is_slow,
                                             .handle = handle,
                                             .served = served,
                                             .certified = certified,
                                             .rest = wb_serve_worker_rest}};
    struct wb_runkeeper *runkeeper = NULL;
    uint64_t seed;

    uint64_t bound = options->memory_bytes ? options->memory_bytes : WB_SERVE_MEMORY_BYTES;
    size_t texts = bound / TEXTS_PART < TEXTS_BYTES ? (size_t)(bound / TEXTS_PART) : TEXTS_BYTES;

    wb_random_bytes(&seed, sizeof seed);
    wb_heaps_share();
    wb_kept_set_bound(bound);
    int err = wb_metrics_new(&server.metrics);
    if (err == 0)
        err = wb_watch_new(options->query_ms, &server.watch);
    if (err == 0)
        err = wb_push_gate_new(options->provider_count, &server.push_gate);
    if (err == 0)
        err = wb_guesses_new(&server.guesses);
    if (err == 0)
        err = wb_pusher_open(options->dir, &server.pusher);
    if (err == 0)
        err = wb_text_cache_new(texts, seed, &server.texts);
    if (err == 0)
        err = wb_stream_home_open(options->dir, &server.streams);
    if (err == 0)
        wb_stream_home_hasten(server.streams);
    if (err == 0)
        err = wb_httpd_new(&httpd, &server.httpd);
    if (err == 0 && options->replay_listen.len)
        err = wb_replay_door_open(&server, &server.door);
    if (err == 0)
        err = wb_access_init(&server);
    if (err == 0)
        err = wb_dash_start(&server, &server.dash);
    if (err == 0) {
        say_ready(&server);
        if (options->run)
            err = wb_runkeeper_new(options->run, options->say, options->context, &runkeeper);
    }
    if (err == 0)
        err = wb_httpd_run(server.httpd);
    wb_runkeeper_free(runkeeper);
    int finished = server.pusher ? wb_pusher_finish(server.pusher) : 0;
    if (err == 0)
        err = finished;
    wb_dash_stop(server.dash); /* it asks httpd */
    wb_httpd_free(server.httpd);
    wb_replay_door_close(server.door);
    wb_stream_home_close(server.streams);
    wb_pusher_close(server.pusher);
    wb_guesses_free(server.guesses);
    wb_push_gate_free(server.push_gate);
    wb_watch_free(server.watch);
    wb_text_cache_free(server.texts);
    wb_metrics_free(server.metrics);
    server.magic = 0;
    return err;
}
