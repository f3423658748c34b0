/*
 * bench_linkgraph.c - measures link graphs: writing, walking through, lists at random, PageRank. Prints one JSON line
 * per measurement.
 *
 *   bench_linkgraph GRAPH DIR COPIES
 *
 * GRAPH is a graph as text. With several copies, the nodes of each follow those of the one before, and links to a tenth
 * of the nodes lead to the same node of another copy: a graph that does not fit into a cache.
 */
#include "base/error.h"
#include "base/mem.h"
#include "bench.h"
#include "graph/graph.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WALKS = 5, RANDOM_LISTS = 1000000, RANK_ITERATIONS = 20 };

static void must(int err)
{
    if (err < 0) {
        fprintf(stderr, "bench_linkgraph: %s\n", wb_error_message());
        exit(1);
    }
}

static int compare_nodes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Begins a line; the measurement's own fields follow. */
static void begin_line(const char *bench, unsigned copies)
{
    printf("{\"bench\":\"%s\",\"copies\":%u", bench, copies);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* The lists of all copies, one after the other in memory, so that only writing is measured. */
struct lists {
    uint64_t nodes, arcs;
    uint32_t *all, *counts;
};

static void copy_lists(const struct wb_graph *one, unsigned copies, struct lists *lists)
{
    struct wb_graph_cursor *cursor;
    struct wb_graph_stat stat;
    const uint32_t *list;
    uint32_t node;
    size_t count;

    wb_graph_stat(one, &stat);
    must(wb_graph_cursor_open(one, &cursor));
    lists->all = wb_alloc((stat.arcs * copies + 1) * sizeof *lists->all);
    lists->counts = wb_alloc((stat.nodes * copies + 1) * sizeof *lists->counts);
    must(lists->all && lists->counts ? 0 : WB_E_NOMEM);
    for (unsigned copy = 0; copy < copies; copy++) {
        wb_graph_seek(cursor, 0);
        while (wb_graph_next(cursor, &node, &list, &count) > 0) {
            uint32_t *to = lists->all + lists->arcs;
            for (size_t i = 0; i < count; i++) {
                uint64_t chance = 1 + (uint64_t)list[i] * copies; /* similar lists stay similar */
                bool away = copies > 1 && bench_random(&chance) % 10 == 0;
                uint64_t other = away ? (copy + bench_random(&chance)) % copies : copy;
                to[i] = (uint32_t)(other * stat.nodes + list[i]);
            }
            if (copies > 1)
                qsort(to, count, sizeof *to, compare_nodes);
            lists->arcs += count;
            lists->counts[lists->nodes++] = (uint32_t)count;
        }
    }
    wb_graph_cursor_close(cursor);
}

static void measure_writing(const struct lists *lists, const char *path, unsigned copies)
{
    struct wb_graph_writer *writer;
    struct wb_graph_stat stat;
    const uint32_t *list = lists->all;
    double cpu = bench_cpu_seconds();

    must(wb_graph_create(path, &writer));
    for (uint64_t v = 0; v < lists->nodes; v++) {
        must(wb_graph_add(writer, list, lists->counts[v]));
        list += lists->counts[v];
    }
    must(wb_graph_finish(writer, &stat));
    cpu = bench_cpu_seconds() - cpu;
    begin_line("write", copies);
    printf(",\"nodes\":%llu,\"arcs\":%llu,\"bytes\":%llu,\"bits\":%.4f,\"links_cpu_s\":%.0f}\n",
           (unsigned long long)stat.nodes, (unsigned long long)stat.arcs, (unsigned long long)stat.bytes,
           8 * (double)stat.bytes / (double)stat.arcs, (double)stat.arcs / cpu);
}

/* ---- reading ----------------------------------------------------------------------------------- */

static void measure_walk(const struct wb_graph *graph, unsigned copies)
{
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    uint32_t node;
    size_t count;

    must(wb_graph_cursor_open(graph, &cursor));
    for (int i = 0; i < WALKS; i++) {
        double wall = bench_seconds(), cpu = bench_cpu_seconds();
        uint64_t arcs = 0, last = 0;
        wb_graph_seek(cursor, 0);
        while (wb_graph_next(cursor, &node, &list, &count) > 0) {
            arcs += count;
            last += count ? list[count - 1] : 0;
        }
        wall = bench_seconds() - wall;
        cpu = bench_cpu_seconds() - cpu;
        begin_line("walk", copies);
        printf(",\"links_s\":%.0f,\"links_cpu_s\":%.0f,\"check\":%llu}\n", (double)arcs / wall, (double)arcs / cpu,
               (unsigned long long)last);
    }
    wb_graph_cursor_close(cursor);
}

static void measure_random(const struct wb_graph *graph, unsigned copies)
{
    struct wb_graph_cursor *cursor;
    struct wb_graph_stat stat;
    const uint32_t *list;
    uint64_t chance = 7, links = 0;
    size_t count;

    wb_graph_stat(graph, &stat);
    must(wb_graph_cursor_open(graph, &cursor));
    double cpu = bench_cpu_seconds();
    for (int i = 0; i < RANDOM_LISTS; i++) {
        must(wb_graph_successors(cursor, (uint32_t)(bench_random(&chance) % stat.nodes), &list, &count));
        links += count;
    }
    cpu = bench_cpu_seconds() - cpu;
    begin_line("random", copies);
    printf(",\"ns_list\":%.1f,\"ns_link\":%.2f}\n", cpu / RANDOM_LISTS * 1e9, cpu / (double)links * 1e9);
    wb_graph_cursor_close(cursor);
}

static void measure_rank(const struct wb_graph *graph, unsigned threads, bool memory, unsigned copies)
{
    struct wb_graph_rank_options options = {.threads = threads, .memory_bytes = memory ? (size_t)4 << 30 : 1};
    struct wb_graph_rank_stat ranked;
    struct wb_graph_stat stat;

    wb_graph_stat(graph, &stat);
    if (copies > 1 || !memory)
        options.iterations = RANK_ITERATIONS;
    double *ranks = wb_alloc(stat.nodes * sizeof *ranks), cpu = bench_cpu_seconds();
    must(ranks ? wb_graph_rank(graph, &options, ranks, &ranked) : WB_E_NOMEM);
    cpu = bench_cpu_seconds() - cpu;
    double links = (double)stat.arcs * ranked.iterations;
    begin_line("rank", copies);
    printf(",\"threads\":%u,\"memory\":%d,\"iterations\":%u,\"build\":%.4f,\"seconds\":%.4f,\"cpu\":%.4f,"
           "\"links_s\":%.0f,\"links_cpu_s\":%.0f}\n",
           threads, memory, ranked.iterations, ranked.build_s, ranked.rank_s, cpu, links / ranked.rank_s, links / cpu);
    wb_free(ranks);
}

int main(int argc, char **argv)
{
    struct wb_graph_text_options reading = {0};
    struct lists lists = {0};
    struct wb_graph_stat stat;
    struct wb_graph *graph;
    char path[4096];

    if (argc != 4 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: bench_linkgraph GRAPH DIR COPIES\n");
        return 2;
    }
    unsigned copies = (unsigned)atoi(argv[3]);
    snprintf(path, sizeof path, "%s/links", argv[2]);
    must(wb_path_mkdirs(argv[2]));
    must(wb_graph_read_text(argv[1], &reading, path, &stat, NULL));
    must(wb_graph_open(path, &graph));
    copy_lists(graph, copies, &lists);
    wb_graph_close(graph);
    measure_writing(&lists, path, copies);
    wb_free(lists.all);
    wb_free(lists.counts);
    must(wb_graph_open(path, &graph));
    measure_walk(graph, copies);
    measure_random(graph, copies);
    for (unsigned threads = 1; threads <= 2; threads++)
        for (int memory = 0; memory < 2; memory++)
            measure_rank(graph, threads, memory, copies);
    wb_graph_close(graph);
    return 0;
}
