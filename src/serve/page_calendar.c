/*
 * page_calendar.c - GET /calendar?url=[&year=2026][&day=2026-03-05][&after=N]: when a URL was captured: a bar for each
 * year (or month, if there are few years), the months of one year, and the captures of one day.
 *
 * Made for UTC here, complete without scripts; calendar.js makes the same of /api/calendar for the browser's zone.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/sightings.h"
#include "serve/htmlpen.h"

#include <stdio.h>

enum { BARS_MAX = 200, YEARS_IN_A_ROW = 60, DAY_SHOWN = 200, BAR_HEIGHT = 48 };

static const char *const month_names[] = {"January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December"};

struct calendar_view {
    struct wb_call *call;
    struct wb_htmlpen h;
    struct wb_slice url;
    struct wb_pageid id;
    struct wb_store_timeline timeline;
    struct wb_sightings captures;
    struct wb_sighting_spans days;
    int64_t year, day; /* that are shown; the day as wb_date_days() counts */
    uint64_t after;
};

static int64_t year_of(int64_t day)
{
    int64_t year, month, date;

    wb_date_civil(day, &year, &month, &date);
    return year;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* The last day with captures that is not after `day`, or else the first one. There is at least one. */
static int64_t day_until(const struct wb_sighting_spans *days, int64_t day)
{
    WB_CHECK(days->count > 0);
    size_t i = days->count - 1;

    while (i > 0 && days->items[i].number > day)
        i--;
    return days->items[i].number;
}

/* Without a day, the newest one of the year; without a year, the newest one of all. */
static int read_choice(struct calendar_view *v)
{
    WB_CHECK(v->days.count > 0);
    struct wb_slice day = wb_http_param(v->call->request, "day"), year = wb_http_param(v->call->request, "year");
    int64_t time_ms = 0;
    uint64_t number;

    if (day.ptr && (day.len != 10 || !wb_date_parse(day, &time_ms)))
        return wb_fail(WB_E_INVALID, "day=%.*s is not a day; write 2026-01-31", WB_SLICE_ARG(day));
    if (year.ptr && (!wb_slice_to_u64(year, &number) || number < 1 || number > 9999))
        return wb_fail(WB_E_INVALID, "year=%.*s is not a year; write 2026", WB_SLICE_ARG(year));
    int64_t newest = v->days.items[v->days.count - 1].number;
    if (day.ptr)
        v->day = wb_sighting_span_of(time_ms, WB_DAY_MS);
    else
        v->day = year.ptr ? day_until(&v->days, wb_date_days((int64_t)number, 12, 31)) : newest;
    v->year = year.ptr ? (int64_t)number : year_of(v->day);
    return wb_call_number(v->call, "after", 0, UINT32_MAX, &v->after);
}

static int read_calendar(struct calendar_view *v)
{
    int err = wb_call_required(v->call, "url", &v->url);

    if (err == 0)
        err = wb_which_page(v->url, &v->id);
    if (err == 0) {
        err = wb_store_timeline(v->call->worker->store, v->id, &v->timeline);
        if (err == 0 && v->timeline.time_count == 0)
            err = WB_E_NOTFOUND;
        if (err == WB_E_NOTFOUND)
            err = wb_which_missing(v->call->worker->store, v->id, v->url, WB_SLICE_EMPTY, "this archive");
    }
    if (err == 0)
        err = wb_sightings_of(&v->timeline, &v->captures);
    if (err == 0)
        err = wb_sightings_count(&v->captures, WB_DAY_MS, &v->days);
    return err < 0 ? err : read_choice(v);
}

/* ---- bars -------------------------------------------------------------------------------------------------------- */

/* A year, or a month of one. */
struct calendar_bar {
    int64_t year, month; /* month 0: the year */
    uint64_t count, fresh;
};

struct calendar_bars WB_VEC_OF(struct calendar_bar);

/* Adds empty bars up to this one. A URL whose captures are far apart has no bars for the years in between. */
static int fill_bars(struct calendar_bars *bars, int64_t year, int64_t month, bool all)
{
    struct calendar_bar next = {.year = year, .month = month};

    while (all && bars->count) {
        next = bars->items[bars->count - 1];
        bool over = month == 0 || next.month == 12;
        next = (struct calendar_bar){.year = next.year + over, .month = month == 0 ? 0 : over ? 1 : next.month + 1};
        if (next.year > year || (next.year == year && next.month > month))
            return 0;
        if (wb_vec_push(bars, next) < 0)
            return WB_E_NOMEM;
    }
    const struct calendar_bar *last = bars->count ? &bars->items[bars->count - 1] : NULL;
    WB_CHECK(!last || last->year < year || (last->year == year && last->month <= month)); /* in the order of time */
    if (last && last->year == year && last->month == month)
        return 0;
    return wb_vec_push(bars, next);
}

static int count_bars(const struct wb_sighting_spans *days, struct calendar_bars *bars)
{
    WB_CHECK(days->count > 0);
    int64_t first = year_of(days->items[0].number), last = year_of(days->items[days->count - 1].number);
    bool months = last - first <= 1, all = last - first < YEARS_IN_A_ROW;
    int err = months ? fill_bars(bars, first, 1, true) : 0;

    for (size_t i = 0; i < days->count && err == 0; i++) {
        int64_t year, month, date;
        wb_date_civil(days->items[i].number, &year, &month, &date);
        err = fill_bars(bars, year, months ? month : 0, all);
        if (err == 0) {
            struct calendar_bar *bar = &bars->items[bars->count - 1];
            WB_CHECK(bar->year == year && bar->month == (months ? month : 0));
            bar->count += days->items[i].count;
            bar->fresh += days->items[i].kinds[WB_SIGHTING_NEW];
        }
    }
    return err == 0 && months ? fill_bars(bars, last, 12, true) : err;
}

static void add_bar(struct calendar_view *v, const struct calendar_bar *bar, uint64_t most)
{
    WB_CHECK(bar->month >= 0 && bar->month <= 12);
    WB_CHECK(bar->count <= most);
    WB_CHECK(bar->fresh <= bar->count);
    struct wb_htmlpen *h = &v->h;
    uint64_t height = bar->count ? 2 + bar->count * (BAR_HEIGHT - 2) / most : 0;
    uint64_t fresh = bar->count ? height * bar->fresh / bar->count : 0;
    char label[64], name[16];

    snprintf(name, sizeof name, "%.3s", bar->month ? month_names[bar->month - 1] : "");
    snprintf(label, sizeof label, "%s%s%lld", bar->month ? month_names[bar->month - 1] : "", bar->month ? " " : "",
             (long long)bar->year);
    wb_htmlpen_put(
        h, "<li><a href=\"/calendar?url={}&amp;year={}{}\"{} aria-label=\"{}: {} {}\">", wb_htmlpen_param(v->url),
        wb_htmlpen_plain((uint64_t)bar->year), wb_htmlpen_str(bar->month ? "#months" : ""),
        wb_htmlpen_markup(bar->year == v->year ? WB_SLICE_LIT(" class=\"now\"") : WB_SLICE_EMPTY),
        wb_htmlpen_str(label), wb_htmlpen_number(bar->count), wb_htmlpen_str(bar->count == 1 ? "capture" : "captures"));
    wb_htmlpen_put(h,
                   "<svg viewBox=\"0 0 10 {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
                   "<rect class=\"seen\" width=\"10\" y=\"{}\" height=\"{}\"/>"
                   "<rect class=\"fresh\" width=\"10\" y=\"{}\" height=\"{}\"/></svg>",
                   wb_htmlpen_plain(BAR_HEIGHT), wb_htmlpen_plain(BAR_HEIGHT - height), wb_htmlpen_plain(height),
                   wb_htmlpen_plain(BAR_HEIGHT - fresh), wb_htmlpen_plain(fresh));
    wb_htmlpen_put(h, "<span>{}</span>", wb_htmlpen_str(bar->month ? name : label));
    if (bar->month == 1)
        wb_htmlpen_put(h, "<b>{}</b>", wb_htmlpen_plain((uint64_t)bar->year));
    wb_htmlpen_raw(h, "</a></li>\n");
}

static void add_bars(struct calendar_view *v)
{
    struct calendar_bars bars = WB_VEC_INIT;
    uint64_t most = 1;

    if (v->h.err == 0)
        v->h.err = count_bars(&v->days, &bars);
    for (size_t i = 0; i < bars.count; i++)
        most = bars.items[i].count > most ? bars.items[i].count : most;
    wb_htmlpen_raw(&v->h, "<nav aria-label=\"Years\">\n<ul class=\"years\">\n");
    for (size_t i = bars.count > BARS_MAX ? bars.count - BARS_MAX : 0; i < bars.count; i++)
        add_bar(v, &bars.items[i], most);
    wb_htmlpen_raw(&v->h, "</ul>\n</nav>\n");
    wb_vec_release(&bars);
}

/* ---- months ------------------------------------------------------------------------------------------------------ */

/* What a day is marked as: the most telling of what was found. */
static enum wb_sighting_kind mark_of(const struct wb_sighting_span *day)
{
    WB_CHECK(day->count > 0);
    for (enum wb_sighting_kind kind = 0; kind + 1 < WB_SIGHTING_KINDS; kind++)
        if (day->kinds[kind])
            return kind;
    return WB_SIGHTING_ERROR;
}

static unsigned size_of(uint64_t count)
{
    return count >= 10 ? 4 : count >= 4 ? 3 : count >= 2 ? 2 : 1;
}

/* ": 1 new content, 2 unchanged" */
static void add_kinds(struct calendar_view *v, const struct wb_sighting_span *day)
{
    const char *before = ": ";

    for (enum wb_sighting_kind kind = 0; kind < WB_SIGHTING_KINDS; kind++) {
        if (day->kinds[kind] == 0)
            continue;
        bool plural = day->kinds[kind] > 1 && kind >= WB_SIGHTING_REDIRECT;
        wb_htmlpen_put(&v->h, "{}{} {}{}", wb_htmlpen_str(before), wb_htmlpen_number(day->kinds[kind]),
                       wb_htmlpen_str(wb_sighting_kind_words(kind)), wb_htmlpen_str(plural ? "s" : ""));
        before = ", ";
    }
}

static void add_date(struct calendar_view *v, int64_t day)
{
    int64_t year, month, date;

    wb_date_civil(day, &year, &month, &date);
    wb_htmlpen_put(&v->h, "{} {} {}", wb_htmlpen_plain((uint64_t)date), wb_htmlpen_str(month_names[month - 1]),
                   wb_htmlpen_plain((uint64_t)year));
}

static void add_day(struct calendar_view *v, const struct wb_sighting_span *day)
{
    char text[WB_DATE_TEXT_MAX];
    int64_t year, month, date;

    wb_date_format(day->number * WB_DAY_MS, text);
    wb_date_civil(day->number, &year, &month, &date);
    wb_htmlpen_put(&v->h, "<td><a class=\"{} d{}\" href=\"/calendar?url={}&amp;day={}#day\"{} aria-label=\"{} {} on ",
                   wb_htmlpen_str(wb_sighting_kind_name(mark_of(day))), wb_htmlpen_plain(size_of(day->count)),
                   wb_htmlpen_param(v->url), wb_htmlpen_text(wb_slice(text, 10)),
                   wb_htmlpen_markup(day->number == v->day ? WB_SLICE_LIT(" aria-current=\"date\"") : WB_SLICE_EMPTY),
                   wb_htmlpen_number(day->count), wb_htmlpen_str(day->count == 1 ? "capture" : "captures"));
    add_date(v, day->number);
    add_kinds(v, day);
    wb_htmlpen_put(&v->h, "\">{}</a></td>", wb_htmlpen_plain((uint64_t)date));
}

static size_t find_day(const struct wb_sighting_spans *days, int64_t day)
{
    size_t first = 0, end = days->count;

    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (days->items[middle].number < day)
            first = middle + 1;
        else
            end = middle;
    }
    WB_CHECK(first == days->count || days->items[first].number >= day);
    WB_CHECK(first == 0 || days->items[first - 1].number < day);
    return first;
}

