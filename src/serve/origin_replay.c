/*
 * origin_replay.c - stored pages on the origin of their site. The path and the query are those of the page, so what its
 * scripts make of its own address works as it did. The host says which site it is, and at which time.
 *
 * A page is shown only in a frame of the stage: who opens it by itself is led there, because only the frame keeps a
 * script from going elsewhere (docs/design/0045-replay-origin.md).
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/utf8.h"
#include "markup/markup.h"
#include "page/page.h"
#include "serve/assets.h"
#include "serve/capture.h"
#include "serve/delivery.h"
#include "serve/htmlpen.h"
#include "serve/page_missing.h"
#include "serve/replay_door.h"

#include <stdio.h>
#include <string.h>

/* What is asked for. */
struct origin_call {
    struct wb_call *call;
    const struct wb_replay_door *door;
    struct wb_slice time; /* of the origin, 14 digits */
    struct wb_buf live;   /* the live origin: "https://www.example.org" */
    struct wb_memento_target target;
    bool page; /* for a frame, whose scripts get ours before them */
};

static bool is_page(const struct wb_call *call)
{
    return wb_capture_is_for(call, "iframe") || wb_capture_is_for(call, "frame");
}

/* ---- fields -------------------------------------------------------------------------------------- */

/*
 * Any origin of replay may read what is here, as it could if it were live and the site allowed it; no other origin may.
 * A browser that does not say what it asks for could show a page outside of the stage: then its scripts do not run.
 */
static int add_policies(struct origin_call *o)
{
    struct wb_http_reply *reply = o->call->reply;
    struct wb_slice origin = wb_http_field(o->call->request, "Origin");
    bool says = wb_http_field(o->call->request, "Sec-Fetch-Dest").len;
    struct wb_slice policy = says ? wb_buf_slice(&o->door->policy) : wb_slice_str(wb_replay_policy());
    int err = wb_http_reply_field(reply, "Content-Security-Policy", policy);

    if (err == 0)
        err = wb_http_reply_field(reply, "X-DNS-Prefetch-Control", WB_SLICE_LIT("off"));
    if (err == 0)
        err = wb_http_reply_field(reply, "Referrer-Policy", WB_SLICE_LIT("strict-origin-when-cross-origin"));
    if (err < 0 || !wb_replay_door_has_origin(o->door, origin))
        return err;
    err = wb_http_reply_field(reply, "Access-Control-Allow-Origin", origin);
    if (err == 0)
        err = wb_http_reply_field(reply, "Access-Control-Allow-Credentials", WB_SLICE_LIT("true"));
    return err < 0 ? err : wb_http_reply_field(reply, "Access-Control-Expose-Headers", WB_SLICE_LIT("Content-Length"));
}

/* Whether a cookie was deleted by this attribute. */
static bool deletes(struct wb_slice name, struct wb_slice value)
{
    return wb_slice_equal_nocase(name, WB_SLICE_LIT("max-age")) && value.len &&
           (*value.ptr == '0' || *value.ptr == '-');
}

/*
 * A stored cookie, for this origin alone, and as long as the browser runs. Frames get cookies only if they are secure
 * and open to other sites; they are kept apart by the site of the stage, too.
 */
static int add_cookie(struct wb_call *call, struct wb_slice cookie)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_slice rest = cookie;
    int err = 0;

    for (bool first = true; err == 0 && rest.len; first = false) {
        const char *mark = memchr(rest.ptr, ';', rest.len);
        struct wb_slice part = wb_slice(rest.ptr, mark ? (size_t)(mark - rest.ptr) : rest.len);
        rest = mark ? wb_slice(mark + 1, rest.len - part.len - 1) : WB_SLICE_EMPTY;
        const char *equals = part.len ? memchr(part.ptr, '=', part.len) : NULL;
        size_t len = equals ? (size_t)(equals - part.ptr) : part.len;
        struct wb_slice name = wb_slice_trim(wb_slice(part.ptr, len));
        struct wb_slice value = equals ? wb_slice_trim(wb_slice(equals + 1, part.len - len - 1)) : WB_SLICE_EMPTY;
        bool kept = first || wb_slice_equal_nocase(name, WB_SLICE_LIT("path")) || deletes(name, value) ||
                    wb_slice_equal_nocase(name, WB_SLICE_LIT("httponly"));
        if (kept)
            err = wb_buf_printf(&text, "%s%.*s", first ? "" : "; ", WB_SLICE_ARG(wb_slice_trim(part)));
    }
    if (err == 0)
        err = wb_buf_append_str(&text, "; Secure; SameSite=None; Partitioned");
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Set-Cookie", wb_buf_slice(&text));
    wb_buf_release(&text);
    return err;
}

