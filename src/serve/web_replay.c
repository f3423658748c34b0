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
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "page/page.h"
#include "replay/replay.h"
#include "serve/capture.h"
#include "serve/page_missing.h"
#include "serve/replay_door.h"
#include "serve/stage.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "/web/";

/* ---- who asks ------------------------------------------------------------------------------------- */

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
    return !t->raw && !t->main && wb_capture_is_for(call, "document") && is_shown(page->type);
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

    WB_CHECK(at < timeline->time_count);
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

/* Whether the address that was asked for ends with the time and the URL of what is shown. */
static bool is_in_place(const struct wb_call *call, const struct wb_memento *c)
{
    struct wb_slice target = call->request->target;
    size_t time = strlen(c->digits), url_at = sizeof prefix - 1 + time + 1;

    return target.len > url_at && memcmp(target.ptr + sizeof prefix - 1, c->digits, time) == 0 &&
           target.ptr[url_at - 1] == '/' &&
           wb_slice_equal(wb_slice(target.ptr + url_at, target.len - url_at), c->page.url);
}

static int rewrite(struct wb_call *call, const struct wb_memento_target *t, const struct wb_memento *c)
{
    WB_CHECK(call->reply->body.len == 0);
    struct wb_replay_page shown = wb_capture_page(c);
    struct wb_replay_banner banner = {.url = shown.url,
                                      .time = shown.time,
                                      .prefix = WB_SLICE_LIT("/web/"),
                                      .versions = WB_SLICE_LIT("/web/*/"),
                                      .in_frame = wb_capture_is_embedded(call) || t->main,
                                      .xml = !wb_slice_equal(shown.type, WB_SLICE_LIT("text/html"))};
    struct wb_replay_options options = {.prefix = banner.prefix,
                                        .front = t->main ? WB_SLICE_LIT("<base target=\"_top\" />") : WB_SLICE_EMPTY,
                                        .outermost = t->main,
                                        .in_place = is_in_place(call, c)};
    struct wb_replay_result result;
    struct wb_buf html = WB_BUF_INIT;

    int err = wb_replay_banner(&banner, &html);
    options.banner = wb_buf_slice(&html);
    if (err == 0)
        err = wb_replay_rewrite(call->worker->replayer, &shown, &options, &call->reply->body, &result);
    if (err == 0)
        err = wb_capture_type(call, &c->page, result.charset);
    call->parts = err == 0 && result.kind == WB_REPLAY_UNCHANGED;
    wb_buf_release(&html);
    return err;
}

/* The bytes as they were stored. */
static int show_bytes(struct wb_call *call, const struct wb_page *page)
{
    WB_CHECK(call->reply->body.len == 0);
    int err = wb_buf_append_slice(&call->reply->body, page->body);

    call->parts = true;
    return err < 0 ? err : wb_capture_type(call, page, "");
}

/*
 * Where a stored redirect leads in the archive; empty if it is not a redirect, or leads nowhere: then its body is
 * shown. *itself_out: it leads to another spelling of its own page, from http to https or from /a to /a/. That is the
 * same address here, so it counts as leading nowhere.
 */
static int find_location(const struct wb_memento_target *t, const struct wb_memento *c, struct wb_buf *place,
                         bool *itself_out)
{
    struct wb_replay_page shown = wb_capture_page(c);
    struct wb_memento_target target = {0};
    struct wb_buf public = WB_BUF_INIT;
    struct wb_slice location;

    *itself_out = false;
    if (!wb_http_status_redirects(c->page.status) || !wb_http_header(c->page.head, "Location", &location))
        return 0;
    int err = wb_url_public(location, &public, &location);
    if (err == 0)
        err = wb_replay_location(&shown, wb_slice_str(prefix), t->main, location, place);
    if (err == 0) {
        WB_CHECK(wb_slice_starts(wb_buf_slice(place), wb_slice_str(prefix)));
        err = wb_memento_parse(wb_slice(place->ptr + sizeof prefix - 1, place->len - (sizeof prefix - 1)), &target);
    }
    *itself_out = err == 0 && wb_pageid_equal(target.id, t->id);
    wb_memento_target_release(&target);
    wb_buf_release(&public);
    if (err < 0 || *itself_out)
        wb_buf_clear(place);
    return err == WB_E_NOMEM ? err : 0;
}

