/*
 * httpd_conn.h - a connection, the server it belongs to, and what the loop does with it. All functions here run in the
 * loop; only the two job functions in httpd_exchange.c and httpd_source.c run in workers.
 *
 *   HANDSHAKE -> HEAD -> BODY -> WORK -> SEND -> HEAD        kept alive
 *                  |      |              |-> LINGER -> GONE  closed by us: the client can still read the answer
 *                  +------+-- a refusal -+      HOLD, between WORK and SEND: an answer that is to leave later
 *   any state -> GONE                                        the client left, a deadline passed, the server stops
 *
 * A connection that is GONE has no socket. It is freed when no worker runs a job of it and its source is closed. While
 * a job runs, the worker owns the reply (WORK) or the source and `piece` (SEND), and the loop must not touch them.
 */
#ifndef WB_HTTPD_HTTPD_CONN_H
#define WB_HTTPD_HTTPD_CONN_H

#include "base/date.h"
#include "base/heap.h"
#include "httpd/httpd_body.h"
#include "httpd/httpd_crew.h"
#include "httpd/httpd_listen.h"
#include "httpd/httpd_outbox.h"
#include "httpd/httpd_peer.h"
#include "httpd/httpd_reply.h"

#include <event2/event_struct.h>
#include <stdatomic.h>

enum { WB_HTTPD_LISTENERS = 2 };

#define WB_HTTPD_NEVER INT64_MAX
#define WB_HTTPD_SCRATCH_BYTES 65536u

/*
 * A client that has closed its side may still be reading, or may be gone: only sending tells. If a source has nothing
 * to send for this long, the client is taken to be gone.
 */
#define WB_HTTPD_HALF_CLOSED_MS 2000

struct wb_httpd {
    struct wb_httpd_app app;
    struct wb_httpd_limits limits;
    unsigned workers;
    struct wb_httpd_listener listeners[WB_HTTPD_LISTENERS]; /* the second one may have no socket */
    const char *certificate, *key;
    SSL_CTX *tls; /* NULL: plain HTTP. Each connection keeps the one with which it began */
    unsigned hangups_seen;
    struct event_base *base;
    struct event accept_events[WB_HTTPD_LISTENERS], told_event, tick_event;
    int told_fd; /* an eventfd: jobs are done, or somebody wants a stop or a wake-up */
    struct wb_httpd_crew crew;
    struct wb_httpd_peers peers;
    struct wb_list all, waiting, later,
        dead; /* connections: all; HANDSHAKE and HEAD; sources that said LATER; to free */
    struct wb_heap deadlines;
    size_t count;         /* of all, those that are GONE included */
    int64_t tick_at_ms;   /* when tick_event fires */
    int64_t accept_at_ms; /* when we accept again after running out of sockets; 0: we do accept */
    int64_t stop_at_ms;   /* when what is left is cut; 0: we are not stopping */
    size_t body_bytes;    /* of all requests */
    size_t held_bytes;    /* of all replies that are being sent */
    unsigned wakes_seen;
    int64_t date_second;
    char date[WB_DATE_HTTP_BYTES];
    char *scratch; /* WB_HTTPD_SCRATCH_BYTES for what arrives */
    atomic_bool stop;
    atomic_uint wakes;
    _Atomic uint64_t connections, accepted, refused, requests, sources;
};

enum wb_conn_state {
    WB_CONN_HANDSHAKE,
    WB_CONN_HEAD,
    WB_CONN_BODY,
    WB_CONN_WORK,
    WB_CONN_HOLD,
    WB_CONN_SEND,
    WB_CONN_LINGER,
    WB_CONN_GONE,
};

struct wb_httpd_conn {
    struct wb_httpd *httpd;
    enum wb_conn_state state;
    struct wb_list_node in_all, in_waiting, in_peer, in_later;
    struct wb_heap_node node; /* its key is never later than deadline_ms, so moving a deadline back costs nothing */
    int64_t deadline_ms;
    struct wb_httpd_wire wire;
    struct event read_event, write_event;
    bool reads, writes; /* the event is added */
    bool eof;           /* the client will send nothing more */
    bool loopback;
    bool also; /* accepted by the second listener */
    char peer_text[WB_HTTPD_PEER_TEXT];
    struct wb_httpd_peer *peer;

    /* what arrives */
    struct wb_buf in;
    size_t in_at; /* bytes of `in` that have been used */
    struct wb_httpd_scan scan;
    struct wb_buf head_bytes; /* of the current request; `head` points there */
    struct wb_httpd_head head;
    struct wb_httpd_body body;
    int64_t began_ns; /* the first byte of the request, then its head, has arrived; 0: nothing yet */
    size_t dropped;   /* bytes that arrived while lingering */
    int64_t linger_until_ms;

