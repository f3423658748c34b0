/*
 * bench_query.c - measures how fast a generation answers, and writes the texts that other programs index.
 *
 *   bench_query texts CORPUS FILE          the title and the text of every page, as the peers get them
 *   bench_query ask REPOSITORY QUERIES [top|count]
 *                                          one JSON line per class of queries and way of asking, or for one way only
 *
 * FILE has for each page: length of title, length of text (uint32_t each), title, text. QUERIES (bench/queries) has one
 * query per line: its class, a tab, its words; the class says how they are joined. A class whose name begins with
 * "raw-" is written in our own language. A query's time is the least of ROUNDS times, in processor time of the thread,
 * because the machine may be busy.
 */
#include "base/error.h"
#include "base/mem.h"
#include "bench.h"
#include "extract/extract.h"
#include "os/path.h"
#include "query/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, TOP = 10, CLASS_MAX = 32 };

static void must(int err)
{
    if (err < 0) {
        fprintf(stderr, "bench_query: %s\n", wb_error_message());
        exit(1);
    }
}

/* ---- texts --------------------------------------------------------------------------------------- */

static void write_texts(const char *corpus_dir, const char *path)
{
    struct wb_extractor *extractor;
    struct corpus corpus;
    FILE *out = fopen(path, "wb");

    must(out ? 0 : wb_fail_errno("%s cannot be written", path));
    must(corpus_load(corpus_dir, &corpus));
    must(wb_extractor_new(&extractor));
    for (size_t i = 0; i < corpus.count; i++) {
        const struct wb_page *page = &corpus.pages[i];
        struct wb_extract_input input = {page->url, page->type, page->charset, page->body, WB_EXTRACT_TEXT};
        struct wb_extract extract;
        must(wb_extract(extractor, &input, &extract));
        uint32_t lengths[2] = {(uint32_t)extract.title.len, (uint32_t)extract.text.len};
        fwrite(lengths, sizeof lengths, 1, out);
        fwrite(extract.title.ptr, 1, lengths[0], out);
        fwrite(extract.text.ptr, 1, lengths[1], out);
    }
    must(fclose(out) == 0 ? 0 : wb_fail_errno("%s cannot be written", path));
    wb_extractor_free(extractor);
    corpus_release(&corpus);
}

/* ---- queries ------------------------------------------------------------------------------------- */

struct queries {
    struct wb_buf text;       /* the file */
    struct wb_slice *classes; /* of each line */
    struct wb_buf *asks;      /* of each line, in our language */
    size_t count;
};

/* Joins words as the class says. */
static void write_ask(struct wb_slice class, struct wb_slice words, struct wb_buf *ask)
{
    if (class.len >= 4 && memcmp(class.ptr, "raw-", 4) == 0) {
        must(wb_buf_append_slice(ask, words));
    } else if (wb_slice_equal(class, WB_SLICE_LIT("phrase"))) {
        must(wb_buf_append(ask, "\"", 1));
        must(wb_buf_append_slice(ask, words));
        must(wb_buf_append(ask, "\"", 1));
    } else {
        bool any = wb_slice_equal(class, WB_SLICE_LIT("or"));
        for (size_t i = 0; i < words.len; i++)
            must(any && words.ptr[i] == ' ' ? wb_buf_append(ask, " OR ", 4) : wb_buf_append(ask, words.ptr + i, 1));
    }
}

static void read_queries(const char *path, struct queries *queries)
{
    size_t lines = 0, from = 0;

    must(wb_path_read(path, (size_t)1 << 30, &queries->text));
    for (size_t i = 0; i < queries->text.len; i++)
        lines += queries->text.ptr[i] == '\n';
    queries->classes = wb_alloc_zero(lines + 1, sizeof *queries->classes);
    queries->asks = wb_alloc_zero(lines + 1, sizeof *queries->asks);
    must(queries->classes && queries->asks ? 0 : WB_E_NOMEM);
    for (; queries->count < lines; queries->count++) {
        const char *line = queries->text.ptr + from, *end = memchr(line, '\n', queries->text.len - from);
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        must(tab && tab - line < CLASS_MAX ? 0 : wb_fail(WB_E_INVALID, "%s: a line without a class", path));
        queries->classes[queries->count] = wb_slice(line, (size_t)(tab - line));
        write_ask(queries->classes[queries->count], wb_slice(tab + 1, (size_t)(end - tab - 1)),
                  &queries->asks[queries->count]);
        from += (size_t)(end - line) + 1;
    }
}

