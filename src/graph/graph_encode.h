/*
 * graph_encode.h - lists of successors as tokens, and tokens as bits. Used by graph_write.c.
 *
 * A chunk gathers the lists of neighbouring nodes. For each list the encoder tries all references within the window
 * and chooses the one that costs least.
 */
#ifndef WB_GRAPH_GRAPH_ENCODE_H
#define WB_GRAPH_GRAPH_ENCODE_H

#include "base/vec.h"
#include "graph/graph_code.h"

struct graph_token {
    uint32_t value;
    uint8_t stream, flags;
};

struct graph_tokens WB_VEC_OF(struct graph_token);

/* The lists of a chunk that is being gathered. A struct of zero bytes is an empty chunk. */
struct graph_gather {
    uint32_t first; /* the node of the first list */
    unsigned nodes;
    size_t starts[GRAPH_CHUNK_NODES + 1]; /* list i is arcs.items[starts[i]] to starts[i + 1] */
    uint8_t back[GRAPH_CHUNK_NODES];      /* the reference of each list: how many lists back it is; 0: none */
    WB_VEC(uint32_t) arcs;
    struct graph_tokens tokens; /* scratch: of one list */
};

void wb_graph_gather_release(struct graph_gather *chunk);

/* False if a list of so many successors has to go into the next chunk. An empty chunk takes any list. */
bool wb_graph_gather_fits(const struct graph_gather *chunk, size_t count);
int wb_graph_gather_add(struct graph_gather *chunk, const uint32_t *list, size_t count);

/* Chooses the references that cost least according to the model. */
void wb_graph_chunk_choose(struct graph_gather *chunk, const struct graph_model *model);

/* Counts the tokens of the chunk. The references were chosen before. */
int wb_graph_chunk_count(struct graph_gather *chunk, struct graph_model *model);

/*
 * Appends the chunk as whole bytes. The references were chosen before, and the model must have a word for every token:
 * see wb_graph_model_build().
 */
int wb_graph_chunk_encode(struct graph_gather *chunk, const struct graph_model *model, struct wb_buf *out);

#endif
