/* memento.c - addresses in the archive, the links between mementos, timegates and timemaps. */
#include "serve/memento.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "url/url.h"
#include "warc/warc.h"

#include <ctype.h>
#include <string.h>

/* ---- addresses ----------------------------------------------------------------------------------- */

void wb_memento_target_release(struct wb_memento_target *target)
{
    wb_buf_release(&target->url);
}

/* Browsers and proxies may have made one slash of two, and people leave out the scheme. */
static int repair(struct wb_slice text, struct wb_buf *out)
{
    static const char *const schemes[] = {"http:", "https:"};

    for (size_t i = 0; i < 2; i++) {
        struct wb_slice scheme = wb_slice_str(schemes[i]);
        if (text.len < scheme.len || strncasecmp(text.ptr, scheme.ptr, scheme.len) != 0)
            continue;
        struct wb_slice rest = wb_slice(text.ptr + scheme.len, text.len - scheme.len);
        while (rest.len && rest.ptr[0] == '/')
            rest = wb_slice(rest.ptr + 1, rest.len - 1);
        return wb_buf_printf(out, "%s//%.*s", schemes[i], WB_SLICE_ARG(rest));
    }
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    /* A colon before the first slash is a port if digits follow, otherwise another scheme. */
    if (colon && (!slash || colon < slash) && !isdigit((unsigned char)(colon + 1 < text.ptr + text.len ? colon[1] : 0)))
        return wb_fail(WB_E_INVALID, "only http and https are archived");
    return wb_buf_printf(out, "http://%.*s", WB_SLICE_ARG(text));
}

int wb_memento_url(struct wb_slice text, struct wb_memento_target *target_out)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, repaired = WB_BUF_INIT;

    *target_out = (struct wb_memento_target){0};
    int err = repair(text, &repaired);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&repaired), NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_buf_append_slice(&target_out->url, wb_buf_slice(&url.href));
    if (err == 0)
        target_out->id = wb_pageid_of_key(wb_buf_slice(&key));
    WB_CHECK(err < 0 || wb_slice_starts(wb_buf_slice(&target_out->url), WB_SLICE_LIT("http")));
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&repaired);
    return err;
}

/* "20260102030405", "20260102030405id_", "id_", "*": false if it is something else, such as the beginning of a URL. */
static bool read_moment(struct wb_slice text, struct wb_memento_target *t)
{
    size_t digits = 0;

    if (wb_slice_equal(text, WB_SLICE_LIT("*"))) {
        t->list = true;
        return true;
    }
    while (digits < text.len && isdigit((unsigned char)text.ptr[digits]))
        digits++;
    struct wb_slice rest = wb_slice(text.ptr + digits, text.len - digits);
    bool modified = rest.len == 3 && rest.ptr[2] == '_' && islower((unsigned char)rest.ptr[0]) &&
                    islower((unsigned char)rest.ptr[1]);
    if ((rest.len && !modified) || (digits == 0 && !modified))
        return false;
    t->raw = wb_slice_equal(rest, WB_SLICE_LIT("id_"));
    t->main = wb_slice_equal(rest, WB_SLICE_LIT("mp_"));
    t->has_time = digits > 0;
    t->has_second = digits >= 14;
    return digits == 0 || (digits >= 4 && wb_date_parse_digits_end(wb_slice(text.ptr, digits), &t->time_ms));
}

int wb_memento_parse(struct wb_slice rest, struct wb_memento_target *target_out)
{
    const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    struct wb_memento_target moment = {0};

    *target_out = (struct wb_memento_target){0};
    if (slash && read_moment(wb_slice(rest.ptr, (size_t)(slash - rest.ptr)), &moment))
        rest = wb_slice(slash + 1, (size_t)(rest.ptr + rest.len - slash - 1));
    if (rest.len == 0)
        return wb_fail(WB_E_INVALID, "write /web/URL, or /web/YYYYMMDDhhmmss/URL");
    int err = wb_memento_url(rest, target_out);
    target_out->has_time = moment.has_time;
    target_out->has_second = moment.has_second;
    target_out->time_ms = moment.time_ms;
    target_out->raw = moment.raw;
    target_out->main = moment.main;
    target_out->list = moment.list;
    return err;
}

/* The captures of a version are in order, but those of another one may lie between them: so all are looked at. */
size_t wb_memento_find(const struct wb_store_timeline *timeline, int64_t time_ms)
{
    WB_CHECK(timeline->time_count > 0);
    const int64_t *times = timeline->times;
    size_t at = 0;

    for (size_t i = 1; i < timeline->time_count; i++)
        if (times[i] <= time_ms && (times[at] > time_ms || times[i] >= times[at]))
            at = i;
    return at;
}

