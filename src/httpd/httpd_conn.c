/*
 * httpd_conn.c - the life of a connection: accepting, reading, deadlines, closing. What the bytes mean is in
 * httpd_exchange.c.
 */
#include "httpd/httpd_conn.h"
#include "base/mem.h"
#include "os/clock.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define LINGER_MS 2000      /* since the client sent something */
#define LINGER_ALL_MS 10000 /* in total */
#define LINGER_STOP_MS 500  /* when the server stops */
#define LINGER_BYTES (16u << 20)
#define KEEPALIVE_SECONDS 60
#define KEPT_BYTES 4096u          /* an idle connection keeps buffers up to this size */
#define UNSENT_KERNEL (256 << 10) /* bytes that the kernel may hold for a client that does not read */

int64_t wb_httpd_now_ms(void)
{
    return wb_clock_mono_ns() / 1000000;
}

/* ---- deadlines ----------------------------------------------------------------------------------- */

void wb_httpd_conn_set_deadline(struct wb_httpd_conn *c, int64_t at_ms)
{
    struct wb_httpd *httpd = c->httpd;

    c->deadline_ms = at_ms;
    if (c->node.heap && at_ms >= c->node.key)
        return;
    if (c->node.heap)
        wb_heap_remove(&c->node);
    if (at_ms == WB_HTTPD_NEVER)
        return;
    wb_heap_add(&httpd->deadlines, &c->node, at_ms); /* accepting the connection made room */
    if (at_ms < httpd->tick_at_ms) {
        int64_t wait_ms = at_ms - wb_httpd_now_ms();
        struct timeval tv = {wait_ms > 0 ? wait_ms / 1000 : 0, wait_ms > 0 ? wait_ms % 1000 * 1000 : 0};
        httpd->tick_at_ms = at_ms;
        event_add(&httpd->tick_event, &tv);
    }
}

void wb_httpd_conn_on_deadline(struct wb_httpd_conn *c)
{
    int64_t now = wb_httpd_now_ms();

    switch (c->state) {
    case WB_CONN_HEAD:
    case WB_CONN_BODY:
        if (c->began_ns == 0)
            wb_httpd_conn_cut(c, false);
        else
            wb_httpd_exchange_refuse(c, 408,
                                     c->state == WB_CONN_HEAD ? "the head of the request took too long"
                                                              : "the body of the request took too long");
        break;
    case WB_CONN_SEND:
        if (c->out.unsent > 0 && c->stall_at_ms <= now) {
            wb_httpd_conn_cut(c, true);
        } else if (c->is_later && c->later_at_ms <= now) {
            wb_httpd_source_forget_later(c);
            wb_httpd_exchange_pump(c);
        } else if (c->is_later && c->eof && c->idle_since_ms + WB_HTTPD_HALF_CLOSED_MS <= now) {
            wb_httpd_conn_cut(c, false);
        } else {
            wb_httpd_exchange_pump(c); /* sets the next deadline */
        }
        break;
    case WB_CONN_HANDSHAKE:
    case WB_CONN_LINGER:
        wb_httpd_conn_cut(c, false);
        break;
    case WB_CONN_WORK:
        wb_httpd_exchange_give_up(c);
        break;
    case WB_CONN_HOLD:
        wb_httpd_exchange_release(c);
        break;
    case WB_CONN_GONE:
        break;
    }
}

/* ---- waiting for a request ------------------------------------------------------------------------ */

static void enter_waiting(struct wb_httpd_conn *c)
{
    wb_list_append(&c->httpd->waiting, &c->in_waiting);
    wb_list_append(&c->peer->waiting, &c->in_peer);
}

void wb_httpd_conn_stop_waiting(struct wb_httpd_conn *c)
{
    WB_CHECK(c->state == WB_CONN_HANDSHAKE || c->state == WB_CONN_HEAD);
    wb_list_remove(&c->httpd->waiting, &c->in_waiting);
    wb_list_remove(&c->peer->waiting, &c->in_peer);
}

