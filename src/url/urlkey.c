/*
 * urlkey.c - the keys of web archives' indexes: SURTs as pywb, cdxj-indexer and the Wayback Machine make them.
 *
 *   normal form            www.Example.com:8080/A//b/%7Ec/?z=1&a=2
 *   URL key                com,example:8080)/a/b/~c?a=2&z=1
 *
 * They join pages that we keep apart: "www." and "www2." are dropped, upper case, doubled slashes and the order of
 * arguments do not matter, and some ids of sessions are left out. So there may be several pages under a key, and all
 * spellings of a page have the same one. The rules are those of the package `surt` (IAURLCanonicalizer over
 * GoogleURLCanonicalizer), byte by byte; docs/formats/wacz.md lists them. Unlike our own SURTs (surt.c) they cannot be
 * turned back into URLs.
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/vec.h"
#include "url/url.h"

#include <stdlib.h>
#include <string.h>

/* ---- escapes ------------------------------------------------------------------------------- */

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = wb_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Replaces the content of out by text with all escapes undone, again and again until there are none left ("%2541" is
 * "A"). Undoing one escape never spoils another, so it suffices to look for one at the end of what has been written.
 */
static int undo_escapes(struct wb_slice text, struct wb_buf *out)
{
    wb_buf_clear(out);
    int err = wb_buf_reserve(out, text.len + 1);
    size_t n = 0;

    for (size_t i = 0; err == 0 && i < text.len; i++) {
        out->ptr[n++] = text.ptr[i];
        while (n >= 3 && out->ptr[n - 3] == '%' && digit_value(out->ptr[n - 2]) >= 0 &&
               digit_value(out->ptr[n - 1]) >= 0) {
            out->ptr[n - 3] = (char)(digit_value(out->ptr[n - 2]) * 16 + digit_value(out->ptr[n - 1]));
            n -= 2;
        }
    }
    out->len = n;
    return err;
}

/* Appends bytes in lower case, with those escaped that cannot be in a URL, and '%' and '#'. */
static int append_escaped(struct wb_buf *out, struct wb_slice text)
{
    static const char digits[] = "0123456789abcdef";
    int err = wb_buf_reserve(out, 3 * text.len + 1);

    for (size_t i = 0; err == 0 && i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c > ' ' && c < 0x7f && c != '%' && c != '#') {
            out->ptr[out->len++] = wb_ascii_lower((char)c);
        } else {
            out->ptr[out->len++] = '%';
            out->ptr[out->len++] = digits[c >> 4];
            out->ptr[out->len++] = digits[c & 15];
        }
    }
    return err;
}

/* ---- host ---------------------------------------------------------------------------------- */

static struct wb_slice without_www(struct wb_slice host)
{
    size_t n = 3;

    if (!wb_slice_starts_nocase(host, WB_SLICE_LIT("www")))
        return host;
    while (n < host.len && wb_ascii_is_digit(host.ptr[n]))
        n++;
    return n + 1 < host.len && host.ptr[n] == '.' ? wb_slice(host.ptr + n + 1, host.len - n - 1) : host;
}

/* Appends the labels of a host in reverse order, with commas between them. Addresses are reversed, too. */
static int append_reversed(struct wb_slice host, struct wb_buf *out)
{
    while (host.len > 0 && host.ptr[host.len - 1] == '.')
        host.len--;
    for (size_t end = host.len;;) {
        const char *dot = end ? memrchr(host.ptr, '.', end) : NULL;
        size_t at = dot ? (size_t)(dot - host.ptr) + 1 : 0;
        int err = append_escaped(out, wb_slice(host.ptr + at, end - at));
        if (err < 0 || !dot)
            return err;
        err = wb_buf_append_char(out, ',');
        if (err < 0)
            return err;
        end = at - 1;
    }
}