/* The oldest capture after time_ms; SIZE_MAX: there is none. */
static size_t find_after(const struct wb_store_timeline *timeline, int64_t time_ms)
{
    const int64_t *times = timeline->times;
    size_t at = SIZE_MAX;

    for (size_t i = 0; i < timeline->time_count; i++)
        if (times[i] > time_ms && (at == SIZE_MAX || times[i] < times[at]))
            at = i;
    return at;
}

enum { SAME_CYCLE_FACTOR = 4 };

static bool is_sealed_between(const int64_t *seals, size_t count, int64_t from, int64_t to)
{
    for (size_t i = 0; i < count; i++)
        if (from < seals[i] && seals[i] <= to)
            return true;
    return false;
}

size_t wb_memento_near(const struct wb_store_timeline *timeline, int64_t time_ms, const int64_t *seals,
                       size_t seal_count)
{
    size_t before = wb_memento_find(timeline, time_ms), after = find_after(timeline, time_ms);

    if (timeline->times[before] > time_ms || after == SIZE_MAX ||
        timeline->times[before] / 1000 == time_ms / 1000)
        return before;
    int64_t earlier = timeline->times[before], later = timeline->times[after];
    WB_CHECK(earlier <= time_ms && time_ms < later);
    int64_t back = time_ms / 1000 - earlier / 1000, ahead = later / 1000 - time_ms / 1000;
    bool new_cycle =
        is_sealed_between(seals, seal_count, earlier, time_ms) && !is_sealed_between(seals, seal_count, time_ms, later);
    return ahead <= (new_cycle ? SAME_CYCLE_FACTOR * back : back) ? after : before;
}

int wb_memento_origin(struct wb_call *call, struct wb_buf *out)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct wb_slice host = wb_http_field(call->request, "Host");
    bool plain = host.len > 0 && host.len < 256;

    for (size_t i = 0; i < host.len && plain; i++)
        plain = isalnum((unsigned char)host.ptr[i]) || strchr(".-:[]_", host.ptr[i]) != NULL;
    if (!plain)
        host = wb_slice_str(wb_httpd_address(call->server->httpd));
    return wb_buf_printf(out, "%s://%.*s", call->request->tls ? "https" : "http", WB_SLICE_ARG(host));
}

int wb_memento_address(struct wb_slice origin, struct wb_slice url, int64_t time_ms, struct wb_buf *out)
{
    char digits[WB_CDX_TIME_MAX];

    wb_cdx_time(time_ms, digits);
    return wb_buf_printf(out, "%.*s/web/%s/%.*s", WB_SLICE_ARG(origin), digits, WB_SLICE_ARG(url));
}

int wb_memento_datetime(struct wb_call *call, int64_t time_ms)
{
    char date[WB_DATE_HTTP_BYTES];

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    if (!wb_date_format_http(time_ms, date))
        return 0;
    return wb_http_reply_field(call->reply, "Memento-Datetime", wb_slice(date, WB_DATE_HTTP_BYTES));
}

/* ---- links --------------------------------------------------------------------------------------- */

/* <URI-M>; rel="..."; datetime="..." */
static int add_memento(struct wb_buf *out, struct wb_slice origin, struct wb_slice url, int64_t time_ms,
                       const char *rel)
{
    char date[WB_DATE_HTTP_BYTES];
    int err = wb_buf_append_str(out, ", <");

    if (err == 0)
        err = wb_memento_address(origin, url, time_ms, out);
    if (err < 0 || !wb_date_format_http(time_ms, date))
        return err < 0 ? err : wb_buf_printf(out, ">; rel=\"%s\"", rel);
    return wb_buf_printf(out, ">; rel=\"%s\"; datetime=\"%.*s\"", rel, WB_DATE_HTTP_BYTES, date);
}

/* Each capture once, with all that it is: "first prev memento". */
static int add_neighbours(struct wb_buf *out, struct wb_slice origin, struct wb_slice url,
                          const struct wb_store_timeline *t, size_t at)
{
    size_t last = t->time_count - 1, near[] = {0, at ? at - 1 : 0, at, at < last ? at + 1 : last, last};
    int err = 0;

    WB_CHECK(at < t->time_count);
    for (size_t i = 0; i < 5 && err == 0; i++) {
        char rel[64] = "";
        if (i > 0 && near[i] == near[i - 1])
            continue;
        if (near[i] == 0)
            strcat(rel, "first ");
        if (at && near[i] == at - 1)
            strcat(rel, "prev ");
        if (near[i] == at + 1)
            strcat(rel, "next ");
        if (near[i] == last)
            strcat(rel, "last ");
        strcat(rel, "memento");
        err = add_memento(out, origin, url, t->times[near[i]], rel);
    }
    return err;
}