/* ---- asking -------------------------------------------------------------------------------------- */

static double thread_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct way {
    const char *name;
    uint64_t limit;
    bool count, exhaustive;
};

/* Asks once. Returns the seconds; *found is increased by the results that it counted, or that it returned. */
static double ask(struct wb_searcher *searcher, struct wb_slice query, const struct way *way, uint64_t *found)
{
    struct wb_search_options options = {.query = query, .limit = way->limit, .count = way->count,
                                        .exhaustive = way->exhaustive, .no_texts = true};
    struct wb_results results;
    double start = thread_seconds();
    int err = wb_search(searcher, &options, &results);

    *found += way->count ? results.total : results.hit_count;
    wb_results_release(&results);
    must(err);
    return thread_seconds() - start;
}

/* All queries of lines [from, to), which are of one class. */
static void ask_class(struct wb_searcher *searcher, const struct queries *queries, size_t from, size_t to,
                      const struct way *way)
{
    double *times = wb_alloc(sizeof *times * (to - from)), total = 0;
    uint64_t found = 0, ignored = 0;

    must(times ? 0 : WB_E_NOMEM);
    for (size_t i = from; i < to; i++)
        ask(searcher, wb_buf_slice(&queries->asks[i]), way, &found);
    for (size_t i = from; i < to; i++) {
        double rounds[ROUNDS];
        for (int round = 0; round < ROUNDS; round++)
            rounds[round] = ask(searcher, wb_buf_slice(&queries->asks[i]), way, &ignored);
        times[i - from] = bench_quantile(rounds, ROUNDS, 0);
        total += times[i - from];
    }
    size_t count = to - from;
    printf("{\"bench\":\"ask\",\"class\":\"%.*s\",\"way\":\"%s\",\"queries\":%zu,\"mean_us\":%.3f,\"p50_us\":%.3f,"
           "\"p99_us\":%.3f,\"found\":%llu}\n",
           WB_SLICE_ARG(queries->classes[from]), way->name, count, total / (double)count * 1e6,
           bench_quantile(times, count, 0.5) * 1e6, bench_quantile(times, count, 0.99) * 1e6,
           (unsigned long long)found);
    fflush(stdout);
    wb_free(times);
}

static void ask_all(const char *repository, const char *path, const char *only)
{
    static const struct way ways[] = {{"top", TOP, false, false}, {"count", 0, true, false}};
    struct queries queries = {.count = 0};
    struct wb_searcher *searcher;

    read_queries(path, &queries);
    must(wb_searcher_open(repository, &searcher));
    for (size_t from = 0, to; from < queries.count; from = to) {
        for (to = from; to < queries.count && wb_slice_equal(queries.classes[to], queries.classes[from]);)
            to++;
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            if (!only || strcmp(only, ways[i].name) == 0)
                ask_class(searcher, &queries, from, to, &ways[i]);
    }
    wb_searcher_close(searcher);
    for (size_t i = 0; i < queries.count; i++)
        wb_buf_release(&queries.asks[i]);
    wb_free(queries.asks);
    wb_free(queries.classes);
    wb_buf_release(&queries.text);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "texts") == 0)
        write_texts(argv[2], argv[3]);
    else if ((argc == 4 || argc == 5) && strcmp(argv[1], "ask") == 0)
        ask_all(argv[2], argv[3], argc == 5 ? argv[4] : NULL);
    else {
        fprintf(stderr, "usage: bench_query texts CORPUS FILE | ask REPOSITORY QUERIES [top|count]\n");
        return 2;
    }
    return 0;
}
