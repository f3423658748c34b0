/* graph_flip.c - brings arcs into memory, sorted by the node they lead to. */
#include "graph/graph_flip.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

int wb_graph_degrees(const struct wb_graph *graph, uint32_t *in, uint32_t *out)
{
    struct wb_graph_cursor *cursor;
    struct wb_graph_stat stat;
    const uint32_t *list;
    uint32_t node;
    size_t count;
    int err = wb_graph_cursor_open(graph, &cursor);

    if (err < 0)
        return err;
    wb_graph_stat(graph, &stat);
    memset(in, 0, stat.nodes * sizeof *in);
    while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
        for (size_t i = 0; i < count; i++)
            in[list[i]]++;
        if (out)
            out[node] = (uint32_t)count;
    }
    wb_graph_cursor_close(cursor);
    return err;
}

/* The first place in an ascending list with a number not less than v. */
static size_t lower_bound(const uint32_t *list, size_t count, uint32_t v)
{
    size_t low = 0;

    while (count > 0) {
        size_t half = count / 2;
        bool less = list[low + half] < v;
        low = less ? low + half + 1 : low;
        count = less ? count - half - 1 : half;
    }
    return low;
}

void wb_graph_list_part(const uint32_t **list, size_t *count, uint32_t low, uint32_t high)
{
    size_t from = *count && (*list)[0] < low ? lower_bound(*list, *count, low) : 0;
    size_t to = *count && (*list)[*count - 1] >= high ? lower_bound(*list, *count, high) : *count;

    *list += from;
    *count = to > from ? to - from : 0;
}

static int place_sources(const struct wb_graph *graph, struct graph_flip *flip)
{
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    uint32_t node;
    size_t count;
    int err = wb_graph_cursor_open(graph, &cursor);

    if (err < 0)
        return err;
    while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
        wb_graph_list_part(&list, &count, flip->low, flip->high);
        for (size_t i = 0; i < count; i++)
            flip->sources[flip->starts[list[i] - flip->low + 1]++] = node;
    }
    wb_graph_cursor_close(cursor);
    return err;
}

int wb_graph_flip_load(const struct wb_graph *graph, uint32_t low, uint32_t high, const uint32_t *in,
                       struct graph_flip *flip_out)
{
    struct graph_flip flip = {.low = low, .high = high};
    uint64_t arcs = 0;

    WB_CHECK(low <= high);
    *flip_out = (struct graph_flip){0};
    flip.starts = wb_alloc(((size_t)(high - low) + 2) * sizeof *flip.starts);
    if (!flip.starts)
        return WB_E_NOMEM;
    /* While arcs are placed, starts[i + 1] is where the next source of node i goes; afterwards it is where it ends. */
    flip.starts[0] = 0;
    for (uint32_t v = low; v < high; v++) {
        flip.starts[v - low + 1] = arcs;
        arcs += in[v];
    }
    flip.sources = wb_alloc((arcs + 1) * sizeof *flip.sources);
    int err = flip.sources ? place_sources(graph, &flip) : WB_E_NOMEM;
    if (err < 0)
        wb_graph_flip_release(&flip);
    else
        *flip_out = flip;
    return err;
}

void wb_graph_flip_release(struct graph_flip *flip)
{
    wb_free(flip->starts);
    wb_free(flip->sources);
    *flip = (struct graph_flip){0};
}
