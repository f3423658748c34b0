/*
 * httpd.c - the door, and the loop: accepts connections, collects what workers have done, and watches the time.
 *
 * The life of a server: new (it listens) -> run (it accepts) -> stopping (requests under way finish) -> free.
 */
#include "httpd/httpd.h"
#include "base/mem.h"
#include "httpd/httpd_conn.h"
#include "os/clock.h"
#include "os/hangup.h"
#include "os/limits.h"
#include "os/stop.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ACCEPTS_AT_ONCE 64
#define ACCEPT_PAUSE_MS 50
#define TICK_MS 50 /* how often we look whether a signal has arrived */
#define WORKERS_PER_PROCESSOR 4u

/* ---- what a server is made of ------------------------------------------------------------------- */

static void set_limits(struct wb_httpd_limits *limits)
{
    uint64_t files = wb_limits_files();

#define WB_HTTPD_DEFAULT(name, value) limits->name = limits->name ? limits->name : (value)
    WB_HTTPD_DEFAULT(connections, 10000);
    WB_HTTPD_DEFAULT(connections_per_peer, 2000);
    WB_HTTPD_DEFAULT(head_bytes, 64 << 10);
    WB_HTTPD_DEFAULT(fields, 100);
    WB_HTTPD_DEFAULT(queue, 1000);
    WB_HTTPD_DEFAULT(held_bytes, 256 << 20);
    WB_HTTPD_DEFAULT(body_bytes, 256 << 20);
    WB_HTTPD_DEFAULT(head_ms, 10 * 1000);
    WB_HTTPD_DEFAULT(body_ms, 30 * 1000);
    WB_HTTPD_DEFAULT(idle_ms, 60 * 1000);
    WB_HTTPD_DEFAULT(stall_ms, 300 * 1000);
    WB_HTTPD_DEFAULT(stop_ms, 5 * 1000);
    WB_HTTPD_DEFAULT(turn_ms, 10 * 1000);
#undef WB_HTTPD_DEFAULT
    /* A quarter of the files that the process may open is left for the handlers. */
    if (files && limits->connections > files / 4 * 3)
        limits->connections = (size_t)(files / 4 * 3);
}

static void on_accept(evutil_socket_t fd, short what, void *context);
static void on_told(evutil_socket_t fd, short what, void *context);
static void on_tick(evutil_socket_t fd, short what, void *context);

static int open_loop(struct wb_httpd *httpd)
{
    httpd->told_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (httpd->told_fd < 0)
        return wb_fail_errno("cannot create an eventfd");
    httpd->base = event_base_new();
    if (!httpd->base)
        return wb_fail(WB_E_IO, "cannot create an event loop");
    for (unsigned i = 0; i < WB_HTTPD_LISTENERS; i++)
        event_assign(&httpd->accept_events[i], httpd->base, httpd->listeners[i].fd, EV_READ | EV_PERSIST, on_accept,
                     httpd);
    event_assign(&httpd->told_event, httpd->base, httpd->told_fd, EV_READ | EV_PERSIST, on_told, httpd);
    event_assign(&httpd->tick_event, httpd->base, -1, 0, on_tick, httpd);
    return 0;
}

int wb_httpd_new(const struct wb_httpd_options *options, struct wb_httpd **httpd_out)
{
    struct wb_httpd *httpd = wb_alloc_zero(1, sizeof *httpd);
    int err;

    *httpd_out = NULL;
    if (!httpd)
        return WB_E_NOMEM;
    WB_CHECK(options->app.admit && options->app.handle);
    wb_limits_prepare(); /* every client needs a socket, and must not end us by closing it */
    httpd->app = options->app;
    httpd->limits = options->limits;
    httpd->workers = options->workers ? options->workers : WORKERS_PER_PROCESSOR * wb_limits_processors();
    httpd->listeners[0].fd = httpd->listeners[1].fd = httpd->told_fd = -1;
    set_limits(&httpd->limits);
    wb_httpd_peers_init(&httpd->peers);
    httpd->scratch = wb_alloc(WB_HTTPD_SCRATCH_BYTES);
    err = httpd->scratch ? 0 : WB_E_NOMEM;
    httpd->certificate = options->certificate;
    httpd->key = options->key ? options->key : options->certificate;
    httpd->hangups_seen = wb_hangups();
    if (err == 0 && httpd->certificate)
        err = wb_httpd_tls_new(httpd->certificate, httpd->key, &httpd->tls);
    if (err == 0)
        err = wb_httpd_listen(options->listen, &httpd->listeners[0]);
    if (err == 0 && options->listen_also.len)
        err = wb_httpd_listen(options->listen_also, &httpd->listeners[1]);
    if (err == 0)
        err = open_loop(httpd);
    if (err < 0) {
        wb_httpd_free(httpd);
        return err;
    }
    *httpd_out = httpd;
    return 0;
}

