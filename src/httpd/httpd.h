/*
 * httpd.h - the door of httpd: an HTTP/1.1 server that knows nothing about web archives.
 *
 *   loop      one thread: connections, limits, deadlines; parses heads, frames bodies, writes replies
 *   workers   a few threads: each request is handled by one of them, so that handlers may read disks. Some of them
 *             never take requests that may be slow, so that those do not delay the others
 *   source    a body that is made piece by piece, whenever the client has room for more
 *
 * A client pulls: a source is asked for its next piece only when most of the last one has left, so a slow reader costs
 * a buffer and no thread. Everything that a client sends is bounded in size and time (struct wb_httpd_limits), requests
 * whose framing could be read in two ways are refused and their connection is closed, and when all is full, new
 * requests get 503 with Retry-After. A reply that ends early (a failed source, a shutdown) never ends its body
 * properly.
 *
 * Errors that the server itself reports are JSON: {"error":"..."}. docs/design/0028-http-server.md has the reasons.
 */
#ifndef WB_HTTPD_HTTPD_H
#define WB_HTTPD_HTTPD_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- requests ------------------------------------------------------------------------------------ */

enum wb_http_method { WB_HTTP_GET, WB_HTTP_HEAD, WB_HTTP_POST, WB_HTTP_OTHER };

struct wb_http_field {
    struct wb_slice name, value; /* the value without blanks around it */
};

/* Valid until the reply has been handed over. */
struct wb_http_request {
    enum wb_http_method method; /* the handler of GET serves HEAD too: the server leaves the body out */
    struct wb_slice method_text;
    struct wb_slice target; /* as sent, without scheme and authority: begins with '/' */
    struct wb_slice authority; /* what was taken off the target, "http://AUTHORITY/path"; ptr NULL: there was none */
    struct wb_slice path;   /* the target up to '?', as sent, not decoded */
    struct wb_slice query;  /* after '?', as sent; ptr NULL: there is none */
    const struct wb_http_field *fields;
    size_t field_count;
    const struct wb_http_field
        *params; /* of the query, in order, decoded: '+' is a blank, a bad escape stays as sent */
    size_t param_count;
    struct wb_slice body;
    struct wb_slice peer; /* address of the client, as text */
    bool loopback;        /* the client's address is a loopback address */
    bool tls;
    bool also; /* it has arrived at the second address (struct wb_httpd_options) */
};

/* The value of the first field or parameter with this name; ptr NULL: there is none. Field names in any case. */
struct wb_slice wb_http_field(const struct wb_http_request *request, const char *name);
struct wb_slice wb_http_param(const struct wb_http_request *request, const char *name);

/* A body that is a form: "a=b&c=d", read as a query is. WB_E_INVALID: it has too many parameters. */
struct wb_http_form;
int wb_http_form_read(struct wb_slice body, struct wb_http_form **form_out);
struct wb_slice wb_http_form_value(const struct wb_http_form *form, const char *name); /* ptr NULL: there is none */
void wb_http_form_free(struct wb_http_form *form); /* NULL is fine */

/* Appends the bytes that percent-escapes in `text` stand for. With plus, '+' is a blank. WB_E_INVALID: a bad escape. */
int wb_http_unescape(struct wb_slice text, bool plus, struct wb_buf *out);

/* ---- replies ------------------------------------------------------------------------------------- */

enum wb_http_more {
    WB_HTTP_END,   /* the body is complete */
    WB_HTTP_MORE,  /* something was appended, and there is more */
    WB_HTTP_LATER, /* nothing now: ask again after *wait_ms_out (set to 1,000), or when wb_http_wake() is called */
};

/* A body that is made piece by piece. Its functions are never called by two threads at once. */
struct wb_http_source {
    /*
     * Appends the next piece to out (about 64 KiB to 1 MiB is good); returns an enum wb_http_more, or an error, which
     * closes the connection once the pieces before it have left, so that the client sees an unfinished body. Runs in a
     * worker.
     */
    int (*next)(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out);
    /* Called once, when the body has ended, next() has failed or the client has gone. Runs in a worker. */
    void (*close)(void *source);
};

/* What a handler answers. It begins as 200 without fields or body. */
struct wb_http_reply {
    unsigned status;
    struct wb_buf fields; /* "Name: value\r\n" lines; wb_http_reply_field() appends one */
    struct wb_buf body;   /* unless there is a source */
    const struct wb_http_source *source;
    void *source_context;
    bool close; /* close the connection afterwards */
    /* The answer leaves this much later, from when it is known. admit() may set it for what the handler answers. */
    unsigned delay_ms;
};

/* Appends a field. Bytes that would end the line are dropped from the value, so that nothing can be injected. */
int wb_http_reply_field(struct wb_http_reply *reply, const char *name, struct wb_slice value);

/*
 * Makes the reply an error with this status and message, in place of whatever it was; a source in it is closed. Fields
 * can be added afterwards.
 */