static int add_cookies(struct wb_call *call, const struct wb_page *page)
{
    enum { COOKIES_MAX = 50, COOKIE_BYTES = 4096 };
    struct wb_slice name, value;
    size_t at = 0;
    int err = 0;

    for (int count = 0; err == 0 && count < COOKIES_MAX && wb_http_header_next(page->head, &at, &name, &value);)
        if (wb_slice_equal_nocase(name, WB_SLICE_LIT("Set-Cookie")) && value.len <= COOKIE_BYTES && ++count)
            err = add_cookie(call, wb_slice_trim(value));
    return err;
}

static int add_original(struct wb_call *call, const struct wb_page *page, int64_t time_ms)
{
    struct wb_buf link = WB_BUF_INIT;
    int err = wb_memento_datetime(call, time_ms);

    if (err == 0 && page->url.len <= WB_MEMENTO_LINKED_MAX)
        err = wb_buf_printf(&link, "<%.*s>; rel=\"original\"", WB_SLICE_ARG(page->url));
    if (err == 0 && link.len)
        err = wb_http_reply_field(call->reply, "Link", wb_buf_slice(&link));
    wb_buf_release(&link);
    return err;
}

/* ---- redirects ----------------------------------------------------------------------------------- */

static struct wb_slice without_fragment(struct wb_slice url)
{
    const char *mark = url.len ? memchr(url.ptr, '#', url.len) : NULL;

    return mark ? wb_slice(url.ptr, (size_t)(mark - url.ptr)) : url;
}

static bool is_asked(const struct origin_call *o, struct wb_slice url)
{
    return wb_slice_equal(without_fragment(url), wb_buf_slice(&o->target.url));
}

/* Leads to another live URL at the time of the origin. WB_E_PROTO if that has no origin. */
static int redirect(struct origin_call *o, unsigned status, const struct wb_url *url)
{
    WB_CHECK(status >= 300 && status < 400);
    struct wb_buf place = WB_BUF_INIT;
    int err = wb_replay_origin_address(&o->door->base, o->time, url, &place);

    if (err == 0)
        err = wb_http_reply_field(o->call->reply, "Location", wb_buf_slice(&place));
    if (err == 0)
        o->call->reply->status = status;
    wb_buf_release(&place);
    return err;
}

static int redirect_text(struct origin_call *o, unsigned status, struct wb_slice text)
{
    struct wb_url url = WB_URL_INIT;
    int err = wb_url_parse(text, NULL, &url);

    if (err == 0)
        err = redirect(o, status, &url);
    wb_url_release(&url);
    return err;
}

/*
 * A stored redirect leads to its target. Returns 1 if the reply does, 0 if the capture is not a redirect or leads
 * nowhere, or an error. *itself_out: it leads to the URL that was asked for, which was moved there; the page beside it
 * is meant.
 */
static int follow(struct origin_call *o, const struct wb_page *page, bool *itself_out)
{
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    struct wb_slice location;

    *itself_out = false;
    if (!wb_http_status_redirects(page->status) || !wb_http_header(page->head, "Location", &location))
        return 0;
    int err = wb_url_parse(page->url, NULL, &base);
    if (err == 0)
        err = wb_url_parse(location, &base, &url);
    *itself_out = err == 0 && is_asked(o, wb_url_href(&url));
    if (err == 0 && !*itself_out)
        err = redirect(o, page->status, &url);
    wb_url_release(&base);
    wb_url_release(&url);
    return err == WB_E_NOMEM ? err : err == 0 && !*itself_out;
}

/* ---- content ------------------------------------------------------------------------------------- */

