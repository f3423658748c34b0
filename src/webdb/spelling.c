/*
 * spelling.c - between the URL of a page and its SURT.
 *
 * Nearly every URL is "http://" or "https://", its normal form, and perhaps a slash that the normal form has dropped.
 * That is two bits beside the SURT, which is the key of the row anyway. User info, an empty query, or an escape that
 * the normal form writes differently make it necessary to store the whole text.
 *
 * Nothing is guessed: the two bits are used only if they lead back to exactly the same bytes.
 */
#include "webdb/spelling.h"
#include "base/check.h"
#include "base/error.h"

#define HTTP WB_SLICE_LIT("http://")
#define HTTPS WB_SLICE_LIT("https://")

_Static_assert((WB_SPELLING_HTTPS | WB_SPELLING_SLASH) < WB_SPELLING_TEXT, "a spelling is valid if it is at most TEXT");

/* The site without ":port" at its end. */
static struct wb_slice without_port(struct wb_slice site)
{
    size_t len = site.len;

    while (len > 0 && site.ptr[len - 1] >= '0' && site.ptr[len - 1] <= '9')
        len--;
    return wb_slice(site.ptr, len > 0 && site.ptr[len - 1] == ':' ? len - 1 : site.len);
}

/* Whether a host is an IPv4 address: digits and dots, with a digit at the end. */
static bool is_address(struct wb_slice host)
{
    WB_CHECK(host.len > 0);
    for (size_t i = 0; i < host.len; i++)
        if (host.ptr[i] != '.' && (host.ptr[i] < '0' || host.ptr[i] > '9'))
            return false;
    return host.ptr[host.len - 1] != '.';
}

/*
 * Whether `turned`, labels separated by commas, is the host with its labels in reverse order. Returns false for names
 * that may be addresses.
 */
static bool is_turned(struct wb_slice turned, struct wb_slice host)
{
    const char *at = turned.ptr, *end = at + turned.len, *host_end = host.ptr + host.len;

    WB_CHECK(turned.ptr != NULL);
    WB_CHECK(host.ptr != NULL);
    if (turned.len != host.len || turned.len == 0 || host.ptr[0] == '[')
        return false;
    /* If the last label is empty or could be a number, the host may be an address: store the text. */
    if (*at == ',' || (*at >= '0' && *at <= '9'))
        return false;
    for (;;) {
        const char *label = at;
        while (at < end && *at != ',')
            at++;
        size_t len = (size_t)(at - label);
        if ((size_t)(host_end - host.ptr) < len || memcmp(host_end - len, label, len) != 0)
            return false;
        host_end -= len;
        if (at == end)
            return host_end == host.ptr;
        if (host_end == host.ptr || host_end[-1] != '.')
            return false;
        host_end--;
        at++;
    }
}

/*
 * Whether the site of a URL and the site part of a SURT (up to the ')') are the same. This is true only if the url room
 * would turn the one into the other; anything that does not look like a host is refused.
 */
static bool same_site(struct wb_slice turned, struct wb_slice site)
{
    struct wb_slice a = without_port(turned), b = without_port(site);

    WB_CHECK(turned.ptr != NULL);
    WB_CHECK(site.ptr != NULL);
    if (turned.len != site.len || a.len != b.len)
        return false;
    if (memcmp(turned.ptr + a.len, site.ptr + b.len, site.len - b.len) != 0)
        return false;
    if (a.len == 0 || memchr(a.ptr, '%', a.len) || site.ptr[site.len - 1] == ':')
        return false;
    if (a.ptr[0] == '[')
        return wb_slice_equal(a, b) && !memchr(a.ptr, '?', a.len);
    if (is_address(a))
        return wb_slice_equal(a, b);
    return !memchr(a.ptr, '.', a.len) && !memchr(a.ptr, ':', a.len) && is_turned(a, b);
}

unsigned wb_spelling_of(struct wb_slice surt, struct wb_slice url)
{
    unsigned spelling = 0;
    size_t begin = HTTP.len, end;

    WB_CHECK(url.ptr != NULL);
    WB_CHECK(surt.len == 0 || surt.ptr != NULL);
    if (wb_slice_starts(url, HTTPS)) {
        spelling = WB_SPELLING_HTTPS;
        begin = HTTPS.len;
    } else if (!wb_slice_starts(url, HTTP)) {
        return WB_SPELLING_TEXT;
    }
    const char *close = surt.len > 0 ? memchr(surt.ptr, ')', surt.len) : NULL;
    const char *slash = memchr(url.ptr + begin, '/', url.len - begin);
    if (!close || close == surt.ptr || !slash)
        return WB_SPELLING_TEXT;
    end = (size_t)(slash - url.ptr);
    struct wb_slice key_path = wb_slice(close + 1, (size_t)(surt.ptr + surt.len - close) - 1);
    struct wb_slice path = wb_slice(slash, url.len - end);
    if (path.len == key_path.len + 1 && path.ptr[path.len - 1] == '/' && !memchr(path.ptr, '?', path.len)) {
        spelling |= WB_SPELLING_SLASH;
        path.len--;
    }
    struct wb_slice turned = wb_slice(surt.ptr, (size_t)(close - surt.ptr));
    if (!wb_slice_equal(path, key_path) || !same_site(turned, wb_slice(url.ptr + begin, end - begin)))
        return WB_SPELLING_TEXT;
    return spelling;
}

