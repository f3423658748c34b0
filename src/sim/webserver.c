/*
 * webserver.c - listens, reads requests, and sends replies the way they ask to be sent: at once,
 * late, drop by drop, endlessly, or cut off. One thread, one event loop. It knows bytes and
 * sockets, and nothing about pages.
 *
 * The life of a connection:
 *
 *   reading -> (delayed) -> sending <-> (dripping) -> reading     it is kept open
 *                              |-> draining -> closed             we close it
 *                              |-> resetting                      after a moment, so that the bytes arrive
 *                              +-> held                           until the client goes away
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/stop.h"
#include "sim/respond.h"
#include "sim/sim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 8192
#define ACCEPTS_AT_ONCE 64
#define READ_BYTES 4096u
#define IN_BYTES_MAX (2 * WB_ASKED_BYTES_MAX)
#define KEPT_BYTES_MAX (64u << 10) /* an idle connection keeps a buffer up to this size */
#define IDLE_SECONDS 120
#define LINGER_MS 1000
#define RESET_MS 30
#define STOP_CHECK_MS 20
#define ACCEPT_PAUSE_MS 50

struct webserver {
    struct event_base *base;
    const struct timeval *idle;
    int fd;
    struct event accept_event, stop_event, pause_event;
    struct wb_respond respond;
    struct connection *first; /* the list of all connections */
};

enum connection_state {
    STATE_READING,
    STATE_DELAYED,
    STATE_SENDING,
    STATE_DRIPPING,
    STATE_DRAINING,
    STATE_RESETTING,
    STATE_HELD,
};

struct connection {
    struct webserver *server;
    struct connection *next, **link; /* in the server's list */
    int fd;
    enum connection_state state;
    bool eof;       /* the client will send nothing more */
    struct event read_event, write_event, timer;
    struct wb_buf in;
    struct wb_reply reply;
    size_t sent;    /* how many bytes of the reply have been sent */
};

static struct timeval milliseconds(unsigned ms)
{
    return (struct timeval){(time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};
}

/* ---- the life of a connection ------------------------------------------------------------ */

static void close_connection(struct connection *c)
{
    event_del(&c->read_event);
    event_del(&c->write_event);
    event_del(&c->timer);
    close(c->fd);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    wb_reply_release(&c->reply);
    wb_buf_release(&c->in);
    wb_free(c);
}

/* Ends a connection with a TCP reset: closing with a linger time of zero sends one. */
static void reset_connection(struct connection *c)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close_connection(c);
}

/* Puts a connection into a state that on_timer() ends. */
static void wait_ms(struct connection *c, enum connection_state state, unsigned ms)
{
    struct timeval tv = milliseconds(ms);

    c->state = state;
    event_add(&c->timer, &tv);
}

/* Ends a connection so that the client receives everything: closing with unread input would discard what we sent. */
static void drain_connection(struct connection *c)
{
    if (c->eof || shutdown(c->fd, SHUT_WR) < 0) {
        close_connection(c);
        return;
    }
    wb_buf_clear(&c->in);
    event_add(&c->read_event, c->server->idle);
    wait_ms(c, STATE_DRAINING, LINGER_MS);
}

/* Called when the reply is sent. Returns false if the connection is gone or reads no more requests. */
static bool end_reply(struct connection *c)
{
    struct wb_buf kept = wb_buf_take(&c->reply.bytes);
    enum wb_reply_end end = c->reply.end;

    wb_reply_release(&c->reply);
    wb_buf_clear(&kept);
    if (kept.cap > KEPT_BYTES_MAX)
        wb_buf_release(&kept);
    c->reply.bytes = kept;
    c->sent = 0;
    switch (end) {
    case WB_REPLY_KEEP:
        if (c->eof && c->in.len == 0) {
            close_connection(c);
            return false;
        }
        c->state = STATE_READING;
        if (!c->eof)
            event_add(&c->read_event, c->server->idle);
        return true;
    case WB_REPLY_CLOSE:
        drain_connection(c);
        return false;
    case WB_REPLY_RESET:
        wait_ms(c, STATE_RESETTING, RESET_MS);
        return false;
    case WB_REPLY_HOLD:
        c->state = STATE_HELD;
        if (c->eof) {
            close_connection(c);
            return false;
        }
        return false;
    }
    return false;
}

/* ---- sending ------------------------------------------------------------------------------ */

