/*
 * graph_support.h - what the tests of graph share: graphs in memory, made at random, to compare with. Header only,
 * because every test program is one file.
 */
#ifndef WB_TESTS_GRAPH_SUPPORT_H
#define WB_TESTS_GRAPH_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "../testroot.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#define UNUSED __attribute__((unused)) static
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OK(call) ok_at((call), #call, __LINE__)

UNUSED void ok_at(int err, const char *what, int line)
{
    if (err < 0)
        fail_msg("line %d: %s: %s", line, what, wb_error_message());
}

/* A graph in memory. */
struct model {
    uint32_t nodes;
    WB_VEC(uint64_t) starts; /* list i is arcs.items[starts.items[i]] to starts.items[i + 1] */
    WB_VEC(uint32_t) arcs;
};

UNUSED void model_release(struct model *m)
{
    wb_vec_release(&m->starts);
    wb_vec_release(&m->arcs);
    m->nodes = 0;
}

UNUSED size_t model_count(const struct model *m, uint32_t node)
{
    return (size_t)(m->starts.items[node + 1] - m->starts.items[node]);
}

UNUSED const uint32_t *model_list(const struct model *m, uint32_t node)
{
    return m->arcs.items + m->starts.items[node];
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Ends the list of the next node: sorts what was pushed to arcs since the last one, and drops repeated numbers. */
UNUSED void model_end_list(struct model *m)
{
    if (m->starts.count == 0)
        OK(wb_vec_push(&m->starts, 0));
    size_t from = (size_t)m->starts.items[m->nodes], kept = from;

    if (m->arcs.count > from)
        qsort(m->arcs.items + from, m->arcs.count - from, sizeof *m->arcs.items, compare_u32);
    for (size_t i = from; i < m->arcs.count; i++)
        if (kept == from || m->arcs.items[i] != m->arcs.items[kept - 1])
            m->arcs.items[kept++] = m->arcs.items[i];
    m->arcs.count = kept;
    OK(wb_vec_push(&m->starts, kept));
    m->nodes++;
}

/* How the lists of a random graph look. */
enum look { LOOK_EMPTY, LOOK_UNIFORM, LOOK_WEB, LOOK_DENSE, LOOK_HUBS, LOOKS };

UNUSED void push_random(struct model *m, uint32_t node, uint32_t nodes, uint64_t *chance)
{
    uint64_t v = chance_below(chance, nodes);

    if (!chance_one_in(chance, 4)) /* near the node, as most links are */
        v = (node + chance_below(chance, 60) + nodes - (30 % nodes)) % nodes;
    OK(wb_vec_push(&m->arcs, (uint32_t)v));
}

/* A list like one of those before it, with a few numbers changed, and runs. */
UNUSED void push_web_list(struct model *m, uint32_t node, uint32_t nodes, uint64_t *chance)
{
    if (node > 0 && !chance_one_in(chance, 5)) {
        uint32_t from = node - 1 - (uint32_t)chance_below(chance, node < 10 ? node : 10);
        for (size_t i = 0; i < model_count(m, from); i++)
            if (!chance_one_in(chance, 8))
                OK(wb_vec_push(&m->arcs, model_list(m, from)[i]));
    }
    for (uint64_t n = chance_below(chance, 6); n > 0; n--)
        push_random(m, node, nodes, chance);
    if (chance_one_in(chance, 3)) {
        uint64_t first = chance_below(chance, nodes);
        for (uint64_t i = 0; i < 2 + chance_below(chance, 40) && first + i < nodes; i++)
            OK(wb_vec_push(&m->arcs, (uint32_t)(first + i)));
    }
}

UNUSED void model_make(struct model *m, enum look look, uint32_t nodes, uint64_t *chance)
{
    *m = (struct model){0};
    OK(wb_vec_push(&m->starts, 0));
    while (m->nodes < nodes) {
        uint32_t node = m->nodes;
        if (look == LOOK_WEB)
            push_web_list(m, node, nodes, chance);
        else if (look == LOOK_UNIFORM)
            for (uint64_t n = chance_below(chance, 20); n > 0; n--)
                OK(wb_vec_push(&m->arcs, (uint32_t)chance_below(chance, nodes)));
        else if (look == LOOK_DENSE)
            for (uint32_t v = 0; v < nodes; v++)
                if (!chance_one_in(chance, 3))
                    OK(wb_vec_push(&m->arcs, v));
        if (look == LOOK_HUBS && chance_one_in(chance, 50))
            for (uint64_t n = chance_below(chance, 4000); n > 0; n--)
                OK(wb_vec_push(&m->arcs, (uint32_t)chance_below(chance, nodes)));
        else if (look == LOOK_HUBS)
            push_random(m, node, nodes, chance);
        model_end_list(m);
    }
}

UNUSED void model_write(const struct model *m, const char *path, struct wb_graph_stat *stat_out)
{
    struct wb_graph_writer *writer;

    OK(wb_graph_create(path, &writer));
    for (uint32_t i = 0; i < m->nodes; i++)
        OK(wb_graph_add(writer, model_list(m, i), model_count(m, i)));
    OK(wb_graph_finish(writer, stat_out));
}

/* Fails unless the cursor gives exactly the list of the model. */
UNUSED void compare_list(const struct model *m, uint32_t node, const uint32_t *list, size_t count)
{
    assert_int_equal(count, model_count(m, node));
    if (count)
        assert_memory_equal(list, model_list(m, node), count * sizeof *list);
}

UNUSED void compare_graph(const struct model *m, const struct wb_graph *graph)
{
    struct wb_graph_cursor *cursor;
    struct wb_graph_stat stat;
    const uint32_t *list;
    uint32_t node, expected = 0;
    size_t count;
    int err;

    wb_graph_stat(graph, &stat);
    assert_int_equal(stat.nodes, m->nodes);
    assert_int_equal(stat.arcs, m->arcs.count);
    OK(wb_graph_cursor_open(graph, &cursor));
    while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
        assert_int_equal(node, expected++);
        compare_list(m, node, list, count);
    }
    OK(err);
    assert_int_equal(expected, m->nodes);
    wb_graph_cursor_close(cursor);
}

UNUSED void write_file(const char *path, const void *bytes, size_t len)
{
    struct wb_file file;

    OK(wb_path_unlink(path));
    OK(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file));
    OK(wb_file_write_at(&file, 0, bytes, len));
    wb_file_close(&file);
}

#endif
