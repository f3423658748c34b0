/*
 * graph_cursor.h - where a chunk of a graph is. Between graph_read.c, which finds chunks, and graph_cursor.c, which
 * decodes them.
 */
#ifndef WB_GRAPH_GRAPH_CURSOR_H
#define WB_GRAPH_GRAPH_CURSOR_H

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "graph/graph_file.h"

struct graph_place {
    uint32_t first;  /* the chunk's first node */
    unsigned nodes;  /* 0: no chunk */
    uint64_t offset; /* of its bytes */
    uint64_t bytes;
    uint64_t entry; /* where the entry of the chunk after it is */
};

/* Finds the chunk of a node, which must exist, and compares its bytes with their checksum. */
int wb_graph_place_find(const struct wb_graph *graph, uint32_t node, struct graph_place *place_out);

/* Goes on to the chunk after this one; there must be one. */
int wb_graph_place_next(const struct wb_graph *graph, struct graph_place *place);

/* Checks that every way through the directory leads to the same chunks. */
int wb_graph_directory_check(const struct wb_graph *graph);

#endif
