/* page_versions.c - the past of a page for people: a line of time, and a table to choose two versions from. */
#include "base/check.h"
#include "serve/page_view.h"

enum { VERSIONS_SHOWN = 50, TICKS_MAX = 500, LINE_WIDTH = 1000 };

/* ---- the line of time -------------------------------------------------------------------------------------------- */

static int64_t last_of(const struct wb_store_timeline *t)
{
    int64_t last = t->times[0];

    for (size_t i = 0; i < t->count; i++)
        last = t->versions[i].last_ms > last ? t->versions[i].last_ms : last;
    return last;
}

static uint64_t place_of(const struct wb_store_timeline *t, int64_t last_ms, int64_t time_ms)
{
    int64_t first = t->times[0], span = last_ms - first;

    WB_CHECK(first <= time_ms && time_ms <= last_ms);
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
    int64_t last_ms = last_of(t);

    wb_htmlpen_raw(&v->h,
                   "<svg class=\"line\" viewBox=\"-4 0 1008 44\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\n"
                   "<rect class=\"axis\" x=\"-4\" y=\"21\" width=\"1008\" height=\"2\"/>\n");
    for (size_t i = 0; i < t->count; i += step) {
        const struct wb_store_version *version = &t->versions[i];
        uint64_t from = place_of(t, last_ms, version->time_ms), to = place_of(t, last_ms, version->last_ms);
        wb_htmlpen_put(&v->h,
                       "<a href=\"/web/{}/{}\" tabindex=\"-1\"><rect class=\"v{}\" x=\"{}\" y=\"10\" width=\"{}\" "
                       "height=\"24\"><title>Version {}: {} to {}</title></rect></a>\n",
                       wb_htmlpen_digits(version->time_ms), wb_htmlpen_text(v->page.url), wb_htmlpen_plain(i % 2),
                       wb_htmlpen_plain(from), wb_htmlpen_plain(to > from + 4 ? to - from : 4),
                       wb_htmlpen_plain(i + 1), wb_htmlpen_utc(version->time_ms), wb_htmlpen_utc(version->last_ms));
    }
    for (size_t i = 0; i < t->time_count; i += tick)
        wb_htmlpen_put(&v->h, "<rect class=\"tick\" x=\"{}\" y=\"36\" width=\"2\" height=\"6\"/>\n",
                       wb_htmlpen_plain(place_of(t, last_ms, t->times[i])));
    wb_htmlpen_put(&v->h, "</svg>\n<p class=\"ends\"><span>{}</span><span>{}</span></p>\n",
                   wb_htmlpen_time(t->times[0]), wb_htmlpen_time(last_ms));
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
    WB_CHECK(number < v->timeline.count);
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

    WB_CHECK(skip < v->timeline.count);
    wb_htmlpen_put(&v->h,
                   "<form action=\"/compare\" method=\"get\">\n<input type=\"hidden\" name=\"url\" value=\"{}\">\n",
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

    WB_CHECK(v->h.magic == WB_HTMLPEN_MAGIC);
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
