/* capture.c - which capture is shown, and what replies with it have in common. */
#include "serve/capture.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "page/page.h"
#include "serve/delivery.h"
#include "webdb/webdb.h"

#include <stdio.h>
#include <stdlib.h>

bool wb_capture_is_for(const struct wb_call *call, const char *dest)
{
    return wb_slice_equal(wb_http_field(call->request, "Sec-Fetch-Dest"), wb_slice_str(dest));
}

bool wb_capture_is_embedded(const struct wb_call *call)
{
    return wb_http_field(call->request, "Sec-Fetch-Dest").len && !wb_capture_is_for(call, "document");
}

/* ---- which one ----------------------------------------------------------------------------------- */

int wb_capture_timeline(struct wb_call *call, struct wb_pageid id, struct wb_store_timeline *timeline_out)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->worker->magic == WB_SERVE_WORKER_MAGIC);
    int err = wb_store_timeline(call->worker->store, id, timeline_out);

    return err == 0 && timeline_out->time_count == 0 ? WB_E_NOTFOUND : err;
}

struct seals WB_VEC_OF(int64_t);

static int add_seal(void *context, const struct wb_store_snapshot *snapshot)
{
    struct seals *seals = context;

    return wb_vec_push(seals, snapshot->time_ms);
}

/*
 * The links of a replayed page have its second: they lead to the capture that belongs to the page. A shorter time was
 * written by a person or a program, and means the state at its end, as for the timegate.
 */
int wb_capture_choose(struct wb_call *call, const struct wb_memento_target *t, const struct wb_store_timeline *timeline,
                      size_t *at_out)
{
    struct seals seals = WB_VEC_INIT;
    int err = 0;

    *at_out = wb_memento_find(timeline, t->has_time ? t->time_ms : INT64_MAX);
    if (!t->has_second || timeline->times[*at_out] / 1000 == t->time_ms / 1000)
        return 0;
    err = wb_store_snapshot_each(call->worker->store, add_seal, &seals);
    if (err == 0)
        *at_out = wb_memento_near(timeline, t->time_ms, seals.items, seals.count);
    wb_vec_release(&seals);
    WB_CHECK(*at_out < timeline->time_count);
    return err;
}

int wb_capture_at(struct wb_call *call, struct wb_pageid id, int64_t time_ms, struct wb_page *page_out,
                  struct wb_buf *mem_out)
{
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME};
    struct wb_store_timeline timeline = {0};
    int err = wb_capture_timeline(call, id, &timeline);

    if (err == 0) {
        when.time_ms = timeline.times[wb_memento_find(&timeline, time_ms)];
        err = wb_store_get_when(call->worker->store, id, &when, page_out, mem_out);
    }
    if (err == 0)
        page_out->time_ms = when.time_ms;
    wb_store_timeline_release(&timeline);
    return err;
}

size_t wb_capture_beside(const struct wb_store_timeline *timeline, size_t at, bool *is_out)
{
    size_t found = at;
    int64_t best = INT64_MAX;

    WB_CHECK(at < timeline->time_count);
    *is_out = false;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct wb_store_version *version = &timeline->versions[i];
        bool redirects = wb_http_status_redirects(version->status);
        WB_CHECK(version->first <= timeline->time_count && version->captures <= timeline->time_count - version->first);
        for (size_t k = version->first; k < version->first + version->captures; k++) {
            int64_t away = llabs(timeline->times[k] - timeline->times[at]);
            *is_out = *is_out || (k == at && redirects);
            if (!redirects && away < best) {
                found = k;
                best = away;
            }
        }
    }
    return found;
}

