/*
 * pushpage.c - a whole page that a provider has pushed (WebBase Components, section 4.5): checks each member, and makes
 * the head that the page would have had if we had fetched it, with the name of the provider in it.
 *
 *   HTTP/1.1 200 OK
 *   Content-Type: text/html; charset=utf-8
 *   Cache-Control: no-store                    ...and other "headers" that were pushed
 *   X-WebBase-Provider: example.org
 *
 * It knows nothing about whose pages a provider may push.
 */
#include "cycle/pushpage.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    HEAD_MAX = 64 << 10,
    STATUS_MIN = 200,
    STATUS_MAX = 599,
    LIFETIME_MAX = 36500, /* days */
};

struct pushed_page_reader {
    const struct wb_push_reading *reading;
    struct wb_push_list *list;
    const json_t *object;
    uint64_t number;
    struct wb_url url;
    struct wb_buf key, head, words;
    struct wb_slice content_type; /* as the head will have it */
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct pushed_page_reader *r, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return wb_fail(WB_E_INVALID, "%s: page %" PRIu64 ": %s", r->reading->name, r->number, text);
}

/* *text_out has ptr NULL if the page has no such member. */
static int get_text(const struct pushed_page_reader *r, const char *name, struct wb_slice *text_out)
{
    const json_t *value = json_object_get(r->object, name);

    *text_out = wb_slice(NULL, 0);
    if (!value)
        return 0;
    if (!json_is_string(value))
        return refuse(r, "\"%s\" is not a text", name);
    *text_out = wb_slice(json_string_value(value), json_string_length(value));
    return 0;
}

static int get_number(const struct pushed_page_reader *r, const char *name, int64_t min, int64_t max,
                      int64_t *value_inout)
{
    const json_t *value = json_object_get(r->object, name);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max)
        return refuse(r, "\"%s\" is not a number from %" PRId64 " to %" PRId64, name, min, max);
    *value_inout = json_integer_value(value);
    return 0;
}

/* ---- URL and time -------------------------------------------------------------------------------- */

struct wb_slice wb_push_plain_href(const struct wb_url *url)
{
    struct wb_slice href = wb_url_href(url);

    if (url->has_fragment)
        href.len = url->fragment_at - 1;
    return href;
}

static int read_url(struct pushed_page_reader *r, struct wb_page *page)
{
    struct wb_slice text;
    int err = get_text(r, "url", &text);

    if (err < 0)
        return err;
    if (!text.ptr)
        return refuse(r, "it has no \"url\"");
    err = wb_url_parse(text, NULL, &r->url);
    if (err == 0)
        err = wb_url_key(&r->url, &r->key);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0 || !wb_url_is_http(&r->url) || wb_url_host(&r->url).len == 0)
        return refuse(r, "this is not an http or https URL: %.*s", (int)(text.len > 200 ? 200 : text.len), text.ptr);
    err = wb_arena_copy(&r->list->text, wb_push_plain_href(&r->url), &page->url);
    if (err == 0)
        err = wb_arena_copy(&r->list->text, wb_buf_slice(&r->key), &page->key);
    if (err == 0)
        page->id = wb_pageid_of_key(page->key);
    return err;
}

static int read_time(struct pushed_page_reader *r, struct wb_page *page)
{
    WB_CHECK(r->reading->now_ms > 0);
    struct wb_slice text;
    int err = get_text(r, "time", &text);

    page->time_ms = r->reading->now_ms;
    if (err < 0 || !text.ptr)
        return err;
    if (!wb_date_parse(text, &page->time_ms) || page->time_ms <= 0)
        return refuse(r, "\"time\" is not a date of RFC 3339 after 1970");
    if (page->time_ms > r->reading->now_ms + WB_STORE_AHEAD_MS)
        return refuse(r, "\"time\" is more than a day ahead");
    return 0;
}

/* ---- body ---------------------------------------------------------------------------------------- */

