/*
 * fetch.h - the door of fetch: one request and its response.
 *
 * A caller that wants a page takes three steps, and asks robots.txt before the last:
 *
 *   wb_dns_resolve()      name -> addresses
 *   wb_address_private()  says which of these must not be contacted
 *   wb_robots_check()     says whether the site allows the URL, once its robots.txt was parsed
 *   wb_fetch_start()      URL and address -> one callback, with head and body or the kind of error
 *
 * Everything runs inside a libevent loop that the caller owns, in one thread, and nothing here waits. This room never
 * decides what is fetched or when, never follows a redirect, never sends a request twice, and stores nothing on disk.
 *
 * In this header: addresses, names, requests, robots.txt.
 */
#ifndef WB_FETCH_FETCH_H
#define WB_FETCH_FETCH_H

#include "base/buf.h"

#include <netinet/in.h>
#include <stdatomic.h>

struct event_base;

/* ---- addresses (fetch_address.c) ------------------------------------------------------------------------------- */

/* An address of IPv4 or IPv6. */
struct wb_address {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t bytes[16];
};

#define WB_ADDRESS_TEXT_MAX 48

/* Reads "192.0.2.1" or "2001:db8::1", without brackets. */
bool wb_address_parse(struct wb_slice text, struct wb_address *address_out);
void wb_address_format(const struct wb_address *address, char text_out[WB_ADDRESS_TEXT_MAX]);
bool wb_address_equal(const struct wb_address *a, const struct wb_address *b);

/*
 * Returns NULL if a public site can have this address. Otherwise returns a word that says why not: "loopback",
 * "private", "link-local", "shared", "multicast", "unspecified", "reserved", "documentation" and others. An IPv6
 * address that contains an IPv4 address in one of the standard ways is judged by that one, too.
 */
const char *wb_address_private(const struct wb_address *address);

/* ---- names (dns.c) --------------------------------------------------------------------------------------------- */

/*
 * Resolves names with c-ares. Answers are cached until they expire (by their TTL, held within bounds), negative ones
 * too. Questions are sent at a limited rate. No question is needed for a name that is an address, that an override
 * names, or that ends in ".localhost" or ".invalid" (RFC 6761).
 */
struct wb_dns;

enum wb_dns_status {
    WB_DNS_OK,
    WB_DNS_NONE,    /* there is no such name (NXDOMAIN) */
    WB_DNS_FAILED,  /* no answer, a bad answer, or a name without addresses: worth asking again later */
};

#define WB_DNS_ADDRESSES_MAX 8

struct wb_dns_answer {
    enum wb_dns_status status;
    struct wb_address addresses[WB_DNS_ADDRESSES_MAX]; /* IPv4 first */
    unsigned count;
    int64_t expires_ms;   /* by the time of day */
    const char *message;  /* if the status is not OK: why, a static text */
};

struct wb_dns_options {
    const char *servers;  /* "127.0.0.1:5353", separated by commas; NULL: those of the system */
    unsigned rate;        /* questions per second; 0: 100 */
    unsigned timeout_ms;  /* for one try; 0: 3000 */
    unsigned tries;       /* 0: 3 */
    unsigned cache_max;   /* names in the cache; 0: 100000. The oldest are forgotten first */
};

int wb_dns_new(struct event_base *base, const struct wb_dns_options *options, struct wb_dns **dns_out);

/* Callbacks that are due are not called any more. */
void wb_dns_free(struct wb_dns *dns);

/*
 * Fixes the address of a host, as curl's --resolve does: "HOST:PORT:ADDR[,ADDR...]", IPv6 in brackets. HOST may be
 * "*" or "*.suffix", PORT may be "*". WB_E_INVALID with a message that quotes text.
 */
int wb_dns_override(struct wb_dns *dns, const char *text);

typedef void (*wb_dns_done)(void *context, const struct wb_dns_answer *answer);

/*
 * Resolves a host, given without brackets. Calls done later, or before it returns if the answer is known. WB_E_NOMEM
 * is the only error; then done is not called.
 */
