/*
 * fuzz_linkgraph.c - arbitrary bytes as a graph, without the checksums that a fuzzer could not guess: opened, walked
 * and asked for single lists. Lists are ascending and stay below the number of nodes whatever the bytes are. If verify
 * finds nothing wrong, every list can be read, and random access gives the same lists as the walk.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "graph/graph_file.h"

enum { WALK_NODES = 2000, ASK_NODES = 50 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const struct wb_graph *graph, const uint32_t *list, size_t count)
{
    WB_CHECK(count <= graph->nodes);
    for (size_t i = 0; i < count; i++) {
        WB_CHECK(list[i] < graph->nodes);
        WB_CHECK(i == 0 || list[i] > list[i - 1]);
    }
}

/* Returns how many nodes could be read. sums: a hash of each list. */
static uint32_t walk(const struct wb_graph *graph, uint64_t sums[WALK_NODES])
{
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    uint32_t node, seen = 0;
    size_t count;

    WB_CHECK(wb_graph_cursor_open(graph, &cursor) == 0);
    while (seen < WALK_NODES && wb_graph_next(cursor, &node, &list, &count) > 0) {
        WB_CHECK(node == seen);
        check_list(graph, list, count);
        sums[seen++] = wb_hash64(list, count * sizeof *list);
    }
    wb_graph_cursor_close(cursor);
    return seen;
}

static void ask(const struct wb_graph *graph, const uint64_t *sums, uint32_t seen, bool intact)
{
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    size_t count;

    WB_CHECK(wb_graph_cursor_open(graph, &cursor) == 0);
    for (uint32_t i = 0; i < ASK_NODES && graph->nodes; i++) {
        uint32_t node = (uint32_t)((uint64_t)i * 2654435761u % graph->nodes);
        int err = wb_graph_successors(cursor, node, &list, &count);
        WB_CHECK(err == 0 || !intact);
        if (err == 0)
            check_list(graph, list, count);
        if (intact && node < seen)
            WB_CHECK(wb_hash64(list, count * sizeof *list) == sums[node]);
    }
    wb_graph_cursor_close(cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t sums[WALK_NODES];
    struct wb_graph *graph;
    char *bytes = wb_alloc_zero(1, size + WB_BLOB_SLACK);

    WB_CHECK(bytes != NULL);
    if (size)
        memcpy(bytes, data, size);
    if (wb_graph_open_bytes(wb_slice(bytes, size), "input", &graph) == 0) {
        bool intact = wb_graph_verify(graph) == 0;
        uint32_t seen = walk(graph, sums);
        WB_CHECK(!intact || seen == graph->nodes || seen == WALK_NODES);
        ask(graph, sums, seen, intact);
        wb_graph_close(graph);
    }
    wb_free(bytes);
    return 0;
}
