/*
 * cmd_search.c - webbase search: asks the index, and shows the hits.
 *
 *   1. The title of the page                              on a terminal: titles, URLs and snippets, in colour
 *      https://example.org/page   2026-01-02
 *      ... text with the words that were asked for ...
 *
 *   {"rank":1,"url":...,"title":...,"score":...,"snippet":...,"time":...}   one per hit
 *   {"event":"done","total":17,"ms":0.8}
 */
#include "answer/answer.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LIMIT_DEFAULT = 10, COLUMNS_DEFAULT = 80 };

/* ---- options ----------------------------------------------------------------------------------- */

static int read_facets(const struct wb_options *options, unsigned *facets_out)
{
    size_t count;
    const char *const *list = wb_options_list(options, "facet", &count);

    *facets_out = 0;
    for (size_t i = 0; i < count; i++)
        if (wb_answer_facet(wb_slice_str(list[i]), facets_out) < 0)
            return wb_options_usage("--facet %s: there are site, type, lang and status", list[i]);
    return 0;
}

/* The arguments, joined by blanks: quotes are only needed for what the shell would change. */
static int join_query(const struct wb_options *options, struct wb_buf *query)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < options->arg_count; i++) {
        if (i)
            err = wb_buf_append_char(query, ' ');
        if (err == 0)
            err = wb_buf_append(query, options->args[i], strlen(options->args[i]));
    }
    return err;
}

static int read_search(const struct wb_options *options, struct wb_searcher *searcher, struct wb_search_options *search)
{
    const char *sort = wb_options_text(options, "sort");
    int err = read_facets(options, &search->facets);

    search->limit = wb_options_number(options, "limit", LIMIT_DEFAULT);
    search->offset = wb_options_number(options, "offset", 0);
    search->explain = wb_options_flag(options, "explain");
    search->collapse_site = wb_options_flag(options, "one-per-site");
    search->fold = wb_options_flag(options, "fold");
    search->exhaustive = wb_options_flag(options, "exhaustive");
    search->ranking.plain = wb_options_flag(options, "plain");
    search->count = !wb_options_flag(options, "quick");
    if (err == 0 && sort)
        err = wb_answer_sort(searcher, wb_slice_str(sort), &search->sort);
    return err;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static int write_hit(const struct wb_search_options *search, const struct wb_hit *hit, uint64_t rank)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_answer_hit(&j, search, hit, rank);
    return wb_output_object_queue(&j);
}

static int write_json(const struct wb_search_options *search, const struct wb_results *results, double ms)
{
    struct wb_json j;
    int err = 0;

    for (size_t i = 0; err == 0 && i < results->hit_count; i++)
        err = write_hit(search, &results->hits[i], search->offset + i + 1);
    if (err < 0)
        return err;
    wb_output_object_begin(&j, "done");
    wb_answer_results(&j, search, results, ms);
    return wb_output_object_end(&j);
}

/* ---- for people -------------------------------------------------------------------------------- */

/* The escapes of a terminal; empty if standard output is something else, or NO_COLOR is set. */
struct colours {
    const char *title, *url, *bold, *dim, *plain;
};

static struct colours choose_colours(void)
{
    const char *no = getenv("NO_COLOR");

    if ((no && *no) || isatty(STDOUT_FILENO) != 1)
        return (struct colours){"", "", "", "", ""};
    return (struct colours){"\033[1;34m", "\033[32m", "\033[1m", "\033[2m", "\033[0m"};
}

/* Writes a snippet without its HTML: what was asked for is bold. */
static int write_snippet(struct wb_slice html, const struct colours *colours)
{
    static const struct {
        const char *html, *text;
    } entities[] = {{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}, {"&quot;", "\""}};
    int err = 0;

    for (size_t i = 0; err == 0 && i < html.len;) {
        struct wb_slice rest = wb_slice(html.ptr + i, html.len - i);
        if (wb_slice_starts(rest, WB_SLICE_LIT("<b>"))) {
            err = wb_output_printf("%s", colours->bold);
            i += 3;
            continue;
        }
        if (wb_slice_starts(rest, WB_SLICE_LIT("</b>"))) {
            err = wb_output_printf("%s", colours->plain);
            i += 4;
            continue;
        }
        size_t n = 0;
        while (n < 4 && !wb_slice_starts(rest, wb_slice_str(entities[n].html)))
            n++;
        if (n < 4) {
            err = wb_output_printf("%s", entities[n].text);
            i += strlen(entities[n].html);
        } else {
            size_t end = i + 1;
            while (end < html.len && html.ptr[end] != '<' && html.ptr[end] != '&')
                end++;
            err = wb_output_text(wb_slice(html.ptr + i, end - i));
            i = end;
        }
    }
    return err;
}

static int say_folded(const struct wb_folded *folded, const struct colours *c)
{
    int err = wb_output_printf("       + %s", c->url);

    if (err == 0)
        err = wb_output_text(folded->url);
    if (err == 0)
        err = wb_output_printf("%s  %s", c->plain, c->dim);
    if (err == 0 && folded->why == WB_FOLD_LANGUAGE)
        err = wb_output_printf("the same in language %s", folded->language);
    else if (err == 0)
        err = wb_output_printf(folded->why == WB_FOLD_NEAR ? "near duplicate" : "same title");
    return err < 0 ? err : wb_output_printf("%s\n", c->plain);
}