/* A stored redirect leads to its target in the archive. */
static int add_location(struct wb_call *call, const struct wb_memento_target *t, const struct wb_memento *c)
{
    struct wb_buf place = WB_BUF_INIT;
    bool itself;
    int err = find_location(t, c, &place, &itself);

    if (err == 0 && place.len)
        err = wb_http_reply_field(call->reply, "Location", wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

static int add_memento_fields(struct wb_call *call, const struct wb_memento_target *t,
                              const struct wb_store_timeline *timeline, size_t at)
{
    WB_CHECK(at < timeline->time_count);
    struct wb_buf place = WB_BUF_INIT;
    int err = wb_memento_datetime(call, timeline->times[at]);

    if (err == 0)
        err = wb_memento_address(WB_SLICE_EMPTY, wb_buf_slice(&t->url), timeline->times[at], &place);
    if (err == 0 && t->url.len <= WB_MEMENTO_LINKED_MAX)
        err = wb_http_reply_field(call->reply, "Content-Location", wb_buf_slice(&place));
    wb_buf_release(&place);
    return err < 0 ? err : wb_memento_links(call, wb_buf_slice(&t->url), timeline, at);
}

static int add_validator(struct wb_call *call, const struct wb_memento_target *t, const struct wb_memento *c,
                         bool *known_out)
{
    char how[8];

    snprintf(how, sizeof how, "%d%d%d%d", t->raw, t->main, wb_capture_is_embedded(call), is_in_place(call, c));
    return wb_capture_validator(call, c, wb_slice_str(how), known_out);
}

/* ---- the stage ----------------------------------------------------------------------------------- */

/*
 * A page in a sandbox goes nowhere by itself, so that the stage does instead what the page's refresh says. The page is
 * rewritten only to find that.
 */
static int add_refresh(struct wb_call *call, const struct wb_memento *c)
{
    struct wb_replay_page shown = wb_capture_page(c);
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

/* Where the frame shows a page in a sandbox. */
static int set_sandbox(struct wb_call *call, const struct wb_memento *c, struct wb_stage *stage, struct wb_buf *src)
{
    int err = wb_buf_printf(src, "%s%smp_/%.*s", prefix, c->digits, WB_SLICE_ARG(c->page.url));

    stage->sandbox =
        WB_SLICE_LIT("allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation");
    stage->frames = WB_SLICE_LIT("'self'");
    return err < 0 ? err : add_refresh(call, c);
}

/* A page of ours with the stored page in a frame: on the origin of its site, if it has one. */
static int show_stage(struct wb_call *call, const struct wb_memento *c, const struct wb_store_timeline *timeline,
                      size_t at)
{
    const struct wb_replay_door *door = wb_replay_door_for(call);
    struct wb_stage stage = {.url = c->page.url, .timeline = timeline, .at = at};
    struct wb_buf src = WB_BUF_INIT;
    int err = door ? wb_replay_door_address(door, c->digits, c->page.url, &src) : WB_E_PROTO;

    if (err == 0) {
        stage.sandbox = WB_SLICE_LIT(WB_REPLAY_DOOR_SANDBOX);
        stage.frames = wb_buf_slice(&door->sources);
    } else if (err == WB_E_PROTO) {
        err = set_sandbox(call, c, &stage, &src);
    }
    stage.src = wb_buf_slice(&src);
    if (err == 0)
        err = wb_stage_show(call, &stage);
    wb_buf_release(&src);
    return err;
}

/* ---- a capture ----------------------------------------------------------------------------------- */

static int show_capture(struct wb_call *call, const struct wb_memento_target *t,
                        const struct wb_store_timeline *timeline, size_t at, bool *staged_out)
{
    struct wb_memento c;
    bool known = false;
    int err = wb_capture_read(call, t->id, timeline, at, &c);

    if (err == 0) {
        call->reply->status = wb_capture_status(&c.page);
        err = add_memento_fields(call, t, timeline, at);
    }
    if (err == 0)
        err = add_location(call, t, &c);
    *staged_out = err == 0 && wants_stage(call, t, &c.page);
    if (err == 0 && !*staged_out)
        err = add_validator(call, t, &c, &known);
    if (err == 0 && known && call->reply->status == 200)
        call->reply->status = 304;
    else if (err == 0)
        err = *staged_out ? show_stage(call, &c, timeline, at)
              : t->raw    ? show_bytes(call, &c.page)
                          : rewrite(call, t, &c);
    wb_capture_release(&c);
    return err;
}

/* A redirect of a page to itself would lead in a circle: the page is meant that was captured next to it. */
static int pass_itself(struct wb_call *call, const struct wb_memento_target *t,
                       const struct wb_store_timeline *timeline, size_t *at)
{
    struct wb_buf place = WB_BUF_INIT;
    bool redirects, itself = false;
    size_t other = wb_capture_beside(timeline, *at, &redirects);
    struct wb_memento c;

    if (!redirects || other == *at || t->raw)
        return 0;
    int err = wb_capture_read(call, t->id, timeline, *at, &c);
    if (err == 0)
        err = find_location(t, &c, &place, &itself);
    if (err == 0 && itself)
        *at = other;
    wb_capture_release(&c);
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
    int err = wb_capture_choose(call, t, timeline, &at);
    if (err == 0)
        err = pass_itself(call, t, timeline, &at);
    if (err < 0)
        return err;
    bool exact = timeline->times[at] / 1000 == t->time_ms / 1000;
    bool leaves_stage = t->main && wb_capture_is_for(call, "document");
    if ((t->has_time && !exact && (t->main || !wb_capture_is_embedded(call))) || leaves_stage) {
        struct wb_memento_target there = *t;
        there.main = t->main && !leaves_stage;
        err = redirect_to_capture(call, &there, timeline, at);
        return err < 0 ? err : wb_memento_links(call, wb_buf_slice(&t->url), timeline, SIZE_MAX);
    }
    return show_capture(call, t, timeline, at, staged_out);
}

/* There is no capture, but perhaps one of an alias. Returns 1 if the reply leads there, 0 if not, or an error. */
static int answer_alias(struct wb_call *call, const struct wb_memento_target *t)
{
    struct wb_memento_target other;
    struct wb_buf place = WB_BUF_INIT;
    char digits[WB_CDX_TIME_MAX] = "";
    int there = wb_capture_alias(call, t, &other), err = 0;

    if (there > 0 && t->has_time)
        wb_cdx_time(t->time_ms, digits);
    if (there > 0)
        err = wb_buf_printf(&place, "%s%s%s%s%.*s", prefix, digits, t->raw ? "id_" : "",
                            t->has_time || t->raw ? "/" : "", WB_SLICE_ARG(wb_buf_slice(&other.url)));
    if (there > 0 && err == 0)
        err = redirect(call, wb_buf_slice(&place));
    wb_memento_target_release(&other);
    wb_buf_release(&place);
    return err < 0 ? err : there;
}

/* /web/(*)/URL leads to the calendar of a URL, and with a * at its end to the captures of all that begin with it. */
static int redirect_to_list(struct wb_call *call, const struct wb_memento_target *t)
{
    struct wb_buf place = WB_BUF_INIT;
    bool many = wb_slice_ends(wb_buf_slice(&t->url), WB_SLICE_LIT("*"));
    int err = wb_buf_append_str(&place, many ? "/captures?url=" : "/calendar?url=");

    if (err == 0)
        err = wb_call_escape(wb_buf_slice(&t->url), &place);
    if (err == 0)
        err = redirect(call, wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

/* What a browser shows where there is no capture; programs get a message. */
static int answer_missing(struct wb_call *call, const struct wb_memento_target *t)
{
    struct wb_page_missing missing = {.target = t, .sheet = "/assets/webbase.css"};

    if (!wb_http_field(call->request, "Sec-Fetch-Dest").len)
        return wb_which_missing(call->worker->store, t->id, wb_buf_slice(&t->url), WB_SLICE_EMPTY, "this archive");
    int err = wb_page_missing_file(call);
    if (err)
        return err < 0 ? err : 0;
    err = wb_page_missing(call, &missing);
    return err < 0 ? err
                   : wb_http_reply_field(call->reply, "Content-Security-Policy",
                                         WB_SLICE_LIT("default-src 'none'; style-src 'self'; base-uri 'none'; "
                                                      "form-action 'none'; sandbox allow-popups "
                                                      "allow-popups-to-escape-sandbox "
                                                      "allow-top-navigation-by-user-activation"));
}

/* Nobody is told which page the reader looks at, and no name is looked up before a link is followed. */
static int add_policies(struct wb_call *call, bool ours)
{
    int err = ours ? 0 : wb_http_reply_field(call->reply, "Content-Security-Policy", wb_slice_str(wb_replay_policy()));

    if (err == 0)
        err = wb_http_reply_field(call->reply, "Referrer-Policy", WB_SLICE_LIT("no-referrer"));
    return err < 0 ? err : wb_http_reply_field(call->reply, "X-DNS-Prefetch-Control", WB_SLICE_LIT("off"));
}

void wb_handle_replay(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_slice target = call->request->target;
    bool ours = false; /* the page is one of ours, with a policy of its own */
    struct wb_store_timeline timeline = {0};
    struct wb_memento_target t = {0};

    int err = wb_memento_parse(wb_slice(target.ptr + sizeof prefix - 1, target.len - (sizeof prefix - 1)), &t);
    if (err == 0 && t.list) {
        err = redirect_to_list(call, &t);
    } else if (err == 0) {
        err = wb_capture_timeline(call, t.id, &timeline);
        err = err == 0 ? answer(call, &t, &timeline, &ours) : err;
        if (err == WB_E_NOTFOUND) {
            err = answer_alias(call, &t);
            err = err > 0 ? 0 : err < 0 ? err : WB_E_NOTFOUND;
        }
        if (err == WB_E_NOTFOUND) {
            err = answer_missing(call, &t);
            ours = err == 0;
        }
    }
    if (err == 0)
        err = add_policies(call, ours);
    if (err < 0)
        wb_call_fail(call, err); /* a page of ours, with a policy of its own */
    wb_store_timeline_release(&timeline);
    wb_memento_target_release(&t);
}