/* site: a host with or without a port; the host may be an IPv6 address in brackets. */
static int append_site(struct wb_slice site, struct wb_buf *out)
{
    const char *close = memrchr(site.ptr, ']', site.len);
    const char *colon = memrchr(site.ptr, ':', site.len);
    size_t host = colon && (!close || colon > close) ? (size_t)(colon - site.ptr) : site.len;
    int err = append_reversed(without_www(wb_slice(site.ptr, host)), out);

    if (err == 0)
        err = wb_buf_append(out, site.ptr + host, site.len - host);
    return err < 0 ? err : wb_buf_append_char(out, ')');
}

/* ---- path ---------------------------------------------------------------------------------- */

/* Removes "." and "..", empty segments, and a slash at the end, in place. The result begins with a slash. */
static int tidy_path(struct wb_buf *path)
{
    WB_VEC(struct wb_slice) kept = WB_VEC_INIT;
    struct wb_buf tidy = WB_BUF_INIT;
    int err = 0;

    for (size_t at = 0; err == 0 && at < path->len;) {
        const char *slash = memchr(path->ptr + at, '/', path->len - at);
        size_t end = slash ? (size_t)(slash - path->ptr) : path->len;
        struct wb_slice segment = wb_slice(path->ptr + at, end - at);
        if (wb_slice_equal(segment, WB_SLICE_LIT("..")) && kept.count > 0)
            kept.count--;
        else if (segment.len > 0 && !wb_slice_equal(segment, WB_SLICE_LIT(".")))
            err = wb_vec_push(&kept, segment);
        at = end + 1;
    }
    if (err == 0)
        err = wb_buf_reserve(&tidy, path->len + 2);
    for (size_t i = 0; err == 0 && i < kept.count; i++) {
        err = wb_buf_append_char(&tidy, '/');
        if (err == 0)
            err = wb_buf_append_slice(&tidy, kept.items[i]);
    }
    if (err == 0 && tidy.len == 0)
        err = wb_buf_append_char(&tidy, '/');
    wb_vec_release(&kept);
    wb_buf_release(path);
    *path = tidy;
    return err;
}

static bool is_alnum(char c)
{
    return wb_ascii_is_digit(c) || wb_ascii_is_letter(c);
}

/* The end of "(24 letters and digits)" at `at`, or `at`. */
static size_t skip_id(struct wb_slice path, size_t at)
{
    size_t n = at + 1;

    if (at >= path.len || path.ptr[at] != '(')
        return at;
    while (n < path.len && is_alnum(path.ptr[n]))
        n++;
    return n == at + 25 && n < path.len && path.ptr[n] == ')' ? n + 1 : at;
}

/* The end of a segment that is an id of ASP.NET, "(id)" or "(a(id)s(id))", with its slash; or `at`. */
static size_t skip_session(struct wb_slice path, size_t at)
{
    size_t end = skip_id(path, at), inner = at + 1;

    if (end == at && at < path.len && path.ptr[at] == '(') {
        while (inner < path.len && wb_ascii_is_letter(path.ptr[inner])) {
            size_t next = skip_id(path, inner + 1);
            if (next == inner + 1)
                break;
            inner = next;
        }
        end = inner > at + 1 && inner < path.len && path.ptr[inner] == ')' ? inner + 1 : at;
    }
    return end > at && end < path.len && path.ptr[end] == '/' ? end + 1 : at;
}

/* Removes the last id of a session before an .aspx page: "/(4hqa0555fwsecu455xqckv45)/mileg.aspx". */
static void drop_path_session(struct wb_buf *path)
{
    struct wb_slice text = wb_buf_slice(path);

    for (size_t at = text.len; at-- > 0;) {
        if (text.ptr[at] != '/')
            continue;
        size_t end = skip_session(text, at + 1);
        if (end == at + 1)
            continue;
        struct wb_slice rest = wb_slice(text.ptr + end, text.len - end);
        const char *question = rest.len ? memchr(rest.ptr, '?', rest.len) : NULL;
        size_t before = question ? (size_t)(question - rest.ptr) : rest.len;
        if (before < 6 || !memmem(rest.ptr + 1, before - 1, ".aspx", 5))
            continue;
        memmove(path->ptr + at + 1, path->ptr + end, path->len - end);
        path->len -= end - at - 1;
        return;
    }
}