static int read_base64(struct pushed_page_reader *r, struct wb_slice text, struct wb_page *page)
{
    char *bytes = wb_arena_take(&r->list->text, text.len / 4 * 3);
    size_t len;

    if (!bytes)
        return WB_E_NOMEM;
    if (!wb_base64_decode(text, bytes, &len))
        return refuse(r, "\"body_base64\" is not base64 with padding");
    WB_CHECK(len <= text.len / 4 * 3);
    page->body = wb_slice(bytes, len);
    return 0;
}

static int read_body(struct pushed_page_reader *r, struct wb_page *page, bool *html_out)
{
    struct wb_slice html, coded;
    int err = get_text(r, "html", &html);

    *html_out = false;
    if (err == 0)
        err = get_text(r, "body_base64", &coded);
    if (err < 0)
        return err;
    if (!html.ptr == !coded.ptr)
        return refuse(r, "it needs either \"html\" or \"body_base64\"");
    *html_out = html.ptr != NULL;
    page->body = html;
    if (coded.ptr)
        err = read_base64(r, coded, page);
    page->body_bytes = page->body.len;
    if (err == 0 && page->body.len > WB_PAGE_MAX_BYTES)
        return wb_fail(WB_E_LIMIT, "%s: page %" PRIu64 ": the body is larger than %u bytes", r->reading->name,
                       r->number, WB_PAGE_MAX_BYTES);
    return err;
}

/* ---- head ---------------------------------------------------------------------------------------- */

static bool is_field_name(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    size_t len = 0;

    for (; name[len]; len++)
        if (!wb_ascii_is_letter(name[len]) && !wb_ascii_is_digit(name[len]) && !strchr(others, name[len]))
            return false;
    return len > 0;
}

