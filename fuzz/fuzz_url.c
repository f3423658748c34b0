/*
 * fuzz_url.c - arbitrary bytes as URLs: whatever is accepted is consistent.
 *
 * The input is a URL, or a base and a URL with a NUL between them.
 *   - the parts are in order inside href, and href is ASCII without blanks at its ends
 *   - parsing href gives the same href with the same parts, with or without a base
 *   - parsing the key gives the same key, the same site and the same id
 *   - the URL key is in lower case and without blanks, and without user and password a URL has the same key
 *   - the site is the host and port of the URL, and the domain is part of it; in a SURT, ')' ends the site
 */
#include "base/check.h"
#include "base/error.h"
#include "url/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(const struct wb_url *u)
{
    const uint32_t at[] = {0, u->scheme_end, u->username_at, u->username_end, u->password_at, u->password_end,
                           u->host_at, u->host_end, u->port_at, u->port_end, u->path_at, u->path_end,
                           u->query_at, u->query_end, u->fragment_at, (uint32_t)u->href.len};

    WB_CHECK(u->href.len <= WB_URL_MAX_BYTES && u->href.len > 0);
    for (size_t i = 1; i < sizeof at / sizeof *at; i++)
        WB_CHECK(at[i - 1] <= at[i]);
    for (size_t i = 0; i < u->href.len; i++)
        WB_CHECK((uint8_t)u->href.ptr[i] >= 0x20 && (uint8_t)u->href.ptr[i] < 0x7f);
    WB_CHECK(u->href.ptr[u->scheme_end] == ':');
    WB_CHECK(!u->has_query || u->href.ptr[u->query_at - 1] == '?');
    WB_CHECK(!u->has_fragment || u->href.ptr[u->fragment_at - 1] == '#');
    WB_CHECK(!u->special || (u->has_host && !u->opaque_path && u->href.ptr[u->path_at] == '/'));
}

static void check_same(const struct wb_url *a, const struct wb_url *b)
{
    WB_CHECK(wb_slice_equal(wb_url_href(a), wb_url_href(b)));
    WB_CHECK(a->scheme_end == b->scheme_end && a->username_at == b->username_at && a->username_end == b->username_end);
    WB_CHECK(a->password_at == b->password_at && a->password_end == b->password_end);
    WB_CHECK(a->host_at == b->host_at && a->host_end == b->host_end);
    WB_CHECK(a->port_at == b->port_at && a->port_end == b->port_end);
    WB_CHECK(a->path_at == b->path_at && a->path_end == b->path_end);
    WB_CHECK(a->query_at == b->query_at && a->query_end == b->query_end && a->fragment_at == b->fragment_at);
    WB_CHECK(a->has_host == b->has_host && a->has_query == b->has_query && a->has_fragment == b->has_fragment);
    WB_CHECK(a->opaque_path == b->opaque_path && a->special == b->special);
}

static void check_surt(struct wb_slice key, struct wb_slice site)
{
    struct wb_buf surt = WB_BUF_INIT;

    WB_CHECK(wb_surt_of_key(key, &surt) == 0);
    struct wb_slice domain = wb_site_domain(site);
    WB_CHECK(domain.ptr >= site.ptr && domain.ptr + domain.len <= site.ptr + site.len);
    if (site.len == 0)
        WB_CHECK(wb_slice_equal(wb_buf_slice(&surt), key));
    else
        WB_CHECK(surt.len >= key.len - 1 && memchr(surt.ptr, ')', surt.len));
    wb_buf_release(&surt);
}