static int append_path(struct wb_slice path, struct wb_buf *scratch, struct wb_buf *out)
{
    struct wb_buf lower = WB_BUF_INIT;
    int err = undo_escapes(path, scratch);

    if (err == 0)
        err = tidy_path(scratch);
    if (err == 0)
        err = append_escaped(&lower, wb_buf_slice(scratch));
    if (err == 0) {
        drop_path_session(&lower);
        err = wb_buf_append_slice(out, wb_buf_slice(&lower));
    }
    wb_buf_release(&lower);
    return err;
}

/* ---- query --------------------------------------------------------------------------------- */

/* A name of an argument whose value is an id of a session, and what the value looks like. */
static const struct {
    struct wb_slice name;
    size_t more;    /* letters that follow the name */
    size_t len;     /* of the value */
    bool letters;   /* of the value: letters only */
} sessions[] = {
    {{"jsessionid=", 11}, 0, 32, false},
    {{"phpsessid=", 10}, 0, 32, false},
    {{"sid=", 4}, 0, 32, false},
    {{"aspsessionid", 12}, 8, 24, true},
};

/* The end of such an argument at `at`, or `at` if there is none. It must end with the query or before a '&'. */
static size_t skip_argument(struct wb_slice query, size_t at, size_t kind)
{
    size_t n = at + sessions[kind].name.len;

    if (!wb_slice_starts(wb_slice(query.ptr + at, query.len - at), sessions[kind].name))
        return at;
    if (sessions[kind].more) {
        for (size_t i = 0; i < sessions[kind].more; i++, n++)
            if (n >= query.len || !wb_ascii_is_letter(query.ptr[n]))
                return at;
        if (n >= query.len || query.ptr[n++] != '=')
            return at;
    }
    for (size_t i = 0; i < sessions[kind].len; i++, n++)
        if (n >= query.len || !(sessions[kind].letters ? wb_ascii_is_letter(query.ptr[n]) : is_alnum(query.ptr[n])))
            return at;
    return n == query.len || query.ptr[n] == '&' ? n : at;
}

/* "cfid=...&cftoken=..." at `at`. */
static size_t skip_coldfusion(struct wb_slice query, size_t at)
{
    static const struct wb_slice names[] = {{"cfid=", 5}, {"&cftoken=", 9}};
    size_t n = at;

    for (size_t i = 0; i < 2; i++) {
        if (!wb_slice_starts(wb_slice(query.ptr + n, query.len - n), names[i]))
            return at;
        n += names[i].len;
        size_t value = n;
        while (n < query.len && query.ptr[n] != '&')
            n++;
        if (n == value)
            return at;
    }
    return n;
}

/* Removes the last argument of a kind, with the '&' after it. Only places where its name may begin are looked at. */
static void drop_argument(struct wb_buf *query, size_t kind)
{
    struct wb_slice text = wb_buf_slice(query);
    bool coldfusion = kind == sizeof sessions / sizeof *sessions;
    char first = coldfusion ? 'c' : sessions[kind].name.ptr[0];

    for (const char *p = text.ptr + text.len; (p = memrchr(text.ptr, first, (size_t)(p - text.ptr)));) {
        size_t at = (size_t)(p - text.ptr);
        size_t end = coldfusion ? skip_coldfusion(text, at) : skip_argument(text, at, kind);
        if (end == at)
            continue;
        end += end < query->len;
        memmove(query->ptr + at, query->ptr + end, query->len - end);
        query->len -= end - at;
        return;
    }
}

static void drop_query_sessions(struct wb_buf *query)
{
    for (size_t kind = 0; kind <= sizeof sessions / sizeof *sessions; kind++)
        drop_argument(query, kind);
}

