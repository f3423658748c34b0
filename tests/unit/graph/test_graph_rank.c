/*
 * test_graph_rank.c - PageRank against a plain computation and against the references in the data (WEBBASE_DATA);
 * the same bits for any number of threads, in memory and from the file.
 */
#include "../testdata.h"
#include "graph_support.h"

#include <math.h>
#include <zlib.h>

static double l1(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += fabs(a[i] - b[i]);
    return sum;
}

/* PageRank, written down as it is defined. jump: where the walk jumps to. */
static void plain_rank(const struct model *m, const double *jump, double *ranks)
{
    double *next = calloc(m->nodes, sizeof *next);

    memcpy(ranks, jump, m->nodes * sizeof *ranks);
    for (int round = 0; round < 170; round++) { /* then less than 1e-11 is missing */
        double loose = 0;
        for (uint32_t v = 0; v < m->nodes; v++)
            loose += model_count(m, v) ? 0 : ranks[v];
        for (uint32_t v = 0; v < m->nodes; v++)
            next[v] = (0.15 + 0.85 * loose) * jump[v];
        for (uint32_t u = 0; u < m->nodes; u++)
            for (size_t i = 0; i < model_count(m, u); i++)
                next[model_list(m, u)[i]] += 0.85 * ranks[u] / (double)model_count(m, u);
        memcpy(ranks, next, m->nodes * sizeof *ranks);
    }
    free(next);
}

static void test_same_as_plain(void **state)
{
    static const uint32_t sizes[] = {1, 2, 7, 300, 5000};
    uint64_t chance = test_seed();

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int look = 0; look < LOOKS; look++) {
            uint32_t n = sizes[s], seeds[3];
            struct wb_graph *graph;
            struct model m;
            if (look == LOOK_DENSE && n > 300)
                continue;
            double *jump = calloc(n, sizeof *jump), *want = calloc(n, sizeof *want), *got = calloc(n, sizeof *got);
            model_make(&m, (enum look)look, n, &chance);
            model_write(&m, test_path("g"), NULL);
            OK(wb_graph_open(test_path("g"), &graph));
            for (uint32_t v = 0; v < n; v++)
                jump[v] = 1.0 / n;
            plain_rank(&m, jump, want);
            OK(wb_graph_rank(graph, &(struct wb_graph_rank_options){0}, got, NULL));
            assert_true(l1(got, want, n) < 1e-10);
            memset(jump, 0, n * sizeof *jump);
            seeds[0] = seeds[1] = (uint32_t)chance_below(&chance, n);
            seeds[2] = (seeds[0] + 1) % n;
            jump[seeds[0]] = jump[seeds[2]] = seeds[0] == seeds[2] ? 1 : 0.5;
            plain_rank(&m, jump, want);
            OK(wb_graph_rank(graph, &(struct wb_graph_rank_options){.seeds = seeds, .seed_count = 3}, got, NULL));
            assert_true(l1(got, want, n) < 1e-10);
            wb_graph_close(graph);
            model_release(&m);
            free(jump);
            free(want);
            free(got);
        }
}

static void test_same_bits(void **state)
{
    enum { NODES = 12000 };
    static double first[NODES], other[NODES];
    uint64_t chance = test_seed();
    struct wb_graph *graph;
    struct model m;

    (void)state;
    model_make(&m, LOOK_WEB, NODES, &chance);
    model_write(&m, test_path("g"), NULL);
    OK(wb_graph_open(test_path("g"), &graph));
    for (unsigned threads = 1; threads < 8; threads += 2)
        for (size_t from_file = 0; from_file < 2; from_file++) {
            struct wb_graph_rank_options options = {.threads = threads, .memory_bytes = from_file};
            struct wb_graph_rank_stat stat;
            bool is_first = threads == 1 && !from_file;
            OK(wb_graph_rank(graph, &options, is_first ? first : other, &stat));
            assert_int_equal(stat.in_memory, !from_file);
            assert_true(stat.change < 1e-12);
            if (!is_first)
                assert_memory_equal(first, other, sizeof first);
        }
    wb_graph_close(graph);
    model_release(&m);
}

static bool stop_at_third(void *context)
{
    return ++*(int *)context < 3;
}

static void test_refused(void **state)
{
    uint64_t chance = test_seed();
    uint32_t seed = 100;
    double ranks[100];
    struct wb_graph *graph;
    struct model m;
    int asked = 0;

    (void)state;
    model_make(&m, LOOK_WEB, 100, &chance);
    model_write(&m, test_path("g"), NULL);
    OK(wb_graph_open(test_path("g"), &graph));
    struct wb_graph_rank_options options = {.seeds = &seed, .seed_count = 1};
    assert_int_equal(wb_graph_rank(graph, &options, ranks, NULL), WB_E_INVALID);
    options.seed_count = 0;
    assert_int_equal(wb_graph_rank(graph, &options, ranks, NULL), WB_E_INVALID);
    options = (struct wb_graph_rank_options){.damping = 1};
    assert_int_equal(wb_graph_rank(graph, &options, ranks, NULL), WB_E_INVALID);
    options = (struct wb_graph_rank_options){.go_on = stop_at_third, .context = &asked};
    assert_int_equal(wb_graph_rank(graph, &options, ranks, NULL), WB_E_STOPPED);
    assert_int_equal(asked, 3);
    wb_graph_close(graph);
    model_release(&m);
}

static void test_cnr_2000(void **state)
{
    char text[1024], reference[1024], line[64];
    struct wb_graph_text_options reading = {0};
    struct wb_graph_stat stat;
    struct wb_graph *graph;
    size_t n = 0;

    (void)state;
    test_data_path("graph/cnr-2000/cnr-2000.graph-txt.gz", text);
    test_data_path("graph/cnr-2000/pagerank-0.85-igraph-prpack.txt.gz", reference);
    gzFile in = gzopen(reference, "r");
    if (!in)
        skip();
    OK(wb_graph_read_text(text, &reading, test_path("cnr"), &stat, NULL));
    assert_int_equal(stat.nodes, 325557);
    assert_int_equal(stat.arcs, 3216152);
    assert_true(8 * (double)stat.bytes / (double)stat.arcs <= 2.6);
    double *want = calloc(stat.nodes, sizeof *want), *got = calloc(stat.nodes, sizeof *got);
    while (n < stat.nodes && gzgets(in, line, sizeof line))
        want[n++] = strtod(line, NULL);
    gzclose(in);
    assert_int_equal(n, stat.nodes);
    OK(wb_graph_open(test_path("cnr"), &graph));
    OK(wb_graph_verify(graph));
    OK(wb_graph_rank(graph, &(struct wb_graph_rank_options){0}, got, NULL));
    assert_true(l1(got, want, n) < 1e-9);
    wb_graph_close(graph);
    free(want);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_plain),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cnr_2000),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