int wb_memento_links(struct wb_call *call, struct wb_slice url, const struct wb_store_timeline *timeline, size_t at)
{
    struct wb_buf origin = WB_BUF_INIT, link = WB_BUF_INIT;

    WB_CHECK(call->magic == WB_CALL_MAGIC && (at == SIZE_MAX || at < timeline->time_count));
    if (url.len > WB_MEMENTO_LINKED_MAX)
        return 0;
    int err = wb_memento_origin(call, &origin);
    struct wb_slice o = wb_buf_slice(&origin);
    if (err == 0)
        err = wb_buf_printf(&link,
                            "<%.*s>; rel=\"original\", <%.*s/web/%.*s>; rel=\"timegate\", "
                            "<%.*s/timemap/link/%.*s>; rel=\"timemap\"; type=\"application/link-format\"",
                            WB_SLICE_ARG(url), WB_SLICE_ARG(o), WB_SLICE_ARG(url), WB_SLICE_ARG(o), WB_SLICE_ARG(url));
    if (err == 0 && at != SIZE_MAX)
        err = add_neighbours(&link, o, url, timeline, at);
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Link", wb_buf_slice(&link));
    wb_buf_release(&origin);
    wb_buf_release(&link);
    return err;
}

/* ---- the timemap --------------------------------------------------------------------------------- */

enum { TIMEMAP_BYTES_MAX = 64 << 20 };

static int write_timemap(struct wb_call *call, struct wb_slice url, const struct wb_store_timeline *t)
{
    WB_CHECK(t->time_count > 0);
    struct wb_buf origin = WB_BUF_INIT, *out = &call->reply->body;
    char first[WB_DATE_HTTP_BYTES], last[WB_DATE_HTTP_BYTES];
    int err = wb_memento_origin(call, &origin);
    struct wb_slice o = wb_buf_slice(&origin);

    if (err == 0)
        err = wb_buf_printf(out,
                            "<%.*s>; rel=\"original\",\n<%.*s/web/%.*s>; rel=\"timegate\",\n"
                            "<%.*s/timemap/link/%.*s>; rel=\"self\"; type=\"application/link-format\"",
                            WB_SLICE_ARG(url), WB_SLICE_ARG(o), WB_SLICE_ARG(url), WB_SLICE_ARG(o), WB_SLICE_ARG(url));
    if (err == 0 && wb_date_format_http(t->times[0], first) && wb_date_format_http(t->times[t->time_count - 1], last))
        err =
            wb_buf_printf(out, "; from=\"%.*s\"; until=\"%.*s\"", WB_DATE_HTTP_BYTES, first, WB_DATE_HTTP_BYTES, last);
    for (size_t i = 0; i < t->time_count && err == 0; i++) {
        if (out->len > TIMEMAP_BYTES_MAX) {
            err = wb_fail(WB_E_LIMIT, "the timemap of %zu captures would be too long; ask /cdx", t->time_count);
            break;
        }
        bool is_first = i == 0, is_last = i + 1 == t->time_count;
        err = add_memento(out, o, url, t->times[i],
                          is_first && is_last ? "first last memento"
                          : is_first          ? "first memento"
                          : is_last           ? "last memento"
                                              : "memento");
    }
    wb_buf_release(&origin);
    return err < 0 ? err : wb_buf_append_char(out, '\n');
}

void wb_handle_timemap(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    static const char prefix[] = "/timemap/link/";
    struct wb_slice target = call->request->target;
    struct wb_memento_target t = {0};
    struct wb_store_timeline timeline = {0};

    int err = wb_memento_url(wb_slice(target.ptr + sizeof prefix - 1, target.len - (sizeof prefix - 1)), &t);
    if (err == 0) {
        err = wb_store_timeline(call->worker->store, t.id, &timeline);
        if (err == 0 && timeline.time_count == 0)
            err = WB_E_NOTFOUND;
        if (err == WB_E_NOTFOUND)
            err = wb_which_missing(call->worker->store, t.id, wb_buf_slice(&t.url), WB_SLICE_EMPTY, "this archive");
    }
    if (err == 0) {
        wb_call_type(call, "application/link-format");
        err = write_timemap(call, wb_buf_slice(&t.url), &timeline);
    }
    if (err < 0)
        wb_call_fail(call, err);
    wb_store_timeline_release(&timeline);
    wb_memento_target_release(&t);
}