/* By name, then those without a value, then by value: not simply as bytes, because '=' is not the lowest of them. */
static int compare_arguments(const void *a, const void *b)
{
    struct wb_slice x = *(const struct wb_slice *)a, y = *(const struct wb_slice *)b;
    const char *x_equals = x.len ? memchr(x.ptr, '=', x.len) : NULL;
    const char *y_equals = y.len ? memchr(y.ptr, '=', y.len) : NULL;
    struct wb_slice x_name = x_equals ? wb_slice(x.ptr, (size_t)(x_equals - x.ptr)) : x;
    struct wb_slice y_name = y_equals ? wb_slice(y.ptr, (size_t)(y_equals - y.ptr)) : y;
    int by_name = wb_slice_compare(x_name, y_name);

    return by_name ? by_name : wb_slice_compare(x, y);
}

static int append_sorted(struct wb_slice query, struct wb_buf *out)
{
    WB_VEC(struct wb_slice) parts = WB_VEC_INIT;
    int err = 0;

    for (bool more = true; more && err == 0;) {
        const char *end = query.len ? memchr(query.ptr, '&', query.len) : NULL;
        size_t len = end ? (size_t)(end - query.ptr) : query.len;
        err = wb_vec_push(&parts, wb_slice(query.ptr, len));
        more = end != NULL;
        query = wb_slice(query.ptr + len + more, query.len - len - more);
    }
    if (err == 0)
        qsort(parts.items, parts.count, sizeof *parts.items, compare_arguments);
    for (size_t i = 0; i < parts.count && err == 0; i++) {
        err = wb_buf_append_char(out, i ? '&' : '?');
        if (err == 0)
            err = wb_buf_append_slice(out, parts.items[i]);
    }
    wb_vec_release(&parts);
    return err;
}

static int append_query(struct wb_slice query, struct wb_buf *scratch, struct wb_buf *out)
{
    struct wb_buf lower = WB_BUF_INIT;
    int err = undo_escapes(query, scratch);

    if (err == 0)
        err = append_escaped(&lower, wb_buf_slice(scratch));
    if (err == 0)
        drop_query_sessions(&lower);
    if (err == 0 && lower.len)
        err = append_sorted(wb_buf_slice(&lower), out);
    wb_buf_release(&lower);
    return err;
}

/* ---- the whole ----------------------------------------------------------------------------- */

int wb_urlkey_of_key(struct wb_slice key, struct wb_buf *urlkey_out)
{
    struct wb_slice site = wb_key_site(key);
    struct wb_buf scratch = WB_BUF_INIT;

    wb_buf_clear(urlkey_out);
    if (site.len == 0)
        return wb_buf_append_slice(urlkey_out, key);
    struct wb_slice path = wb_slice(site.ptr + site.len, (size_t)(key.ptr + key.len - site.ptr) - site.len);
    const char *question = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    struct wb_slice query = WB_SLICE_EMPTY;
    if (question) {
        query = wb_slice(question + 1, (size_t)(path.ptr + path.len - question) - 1);
        path.len = (size_t)(question - path.ptr);
    }
    int err = append_site(site, urlkey_out);
    if (err == 0)
        err = append_path(path, &scratch, urlkey_out);
    if (err == 0 && query.len)
        err = append_query(query, &scratch, urlkey_out);
    if (urlkey_out->len > WB_URLKEY_MAX)
        urlkey_out->len = WB_URLKEY_MAX;
    wb_buf_release(&scratch);
    return err;
}

int wb_urlkey_of_url(struct wb_slice url, struct wb_buf *urlkey_out)
{
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    wb_buf_clear(urlkey_out);
    int err = wb_url_parse(url, NULL, &parsed);
    if (err == 0)
        err = wb_url_key(&parsed, &key);
    if (err == 0)
        err = wb_urlkey_of_key(wb_buf_slice(&key), urlkey_out);
    else if (err != WB_E_NOMEM)
        err = wb_buf_append_slice(urlkey_out, url);
    wb_buf_release(&key);
    wb_url_release(&parsed);
    return err;
}
