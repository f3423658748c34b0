/*
 * dns_ares.h - c-ares inside a libevent loop: one question, one answer. Used by dns.c only, which caches answers and
 * limits the rate of questions.
 */
#ifndef WB_FETCH_DNS_ARES_H
#define WB_FETCH_DNS_ARES_H

#include "fetch/fetch.h"

struct wb_dns_ares;

/* question is what was given to wb_dns_ares_ask(). answer->expires_ms is the TTL in ms here; -1: there is none. */
typedef void (*wb_dns_ares_done)(void *context, void *question, const struct wb_dns_answer *answer);

/*
 * The options have their defaults filled in. WB_E_INVALID with a message that names the servers, WB_E_NOMEM, WB_E_IO.
 */
int wb_dns_ares_new(struct event_base *base, const struct wb_dns_options *options, wb_dns_ares_done done, void *context,
                    struct wb_dns_ares **ares_out);

/* done is not called any more. Must not be called from inside done. */
void wb_dns_ares_free(struct wb_dns_ares *ares);

/* Asks for the addresses of a name. done may be called before this returns. */
void wb_dns_ares_ask(struct wb_dns_ares *ares, const char *name, void *question);

#endif
