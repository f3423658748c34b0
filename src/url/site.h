/* site.h - sites: "example.com", "example.com:8080", "[::1]:81". Private to url; wb_site_domain() is in url.h. */
#ifndef WB_URL_SITE_H
#define WB_URL_SITE_H

#include "base/slice.h"

/* The host of a site, without the port. An IPv6 address keeps its brackets. */
static inline struct wb_slice wb_site_host(struct wb_slice site)
{
    size_t len = site.len;

    while (len > 0 && site.ptr[len - 1] >= '0' && site.ptr[len - 1] <= '9')
        len--;
    return wb_slice(site.ptr, len > 0 && site.ptr[len - 1] == ':' ? len - 1 : site.len);
}

#endif