/* Returns 1 if all bytes are sent, 0 if it must continue later, -1 if the connection is gone. */
static int send_bytes(struct connection *c)
{
    size_t end = c->reply.bytes.len;

    if (c->reply.drip_bytes && end - c->sent > c->reply.drip_bytes)
        end = c->sent + c->reply.drip_bytes;
    while (c->sent < end) {
        ssize_t n = send(c->fd, c->reply.bytes.ptr + c->sent, end - c->sent, MSG_NOSIGNAL);
        if (n > 0) {
            c->sent += (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            event_add(&c->write_event, c->server->idle);
            return 0;
        }
        close_connection(c);
        return -1;
    }
    if (c->sent == c->reply.bytes.len)
        return 1;
    wait_ms(c, STATE_DRIPPING, c->reply.drip_ms);
    return 0;
}

/* Continues with the reply; true if it has been sent completely and the next request may be read. */
static bool send_reply(struct connection *c)
{
    c->state = STATE_SENDING;
    if (send_bytes(c) != 1)
        return false;
    if (!c->reply.more)
        return end_reply(c);
    wb_buf_clear(&c->reply.bytes);
    c->sent = 0;
    int more = c->reply.more(c->reply.context, &c->reply.bytes);
    if (more < 0) {
        reset_connection(c); /* a stream that ends early must not look complete */
        return false;
    }
    if (more == 0)
        c->reply.more = NULL;
    event_add(&c->write_event, c->server->idle); /* let other connections have their turn first */
    return false;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Answers a request that cannot be parsed, and closes the connection. */
static void refuse_request(struct connection *c)
{
    static const char words[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

    wb_buf_clear(&c->in);
    c->reply.end = WB_REPLY_CLOSE;
    if (wb_buf_append(&c->reply.bytes, words, sizeof words - 1) < 0)
        close_connection(c);
    else
        send_reply(c);
}

/* Answers the requests that have been read, one after another, until a reply cannot be sent at once. */
static void answer_requests(struct connection *c)
{
    struct wb_asked asked;
    size_t used;

    for (;;) {
        int found = wb_asked_parse(wb_buf_slice(&c->in), &asked, &used);
        if (found == 0 && c->eof) {
            close_connection(c);
            return;
        }
        if (found == 0)
            return;
        if (found < 0) {
            refuse_request(c);
            return;
        }
        if (wb_respond(&c->server->respond, &asked, wb_clock_mono_ns(), &c->reply) < 0) {
            reset_connection(c);
            return;
        }
        memmove(c->in.ptr, c->in.ptr + used, c->in.len - used);
        c->in.len -= used;
        if (c->reply.delay_ms) {
            wait_ms(c, STATE_DELAYED, c->reply.delay_ms);
            return;
        }
        if (!send_reply(c))
            return;
    }
}

/* Bytes have arrived, the client has closed its side, or it has been idle for too long. */
static void on_read(evutil_socket_t fd, short what, void *context)
{
    struct connection *c = context;

    bool busy = c->state == STATE_DELAYED || c->state == STATE_SENDING || c->state == STATE_DRIPPING;
    if ((what & EV_TIMEOUT) && busy)
        return; /* a client that waits for our answer is not idle */
    if ((what & EV_TIMEOUT) || wb_buf_reserve(&c->in, READ_BYTES) < 0) {
        close_connection(c);
        return;
    }
    ssize_t n = recv(fd, c->in.ptr + c->in.len, READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n < 0 || (n == 0 && (c->state == STATE_READING || c->state == STATE_DRAINING || c->state == STATE_HELD))) {
        close_connection(c);
        return;
    }
    c->eof = n == 0;
    c->in.len += (size_t)n;
    if (c->state == STATE_DRAINING || c->state == STATE_HELD)
        wb_buf_clear(&c->in);
    if (c->eof || c->in.len > IN_BYTES_MAX)
        event_del(&c->read_event); /* read on when the reply has been sent */
    if (c->state == STATE_READING)
        answer_requests(c);
}

/* The socket can take more bytes of the reply. */
static void on_write(evutil_socket_t fd, short what, void *context)
{
    struct connection *c = context;

    (void)fd;
    if (what & EV_TIMEOUT)
        close_connection(c);
    else if (send_reply(c))
        answer_requests(c);
}

/* A delay or a pause is over, or a reset or closing is due. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct connection *c = context;

    (void)fd;
    (void)what;
    if (c->state == STATE_DRAINING)
        close_connection(c);
    else if (c->state == STATE_RESETTING)
        reset_connection(c);
    else if (send_reply(c))
        answer_requests(c);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static void add_connection(struct webserver *s, int fd)
{
    struct connection *c = wb_alloc_zero(1, sizeof *c);
    int one = 1;

    if (!c) {
        close(fd);
        return;
    }
    *c = (struct connection){.server = s, .next = s->first, .link = &s->first, .fd = fd, .reply = WB_REPLY_INIT};
    if (s->first)
        s->first->link = &c->next;
    s->first = c;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    event_assign(&c->read_event, s->base, fd, EV_READ | EV_PERSIST, on_read, c);
    event_assign(&c->write_event, s->base, fd, EV_WRITE, on_write, c);
    event_assign(&c->timer, s->base, -1, 0, on_timer, c);
    if (event_add(&c->read_event, s->idle) < 0)
        close_connection(c);
}

/* Accepts several connections at once, so that many clients do not wait for each other. */
static void on_accept(evutil_socket_t fd, short what, void *context)
{
    struct webserver *s = context;

    (void)what;
    for (unsigned i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (got >= 0) {
            add_connection(s, got);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* Out of sockets: pause until some are closed; otherwise the loop would spin. */
            struct timeval tv = milliseconds(ACCEPT_PAUSE_MS);
            event_del(&s->accept_event);
            event_add(&s->pause_event, &tv);
        }
        return;
    }
}

/* Accepts connections again after running out of sockets. */
static void on_pause_over(evutil_socket_t fd, short what, void *context)
{
    struct webserver *s = context;

    (void)fd;
    (void)what;
    event_add(&s->accept_event, NULL);
}

/* Ends the loop once a stop has been requested. */
static void on_stop_check(evutil_socket_t fd, short what, void *context)
{
    struct webserver *s = context;

    (void)fd;
    (void)what;
    if (wb_stop_requested())
        event_base_loopbreak(s->base);
}

/* ---- the server -------------------------------------------------------------------------------- */

/* Parses an address such as "127.0.0.1:8080", "[::1]:0" or "localhost:0". */
static bool parse_place(const char *where, struct sockaddr_storage *address_out, socklen_t *len_out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address_out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address_out;
    const char *colon = strrchr(where, ':');
    char host[INET6_ADDRSTRLEN + 2];
    uint64_t port;

    if (!colon || (size_t)(colon - where) >= sizeof host || !wb_slice_to_u64(wb_slice_str(colon + 1), &port) ||
        port > 65535)
        return false;
    size_t n = (size_t)(colon - where);
    bool brackets = n > 2 && where[0] == '[' && where[n - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? n - 2 : n), brackets ? where + 1 : where);
    *len_out = brackets ? sizeof *six : sizeof *four;
    if (brackets) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &six->sin6_addr) == 1;
    }
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr) == 1;
}