static int say_hit(const struct wb_hit *hit, uint64_t rank, const struct colours *c, bool explain)
{
    char time[WB_DATE_TEXT_MAX] = "";
    int err = wb_output_printf("%3" PRIu64 ". %s", rank, c->title);

    if (hit->time_ms)
        wb_date_format(hit->time_ms, time);
    time[sizeof "2026-01-02" - 1] = '\0'; /* the day is enough */
    if (err == 0)
        err = wb_output_text(hit->title.ptr && hit->title.len ? hit->title : hit->url);
    if (err == 0)
        err = wb_output_printf("%s\n     %s", c->plain, c->url);
    if (err == 0)
        err = wb_output_text(hit->url);
    if (err == 0)
        err = wb_output_printf("%s  %s%s%s\n", c->plain, c->dim, hit->time_ms ? time : "not fetched", c->plain);
    if (err == 0 && hit->snippet.ptr && hit->snippet.len) {
        err = wb_output_printf("     ");
        if (err == 0)
            err = write_snippet(hit->snippet, c);
        if (err == 0)
            err = wb_output_printf("\n");
    }
    for (size_t i = 0; err == 0 && i < hit->folded_count; i++)
        err = say_folded(&hit->folded[i], c);
    for (size_t i = 0; err == 0 && explain && i < hit->part_count; i++) {
        err = wb_output_printf("     %s%8.4f  ", c->dim, hit->parts[i].score);
        if (err == 0)
            err = wb_output_text(hit->parts[i].term);
        if (err == 0)
            err = wb_output_printf("%s\n", c->plain);
    }
    if (err == 0 && explain)
        err = wb_output_printf("     %sof %" PRIu64 " words%s\n", c->dim, hit->length, c->plain);
    return err;
}

static int say_facets(const struct wb_results *results, unsigned facets)
{
    int err = 0;

    for (unsigned facet = 0; err == 0 && facet < WB_FACETS; facet++) {
        if (!(facets >> facet & 1))
            continue;
        err = wb_output_printf("%s\n", wb_answer_facet_name(facet));
        for (size_t i = 0; err == 0 && i < results->facet_counts[facet]; i++) {
            err = wb_output_printf("%8" PRIu64 "  ", results->facets[facet][i].count);
            if (err == 0)
                err = wb_output_text(results->facets[facet][i].value);
            if (err == 0)
                err = wb_output_printf("\n");
        }
    }
    return err;
}

static int write_words(const struct wb_search_options *search, const struct wb_results *results, double ms)
{
    struct colours colours = choose_colours();
    int err = 0;

    if (search->explain)
        err = wb_output_write(results->plan.ptr, results->plan.len);
    for (size_t i = 0; err == 0 && i < results->hit_count; i++)
        err = say_hit(&results->hits[i], search->offset + i + 1, &colours, search->explain);
    if (err == 0)
        err = say_facets(results, search->facets);
    if (err == 0)
        err = wb_output_printf("%s%s%" PRIu64 " result%s, ", colours.dim, results->exact ? "" : "at least ",
                               results->total, wb_output_plural(results->total));
    if (err == 0 && results->hit_total != results->total)
        err = wb_output_printf("%s%" PRIu64 " after folding, ", results->hit_total_exact ? "" : "at most ",
                               results->hit_total);
    if (err == 0)
        err = wb_output_printf("%.1f ms%s\n", ms, colours.plain);
    if (err == 0 && results->suggestion.ptr) {
        err = wb_output_printf("did you mean: ");
        if (err == 0)
            err = wb_output_text(results->suggestion);
        if (err == 0)
            err = wb_output_printf("\n");
    }
    return err;
}

/* ---- the command ------------------------------------------------------------------------------- */

/* Shows below the query where it is wrong. The message itself is reported by main. */
static void point(struct wb_slice query, size_t at)
{
    struct winsize size = {.ws_col = COLUMNS_DEFAULT};
    struct wb_error_copy error;
    struct wb_buf lines = WB_BUF_INIT;

    wb_error_save(WB_E_INVALID, &error);
    if (isatty(STDERR_FILENO) == 1)
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    if (wb_ask_point(query, at, size.ws_col ? size.ws_col : COLUMNS_DEFAULT, &lines) == 0)
        (void)wb_output_all(STDERR_FILENO, "standard error", wb_buf_slice(&lines));
    wb_buf_release(&lines);
    wb_error_restore(&error);
}

int wb_cmd_search(const struct wb_options *options)
{
    int64_t began = wb_clock_mono_ns();
    struct wb_search_options search = {.limit = 0};
    struct wb_results results = {.total = 0};
    struct wb_searcher *searcher = NULL;
    struct wb_buf query = WB_BUF_INIT;
    int err = join_query(options, &query);

    if (err == 0)
        err = wb_searcher_open(options->dir, &searcher);
    if (err == 0)
        err = read_search(options, searcher, &search);
    search.query = wb_buf_slice(&query);
    bool asked = err == 0;
    if (asked)
        err = wb_search(searcher, &search, &results);
    double ms = (double)(wb_clock_mono_ns() - began) / 1e6;
    if (asked && err == WB_E_INVALID)
        point(search.query, results.bad_at);
    if (err == 0)
        err = options->json ? write_json(&search, &results, ms) : write_words(&search, &results, ms);
    wb_results_release(&results);
    wb_searcher_close(searcher);
    wb_buf_release(&query);
    return err;
}