static void close_listeners(struct wb_httpd *httpd)
{
    for (unsigned i = 0; i < WB_HTTPD_LISTENERS; i++) {
        if (httpd->listeners[i].fd >= 0)
            close(httpd->listeners[i].fd);
        httpd->listeners[i].fd = -1;
    }
}

void wb_httpd_free(struct wb_httpd *httpd)
{
    if (!httpd)
        return;
    WB_CHECK(httpd->count == 0 && !httpd->crew.threads);
    close_listeners(httpd);
    if (httpd->told_fd >= 0)
        close(httpd->told_fd);
    if (httpd->base)
        event_base_free(httpd->base);
    SSL_CTX_free(httpd->tls);
    wb_httpd_peers_release(&httpd->peers);
    wb_heap_release(&httpd->deadlines);
    wb_free(httpd->scratch);
    wb_free(httpd);
}

const char *wb_httpd_address(const struct wb_httpd *httpd)
{
    return httpd->listeners[0].text;
}

const char *wb_httpd_also_address(const struct wb_httpd *httpd)
{
    return httpd->listeners[1].text[0] ? httpd->listeners[1].text : NULL;
}

bool wb_httpd_is_loopback(const struct wb_httpd *httpd)
{
    return httpd->listeners[0].loopback && (httpd->listeners[1].loopback || !wb_httpd_also_address(httpd));
}

bool wb_httpd_has_address(const struct wb_httpd *httpd, struct wb_slice host)
{
    return wb_httpd_listens_on(&httpd->listeners[0], host);
}

bool wb_httpd_also_has_address(const struct wb_httpd *httpd, struct wb_slice host)
{
    return wb_httpd_also_address(httpd) && wb_httpd_listens_on(&httpd->listeners[1], host);
}

/* ---- from other threads ------------------------------------------------------------------------------ */

static void tell_loop(struct wb_httpd *httpd)
{
    uint64_t one = 1;

    (void)!write(httpd->told_fd, &one, sizeof one);
}

void wb_httpd_stop(struct wb_httpd *httpd)
{
    httpd->stop = true;
    tell_loop(httpd);
}

void wb_http_wake(struct wb_httpd *httpd)
{
    httpd->wakes++;
    tell_loop(httpd);
}

void wb_httpd_rest(struct wb_httpd *httpd)
{
    wb_httpd_crew_rest(&httpd->crew);
}

void wb_httpd_stat(struct wb_httpd *httpd, struct wb_httpd_stat *stat_out)
{
    *stat_out = (struct wb_httpd_stat){
        .connections = httpd->connections,
        .accepted = httpd->accepted,
        .refused = httpd->refused,
        .requests = httpd->requests,
        .sources = httpd->sources,
        .waiting = httpd->crew.waiting[WB_JOB_QUICK] + httpd->crew.waiting[WB_JOB_SLOW],
    };
}

/* ---- the loop -------------------------------------------------------------------------------------------- */

static int begin_accepting(struct wb_httpd *httpd)
{
    int result = 0;

    for (unsigned i = 0; i < WB_HTTPD_LISTENERS && result == 0; i++)
        if (httpd->listeners[i].fd >= 0)
            result = event_add(&httpd->accept_events[i], NULL);
    return result;
}

static void stop_accepting(struct wb_httpd *httpd)
{
    for (unsigned i = 0; i < WB_HTTPD_LISTENERS; i++)
        if (httpd->listeners[i].fd >= 0)
            event_del(&httpd->accept_events[i]);
}