static bool is_script(struct wb_slice type)
{
    return memmem(type.ptr, type.len, "javascript", 10) || memmem(type.ptr, type.len, "ecmascript", 10);
}

/* The script of ours that comes before those of a page. */
static int put_front(const struct origin_call *o, const struct wb_memento *c, struct wb_buf *out)
{
    const struct wb_asset *client = wb_asset_find(WB_SLICE_LIT("replay-client.js"));

    return wb_buf_printf(out,
                         "<script src=\"" WB_REPLAY_DOOR_OWN "client.js?%.16s\" data-webbase=\"%s %.*s\"></script>",
                         client->etag + 1, c->digits, WB_SLICE_ARG(wb_buf_slice(&o->live)));
}

static int rewrite(struct origin_call *o, struct wb_memento *c)
{
    WB_CHECK(o->call->reply->body.len == 0);
    struct wb_call *call = o->call;
    struct wb_buf front = WB_BUF_INIT;
    struct wb_replay_page shown = wb_capture_page(c);
    struct wb_replay_options options = {.origins = &o->door->base, .in_place = is_asked(o, c->page.url)};
    struct wb_replay_result result;
    int err = o->page ? put_front(o, c, &front) : 0;

    shown.time = o->time;
    options.front = wb_buf_slice(&front);
    if (err == 0)
        err = wb_replay_rewrite(call->worker->replayer, &shown, &options, &call->reply->body, &result);
    /* Browsers run scripts of any type, unless the server forbids that; this one always does. */
    if (err == 0 && wb_capture_is_for(call, "script") && !is_script(c->page.type))
        c->page.type = WB_SLICE_LIT("text/javascript");
    if (err == 0)
        err = wb_capture_type(call, &c->page, result.charset);
    call->parts = err == 0 && result.kind == WB_REPLAY_UNCHANGED;
    wb_buf_release(&front);
    return err;
}

static int show(struct origin_call *o, struct wb_memento *c, int64_t time_ms)
{
    struct wb_call *call = o->call;
    bool known = false;
    char how[16];

    snprintf(how, sizeof how, "origin%d%d%d", o->page, is_asked(o, c->page.url), wb_capture_is_for(call, "script"));
    call->reply->status = wb_capture_status(&c->page);
    int err = add_original(call, &c->page, time_ms);
    if (err == 0)
        err = add_cookies(call, &c->page);
    if (err == 0)
        err = wb_capture_validator(call, c, wb_slice_str(how), &known);
    if (err == 0 && known && call->reply->status == 200)
        call->reply->status = 304;
    else if (err == 0)
        err = rewrite(o, c);
    return err;
}

/* Shows the capture that belongs to the time of the origin, at the URL that it was fetched from. */
static int answer(struct origin_call *o, const struct wb_store_timeline *timeline)
{
    struct wb_memento c;
    bool redirects, itself;
    size_t at;
    int err = wb_capture_choose(o->call, &o->target, timeline, &at);

    if (err < 0)
        return err;
    err = wb_capture_read(o->call, o->target.id, timeline, at, &c);
    int led = err == 0 ? follow(o, &c.page, &itself) : err;
    size_t other = led == 0 && itself ? wb_capture_beside(timeline, at, &redirects) : at;
    if (led == 0 && other != at) {
        wb_capture_release(&c);
        at = other;
        led = wb_capture_read(o->call, o->target.id, timeline, at, &c);
    } else if (led == 0 && o->page && !is_asked(o, c.page.url)) {
        led = redirect_text(o, 302, c.page.url) == 0; /* otherwise its relative references would lead elsewhere */
    }
    if (led == 0)
        led = show(o, &c, timeline->times[at]);
    wb_capture_release(&c);
    return led < 0 ? led : 0;
}

/* ---- files of ours ------------------------------------------------------------------------------- */

static int send_asset(struct wb_call *call, const char *name)
{
    const struct wb_asset *asset = wb_asset_find(wb_slice_str(name));
    int err = wb_http_reply_field(call->reply, "Content-Type", wb_slice_str(asset->type));

    if (err == 0)
        err = wb_http_reply_field(call->reply, "Cache-Control", WB_SLICE_LIT("max-age=86400"));
    return err < 0 ? err : wb_buf_append_slice(&call->reply->body, asset->bytes);
}

