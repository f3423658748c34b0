/* dns_override.h - private to crawl: addresses that the user names, as curl's --resolve does. */
#ifndef WB_FETCH_DNS_OVERRIDE_H
#define WB_FETCH_DNS_OVERRIDE_H

#include "fetch/fetch.h"

struct wb_dns_override {
    struct wb_dns_override *next;
    char *host;    /* lower case; "*" or ".suffix" where wild */
    bool wild;
    bool any_port;
    uint16_t port;
    struct wb_address addresses[WB_DNS_ADDRESSES_MAX];
    unsigned count;
};

/* Reads HOST:PORT:ADDR[,ADDR...] into a new one at the end of *list. WB_E_INVALID naming text. */
int wb_dns_override_add(struct wb_dns_override **list, const char *text);

/* The first that fits, those that name the host itself before "*". A host that is an address (literal) is meant only by its name. */
const struct wb_dns_override *wb_dns_override_find(const struct wb_dns_override *list, struct wb_slice host, uint16_t port,
                                                   bool literal);
void wb_dns_override_free(struct wb_dns_override *list);

#endif
