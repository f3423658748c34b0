/*
 * graph_file.h - the parts of a graph file and its decoder. Used inside this room, by fuzz/fuzz_linkgraph.c and by
 * tests.
 *
 *   chunks | entries | groups | codes | foot
 *
 *   chunks   the lists, as bits; each chunk begins with a new byte
 *   entries  for each chunk its number of nodes, less 1, and its number of bytes, as varints
 * *   groups   for every 16th chunk: its first node (4), zero (4), where its entry is (8), where its bytes are (8)
 *   codes    graph_code.c
 *   foot     64 bytes: 0 format (4)  4 zero (4)  8 nodes (8)  16 arcs (8)  24 bytes of chunks (8)
 *            32 bytes of entries (8)  40 groups (8)  48 bytes of codes (8)  56 longest list (8)
 *
 * The whole is a blob, which has the checksums.
 */
#ifndef WB_GRAPH_GRAPH_FILE_H
#define WB_GRAPH_GRAPH_FILE_H

#include "graph/graph.h"
#include "graph/graph_code.h"
#include "table/table.h"

#define GRAPH_KIND "grph"

enum {
    GRAPH_FORMAT = 1,
    GRAPH_FOOT_BYTES = 64,
    GRAPH_GROUP_BYTES = 24,
    GRAPH_GROUP_CHUNKS = 16,
};

struct wb_graph {
    struct wb_blob blob; /* not open if the bytes are the caller's: wb_graph_open_bytes() */
    const char *data;
    const char *name; /* for messages */
    uint64_t nodes, arcs, longest;
    uint64_t chunk_bytes, entry_bytes, group_count;
    uint64_t file_bytes;
    struct graph_codes *codes;
};

/*
 * A test seam, for the fuzzer. Opens a graph in memory, without checksums. Behind the bytes, WB_BLOB_SLACK more can be
 * read. Everything that the decoder relies on is checked in any case, because a file may come from anybody.
 */
int wb_graph_open_bytes(struct wb_slice bytes, const char *name, struct wb_graph **graph_out);

#endif