void wb_httpd_conn_wait(struct wb_httpd_conn *c)
{
    WB_CHECK(c->state == WB_CONN_SEND && !c->busy && !c->source_open);
    c->state = WB_CONN_HEAD;
    c->began_ns = 0;
    if (c->in_at == c->in.len) {
        wb_buf_clear(&c->in);
        c->in_at = 0;
        if (c->in.cap > KEPT_BYTES)
            wb_buf_release(&c->in);
    }
    if (c->head_bytes.cap > KEPT_BYTES)
        wb_buf_release(&c->head_bytes);
    wb_httpd_outbox_trim(&c->out);
    enter_waiting(c);
    wb_httpd_conn_set_deadline(c, wb_httpd_now_ms() + c->httpd->limits.idle_ms);
    wb_httpd_conn_resume(c);
}

/* ---- events --------------------------------------------------------------------------------------- */

static void want_read(struct wb_httpd_conn *c, bool wanted)
{
    if (c->reads == wanted)
        return;
    c->reads = wanted;
    if (wanted)
        event_add(&c->read_event, NULL);
    else
        event_del(&c->read_event);
}

void wb_httpd_conn_want_write(struct wb_httpd_conn *c, bool wanted)
{
    if (c->writes == wanted)
        return;
    c->writes = wanted;
    if (wanted)
        event_add(&c->write_event, NULL);
    else
        event_del(&c->write_event);
}

void wb_httpd_conn_resume(struct wb_httpd_conn *c)
{
    if (c->eof || c->reads)
        return;
    want_read(c, true);
    if (c->wire.ssl) /* OpenSSL may hold bytes that the socket no longer has */
        event_active(&c->read_event, EV_READ, 0);
}

/* How much may be read now. While a request is under way, only as much as a next head may have. */
static size_t read_room(const struct wb_httpd_conn *c)
{
    size_t held = c->in.len - c->in_at, max = c->httpd->limits.head_bytes;

    if (c->state == WB_CONN_LINGER || c->state == WB_CONN_BODY || c->state == WB_CONN_HEAD)
        return WB_HTTPD_SCRATCH_BYTES;
    return held >= max ? 0 : max - held < WB_HTTPD_SCRATCH_BYTES ? max - held : WB_HTTPD_SCRATCH_BYTES;
}

/* Keeps bytes for later. */
static bool keep_input(struct wb_httpd_conn *c, struct wb_slice bytes)
{
    if (c->in_at > 0) {
        memmove(c->in.ptr, c->in.ptr + c->in_at, c->in.len - c->in_at);
        c->in.len -= c->in_at;
        c->in_at = 0;
    }
    if (wb_buf_append_slice(&c->in, bytes) == 0)
        return true;
    wb_httpd_conn_cut(c, false);
    return false;
}

static void set_linger_deadline(struct wb_httpd_conn *c)
{
    int64_t at_ms = wb_httpd_now_ms() + LINGER_MS;

    wb_httpd_conn_set_deadline(c, at_ms < c->linger_until_ms ? at_ms : c->linger_until_ms);
}

static void take_input(struct wb_httpd_conn *c, struct wb_slice bytes)
{
    if (c->state == WB_CONN_LINGER) {
        c->dropped += bytes.len;
        if (c->dropped > LINGER_BYTES)
            wb_httpd_conn_cut(c, false);
        else
            set_linger_deadline(c);
        return;
    }
    if (c->state == WB_CONN_BODY) {
        size_t used = wb_httpd_exchange_feed(c, bytes);
        bytes = wb_slice(bytes.ptr + used, bytes.len - used);
    }
    if (c->state == WB_CONN_GONE || c->state == WB_CONN_LINGER || bytes.len == 0 || !keep_input(c, bytes))
        return;
    wb_httpd_exchange_advance(c);
}

/* The client has closed its side. It may still wait for an answer to what it has sent. */
static void take_eof(struct wb_httpd_conn *c)
{
    c->eof = true;
    want_read(c, false);
    if (c->state == WB_CONN_LINGER)
        wb_httpd_conn_cut(c, false);
    else if (c->state == WB_CONN_SEND)
        wb_httpd_exchange_pump(c);
    wb_httpd_exchange_advance(c);
}