/* to/URL leads to the origin of a URL: scripts know only how most of them are written. */
static int answer_own(struct origin_call *o, struct wb_slice name)
{
    static const char to[] = "to/";

    if (wb_slice_equal(name, WB_SLICE_LIT("client.js")))
        return send_asset(o->call, "replay-client.js");
    if (wb_slice_equal(name, WB_SLICE_LIT("webbase.css")))
        return send_asset(o->call, "webbase.css");
    if (!wb_slice_starts(name, WB_SLICE_LIT(to)))
        return WB_E_NOTFOUND;
    struct wb_slice target = o->call->request->target;
    size_t skip = sizeof WB_REPLAY_DOOR_OWN - 1 + sizeof to - 1;
    return redirect_text(o, 307, wb_slice(target.ptr + skip, target.len - skip));
}

/* ---- requests ------------------------------------------------------------------------------------ */

/* A browser asks whether a script may send a request. */
static int answer_preflight(struct origin_call *o)
{
    struct wb_slice fields = wb_http_field(o->call->request, "Access-Control-Request-Headers");
    int err = wb_http_reply_field(o->call->reply, "Access-Control-Allow-Methods", WB_SLICE_LIT("GET, HEAD, POST"));

    o->call->reply->status = 204;
    if (err == 0 && fields.len)
        err = wb_http_reply_field(o->call->reply, "Access-Control-Allow-Headers", fields);
    return err;
}

