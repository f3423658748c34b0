/*
 * graph_flip.h - arcs in memory, by the node they lead to. Used by graph_rank.c and graph_derive.c.
 */
#ifndef WB_GRAPH_GRAPH_FLIP_H
#define WB_GRAPH_GRAPH_FLIP_H

#include "graph/graph.h"

/* The arcs that lead to the nodes [low, high). A struct of zero bytes is empty. */
struct graph_flip {
    uint32_t low, high;
    uint64_t *starts; /* the sources of node v are sources[starts[v - low]] to starts[v - low + 1], ascending */
    uint32_t *sources;
};

/* Counts, for each node, the arcs that lead to it and that leave it. out may be NULL. */
int wb_graph_degrees(const struct wb_graph *graph, uint32_t *in, uint32_t *out);

/* in: the numbers of arcs that lead to each node of the graph. */
int wb_graph_flip_load(const struct wb_graph *graph, uint32_t low, uint32_t high, const uint32_t *in,
                       struct graph_flip *flip_out);
void wb_graph_flip_release(struct graph_flip *flip);

/* The part of an ascending list that lies in [low, high). */
void wb_graph_list_part(const uint32_t **list, size_t *count, uint32_t low, uint32_t high);

#endif
