/*
 * surt.c - the sort order of URLs: keys in which the labels of the host are reversed.
 *
 *   www.example.com/a?q        com,example,www)/a?q
 *   example.com:8080/          com,example:8080)/
 *   192.0.2.9/x                192.0.2.9)/x             addresses are not reversed
 *   ftp://example.com/x        com,example)ftp:/x       the scheme follows the site
 *   mailto:x                   mailto:x                 no host: the SURT is the key
 *
 * All SURTs of a site, and no others, begin with its host, its port and ')': so the pages of a site are one range. For
 * the same reason "www." is a label like any other. Different keys have different SURTs: a ',', ')' or '%' in a host is
 * escaped, and only addresses have a '.'.
 */
#include "base/check.h"
#include "base/error.h"
#include "url/escape.h"
#include "url/hostaddress.h"
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

int wb_surt_of_key(struct wb_slice key, struct wb_buf *surt_out)
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
    if (host.len > 0 && host.ptr[0] != '[' && !wb_hostaddress_ends_in_number(host))
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
    WB_CHECK(surt_out->len <= surt_out->cap);
    return 0;
}

/* ---- from a SURT to its key ------------------------------------------------------------------------ */

/* Undoes put_label(). Returns NULL if put_label() cannot have written this. */
static char *take_label(char *out, const char *from, const char *end)
{
    for (const char *p = from; p < end; p++) {
        if (*p != '%') {
            *out++ = *p;
            continue;
        }
        int value = wb_escape_value(p, end);
        if (value != ',' && value != ')' && value != '%')
            return NULL;
        char again[3];
        wb_escape_byte(again, (char)value);
        if (memcmp(p, again, 3) != 0)
            return NULL;
        *out++ = (char)value;
        p += 2;
    }
    return out;
}

static char *take_reversed(char *out, struct wb_slice host)
{
    const char *end = host.ptr + host.len;

    for (const char *p = end; out; p--) {
        if (p > host.ptr && p[-1] != ',')
            continue;
        out = take_label(out, p, end);
        if (p == host.ptr || !out)
            return out;
        *out++ = '.';
        end = p - 1;
    }
    return out;
}

/* Writes the host that a SURT begins with. Returns NULL if no host gives this SURT. */
static char *take_host(char *out, struct wb_slice text)
{
    bool reversed = text.ptr[0] != '[' && !memchr(text.ptr, '.', text.len);
    char *end = reversed ? take_reversed(out, text) : take_label(out, text.ptr, text.ptr + text.len);

    if (!end || (!reversed && memchr(text.ptr, ',', text.len)))
        return NULL;
    struct wb_slice host = wb_slice(out, (size_t)(end - out));
    bool address = host.ptr[0] == '[' || wb_hostaddress_ends_in_number(host);
    /* A single label is the same in both directions. */
    bool single = reversed && !memchr(host.ptr, '.', host.len);
    return single || reversed != address ? end : NULL;
}

/* Writes the key of a SURT that has a host. Returns false if no key has this SURT. */
static bool take_key(struct wb_slice surt, size_t site_len, struct wb_buf *key)
{
    struct wb_slice text = wb_slice(surt.ptr, site_len);
    struct wb_slice rest = wb_slice(surt.ptr + site_len + 1, surt.len - site_len - 1);
    struct wb_slice host_text = wb_site_host(text);
    char *out = key->ptr;
    size_t scheme = 0;

    if (host_text.len == 0)
        return false;
    if (rest.len > 0 && rest.ptr[0] != '/' && rest.ptr[0] != '?') {
        while (scheme < rest.len && rest.ptr[scheme] != ':' && rest.ptr[scheme] != '/')
            scheme++;
        if (scheme++ >= rest.len || rest.ptr[scheme - 1] != ':')
            return false;
        memcpy(out, rest.ptr, scheme);
        memcpy(out + scheme, "//", 2);
        out += scheme + 2;
    }
    char *host = out;
    out = take_host(out, host_text);
    if (!out)
        return false;
    size_t host_len = (size_t)(out - host);
    memcpy(out, host_text.ptr + host_text.len, site_len - host_text.len);
    out += site_len - host_text.len;
    struct wb_slice site = wb_slice(host, (size_t)(out - host));
    memcpy(out, rest.ptr + scheme, rest.len - scheme);
    out += rest.len - scheme;
    key->len = (size_t)(out - key->ptr);
    /* The key must have the host and port that we took from the SURT. */
    struct wb_slice read = wb_key_site(wb_buf_slice(key));
    return read.ptr == site.ptr && read.len == site.len && wb_site_host(site).len == host_len;
}

/* A key without a host ("scheme:rest", or empty) is its own SURT. */
static bool is_hostless_key(struct wb_slice text)
{
    size_t at = 0;

    while (at < text.len && wb_byte_is(text.ptr[at], WB_BYTE_SCHEME))
        at++;
    if (text.len > 0 && (at == text.len || text.ptr[at] != ':' || !wb_ascii_is_letter(text.ptr[0])))
        return false;
    return wb_key_site(text).len == 0;
}

int wb_surt_to_key(struct wb_slice surt, struct wb_buf *key_out)
{
    const char *close = surt.len > 0 ? memchr(surt.ptr, ')', surt.len) : NULL;

    wb_buf_clear(key_out);
    int err = wb_buf_reserve(key_out, surt.len + 2);
    if (err < 0)
        return err;
    if (close && take_key(surt, (size_t)(close - surt.ptr), key_out))
        return 0;
    wb_buf_clear(key_out);
    if (is_hostless_key(surt))
        return wb_buf_append_slice(key_out, surt);
    return wb_fail(WB_E_INVALID, "'%.*s' is not a SURT", surt.len > 160 ? 160 : (int)surt.len, surt.ptr);
}

struct wb_slice wb_surt_site(struct wb_slice surt)
{
    const char *end = surt.len ? memchr(surt.ptr, ')', surt.len) : NULL;

    return wb_slice(surt.ptr, end ? (size_t)(end + 1 - surt.ptr) : surt.len);
}
