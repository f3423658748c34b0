/*
 * test_link_graph.c - graphs of many looks are written and read back, in order and at random, by several threads; every
 * changed byte of a file is noticed; every failing operation leaves an error and no leak.
 */
#include "../otherformat.h"
#include "graph_support.h"

#include <errno.h>
#include <pthread.h>

/* Random access gives the same lists as the model, in whatever order they are asked for. */
static void check_random_access(const struct model *m, const struct wb_graph *graph, uint64_t *chance)
{
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    size_t count;

    OK(wb_graph_cursor_open(graph, &cursor));
    for (int i = 0; i < 3000 && m->nodes; i++) {
        uint32_t node = (uint32_t)chance_below(chance, m->nodes);
        for (int k = 0; k < 3 && node < m->nodes; k++) {
            OK(wb_graph_successors(cursor, node, &list, &count));
            compare_list(m, node, list, count);
            node += chance_one_in(chance, 2) ? 1 : 0;
        }
        if (chance_one_in(chance, 10)) {
            uint32_t next;
            wb_graph_seek(cursor, node);
            assert_int_equal(wb_graph_next(cursor, &next, &list, &count), node < m->nodes);
            if (node < m->nodes)
                compare_list(m, node, list, count);
        }
    }
    assert_int_equal(wb_graph_successors(cursor, m->nodes, &list, &count), WB_E_INVALID);
    wb_graph_cursor_close(cursor);
}

static void test_looks(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2, 3, 23, 24, 25, 47, 48, 383, 384, 385, 1000, 5000};
    uint64_t chance = test_seed();

    (void)state;
    for (int look = 0; look < LOOKS; look++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            struct wb_graph_stat stat;
            struct wb_graph *graph;
            struct model m;
            if (look == LOOK_DENSE && sizes[s] > 1000)
                continue;
            model_make(&m, (enum look)look, sizes[s], &chance);
            model_write(&m, test_path("g"), &stat);
            assert_int_equal(stat.nodes, m.nodes);
            assert_int_equal(stat.arcs, m.arcs.count);
            OK(wb_graph_open(test_path("g"), &graph));
            compare_graph(&m, graph);
            check_random_access(&m, graph, &chance);
            OK(wb_graph_verify(graph));
            wb_graph_close(graph);
            model_release(&m);
        }
}

/* More arcs than the sample from which the codes are made, with lists behind it that look different. */
static void test_larger_than_sample(void **state)
{
    uint64_t chance = test_seed();
    struct model m = {0};
    struct wb_graph_stat stat;
    struct wb_graph *graph;
    const uint32_t nodes = 60000;

    (void)state;
    while (m.nodes < nodes) {
        if (m.nodes < nodes / 2)
            for (uint32_t i = 0; i < 200; i++)
                OK(wb_vec_push(&m.arcs, (m.nodes / 8 * 8 + i * 3) % nodes));
        else
            for (uint64_t n = chance_below(&chance, 30); n > 0; n--)
                OK(wb_vec_push(&m.arcs, (uint32_t)chance_below(&chance, nodes)));
        model_end_list(&m);
    }
    assert_true(m.arcs.count > 5u << 20);
    model_write(&m, test_path("large"), &stat);
    OK(wb_graph_open(test_path("large"), &graph));
    compare_graph(&m, graph);
    check_random_access(&m, graph, &chance);
    wb_graph_close(graph);
    model_release(&m);
}

/* One list of a million successors, gaps as large as a graph of 4 million nodes allows, and a link to oneself. */
static void test_extremes(void **state)
{
    uint32_t nodes = 4000000;
    struct model m = {0};
    struct wb_graph_stat stat;
    struct wb_graph *graph;

    (void)state;
    while (m.nodes < nodes) {
        if (m.nodes == 5)
            for (uint32_t v = 0; v < nodes; v += 1 + v % 7)
                OK(wb_vec_push(&m.arcs, v));
        if (m.nodes == 6 || m.nodes == nodes - 1) {
            OK(wb_vec_push(&m.arcs, 0));
            OK(wb_vec_push(&m.arcs, m.nodes));
            OK(wb_vec_push(&m.arcs, nodes - 1));
        }
        if (m.nodes == 7)
            for (uint32_t v = 0; v < nodes; v++)
                OK(wb_vec_push(&m.arcs, v));
        model_end_list(&m);
    }
    model_write(&m, test_path("extreme"), &stat);
    assert_int_equal(stat.longest, nodes);
    OK(wb_graph_open(test_path("extreme"), &graph));
    compare_graph(&m, graph);
    OK(wb_graph_verify(graph));
    wb_graph_close(graph);
    model_release(&m);
}