int wb_dns_resolve(struct wb_dns *dns, struct wb_slice host, uint16_t port, wb_dns_done done, void *context);

/* ---- requests (fetch.c) ---------------------------------------------------------------------------------------- */

/*
 * Sends requests with libcurl. Each is for one URL at one address that was resolved and approved before. Every
 * response is bounded in body, head, time and decompression, and ends in exactly one callback.
 */
struct wb_fetcher;

/* What can go wrong, and the word for it in results and logs ("error:timeout"). This is the only table of them. */
#define WB_FETCH_ERRORS(X)                                                                                \
    X(WB_FETCH_OK, "")                                                                                    \
    X(WB_FETCH_CONNECT, "connect")   /* refused, no route, reset before a response */                     \
    X(WB_FETCH_TIMEOUT, "timeout")                                                                        \
    X(WB_FETCH_TLS, "tls")           /* handshake or certificate */                                       \
    X(WB_FETCH_PARTIAL, "partial")   /* the peer ended the body too early */                              \
    X(WB_FETCH_RESET, "reset")       /* the connection broke */                                           \
    X(WB_FETCH_EMPTY, "empty")       /* closed without a response */                                      \
    X(WB_FETCH_PROTOCOL, "protocol") /* not HTTP, bad chunks, bad lengths */                              \
    X(WB_FETCH_HEADERS, "headers")   /* more header lines than the limit */                               \
    X(WB_FETCH_CODING, "coding")     /* a content or transfer coding is damaged or unknown */             \
    X(WB_FETCH_BOMB, "bomb")         /* the body unpacks to more than ratio_max times its size */         \
    X(WB_FETCH_MEMORY, "memory")                                                                          \
    X(WB_FETCH_STOPPED, "stopped")   /* wb_fetch_stop() ended it */                                       \
    X(WB_FETCH_FILES, "files")       /* no file descriptor was left for a connection; nothing was sent */ \
    X(WB_FETCH_OTHER, "other")

enum wb_fetch_error {
#define WB_FETCH_ERROR_ENUM(name, word) name,
    WB_FETCH_ERRORS(WB_FETCH_ERROR_ENUM)
#undef WB_FETCH_ERROR_ENUM
};
const char *wb_fetch_error_word(enum wb_fetch_error error);

/*
 * A bandwidth that several fetchers share, also those of other processes if it is in memory that they share. While more
 * was received than the rate allows, responses are left in the network: nothing is read from their sockets. Time spent
 * that way does not count towards the timeout of a request. All bytes zero: no limit. (fetch_pace.c)
 */
struct wb_fetch_pace {
    uint64_t rate;        /* bytes per second, of heads and bodies as received; 0: no limit */
    atomic_llong due_ns;  /* private */
};

/* For how long nothing should be received; 0: something may be. A caller that starts requests should wait, too. */
int64_t wb_fetch_pace_wait_ns(const struct wb_fetch_pace *pace);
void wb_fetch_pace_charge(struct wb_fetch_pace *pace, size_t bytes);

struct wb_fetch_options {
    const char *user_agent;
    const char *proxy;         /* NULL: none, whatever the environment says. A proxy resolves names itself */
    const char *ca_file;       /* NULL: that of the system */
    unsigned timeout_ms;       /* for the whole response; 0: 30000. 20 s with less than 16 bytes/s end it in any case */
    unsigned connect_ms;       /* 0: 10000 */
    size_t body_max;           /* 0: 16 MiB; a longer body is cut and marked */
    size_t head_max;           /* all header lines together, with interim responses and trailers; 0: 64 KiB */
    unsigned ratio_max;        /* decoded to coded bytes, checked from 1 MiB decoded on; 0: 200 */
    size_t memory_max;         /* all bodies under way together; 0: 128 MiB. Beyond it the longest are cut */
    struct wb_fetch_pace *pace; /* NULL: no limit; must outlive the fetcher */
    unsigned connections_max;  /* open at a time, in use or idle; 0: 1000. Further requests wait inside libcurl */
};

