/*
 * key.c - the normal form of a URL, which names the page, and the site in it.
 *
 *   http, https       host[:port]/path[?query]
 *   with a host       scheme://host[:port]/path[?query]
 *   without           scheme:/path[?query]      scheme:opaque[?query]
 *
 * A key says which of these it is: it is the first one unless there is a ':' before any '/' that is not followed by a
 * port and a '/'. "localhost:8080/x" is a URL of the scheme "localhost"; so that its key does not look like
 * a host and port, the first digit of such an opaque path is escaped. Normalising a key gives the same key.
 * Nothing here parses: a key is made from the parts of a parsed URL.
 */
#include "base/check.h"
#include "base/error.h"
#include "url/escape.h"
#include "url/url.h"

static char *put(char *out, struct wb_slice s)
{
    memcpy(out, s.ptr, s.len);
    return out + s.len;
}

/*
 * Writes text with its escapes in upper case, and those of unreserved characters undone. One pass is enough: a '%' that
 * does not begin an escape becomes "%25", because it could become part of one otherwise ("%%36%31" would be "%61").
 */
static char *put_normal(char *out, struct wb_slice text)
{
    const char *p = text.ptr, *end = p + text.len;

    for (;;) {
        const char *percent = memchr(p, '%', (size_t)(end - p));
        if (!percent)
            return put(out, wb_slice(p, (size_t)(end - p)));
        out = put(out, wb_slice(p, (size_t)(percent - p)));
        int value = wb_escape_value(percent, end);
        if (value >= 0 && wb_byte_is((char)value, WB_BYTE_UNRESERVED))
            *out++ = (char)value;
        else
            out = wb_escape_byte(out, value < 0 ? '%' : (char)value);
        p = percent + (value < 0 ? 1 : 3);
    }
}

static char *put_path(char *out, const struct wb_url *url, bool has_query)
{
    struct wb_slice path = wb_url_path(url);

    if (!has_query)
        while (path.len > 0 && path.ptr[path.len - 1] == '/')
            path.len--;
    if (path.len == 0)
        path = WB_SLICE_LIT("/");
    if (!url->has_host && path.len >= 2 && path.ptr[1] == '/')
        out = put(out, WB_SLICE_LIT("/."));
    char *start = out;
    out = put_normal(out, path);
    /* An escape that was undone may have hidden a drive letter "C|", which is written "C:". */
    bool file = url->special && url->href.ptr[0] == 'f';
    if (file && out - start >= 3 && wb_ascii_is_letter(start[1]) && start[2] == '|' &&
        (out - start == 3 || start[3] == '/'))
        start[2] = ':';
    return out;
}

static char *put_opaque(char *out, struct wb_slice path)
{
    size_t digits = 0;

    while (digits < path.len && wb_ascii_is_digit(path.ptr[digits]))
        digits++;
    if (digits > 0 && digits < path.len && (path.ptr[digits] == '/' || path.ptr[digits] == ')')) {
        out = wb_escape_byte(out, path.ptr[0]);
        path = wb_slice(path.ptr + 1, path.len - 1);
    }
    return put(out, path);
}

int wb_url_key(const struct wb_url *url, struct wb_buf *key_out)
{
    bool has_query = url->query_at < url->query_end;

    WB_CHECK(url->href.len > 0); /* it was parsed */
    wb_buf_clear(key_out);
    /* Every '%' may become three bytes, and an empty path becomes a slash. */
    int err = wb_buf_reserve(key_out, 3 * url->href.len + 8);
    if (err < 0)
        return err;
    char *out = key_out->ptr;
    if (!wb_url_is_http(url)) {
        out = put(out, wb_url_scheme(url));
        out = put(out, url->has_host ? WB_SLICE_LIT("://") : WB_SLICE_LIT(":"));
    }
    out = put(out, wb_slice(url->href.ptr + url->host_at, url->port_end - url->host_at));
    out = url->opaque_path ? put_opaque(out, wb_url_path(url)) : put_path(out, url, has_query);
    if (has_query) {
        *out++ = '?';
        out = url->opaque_path ? put(out, wb_url_query(url)) : put_normal(out, wb_url_query(url));
    }
    size_t len = (size_t)(out - key_out->ptr);
    WB_CHECK(len <= key_out->cap);
    if (len > WB_URL_MAX_BYTES)
        return wb_fail(WB_E_LIMIT, "%.160s...: the normal form of this URL is too long", key_out->ptr);
    key_out->len = len;
    return 0;
}

/* The host and port at the front of text: all up to the first '/' or '?'. */
static struct wb_slice authority_of(struct wb_slice text)
{
    size_t len = 0;

    while (len < text.len && text.ptr[len] != '/' && text.ptr[len] != '?')
        len++;
    return wb_slice(text.ptr, len);
}

struct wb_slice wb_key_site(struct wb_slice key)
{
    size_t at = 0;

    if (key.len > 0 && key.ptr[0] == '[')
        return authority_of(key);
    while (at < key.len && key.ptr[at] != ':' && key.ptr[at] != '/')
        at++;
    if (at == key.len || key.ptr[at] == '/')
        return wb_slice(key.ptr, at);
    size_t digits = at + 1;
    while (digits < key.len && wb_ascii_is_digit(key.ptr[digits]))
        digits++;
    if (digits > at + 1 && digits < key.len && key.ptr[digits] == '/')
        return wb_slice(key.ptr, digits);
    struct wb_slice rest = wb_slice(key.ptr + at, key.len - at);
    if (!wb_slice_starts(rest, WB_SLICE_LIT("://")))
        return wb_slice(key.ptr, 0);
    return authority_of(wb_slice(rest.ptr + 3, rest.len - 3));
}
