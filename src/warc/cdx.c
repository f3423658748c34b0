/*
 * cdx.c - writes lines of CDX indexes, and the keys under which they are sorted. It reads no archive and no index.
 */
#include "warc/cdx.h"

#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "url/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_MS INT64_C(-62167219200000) /* 0000-01-01 */
#define LAST_MS INT64_C(253402300799999)  /* 9999-12-31, its last millisecond */

void wb_cdx_time(int64_t time_ms, char text_out[WB_CDX_TIME_MAX])
{
    char date[WB_DATE_TEXT_MAX];
    size_t n = 0;

    wb_date_format(time_ms < FIRST_MS ? FIRST_MS : time_ms > LAST_MS ? LAST_MS : time_ms, date);
    for (const char *c = date; *c && n < WB_CDX_TIME_MAX - 1; c++)
        if (wb_ascii_is_digit(*c))
            text_out[n++] = *c;
    WB_CHECK(n == WB_CDX_TIME_MAX - 1);
    text_out[n] = '\0';
}

/* ---- keys ---------------------------------------------------------------------------------- */

static struct wb_slice without_www(struct wb_slice host)
{
    size_t n = 3;

    if (!wb_slice_starts(host, WB_SLICE_LIT("www")))
        return host;
    while (n < host.len && wb_ascii_is_digit(host.ptr[n]))
        n++;
    return n + 1 < host.len && host.ptr[n] == '.' ? wb_slice(host.ptr + n + 1, host.len - n - 1) : host;
}

/* Appends the labels of a host in reverse order, with commas between them. */
static int append_reversed(struct wb_slice host, struct wb_buf *out)
{
    for (size_t end = host.len;;) {
        const char *dot = end ? memrchr(host.ptr, '.', end) : NULL;
        size_t at = dot ? (size_t)(dot - host.ptr) + 1 : 0;
        int err = wb_buf_append(out, host.ptr + at, end - at);
        if (err < 0 || !dot)
            return err;
        err = wb_buf_append_char(out, ',');
        if (err < 0)
            return err;
        end = at - 1;
    }
}

static int compare_slices(const void *a, const void *b)
{
    return wb_slice_compare(*(const struct wb_slice *)a, *(const struct wb_slice *)b);
}

/* Appends the arguments of a query in bytewise order. They must be in lower case already, because that changes it. */
static int append_query(struct wb_slice query, struct wb_buf *out)
{
    WB_VEC(struct wb_slice) parts = WB_VEC_INIT;
    int err = 0;

    for (bool more = true; more && err == 0;) {
        const char *end = memchr(query.ptr, '&', query.len);
        size_t len = end ? (size_t)(end - query.ptr) : query.len;
        err = wb_vec_push(&parts, wb_slice(query.ptr, len));
        more = end != NULL;
        query = wb_slice(query.ptr + len + more, query.len - len - more);
    }
    if (err == 0)
        qsort(parts.items, parts.count, sizeof *parts.items, compare_slices);
    for (size_t i = 0; i < parts.count && err == 0; i++) {
        err = wb_buf_append_char(out, i ? '&' : '?');
        if (err == 0)
            err = wb_buf_append_slice(out, parts.items[i]);
    }
    wb_vec_release(&parts);
    return err;
}

static int append_key(const struct wb_url *url, struct wb_buf *lower, struct wb_buf *key)
{
    int err = append_reversed(without_www(wb_url_host(url)), key);

    if (err == 0 && wb_url_port(url).len)
        err = wb_buf_printf(key, ":%.*s", WB_SLICE_ARG(wb_url_port(url)));
    if (err == 0)
        err = wb_buf_append_char(key, ')');
    if (err == 0)
        err = wb_buf_append_slice(key, wb_url_path(url));
    if (err == 0)
        err = wb_buf_append_slice(lower, wb_url_query(url));
    if (err < 0)
        return err;
    for (size_t i = 0; i < key->len; i++)
        key->ptr[i] = wb_ascii_lower(key->ptr[i]);
    for (size_t i = 0; i < lower->len; i++)
        lower->ptr[i] = wb_ascii_lower(lower->ptr[i]);
    return lower->len ? append_query(wb_buf_slice(lower), key) : 0;
}

