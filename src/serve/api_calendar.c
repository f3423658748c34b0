/*
 * api_calendar.c - GET /api/calendar?url=[&from=TIME&to=TIME[&limit=][&after=]]: when a URL was captured.
 *
 *   {"url":..., "captures":17, "versions":5, "first":TIME, "last":TIME, "gone":null,
 *    "unit":900, "spans":[[START, CAPTURES, NEW, REDIRECTS, ERRORS], ...], "left_out":0}
 *
 * A span is a quarter of an hour (START: its number since 1970), because the days of every time zone in use begin at
 * one. So a browser makes years, months and days of its own zone from one answer. With from and to, the answer
 * has the captures of that time instead of the spans: {"list":[{"time":...,"status":200,"kind":"new",
 * "version":3,"length":123,"before":null}],"next":null}. "before" is the capture before, if it is of another version.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/sightings.h"
#include "serve/server.h"

enum { SPANS_MAX = 100000, LIST_DEFAULT = 1000, LIST_MAX = 10000 };

struct calendar {
    struct wb_call *call;
    struct wb_slice url;
    struct wb_pageid id;
    struct wb_store_timeline timeline;
    struct wb_sightings captures;
    bool listed;
    int64_t from_ms, to_ms;
    uint64_t limit, after;
};

static int read_time(struct wb_call *call, const char *name, bool end, int64_t *time_out)
{
    struct wb_slice text = wb_http_param(call->request, name);

    if (wb_date_parse(text, time_out) || (end && wb_date_parse_digits_end(text, time_out)) ||
        (!end && text.len <= 14 && wb_date_parse_digits(text, time_out)))
        return 0;
    return wb_fail(WB_E_INVALID, "%s=%.*s is not a time; write 20260131120000 or 2026-01-31T12:00:00Z", name,
                   WB_SLICE_ARG(text));
}

static int read_params(struct calendar *c)
{
    struct wb_slice from = wb_http_param(c->call->request, "from"), to = wb_http_param(c->call->request, "to");
    int err = wb_call_required(c->call, "url", &c->url);

    if (err == 0)
        err = wb_which_page(c->url, &c->id);
    c->listed = from.ptr || to.ptr;
    if (err == 0 && c->listed && !(from.ptr && to.ptr))
        err = wb_fail(WB_E_INVALID, "from and to go together");
    if (err == 0 && c->listed)
        err = read_time(c->call, "from", false, &c->from_ms);
    if (err == 0 && c->listed)
        err = read_time(c->call, "to", true, &c->to_ms);
    if (err == 0)
        err = wb_call_number(c->call, "limit", LIST_DEFAULT, LIST_MAX, &c->limit);
    return err < 0 ? err : wb_call_number(c->call, "after", 0, UINT32_MAX, &c->after);
}

/* Spans beyond the bound are left out, the oldest ones first; quarters of an hour become hours and days before that. */
static int add_spans(struct calendar *c, struct wb_json *j)
{
    static const int64_t units[] = {15 * WB_MINUTE_MS, WB_HOUR_MS, WB_DAY_MS};
    struct wb_sighting_spans spans = WB_VEC_INIT;
    int64_t unit = units[0];
    uint64_t left_out = 0;
    int err = 0;

    for (size_t i = 0; i < sizeof units / sizeof *units && err == 0 && (i == 0 || spans.count > SPANS_MAX); i++) {
        wb_sighting_spans_release(&spans);
        unit = units[i];
        err = wb_sightings_count(&c->captures, unit, &spans);
    }
    size_t begin = spans.count > SPANS_MAX ? spans.count - SPANS_MAX : 0;
    wb_json_field_i64(j, "unit", unit / 1000);
    wb_json_key(j, "spans");
    wb_json_array(j);
    for (size_t i = 0; i < spans.count && err == 0; i++) {
        const struct wb_sighting_span *span = &spans.items[i];
        left_out += i < begin ? span->count : 0;
        if (i < begin)
            continue;
        wb_json_array(j);
        wb_json_i64(j, span->number);
        wb_json_u64(j, span->count);
        wb_json_u64(j, span->kinds[WB_SIGHTING_NEW]);
        wb_json_u64(j, span->kinds[WB_SIGHTING_REDIRECT]);
        wb_json_u64(j, span->kinds[WB_SIGHTING_ERROR]);
        wb_json_array_end(j);
    }
    wb_json_array_end(j);
    wb_json_field_u64(j, "left_out", left_out);
    wb_sighting_spans_release(&spans);
    return err;
}

static void add_list(struct calendar *c, struct wb_json *j)
{
    size_t first = wb_sightings_from(&c->captures, c->from_ms), count = c->captures.count;
    size_t at = c->after < count - first ? first + (size_t)c->after : count;
    size_t end = c->limit < count - at ? at + (size_t)c->limit : count;
    WB_CHECK(first <= at && at <= end && end <= count);

    wb_json_key(j, "list");
    wb_json_array(j);
    for (; at < end && c->captures.items[at].time_ms <= c->to_ms; at++) {
        const struct wb_sighting *capture = &c->captures.items[at];
        WB_CHECK(capture->version < c->timeline.count);
        const struct wb_store_version *version = &c->timeline.versions[capture->version];
        wb_json_object(j);
        wb_json_field_time(j, "time", capture->time_ms);
        wb_json_field_u64(j, "status", version->status);
        wb_json_field_str(j, "kind", wb_sighting_kind_name(capture->kind));
        wb_json_field_u64(j, "version", capture->version + 1);
        wb_json_field_u64(j, "length", version->body_bytes);
        bool differs = at > 0 && c->captures.items[at - 1].version != capture->version;
        wb_json_field_time(j, "before", differs ? c->captures.items[at - 1].time_ms : 0);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
    wb_json_key(j, "next");
    if (at < count && c->captures.items[at].time_ms <= c->to_ms)
        wb_json_u64(j, at - first);
    else
        wb_json_null(j);
}

static int write_answer(struct calendar *c)
{
    size_t count = c->captures.count;
    struct wb_json j;
    int err = 0;

    wb_call_json(c->call, &j);
    wb_json_field_slice(&j, "url", c->url);
    wb_json_field_u64(&j, "captures", count);
    wb_json_field_u64(&j, "versions", c->timeline.count);
    wb_json_field_time(&j, "first", count ? c->captures.items[0].time_ms : 0);
    wb_json_field_time(&j, "last", count ? c->captures.items[count - 1].time_ms : 0);
    wb_json_field_time(&j, "gone", c->timeline.gone_ms);
    if (c->listed)
        add_list(c, &j);
    else
        err = add_spans(c, &j);
    wb_call_json_end(c->call, &j, err);
    return 0;
}

void wb_handle_calendar(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct calendar c = {.call = call};
    int err = read_params(&c);

    if (err == 0) {
        err = wb_store_timeline(call->worker->store, c.id, &c.timeline);
        if (err == WB_E_NOTFOUND)
            err = wb_which_missing(call->worker->store, c.id, c.url, WB_SLICE_EMPTY, "this repository");
    }
    if (err == 0)
        err = wb_sightings_of(&c.timeline, &c.captures);
    if (err == 0)
        err = write_answer(&c);
    if (err < 0)
        wb_call_fail(call, err);
    wb_sightings_release(&c.captures);
    wb_store_timeline_release(&c.timeline);
}
