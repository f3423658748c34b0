/*
 * page_charts.c - charts as SVG, drawn here, so that they are there without scripts. Each has a table of the same
 * numbers below it. What nobody watched is a gap.
 *
 *   <figure class="plot" data-chart="rate" data-unit="" data-lines="crawl_pages|stored by crawls;captures_new|...">
 */
#include "serve/page_charts.h"
#include "base/check.h"
#include "base/date.h"

#include <math.h>
#include <stdio.h>

enum { LINES_MAX = 3, WIDTH = 600, HEIGHT = 150, LEFT = 52, RIGHT = 52, TOP = 8, BOTTOM = 20, TABLE_ROWS = 12 };

struct chart_line {
    const char *label;
    enum wb_dash_number number;
    bool second; /* it has a scale of its own, at the right */
};

static const struct {
    const char *id, *title;
    struct chart_line lines[LINES_MAX];
} charts[] = {
    {"rate",
     "Pages per second",
     {{"crawled", WB_DASH_CRAWL_PAGES, false},
      {"unchanged", WB_DASH_CRAWL_UNCHANGED, false},
      {"captures added", WB_DASH_ARRIVED, false}}},
    {"errors", "Failed requests per second", {{"failed", WB_DASH_CRAWL_ERRORS, false}}},
    {"queues",
     "Sites and queues",
     {{"sites", WB_DASH_CRAWL_ACTIVE, false},
      {"queued URLs", WB_DASH_CRAWL_QUEUED, true},
      {"sites that wait", WB_DASH_CRAWL_WAITING, false}}},
    {"traffic", "Received per second", {{"bytes", WB_DASH_CRAWL_BYTES, false}}},
    {"store", "Store", {{"stored", WB_DASH_STORED_BYTES, false}, {"free to compact", WB_DASH_DEAD_BYTES, false}}},
    {"fresh", "Freshness and age", {{"fresh", WB_DASH_FRESHNESS, false}, {"mean age", WB_DASH_AGE, true}}},
    {"requests", "Answers per second", {{"answers", WB_DASH_REQUESTS, false}, {"failed", WB_DASH_FAILED, false}}},
    {"open",
     "Connections and streams",
     {{"connections", WB_DASH_CONNECTIONS, false}, {"streams", WB_DASH_STREAMS, false}}},
};

static size_t line_count(const struct chart_line *lines)
{
    size_t count = 0;

    while (count < LINES_MAX && lines[count].label)
        count++;
    return count;
}

/* ---- numbers as text --------------------------------------------------------------------------------------------- */