struct wb_fetch_request {
    struct wb_slice url;             /* absolute, http or https; fragment and user info are not sent */
    struct wb_address address;
    struct wb_slice etag, modified;  /* validators, or empty; not sent if over 1024 bytes or with controls */
    size_t body_max;                 /* 0: that of the options */
    bool fresh;                      /* use a new connection and HTTP/1.1: the last one ended without a response */
};

struct wb_fetch_result {
    enum wb_fetch_error error;
    const char *message;     /* what went wrong, in words; valid during the callback */
    uint16_t status;         /* of the final response; 0: none came. Set for some errors, too */
    struct wb_slice head;    /* status line and headers as received, with line ends, without the blank line. Those of
                                HTTP/2 are written as in HTTP/1.1: "HTTP/1.1 200 ", names in lower case */
    struct wb_buf body;      /* with its codings undone; the callback may take it. Empty if there is an error */
    bool truncated;          /* cut by our limits */
    uint64_t wire_bytes;     /* length of the body as received, without the framing of chunks */
    int64_t sent_ms;         /* wb_clock_now_ms() when the request was sent, or started if it never was sent */
    int64_t heard_ms;        /* when the first bytes of the answer came, so the server had the request; 0: none came */
    uint32_t took_ms;        /* from start to end */
    bool reused;             /* sent over a connection that had been used before */
    bool unanswered;         /* the connection ended without a byte of a response: a new one may well succeed */
};

typedef void (*wb_fetch_done)(void *context, struct wb_fetch_result *result);

int wb_fetcher_new(struct event_base *base, const struct wb_fetch_options *options, struct wb_fetcher **fetcher_out);

/* Cancels requests under way without calling back. Must not be called from a callback. */
void wb_fetcher_free(struct wb_fetcher *fetcher);

/*
 * Starts a request. Nothing is sent before control returns to the event loop. done is called once, from the loop; it
 * may start other requests. WB_E_INVALID if the URL cannot be fetched, WB_E_NOMEM; then done is not called.
 */
int wb_fetch_start(struct wb_fetcher *fetcher, const struct wb_fetch_request *request, wb_fetch_done done,
                   void *context);

/*
 * Ends every request whose context makes wanted() return true, with WB_FETCH_STOPPED and these words. Calls done
 * before it returns. Must not be called from a callback.
 */
void wb_fetch_stop(struct wb_fetcher *fetcher, bool (*wanted)(void *context), const char *words);

/* The process's clock was moved (wb_clock_follow): moves the times of requests under way by the same amount. */
void wb_fetcher_shift(struct wb_fetcher *fetcher, int64_t by_ms);

/* ---- robots.txt (robots.c) ------------------------------------------------------------------------------------- */

/*
 * A robots.txt (RFC 9309), as far as it concerns one agent: the rules of all groups that name it, or of the "*"
 * groups if none does. Of the rules that match a URL the longest decides; of two equally long ones, Allow does.
 */
struct wb_robots;

#define WB_ROBOTS_BYTES_MAX (512u << 10) /* of a robots.txt; the rest is ignored */

/*
 * agent is a product token ("webbase") or a whole User-Agent, of which the part before the first '/' or blank counts.
 */
int wb_robots_parse(struct wb_slice text, struct wb_slice agent, struct wb_robots **robots_out);
void wb_robots_free(struct wb_robots *robots);

struct wb_robots_verdict {
    bool allowed;
    uint32_t line;         /* the line of the rule that decides, from 1; 0: no rule matches */
    struct wb_slice rule;  /* that line, trimmed: "Disallow: /private"; borrowed from robots */
};

/* url is absolute, or a path with its query. */
void wb_robots_check(const struct wb_robots *robots, struct wb_slice url, struct wb_robots_verdict *verdict_out);

/* The Crawl-delay for the agent; -1: none. */
int64_t wb_robots_delay_ms(const struct wb_robots *robots);

/* The URL of the i-th Sitemap line, as written. False after the last one. */
bool wb_robots_sitemap(const struct wb_robots *robots, size_t i, struct wb_slice *url_out);

#endif
