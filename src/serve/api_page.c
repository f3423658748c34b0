/*
 * api_page.c - one page: its facts and its versions.
 *
 *   GET /api/page?url=[&at=TIME|&snapshot=N]      what `webbase get --json` prints
 *   GET /api/versions?url=[&limit=][&after=]      {"url":...,"versions":[what `webbase versions --json` prints],
 *                                                  "gone":null,"next":null}
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/server.h"

enum { TRIES = 100, VERSIONS_DEFAULT = 1000, VERSIONS_MAX = 10000 };

/* Which version the parameters mean. */
static int read_when(struct wb_call *call, struct wb_slice snapshot, struct wb_store_when *when_out)
{
    struct wb_slice at = wb_http_param(call->request, "at");

    *when_out = (struct wb_store_when){.kind = WB_STORE_WHEN_LATEST};
    if (at.ptr && snapshot.ptr)
        return wb_fail(WB_E_INVALID, "at and snapshot exclude each other");
    if (at.ptr) {
        when_out->kind = WB_STORE_WHEN_TIME;
        if (!wb_date_parse(at, &when_out->time_ms))
            return wb_fail(WB_E_INVALID, "at=%.*s is not a time; write 2026-01-31 or 2026-01-31T12:00:00Z",
                           WB_SLICE_ARG(at));
    }
    if (!snapshot.ptr)
        return 0;
    when_out->kind = WB_STORE_WHEN_SNAPSHOT;
    return wb_which_snapshot(call->worker->store, snapshot, &when_out->snapshot);
}

void wb_handle_page(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_slice url, snapshot = wb_http_param(call->request, "snapshot");
    struct wb_buf mem = WB_BUF_INIT, public = WB_BUF_INIT;
    struct wb_store_when when;
    struct wb_pageid id;
    struct wb_page page;
    struct wb_json j;

    int err = wb_call_required(call, "url", &url);
    if (err == 0)
        err = wb_which_page(url, &id);
    if (err == 0)
        err = read_when(call, snapshot, &when);
    if (err == 0) {
        err = wb_store_get_when(call->worker->store, id, &when, &page, &mem);
        if (err == WB_E_NOTFOUND)
            err = wb_which_missing(call->worker->store, id, url, snapshot, "this repository");
    }
    if (err == 0)
        err = wb_url_public(page.url, &public, &page.url);
    if (err == 0) {
        wb_call_json(call, &j);
        wb_answer_page(&j, &page);
        wb_call_json_end(call, &j, 0);
    } else {
        wb_call_fail(call, err);
    }
    wb_buf_release(&mem);
    wb_buf_release(&public);
}

/* Which versions are wanted: `limit` of them behind the first `after`. */
struct version_range {
    uint64_t after, limit;
};

/* Adds these versions. Returns 1; 0 if the page has changed meanwhile, so that it must be tried again; or an error. */
static int add_versions(struct wb_call *call, struct wb_json *j, struct wb_pageid id, struct wb_slice url,
                        const struct version_range *range)
{
    WB_CHECK(range->after <= UINT32_MAX && range->limit <= VERSIONS_MAX); /* their sum is a number */
    struct wb_store_timeline timeline = {0};
    struct wb_buf mem = WB_BUF_INIT, public = WB_BUF_INIT;
    struct wb_page page;
    int got = wb_store_timeline(call->worker->store, id, &timeline);

    if (got == 0)
        got = 1;
    wb_json_key(j, "versions");
    wb_json_array(j);
    uint64_t end = range->after + range->limit < timeline.count ? range->after + range->limit : timeline.count;
    for (uint64_t i = range->after; got > 0 && i < end; i++) {
        got = wb_store_get_version(call->worker->store, id, &timeline.versions[i], &page, &mem);
        bool damaged = got == WB_E_CORRUPT;
        if (damaged)
            got = 1;
        if (got > 0 && !damaged && wb_url_public(page.url, &public, &page.url) < 0)
            got = WB_E_NOMEM;
        if (got <= 0)
            break;
        wb_json_object(j);
        wb_answer_version(j, url, i + 1, &timeline.versions[i], damaged ? NULL : &page);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
    wb_json_field_time(j, "gone", timeline.gone_ms);
    wb_json_key(j, "next");
    if (end < timeline.count)
        wb_json_u64(j, end);
    else
        wb_json_null(j);
    wb_store_timeline_release(&timeline);
    wb_buf_release(&mem);
    wb_buf_release(&public);
    return got;
}

void wb_handle_versions(struct wb_call *call)
{
    struct version_range range;
    struct wb_pageid id;
    struct wb_slice url;
    struct wb_json j;
    int got = 0;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_call_required(call, "url", &url);
    if (err == 0)
        err = wb_which_page(url, &id);
    if (err == 0)
        err = wb_call_number(call, "limit", VERSIONS_DEFAULT, VERSIONS_MAX, &range.limit);
    if (err == 0)
        err = wb_call_number(call, "after", 0, UINT32_MAX, &range.after);
    for (int i = 0; err == 0 && got == 0 && i < TRIES; i++) {
        wb_buf_clear(&call->reply->body);
        wb_buf_clear(&call->reply->fields);
        call->body = WB_CALL_NOTHING;
        wb_call_json(call, &j);
        wb_json_field_slice(&j, "url", url);
        got = add_versions(call, &j, id, url, &range);
    }
    if (got == WB_E_NOTFOUND)
        got = wb_which_missing(call->worker->store, id, url, WB_SLICE_EMPTY, "this repository");
    if (err == 0)
        err = got > 0 ? 0 : got < 0 ? got : wb_fail(WB_E_BUSY, "the page changes faster than its versions can be read");
    if (err == 0)
        wb_call_json_end(call, &j, 0);
    else
        wb_call_fail(call, err);
}
