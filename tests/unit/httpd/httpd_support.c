/* httpd_support.c - a server in a thread, its app, and a client. */
#include "httpd_support.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 60000

/* ---- the app --------------------------------------------------------------------------------------- */

struct pieces {
    struct site *site;
    uint64_t count, bytes, made, seen;
    bool fails, waits;
    atomic_bool inside;
};

static int next_piece(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out)
{
    struct pieces *p = source;

    assert_non_null(worker);
    assert_false(atomic_exchange(&p->inside, true));
    int result = WB_HTTP_MORE;
    if (p->waits && p->seen == p->site->fed) {
        *wait_ms_out = 60000; /* the test wakes it */
        result = WB_HTTP_LATER;
    } else if (p->made == p->count) {
        result = p->fails ? WB_E_IO : WB_HTTP_END;
    } else {
        result = wb_buf_reserve(out, p->bytes) == 0 ? WB_HTTP_MORE : WB_E_NOMEM;
        if (result == WB_HTTP_MORE) {
            memset(out->ptr + out->len, (int)('a' + p->made % 26), p->bytes);
            out->len += p->bytes;
            p->made++;
            p->seen++;
            p->site->pieces++;
        }
    }
    p->inside = false;
    return result;
}

static void close_pieces(void *source)
{
    struct pieces *p = source;

    assert_false(atomic_exchange(&p->inside, true));
    p->site->sources_closed++;
    p->site->sources_open--;
    wb_free(p);
}

static const struct wb_http_source pieces_source = {next_piece, close_pieces};

static uint64_t number(const struct wb_http_request *request, const char *name)
{
    uint64_t value = 0;
    struct wb_slice text = wb_http_param(request, name);

    return text.ptr && wb_slice_to_u64(text, &value) ? value : 0;
}

static void make_source(struct site *site, const struct wb_http_request *request, struct wb_http_reply *reply)
{
    struct pieces *p = wb_alloc_zero(1, sizeof *p);

    if (!p) {
        wb_http_reply_error(reply, 503, "out of memory");
        return;
    }
    p->site = site;
    p->waits = wb_slice_equal(request->path, WB_SLICE_LIT("/later"));
    p->fails = wb_slice_equal(request->path, WB_SLICE_LIT("/fail"));
    p->count = p->waits ? 1000000 : number(request, "count");
    p->bytes = number(request, "bytes") ? number(request, "bytes") : 10;
    reply->source = &pieces_source;
    reply->source_context = p;
    site->sources_made++;
    site->sources_open++;
}

static void hold(struct site *site)
{
    pthread_mutex_lock(&site->lock);
    site->held++;
    pthread_cond_broadcast(&site->changed);
    while (site->released == 0)
        pthread_cond_wait(&site->changed, &site->lock);
    site->released--;
    site->held--;
    pthread_mutex_unlock(&site->lock);
}

static void answer_echo(const struct wb_http_request *request, struct wb_http_reply *reply)
{
    wb_buf_printf(&reply->body, "%.*s %.*s [", WB_SLICE_ARG(request->method_text), WB_SLICE_ARG(request->target));
    wb_buf_append_slice(&reply->body, request->body);
    wb_buf_append_str(&reply->body, "]\n");
}

static void answer_fields(const struct wb_http_request *request, struct wb_http_reply *reply)
{
    struct wb_slice field = wb_http_field(request, "x-test");

    for (size_t i = 0; i < request->param_count; i++)
        wb_buf_printf(&reply->body, "%.*s=%.*s;", WB_SLICE_ARG(request->params[i].name),
                      WB_SLICE_ARG(request->params[i].value));
    wb_buf_printf(&reply->body, "%.*s %.*s %d %d\n", WB_SLICE_ARG(field), WB_SLICE_ARG(request->peer),
                  request->loopback, request->tls);
    wb_http_reply_field(reply, "X-Echo", field.ptr ? field : WB_SLICE_LIT("none"));
    wb_http_reply_field(reply, "X-Inject", WB_SLICE_LIT("a\r\nEvil: yes"));
}

static bool is(const struct wb_http_request *request, const char *path)
{
    return wb_slice_equal(request->path, wb_slice_str(path));
}