/* Accepts several connections at once, so that many clients do not wait for each other. */
static void on_accept(evutil_socket_t fd, short what, void *context)
{
    struct wb_httpd *httpd = context;

    (void)what;
    for (unsigned i = 0; i < ACCEPTS_AT_ONCE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof address;
        int got = accept4(fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (got >= 0) {
            wb_httpd_conn_accept(httpd, got, &address, fd == httpd->listeners[1].fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            stop_accepting(httpd); /* otherwise the loop would spin until a socket is closed */
            httpd->accept_at_ms = wb_httpd_now_ms() + ACCEPT_PAUSE_MS;
        }
        break;
    }
    wb_httpd_conn_reap(httpd);
}

/* Accepts nothing more, and closes what nobody would miss. */
static void begin_stop(struct wb_httpd *httpd)
{
    httpd->stop_at_ms = wb_httpd_now_ms() + httpd->limits.stop_ms;
    stop_accepting(httpd);
    httpd->accept_at_ms = 0;
    close_listeners(httpd);
    for (struct wb_list_node *node = httpd->all.first, *next; node; node = next) {
        struct wb_httpd_conn *c = WB_CONTAINER_OF(node, struct wb_httpd_conn, in_all);
        next = node->next;
        if (c->state == WB_CONN_HANDSHAKE || c->state == WB_CONN_HEAD || c->state == WB_CONN_LINGER || c->is_later)
            wb_httpd_conn_cut(c, false);
        else if (c->state == WB_CONN_HOLD)
            wb_httpd_exchange_release(c);
    }
}

/* Cuts what did not finish in time. */
static void end_stop(struct wb_httpd *httpd)
{
    for (struct wb_list_node *node = httpd->all.first, *next; node; node = next) {
        struct wb_httpd_conn *c = WB_CONTAINER_OF(node, struct wb_httpd_conn, in_all);
        next = node->next;
        wb_httpd_conn_cut(c, false);
    }
}

/* Looks whether the server is to stop, or has stopped. Called at the end of each callback that can change that. */
static void check_stop(struct wb_httpd *httpd)
{
    if (httpd->stop_at_ms == 0 && (httpd->stop || wb_stop_requested()))
        begin_stop(httpd);
    if (httpd->stop_at_ms && wb_httpd_now_ms() >= httpd->stop_at_ms)
        end_stop(httpd);
    wb_httpd_conn_reap(httpd);
    if (httpd->stop_at_ms && httpd->count == 0)
        event_base_loopbreak(httpd->base);
}

static void on_told(evutil_socket_t fd, short what, void *context)
{
    struct wb_httpd *httpd = context;
    struct wb_list_node *node;
    uint64_t count;

    (void)what;
    (void)!read(fd, &count, sizeof count); /* before collecting, so that nothing is overlooked */
    struct wb_list done = wb_httpd_crew_collect(&httpd->crew);
    while ((node = wb_list_pop(&done))) {
        struct wb_httpd_job *job = WB_CONTAINER_OF(node, struct wb_httpd_job, node);
        wb_httpd_exchange_done(WB_CONTAINER_OF(job, struct wb_httpd_conn, job));
    }
    unsigned wakes = httpd->wakes;
    if (wakes != httpd->wakes_seen) {
        httpd->wakes_seen = wakes;
        wb_httpd_source_wake_all(httpd);
    }
    check_stop(httpd);
}

static void run_deadlines(struct wb_httpd *httpd, int64_t now)
{
    struct wb_heap_node *first;

    while ((first = wb_heap_first(&httpd->deadlines)) && first->key <= now) {
        struct wb_httpd_conn *c = WB_CONTAINER_OF(first, struct wb_httpd_conn, node);
        wb_heap_remove(first);
        if (c->deadline_ms > now) {
            wb_httpd_conn_set_deadline(c, c->deadline_ms); /* it was moved */
            continue;
        }
        c->deadline_ms = WB_HTTPD_NEVER;
        wb_httpd_conn_on_deadline(c);
        wb_httpd_exchange_advance(c);
    }
}

/* Somebody has put a new certificate in the place of the old one. */
static void read_certificate(struct wb_httpd *httpd)
{
    SSL_CTX *fresh;

    httpd->hangups_seen = wb_hangups();
    if (!httpd->certificate)
        return;
    int err = wb_httpd_tls_new(httpd->certificate, httpd->key, &fresh);
    if (err == 0) {
        SSL_CTX_free(httpd->tls);
        httpd->tls = fresh;
    }
    if (httpd->app.certified)
        httpd->app.certified(httpd->app.context, err);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct wb_httpd *httpd = context;
    int64_t now = wb_httpd_now_ms();

    (void)fd;
    (void)what;
    httpd->tick_at_ms = 0; /* this function sets the timer itself */
    run_deadlines(httpd, now);
    if (wb_hangups() != httpd->hangups_seen)
        read_certificate(httpd);
    if (httpd->accept_at_ms && now >= httpd->accept_at_ms) {
        httpd->accept_at_ms = 0;
        (void)begin_accepting(httpd);
    }
    check_stop(httpd);
    const struct wb_heap_node *first = wb_heap_first(&httpd->deadlines);
    int64_t wait_ms = first && first->key < now + TICK_MS ? first->key - now : TICK_MS;
    struct timeval tv = {0, wait_ms > 0 ? wait_ms * 1000 : 0};
    httpd->tick_at_ms = now + wait_ms;
    event_add(&httpd->tick_event, &tv);
}

int wb_httpd_run(struct wb_httpd *httpd)
{
    struct timeval at_once = {0, 0};

    WB_CHECK(httpd->listeners[0].fd >= 0);
    int err = wb_httpd_crew_start(&httpd->crew, &httpd->app, httpd->told_fd, httpd->workers, httpd->limits.queue);
    if (err < 0)
        return err;
    if (begin_accepting(httpd) < 0 || event_add(&httpd->told_event, NULL) < 0 ||
        event_add(&httpd->tick_event, &at_once) < 0 || event_base_dispatch(httpd->base) < 0)
        err = wb_fail(WB_E_IO, "the event loop of %s failed", httpd->listeners[0].text);
    event_del(&httpd->tick_event);
    event_del(&httpd->told_event);
    wb_httpd_crew_stop(&httpd->crew);
    return err;
}
