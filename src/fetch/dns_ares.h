/* dns_ares.h - private to crawl: c-ares inside a libevent loop. Asks; remembers nothing. */
#ifndef WB_FETCH_DNS_ARES_H
#define WB_FETCH_DNS_ARES_H

#include "fetch/fetch.h"

struct wb_dns_ares;

/* question is what wb_dns_ares_ask() was given; answer->expires_ms holds the TTL in ms, -1: none is told. */
typedef void (*wb_dns_ares_done)(void *context, void *question, const struct wb_dns_answer *answer);

/* Defaults are already filled in. WB_E_INVALID naming the servers, WB_E_NOMEM, WB_E_IO. */
int wb_dns_ares_new(struct event_base *base, const struct wb_dns_options *options, wb_dns_ares_done done, void *context,
                    struct wb_dns_ares **ares_out);

/* Nothing is called back any more. Not from inside done. */
void wb_dns_ares_free(struct wb_dns_ares *ares);

/* done may be called before this returns. */
void wb_dns_ares_ask(struct wb_dns_ares *ares, const char *name, void *question);

#endif