static void shake_hands(struct wb_httpd_conn *c)
{
    int result = wb_httpd_wire_handshake(&c->wire);

    if (result == WB_WIRE_BROKEN) {
        wb_httpd_conn_cut(c, false);
        return;
    }
    wb_httpd_conn_want_write(c, result == WB_WIRE_WANTS_WRITE);
    if (result == 1) {
        c->state = WB_CONN_HEAD;
        wb_httpd_conn_set_deadline(c, wb_httpd_now_ms() + c->httpd->limits.idle_ms);
    }
}

static void read_some(struct wb_httpd_conn *c)
{
    size_t room = read_room(c);

    if (room == 0 && c->state == WB_CONN_SEND && c->source_open) {
        wb_httpd_conn_cut(c, false); /* if we stopped reading, we would not notice that the client has gone */
        return;
    }
    if (room == 0) {
        want_read(c, false);
        return;
    }
    long n = wb_httpd_wire_read(&c->wire, c->httpd->scratch, room);
    if (n > 0)
        take_input(c, wb_slice(c->httpd->scratch, (size_t)n));
    else if (n == WB_WIRE_CLOSED)
        take_eof(c);
    else if (n == WB_WIRE_BROKEN)
        wb_httpd_conn_cut(c, false);
    else if (n == WB_WIRE_WANTS_WRITE)
        wb_httpd_conn_want_write(c, true);
    /* The rest of a TLS record does not make the socket readable again. */
    if (n > 0 && c->state != WB_CONN_GONE && c->wire.ssl && c->reads && SSL_has_pending(c->wire.ssl))
        event_active(&c->read_event, EV_READ, 0);
}

static void on_read(evutil_socket_t fd, short what, void *context)
{
    struct wb_httpd_conn *c = context;
    struct wb_httpd *httpd = c->httpd;

    (void)fd;
    (void)what;
    if (c->state == WB_CONN_HANDSHAKE)
        shake_hands(c);
    if (c->state != WB_CONN_HANDSHAKE && c->state != WB_CONN_GONE)
        read_some(c);
    wb_httpd_conn_reap(httpd);
}

static void on_write(evutil_socket_t fd, short what, void *context)
{
    struct wb_httpd_conn *c = context;
    struct wb_httpd *httpd = c->httpd;

    (void)fd;
    (void)what;
    if (c->state == WB_CONN_HANDSHAKE) {
        shake_hands(c);
    } else if (c->out.unsent > 0) {
        wb_httpd_exchange_pump(c);
        wb_httpd_exchange_advance(c);
    } else {
        wb_httpd_conn_want_write(c, false);
        read_some(c); /* TLS wanted to write before it could read */
    }
    wb_httpd_conn_reap(httpd);
}

/* ---- accepting ---------------------------------------------------------------------------------------- */

/* Closes the connection that has waited longest for a request. False if there is none. */
static bool make_room(struct wb_httpd *httpd, struct wb_httpd_peer *peer)
{
    struct wb_list_node *oldest = peer ? peer->waiting.first : httpd->waiting.first;

    if (!oldest)
        return false;
    httpd->refused++;
    wb_httpd_conn_cut(peer ? WB_CONTAINER_OF(oldest, struct wb_httpd_conn, in_peer)
                           : WB_CONTAINER_OF(oldest, struct wb_httpd_conn, in_waiting),
                      false);
    return true;
}

/* Counts the connection, and finds out whether there is room for it. */
static bool admit_peer(struct wb_httpd *httpd, struct wb_httpd_conn *c, const struct sockaddr_storage *address)
{
    if (httpd->connections >= httpd->limits.connections && !make_room(httpd, NULL))
        return false;
    if (wb_heap_reserve(&httpd->deadlines, httpd->count + 1) < 0)
        return false;
    c->peer = wb_httpd_peer_enter(&httpd->peers, address);
    if (!c->peer)
        return false;
    if (c->peer->connections <= httpd->limits.connections_per_peer || make_room(httpd, c->peer))
        return true;
    wb_httpd_peer_leave(&httpd->peers, c->peer);
    return false;
}

