/* site.h - a site's host and port. Private to url. */
#ifndef WB_URL_SITE_H
#define WB_URL_SITE_H

#include "base/slice.h"

/* The host of a site, without its port; the brackets of an IPv6 address belong to it. */
static inline struct wb_slice wb_site_host(struct wb_slice site)
{
    size_t len = site.len;

    while (len > 0 && site.ptr[len - 1] >= '0' && site.ptr[len - 1] <= '9')
        len--;
    return wb_slice(site.ptr, len > 0 && site.ptr[len - 1] == ':' ? len - 1 : site.len);
}

#endif