int wb_cdx_urlkey(struct wb_slice url, struct wb_buf *urlkey_out)
{
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf lower = WB_BUF_INIT;

    wb_buf_clear(urlkey_out);
    int err = wb_url_parse(url, NULL, &parsed);
    if (err == 0 && wb_url_is_http(&parsed))
        err = append_key(&parsed, &lower, urlkey_out);
    else if (err != WB_E_NOMEM)
        err = wb_buf_append_slice(urlkey_out, url);
    wb_buf_release(&lower);
    wb_url_release(&parsed);
    return err;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Appends a field that contains no blank and no control character, and is not empty. */
static int append_field(struct wb_buf *out, struct wb_slice value)
{
    static const char digits[] = "0123456789ABCDEF";
    int err = value.len ? wb_buf_reserve(out, 3 * value.len) : wb_buf_append_char(out, '-');

    for (size_t i = 0; err == 0 && i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c > 0x20 && c != 0x7f) {
            out->ptr[out->len++] = (char)c;
        } else {
            out->ptr[out->len++] = '%';
            out->ptr[out->len++] = digits[c >> 4];
            out->ptr[out->len++] = digits[c & 15];
        }
    }
    return err;
}

static int append_start(const struct wb_cdx *cdx, struct wb_buf *out)
{
    char time[WB_CDX_TIME_MAX];
    int err = append_field(out, cdx->urlkey);

    wb_cdx_time(cdx->time_ms, time);
    return err < 0 ? err : wb_buf_printf(out, " %s ", time);
}

/* Numbers are strings in CDXJ. */
static void number_field(struct wb_json *j, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    wb_json_field_str(j, key, text);
}

static void text_field(struct wb_json *j, const char *key, struct wb_slice value)
{
    if (value.len)
        wb_json_field_slice(j, key, value);
}

int wb_cdx_append_json(const struct wb_cdx *cdx, struct wb_buf *lines_out)
{
    struct wb_json j;
    int err = append_start(cdx, lines_out);

    if (err < 0)
        return err;
    wb_json_init(&j, lines_out);
    wb_json_object(&j);
    text_field(&j, "url", cdx->url);
    text_field(&j, "mime", cdx->mime);
    if (cdx->status)
        number_field(&j, "status", cdx->status);
    text_field(&j, "digest", cdx->digest);
    if (cdx->length)
        number_field(&j, "length", cdx->length);
    if (cdx->filename.len) {
        number_field(&j, "offset", cdx->offset);
        wb_json_field_slice(&j, "filename", cdx->filename);
    }
    text_field(&j, "redirect", cdx->redirect);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

/* A blank and a number, or "-" if it is unknown. */
static int append_number(struct wb_buf *out, bool known, uint64_t number)
{
    return known ? wb_buf_printf(out, " %" PRIu64, number) : wb_buf_append_str(out, " -");
}

int wb_cdx_append_text(const struct wb_cdx *cdx, struct wb_buf *lines_out)
{
    int err = append_start(cdx, lines_out);

    if (err == 0)
        err = append_field(lines_out, cdx->url);
    if (err == 0)
        err = wb_buf_append_char(lines_out, ' ');
    if (err == 0)
        err = append_field(lines_out, cdx->mime);
    if (err == 0)
        err = append_number(lines_out, cdx->status != 0, cdx->status);
    if (err == 0)
        err = wb_buf_append_char(lines_out, ' ');
    if (err == 0)
        err = append_field(lines_out, cdx->digest);
    if (err == 0)
        err = wb_buf_append_char(lines_out, ' ');
    if (err == 0)
        err = append_field(lines_out, cdx->redirect);
    if (err == 0)
        err = wb_buf_append_str(lines_out, " -"); /* M, the robots directives of the page: we do not list them */
    if (err == 0)
        err = append_number(lines_out, cdx->length != 0, cdx->length);
    if (err == 0)
        err = append_number(lines_out, cdx->filename.len != 0, cdx->offset);
    if (err == 0)
        err = wb_buf_append_char(lines_out, ' ');
    if (err == 0)
        err = append_field(lines_out, cdx->filename);
    return err < 0 ? err : wb_buf_append_char(lines_out, '\n');
}