static void test_same_bytes(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf a, b;
    struct model m;

    (void)state;
    model_make(&m, LOOK_WEB, 3000, &chance);
    model_write(&m, test_path("a"), NULL);
    model_write(&m, test_path("b"), NULL);
    OK(wb_path_read(test_path("a"), 1 << 30, &a));
    OK(wb_path_read(test_path("b"), 1 << 30, &b));
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.ptr, b.ptr, a.len);
    wb_buf_release(&a);
    wb_buf_release(&b);
    model_release(&m);
}

static void test_refused(void **state)
{
    static const uint32_t twice[] = {3, 3}, falling[] = {5, 2}, beyond[] = {0, 9};
    struct wb_graph_writer *writer;
    struct wb_graph_stat stat;

    (void)state;
    OK(wb_graph_create(test_path("bad"), &writer));
    assert_int_equal(wb_graph_add(writer, twice, 2), WB_E_INVALID);
    assert_int_equal(wb_graph_add(writer, NULL, 0), WB_E_INVALID); /* the first error stays */
    assert_int_equal(wb_graph_finish(writer, &stat), WB_E_INVALID);
    OK(wb_graph_create(test_path("bad"), &writer));
    assert_int_equal(wb_graph_add(writer, falling, 2), WB_E_INVALID);
    wb_graph_abandon(writer);
    OK(wb_graph_create(test_path("bad"), &writer));
    OK(wb_graph_add(writer, beyond, 2));
    assert_int_equal(wb_graph_finish(writer, &stat), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "node 9"));
}

/* ---- damage ------------------------------------------------------------------------------------ */

/* Opens and reads the whole graph. An error must be WB_E_CORRUPT (or a newer version) and name the file. */
static bool reads_same(const struct model *m, const char *path)
{
    struct wb_graph_cursor *cursor;
    struct wb_graph *graph;
    const uint32_t *list;
    uint32_t node, seen = 0;
    size_t count;
    int err = wb_graph_open(path, &graph);

    if (err == 0) {
        OK(wb_graph_cursor_open(graph, &cursor));
        while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
            compare_list(m, node, list, count);
            seen++;
        }
        wb_graph_cursor_close(cursor);
        wb_graph_close(graph);
    }
    if (err < 0) {
        assert_true(err == WB_E_CORRUPT || err == WB_E_NEWER);
        assert_non_null(strstr(wb_error_message(), path));
        return false;
    }
    assert_int_equal(seen, m->nodes);
    return true;
}

static void test_flipped_bytes(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf bytes;
    struct model m;
    size_t noticed = 0, flips = 0;

    (void)state;
    model_make(&m, LOOK_WEB, 400, &chance);
    model_write(&m, test_path("whole"), NULL);
    OK(wb_path_read(test_path("whole"), 1 << 30, &bytes));
    for (size_t at = 0; at < bytes.len; at += 1 + chance_below(&chance, 3), flips++) {
        char was = bytes.ptr[at];
        bytes.ptr[at] = (char)(was ^ (1 << chance_below(&chance, 8)));
        write_file(test_path("flipped"), bytes.ptr, bytes.len);
        noticed += !reads_same(&m, test_path("flipped"));
        bytes.ptr[at] = was;
    }
    /* All that may go unnoticed is padding between the parts. */
    assert_true(noticed > flips - 64);
    for (size_t len = 0; len < bytes.len; len += 1 + chance_below(&chance, 97)) {
        write_file(test_path("cut"), bytes.ptr, len);
        assert_false(reads_same(&m, test_path("cut")));
    }
    OK(wb_path_replace(test_path("whole"), wb_buf_slice(&bytes)));
    put_blob_format(test_path("whole"), "grph", 64, 2);
    struct wb_graph *graph;
    assert_refused_format(wb_graph_open(test_path("whole"), &graph), test_path("whole"), 2);
    wb_buf_release(&bytes);
    model_release(&m);
}

/* ---- threads ----------------------------------------------------------------------------------- */

struct reader_thread {
    const struct model *m;
    const struct wb_graph *graph;
    uint64_t chance;
    bool wrong;
};

static void *read_in_thread(void *context)
{
    struct reader_thread *t = context;
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    size_t count;

    t->wrong = wb_graph_cursor_open(t->graph, &cursor) < 0;
    for (int i = 0; i < 20000 && !t->wrong; i++) {
        uint32_t node = (uint32_t)chance_below(&t->chance, t->m->nodes);
        t->wrong = wb_graph_successors(cursor, node, &list, &count) < 0 || count != model_count(t->m, node) ||
                   (count && memcmp(list, model_list(t->m, node), count * sizeof *list) != 0);
    }
    wb_graph_cursor_close(cursor);
    return NULL;
}

