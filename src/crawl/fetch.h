/*
 * fetch.h - HTTP requests: libcurl's multi interface inside a libevent loop.
 *
 * It asks for one URL at one address that was resolved and approved before, never
 * follows a redirect and never resolves a name by itself. Every answer is bounded in body, head, time and
 * decompression, and ends in exactly one callback.
 */
#ifndef WB_CRAWL_FETCH_H
#define WB_CRAWL_FETCH_H

#include "base/buf.h"
#include "crawl/dns.h"

/* The table of what can go wrong: name, the word that results and logs use ("error:timeout"). */
#define WB_FETCH_ERRORS(X)                                              \
    X(WB_FETCH_OK, "")                                                  \
    X(WB_FETCH_CONNECT, "connect")     /* refused, no route, reset before an answer */ \
    X(WB_FETCH_TIMEOUT, "timeout")                                      \
    X(WB_FETCH_TLS, "tls")             /* handshake or certificate */   \
    X(WB_FETCH_PARTIAL, "partial")     /* cut by the peer in the body */ \
    X(WB_FETCH_RESET, "reset")         /* connection lost */            \
    X(WB_FETCH_EMPTY, "empty")         /* closed without an answer */   \
    X(WB_FETCH_PROTOCOL, "protocol")   /* no HTTP, bad chunks, bad lengths */ \
    X(WB_FETCH_HEADERS, "headers")     /* more of them than the limit */ \
    X(WB_FETCH_CODING, "coding")       /* content or transfer coding broken or unknown */ \
    X(WB_FETCH_BOMB, "bomb")           /* decompression ratio over the limit */ \
    X(WB_FETCH_MEMORY, "memory")                                        \
    X(WB_FETCH_STOPPED, "stopped")     /* cancelled by us */            \
    X(WB_FETCH_FILES, "files")         /* no file descriptor was left for a connection: nothing was sent */ \
    X(WB_FETCH_OTHER, "other")

enum wb_fetch_error {
#define WB_FETCH_ERROR_ENUM(name, word) name,
    WB_FETCH_ERRORS(WB_FETCH_ERROR_ENUM)
#undef WB_FETCH_ERROR_ENUM
};
const char *wb_fetch_error_word(enum wb_fetch_error error);

struct wb_fetch_options {
    const char *user_agent;
    const char *proxy;         /* NULL: none, whatever the environment says; with one, it is the proxy that resolves names */
    const char *ca_file;       /* NULL: the system's */
    unsigned timeout_ms;       /* for the whole answer, 0: 30000; 20 s with less than 16 bytes a second are too long in any case */
    unsigned connect_ms;       /* 0: 10000 */
    size_t body_max;           /* 0: 16 MiB; more is cut and marked */
    size_t head_max;           /* all header lines together, interim answers and trailers too, 0: 64 KiB */
    unsigned ratio_max;        /* decoded to coded bytes once a MiB is decoded, 0: 200 */
    size_t memory_max;         /* bodies being read, all together, 0: 128 MiB: past it the longest are cut */
    unsigned connections_max;  /* open at a time, in use and kept, 0: 1000; more requests wait inside libcurl */
};

struct wb_fetch_request {
    struct wb_slice url;             /* absolute, http or https; its fragment and user info are not sent */
    struct wb_address address;
    struct wb_slice etag, modified;  /* validators; empty: none. One with control characters or over 1024 bytes is not sent */
    size_t body_max;                 /* 0: the option's */
    bool fresh;                      /* on a new connection, with HTTP/1.1: the last one ended without a response */
};

struct wb_fetch_result {
    enum wb_fetch_error error;
    const char *message;     /* words for an error, valid in the callback */
    uint16_t status;         /* of the final answer, 0: none; set for some errors too */
    struct wb_slice head;    /* status line and headers of it as received, each with its line end, no blank line; HTTP/2's as HTTP/1.1 would have
                                them: "HTTP/1.1 200 ", names in lower case. What came of it, where there is an error */
    struct wb_buf body;      /* content and transfer coding undone; the callback may take it. Empty where there is an error */
    bool truncated;          /* cut by our limits */
    uint64_t wire_bytes;     /* of the body as it came, without the framing of chunks */
    int64_t sent_ms;         /* wb_clock_now_ms() when the request was sent (or begun, where it never was) */
    uint32_t took_ms;        /* from begin to end */
    bool reused;             /* it went over a connection that had been used before */
    bool unanswered;         /* ...which ended without a byte of a response: asking again on a new one may well succeed */
};

typedef void (*wb_fetch_done)(void *context, struct wb_fetch_result *result);

struct wb_fetcher;
int wb_fetcher_new(struct event_base *base, const struct wb_fetch_options *options, struct wb_fetcher **fetcher_out);

/* Cancels what is under way, without callbacks. Not from a callback. */
void wb_fetcher_free(struct wb_fetcher *fetcher);

/*
 * Nothing is sent before control is back in the event loop. done is called from the loop, once; it may start requests.
 * WB_E_INVALID for what is no URL to fetch, WB_E_NOMEM; then done is not called.
 */
int wb_fetch_start(struct wb_fetcher *fetcher, const struct wb_fetch_request *request, wb_fetch_done done, void *context);

/*
 * Ends every request for which wanted(its context) is true with WB_FETCH_STOPPED and these words. done is called before
 * this returns. Not from a callback.
 */
void wb_fetch_stop(struct wb_fetcher *fetcher, bool (*wanted)(void *context), const char *words);

/* The process's clock was moved (wb_clock_follow): so are the times of requests under way. */
void wb_fetcher_shift(struct wb_fetcher *fetcher, int64_t by_ms);

unsigned wb_fetcher_busy(const struct wb_fetcher *fetcher);

#endif