static void handle(void *context, void *worker, const struct wb_http_request *request, struct wb_http_reply *reply)
{
    struct site *site = context;

    assert_non_null(worker);
    site->running++;
    if (is(request, "/hello"))
        wb_buf_append_str(&reply->body, "hello\n");
    else if (is(request, "/echo"))
        answer_echo(request, reply);
    else if (is(request, "/fields"))
        answer_fields(request, reply);
    else if (is(request, "/hold"))
        hold(site);
    else if (is(request, "/none"))
        reply->status = 204;
    else if (is(request, "/broken"))
        wb_http_reply_error(reply, 500, "this is \"%s\"", "broken");
    else if (is(request, "/close"))
        reply->close = true;
    else if (is(request, "/big")) {
        uint64_t bytes = number(request, "bytes");
        if (wb_buf_reserve(&reply->body, bytes) == 0) {
            memset(reply->body.ptr, 'x', bytes);
            reply->body.len = bytes;
        }
    } else if (is(request, "/pieces") || is(request, "/fail") || is(request, "/later"))
        make_source(site, request, reply);
    else
        wb_http_reply_error(reply, 404, "there is no %.*s", WB_SLICE_ARG(request->path));
    site->running--;
    site->handled++;
}

static int admit(void *context, const struct wb_http_request *head, uint64_t *body_max_out, struct wb_http_reply *reply)
{
    (void)context;
    if (is(head, "/forbidden")) {
        wb_http_reply_error(reply, 403, "not you");
        return 1;
    }
    if (wb_http_param(head, "delay").ptr)
        reply->delay_ms = (unsigned)number(head, "delay");
    *body_max_out = is(head, "/echo") ? BODY_MAX : 0;
    return 0;
}

static void certified(void *context, int err)
{
    struct site *site = context;

    site->certified_err = err;
    site->certified++;
}

static bool is_slow(void *context, const struct wb_http_request *request)
{
    (void)context;
    return wb_http_param(request, "slow").ptr != NULL;
}

static void served(void *context, const struct wb_http_request *request, unsigned status, uint64_t bytes,
                   uint64_t microseconds)
{
    struct site *site = context;

    (void)microseconds;
    assert_true(request->peer.len > 0);
    site->last_status = status;
    site->last_bytes = bytes;
    site->served++;
}

static int open_worker(void *context, void **worker_out)
{
    struct site *site = context;

    if (atomic_fetch_add(&site->workers_asked, 1) == 1 && site->worker_fails)
        return wb_fail(WB_E_IO, "the second worker has a problem");
    site->workers_open++;
    *worker_out = site;
    return 0;
}

static void close_worker(void *context, void *worker)
{
    struct site *site = context;

    assert_ptr_equal(worker, site);
    site->workers_open--;
}

/* ---- the server ------------------------------------------------------------------------------------- */

static void *run(void *context)
{
    struct site *site = context;

    site->result = wb_httpd_run(site->httpd);
    return NULL;
}

void site_start(struct site *site)
{
    struct wb_httpd_options *options = &site->options;

    if (!options->listen.ptr)
        options->listen = WB_SLICE_LIT("127.0.0.1:0");
    if (!options->workers)
        options->workers = 3;
    options->app = (struct wb_httpd_app){.context = site,
                                         .worker_open = open_worker,
                                         .worker_close = close_worker,
                                         .admit = admit,
                                         .is_slow = is_slow,
                                         .certified = certified,
                                         .handle = handle,
                                         .served = served};
    pthread_mutex_init(&site->lock, NULL);
    pthread_cond_init(&site->changed, NULL);
    assert_int_equal(wb_httpd_new(options, &site->httpd), 0);
    site->port = (unsigned short)atoi(strrchr(wb_httpd_address(site->httpd), ':') + 1);
    assert_int_equal(pthread_create(&site->thread, NULL, run, site), 0);
}

int site_end(struct site *site)
{
    wb_httpd_stop(site->httpd);
    pthread_join(site->thread, NULL);
    assert_int_equal(site->workers_open, 0);
    assert_int_equal(site->sources_made, site->sources_closed);
    wb_httpd_free(site->httpd);
    return site->result;
}

void site_stop(struct site *site)
{
    assert_int_equal(site_end(site), 0);
}

void await_held(struct site *site, unsigned count)
{
    pthread_mutex_lock(&site->lock);
    while (site->held < count)
        pthread_cond_wait(&site->changed, &site->lock);
    pthread_mutex_unlock(&site->lock);
}

void release_held(struct site *site, unsigned count)
{
    pthread_mutex_lock(&site->lock);
    site->released += count;
    pthread_cond_broadcast(&site->changed);
    pthread_mutex_unlock(&site->lock);
}

