/*
 * pushlist.c - reads pushes: lines, or JSON. Only wb_pusher_apply() acts on them, so what is refused here has changed
 * nothing.
 *
 * A push may come from a stranger. Before JSON is parsed, a scan bounds its depth, because the parser is recursive, and
 * the number of its values, because each of them costs many times the bytes of its text.
 */
#include "cycle/pushlist.h"
#include "base/check.h"
#include "base/error.h"
#include "cycle/pushpage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WARNINGS_MAX = 10,
    VALUES_EACH = 64, /* JSON values for each URL or page: a page has some members, and perhaps headers */
};

struct push_list_reader {
    const struct wb_push_reading *reading;
    struct wb_push_list *list;
    struct wb_url url;
    struct wb_buf key;
};

/* ---- announcements ------------------------------------------------------------------------------- */

/* place: where the announcement is, such as "line 7". */
static int refuse(struct push_list_reader *r, const char *place, uint64_t number, struct wb_slice text)
{
    const struct wb_push_reading *reading = r->reading;
    char message[512];

    if (text.len > 200)
        text.len = 200;
    snprintf(message, sizeof message, "%s: %s %" PRIu64 " is not an http or https URL: %.*s", reading->name, place,
             number, WB_SLICE_ARG(text));
    if (reading->strict)
        return wb_fail(WB_E_INVALID, "%s", message);
    if (r->list->refused++ < WARNINGS_MAX && reading->warn)
        reading->warn(reading->context, message);
    return 0;
}

static int check_room(const struct push_list_reader *r)
{
    size_t count = r->list->urls.count + r->list->pages.count, max = r->reading->items_max;

    return max && count >= max ? wb_fail(WB_E_LIMIT, "%s: more than %zu URLs and pages; send them in several pushes",
                                         r->reading->name, max)
                               : 0;
}

static int add_url(struct push_list_reader *r, struct wb_slice text, enum wb_push what, const char *place,
                   uint64_t number)
{
    struct wb_push_url url = {.what = what};

    int err = wb_url_parse(text, NULL, &r->url);
    if (err == 0)
        err = wb_url_key(&r->url, &r->key);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0 || !wb_url_is_http(&r->url) || wb_url_host(&r->url).len == 0)
        return refuse(r, place, number, text);
    err = check_room(r);
    if (err == 0)
        err = wb_arena_copy(&r->list->text, wb_push_plain_href(&r->url), &url.url);
    if (err == 0)
        err = wb_arena_copy(&r->list->text, wb_key_site(wb_buf_slice(&r->key)), &url.site);
    WB_CHECK(err < 0 || (url.url.len > 0 && url.site.len > 0));
    return err < 0 ? err : wb_vec_push(&r->list->urls, url);
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* Removes the word and the blanks after it from the start of a line, if more follows. */
static bool take_word(struct wb_slice *line, struct wb_slice word)
{
    if (line->len <= word.len || !wb_slice_starts(*line, word) ||
        (line->ptr[word.len] != ' ' && line->ptr[word.len] != '\t'))
        return false;
    *line = wb_slice_trim(wb_slice(line->ptr + word.len, line->len - word.len));
    return true;
}

static int read_line(struct push_list_reader *r, struct wb_slice line, uint64_t number)
{
    enum wb_push what = WB_PUSH_CHANGED;

    line = wb_slice_trim(line);
    if (line.len == 0 || line.ptr[0] == '#')
        return 0;
    if (take_word(&line, WB_SLICE_LIT("gone")))
        what = WB_PUSH_GONE;
    else if (!take_word(&line, WB_SLICE_LIT("changed")))
        take_word(&line, WB_SLICE_LIT("new"));
    return add_url(r, line, what, "line", number);
}

