/* htmlpen.c - templates and escaping. See htmlpen.h. */
#include "serve/htmlpen.h"
#include "base/check.h"
#include "base/date.h"
#include "base/utf8.h"
#include "warc/warc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Directions that a text forces on what follows it, invisible characters and controls become a visible mark. */
static bool is_unseemly(uint32_t cp)
{
    return (cp < 0x20 && cp != '\t' && cp != '\n') || (cp >= 0x7F && cp < 0xA0) || (cp >= 0x202A && cp <= 0x202E) ||
           (cp >= 0x2066 && cp <= 0x2069) || cp == 0x2028 || cp == 0x2029;
}

static int append_text(struct wb_buf *out, struct wb_slice text)
{
    int err = 0;

    for (size_t i = 0, step; i < text.len && err == 0; i += step) {
        size_t length = wb_utf8_length(text.ptr + i, text.len - i);
        step = length ? length : 1;
        const char *escaped = entity(text.ptr[i]);
        if (escaped)
            err = wb_buf_append_str(out, escaped);
        else if (length == 0 || is_unseemly(wb_utf8_decode(text.ptr + i, length)))
            err = wb_buf_append_str(out, "\xEF\xBF\xBD");
        else
            err = wb_buf_append(out, text.ptr + i, length);
    }
    return err;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static int append_number(struct wb_buf *out, uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, number);
    int err = 0;

    for (int i = 0; i < len && err == 0; i++) {
        if (i && (len - i) % 3 == 0)
            err = wb_buf_append_char(out, ',');
        if (err == 0)
            err = wb_buf_append_char(out, digits[i]);
    }
    return err;
}

static int append_bytes(struct wb_buf *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    return wb_buf_printf(out, unit && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static int append_time(struct wb_buf *out, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX];

    if (time_ms == 0)
        return wb_buf_append_str(out, "unknown");
    wb_date_format(time_ms, text); /* 2026-01-02T03:04:05.678Z */
    return wb_buf_printf(out, "<time datetime=\"%s\">%.10s %.8s UTC</time>", text, text, text + 11);
}

static int append_utc(struct wb_buf *out, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX];

    wb_date_format(time_ms, text);
    return wb_buf_printf(out, "%.10s %.8s UTC", text, text + 11);
}

static int append_digits(struct wb_buf *out, int64_t time_ms)
{
    char digits[WB_CDX_TIME_MAX];

    wb_cdx_time(time_ms, digits);
    return wb_buf_append_str(out, digits);
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

static int append_value(struct wb_buf *out, const struct wb_htmlpen_value *value)
{
    WB_CHECK(value->kind <= WB_HTML_DIGITS);
    switch (value->kind) {
    case WB_HTML_TEXT:
        return append_text(out, value->text);
    case WB_HTML_PARAM:
        return wb_call_escape(value->text, out);
    case WB_HTML_MARKUP:
        return wb_buf_append_slice(out, value->text);
    case WB_HTML_NUMBER:
        return append_number(out, value->number);
    case WB_HTML_PLAIN:
        return wb_buf_printf(out, "%" PRIu64, value->number);
    case WB_HTML_BYTES:
        return append_bytes(out, value->number);
    case WB_HTML_TIME:
        return append_time(out, value->time_ms);
    case WB_HTML_UTC:
        return append_utc(out, value->time_ms);
    case WB_HTML_DIGITS:
        return append_digits(out, value->time_ms);
    }
    return WB_E_INVALID;
}

void wb_htmlpen_fill(struct wb_htmlpen *h, const char *template, const struct wb_htmlpen_value *values, size_t count)
{
    size_t used = 0;

    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    for (const char *at = template, *hole; h->err == 0; at = hole + 2) {
        hole = strstr(at, "{}");
        h->err = wb_buf_append(h->out, at, hole ? (size_t)(hole - at) : strlen(at));
        if (!hole)
            break;
        WB_CHECK(used < count);
        if (h->err == 0)
            h->err = append_value(h->out, &values[used++]);
    }
    WB_CHECK(h->err < 0 || used == count);
}

void wb_htmlpen_raw(struct wb_htmlpen *h, const char *markup)
{
    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    if (h->err == 0)
        h->err = wb_buf_append_str(h->out, markup);
}

void wb_htmlpen_fact(struct wb_htmlpen *h, const char *name, struct wb_htmlpen_value value)
{
    wb_htmlpen_put(h, "<div><dt>{}</dt><dd>{}</dd></div>\n", wb_htmlpen_str(name), value);
}

bool wb_htmlpen_is_web_url(struct wb_slice url)
{
    return wb_slice_starts_nocase(url, WB_SLICE_LIT("http://")) ||
           wb_slice_starts_nocase(url, WB_SLICE_LIT("https://"));
}

void wb_htmlpen_page_link(struct wb_htmlpen *h, struct wb_slice url, struct wb_slice text)
{
    if (wb_htmlpen_is_web_url(url))
        wb_htmlpen_put(h, "<a href=\"/page?url={}\">{}</a>", wb_htmlpen_param(url), wb_htmlpen_text(text));
    else
        wb_htmlpen_put(h, "{}", wb_htmlpen_text(text));
}