/* dash.js writes them in the same way. */
const char *wb_page_number(double value, const char *unit, char text_out[WB_PAGE_NUMBER_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t k = 0;

    if (isnan(value)) {
        snprintf(text_out, 32, "\xE2\x80\x93");
    } else if (strcmp(unit, "share") == 0) {
        snprintf(text_out, 32, "%.1f %%", value * 100);
    } else if (strcmp(unit, "days") == 0) {
        if (value < 1.0 / 24)
            snprintf(text_out, 32, "%.0f min", value * 24 * 60);
        else
            snprintf(text_out, 32, value < 2 ? "%.1f h" : "%.1f d", value < 2 ? value * 24 : value);
    } else if (strcmp(unit, "bytes") == 0) {
        for (; value >= 999.5 && k + 1 < sizeof units / sizeof *units; k++)
            value /= 1000;
        snprintf(text_out, 32, k && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[k]);
    } else if (value >= 1e6) {
        snprintf(text_out, 32, "%.1fM", value / 1e6);
    } else if (value >= 1e4) {
        snprintf(text_out, 32, "%.0fk", value / 1e3);
    } else {
        snprintf(text_out, 32, value >= 100 || value == floor(value) ? "%.0f" : "%.2f", value);
    }
    return text_out;
}

static const char *unit_of(const struct chart_line *line)
{
    return wb_dash_numbers[line->number].unit;
}

/* ---- a picture --------------------------------------------------------------------------------------------------- */

static double greatest(const struct wb_dash_past *past, const struct chart_line *lines, bool second)
{
    double most = 0;

    for (size_t k = 0; k < line_count(lines); k++)
        for (size_t i = 0; i < past->count && lines[k].second == second; i++) {
            double value = wb_dash_past_value(past, i, lines[k].number);
            most = value > most ? value : most;
        }
    return most;
}

/* The top of a scale, a little above what is in it. */
static double top_of(const struct wb_dash_past *past, const struct chart_line *lines, bool second)
{
    double most = greatest(past, lines, second);
    const char *unit = "";

    for (size_t k = line_count(lines); k-- > 0;)
        if (lines[k].second == second)
            unit = unit_of(&lines[k]);
    if (strcmp(unit, "share") == 0)
        return 1;
    return most > 0 ? most * 1.1 : strcmp(unit, "bytes") == 0 ? 1000 : 1;
}

static void add_label(struct wb_htmlpen *h, double x, double y, const char *anchor, const char *text)
{
    char place[96];

    snprintf(place, sizeof place, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", x, y, anchor);
    wb_htmlpen_raw(h, place);
    wb_htmlpen_put(h, "{}</text>", wb_htmlpen_str(text));
}

static void add_axes(struct wb_htmlpen *h, const struct wb_dash_past *past, const struct chart_line *lines)
{
    double top = top_of(past, lines, false), second = top_of(past, lines, true);
    const struct chart_line *right = NULL;
    char text[32], line[128];

    for (size_t k = 0; k < line_count(lines); k++)
        right = lines[k].second ? &lines[k] : right;
    for (unsigned i = 0; i <= 2; i++) {
        double y = TOP + (HEIGHT - TOP - BOTTOM) * (2 - i) / 2.0;
        snprintf(line, sizeof line, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
        wb_htmlpen_raw(h, line);
        add_label(h, LEFT - 6, y + 4, "end", wb_page_number(top * i / 2, unit_of(&lines[0]), text));
        if (right)
            add_label(h, WIDTH - RIGHT + 6, y + 4, "start", wb_page_number(second * i / 2, unit_of(right), text));
    }
}

/* A line, or a dot where its neighbours are gaps. */
static void add_line(struct wb_htmlpen *h, const struct wb_dash_past *past, const struct chart_line *line,
                     size_t number, double top)
{
    WB_CHECK(top > 0);
    double width = (WIDTH - LEFT - RIGHT) / (double)(past->count > 1 ? past->count - 1 : 1);
    bool down = false; /* the pen is */
    char point[64];

    snprintf(point, sizeof point, "<path class=\"l%zu\" d=\"", number);
    wb_htmlpen_raw(h, point);
    for (size_t i = 0; i < past->count; i++) {
        double value = wb_dash_past_value(past, i, line->number);
        if (isnan(value)) {
            down = false;
            continue;
        }
        double y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value > top ? 1 : value / top));
        snprintf(point, sizeof point, down ? "L%.1f %.1f" : "M%.1f %.1fh.1", LEFT + width * (double)i, y);
        wb_htmlpen_raw(h, point);
        down = true;
    }
    wb_htmlpen_raw(h, "\"/>");
}

static void write_moment(int64_t time_s, int64_t length_s, char text_out[32])
{
    char digits[WB_DATE_TEXT_MAX];

    wb_date_format(time_s * 1000, digits);
    if (length_s <= 2 * 86400)
        snprintf(text_out, 32, "%.5s UTC", digits + 11);
    else
        snprintf(text_out, 32, "%.10s", digits);
}

static void add_picture(struct wb_htmlpen *h, const struct wb_dash_past *past, size_t chart)
{
    WB_CHECK(chart < sizeof charts / sizeof *charts);
    const struct chart_line *lines = charts[chart].lines;
    const struct wb_dash_past_range *range = &past->range;
    char text[128];

    snprintf(text, sizeof text, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    wb_htmlpen_raw(h, text);
    wb_htmlpen_put(h, "{}: a chart; the table below it has the numbers\">", wb_htmlpen_str(charts[chart].title));
    add_axes(h, past, lines);
    for (size_t k = 0; k < line_count(lines); k++)
        add_line(h, past, &lines[k], k, top_of(past, lines, lines[k].second));
    for (unsigned i = 0; i <= 2; i++) {
        static const char *const anchors[] = {"start", "middle", "end"};
        char moment[32];
        write_moment(range->from_s + (range->to_s - range->from_s) * i / 2, range->to_s - range->from_s, moment);
        add_label(h, LEFT + (WIDTH - LEFT - RIGHT) * i / 2.0, HEIGHT - 4, anchors[i], moment);
    }
    wb_htmlpen_raw(h, "</svg>\n<ul class=\"legend\">");
    for (size_t k = 0; k < line_count(lines); k++) {
        snprintf(text, sizeof text,
                 "<li><svg viewBox=\"0 0 24 8\" aria-hidden=\"true\"><path class=\"l%zu\" d=\"M0 4H24\"/></svg> ", k);
        wb_htmlpen_raw(h, text);
        wb_htmlpen_put(h, "{}{}</li>", wb_htmlpen_str(lines[k].label),
                       wb_htmlpen_str(lines[k].second ? " (right)" : ""));
    }
    wb_htmlpen_raw(h, "</ul>\n");
}

/* ---- a table ----------------------------------------------------------------------------------------------------- */

/* Twelve rows or fewer: what was in them on average, as far as it was watched. */
static double mean_of(const struct wb_dash_past *past, size_t first, size_t end, enum wb_dash_number number)
{
    double sum = 0, weight = 0;

    for (size_t i = first; i < end; i++) {
        double value = wb_dash_past_value(past, i, number);
        if (!isnan(value)) {
            sum += value * (double)past->steps[i].watched_ms;
            weight += (double)past->steps[i].watched_ms;
        }
    }
    return weight > 0 ? sum / weight : NAN;
}

static void add_table(struct wb_htmlpen *h, const struct wb_dash_past *past, size_t chart)
{
    WB_CHECK(chart < sizeof charts / sizeof *charts);
    WB_CHECK(past->count > 0);
    const struct chart_line *lines = charts[chart].lines;
    size_t per_row = (past->count + TABLE_ROWS - 1) / TABLE_ROWS;
    char text[32];

    wb_htmlpen_put(h,
                   "<details><summary>Table</summary>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                   "aria-label=\"{}: table\"><table>\n<thead><tr><th scope=\"col\">From</th>",
                   wb_htmlpen_str(charts[chart].title));
    for (size_t k = 0; k < line_count(lines); k++)
        wb_htmlpen_put(h, "<th scope=\"col\" class=\"number\">{}</th>", wb_htmlpen_str(lines[k].label));
    wb_htmlpen_raw(h, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < past->count; i += per_row) {
        size_t end = i + per_row < past->count ? i + per_row : past->count;
        wb_htmlpen_put(h, "<tr><td>{}</td>",
                       wb_htmlpen_time((past->range.from_s + (int64_t)i * past->range.step_s) * 1000));
        for (size_t k = 0; k < line_count(lines); k++)
            wb_htmlpen_put(
                h, "<td class=\"number\">{}</td>",
                wb_htmlpen_str(wb_page_number(mean_of(past, i, end, lines[k].number), unit_of(&lines[k]), text)));
        wb_htmlpen_raw(h, "</tr>\n");
    }
    wb_htmlpen_raw(h, "</tbody>\n</table></div></details>\n");
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void add_chart(struct wb_htmlpen *h, const struct wb_dash_past *past, size_t chart)
{
    const struct chart_line *lines = charts[chart].lines;

    wb_htmlpen_put(h, "<figure class=\"plot\" data-chart=\"{}\" data-lines=\"", wb_htmlpen_str(charts[chart].id));
    for (size_t k = 0; k < line_count(lines); k++)
        wb_htmlpen_put(h, "{}{}|{}|{}|{}", wb_htmlpen_str(k ? ";" : ""),
                       wb_htmlpen_str(wb_dash_numbers[lines[k].number].name), wb_htmlpen_str(lines[k].label),
                       wb_htmlpen_str(unit_of(&lines[k])), wb_htmlpen_str(lines[k].second ? "second" : ""));
    wb_htmlpen_put(h, "\"><figcaption>{}</figcaption><div class=\"chart\" id=\"chart-{}\">",
                   wb_htmlpen_str(charts[chart].title), wb_htmlpen_str(charts[chart].id));
    add_picture(h, past, chart);
    wb_htmlpen_raw(h, "</div>\n");
    add_table(h, past, chart);
    wb_htmlpen_raw(h, "</figure>\n");
}

static void add_link(struct wb_htmlpen *h, int64_t from_s, int64_t to_s, const char *text)
{
    wb_htmlpen_put(h, " <a href=\"/dash?from={}&amp;to={}\">{}</a>",
                   wb_htmlpen_plain((uint64_t)(from_s < 0 ? 0 : from_s) * 1000),
                   wb_htmlpen_plain((uint64_t)to_s * 1000), wb_htmlpen_str(text));
}

static void add_choices(struct wb_htmlpen *h, const struct wb_dash_past *past, const struct wb_dash_past_choice *choice)
{
    const struct wb_dash_past_range *range = &past->range;
    int64_t length = range->to_s - range->from_s;

    wb_htmlpen_raw(h, "<nav class=\"ranges\" aria-label=\"Range\">");
    for (size_t i = 0; i < wb_dash_past_choice_count; i++)
        wb_htmlpen_put(h, "<a href=\"/dash?range={}\"{}>{}</a> ", wb_htmlpen_str(wb_dash_past_choices[i].word),
                       wb_htmlpen_markup(choice == &wb_dash_past_choices[i] ? WB_SLICE_LIT(" aria-current=\"true\"")
                                                                            : WB_SLICE_EMPTY),
                       wb_htmlpen_str(wb_dash_past_choices[i].title));
    wb_htmlpen_raw(h, "<span class=\"gap\"></span>");
    add_link(h, range->from_s - length, range->from_s, "Earlier");
    if (!choice) {
        add_link(h, range->to_s, range->to_s + length, "Later");
        add_link(h, range->from_s - length / 2, range->to_s + length / 2, "Zoom out");
    }
    wb_htmlpen_put(h, "</nav>\n<p class=\"quiet\">{} to {}; each point is ", wb_htmlpen_time(range->from_s * 1000),
                   wb_htmlpen_time(range->to_s * 1000));
    int64_t step = range->step_s;
    const char *unit = step % 86400 == 0 ? "day" : step % 3600 == 0 ? "hour" : step % 60 == 0 ? "minute" : "second";
    int64_t many = step % 86400 == 0  ? step / 86400
                   : step % 3600 == 0 ? step / 3600
                   : step % 60 == 0   ? step / 60
                                      : step;
    wb_htmlpen_put(h, "{} {}{}. A gap is time that no server was there to watch.</p>\n",
                   wb_htmlpen_number((uint64_t)many), wb_htmlpen_str(unit), wb_htmlpen_str(many == 1 ? "" : "s"));
}

void wb_page_charts(struct wb_htmlpen *h, const struct wb_dash_past *past, const struct wb_dash_past_choice *choice)
{
    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    WB_CHECK(past->count > 0);
    WB_CHECK(past->range.step_s > 0);
    const struct wb_dash_past_range *range = &past->range;

    wb_htmlpen_put(h,
                   "<section id=\"charts\" aria-labelledby=\"past\" data-range=\"{}\" data-from=\"{}\" data-to=\"{}\" "
                   "data-step=\"{}\">\n<h2 id=\"past\">{}{}</h2>\n",
                   wb_htmlpen_str(choice ? choice->word : ""), wb_htmlpen_plain((uint64_t)range->from_s * 1000),
                   wb_htmlpen_plain((uint64_t)range->to_s * 1000), wb_htmlpen_plain((uint64_t)range->step_s),
                   wb_htmlpen_str(!choice || !choice->seconds ? "The past" : "The last "),
                   wb_htmlpen_str(!choice || !choice->seconds ? "" : choice->word));
    add_choices(h, past, choice);
    wb_htmlpen_raw(h, "<div class=\"charts\">\n");
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++)
        add_chart(h, past, i);
    wb_htmlpen_raw(h, "</div>\n</section>\n");
}