static void test_threads(void **state)
{
    uint64_t chance = test_seed();
    struct reader_thread threads[4];
    pthread_t ids[4];
    struct wb_graph *graph;
    struct model m;

    (void)state;
    model_make(&m, LOOK_WEB, 20000, &chance);
    model_write(&m, test_path("shared"), NULL);
    OK(wb_graph_open(test_path("shared"), &graph));
    for (size_t i = 0; i < COUNT(threads); i++) {
        threads[i] = (struct reader_thread){.m = &m, .graph = graph, .chance = chance + i};
        assert_int_equal(pthread_create(&ids[i], NULL, read_in_thread, &threads[i]), 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(ids[i], NULL);
        assert_false(threads[i].wrong);
    }
    wb_graph_close(graph);
    model_release(&m);
}

/* ---- faults ------------------------------------------------------------------------------------ */

static int write_and_read(const struct model *m, const char *path)
{
    struct wb_graph_writer *writer = NULL;
    struct wb_graph *graph = NULL;
    int err = wb_graph_create(path, &writer);

    for (uint32_t i = 0; i < m->nodes && err == 0; i++)
        err = wb_graph_add(writer, model_list(m, i), model_count(m, i));
    if (err == 0)
        err = wb_graph_finish(writer, NULL);
    else
        wb_graph_abandon(writer);
    if (err == 0)
        err = wb_graph_open(path, &graph);
    if (err == 0)
        err = wb_graph_verify(graph);
    wb_graph_close(graph);
    return err;
}

static void test_faults(void **state)
{
    uint64_t chance = test_seed();
    struct model m;
    uint64_t n = 1;

    (void)state;
    model_make(&m, LOOK_WEB, 200, &chance);
    for (;; n++) {
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = write_and_read(&m, test_path("fault"));
        wb_fault_disarm();
        if (!wb_fault_struck()) {
            OK(err);
            break;
        }
        assert_true(err == WB_E_IO || err == WB_E_NOMEM);
    }
    assert_true(n > 10);
    model_release(&m);
}

/* ---- other graphs ------------------------------------------------------------------------------ */

static void test_transpose(void **state)
{
    static const size_t memories[] = {0, 1, 3000};
    uint64_t chance = test_seed();
    struct wb_graph *graph, *flipped;
    struct model m, t = {0};

    (void)state;
    model_make(&m, LOOK_WEB, 800, &chance);
    model_write(&m, test_path("straight"), NULL);
    for (uint32_t v = 0; v < m.nodes; v++) {
        for (uint32_t u = 0; u < m.nodes; u++)
            if (bsearch(&v, model_list(&m, u), model_count(&m, u), sizeof v, compare_u32))
                OK(wb_vec_push(&t.arcs, u));
        model_end_list(&t);
    }
    OK(wb_graph_open(test_path("straight"), &graph));
    for (size_t i = 0; i < COUNT(memories); i++) {
        struct wb_graph_derive_options options = {.dir = test_root, .memory_bytes = memories[i]};
        OK(wb_graph_transpose(graph, &options, test_path("flipped"), NULL));
        OK(wb_graph_open(test_path("flipped"), &flipped));
        compare_graph(&t, flipped);
        wb_graph_close(flipped);
    }
    wb_graph_close(graph);
    model_release(&m);
    model_release(&t);
}

static void test_groups(void **state)
{
    uint64_t chance = test_seed();
    struct wb_graph_derive_options options = {.dir = test_root};
    static uint32_t group_of[3000];
    static bool linked[40][40];
    struct wb_graph *graph, *groups;
    struct model m, g = {0};

    (void)state;
    model_make(&m, LOOK_WEB, 3000, &chance);
    model_write(&m, test_path("pages"), NULL);
    for (uint32_t v = 0; v < 3000; v++) /* the first half by neighbourhood, the others anywhere; 38 and 39 are empty */
        group_of[v] = v < 1500 ? v / 50 : (uint32_t)chance_below(&chance, 38);
    for (uint32_t v = 0; v < 3000; v++)
        for (size_t i = 0; i < model_count(&m, v); i++)
            linked[group_of[v]][group_of[model_list(&m, v)[i]]] = true;
    for (uint32_t a = 0; a < 40; a++) {
        for (uint32_t b = 0; b < 40; b++)
            if (a != b && linked[a][b])
                OK(wb_vec_push(&g.arcs, b));
        model_end_list(&g);
    }
    OK(wb_graph_open(test_path("pages"), &graph));
    OK(wb_graph_group(graph, group_of, 40, &options, test_path("hosts"), NULL));
    OK(wb_graph_open(test_path("hosts"), &groups));
    compare_graph(&g, groups);
    wb_graph_close(groups);
    wb_graph_close(graph);
    model_release(&m);
    model_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks),     cmocka_unit_test(test_larger_than_sample),
        cmocka_unit_test(test_extremes),  cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_threads),   cmocka_unit_test(test_faults),
        cmocka_unit_test(test_transpose), cmocka_unit_test(test_groups),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