/* Weeks begin on Monday. 1 January 1970 was a Thursday. */
static void add_month(struct calendar_view *v, int64_t month)
{
    int64_t first = wb_date_days(v->year, month, 1);
    int64_t end = month == 12 ? wb_date_days(v->year + 1, 1, 1) : wb_date_days(v->year, month + 1, 1);
    int64_t monday = first - ((first + 3) % 7 + 7) % 7;
    size_t at = find_day(&v->days, first);

    wb_htmlpen_put(&v->h, "<table class=\"month\">\n<caption>{} {}</caption>\n<thead><tr>",
                   wb_htmlpen_str(month_names[month - 1]), wb_htmlpen_plain((uint64_t)v->year));
    wb_htmlpen_raw(&v->h, "<th scope=\"col\">Mo</th><th scope=\"col\">Tu</th><th scope=\"col\">We</th>"
                          "<th scope=\"col\">Th</th><th scope=\"col\">Fr</th><th scope=\"col\">Sa</th>"
                          "<th scope=\"col\">Su</th></tr></thead>\n<tbody>\n");
    for (int64_t day = monday; day < end; day++) {
        if ((day - monday) % 7 == 0)
            wb_htmlpen_raw(&v->h, "<tr>");
        if (day < first)
            wb_htmlpen_raw(&v->h, "<td></td>");
        else if (at < v->days.count && v->days.items[at].number == day)
            add_day(v, &v->days.items[at++]);
        else
            wb_htmlpen_put(&v->h, "<td>{}</td>", wb_htmlpen_plain((uint64_t)(day - first + 1)));
        if ((day - monday) % 7 == 6 || day + 1 == end)
            wb_htmlpen_raw(&v->h, "</tr>\n");
    }
    wb_htmlpen_raw(&v->h, "</tbody>\n</table>\n");
}

