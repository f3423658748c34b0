/*
 * page_compare.c - two versions of a page beside each other, with what changed marked in both.
 *
 *   GET /compare?url=&a=TIME&b=TIME[&view=text][&change=N]     the page around them, or the changed text
 *   GET /compare/frame?url=&a=TIME&b=TIME&side=a               one of the two, as /web/ shows it, with marks
 *
 * The marks are made here (replay_marks.c), so everything works without scripts: "next change" loads the page with the
 * place of that change in the address of both frames. compare.js does it without loading, and lets them scroll
 * together. For that, the frames are of our origin (docs/design/0046-moving-in-time.md says why that is safe); nothing
 * in them can run scripts.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "extract/extract.h"
#include "page/page.h"
#include "replay/replay.h"
#include "serve/capture.h"
#include "serve/page_compare.h"
#include "url/url.h"
#include "warc/warc.h"

enum { CONTEXT_BYTES = 300, CHANGES_MAX = 1 << 20 };

/* A version that is compared. */
struct compare_side {
    struct wb_page page;
    struct wb_buf mem, public;
};

struct compare_view {
    struct wb_call *call;
    struct wb_htmlpen h;
    struct wb_slice url, a, b; /* as asked for */
    struct wb_pageid id;
    struct compare_side sides[2];
    struct wb_replay_marks marks[2];
    uint32_t changes;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The version that was there at a time. Its time is that of its newest capture at or before that. */
static int read_side(struct wb_call *call, struct wb_pageid id, const char *name, struct wb_slice time,
                     struct compare_side *side)
{
    int64_t time_ms;

