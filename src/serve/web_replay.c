/*
 * web_replay.c - GET /web/...: pages of the past.
 *
 *   /web/URL                   the timegate: leads to the capture of Accept-Datetime, or to the newest
 *   /web/20260102030405/URL    the page as it was then, rewritten so that its links stay in the archive
 *   /web/20260102030405id_/URL the bytes as they were stored
 *   /web/(*)/URL               all versions, without the parentheses
 *
 * Everything here has the Content-Security-Policy of wb_replay_policy(): what it shows comes from strangers.
 *
 * A browser that asks for a page gets a page of ours with a bar and a frame (stage.h), which loads the stored page from
 * /web/20260102030405mp_/URL. Programs get the stored page at once, with a bar in it.
 */
#include "base/date.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "page/page.h"
#include "replay/replay.h"
#include "serve/delivery.h"
#include "serve/memento.h"
#include "serve/stage.h"
#include "warc/warc.h"
#include "webdb/webdb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "/web/";

/* ---- who asks ------------------------------------------------------------------------------------- */

static bool is_for(const struct wb_call *call, const char *dest)
{
    return wb_slice_equal(wb_http_field(call->request, "Sec-Fetch-Dest"), wb_slice_str(dest));
}

/* Whether the browser shows this in a page, of ours or of others. */
static bool is_embedded(const struct wb_call *call)
{
    return wb_http_field(call->request, "Sec-Fetch-Dest").len && !is_for(call, "document");
}

/* Types that browsers show in a frame. Others are played or saved, and need no page around them. */
static bool is_shown(struct wb_slice type)
{
    return wb_slice_starts(type, WB_SLICE_LIT("text/")) || wb_slice_starts(type, WB_SLICE_LIT("image/")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/xml")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/json")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/javascript")) || wb_slice_ends(type, WB_SLICE_LIT("+xml"));
}

/* Whether a browser asks for this as a page of its own. One that does not say so gets the page without a stage. */
static bool wants_stage(const struct wb_call *call, const struct wb_memento_target *t, const struct wb_page *page)
{
    return !t->raw && !t->main && is_for(call, "document") && is_shown(page->type);
}

/* ---- redirects ----------------------------------------------------------------------------------- */

static int redirect(struct wb_call *call, struct wb_slice place)
{
    call->reply->status = 302;
    return wb_http_reply_field(call->reply, "Location", place);
}

static const char *modifier_of(const struct wb_memento_target *t)
{
    return t->raw ? "id_" : t->main ? "mp_" : "";
}