int wb_capture_alias(struct wb_call *call, const struct wb_memento_target *t, struct wb_memento_target *other_out)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_page page;
    int64_t time_ms;
    bool there = false;

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    *other_out = (struct wb_memento_target){0};
    int err = wb_webdb_open(call->server->options->dir, &webdb);
    if (err == 0)
        err = wb_webdb_get_page(webdb, wb_buf_slice(&t->url), &page);
    if (err == 0 && page.status == 0 && !page.has_content && page.location.len) { /* status 0: nobody was asked */
        err = wb_memento_url(page.location, other_out);
        if (err == 0)
            err = wb_store_time(call->worker->store, other_out->id, &time_ms);
        there = err == 0;
    }
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND || err == WB_E_INVALID ? 0 : err < 0 ? err : there;
}

/* ---- its reply ----------------------------------------------------------------------------------- */

int wb_capture_read(struct wb_call *call, struct wb_pageid id, const struct wb_store_timeline *timeline, size_t at,
                    struct wb_memento *c)
{
    WB_CHECK(at < timeline->time_count);
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME, .time_ms = timeline->times[at]};

    *c = (struct wb_memento){.mem = WB_BUF_INIT, .public = WB_BUF_INIT};
    wb_cdx_time(timeline->times[at], c->digits);
    int err = wb_store_get_when(call->worker->store, id, &when, &c->page, &c->mem);
    if (err == 0)
        err = wb_url_public(c->page.url, &c->public, &c->page.url);
    if (err == 0)
        c->page.type = wb_replay_type(c->page.type, c->page.body);
    return err;
}

void wb_capture_release(struct wb_memento *capture)
{
    wb_buf_release(&capture->mem);
    wb_buf_release(&capture->public);
}

struct wb_replay_page wb_capture_page(const struct wb_memento *c)
{
    return (struct wb_replay_page){.url = c->page.url,
                                   .time = wb_slice_str(c->digits),
                                   .type = c->page.type,
                                   .charset = c->page.charset,
                                   .body = c->page.body};
}

unsigned wb_capture_status(const struct wb_page *page)
{
    bool shown = page->status >= 200 && page->status < 600 && page->status != 206 && page->status != 304;

    return shown ? page->status : 200;
}

int wb_capture_type(struct wb_call *call, const struct wb_page *page, const char *charset)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct wb_buf type = WB_BUF_INIT;
    int err = wb_buf_append_slice(&type, page->type);

    if (err == 0 && charset[0])
        err = wb_buf_printf(&type, "; charset=%s", charset);
    else if (err == 0 && page->charset.len)
        err = wb_buf_printf(&type, "; charset=%.*s", WB_SLICE_ARG(page->charset));
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Content-Type", wb_buf_slice(&type));
    wb_buf_release(&type);
    return err;
}

int wb_capture_validator(struct wb_call *call, const struct wb_memento *c, struct wb_slice how, bool *known_out)
{
    WB_CHECK(call->reply->body.len == 0);
    WB_CHECK(c->digits[0]);
    struct wb_buf what = WB_BUF_INIT;
    uint64_t high, low;
    char tag[40];
    int err = wb_buf_printf(&what, "%s %s %.*s %016llx %.*s %.*s ", WB_VERSION, c->digits, WB_SLICE_ARG(how),
                            (unsigned long long)wb_hash64(c->page.body.ptr, c->page.body.len),
                            WB_SLICE_ARG(c->page.type), WB_SLICE_ARG(c->page.charset));

    *known_out = false;
    if (err == 0)
        err = wb_buf_append_slice(&what, c->page.url);
    if (err == 0) {
        wb_hash128(what.ptr, what.len, &high, &low);
        snprintf(tag, sizeof tag, "\"%016llx%016llx\"", (unsigned long long)high, (unsigned long long)low);
        *known_out = wb_delivery_has_tag(wb_http_field(call->request, "If-None-Match"), wb_slice_str(tag));
        err = wb_http_reply_field(call->reply, "ETag", wb_slice_str(tag));
    }
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Cache-Control", WB_SLICE_LIT("private, no-cache"));
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Vary", WB_SLICE_LIT("Sec-Fetch-Dest"));
    wb_buf_release(&what);
    return err;
}
