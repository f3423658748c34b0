/*
 * site.c - the registrable domain of a site, by the public suffix list.
 *
 * The list is the one that is built into libpsl, including its private section ("github.io" is a suffix). It is
 * constant data: it needs no loading, and any thread may use it.
 */
#include "url/site.h"
#include "url/hostaddress.h"
#include "url/url.h"

#include <libpsl.h>

/* The DNS has no longer names, and neither has the list. */
#define DOMAIN_MAX_BYTES 255

struct wb_slice wb_site_domain(struct wb_slice site)
{
    struct wb_slice host = wb_site_host(site), name = host;
    char text[DOMAIN_MAX_BYTES + 1];

    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len == 0 || name.len > DOMAIN_MAX_BYTES || name.ptr[0] == '[' || wb_hostaddress_ends_in_number(name))
        return host;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    const char *domain = psl_registrable_domain(psl_builtin(), text);
    return domain ? wb_slice(name.ptr + (domain - text), strlen(domain)) : host;
}