/* A URL key is one word of ASCII without capitals; a URL without its user and password is the same page. */
static void check_urlkey(const struct wb_url *url, struct wb_slice key)
{
    struct wb_buf urlkey = WB_BUF_INIT, memory = WB_BUF_INIT;
    struct wb_url again = WB_URL_INIT;
    struct wb_slice public;

    WB_CHECK(wb_urlkey_of_key(key, &urlkey) == 0 && urlkey.len > 0);
    for (size_t i = 0; wb_key_site(key).len && i < urlkey.len; i++)
        WB_CHECK(urlkey.ptr[i] > ' ' && urlkey.ptr[i] < 0x7f && (urlkey.ptr[i] < 'A' || urlkey.ptr[i] > 'Z'));
    WB_CHECK(wb_url_public(wb_url_href(url), &memory, &public) == 0);
    if (url->has_host && wb_url_parse(public, NULL, &again) == 0) {
        WB_CHECK(again.username_at == again.username_end && again.password_at == again.password_end);
        WB_CHECK(wb_url_key(&again, &urlkey) == 0 && wb_slice_equal(wb_buf_slice(&urlkey), key));
    }
    wb_url_release(&again);
    wb_buf_release(&urlkey);
    wb_buf_release(&memory);
}

static void check_key(const struct wb_url *url)
{
    struct wb_url again = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, text = WB_BUF_INIT, twin = WB_BUF_INIT;

    int err = wb_url_key(url, &key);
    WB_CHECK(err == WB_E_LIMIT ? key.len == 0 : err == 0 && key.len > 0);
    if (err < 0)
        goto done;
    struct wb_slice site = wb_key_site(wb_buf_slice(&key));
    WB_CHECK(site.ptr >= key.ptr && site.ptr + site.len <= key.ptr + key.len);
    WB_CHECK(wb_slice_equal(site, url->has_host ? wb_slice(url->href.ptr + url->host_at, url->port_end - url->host_at)
                                                : WB_SLICE_EMPTY));
    check_surt(wb_buf_slice(&key), site);
    check_urlkey(url, wb_buf_slice(&key));
    if (wb_url_is_http(url)) {
        WB_CHECK(wb_buf_append_slice(&text, wb_url_scheme(url)) == 0);
        WB_CHECK(wb_buf_append_str(&text, "://") == 0);
    }
    WB_CHECK(wb_buf_append_slice(&text, wb_buf_slice(&key)) == 0);
    err = wb_url_parse(wb_buf_slice(&text), NULL, &again);
    /* '%' became "%25", so that with its scheme a key near the limit may exceed it. */
    WB_CHECK(err == 0 || (err == WB_E_LIMIT && text.len > WB_URL_MAX_BYTES));
    if (err == 0) {
        WB_CHECK(wb_url_key(&again, &twin) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&key), wb_buf_slice(&twin)));
        WB_CHECK(wb_pageid_equal(wb_pageid_of_key(wb_buf_slice(&key)), wb_pageid_of_key(wb_buf_slice(&twin))));
    }
done:
    wb_url_release(&again);
    wb_buf_release(&key);
    wb_buf_release(&text);
    wb_buf_release(&twin);
}

static void check_url(struct wb_slice input, const struct wb_url *base)
{
    struct wb_url url = WB_URL_INIT, again = WB_URL_INIT;

    int err = wb_url_parse(input, base, &url);
    if (err == 0) {
        check_parts(&url);
        WB_CHECK(wb_url_parse(wb_url_href(&url), NULL, &again) == 0);
        check_same(&url, &again);
        if (base) {
            WB_CHECK(wb_url_parse(wb_url_href(&url), base, &again) == 0);
            check_same(&url, &again);
        }
        check_key(&url);
    } else {
        WB_CHECK((err == WB_E_PROTO || err == WB_E_LIMIT) && url.href.len == 0);
    }
    wb_url_release(&url);
    wb_url_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice input = wb_slice(size ? (const char *)data : "", size);
    const char *nul = memchr(input.ptr, 0, size);
    struct wb_url base = WB_URL_INIT;

    check_url(input, NULL);
    if (nul && wb_url_parse(wb_slice(input.ptr, (size_t)(nul - input.ptr)), NULL, &base) == 0)
        check_url(wb_slice(nul + 1, (size_t)(input.ptr + size - nul - 1)), &base);
    struct wb_slice site = wb_key_site(input);
    check_surt(input, site);
    wb_url_release(&base);
    return 0;
}