static int no_page_surt(struct wb_slice surt)
{
    return wb_fail(WB_E_CORRUPT, "'%.*s' is not the SURT of a page", surt.len > 160 ? 160 : (int)surt.len, surt.ptr);
}

int wb_spelling_url(struct wb_slice surt, unsigned spelling, size_t more, struct wb_buf *mem)
{
    struct wb_slice scheme = spelling & WB_SPELLING_HTTPS ? HTTPS : HTTP;
    const char *close = surt.len > 0 ? memchr(surt.ptr, ')', surt.len) : NULL;

    WB_CHECK(spelling < WB_SPELLING_TEXT);
    WB_CHECK(mem != NULL);
    WB_CHECK(surt.len == 0 || surt.ptr != mem->ptr); /* mem is cleared before the SURT is read */
    wb_buf_clear(mem);
    if (!close || close + 1 == surt.ptr + surt.len || close[1] != '/')
        return no_page_surt(surt);
    int err = wb_buf_reserve(mem, surt.len + HTTPS.len + 2 + more);
    if (err == 0)
        err = wb_surt_to_key(surt, mem);
    if (err < 0)
        return err == WB_E_INVALID ? no_page_surt(surt) : err;
    if (wb_key_site(wb_buf_slice(mem)).len == 0)
        return no_page_surt(surt);
    memmove(mem->ptr + scheme.len, mem->ptr, mem->len);
    memcpy(mem->ptr, scheme.ptr, scheme.len);
    mem->len += scheme.len;
    if (spelling & WB_SPELLING_SLASH)
        mem->ptr[mem->len++] = '/';
    WB_CHECK(mem->len <= mem->cap);
    WB_CHECK(mem->cap - mem->len >= more);
    return 0;
}

int wb_spelling_surt(struct wb_slice text, struct wb_url *url, struct wb_buf *key, struct wb_buf *surt_out)
{
    WB_CHECK(url != NULL);
    WB_CHECK(text.ptr != NULL);
    WB_CHECK(surt_out != key);
    wb_buf_clear(surt_out);
    int err = wb_url_parse(text, NULL, url);
    if (err == 0 && !wb_url_is_http(url))
        return wb_fail(WB_E_INVALID, "%.*s is neither http nor https", text.len > 160 ? 160 : (int)text.len, text.ptr);
    if (err == 0)
        err = wb_url_key(url, key);
    if (err == 0)
        err = wb_surt_of_key(wb_buf_slice(key), surt_out);
    return err == WB_E_PROTO || err == WB_E_LIMIT ? WB_E_INVALID : err;
}

int wb_spelling_id(struct wb_slice surt, struct wb_buf *key, struct wb_pageid *id_out)
{
    WB_CHECK(key != NULL);
    WB_CHECK(surt.len == 0 || surt.ptr != key->ptr);
    *id_out = (struct wb_pageid){0, 0};
    int err = wb_surt_to_key(surt, key);
    if (err == 0)
        *id_out = wb_pageid_of_key(wb_buf_slice(key));
    return err == WB_E_INVALID ? no_page_surt(surt) : err;
}

int wb_spelling_site_surt(struct wb_slice site, struct wb_buf *surt_out)
{
    struct wb_buf key = WB_BUF_INIT;

    WB_CHECK(site.len == 0 || site.ptr != NULL);
    wb_buf_clear(surt_out);
    int err = wb_buf_append_slice(&key, site);
    if (err == 0)
        err = wb_buf_append_char(&key, '/');
    if (err == 0 && (site.len == 0 || site.len > WB_URL_MAX_BYTES || wb_key_site(wb_buf_slice(&key)).len != site.len))
        err = wb_fail(WB_E_INVALID, "'%.*s' is not a host", site.len > 160 ? 160 : (int)site.len, site.ptr);
    if (err == 0)
        err = wb_surt_of_key(wb_buf_slice(&key), surt_out);
    if (err == 0) {
        WB_CHECK(surt_out->len >= 2);
        WB_CHECK(surt_out->ptr[surt_out->len - 1] == '/');
        WB_CHECK(surt_out->ptr[surt_out->len - 2] == ')');
        surt_out->len--; /* without the slash */
    }
    wb_buf_release(&key);
    return err;
}
