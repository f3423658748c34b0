/*
 * graph_derive.c - writes a graph that follows from another one: with all arcs reversed, or between groups of nodes.
 */
#include "base/bytes.h"
#include "base/vec.h"
#include "graph/graph_flip.h"
#include "os/path.h"
#include "table/table.h"

#include <stdlib.h>

enum {
    DERIVE_MEMORY = 256 << 20,
    GROUP_TARGETS = 1 << 20, /* of one group that are gathered before repeated ones are dropped */
};

static size_t memory_of(const struct wb_graph_derive_options *options)
{
    return options->memory_bytes ? options->memory_bytes : DERIVE_MEMORY;
}

/* Ends the writing, well or badly; nothing is left of a file that is not complete. */
static int end_writing(struct wb_graph_writer *writer, int err, const char *path, struct wb_graph_stat *stat_out)
{
    struct wb_error_copy error;

    if (stat_out)
        *stat_out = (struct wb_graph_stat){0};
    if (err < 0)
        wb_graph_abandon(writer);
    else
        err = wb_graph_finish(writer, stat_out);
    if (err < 0) {
        wb_error_save(err, &error);
        wb_path_unlink(path);
        err = wb_error_restore(&error);
    }
    return err;
}

/* ---- reversed ---------------------------------------------------------------------------------- */

/* Writes the nodes from `low` on whose sources fit into memory together. *high_out is the first one left. */
static int write_range(const struct wb_graph *graph, uint32_t low, uint32_t nodes, const uint32_t *in, size_t memory,
                       struct wb_graph_writer *writer, uint32_t *high_out)
{
    struct graph_flip flip;
    uint64_t bytes = 0;
    uint32_t high = low;

    do
        bytes += 8 + 4 * (uint64_t)in[high++];
    while (high < nodes && bytes + 8 + 4 * (uint64_t)in[high] <= memory);
    *high_out = high;
    int err = wb_graph_flip_load(graph, low, high, in, &flip);
    for (uint32_t i = 0; i < high - low && err == 0; i++)
        err = wb_graph_add(writer, flip.sources + flip.starts[i], (size_t)(flip.starts[i + 1] - flip.starts[i]));
    wb_graph_flip_release(&flip);
    return err;
}

int wb_graph_transpose(const struct wb_graph *graph, const struct wb_graph_derive_options *options, const char *path,
                       struct wb_graph_stat *stat_out)
{
    struct wb_graph_writer *writer = NULL;
    struct wb_graph_stat size;

    if (stat_out)
        *stat_out = (struct wb_graph_stat){0};
    wb_graph_stat(graph, &size);
    uint32_t nodes = (uint32_t)size.nodes, *in = wb_alloc(((size_t)nodes + 1) * sizeof *in);
    int err = in ? wb_graph_create(path, &writer) : WB_E_NOMEM;
    if (err < 0) {
        wb_free(in);
        return err;
    }
    err = wb_graph_degrees(graph, in, NULL);
    for (uint32_t low = 0; low < nodes && err == 0;)
        err = write_range(graph, low, nodes, in, memory_of(options), writer, &low);
    wb_free(in);
    return end_writing(writer, err, path, stat_out);
}

/* ---- groups ------------------------------------------------------------------------------------ */

struct number_list WB_VEC_OF(uint32_t);

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the numbers and drops the repeated ones. */
static void sort_numbers(struct number_list *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_numbers);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->items[i] != list->items[kept - 1])
            list->items[kept++] = list->items[i];
    list->count = kept;
}

/* Hands the arcs of one group to the sorter. */
static int sort_targets(struct wb_sorter *sorter, uint32_t group, struct number_list *targets)
{
    char key[8];
    int err = 0;

    sort_numbers(targets);
    wb_put32_be(key, group);
    for (size_t i = 0; i < targets->count && err == 0; i++) {
        wb_put32_be(key + 4, targets->items[i]);
        err = wb_sorter_add(sorter, wb_slice(key, sizeof key), wb_slice("", 0));
    }
    wb_vec_clear(targets);
    return err;
}

/* Neighbouring nodes are often of one group; their arcs are gathered before they go to the sorter. */
static int sort_arcs(const struct wb_graph *graph, const uint32_t *group_of, uint32_t groups, struct wb_sorter *sorter)
{
    struct wb_graph_cursor *cursor;
    struct number_list targets = WB_VEC_INIT;
    const uint32_t *list;
    uint32_t node, group = 0;
    size_t count;
    int err = wb_graph_cursor_open(graph, &cursor);

    if (err < 0)
        return err;
    while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
        WB_CHECK(group_of[node] < groups);
        if (group_of[node] != group || targets.count > GROUP_TARGETS)
            err = sort_targets(sorter, group, &targets);
        group = group_of[node];
        if (err >= 0)
            err = wb_vec_reserve(&targets, targets.count + count);
        if (err < 0)
            break;
        for (size_t i = 0; i < count; i++)
            if (group_of[list[i]] != group)
                targets.items[targets.count++] = group_of[list[i]];
    }
    if (err == 0)
        err = sort_targets(sorter, group, &targets);
    if (err == 0)
        err = wb_sorter_sort(sorter);
    wb_vec_release(&targets);
    wb_graph_cursor_close(cursor);
    return err;
}

/* Writes the sorted arcs as lists. */
static int write_groups(struct wb_sorter *sorter, uint32_t groups, struct wb_graph_writer *writer)
{
    struct number_list targets = WB_VEC_INIT;
    struct wb_table_record record;
    uint32_t group = 0;
    int err;

    while ((err = wb_sorter_next(sorter, &record)) > 0) {
        uint32_t from = wb_get32_be(record.key.ptr), to = wb_get32_be(record.key.ptr + 4);
        for (err = 0; group < from && err == 0; group++) {
            err = wb_graph_add(writer, targets.items, targets.count);
            wb_vec_clear(&targets);
        }
        if (err == 0 && (targets.count == 0 || targets.items[targets.count - 1] != to))
            err = wb_vec_push(&targets, to);
        if (err < 0)
            break;
    }
    for (; group < groups && err == 0; group++) {
        err = wb_graph_add(writer, targets.items, targets.count);
        wb_vec_clear(&targets);
    }
    wb_vec_release(&targets);
    return err;
}

int wb_graph_group(const struct wb_graph *graph, const uint32_t *group_of, uint32_t groups,
                   const struct wb_graph_derive_options *options, const char *path, struct wb_graph_stat *stat_out)
{
    struct wb_sorter_options sorting = {.dir = options->dir, .memory_bytes = memory_of(options)};
    struct wb_graph_writer *writer = NULL;
    struct wb_sorter *sorter = NULL;

    if (stat_out)
        *stat_out = (struct wb_graph_stat){0};
    int err = wb_sorter_open(&sorting, &sorter);
    if (err == 0)
        err = sort_arcs(graph, group_of, groups, sorter);
    if (err == 0)
        err = wb_graph_create(path, &writer);
    if (err == 0)
        err = end_writing(writer, write_groups(sorter, groups, writer), path, stat_out);
    wb_sorter_close(sorter);
    return err;
}