    if (!wb_date_parse_digits_end(time, &time_ms) && !wb_date_parse(time, &time_ms))
        return wb_fail(WB_E_INVALID, "%s=%.*s is not a time; write 20260131120000 or 2026-01-31T12:00:00Z", name,
                       WB_SLICE_ARG(time));
    int err = wb_capture_at(call, id, time_ms, &side->page, &side->mem);
    return err < 0 ? err : wb_url_public(side->page.url, &side->public, &side->page.url);
}

static int read_sides(struct wb_call *call, struct wb_pageid id, struct wb_slice a, struct wb_slice b,
                      struct compare_side sides[2])
{
    if (!a.ptr || !b.ptr)
        return wb_fail(WB_E_INVALID, "a comparison needs two times, a and b");
    int err = read_side(call, id, "a", a, &sides[0]);
    return err < 0 ? err : read_side(call, id, "b", b, &sides[1]);
}

static void release_sides(struct compare_side sides[2])
{
    for (int i = 0; i < 2; i++) {
        wb_buf_release(&sides[i].mem);
        wb_buf_release(&sides[i].public);
    }
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

static int read_text(struct wb_call *call, const struct wb_page *page, struct wb_buf *text_out)
{
    struct wb_extract_input input = {
        .url = page->url, .type = page->type, .charset = page->charset, .body = page->body, .wants = WB_EXTRACT_TEXT};
    struct wb_extract extract;
    int err = wb_extract(call->worker->extractor, &input, &extract);

    return err < 0 ? err : wb_buf_append_slice(text_out, extract.text);
}

/* Cut at blanks, and never inside a character. */
static struct wb_slice front(struct wb_slice text, size_t len)
{
    if (len >= text.len)
        return text;
    while (len > 0 && text.ptr[len] != ' ' && text.ptr[len] != '\n')
        len--;
    return wb_slice(text.ptr, len);
}

static struct wb_slice back(struct wb_slice text, size_t len)
{
    size_t from = text.len > len ? text.len - len : 0;

    while (from > 0 && from < text.len && text.ptr[from] != ' ' && text.ptr[from] != '\n')
        from++;
    return wb_slice(text.ptr + from, text.len - from);
}

/* Of long equal parts, only what is next to a change is shown. */
static void add_same(struct wb_htmlpen *h, struct wb_slice text, bool first, bool last)
{
    size_t shown = first || last ? CONTEXT_BYTES : 2 * CONTEXT_BYTES;

    if (text.len <= shown) {
        wb_htmlpen_put(h, "{}", wb_htmlpen_text(text));
        return;
    }
    if (!first)
        wb_htmlpen_put(h, "{}", wb_htmlpen_text(front(text, CONTEXT_BYTES)));
    wb_htmlpen_raw(h, "<span class=\"skipped\"> \xE2\x80\xA6 </span>");
    if (!last)
        wb_htmlpen_put(h, "{}", wb_htmlpen_text(back(text, CONTEXT_BYTES)));
}

static void add_runs(struct wb_htmlpen *h, const struct wb_difference *d)
{
    size_t begin = h->out->len;

    wb_htmlpen_raw(h, "<div class=\"changes\" tabindex=\"0\" role=\"region\" aria-label=\"Changed text\">");
    for (size_t i = 0; i < d->count; i++) {
        const struct wb_difference_run *run = &d->items[i];
        if (h->out->len - begin > CHANGES_MAX) {
            wb_htmlpen_raw(h, "</div>\n<p class=\"note\">There are more changes than can be shown here.</p>\n<div>");
            break;
        }
        if (run->kind == WB_DIFFERENCE_SAME)
            add_same(h, run->text, i == 0, i + 1 == d->count);
        else
            wb_htmlpen_put(h, run->kind == WB_DIFFERENCE_ADDED ? "<ins>{}</ins>" : "<del>{}</del>",
                           wb_htmlpen_text(front(run->text, CHANGES_MAX)));
    }
    wb_htmlpen_raw(h, "</div>\n");
}

static void add_difference(struct wb_htmlpen *h, const struct wb_difference *d, const struct compare_side sides[2])
{
    bool changed = d->count > 1 || (d->count == 1 && d->items[0].kind != WB_DIFFERENCE_SAME);

    wb_htmlpen_put(h, "<p class=\"quiet\">From {} to {}. <del>Removed</del> and <ins>added</ins> text.</p>\n",
                   wb_htmlpen_time(sides[0].page.time_ms), wb_htmlpen_time(sides[1].page.time_ms));
    if (changed)
        add_runs(h, d);
    else
        wb_htmlpen_raw(h, "<p class=\"note\">The text is the same in both.</p>\n");
}

static int show_text(struct wb_call *call, struct wb_htmlpen *h, const struct compare_side sides[2])
{
    struct wb_buf texts[2] = {WB_BUF_INIT, WB_BUF_INIT};
    struct wb_difference difference = WB_DIFFERENCE_INIT;
    int err = read_text(call, &sides[0].page, &texts[0]);

    if (err == 0)
        err = read_text(call, &sides[1].page, &texts[1]);
    if (err == 0)
        err = wb_difference_of(wb_buf_slice(&texts[0]), wb_buf_slice(&texts[1]), &difference);
    if (err == 0)
        add_difference(h, &difference, sides);
    wb_difference_release(&difference);
    wb_buf_release(&texts[0]);
    wb_buf_release(&texts[1]);
    return err;
}

int wb_page_changes(struct wb_page_view *v, struct wb_slice a, struct wb_slice b)
{
    struct compare_side sides[2] = {0};

    WB_CHECK(v->h.magic == WB_HTMLPEN_MAGIC);
    if (a.ptr && b.ptr && !v->stored)
        return wb_fail(WB_E_NOTFOUND, "no version of this page is stored");
    int err = read_sides(v->call, v->id, a, b, sides);
    if (err == 0) {
        wb_htmlpen_raw(&v->h, "<section aria-labelledby=\"changes\">\n<h2 id=\"changes\">What changed</h2>\n");
        err = show_text(v->call, &v->h, sides);
        wb_htmlpen_put(&v->h,
                       "<p><a href=\"/compare?url={}&amp;a={}&amp;b={}\">Side by side</a> \xC2\xB7 "
                       "<a href=\"/page?url={}\">All about this page</a></p>\n</section>\n",
                       wb_htmlpen_param(v->page.url), wb_htmlpen_digits(sides[0].page.time_ms),
                       wb_htmlpen_digits(sides[1].page.time_ms), wb_htmlpen_param(v->page.url));
    }
    release_sides(sides);
    return err;
}

/* ---- as seen ----------------------------------------------------------------------------------------------------- */

static int read_view(struct compare_view *v)
{
    const struct wb_http_request *request = v->call->request;
    int err = wb_call_required(v->call, "url", &v->url);

    v->a = wb_http_param(request, "a");
    v->b = wb_http_param(request, "b");
    if (err == 0)
        err = wb_which_page(v->url, &v->id);
    if (err == 0)
        err = read_sides(v->call, v->id, v->a, v->b, v->sides);
    if (err == WB_E_NOTFOUND)
        err = wb_which_missing(v->call->worker->store, v->id, v->url, WB_SLICE_EMPTY, "this archive");
    return err;
}

static struct wb_replay_page replayed(const struct wb_page *page, const char *digits)
{
    return (struct wb_replay_page){.url = page->url,
                                   .time = wb_slice_str(digits),
                                   .type = wb_replay_type(page->type, page->body),
                                   .charset = page->charset,
                                   .body = page->body};
}

static int find_marks(struct compare_view *v, char digits[2][WB_CDX_TIME_MAX])
{
    WB_CHECK(v->changes == 0);
    for (int i = 0; i < 2; i++)
        wb_cdx_time(v->sides[i].page.time_ms, digits[i]);
    struct wb_replay_page old = replayed(&v->sides[0].page, digits[0]), new = replayed(&v->sides[1].page, digits[1]);
    return wb_replay_compare(v->call->worker->replayer, &old, &new, &v->marks[0], &v->marks[1], &v->changes);
}

static void release_view(struct compare_view *v)
{
    release_sides(v->sides);
    wb_replay_marks_release(&v->marks[0]);
    wb_replay_marks_release(&v->marks[1]);
}

/* ---- the page around the frames ---------------------------------------------------------------------------------- */

/* The address of this comparison, up to its next parameter. */
static void add_address(struct compare_view *v, const char *path)
{
    wb_htmlpen_put(&v->h, "{}?url={}&amp;a={}&amp;b={}", wb_htmlpen_str(path), wb_htmlpen_param(v->url),
                   wb_htmlpen_digits(v->sides[0].page.time_ms), wb_htmlpen_digits(v->sides[1].page.time_ms));
}

static void add_step(struct compare_view *v, uint64_t change, const char *id, const char *words)
{
    if (change == 0 || change > v->changes) {
        wb_htmlpen_put(&v->h, "<span id=\"{}\" class=\"quiet\">{}</span>\n", wb_htmlpen_str(id), wb_htmlpen_str(words));
        return;
    }
    wb_htmlpen_put(&v->h, "<a id=\"{}\" href=\"", wb_htmlpen_str(id));
    add_address(v, "/compare");
    wb_htmlpen_put(&v->h, "&amp;change={}\">{}</a>\n", wb_htmlpen_plain(change), wb_htmlpen_str(words));
}

static void add_tools(struct compare_view *v, uint64_t change)
{
    struct wb_htmlpen *h = &v->h;
    bool text = wb_slice_equal(wb_http_param(v->call->request, "view"), WB_SLICE_LIT("text"));

    wb_htmlpen_put(h,
                   "<nav class=\"tools\" id=\"changes\" data-count=\"{}\" data-change=\"{}\" aria-label=\"Changes\">\n",
                   wb_htmlpen_plain(v->changes), wb_htmlpen_plain(change));
    wb_htmlpen_raw(h, "<a href=\"");
    add_address(v, "/compare");
    wb_htmlpen_put(h, "\"{}>Side by side</a>\n<a href=\"",
                   wb_htmlpen_markup(text ? WB_SLICE_EMPTY : WB_SLICE_LIT(" aria-current=\"page\"")));
    add_address(v, "/compare");
    wb_htmlpen_put(h, "&amp;view=text\"{}>Text</a>\n<a href=\"/page?url={}#versions\">Other versions</a>\n",
                   wb_htmlpen_markup(text ? WB_SLICE_LIT(" aria-current=\"page\"") : WB_SLICE_EMPTY),
                   wb_htmlpen_param(v->url));
    if (!text) {
        wb_htmlpen_put(h, "<span class=\"gap\"></span><span id=\"place\" role=\"status\">{}{} {}</span>\n",
                       wb_htmlpen_number(v->changes), wb_htmlpen_str(v->marks[0].cut || v->marks[1].cut ? "+" : ""),
                       wb_htmlpen_str(v->changes == 1 ? "change" : "changes"));
        add_step(v, change > 1 ? change - 1 : 0, "previous", "Previous change");
        add_step(v, change + 1, "next", "Next change");
    }
    wb_htmlpen_raw(h, "</nav>\n");
}

static void add_frame(struct compare_view *v, int side, uint64_t change)
{
    static const char *const names[] = {"Before", "After"};
    const struct wb_page *page = &v->sides[side].page;
    struct wb_htmlpen *h = &v->h;

    wb_htmlpen_put(h,
                   "<section class=\"side\" aria-label=\"{}\">\n<p><b>{}</b> <a href=\"/web/{}/{}\">{}</a> "
                   "<span class=\"quiet\">status {}, {}</span></p>\n",
                   wb_htmlpen_str(names[side]), wb_htmlpen_str(names[side]), wb_htmlpen_digits(page->time_ms),
                   wb_htmlpen_text(page->url), wb_htmlpen_time(page->time_ms), wb_htmlpen_plain(page->status),
                   wb_htmlpen_bytes(page->body.len));
    wb_htmlpen_put(h,
                   "<iframe title=\"The page {}\" sandbox=\"allow-same-origin\" referrerpolicy=\"no-referrer\" src=\"",
                   wb_htmlpen_str(side ? "after the changes" : "before the changes"));
    add_address(v, "/compare/frame");
    wb_htmlpen_put(h, "&amp;side={}", wb_htmlpen_str(side ? "b" : "a"));
    if (change)
        wb_htmlpen_put(h, "#{}{}", wb_htmlpen_str(WB_REPLAY_CHANGE_ID), wb_htmlpen_plain(change));
    wb_htmlpen_raw(h, "\"></iframe>\n</section>\n");
}

static bool is_same(const struct compare_side sides[2])
{
    const struct wb_page *a = &sides[0].page, *b = &sides[1].page;

    return a->status == b->status && wb_slice_equal(a->type, b->type) && wb_slice_equal(a->body, b->body);
}

static void add_frames(struct compare_view *v, uint64_t change)
{
    if (v->marks[0].cut || v->marks[1].cut)
        wb_htmlpen_put(
            &v->h,
            "<p class=\"note\">There are more changes than can be marked: those behind number {} are "
            "not, or not all of them.</p>\n",
            wb_htmlpen_number(v->marks[0].changes < v->marks[1].changes ? v->marks[0].changes : v->marks[1].changes));
    if (v->changes == 0)
        wb_htmlpen_raw(&v->h,
                       is_same(v->sides)
                           ? "<p class=\"note\">Nothing changed: the server sent the same bytes both times.</p>\n"
                           : "<p class=\"note\">No visible words differ. Pictures, styles and other parts of the "
                             "page may.</p>\n");
    else
        wb_htmlpen_raw(&v->h,
                       "<p class=\"quiet\"><del>Removed</del> words are marked on one side, <ins>added</ins> ones on "
                       "the other; a bar shows where the other side has words that this one has not.</p>\n");
    wb_htmlpen_raw(&v->h, "<div class=\"sides\">\n");
    add_frame(v, 0, change);
    add_frame(v, 1, change);
    wb_htmlpen_raw(&v->h, "</div>\n");
}

static int show(struct compare_view *v)
{
    struct wb_slice view = wb_http_param(v->call->request, "view");
    bool text = wb_slice_equal(view, WB_SLICE_LIT("text"));
    char digits[2][WB_CDX_TIME_MAX];
    uint64_t change = 0;
    int err = wb_call_number(v->call, "change", 0, UINT32_MAX, &change);

    if (err == 0 && view.len && !text && !wb_slice_equal(view, WB_SLICE_LIT("side")))
        err = wb_fail(WB_E_INVALID, "view=%.*s: there are side and text", WB_SLICE_ARG(view));
    if (err == 0 && !text)
        err = find_marks(v, digits);
    if (err < 0)
        return err;
    if (change > v->changes)
        change = v->changes;
    wb_page_begin(v->call, &v->h,
                  &(struct wb_page_frame){.title = WB_SLICE_LIT("What changed"),
                                          .place = WB_PAGE_VIEW,
                                          .script = text ? NULL : "compare.js"});
    wb_htmlpen_put(&v->h, "<article class=\"compare\">\n<h1>What changed</h1>\n<p class=\"address\">{}</p>\n",
                   wb_htmlpen_text(v->url));
    add_tools(v, change);
    if (text)
        err = show_text(v->call, &v->h, v->sides);
    else
        add_frames(v, change);
    wb_htmlpen_raw(&v->h, "</article>\n");
    wb_page_end(v->call, &v->h);
    return err;
}

void wb_handle_compare(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct compare_view v = {.call = call};
    int err = read_view(&v);

    if (err == 0)
        err = show(&v);
    if (err < 0)
        wb_call_fail(call, err);
    release_view(&v);
}

/* ---- a frame ----------------------------------------------------------------------------------------------------- */

/* The page as it is shown: what an HTML page has becomes links into the archive, everything else stays. */
static int write_frame(struct compare_view *v, int side, const char *digits)
{
    WB_CHECK(v->call->reply->body.len == 0);
    struct wb_replay_page page = replayed(&v->sides[side].page, digits);
    struct wb_replay_options options = {.prefix = WB_SLICE_LIT("/web/"), .marks = &v->marks[side]};
    struct wb_buf type = WB_BUF_INIT;
    struct wb_replay_result result;
    int err = wb_replay_rewrite(v->call->worker->replayer, &page, &options, &v->call->reply->body, &result);

    if (err == 0)
        err = wb_buf_append_slice(&type, page.type);
    if (err == 0 && result.charset[0])
        err = wb_buf_printf(&type, "; charset=%s", result.charset);
    else if (err == 0 && page.charset.len)
        err = wb_buf_printf(&type, "; charset=%.*s", WB_SLICE_ARG(page.charset));
    if (err == 0)
        err = wb_http_reply_field(v->call->reply, "Content-Type", wb_buf_slice(&type));
    wb_buf_release(&type);
    return err;
}

static int add_fields(struct wb_call *call)
{
    static const char *const fields[][2] = {{"Content-Security-Policy", WB_COMPARE_POLICY},
                                            {"Referrer-Policy", "no-referrer"},
                                            {"X-DNS-Prefetch-Control", "off"},
                                            {"Cache-Control", "private, no-cache"}};
    int err = 0;

    for (size_t i = 0; i < sizeof fields / sizeof *fields && err == 0; i++)
        err = wb_http_reply_field(call->reply, fields[i][0], wb_slice_str(fields[i][1]));
    return err;
}

void wb_handle_compare_frame(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct compare_view v = {.call = call};
    struct wb_slice side = wb_http_param(call->request, "side");
    bool after = wb_slice_equal(side, WB_SLICE_LIT("b"));
    char digits[2][WB_CDX_TIME_MAX];
    int err = read_view(&v);

    if (err == 0 && !after && !wb_slice_equal(side, WB_SLICE_LIT("a")))
        err = wb_fail(WB_E_INVALID, "side=%.*s: there are a and b", WB_SLICE_ARG(side));
    if (err == 0)
        err = find_marks(&v, digits);
    if (err == 0)
        err = write_frame(&v, after, digits[after]);
    if (err == 0)
        err = add_fields(call);
    if (err < 0)
        wb_call_fail(call, err);
    release_view(&v);
}
