/*
 * stage_bar.c - what the bar over a stored page says: when it was captured, which of how many captures it is, how far
 * away the ones before and after it are, and where to read on.
 *
 *   GET /bar?url=&time=14 digits     the same for another capture, or for a page that is not stored: web/bar.js asks
 *                                    for it when the frame goes there
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/capture.h"
#include "serve/distance.h"
#include "serve/page_missing.h"
#include "serve/stage.h"

enum { YEARS_MAX = 40, SPARK_HEIGHT = 16, SPARK_STEP = 4 };

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

/* Captures of the same second have the same address, so they are passed over. SIZE_MAX: there is none. */
static size_t earlier_than(const struct wb_stage *stage)
{
    WB_CHECK(stage->at < stage->timeline->time_count);
    const int64_t *times = stage->timeline->times;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < stage->timeline->time_count; i++)
        if (times[i] / 1000 < times[stage->at] / 1000 && (found == SIZE_MAX || times[i] >= times[found]))
            found = i;
    return found;
}

static size_t later_than(const struct wb_stage *stage)
{
    WB_CHECK(stage->at < stage->timeline->time_count);
    const int64_t *times = stage->timeline->times;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < stage->timeline->time_count; i++)
        if (times[i] / 1000 > times[stage->at] / 1000 && (found == SIZE_MAX || times[i] < times[found]))
            found = i;
    return found;
}

static void add_neighbour(struct wb_htmlpen *h, const struct wb_stage *stage, size_t at, bool later)
{
    const int64_t *times = stage->timeline->times;
    char words[WB_DISTANCE_MAX];

    if (at == SIZE_MAX)
        return;
    WB_CHECK(at < stage->timeline->time_count);
    WB_CHECK((times[at] > times[stage->at]) == later);
    wb_distance_words(times[stage->at], times[at], words);
    wb_htmlpen_put(h, "<a rel=\"{} nofollow\" href=\"/web/{}/{}\"><span aria-hidden=\"true\">{}</span>{}",
                   wb_htmlpen_str(later ? "next" : "prev"), wb_htmlpen_digits(times[at]), wb_htmlpen_text(stage->url),
                   wb_htmlpen_str(later ? "" : "\xE2\x80\xB9 "), wb_htmlpen_str(words));
    wb_htmlpen_put(h, "<span aria-hidden=\"true\">{}</span></a>\n", wb_htmlpen_str(later ? " \xE2\x80\xBA" : ""));
}

/* ---- captures by year -------------------------------------------------------------------------------------------- */

struct spark {
    uint64_t counts[YEARS_MAX], most;
    int64_t first, last, now; /* years */
};

static int64_t year_of(int64_t time_ms)
{
    int64_t year, month, day;

    wb_date_civil(time_ms / WB_DAY_MS - (time_ms % WB_DAY_MS < 0), &year, &month, &day);
    return year;
}

/* The last years only, if there are very many. Most times are of the year of the one before. */
static void count_years(const struct wb_stage *stage, struct spark *s)
{
    const struct wb_store_timeline *t = stage->timeline;
    int64_t year = year_of(t->times[0]), begin = INT64_MAX, end = INT64_MIN;

    *s = (struct spark){.first = year, .last = year_of(t->times[wb_memento_find(t, INT64_MAX)]), .most = 1};
    s->now = year_of(t->times[stage->at]);
    if (s->last - s->first >= YEARS_MAX)
        s->first = s->last - YEARS_MAX + 1;
    WB_CHECK(s->first <= s->last && s->last - s->first < YEARS_MAX);
    for (size_t i = 0; i < t->time_count; i++) {
        if (t->times[i] < begin || t->times[i] >= end) {
            year = year_of(t->times[i]);
            begin = wb_date_days(year, 1, 1) * WB_DAY_MS;
            end = wb_date_days(year + 1, 1, 1) * WB_DAY_MS;
        }
        if (year < s->first || year > s->last)
            continue;
        uint64_t count = ++s->counts[year - s->first];
        s->most = count > s->most ? count : s->most;
    }
}

static void add_spark(struct wb_htmlpen *h, const struct wb_stage *stage)
{
    struct spark s;

    count_years(stage, &s);
    uint64_t years = (uint64_t)(s.last - s.first + 1);
    wb_htmlpen_put(h, "<a id=\"stage-all\" class=\"stage-spark\" rel=\"nofollow\" href=\"/web/*/{}\">calendar",
                   wb_htmlpen_text(stage->url));
    wb_htmlpen_put(h, "<svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" aria-hidden=\"true\">",
                   wb_htmlpen_plain(years * SPARK_STEP), wb_htmlpen_plain(SPARK_HEIGHT),
                   wb_htmlpen_plain(years * SPARK_STEP), wb_htmlpen_plain(SPARK_HEIGHT));
    for (uint64_t i = 0; i < years; i++) {
        uint64_t height = s.counts[i] ? 2 + s.counts[i] * (SPARK_HEIGHT - 2) / s.most : 0;
        wb_htmlpen_put(
            h, "<rect{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            wb_htmlpen_markup(s.first + (int64_t)i == s.now ? WB_SLICE_LIT(" class=\"now\"") : WB_SLICE_EMPTY),
            wb_htmlpen_plain(i * SPARK_STEP), wb_htmlpen_plain(SPARK_HEIGHT - height), wb_htmlpen_plain(SPARK_STEP - 1),
            wb_htmlpen_plain(height));
    }
    wb_htmlpen_raw(h, "</svg></a>\n");
}