void wb_http_reply_error(struct wb_http_reply *reply, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the server ---------------------------------------------------------------------------------- */

/* All zero means the default, which is in the comment. */
struct wb_httpd_limits {
    /*
     * 10,000, and 2,000 of one address (IPv6: of one /64); at most three quarters of the files the process may open.
     * One more takes the place of the connection (of this address) that has waited longest for a request to be
     * complete, so that idle clients keep nobody out. If there is none, the new one is closed at once.
     */
    size_t connections, connections_per_peer;
    size_t head_bytes; /* 64 KiB for request line and fields together: 414 or 431 */
    size_t fields;     /* 100: 431 */
    size_t queue;      /* 1,000 requests that wait for a worker, and a quarter of that of those that may be slow: 503 */
    size_t held_bytes; /* 256 MiB of replies that clients have not taken: then requests that may be slow get 503 */
    size_t body_bytes; /* 256 MiB for the bodies of all requests that are arriving or handled: 503 */
    unsigned head_ms;  /* 10 s from the first byte of a request to the end of its head: 408 */
    unsigned body_ms;  /* 30 s, and 1 s more for each 16 KiB of the body: 408 */
    unsigned idle_ms;  /* 60 s between requests */
    unsigned stall_ms; /* 5 min in which the client takes nothing of a reply */
    unsigned stop_ms;  /* 5 s for requests under way when the server stops */
    unsigned turn_ms;  /* 10 s that a request which may be slow waits for a worker: 503 */
};

struct wb_httpd_app {
    void *context;
    /* Called in each worker thread when it begins and ends; what they make is passed to handlers. May be NULL. */
    int (*worker_open)(void *context, void **worker_out);
    void (*worker_close)(void *context, void *worker);
    /*
     * Called in the loop when the head of a request has arrived, before its body. Must not wait. Returns 0 and the
     * largest body that may follow, or makes the reply an error and returns 1; then the body is not read.
     */
    int (*admit)(void *context, const struct wb_http_request *head, uint64_t *body_max_out,
                 struct wb_http_reply *reply);
    /*
     * Whether answering may take long: at most half of the workers do such work at once. Called in the loop. NULL: no
     * request is slow.
     */
    bool (*is_slow)(void *context, const struct wb_http_request *request);
    /* Answers a request. Runs in a worker. Whatever it leaves in the reply is sent. */
    void (*handle)(void *context, void *worker, const struct wb_http_request *request, struct wb_http_reply *reply);
    /*
     * Called in the loop after each reply, for counters: also after refusals, where the request may be empty but for
     * the peer, and if the client left before it had everything. bytes: those that were sent, head included. May be
     * NULL.
     */
    void (*served)(void *context, const struct wb_http_request *request, unsigned status, uint64_t bytes,
                   uint64_t microseconds);
    /*
     * Called in the loop when the certificate was read again; err < 0: it cannot be used, and the one before stays.
     * May be NULL.
     */
    void (*certified)(void *context, int err);
    /* Called in each worker that has nothing to do, after wb_httpd_rest(). May be NULL. */
    void (*rest)(void *context, void *worker);
};

struct wb_httpd_options {
    struct wb_slice listen;        /* "127.0.0.1:8080", "localhost:80", "[::1]:0", "*:80"; port 0 picks a free one */
    struct wb_slice listen_also;   /* a second address, of the same kind; empty: there is none */
    /*
     * PEM files: TLS; NULL: plain HTTP. No key: it is in the file of the certificate. They are read again when the
     * process gets SIGHUP (os/hangup.h), so the names must stay valid.
     */
    const char *certificate, *key;
    unsigned workers;              /* 0: four for each processor */
    struct wb_httpd_limits limits;
    struct wb_httpd_app app;
};

struct wb_httpd;

/* Binds and begins to listen; nothing is accepted before wb_httpd_run(). The message of an error names the address. */
int wb_httpd_new(const struct wb_httpd_options *options, struct wb_httpd **httpd_out);

/* The address as in a URL: "127.0.0.1:40123", "[::1]:8080". Valid as long as the server. */
const char *wb_httpd_address(const struct wb_httpd *httpd);

/* The same for the second address; NULL if there is none. */
const char *wb_httpd_also_address(const struct wb_httpd *httpd);

/* Whether only this machine can reach it, under both addresses. */
bool wb_httpd_is_loopback(const struct wb_httpd *httpd);

/*
 * Whether clients reach the server under this host: the address on which it listens, or any address of the machine if
 * it listens on all; and, where loopback addresses lead to it, all of these and "localhost". IPv6 in brackets, in any
 * spelling. Names of the machine are not known here.
 */
bool wb_httpd_has_address(const struct wb_httpd *httpd, struct wb_slice host);
bool wb_httpd_also_has_address(const struct wb_httpd *httpd, struct wb_slice host);

/*
 * Serves until a stop is requested (os/stop.h) or wb_httpd_stop() is called; then accepts nothing more, cuts sources
 * that say LATER, lets other requests under way finish for stop_ms, cuts the rest, and returns 0 when all workers have
 * ended. It can be called once.
 */
int wb_httpd_run(struct wb_httpd *httpd);

/* A test seam, from any thread: the program stops on signals (os/stop.h). */
void wb_httpd_stop(struct wb_httpd *httpd);

/* From any thread: sources that said WB_HTTP_LATER are asked again soon. */
void wb_http_wake(struct wb_httpd *httpd);

/* From any thread: workers let go of what is out of date, each as soon as it has nothing to do. */
void wb_httpd_rest(struct wb_httpd *httpd);

struct wb_httpd_stat {
    uint64_t connections;       /* open */
    uint64_t accepted, refused; /* connections since the start; refused: closed for lack of room */
    uint64_t requests, sources; /* under way */
    uint64_t waiting;           /* for a worker */
};

/* From any thread. */
void wb_httpd_stat(struct wb_httpd *httpd, struct wb_httpd_stat *stat_out);

/* NULL is fine. It must not be running. */
void wb_httpd_free(struct wb_httpd *httpd);

#endif