static void add_months(struct calendar_view *v)
{
    wb_htmlpen_put(&v->h, "<section aria-labelledby=\"months\">\n<h2 id=\"months\">{}</h2>\n<div class=\"months\">\n",
                   wb_htmlpen_plain((uint64_t)v->year));
    for (int64_t month = 1; month <= 12; month++)
        add_month(v, month);
    wb_htmlpen_raw(&v->h, "</div>\n<p class=\"legend\"><span class=\"new\">new content</span> "
                          "<span class=\"same\">unchanged</span> <span class=\"redirect\">redirects only</span> "
                          "<span class=\"error\">errors only</span> The larger, the more captures.</p>\n</section>\n");
}

/* ---- one day ----------------------------------------------------------------------------------------------------- */

static void add_capture(struct calendar_view *v, size_t at)
{
    WB_CHECK(at < v->captures.count);
    WB_CHECK(v->captures.items[at].version < v->timeline.count);
    const struct wb_sighting *capture = &v->captures.items[at];
    const struct wb_store_version *version = &v->timeline.versions[capture->version];

    wb_htmlpen_put(&v->h, "<tr><td><a href=\"/web/{}/{}\">{}</a></td><td class=\"number\">{}</td><td>{}",
                   wb_htmlpen_digits(capture->time_ms), wb_htmlpen_text(v->url), wb_htmlpen_time(capture->time_ms),
                   wb_htmlpen_plain(version->status), wb_htmlpen_str(wb_sighting_kind_words(capture->kind)));
    if (at > 0 && v->captures.items[at - 1].version != capture->version)
        wb_htmlpen_put(&v->h, " (<a href=\"/compare?url={}&amp;a={}&amp;b={}\">what changed</a>)",
                       wb_htmlpen_param(v->url), wb_htmlpen_digits(v->captures.items[at - 1].time_ms),
                       wb_htmlpen_digits(capture->time_ms));
    wb_htmlpen_put(&v->h, "</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
                   wb_htmlpen_plain(capture->version + 1), wb_htmlpen_bytes(version->body_bytes));
}