    /* the answer */
    struct wb_httpd_job job;
    bool busy;      /* the job waits, runs, or is done but not collected */
    bool under_way; /* counted as a request */
    bool answered;  /* the reply is known */
    bool keep;      /* the connection stays open after this reply */
    struct wb_http_reply reply;
    enum wb_httpd_framing framing;
    struct wb_httpd_outbox out;
    uint64_t reply_bytes; /* sent */
    size_t held_bytes;    /* of the body; not those of a source */
    int64_t stall_at_ms;

    /* a source */
    bool source_open;
    bool source_counted;
    bool ended;  /* set by a worker: it has closed the source */
    bool broken; /* the source failed: the body must not look complete */
    bool is_later;
    int64_t later_at_ms;
    int64_t idle_since_ms; /* when it said LATER after its last piece; 0: it did not */
    struct wb_buf piece;
    size_t piece_bytes; /* of the last piece */
    int result;
    unsigned wait_ms, wakes;
};

int64_t wb_httpd_now_ms(void);

/* ---- httpd_conn.c: connections ------------------------------------------------------------------ */

/* Takes over a socket; closes it, or another one, if there are too many. also: of the second listener. */
void wb_httpd_conn_accept(struct wb_httpd *httpd, int fd, const struct sockaddr_storage *address, bool also);

/* Begins to wait for the next request. */
void wb_httpd_conn_wait(struct wb_httpd_conn *c);

/* The request's head is complete: the connection cannot be closed any more to make room for another one. */
void wb_httpd_conn_stop_waiting(struct wb_httpd_conn *c);

/* Sets the only deadline. WB_HTTPD_NEVER: there is none. */
void wb_httpd_conn_set_deadline(struct wb_httpd_conn *c, int64_t at_ms);

/* The deadline has passed. */
void wb_httpd_conn_on_deadline(struct wb_httpd_conn *c);

/* Waits until the socket can be written to, or stops waiting. */
void wb_httpd_conn_want_write(struct wb_httpd_conn *c, bool wanted);

/* Reads again if reading was paused because too much had arrived. */
void wb_httpd_conn_resume(struct wb_httpd_conn *c);

/* Closes after everything was sent: waits a moment, so that the client can read the answer instead of a reset. */
void wb_httpd_conn_finish(struct wb_httpd_conn *c);

/* Closes at once. A body that would look complete because the connection ends is ended with a reset in any case. */
void wb_httpd_conn_cut(struct wb_httpd_conn *c, bool reset);

/* Continues to get rid of a connection that is GONE. */
void wb_httpd_conn_bury(struct wb_httpd_conn *c);

/* Frees what was buried. Called at the end of each callback of the loop. */
void wb_httpd_conn_reap(struct wb_httpd *httpd);

/* ---- httpd_exchange.c: requests and replies ----------------------------------------------------- */

/* Uses what has arrived, as far as it goes. */
void wb_httpd_exchange_advance(struct wb_httpd_conn *c);

/* Bytes of a body have arrived. Returns how many of them belong to it. */
size_t wb_httpd_exchange_feed(struct wb_httpd_conn *c, struct wb_slice bytes);

/* Answers with an error, and closes the connection, because what follows cannot be trusted. */
void wb_httpd_exchange_refuse(struct wb_httpd_conn *c, unsigned status, const char *why);

/* An answer that was held back may leave. */
void wb_httpd_exchange_release(struct wb_httpd_conn *c);

/* The request has waited long enough for its turn: refuses it, unless it is being answered. */
void wb_httpd_exchange_give_up(struct wb_httpd_conn *c);

/* A job of the connection is done. */
void wb_httpd_exchange_done(struct wb_httpd_conn *c);

/* Sends what is there, and decides what comes next. */
void wb_httpd_exchange_pump(struct wb_httpd_conn *c);

/* Forgets the request and its reply, and reports them to the app. */
void wb_httpd_exchange_clear(struct wb_httpd_conn *c);

/* ---- httpd_source.c: bodies made piece by piece ------------------------------------------------- */

/* Asks for the next piece if the client has room for it. */
void wb_httpd_source_ask(struct wb_httpd_conn *c);

/* A piece has been made, or there is none. */
void wb_httpd_source_done(struct wb_httpd_conn *c);

/* A worker has closed the source. */
void wb_httpd_source_ended(struct wb_httpd_conn *c);

/* Closes the source in a worker. */
void wb_httpd_source_close(struct wb_httpd_conn *c);

/* Asks all sources that said LATER. */
void wb_httpd_source_wake_all(struct wb_httpd *httpd);

/* The source need not be asked later any more. */
void wb_httpd_source_forget_later(struct wb_httpd_conn *c);

#endif