void feed_later(struct site *site)
{
    site->fed++;
    wb_http_wake(site->httpd);
}

void await_count_at(const atomic_uint *counter, unsigned value, const char *what, const char *file, int line)
{
    for (unsigned i = 0; i < PATIENCE_MS && *counter != value; i++)
        usleep(1000);
    if (*counter == value)
        return;
    print_error("%s is %u, not %u\n", what, *counter, value);
    _fail(file, line);
}

void await_connections(struct site *site, uint64_t count)
{
    struct wb_httpd_stat stat;

    wb_httpd_stat(site->httpd, &stat);
    for (unsigned i = 0; i < PATIENCE_MS && stat.connections != count; i++) {
        usleep(1000);
        wb_httpd_stat(site->httpd, &stat);
    }
    assert_int_equal(stat.connections, count);
}

/* ---- the client -------------------------------------------------------------------------------------- */

int dial(struct site *site)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(site->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

void say_bytes(int fd, const char *bytes, size_t len, size_t step)
{
    for (size_t at = 0; at < len;) {
        size_t n = len - at < step ? len - at : step;
        ssize_t sent = send(fd, bytes + at, n, MSG_NOSIGNAL);
        if (sent < 0)
            return;
        at += (size_t)sent;
    }
}

void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text), strlen(text));
}

/* Appends what arrives next. 0: the server closed; -1: a reset. */
static ssize_t hear_some(int fd, size_t most, struct wb_buf *out)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1); /* otherwise the server neither answers nor closes */
    assert_int_equal(wb_buf_reserve(out, most), 0);
    ssize_t n = recv(fd, out->ptr + out->len, most, 0);
    out->len += n > 0 ? (size_t)n : 0;
    return n;
}

bool hear_all(int fd, struct wb_buf *out)
{
    ssize_t n;

    do
        n = hear_some(fd, 65536, out);
    while (n > 0);
    return n == 0;
}

void hear(int fd, size_t len, struct wb_buf *out)
{
    while (out->len < len && hear_some(fd, len - out->len, out) > 0)
        ;
}

bool has(const struct wb_buf *text, const char *part)
{
    return text->len > 0 && memmem(text->ptr, text->len, part, strlen(part));
}

bool hear_text(int fd, const char *text, struct wb_buf *out)
{
    if (has(out, text))
        return true;
    do /* byte by byte, so that what follows the text is left for later */
        if (hear_some(fd, 1, out) <= 0)
            return false;
    while (!wb_slice_ends(wb_buf_slice(out), wb_slice_str(text)));
    return true;
}

const char *statuses_of(struct site *site, const char *bytes, size_t len, size_t step, bool half_close)
{
    static char found[256];
    struct wb_buf reply = WB_BUF_INIT;
    int fd = dial(site);
    size_t used = 0;

    say_bytes(fd, bytes, len, step);
    if (half_close)
        shutdown(fd, SHUT_WR);
    bool clean = hear_all(fd, &reply);
    found[0] = '\0';
    for (size_t i = 0; i + 12 <= reply.len && used + 8 < sizeof found; i++)
        if (memcmp(reply.ptr + i, "HTTP/1.1 ", 9) == 0 && wb_ascii_is_digit(reply.ptr[i + 9]))
            used += (size_t)snprintf(found + used, sizeof found - used, "%s%.3s", used ? " " : "", reply.ptr + i + 9);
    if (!clean)
        snprintf(found + used, sizeof found - used, "%sreset", used ? " " : "");
    wb_buf_release(&reply);
    close(fd);
    return found;
}

bool unchunk(struct wb_slice reply, struct wb_buf *body_out)
{
    const char *end = memmem(reply.ptr, reply.len, "\r\n\r\n", 4);

    assert_non_null(end);
    struct wb_slice rest = wb_slice(end + 4, reply.len - (size_t)(end + 4 - reply.ptr));
    for (;;) {
        const char *line = rest.len ? memmem(rest.ptr, rest.len, "\r\n", 2) : NULL;
        if (!line)
            return false;
        size_t size = strtoul(rest.ptr, NULL, 16), lead = (size_t)(line - rest.ptr) + 2;
        if (rest.len < lead + size + 2)
            return false;
        wb_buf_append(body_out, rest.ptr + lead, size);
        assert_memory_equal(rest.ptr + lead + size, "\r\n", 2);
        rest = wb_slice(rest.ptr + lead + size + 2, rest.len - lead - size - 2);
        if (size == 0)
            return rest.len == 0;
    }
}