static int listen_at(struct webserver *s, const char *where)
{
    struct sockaddr_storage address = {0};
    socklen_t len = 0;
    int one = 1;

    if (!parse_place(where, &address, &len))
        return wb_fail(WB_E_INVALID, "--listen takes ADDRESS:PORT such as 127.0.0.1:8080, not '%s'", where);
    s->fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return wb_fail_errno("cannot create a socket for %s", where);
    setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s->fd, (struct sockaddr *)&address, len) < 0 || listen(s->fd, BACKLOG) < 0)
        return wb_fail_errno("cannot listen on %s", where);
    return 0;
}

/* Finds out the address and port on which we really listen. */
static int find_place(struct webserver *s)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    char text[INET6_ADDRSTRLEN] = "";
    uint16_t port;

    if (getsockname(s->fd, (struct sockaddr *)&address, &len) < 0)
        return wb_fail_errno("cannot find out on which address the server listens");
    if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;
        inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
        port = ntohs(six->sin6_port);
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&address;
        inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
        port = ntohs(four->sin_port);
    }
    s->respond.start_ns = wb_clock_mono_ns();
    wb_world_set_place(&s->respond.world, text, port, wb_clock_wall_ms());
    return 0;
}

static int run_loop(struct webserver *s)
{
    struct timeval check = milliseconds(STOP_CHECK_MS), idle = {IDLE_SECONDS, 0};

    s->base = event_base_new();
    if (!s->base)
        return wb_fail(WB_E_IO, "cannot create an event loop");
    s->idle = event_base_init_common_timeout(s->base, &idle);
    if (!s->idle)
        return wb_fail_nomem();
    event_assign(&s->accept_event, s->base, s->fd, EV_READ | EV_PERSIST, on_accept, s);
    event_assign(&s->stop_event, s->base, -1, EV_PERSIST, on_stop_check, s);
    event_assign(&s->pause_event, s->base, -1, 0, on_pause_over, s);
    if (event_add(&s->accept_event, NULL) < 0 || event_add(&s->stop_event, &check) < 0)
        return wb_fail(WB_E_IO, "cannot wait for connections");
    if (event_base_dispatch(s->base) < 0)
        return wb_fail(WB_E_IO, "the event loop failed");
    return 0;
}

int wb_sim_serve(const struct wb_sim_options *options, void (*ready)(void *context, const char *url), void *context)
{
    struct webserver s = {.fd = -1};
    char url[128];

    int err = wb_respond_init(options, &s.respond);
    if (err < 0)
        return err;
    wb_limits_prepare(); /* every client needs a socket */
    err = listen_at(&s, options->listen);
    if (err == 0)
        err = find_place(&s);
    if (err == 0) {
        snprintf(url, sizeof url, "http://%s/", s.respond.world.front);
        ready(context, url);
        err = run_loop(&s);
    }
    while (s.first)
        close_connection(s.first);
    if (s.base)
        event_base_free(s.base);
    if (s.fd >= 0)
        close(s.fd);
    wb_respond_release(&s.respond);
    return err;
}