/* Leads to the stage, which shows the page in a frame. */
static int lead_to_stage(struct origin_call *o)
{
    struct wb_buf place = WB_BUF_INIT;
    int err = wb_buf_printf(&place, "%.*s/web/%.*s/%.*s", WB_SLICE_ARG(wb_buf_slice(&o->door->home)),
                            WB_SLICE_ARG(o->time), WB_SLICE_ARG(wb_buf_slice(&o->target.url)));

    o->call->reply->status = 302;
    if (err == 0)
        err = wb_http_reply_field(o->call->reply, "Location", wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

/* There is no capture, but perhaps one of an alias. Returns 1 if the reply leads there, 0 if not, or an error. */
static int answer_alias(struct origin_call *o)
{
    struct wb_memento_target other;
    int there = wb_capture_alias(o->call, &o->target, &other);

    if (there > 0 && redirect_text(o, 302, wb_buf_slice(&other.url)) < 0)
        there = 0;
    wb_memento_target_release(&other);
    return there;
}

/*
 * Browsers write the query of a link in the encoding of the page; a crawl may have asked for it in UTF-8. Returns 1 if
 * there is a capture of the same query in UTF-8, which is then the target, or 0, or an error.
 */
static int find_recoded(struct origin_call *o, struct wb_store_timeline *timeline)
{
    static const char *const encodings[] = {"shift_jis",    "gbk",          "big5",         "euc-jp",
                                            "euc-kr",       "windows-1251", "windows-1252", "iso-8859-2"};
    struct wb_slice query = o->call->request->query, path = o->call->request->path, text;
    struct wb_buf bytes = WB_BUF_INIT, decoded = WB_BUF_INIT, url = WB_BUF_INIT;
    int found = 0, err = query.len ? wb_http_unescape(query, false, &bytes) : WB_E_INVALID;

    if (err == 0 && wb_utf8_valid(wb_buf_slice(&bytes)))
        err = WB_E_INVALID; /* it is UTF-8 already */
    for (size_t i = 0; err == 0 && found == 0 && i < sizeof encodings / sizeof *encodings; i++) {
        struct wb_memento_target target = {0};
        wb_buf_clear(&url);
        err = wb_charset_decode(encodings[i], wb_buf_slice(&bytes), 4 * bytes.len, &decoded, &text);
        if (err == 0)
            err = wb_buf_printf(&url, "%.*s%.*s?", WB_SLICE_ARG(wb_buf_slice(&o->live)), WB_SLICE_ARG(path));
        if (err == 0)
            err = wb_buf_append_escaped(&url, text, "-_.~/:=&+;,");
        if (err == 0 && wb_memento_url(wb_buf_slice(&url), &target) == 0 &&
            wb_capture_timeline(o->call, target.id, timeline) == 0) {
            struct wb_buf old = o->target.url;
            o->target.url = target.url;
            o->target.id = target.id;
            target.url = old;
            found = 1;
        }
        wb_memento_target_release(&target);
    }
    wb_buf_release(&bytes);
    wb_buf_release(&decoded);
    wb_buf_release(&url);
    return err == WB_E_NOMEM ? err : found;
}

static int answer_page(struct origin_call *o)
{
    struct wb_call *call = o->call;
    struct wb_store_timeline timeline = {0};

    /* A worker of the page's own could make pages that have no policy of ours. */
    if (wb_http_field(call->request, "Service-Worker").ptr || wb_capture_is_for(call, "serviceworker")) {
        wb_http_reply_error(call->reply, 403, "service workers are not replayed");
        return 0;
    }
    if (wb_capture_is_for(call, "document"))
        return lead_to_stage(o);
    int err =
        call->request->method == WB_HTTP_POST ? WB_E_NOTFOUND : wb_capture_timeline(call, o->target.id, &timeline);
    if (err == WB_E_NOTFOUND && call->request->method != WB_HTTP_POST && find_recoded(o, &timeline) > 0)
        err = 0;
    if (err == 0)
        err = answer(o, &timeline);
    if (err == WB_E_NOTFOUND && call->request->method != WB_HTTP_POST) {
        int there = answer_alias(o);
        err = there > 0 ? 0 : there < 0 ? there : WB_E_NOTFOUND;
    }
    wb_store_timeline_release(&timeline);
    return err;
}

/* The page in the frame says that there is nothing, and what there is instead; scripts get only the status. */
static int answer_missing(struct origin_call *o)
{
    struct wb_page_missing missing = {.target = &o->target,
                                      .sheet = WB_REPLAY_DOOR_OWN "webbase.css",
                                      .form = o->call->request->method == WB_HTTP_POST,
                                      .door = o->door};
    struct wb_memento none = {.digits = ""};
    struct wb_buf front = WB_BUF_INIT;
    int err = wb_page_missing_file(o->call);

    if (err)
        return err < 0 ? err : add_policies(o);
    err = put_front(o, &none, &front);
    missing.front = wb_buf_slice(&front);
    if (err == 0 && o->page)
        err = wb_page_missing(o->call, &missing);
    else
        wb_http_reply_error(o->call->reply, 404, "there is no copy of this page");
    wb_buf_release(&front);
    return err < 0 ? err : add_policies(o);
}

void wb_origin_replay(struct wb_call *call, struct wb_slice labels)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct origin_call o = {.call = call, .door = call->server->door, .page = is_page(call)};
    struct wb_slice path = call->request->path, own = WB_SLICE_LIT(WB_REPLAY_DOOR_OWN);
    struct wb_buf url = WB_BUF_INIT;

    WB_CHECK(call->request->also);
    WB_CHECK(labels.len > 0);
    int err = wb_replay_origin_parse(labels, &o.time, &o.live);
    if (err == 0)
        err = wb_buf_printf(&url, "%.*s%.*s", WB_SLICE_ARG(wb_buf_slice(&o.live)), WB_SLICE_ARG(call->request->target));
    if (err == 0)
        err = wb_memento_url(wb_buf_slice(&url), &o.target);
    o.target.has_time = o.target.has_second = true;
    if (err == 0 && !wb_date_parse_digits_end(o.time, &o.target.time_ms))
        err = WB_E_PROTO;
    if (err == 0)
        err = wb_slice_equal(call->request->method_text, WB_SLICE_LIT("OPTIONS")) ? answer_preflight(&o)
              : wb_slice_starts(path, own) ? answer_own(&o, wb_slice(path.ptr + own.len, path.len - own.len))
                                           : answer_page(&o);
    if (err == 0)
        err = add_policies(&o);
    else if (err == WB_E_NOTFOUND)
        err = answer_missing(&o);
    if (err < 0)
        wb_call_fail(call, err);
    wb_buf_release(&url);
    wb_buf_release(&o.live);
    wb_memento_target_release(&o.target);
}