/* Anything that could end a line, and so begin another field, is out. */
static bool is_field_value(struct wb_slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_name(const char *name, const char *wanted)
{
    return wb_slice_equal_nocase(wb_slice_str(name), wb_slice_str(wanted));
}

static int append_field(struct pushed_page_reader *r, const char *name, const json_t *value)
{
    struct wb_slice text =
        json_is_string(value) ? wb_slice(json_string_value(value), json_string_length(value)) : wb_slice(NULL, 0);

    if (!is_field_name(name) || is_name(name, WB_PUSH_PROVIDER_FIELD))
        return refuse(r, "\"headers\" has a name that is not possible: %.100s", name);
    if (!text.ptr || !is_field_value(text))
        return refuse(r, "\"headers\": the value of %.100s is not a text of one line", name);
    if (is_name(name, "Content-Type")) {
        r->content_type = r->content_type.ptr ? r->content_type : text;
        return 0;
    }
    int err = wb_buf_printf(&r->head, "%s: ", name);
    if (err == 0)
        err = wb_buf_append_slice(&r->head, text);
    if (err == 0)
        err = wb_buf_append_str(&r->head, "\r\n");
    if (err == 0 && r->head.len > HEAD_MAX)
        return wb_fail(WB_E_LIMIT, "%s: page %" PRIu64 ": \"headers\" has more than %d bytes", r->reading->name,
                       r->number, HEAD_MAX);
    return err;
}

/* A field that occurs several times has a list of values. */
static int append_fields(struct pushed_page_reader *r)
{
    json_t *fields = json_object_get(r->object, "headers"), *value, *one;
    const char *name;
    size_t i;
    int err = 0;

    if (!fields)
        return 0;
    if (!json_is_object(fields))
        return refuse(r, "\"headers\" is not an object");
    json_object_foreach(fields, name, value)
    {
        if (!json_is_array(value))
            err = append_field(r, name, value);
        else
            json_array_foreach(value, i, one)
            {
                err = append_field(r, name, one);
                if (err < 0)
                    break;
            }
        if (err < 0)
            break;
    }
    return err;
}

/* "type" comes first, then the Content-Type in "headers". A body that was sent as text is UTF-8, whatever they say. */
static int read_type(struct pushed_page_reader *r, bool html, struct wb_page *page)
{
    struct wb_slice value = r->content_type.ptr ? r->content_type : html ? WB_SLICE_LIT("text/html") : WB_SLICE_EMPTY;
    struct wb_slice type, charset;

    wb_buf_clear(&r->words);
    int err = wb_media_type_parse(value, &r->words, &type, &charset);
    if (err < 0)
        return err;
    if (type.len == 0 || !is_field_value(value))
        return refuse(r, r->content_type.ptr ? "\"type\" is not a media type" : "it has no \"type\"");
    if (html && charset.len && !wb_slice_equal(charset, WB_SLICE_LIT("utf-8")))
        return refuse(r, "the charset of \"html\" is utf-8");
    err = wb_arena_copy(&r->list->text, type, &page->type);
    if (err == 0)
        err = wb_arena_copy(&r->list->text, html ? WB_SLICE_LIT("utf-8") : charset, &page->charset);
    if (err == 0)
        err = wb_buf_append_str(&r->head, "Content-Type: ");
    if (err == 0)
        err = wb_buf_append_slice(&r->head, value);
    if (err == 0)
        err = wb_buf_append_str(&r->head, html && !charset.len ? "; charset=utf-8\r\n" : "\r\n");
    return err;
}

static int make_head(struct pushed_page_reader *r, bool html, struct wb_page *page)
{
    WB_CHECK(page->status >= STATUS_MIN && page->status <= STATUS_MAX && r->head.len == 0);
    int err = get_text(r, "type", &r->content_type);

    if (err == 0)
        err = wb_buf_printf(&r->head, "HTTP/1.1 %u %s\r\n", (unsigned)page->status, page->status == 200 ? "OK" : "");
    if (err == 0)
        err = append_fields(r);
    if (err == 0)
        err = read_type(r, html, page);
    if (err == 0)
        err = wb_buf_printf(&r->head, WB_PUSH_PROVIDER_FIELD ": %s\r\n", r->reading->provider);
    return err < 0 ? err : wb_arena_copy(&r->list->text, wb_buf_slice(&r->head), &page->head);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static int read_page(struct pushed_page_reader *r)
{
    struct wb_page page = {.kind = WB_PAGE_RESPONSE};
    int64_t status = 200, lifetime = 0;
    bool html = false;

    if (!json_is_object(r->object))
        return refuse(r, "it is not an object");
    int err = read_url(r, &page);
    if (err == 0)
        err = read_time(r, &page);
    if (err == 0)
        err = get_number(r, "status", STATUS_MIN, STATUS_MAX, &status);
    if (err == 0 && status == 304)
        err = refuse(r, "\"status\" 304 has no content");
    if (err == 0)
        err = get_number(r, "lifetime", 0, LIFETIME_MAX, &lifetime);
    if (err == 0)
        err = read_body(r, &page, &html);
    if (err < 0)
        return err;
    page.status = (uint16_t)status;
    page.lifetime = page.lifetime_count = (uint32_t)lifetime;
    err = make_head(r, html, &page);
    /* Complete but for its digests. */
    WB_CHECK(err < 0 || (page.key.len && page.type.len && page.head.len && page.time_ms > 0));
    return err < 0 ? err : wb_vec_push(&r->list->pages, page);
}

int wb_push_page_read(const json_t *object, uint64_t number, const struct wb_push_reading *reading,
                      struct wb_push_list *list)
{
    struct pushed_page_reader r = {
        .reading = reading, .list = list, .object = object, .number = number, .url = WB_URL_INIT};

    WB_CHECK(reading->provider && reading->provider[0]);
    int err = read_page(&r);
    wb_url_release(&r.url);
    wb_buf_release(&r.key);
    wb_buf_release(&r.head);
    wb_buf_release(&r.words);
    return err;
}
