/*
 * domain.c - registrable domains by the public suffix list.
 *
 * The list is the one built into libpsl, private section included ("github.io" is
 * a suffix): constant data, so it is ready at once and any thread may ask.
 */
#include "url/host.h"
#include "url/site.h"

#include <libpsl.h>

/* The DNS takes no longer name; the list has none. */
#define DOMAIN_MAX_BYTES 255

struct wb_slice wb_site_domain(struct wb_slice site)
{
    struct wb_slice host = wb_site_host(site), name = host;
    char text[DOMAIN_MAX_BYTES + 1];

    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len == 0 || name.len > DOMAIN_MAX_BYTES || name.ptr[0] == '[' || wb_address_ends_in_number(name))
        return host;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    const char *domain = psl_registrable_domain(psl_builtin(), text);
    return domain ? wb_slice(name.ptr + (domain - text), strlen(domain)) : host;
}