static int read_lines(struct push_list_reader *r, struct wb_slice text)
{
    struct wb_slice line;
    uint64_t number = 0;
    int err = 0;

    while (err == 0 && wb_slice_next_line(&text, &line))
        err = read_line(r, line, ++number);
    return err;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

/* Looks only at brackets, commas, colons and the ends of texts; whether it is JSON is the parser's question. */
static int check_shape(const struct push_list_reader *r, struct wb_slice text)
{
    uint64_t values = 1, max = r->reading->items_max ? ((uint64_t)r->reading->items_max + 1) * VALUES_EACH : UINT64_MAX;
    unsigned depth = 0;
    bool in_text = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '"')
            in_text = !in_text;
        else if (in_text)
            i += c == '\\';
        else if (c == '[' || c == '{') {
            values++;
            if (++depth > WB_PUSH_DEPTH_MAX)
                return wb_fail(WB_E_PROTO, "%s: the JSON is nested more than %d deep", r->reading->name,
                               WB_PUSH_DEPTH_MAX);
        } else if (c == ']' || c == '}')
            depth -= depth > 0;
        else
            values += c == ',' || c == ':';
    }
    if (values > max)
        return wb_fail(WB_E_LIMIT, "%s: more than %" PRIu64 " values in the JSON", r->reading->name, max);
    return 0;
}

static int parse_json(struct push_list_reader *r, struct wb_slice text)
{
    WB_CHECK(!r->list->root);
    json_error_t error;

    int err = check_shape(r, text);
    if (err < 0)
        return err;
    r->list->root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (r->list->root)
        return json_is_object(r->list->root) ? 0
                                             : wb_fail(WB_E_INVALID, "%s: the JSON is not an object", r->reading->name);
    if (json_error_code(&error) == json_error_out_of_memory)
        return wb_fail_nomem();
    return wb_fail(WB_E_PROTO, "%s:%d: not JSON: %s", r->reading->name, error.line, error.text);
}

static int read_list(struct push_list_reader *r, const json_t *list, const char *name, enum wb_push what)
{
    const json_t *entry;
    size_t i;
    int err = 0;

    json_array_foreach(list, i, entry)
    {
        if (json_is_string(entry))
            err = add_url(r, wb_slice(json_string_value(entry), json_string_length(entry)), what, name, i + 1);
        else
            err = refuse(r, name, i + 1, WB_SLICE_LIT("not a text"));
        if (err < 0)
            break;
    }
    return err;
}

static int read_pages(struct push_list_reader *r, const json_t *pages)
{
    const json_t *entry;
    size_t i;
    int err = 0;

    json_array_foreach(pages, i, entry)
    {
        err = check_room(r);
        if (err == 0)
            err = wb_push_page_read(entry, i + 1, r->reading, r->list);
        if (err < 0)
            break;
    }
    return err;
}

static int compare_pages(const void *a, const void *b)
{
    const struct wb_page *x = *(const struct wb_page *const *)a, *y = *(const struct wb_page *const *)b;
    int order = wb_pageid_compare(x->id, y->id);

    return order ? order : x->time_ms < y->time_ms ? -1 : x->time_ms > y->time_ms;
}

/* A capture is a page and a time, so of two that agree in both only one would be kept. */
static int check_captures(struct push_list_reader *r)
{
    size_t count = r->list->pages.count;
    const struct wb_page **sorted = count > 1 ? wb_alloc(count * sizeof *sorted) : NULL;
    int err = 0;

    if (count <= 1)
        return 0;
    if (!sorted)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &r->list->pages.items[i];
    qsort(sorted, count, sizeof *sorted, compare_pages);
    for (size_t i = 1; err == 0 && i < count; i++)
        if (compare_pages(&sorted[i - 1], &sorted[i]) == 0)
            err = wb_fail(WB_E_INVALID, "%s: %.*s is there twice with the same time", r->reading->name,
                          WB_SLICE_ARG(sorted[i]->url));
    wb_free(sorted);
    return err;
}

#define LISTS 3
static const struct {
    const char *name;
    enum wb_push what;
} lists[LISTS] = {{"urlList", WB_PUSH_CHANGED}, {"changed", WB_PUSH_CHANGED}, {"gone", WB_PUSH_GONE}};

static int check_members(const struct push_list_reader *r, const json_t *url, const json_t *pages)
{
    const char *name = r->reading->name;
    bool some = url || pages;

    for (size_t i = 0; i < LISTS; i++) {
        const json_t *list = json_object_get(r->list->root, lists[i].name);
        if (list && !json_is_array(list))
            return wb_fail(WB_E_INVALID, "%s: \"%s\" is not a list", name, lists[i].name);
        some = some || list;
    }
    if (url && !json_is_string(url))
        return wb_fail(WB_E_INVALID, "%s: \"url\" is not a text", name);
    if (pages && !json_is_array(pages))
        return wb_fail(WB_E_INVALID, "%s: \"pages\" is not a list", name);
    return some ? 0
                : wb_fail(WB_E_INVALID, "%s: no \"urlList\", \"changed\", \"gone\", \"url\" or \"pages\" in the object",
                          name);
}