static void add_list(struct calendar_view *v)
{
    size_t first = wb_sightings_from(&v->captures, v->day * WB_DAY_MS);
    size_t end = wb_sightings_from(&v->captures, (v->day + 1) * WB_DAY_MS);
    WB_CHECK(first <= end);
    size_t at = v->after < end - first ? first + (size_t)v->after : first;
    size_t shown = end - at > DAY_SHOWN ? at + DAY_SHOWN : end;
    char day[WB_DATE_TEXT_MAX];

    wb_date_format(v->day * WB_DAY_MS, day);
    wb_htmlpen_raw(&v->h, "<section aria-labelledby=\"day\">\n<h2 id=\"day\">");
    add_date(v, v->day);
    wb_htmlpen_raw(&v->h, "</h2>\n");
    if (first == end)
        wb_htmlpen_raw(&v->h, "<p class=\"note\">There are no captures of this day.</p>\n");
    else
        wb_htmlpen_raw(&v->h, "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">Time</th>"
                              "<th scope=\"col\" class=\"number\">Status</th><th scope=\"col\">What was found</th>"
                              "<th scope=\"col\" class=\"number\">Version</th>"
                              "<th scope=\"col\" class=\"number\">Size</th></tr></thead>\n<tbody>\n");
    for (size_t i = at; i < shown; i++)
        add_capture(v, i);
    if (first < end)
        wb_htmlpen_raw(&v->h, "</tbody>\n</table></div>\n");
    if (shown < end)
        wb_htmlpen_put(&v->h, "<p><a href=\"/calendar?url={}&amp;day={}&amp;after={}#day\">{} more</a></p>\n",
                       wb_htmlpen_param(v->url), wb_htmlpen_text(wb_slice(day, 10)), wb_htmlpen_plain(shown - first),
                       wb_htmlpen_number(end - shown));
    wb_htmlpen_raw(&v->h, "</section>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void add_heading(struct calendar_view *v)
{
    WB_CHECK(v->captures.count > 0);
    struct wb_htmlpen *h = &v->h;
    size_t count = v->captures.count, versions = v->timeline.count;

    wb_htmlpen_put(h, "<h1>Captures</h1>\n<p class=\"address\">{}</p>\n", wb_htmlpen_text(v->url));
    wb_htmlpen_put(h, "<p>{} {} of {} {}, from {} to {}. <span id=\"zone\">Days are those of UTC.</span></p>\n",
                   wb_htmlpen_number(count), wb_htmlpen_str(count == 1 ? "capture" : "captures"),
                   wb_htmlpen_number(versions), wb_htmlpen_str(versions == 1 ? "version" : "versions"),
                   wb_htmlpen_time(v->captures.items[0].time_ms),
                   wb_htmlpen_time(v->captures.items[count - 1].time_ms));
    wb_htmlpen_put(h,
                   "<nav class=\"actions\" aria-label=\"This page\"><a class=\"main\" href=\"/web/{}/{}\">Newest copy"
                   "</a>\n<a href=\"/page?url={}\">About this page</a>\n<a href=\"/page?url={}#versions\">Compare "
                   "versions</a>\n<a href=\"/api/calendar?url={}\">JSON</a></nav>\n",
                   wb_htmlpen_digits(v->captures.items[count - 1].time_ms), wb_htmlpen_text(v->url),
                   wb_htmlpen_param(v->url), wb_htmlpen_param(v->url), wb_htmlpen_param(v->url));
}

static void show(struct calendar_view *v)
{
    char day[WB_DATE_TEXT_MAX];

    wb_date_format(v->day * WB_DAY_MS, day);
    wb_page_begin(
        v->call, &v->h,
        &(struct wb_page_frame){.title = WB_SLICE_LIT("Captures"), .place = WB_PAGE_VIEW, .script = "calendar.js"});
    wb_htmlpen_raw(&v->h, "<article>\n");
    add_heading(v);
    wb_htmlpen_put(&v->h, "<div id=\"calendar\" data-url=\"{}\" data-year=\"{}\" data-day=\"{}\"{}>\n",
                   wb_htmlpen_text(v->url), wb_htmlpen_plain((uint64_t)v->year), wb_htmlpen_text(wb_slice(day, 10)),
                   wb_htmlpen_markup(wb_http_param(v->call->request, "day").ptr ? WB_SLICE_LIT(" data-chosen=\"1\"")
                                                                                : WB_SLICE_EMPTY));
    add_bars(v);
    add_months(v);
    add_list(v);
    wb_htmlpen_raw(&v->h, "</div>\n</article>\n");
    wb_page_end(v->call, &v->h);
}

void wb_handle_calendar_page(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct calendar_view v = {.call = call};
    int err = read_calendar(&v);

    if (err == 0)
        show(&v);
    else
        wb_call_fail(call, err);
    wb_sighting_spans_release(&v.days);
    wb_sightings_release(&v.captures);
    wb_store_timeline_release(&v.timeline);
}
