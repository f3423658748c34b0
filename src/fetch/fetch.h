/*
 * fetch.h - the door of fetch: one request and its response.
 *
 *   name -> wb_dns_resolve -> addresses -> wb_address_private says which are refused
 *   URL, address -> wb_fetch_start -> one callback with head, body or the kind of error
 *   robots.txt -> wb_robots_parse -> wb_robots_check for each URL
 *
 * Everything runs inside a libevent loop that the caller owns, and nothing waits. It never decides what is
 * fetched or when, never follows a redirect and keeps nothing on disk.
 */
#ifndef WB_FETCH_FETCH_H
#define WB_FETCH_FETCH_H

#include "base/buf.h"

#include <netinet/in.h>

struct event_base;

/* ---- addresses (address.c, address_private.c) --------------------------------------------------- */

struct wb_address {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t bytes[16];
};

#define WB_ADDRESS_TEXT_MAX 48

/* "192.0.2.1" or "2001:db8::1", without brackets. */
bool wb_address_parse(struct wb_slice text, struct wb_address *address_out);
void wb_address_format(const struct wb_address *address, char text_out[WB_ADDRESS_TEXT_MAX]);
bool wb_address_equal(const struct wb_address *a, const struct wb_address *b);

/*
 * Addresses that no public site has: loopback, private, link-local, shared, multicast, unspecified, reserved,
 * documentation, and IPv4 in any of IPv6's wrappings of one of these. Returns words for which it is ("loopback"), or NULL.
 */
const char *wb_address_private(const struct wb_address *address);

/* ---- names (dns.c) ------------------------------------------------------------------------------- */

/*
 * Names to addresses without ever waiting: c-ares inside a libevent loop. Answers are cached until they expire (TTL,
 * held within bounds), negative ones too; questions go out at a set rate. A name that is an address, that --resolve
 * names, or that ends in ".localhost" or ".invalid" (RFC 6761) needs no question.
 */

enum wb_dns_status {
    WB_DNS_OK,
    WB_DNS_NONE,    /* there is no such name (NXDOMAIN): remembered */
    WB_DNS_FAILED,  /* nobody answered, or badly, or the name has no address now: remembered for a moment, and worth asking again */
};

#define WB_DNS_ADDRESSES_MAX 8

struct wb_dns_answer {
    enum wb_dns_status status;
    struct wb_address addresses[WB_DNS_ADDRESSES_MAX]; /* IPv4 first */
    unsigned count;
    int64_t expires_ms;   /* wall clock */
    const char *message;  /* where not OK: words, static */
};

struct wb_dns_options {
    const char *servers;  /* "127.0.0.1:5353", comma-separated; NULL: the system's */
    unsigned rate;        /* questions a second, 0: 100 */
    unsigned timeout_ms;  /* of one try, 0: 3000 */
    unsigned tries;       /* 0: 3 */
    unsigned cache_max;   /* names remembered, 0: 100000; the oldest go first */
};

struct wb_dns;
int wb_dns_new(struct event_base *base, const struct wb_dns_options *options, struct wb_dns **dns_out);
void wb_dns_free(struct wb_dns *dns); /* callbacks that are due are not called */

/* As curl's --resolve: "HOST:PORT:ADDR[,ADDR...]", IPv6 in brackets; HOST may be "*" or "*.suffix", PORT "*". WB_E_INVALID naming text. */
int wb_dns_override(struct wb_dns *dns, const char *text);

typedef void (*wb_dns_done)(void *context, const struct wb_dns_answer *answer);

/* host without brackets. Calls back later or, where the answer is known, at once. WB_E_NOMEM is the only error; then done is not called. */
int wb_dns_resolve(struct wb_dns *dns, struct wb_slice host, uint16_t port, wb_dns_done done, void *context);

struct wb_dns_stat {
    uint64_t asked, answered, failed, cached;
    unsigned waiting; /* questions that wait for their turn or their answer */
};
void wb_dns_stat(const struct wb_dns *dns, struct wb_dns_stat *stat_out);

/* ---- requests (fetch.c) ----------------------------------------------------------------------------- */

/*
 * libcurl's multi interface inside a libevent loop. It asks for one URL at one address that was resolved and approved
 * before, never follows a redirect and never resolves a name by itself. Every answer is bounded in body, head, time and
 * decompression, and ends in exactly one callback.
 */

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

/* ---- robots.txt (robots.c) ---------------------------------------------------------------------------- */

/*
 * RFC 9309. Parsing keeps only what concerns one agent: the rules of its groups merged, or of the "*" groups where none
 * names it. The longest match in octets wins, Allow wins ties.
 */

#define WB_ROBOTS_BYTES_MAX (512u << 10) /* of a robots.txt; the rest is not read */

struct wb_robots;

/* agent: a product token ("webbase"), or a whole User-Agent of which the token is taken: up to the first '/' or blank. */
int wb_robots_parse(struct wb_slice text, struct wb_slice agent, struct wb_robots **robots_out);
void wb_robots_free(struct wb_robots *robots);

struct wb_robots_verdict {
    bool allowed;
    uint32_t line;         /* of the rule that decides, from 1; 0: none does */
    struct wb_slice rule;  /* its text as written, trimmed: "Disallow: /private"; borrowed from robots */
};

/* url: absolute, or a path with its query. */
void wb_robots_check(const struct wb_robots *robots, struct wb_slice url, struct wb_robots_verdict *verdict_out);

/* Crawl-delay of our groups in ms; -1: none. */
int64_t wb_robots_delay_ms(const struct wb_robots *robots);

/* Sitemap lines, as written; false past the last. */
bool wb_robots_sitemap(const struct wb_robots *robots, size_t i, struct wb_slice *url_out);

/* Bytes of memory that it takes. */
size_t wb_robots_bytes(const struct wb_robots *robots);

#endif
