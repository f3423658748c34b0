/*
 * surt.c - the sort order of URLs: a key with its host's labels turned round.
 *
 *   www.example.com/a?q        com,example,www)/a?q
 *   example.com:8080/          com,example:8080)/
 *   192.0.2.9/x                192.0.2.9)/x             addresses are not turned round
 *   ftp://example.com/x        com,example)ftp:/x       the scheme follows the site
 *   mailto:x                   mailto:x                 no host: the key itself
 *
 * All SURTs of a site, and no others, begin with its host, port and ')': a site is
 * one range. "www." is a label like any other for the same reason. Different keys
 * have different SURTs: a ',' ')' or '%' in a host is escaped, and '.' stays in
 * addresses only.
 */
#include "url/escape.h"
#include "url/host.h"
#include "url/site.h"
#include "url/url.h"

static char *put_label(char *out, const char *from, const char *end)
{
    for (const char *p = from; p < end; p++) {
        if (*p == ',' || *p == ')' || *p == '%')
            out = wb_escape_byte(out, *p);
        else
            *out++ = *p;
    }
    return out;
}

static char *put_reversed(char *out, struct wb_slice host)
{
    const char *end = host.ptr + host.len;

    for (const char *p = end;; p--) {
        if (p > host.ptr && p[-1] != '.')
            continue;
        out = put_label(out, p, end);
        if (p == host.ptr)
            return out;
        *out++ = ',';
        end = p - 1;
    }
}

int wb_key_surt(struct wb_slice key, struct wb_buf *surt_out)
{
    struct wb_slice site = wb_key_site(key);

    wb_buf_clear(surt_out);
    if (site.len == 0)
        return wb_buf_append_slice(surt_out, key);
    int err = wb_buf_reserve(surt_out, key.len + 2 * site.len + 2);
    if (err < 0)
        return err;

    struct wb_slice host = wb_site_host(site);
    char *out = surt_out->ptr;
    if (host.len > 0 && host.ptr[0] != '[' && !wb_address_ends_in_number(host))
        out = put_reversed(out, host);
    else
        out = put_label(out, host.ptr, host.ptr + host.len);
    memcpy(out, host.ptr + host.len, site.len - host.len);
    out += site.len - host.len;
    *out++ = ')';
    if (site.ptr > key.ptr) {
        size_t scheme = (size_t)(site.ptr - key.ptr) - 2; /* with its ':', without "//" */
        memcpy(out, key.ptr, scheme);
        out += scheme;
    }
    size_t rest = (size_t)(key.ptr + key.len - site.ptr) - site.len;
    memcpy(out, site.ptr + site.len, rest);
    out += rest;
    surt_out->len = (size_t)(out - surt_out->ptr);
    return 0;
}