/* ---- the bar ----------------------------------------------------------------------------------------------------- */

static void add_live(struct wb_htmlpen *h, struct wb_slice url)
{
    if (wb_htmlpen_is_web_url(url))
        wb_htmlpen_put(
            h, "<a id=\"stage-live\" href=\"{}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">live web</a>\n",
            wb_htmlpen_text(url));
}

static void add_links(struct wb_htmlpen *h, const struct wb_stage *stage, size_t before)
{
    const int64_t *times = stage->timeline->times;
    struct wb_htmlpen_value url = wb_htmlpen_text(stage->url), param = wb_htmlpen_param(stage->url);

    wb_htmlpen_put(h, "<a id=\"stage-newest\" rel=\"nofollow\" href=\"/web/{}\">newest</a>\n", url);
    if (before != SIZE_MAX)
        wb_htmlpen_put(h, "<a rel=\"nofollow\" href=\"/compare?url={}&amp;a={}&amp;b={}\">changes</a>\n", param,
                       wb_htmlpen_digits(times[before]), wb_htmlpen_digits(times[stage->at]));
    wb_htmlpen_put(h, "<a id=\"stage-files\" rel=\"nofollow\" href=\"/files?url={}&amp;time={}\">files</a>\n", param,
                   wb_htmlpen_digits(times[stage->at]));
    wb_htmlpen_put(h, "<a rel=\"nofollow\" href=\"/page?url={}\">about</a>\n", param);
    add_live(h, stage->url);
}

static void add_what(struct wb_htmlpen *h, struct wb_slice address, int64_t time_ms)
{
    struct wb_htmlpen_value url = wb_htmlpen_text(address);

    wb_page_asset(h,
                  "<a class=\"brand\" href=\"/\" title=\"WebBase: search\"><img src=\"/assets/{}?{}\" alt=\"WebBase\" "
                  "width=\"20\" height=\"20\"></a>\n",
                  "icon.svg");
    wb_htmlpen_put(h,
                   "<p class=\"stage-what\"><span id=\"stage-time\">{}</span> "
                   "<span id=\"stage-url\" class=\"stage-url\" title=\"{}\">{}</span></p>\n",
                   wb_htmlpen_time(time_ms), url, url);
}

/* The bar over "not in the archive": there is nothing before or after. */
static void add_missing(struct wb_htmlpen *h, const struct wb_memento_target *t)
{
    struct wb_slice url = wb_buf_slice(&t->url);

    add_what(h, url, t->time_ms);
    wb_htmlpen_raw(h, "<span class=\"quiet\">not stored</span>\n<nav aria-label=\"Versions\">\n");
    wb_page_missing_site(h, url, "captures of this site");
    add_live(h, url);
    wb_htmlpen_raw(h, "</nav>\n");
}

void wb_stage_bar(struct wb_htmlpen *h, const struct wb_stage *stage)
{
    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    WB_CHECK(stage->at < stage->timeline->time_count);
    size_t before = earlier_than(stage);

    add_what(h, stage->url, stage->timeline->times[stage->at]);
    wb_htmlpen_raw(h, "<nav class=\"stage-near\" aria-label=\"Captures before and after\">\n");
    add_neighbour(h, stage, before, false);
    wb_htmlpen_put(h, "<span class=\"quiet\">{} of {}</span>\n", wb_htmlpen_number(stage->at + 1),
                   wb_htmlpen_number(stage->timeline->time_count));
    add_neighbour(h, stage, later_than(stage), true);
    wb_htmlpen_raw(h, "</nav>\n<nav aria-label=\"Versions\">\n");
    add_spark(h, stage);
    add_links(h, stage, before);
    wb_htmlpen_raw(h, "</nav>\n");
}

/* ---- another capture --------------------------------------------------------------------------------------------- */

void wb_handle_bar(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_htmlpen h;
    struct wb_store_timeline timeline = {0};
    struct wb_memento_target t = {0};
    struct wb_stage stage = {.timeline = &timeline};
    struct wb_slice url, time = wb_http_param(call->request, "time");

    wb_htmlpen_init(&h, &call->reply->body);
    int err = wb_call_required(call, "url", &url);
    if (err == 0)
        err = wb_memento_url(url, &t);
    if (err == 0 && (time.len != 14 || !wb_date_parse_digits_end(time, &t.time_ms)))
        err = wb_fail(WB_E_INVALID, "time=%.*s: write 14 digits", WB_SLICE_ARG(time));
    t.has_time = t.has_second = true;
    if (err == 0)
        err = wb_capture_timeline(call, t.id, &timeline);
    if (err == 0)
        err = wb_capture_choose(call, &t, &timeline, &stage.at);
    if (err == WB_E_NOTFOUND)
        err = wb_which_missing(call->worker->store, t.id, url, WB_SLICE_EMPTY, "this archive");
    bool missing = err == WB_E_NOTFOUND;
    if (err == 0 || missing)
        err = wb_page_fields(call->reply);
    stage.url = wb_buf_slice(&t.url);
    if (err == 0) {
        if (missing)
            add_missing(&h, &t);
        else
            wb_stage_bar(&h, &stage);
        err = h.err;
    }
    if (err < 0)
        wb_call_fail(call, err);
    wb_store_timeline_release(&timeline);
    wb_memento_target_release(&t);
}
