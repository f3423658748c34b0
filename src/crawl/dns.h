/*
 * dns.h - names to addresses without ever waiting: c-ares inside a libevent loop.
 *
 * Answers are cached until they expire (TTL, held within bounds), negative ones too; questions
 * go out at a set rate. A name that is an address, that --resolve names, or that ends in
 * ".localhost" or ".invalid" (RFC 6761) needs no question.
 */
#ifndef WB_CRAWL_DNS_H
#define WB_CRAWL_DNS_H

#include "base/slice.h"

#include <netinet/in.h>

struct event_base;

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

#endif
