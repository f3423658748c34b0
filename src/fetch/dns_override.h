/* dns_override.h - addresses that the user gives, as with curl's --resolve. Used by dns.c only. */
#ifndef WB_FETCH_DNS_OVERRIDE_H
#define WB_FETCH_DNS_OVERRIDE_H

#include "fetch/fetch.h"

struct wb_dns_override {
    struct wb_dns_override *next;
    char *host;    /* lower case; "*" or ".suffix" if wild */
    bool wild;
    bool any_port;
    uint16_t port;
    struct wb_address addresses[WB_DNS_ADDRESSES_MAX];
    unsigned count;
};

/* Reads HOST:PORT:ADDR[,ADDR...] and appends it to *list. WB_E_INVALID with a message that quotes text. */
int wb_dns_override_add(struct wb_dns_override **list, const char *text);

/*
 * Finds the first override that fits; those that name the host come before those with "*". If host is an address itself
 * (literal), only an override with exactly that name fits.
 */
const struct wb_dns_override *wb_dns_override_find(const struct wb_dns_override *list, struct wb_slice host,
                                                   uint16_t port, bool literal);
void wb_dns_override_free(struct wb_dns_override *list);

#endif