/* IndexNow: all URLs belong to the host that the object names. */
static int check_host(struct push_list_reader *r, const json_t *host)
{
    if (!r->reading->strict || !host)
        return 0;
    if (!json_is_string(host))
        return wb_fail(WB_E_INVALID, "%s: \"host\" is not a text", r->reading->name);
    wb_buf_clear(&r->key);
    int err = wb_buf_append_str(&r->key, "http://");
    if (err == 0)
        err = wb_buf_append_slice(&r->key, wb_slice(json_string_value(host), json_string_length(host)));
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&r->key), NULL, &r->url);
    if (err == 0)
        err = wb_url_key(&r->url, &r->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : wb_fail(WB_E_INVALID, "%s: \"host\" is not a host", r->reading->name);
    struct wb_slice site = wb_key_site(wb_buf_slice(&r->key));
    for (size_t i = 0; i < r->list->urls.count; i++)
        if (!wb_push_covers(site, r->list->urls.items[i].site))
            return wb_fail(WB_E_INVALID, "%s: %.*s does not belong to the host %.*s", r->reading->name,
                           WB_SLICE_ARG(r->list->urls.items[i].url), WB_SLICE_ARG(site));
    return 0;
}

static int read_json(struct push_list_reader *r, struct wb_slice text)
{
    int err = parse_json(r, text);
    if (err < 0)
        return err;
    const json_t *root = r->list->root, *url = json_object_get(root, "url"), *pages = json_object_get(root, "pages");
    err = check_members(r, url, pages);
    if (err == 0 && url)
        err = add_url(r, wb_slice(json_string_value(url), json_string_length(url)), WB_PUSH_CHANGED, "url", 1);
    for (size_t i = 0; err == 0 && i < LISTS; i++)
        err = read_list(r, json_object_get(root, lists[i].name), lists[i].name, lists[i].what);
    if (err == 0)
        err = check_host(r, json_object_get(root, "host"));
    if (err == 0)
        err = read_pages(r, pages);
    return err < 0 ? err : check_captures(r);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

int wb_push_list_read(struct wb_slice text, const struct wb_push_reading *reading, struct wb_push_list *list_out)
{
    struct push_list_reader r = {.reading = reading, .list = list_out, .url = WB_URL_INIT};

    WB_CHECK(reading->name && reading->provider && reading->now_ms > 0);
    *list_out = (struct wb_push_list){.refused = 0};
    if (wb_slice_starts(text, WB_SLICE_LIT("\xef\xbb\xbf")))
        text = wb_slice(text.ptr + 3, text.len - 3);
    struct wb_slice trimmed = wb_slice_trim(text);
    bool json = reading->strict || (trimmed.len && trimmed.ptr[0] == '{');
    int err = json ? read_json(&r, trimmed) : read_lines(&r, text);
    wb_url_release(&r.url);
    wb_buf_release(&r.key);
    return err;
}

void wb_push_list_release(struct wb_push_list *list)
{
    wb_vec_release(&list->urls);
    wb_vec_release(&list->pages);
    wb_arena_release(&list->text);
    json_decref(list->root);
    *list = (struct wb_push_list){.refused = 0};
}

/* ---- hosts --------------------------------------------------------------------------------------- */

/* The length of a site without its port. */
static size_t host_bytes(struct wb_slice site)
{
    size_t end = site.len;

    while (end && wb_ascii_is_digit(site.ptr[end - 1]))
        end--;
    return end > 1 && end < site.len && site.ptr[end - 1] == ':' ? end - 1 : site.len;
}

bool wb_push_covers(struct wb_slice host, struct wb_slice site)
{
    if (host_bytes(host) == host.len)
        site.len = host_bytes(site);
    if (host.len == 0 || !wb_slice_ends(site, host))
        return false;
    return site.len == host.len || site.ptr[site.len - host.len - 1] == '.';
}