static void prepare_socket(int fd)
{
    int one = 1, unsent = UNSENT_KERNEL, idle = KEEPALIVE_SECONDS, step = KEEPALIVE_SECONDS / 4;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    /* Otherwise a client that was switched off while its source had nothing to send would never be noticed. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof step);
}

void wb_httpd_conn_accept(struct wb_httpd *httpd, int fd, const struct sockaddr_storage *address, bool also)
{
    struct wb_httpd_conn *c = wb_alloc_zero(1, sizeof *c);

    httpd->accepted++;
    if (!c || !admit_peer(httpd, c, address)) {
        httpd->refused++;
        close(fd);
        wb_free(c);
        return;
    }
    prepare_socket(fd);
    c->httpd = httpd;
    c->also = also;
    c->wire.fd = fd;
    c->state = httpd->tls ? WB_CONN_HANDSHAKE : WB_CONN_HEAD;
    c->reply = wb_httpd_reply_new();
    wb_httpd_head_clear(&c->head);
    c->loopback = wb_httpd_peer_describe(address, c->peer_text);
    event_assign(&c->read_event, httpd->base, fd, EV_READ | EV_PERSIST, on_read, c);
    event_assign(&c->write_event, httpd->base, fd, EV_WRITE | EV_PERSIST, on_write, c);
    wb_list_append(&httpd->all, &c->in_all);
    httpd->count++;
    httpd->connections++;
    enter_waiting(c);
    wb_httpd_conn_set_deadline(c, wb_httpd_now_ms() + (httpd->tls ? httpd->limits.head_ms : httpd->limits.idle_ms));
    want_read(c, true);
    if (httpd->tls && wb_httpd_wire_secure(&c->wire, httpd->tls) < 0)
        wb_httpd_conn_cut(c, false);
}

/* ---- closing ------------------------------------------------------------------------------------------- */

void wb_httpd_conn_finish(struct wb_httpd_conn *c)
{
    WB_CHECK(c->state == WB_CONN_SEND && !c->busy && !c->source_open);
    c->state = WB_CONN_LINGER;
    wb_buf_release(&c->in);
    c->in_at = 0;
    wb_httpd_conn_want_write(c, false);
    if (c->eof || !wb_httpd_wire_finish(&c->wire)) {
        wb_httpd_conn_cut(c, false);
        return;
    }
    c->linger_until_ms = wb_httpd_now_ms() + (c->httpd->stop_at_ms ? LINGER_STOP_MS : LINGER_ALL_MS);
    set_linger_deadline(c);
    wb_httpd_conn_resume(c);
}

void wb_httpd_conn_cut(struct wb_httpd_conn *c, bool reset)
{
    struct wb_httpd *httpd = c->httpd;

    if (c->state == WB_CONN_GONE)
        return;
    if (c->state == WB_CONN_HANDSHAKE || c->state == WB_CONN_HEAD)
        wb_httpd_conn_stop_waiting(c);
    wb_httpd_source_forget_later(c);
    want_read(c, false);
    wb_httpd_conn_want_write(c, false);
    if (c->node.heap)
        wb_heap_remove(&c->node);
    wb_httpd_wire_close(&c->wire, reset || (c->state == WB_CONN_SEND && c->framing == WB_FRAMING_CLOSE));
    c->state = WB_CONN_GONE;
    wb_httpd_peer_leave(&httpd->peers, c->peer);
    c->peer = NULL;
    httpd->connections--;
    wb_httpd_conn_bury(c);
}

void wb_httpd_conn_bury(struct wb_httpd_conn *c)
{
    WB_CHECK(c->state == WB_CONN_GONE);
    if (c->busy && !wb_httpd_crew_cancel(&c->httpd->crew, &c->job))
        return; /* continued when the job is done */
    c->busy = false;
    if (c->source_open) {
        wb_httpd_source_close(c);
        return;
    }
    wb_list_remove(&c->httpd->all, &c->in_all);
    wb_list_append(&c->httpd->dead, &c->in_all);
}

void wb_httpd_conn_reap(struct wb_httpd *httpd)
{
    struct wb_list_node *node;

    while ((node = wb_list_pop(&httpd->dead))) {
        struct wb_httpd_conn *c = WB_CONTAINER_OF(node, struct wb_httpd_conn, in_all);
        wb_httpd_exchange_clear(c);
        wb_httpd_head_release(&c->head);
        wb_httpd_body_release(&c->body);
        wb_httpd_outbox_release(&c->out);
        wb_buf_release(&c->in);
        wb_buf_release(&c->head_bytes);
        wb_buf_release(&c->piece);
        wb_free(c);
        httpd->count--;
    }
}
