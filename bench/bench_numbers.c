/*
 * bench_numbers.c - reads an edition of webdb as an index does: every URL by number, ids of pages, and links as pairs
 * of numbers in both orders. A part of bench_webdb.
 */
#include "bench_webdb.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>

/* Prints one measurement. */
static void print_rate(const char *what, uint64_t rows, double seconds)
{
    printf("{\"bench\":\"numbers\",\"what\":\"%s\",\"rows\":%llu,\"seconds\":%.3f,\"rows_s\":%.0f}\n", what,
           (unsigned long long)rows, seconds, (double)rows / seconds);
}

static int walk_urls(struct wb_webdb *webdb)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    uint64_t rows = 0;
    double begin = bench_seconds();
    int more = wb_webdb_urls(webdb, 0, &pages);

    while (more >= 0 && (more = wb_webdb_pages_next(pages, &page)) > 0)
        rows++;
    wb_webdb_pages_close(pages);
    print_rate("urls", rows, bench_seconds() - begin);
    return more;
}

/* All ids of the edition, in their order or in another one. */
static int find_ids(struct wb_webdb *webdb, uint64_t count, bool sorted)
{
    struct wb_pageid *ids = wb_alloc_zero(count + 1, sizeof *ids);
    uint32_t *numbers = wb_alloc_zero(count + 1, sizeof *numbers);
    uint64_t number;
    int err = ids && numbers ? 0 : WB_E_NOMEM;

    for (uint64_t i = 0; err == 0 && i < count; i++) /* a step that has no divisor in common with most counts */
        err = wb_webdb_id_at(webdb, sorted ? i : i * 1000003 % count, &ids[i], &number);
    double begin = bench_seconds();
    if (err == 0)
        err = wb_webdb_numbers_of_ids(webdb, ids, count, numbers);
    print_rate(sorted ? "ids, ascending" : "ids, in any order", count, bench_seconds() - begin);
    for (uint64_t i = 0; err == 0 && i < count; i++)
        err = numbers[i] == WB_WEBDB_NO_NUMBER ? wb_fail(WB_E_CORRUPT, "an id was not found") : 0;
    wb_free(ids);
    wb_free(numbers);
    return err;
}

static int walk_arcs(struct wb_webdb *webdb, const struct webdb_setting *setting, int round)
{
    static const char *const names[] = {"arcs by source", "arcs by target", "arcs by source, with texts",
                                        "arcs by target, with texts"};
    enum wb_webdb_direction direction = round & 1 ? WB_ARCS_IN : WB_ARCS_OUT;
    struct wb_webdb_arcs_options options = {.texts = round & 2, .memory_bytes = setting->memory_bytes,
                                            .threads = setting->threads - 1};
    struct wb_webdb_arcs *arcs = NULL;
    struct wb_webdb_portion portion;
    uint64_t rows = 0, sum = 0;
    double begin = bench_seconds();
    int more = wb_webdb_arcs(webdb, direction, &options, &arcs);

    while (more >= 0 && (more = wb_webdb_arcs_next(arcs, &portion)) > 0) {
        rows += portion.count;
        for (size_t i = 0; i < portion.count; i++)
            sum += portion.ends[i];
    }
    wb_webdb_arcs_close(arcs);
    print_rate(names[round], rows, bench_seconds() - begin);
    return more < 0 ? more : sum ? 0 : wb_fail(WB_E_CORRUPT, "there are no arcs");
}

int run_numbers(const struct webdb_setting *setting)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count;
    int err = wb_webdb_open(setting->dir, &webdb);

    if (err < 0)
        return err;
    wb_webdb_count(webdb, &count);
    for (int warm = 0; err == 0 && warm < 2; warm++)
        err = walk_urls(webdb);
    if (err == 0)
        err = find_ids(webdb, count.fetched, true);
    if (err == 0)
        err = find_ids(webdb, count.fetched, false);
    for (int round = 0; err == 0 && round < 4; round++)
        err = walk_arcs(webdb, setting, round);
    wb_webdb_close(webdb);
    return err;
}
