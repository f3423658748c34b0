/*
 * graph.h - the door of graph: a link graph on disk, and PageRank.
 *
 *   writer   takes the lists of successors of nodes 0, 1, 2... and writes a file
 *   graph    an open file; any number of threads may share it
 *   cursor   reads lists, of any node or one after the other; one per thread
 *   rank     PageRank and personalised rank of the nodes
 *   groups   the graph of hosts, or of any other groups of nodes
 *   text     a graph as lines of text, for import
 *
 * A file takes two to three bits per link if neighbouring nodes have similar lists and link to each other, as pages in
 * SURT order do. Lists refer to lists shortly before them and say only what is different, as in WebGraph (Boldi and
 * Vigna 2004). docs/formats/linkgraph.md describes the bytes, docs/design/0023-graph.md the reasons.
 *
 * This room does not know what a node is. Functions return 0 or a negative error code, unless their comment says
 * something else.
 */
#ifndef WB_GRAPH_GRAPH_H
#define WB_GRAPH_GRAPH_H

#include "base/buf.h"

#include <stdint.h>

/* Node numbers are less than this. */
#define WB_GRAPH_NODES_MAX UINT32_MAX

struct wb_graph_stat {
    uint64_t nodes, arcs;
    uint64_t bytes;   /* size of the file, with everything that is needed to read it */
    uint64_t longest; /* the most successors that a node has */
};

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * Life of a writer: wb_graph_create() -> wb_graph_add() once for each node -> wb_graph_finish() or wb_graph_abandon().
 * The bytes of the file depend on the lists alone. A writer needs about 60 MB, and twice the longest list.
 */
struct wb_graph_writer;

/* An existing file of that name is unlinked first, so that its readers can go on reading it. */
int wb_graph_create(const char *path, struct wb_graph_writer **writer_out);

/*
 * Adds the list of the next node: count numbers, strictly ascending (WB_E_INVALID otherwise). A node may link to itself
 * and to nodes that are still to come. After an error, every further call returns that first error.
 */
int wb_graph_add(struct wb_graph_writer *writer, const uint32_t *successors, size_t count);

/*
 * Completes, syncs and closes the file. WB_E_INVALID if a list has a node that was never added. Frees the writer even
 * if it fails; then the file is not a graph, and the caller deletes it. stat_out may be NULL.
 */
int wb_graph_finish(struct wb_graph_writer *writer, struct wb_graph_stat *stat_out);

/* Closes the unfinished file and frees the writer. NULL is allowed. */
void wb_graph_abandon(struct wb_graph_writer *writer);

/* ---- reading --------------------------------------------------------------------------------- */

struct wb_graph;

/* WB_E_NOTFOUND; WB_E_CORRUPT; WB_E_NEWER. The graph stays readable if its file is unlinked while it is open. */
int wb_graph_open(const char *path, struct wb_graph **graph_out);
void wb_graph_close(struct wb_graph *graph);
void wb_graph_stat(const struct wb_graph *graph, struct wb_graph_stat *stat_out);

/* The graph must stay open for as long as its cursors. */
struct wb_graph_cursor;

int wb_graph_cursor_open(const struct wb_graph *graph, struct wb_graph_cursor **cursor_out);
void wb_graph_cursor_close(struct wb_graph_cursor *cursor);

/*
 * The successors of a node, ascending. They are valid until the next call with this cursor. Asking for neighbouring
 * nodes in ascending order is fast, because their lists are decoded together. WB_E_INVALID if there is no such node.
 */
int wb_graph_successors(struct wb_graph_cursor *cursor, uint32_t node, const uint32_t **list_out, size_t *count_out);

/* A test seam. Puts the cursor before a node, for wb_graph_next(). A new cursor is before node 0. */
void wb_graph_seek(struct wb_graph_cursor *cursor, uint32_t node);

/* Returns 1 with the next node and its successors, or 0 after the last node. */
int wb_graph_next(struct wb_graph_cursor *cursor, uint32_t *node_out, const uint32_t **list_out, size_t *count_out);

/* Reads everything and checks it. WB_E_CORRUPT names the file. */
int wb_graph_verify(const struct wb_graph *graph);

/* ---- ranking --------------------------------------------------------------------------------- */

struct wb_graph_rank_options {
    double damping;        /* 0 means 0.85 */
    double tolerance;      /* ends when an iteration changes less than this, in total; 0 means 1e-12 */
    unsigned iterations;   /* ends after so many at the latest; 0 means 1000 */
    unsigned threads;      /* 0 means 2 */
    size_t memory_bytes;   /* for the graph in memory; 0 means 1 GiB. Otherwise it is decoded each time */
    const uint32_t *seeds; /* personalised rank: the walk starts at these nodes only; NULL: at all nodes */
    size_t seed_count;
    bool (*go_on)(void *context); /* asked once per iteration; false ends with WB_E_STOPPED. May be NULL */
    void *context;
};

struct wb_graph_rank_stat {
    unsigned iterations;
    double change; /* of the last iteration: sum of the differences */
    bool in_memory;
    double build_s; /* seconds to bring the graph into memory */
    double rank_s;  /* seconds for all iterations */
};

/*
 * PageRank: where a random walk is found that follows a link with probability `damping` and otherwise, and where there
 * is no link, jumps to a node chosen at random: any one, or one of the seeds. The values of ranks_out (one for each
 * node) add up to 1. They are the same, to the last bit, for any number of threads and whether the graph is in memory
 * or not. Besides memory_bytes this takes up to 25 bytes per node. stat_out may be NULL.
 */
int wb_graph_rank(const struct wb_graph *graph, const struct wb_graph_rank_options *options, double *ranks_out,
                  struct wb_graph_rank_stat *stat_out);

/* ---- other graphs of a graph ------------------------------------------------------------------- */

struct wb_graph_derive_options {
    const char *dir;     /* for temporary files without names */
    size_t memory_bytes; /* 0 means 256 MiB */
};

/*
 * Writes the graph of groups, such as hosts: group_of[node] is less than groups, and there is an arc from group a to
 * another group b if a node of a links to a node of b. Host rank is wb_graph_rank() of this graph.
 */
int wb_graph_group(const struct wb_graph *graph, const uint32_t *group_of, uint32_t groups,
                   const struct wb_graph_derive_options *options, const char *path, struct wb_graph_stat *stat_out);

/* Writes the graph with all arcs reversed. */
int wb_graph_transpose(const struct wb_graph *graph, const struct wb_graph_derive_options *options, const char *path,
                       struct wb_graph_stat *stat_out);

/* ---- text ------------------------------------------------------------------------------------ */

struct wb_graph_text_options {
    bool (*go_on)(void *context, uint64_t bytes_done, uint64_t bytes_total, uint64_t nodes); /* may be NULL */
    void *context;
};

/*
 * Reads a graph from a text file, plain or gzip'd: the first line is the number of nodes; then each line has the
 * successors of one node, in any order, separated by blanks. WB_E_PROTO names the file and the line if anything is
 * wrong. Numbers that occur twice in a line count once. *repeated_out is how many there were; it may be NULL.
 */
int wb_graph_read_text(const char *text_path, const struct wb_graph_text_options *options, const char *path,
                       struct wb_graph_stat *stat_out, uint64_t *repeated_out);

#endif