static int redirect_to_capture(struct wb_call *call, const struct wb_memento_target *t,
                               const struct wb_store_timeline *timeline, size_t at)
{
    struct wb_buf place = WB_BUF_INIT;
    char digits[WB_CDX_TIME_MAX];

    wb_cdx_time(timeline->times[at], digits);
    int err = wb_buf_printf(&place, "%s%s%s/%.*s", prefix, digits, modifier_of(t), WB_SLICE_ARG(wb_buf_slice(&t->url)));
    if (err == 0)
        err = redirect(call, wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

static int answer_timegate(struct wb_call *call, const struct wb_memento_target *t,
                           const struct wb_store_timeline *timeline)
{
    struct wb_slice accept = wb_http_field(call->request, "Accept-Datetime");
    int64_t time_ms = INT64_MAX;

    if (accept.ptr && !wb_date_parse_http(accept, &time_ms))
        return wb_fail(WB_E_INVALID, "Accept-Datetime: %.*s is not a date like 'Sun, 06 Nov 1994 08:49:37 GMT'",
                       WB_SLICE_ARG(accept));
    time_ms += accept.ptr ? 999 : 0;
    int err = redirect_to_capture(call, t, timeline, wb_memento_find(timeline, time_ms));
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Vary", WB_SLICE_LIT("accept-datetime"));
    return err < 0 ? err : wb_memento_links(call, wb_buf_slice(&t->url), timeline, SIZE_MAX);
}

/* ---- a memento ----------------------------------------------------------------------------------- */

/* The Content-Type as the server sent it, as long as it says the same as the record. */
static int add_type(struct wb_call *call, const struct wb_page *page, const char *charset)
{
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

/* Whether the address that was asked for ends with the time and the URL of what is shown. */
static bool is_in_place(const struct wb_call *call, const struct wb_page *page, const char *digits)
{
    struct wb_slice target = call->request->target;
    size_t url_at = sizeof prefix - 1 + strlen(digits) + 1;

    return target.len > url_at && memcmp(target.ptr + sizeof prefix - 1, digits, strlen(digits)) == 0 &&
           target.ptr[url_at - 1] == '/' &&
           wb_slice_equal(wb_slice(target.ptr + url_at, target.len - url_at), page->url);
}

static struct wb_replay_page page_of(const struct wb_page *page, const char *digits)
{
    return (struct wb_replay_page){.url = page->url,
                                   .time = wb_slice_str(digits),
                                   .type = page->type,
                                   .charset = page->charset,
                                   .body = page->body};
}

static int rewrite(struct wb_call *call, const struct wb_memento_target *t, const struct wb_page *page,
                   const char *digits)
{
    struct wb_replay_page shown = page_of(page, digits);
    struct wb_replay_banner banner = {.url = page->url,
                                      .time = shown.time,
                                      .prefix = WB_SLICE_LIT("/web/"),
                                      .versions = WB_SLICE_LIT("/web/*/"),
                                      .in_frame = is_embedded(call) || t->main,
                                      .xml = !wb_slice_equal(page->type, WB_SLICE_LIT("text/html"))};
    struct wb_replay_options options = {.prefix = banner.prefix,
                                        .front = t->main ? WB_SLICE_LIT("<base target=\"_top\" />") : WB_SLICE_EMPTY,
                                        .outermost = t->main,
                                        .in_place = is_in_place(call, page, digits)};
    struct wb_replay_result result;
    struct wb_buf html = WB_BUF_INIT;

    int err = wb_replay_banner(&banner, &html);
    options.banner = wb_buf_slice(&html);
    if (err == 0)
        err = wb_replay_rewrite(call->worker->replayer, &shown, &options, &call->reply->body, &result);
    if (err == 0)
        err = add_type(call, page, result.charset);
    call->parts = result.kind == WB_REPLAY_UNCHANGED;
    wb_buf_release(&html);
    return err;
}

/* The bytes as they were stored. */
static int show_bytes(struct wb_call *call, const struct wb_page *page)
{
    int err = wb_buf_append_slice(&call->reply->body, page->body);

    call->parts = true;
    return err < 0 ? err : add_type(call, page, "");
}

/*
 * Where a stored redirect leads in the archive; empty if it is none, or leads nowhere: then its body is shown.
 * *itself_out: it leads to another spelling of its own page, from http to https or from /a to /a/. That is the same
 * address here, so it counts as leading nowhere.
 */
static int find_location(const struct wb_memento_target *t, const struct wb_page *page, const char *digits,
                         struct wb_buf *place, bool *itself_out)
{
    struct wb_replay_page shown = {.url = page->url, .time = wb_slice_str(digits)};
    struct wb_memento_target target = {0};
    struct wb_buf public = WB_BUF_INIT;
    struct wb_slice location;

    *itself_out = false;
    if (!wb_http_status_redirects(page->status) || !wb_http_header(page->head, "Location", &location))
        return 0;
    int err = wb_url_public(location, &public, &location);
    if (err == 0)
        err = wb_replay_location(&shown, wb_slice_str(prefix), t->main, location, place);
    if (err == 0)
        err = wb_memento_parse(wb_slice(place->ptr + sizeof prefix - 1, place->len - (sizeof prefix - 1)), &target);
    *itself_out = err == 0 && wb_pageid_equal(target.id, t->id);
    wb_memento_target_release(&target);
    wb_buf_release(&public);
    if (err < 0 || *itself_out)
        wb_buf_clear(place);
    return err == WB_E_NOMEM ? err : 0;
}

/* A stored redirect leads to its target in the archive. */
static int add_location(struct wb_call *call, const struct wb_memento_target *t, const struct wb_page *page,
                        const char *digits)
{
    struct wb_buf place = WB_BUF_INIT;
    bool itself;
    int err = find_location(t, page, digits, &place, &itself);

    if (err == 0 && place.len)
        err = wb_http_reply_field(call->reply, "Location", wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

static int add_memento_fields(struct wb_call *call, const struct wb_memento_target *t,
                              const struct wb_store_timeline *timeline, size_t at)
{
    char date[WB_DATE_HTTP_BYTES];
    struct wb_buf place = WB_BUF_INIT;
    int err = 0;

    if (wb_date_format_http(timeline->times[at], date))
        err = wb_http_reply_field(call->reply, "Memento-Datetime", wb_slice(date, WB_DATE_HTTP_BYTES));
    if (err == 0)
        err = wb_memento_address(WB_SLICE_EMPTY, wb_buf_slice(&t->url), timeline->times[at], &place);
    if (err == 0 && t->url.len <= WB_MEMENTO_LINKED_MAX)
        err = wb_http_reply_field(call->reply, "Content-Location", wb_buf_slice(&place));
    wb_buf_release(&place);
    return err < 0 ? err : wb_memento_links(call, wb_buf_slice(&t->url), timeline, at);
}

/*
 * A browser may keep what it got, but asks each time whether that is still so: a page can be taken down, and another
 * capture can become the nearest one. The tag stands for all that the reply depends on. *known_out: the client has it.
 */
static int add_validator(struct wb_call *call, const struct wb_memento_target *t, const struct wb_page *page,
                         const char *digits, bool *known_out)
{
    struct wb_buf what = WB_BUF_INIT;
    uint64_t high, low;
    char tag[40];
    int err = wb_buf_printf(&what, "%s %s %d %d %d %d %016llx %.*s %.*s ", WB_VERSION, digits, t->raw, t->main,
                            is_embedded(call), is_in_place(call, page, digits),
                            (unsigned long long)wb_hash64(page->body.ptr, page->body.len), WB_SLICE_ARG(page->type),
                            WB_SLICE_ARG(page->charset));

    *known_out = false;
    if (err == 0)
        err = wb_buf_append_slice(&what, page->url);
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

/*
 * A page in a sandbox goes nowhere by itself, so that the stage does instead what the page's refresh says. The page is
 * rewritten only to find that.
 */
static int add_refresh(struct wb_call *call, const struct wb_page *page, const char *digits)
{
    struct wb_replay_page shown = page_of(page, digits);
    struct wb_buf html = WB_BUF_INIT, refresh = WB_BUF_INIT;
    struct wb_replay_options options = {.prefix = wb_slice_str(prefix), .refresh = &refresh};
    struct wb_replay_result result;

    int err = wb_replay_rewrite(call->worker->replayer, &shown, &options, &html, &result);
    if (err == 0 && refresh.len && refresh.len <= WB_MEMENTO_LINKED_MAX)
        err = wb_http_reply_field(call->reply, "Refresh", wb_buf_slice(&refresh));
    wb_buf_release(&html);
    wb_buf_release(&refresh);
    return err;
}

/* A page of ours with the stored page in a frame. */
static int show_stage(struct wb_call *call, const struct wb_page *page, const struct wb_store_timeline *timeline,
                      size_t at, const char *digits)
{
    struct wb_buf src = WB_BUF_INIT;
    int err = wb_buf_printf(&src, "%s%smp_/%.*s", prefix, digits, WB_SLICE_ARG(page->url));
    struct wb_stage stage = {.url = page->url,
                             .timeline = timeline,
                             .at = at,
                             .src = wb_buf_slice(&src),
                             .sandbox = WB_SLICE_LIT("allow-popups allow-popups-to-escape-sandbox "
                                                     "allow-top-navigation-by-user-activation"),
                             .frames = WB_SLICE_LIT("'self'")};

    if (err == 0)
        err = add_refresh(call, page, digits);
    if (err == 0)
        err = wb_stage_show(call, &stage);
    wb_buf_release(&src);
    return err;
}

/* The status of the original; but what is stored is neither a part nor "you have it already". */
static unsigned status_of(const struct wb_page *page)
{
    bool shown = page->status >= 200 && page->status < 600 && page->status != 206 && page->status != 304;

    return shown ? page->status : 200;
}

static int show_capture(struct wb_call *call, const struct wb_memento_target *t,
                        const struct wb_store_timeline *timeline, size_t at, bool *staged_out)
{
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME, .time_ms = timeline->times[at]};
    struct wb_buf mem = WB_BUF_INIT, public = WB_BUF_INIT;
    char digits[WB_CDX_TIME_MAX];
    struct wb_page page;
    bool known = false;

    wb_cdx_time(timeline->times[at], digits);
    int err = wb_store_get_when(call->worker->store, t->id, &when, &page, &mem);
    if (err == 0)
        err = wb_url_public(page.url, &public, &page.url);
    if (err == 0) {
        page.type = wb_replay_type(page.type, page.body);
        call->reply->status = status_of(&page);
        err = add_memento_fields(call, t, timeline, at);
    }
    if (err == 0)
        err = add_location(call, t, &page, digits);
    *staged_out = err == 0 && wants_stage(call, t, &page);
    if (err == 0 && !*staged_out)
        err = add_validator(call, t, &page, digits, &known);
    if (err == 0 && known && call->reply->status == 200)
        call->reply->status = 304;
    else if (err == 0)
        err = *staged_out ? show_stage(call, &page, timeline, at, digits)
              : t->raw    ? show_bytes(call, &page)
                          : rewrite(call, t, &page, digits);
    wb_buf_release(&mem);
    wb_buf_release(&public);
    return err;
}

/* ---- which capture ------------------------------------------------------------------------------- */

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
static int choose_capture(struct wb_call *call, const struct wb_memento_target *t,
                          const struct wb_store_timeline *timeline, size_t *at_out)
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
    return err;
}

/* The capture nearest to this one that is not a redirect; *is_out: whether this one is. The same one if all are. */
static size_t find_page(const struct wb_store_timeline *timeline, size_t at, bool *is_out)
{
    size_t found = at;
    int64_t best = INT64_MAX;

    *is_out = false;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct wb_store_version *version = &timeline->versions[i];
        bool redirects = wb_http_status_redirects(version->status);
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

/* A redirect of a page to itself would lead in a circle: the page is meant that was captured next to it. */
static int pass_itself(struct wb_call *call, const struct wb_memento_target *t,
                       const struct wb_store_timeline *timeline, size_t *at)
{
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME, .time_ms = timeline->times[*at]};
    struct wb_buf mem = WB_BUF_INIT, place = WB_BUF_INIT;
    char digits[WB_CDX_TIME_MAX];
    struct wb_page page;
    bool redirects, itself = false;
    size_t other = find_page(timeline, *at, &redirects);

    if (!redirects || other == *at || t->raw)
        return 0;
    wb_cdx_time(timeline->times[*at], digits);
    int err = wb_store_get_when(call->worker->store, t->id, &when, &page, &mem);
    if (err == 0)
        err = find_location(t, &page, digits, &place, &itself);
    if (err == 0 && itself)
        *at = other;
    wb_buf_release(&mem);
    wb_buf_release(&place);
    return err;
}

/* A time at which there is no capture leads to the capture; what a page embeds is shown at once, to save a request. */
static int answer(struct wb_call *call, const struct wb_memento_target *t, const struct wb_store_timeline *timeline,
                  bool *staged_out)
{
    if (!t->has_time && !t->raw)
        return answer_timegate(call, t, timeline);
    size_t at;
    int err = choose_capture(call, t, timeline, &at);
    if (err == 0)
        err = pass_itself(call, t, timeline, &at);
    if (err < 0)
        return err;
    bool exact = timeline->times[at] / 1000 == t->time_ms / 1000;
    bool leaves_stage = t->main && is_for(call, "document");
    if ((t->has_time && !exact && (t->main || !is_embedded(call))) || leaves_stage) {
        struct wb_memento_target there = *t;
        there.main = t->main && !leaves_stage;
        err = redirect_to_capture(call, &there, timeline, at);
        return err < 0 ? err : wb_memento_links(call, wb_buf_slice(&t->url), timeline, SIZE_MAX);
    }
    return show_capture(call, t, timeline, at, staged_out);
}

/*
 * There is no capture of this URL. It may be one of an alias: webdb knows where a crawl found the same page, under the
 * name that it crawls (status 0: nobody was asked). Returns 1 if it leads there, 0 if not, or an error.
 */
static int answer_alias(struct wb_call *call, const struct wb_memento_target *t)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_page page;
    struct wb_memento_target other = {0};
    struct wb_buf place = WB_BUF_INIT;
    char digits[WB_CDX_TIME_MAX] = "";
    int64_t time_ms;
    bool there = false;

    int err = wb_webdb_open(call->server->options->dir, &webdb);
    if (err == 0)
        err = wb_webdb_get_page(webdb, wb_buf_slice(&t->url), &page);
    if (err == 0 && page.status == 0 && !page.has_content && page.location.len) {
        err = wb_memento_url(page.location, &other);
        if (err == 0)
            err = wb_store_time(call->worker->store, other.id, &time_ms);
        there = err == 0;
    }
    if (there && t->has_time)
        wb_cdx_time(t->time_ms, digits);
    if (there)
        err = wb_buf_printf(&place, "%s%s%s%s%.*s", prefix, digits, t->raw ? "id_" : "",
                            t->has_time || t->raw ? "/" : "", WB_SLICE_ARG(wb_buf_slice(&other.url)));
    if (there && err == 0)
        err = redirect(call, wb_buf_slice(&place));
    wb_memento_target_release(&other);
    wb_buf_release(&place);
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND || err == WB_E_INVALID ? 0 : err < 0 ? err : there;
}

static int redirect_to_list(struct wb_call *call, const struct wb_memento_target *t)
{
    struct wb_buf place = WB_BUF_INIT;
    int err = wb_buf_append_str(&place, "/page?url=");

    if (err == 0)
        err = wb_call_escape(wb_buf_slice(&t->url), &place);
    if (err == 0)
        err = redirect(call, wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

/* Nobody is told which page the reader looks at, and no name is looked up before a link is followed. */
static int add_policies(struct wb_call *call)
{
    int err = wb_http_reply_field(call->reply, "Content-Security-Policy", wb_slice_str(wb_replay_policy()));

    if (err == 0)
        err = wb_http_reply_field(call->reply, "Referrer-Policy", WB_SLICE_LIT("no-referrer"));
    return err < 0 ? err : wb_http_reply_field(call->reply, "X-DNS-Prefetch-Control", WB_SLICE_LIT("off"));
}

void wb_handle_replay(struct wb_call *call)
{
    struct wb_slice target = call->request->target;
    bool staged = false;
    struct wb_store_timeline timeline = {0};
    struct wb_memento_target t = {0};

    int err = wb_memento_parse(wb_slice(target.ptr + sizeof prefix - 1, target.len - (sizeof prefix - 1)), &t);
    if (err == 0 && t.list) {
        err = redirect_to_list(call, &t);
    } else if (err == 0) {
        err = wb_store_timeline(call->worker->store, t.id, &timeline);
        if (err == 0 && timeline.time_count == 0)
            err = WB_E_NOTFOUND;
        err = err == 0 ? answer(call, &t, &timeline, &staged) : err;
        if (err == WB_E_NOTFOUND) {
            err = answer_alias(call, &t);
            err = err > 0 ? 0 : err < 0 ? err : WB_E_NOTFOUND;
        }
        if (err == WB_E_NOTFOUND)
            err = wb_which_missing(call->worker->store, t.id, wb_buf_slice(&t.url), WB_SLICE_EMPTY, "this archive");
    }
    if (err == 0 && !staged)
        err = add_policies(call);
    if (err < 0)
        wb_call_fail(call, err); /* a page of ours, with a policy of its own */
    wb_store_timeline_release(&timeline);
    wb_memento_target_release(&t);
}
