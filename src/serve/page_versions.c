/* page_versions.c - the past of a page for people: a line of time, a table, and what changed between two versions. */
#include "base/date.h"
#include "base/error.h"
#include "extract/extract.h"
#include "replay/replay.h"
#include "serve/page_view.h"

enum { VERSIONS_SHOWN = 50, TICKS_MAX = 500, LINE_WIDTH = 1000 };
enum { CONTEXT_BYTES = 300, CHANGES_MAX = 1 << 20 };

/* ---- the line of time -------------------------------------------------------------------------------------------- */

static uint64_t place_of(const struct wb_store_timeline *t, int64_t time_ms)
{
    int64_t first = t->times[0], span = t->times[t->time_count - 1] - first;

    return span > 0 ? (uint64_t)((double)(time_ms - first) / (double)span * LINE_WIDTH) : LINE_WIDTH / 2;
}

/*
 * Each version is a bar from its first to its last capture; captures are ticks. A long history is thinned out. The
 * table below has the same links, so the keyboard and screen readers pass over this.
 */
static void add_line(struct wb_page_view *v)
{
    const struct wb_store_timeline *t = &v->timeline;
    size_t step = t->count / TICKS_MAX + 1, tick = t->time_count / TICKS_MAX + 1;

    wb_htmlpen_raw(&v->h,
                   "<svg class=\"line\" viewBox=\"-4 0 1008 44\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\n"
                   "<rect class=\"axis\" x=\"-4\" y=\"21\" width=\"1008\" height=\"2\"/>\n");
    for (size_t i = 0; i < t->count; i += step) {
        const struct wb_store_version *version = &t->versions[i];
        uint64_t from = place_of(t, version->time_ms), to = place_of(t, version->last_ms);
        wb_htmlpen_put(&v->h,
                       "<a href=\"/web/{}/{}\" tabindex=\"-1\"><rect class=\"v{}\" x=\"{}\" y=\"10\" width=\"{}\" "
                       "height=\"24\"><title>Version {}</title></rect></a>\n",
                       wb_htmlpen_digits(version->time_ms), wb_htmlpen_text(v->page.url), wb_htmlpen_plain(i % 2),
                       wb_htmlpen_plain(from), wb_htmlpen_plain(to > from + 4 ? to - from : 4),
                       wb_htmlpen_plain(i + 1));
    }
    for (size_t i = 0; i < t->time_count; i += tick)
        wb_htmlpen_put(&v->h, "<rect class=\"tick\" x=\"{}\" y=\"36\" width=\"2\" height=\"6\"/>\n",
                       wb_htmlpen_plain(place_of(t, t->times[i])));
    wb_htmlpen_put(&v->h, "</svg>\n<p class=\"ends\"><span>{}</span><span>{}</span></p>\n",
                   wb_htmlpen_time(t->times[0]), wb_htmlpen_time(t->times[t->time_count - 1]));
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* The two newest versions are chosen for a comparison unless the reader has chosen others. */
static void add_choice(struct wb_page_view *v, const char *name, const char *label, size_t number, bool chosen)
{
    wb_htmlpen_put(&v->h, "<td><input type=\"radio\" name=\"{}\" value=\"{}\" aria-label=\"{} version {}\"{}></td>",
                   wb_htmlpen_str(name), wb_htmlpen_digits(v->timeline.versions[number].time_ms), wb_htmlpen_str(label),
                   wb_htmlpen_plain(number + 1), wb_htmlpen_markup(chosen ? WB_SLICE_LIT(" checked") : WB_SLICE_EMPTY));
}

static void add_version(struct wb_page_view *v, size_t number, bool compare)
{
    const struct wb_store_version *version = &v->timeline.versions[number];
    size_t newest = v->timeline.count - 1;

    wb_htmlpen_put(&v->h, "<tr><td class=\"number\">{}</td><td><a href=\"/web/{}/{}\">{}</a></td><td>{}</td>",
                   wb_htmlpen_plain(number + 1), wb_htmlpen_digits(version->time_ms), wb_htmlpen_text(v->page.url),
                   wb_htmlpen_time(version->time_ms), wb_htmlpen_time(version->last_ms));
    wb_htmlpen_put(&v->h, "<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>",
                   wb_htmlpen_number(version->captures), wb_htmlpen_plain(version->status),
                   wb_htmlpen_bytes(version->body_bytes));
    if (compare) {
        add_choice(v, "a", "Compare from", number, number + 1 == newest);
        add_choice(v, "b", "Compare to", number, number == newest);
    }
    wb_htmlpen_raw(&v->h, "</tr>\n");
}

static void add_table(struct wb_page_view *v, uint64_t skip)
{
    size_t count = v->timeline.count, end = count - skip;
    size_t begin = end > VERSIONS_SHOWN ? end - VERSIONS_SHOWN : 0;
    bool compare = count > 1;

    wb_htmlpen_put(&v->h, "<form action=\"/page\" method=\"get\">\n<input type=\"hidden\" name=\"url\" value=\"{}\">\n",
                   wb_htmlpen_text(v->page.url));
    wb_htmlpen_put(
        &v->h,
        "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\" class=\"number\">No.</th><th scope=\"col\">"
        "First seen</th><th scope=\"col\">Last seen</th><th scope=\"col\" class=\"number\">Captures</th>"
        "<th scope=\"col\" class=\"number\">Status</th><th scope=\"col\" class=\"number\">Size</th>{}</tr>"
        "</thead>\n<tbody>\n",
        wb_htmlpen_markup(compare ? WB_SLICE_LIT("<th scope=\"col\">From</th><th scope=\"col\">To</th>")
                                  : WB_SLICE_EMPTY));
    for (size_t i = end; i-- > begin;)
        add_version(v, i, compare);
    wb_htmlpen_raw(&v->h, "</tbody>\n</table></div>\n");
    if (compare)
        wb_htmlpen_raw(&v->h, "<p><button>Compare the two</button></p>\n");
    wb_htmlpen_raw(&v->h, "</form>\n");
    if (begin)
        wb_htmlpen_put(&v->h, "<p><a href=\"/page?url={}&amp;older={}#versions\">{} older versions</a></p>\n",
                       wb_htmlpen_param(v->page.url), wb_htmlpen_plain(skip + VERSIONS_SHOWN),
                       wb_htmlpen_number(begin));
}

void wb_page_versions(struct wb_page_view *v)
{
    uint64_t skip = 0;

    if (!v->stored || v->timeline.count == 0 || v->timeline.time_count == 0)
        return;
    if (v->h.err == 0)
        v->h.err = wb_call_number(v->call, "older", 0, UINT32_MAX, &skip);
    wb_htmlpen_put(&v->h, "<section aria-labelledby=\"versions\">\n<h2 id=\"versions\">{} {}</h2>\n",
                   wb_htmlpen_number(v->timeline.count),
                   wb_htmlpen_str(v->timeline.count == 1 ? "version" : "versions"));
    add_line(v);
    add_table(v, skip < v->timeline.count ? skip : 0);
    wb_htmlpen_raw(&v->h, "</section>\n");
}

/* ---- what changed ------------------------------------------------------------------------------------------------ */

/* The text of the version that was there at a time, and the time of its newest capture. */
static int read_text(struct wb_page_view *v, const char *name, struct wb_slice time, struct wb_buf *text_out,
                     int64_t *time_out)
{
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_extract extract;
    struct wb_page page;

    if (!wb_date_parse_digits_end(time, &when.time_ms) && !wb_date_parse(time, &when.time_ms))
        return wb_fail(WB_E_INVALID, "%s=%.*s is not a time; write 20260131120000 or 2026-01-31T12:00:00Z", name,
                       WB_SLICE_ARG(time));
    int err = wb_store_get_when(v->call->worker->store, v->id, &when, &page, &mem);
    if (err == 0) {
        struct wb_extract_input input = {
            .url = page.url, .type = page.type, .charset = page.charset, .body = page.body, .wants = WB_EXTRACT_TEXT};
        *time_out = page.time_ms;
        err = wb_extract(v->call->worker->extractor, &input, &extract);
    }
    if (err == 0)
        err = wb_buf_append_slice(text_out, extract.text);
    wb_buf_release(&mem);
    return err;
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
static void add_same(struct wb_page_view *v, struct wb_slice text, bool first, bool last)
{
    size_t shown = first || last ? CONTEXT_BYTES : 2 * CONTEXT_BYTES;

    if (text.len <= shown) {
        wb_htmlpen_put(&v->h, "{}", wb_htmlpen_text(text));
        return;
    }
    if (!first)
        wb_htmlpen_put(&v->h, "{}", wb_htmlpen_text(front(text, CONTEXT_BYTES)));
    wb_htmlpen_raw(&v->h, "<span class=\"skipped\"> \xE2\x80\xA6 </span>");
    if (!last)
        wb_htmlpen_put(&v->h, "{}", wb_htmlpen_text(back(text, CONTEXT_BYTES)));
}

static void add_runs(struct wb_page_view *v, const struct wb_difference *d)
{
    size_t begin = v->h.out->len;

    wb_htmlpen_raw(&v->h, "<div class=\"changes\">");
    for (size_t i = 0; i < d->count; i++) {
        const struct wb_difference_run *run = &d->items[i];
        if (v->h.out->len - begin > CHANGES_MAX) {
            wb_htmlpen_raw(&v->h,
                           "</div>\n<p class=\"note\">There are more changes than can be shown here.</p>\n<div>");
            break;
        }
        if (run->kind == WB_DIFFERENCE_SAME)
            add_same(v, run->text, i == 0, i + 1 == d->count);
        else
            wb_htmlpen_put(&v->h, run->kind == WB_DIFFERENCE_ADDED ? "<ins>{}</ins>" : "<del>{}</del>",
                           wb_htmlpen_text(front(run->text, CHANGES_MAX)));
    }
    wb_htmlpen_raw(&v->h, "</div>\n");
}

static void add_difference(struct wb_page_view *v, const struct wb_difference *d, int64_t a_ms, int64_t b_ms)
{
    bool changed = d->count > 1 || (d->count == 1 && d->items[0].kind != WB_DIFFERENCE_SAME);

    wb_htmlpen_put(&v->h,
                   "<section aria-labelledby=\"changes\">\n<h2 id=\"changes\">What changed</h2>\n"
                   "<p class=\"quiet\">From {} to {}. <del>Removed</del> and <ins>added</ins> text.</p>\n",
                   wb_htmlpen_time(a_ms), wb_htmlpen_time(b_ms));
    if (changed)
        add_runs(v, d);
    else
        wb_htmlpen_raw(&v->h, "<p class=\"note\">The text is the same in both.</p>\n");
    wb_htmlpen_put(&v->h, "<p><a href=\"/page?url={}\">All about this page</a></p>\n</section>\n",
                   wb_htmlpen_param(v->page.url));
}

int wb_page_changes(struct wb_page_view *v, struct wb_slice a, struct wb_slice b)
{
    struct wb_buf old_text = WB_BUF_INIT, new_text = WB_BUF_INIT;
    struct wb_difference difference = WB_DIFFERENCE_INIT;
    int64_t a_ms = 0, b_ms = 0;

    if (!a.ptr || !b.ptr)
        return wb_fail(WB_E_INVALID, "a comparison needs two times, a and b");
    if (!v->stored)
        return wb_fail(WB_E_NOTFOUND, "no version of this page is stored");
    int err = read_text(v, "a", a, &old_text, &a_ms);
    if (err == 0)
        err = read_text(v, "b", b, &new_text, &b_ms);
    if (err == 0)
        err = wb_difference_of(wb_buf_slice(&old_text), wb_buf_slice(&new_text), &difference);
    if (err == 0)
        add_difference(v, &difference, a_ms, b_ms);
    wb_difference_release(&difference);
    wb_buf_release(&old_text);
    wb_buf_release(&new_text);
    return err;
}
