/*
 * graph_code.h - the codes of a graph file: numbers as bits. Used by the encoder and by the decoder of this room.
 *
 * A list of successors becomes a sequence of tokens. A token is a number below 2^32 and up to two flags. It belongs to
 * a stream, which says what the number means; each stream has its own prefix code (Huffman), which the file holds.
 * A number is put into a bucket: the numbers below 16 have one each; above that each power of two has two, and from
 * 4096 on one. The code word names the bucket and the flags; behind it come the bits that tell the numbers of a bucket
 * apart.
 *
 *   number  0 ... 15  16-23  24-31  32-47  48-63  64-95 ...
 *   bucket  0 ... 15     16     17     18     19     20 ...
 *   bits    0 ...  0      3      3      4      4      5 ...
 *
 * A code word has at most 10 bits, so one step in a table of 1024 entries decodes it, with its flags.
 */
#ifndef WB_GRAPH_GRAPH_CODE_H
#define WB_GRAPH_GRAPH_CODE_H

#include "base/buf.h"
#include "base/bytes.h"

/* What a token is. graph_encode.c says how the tokens of a list follow each other. */
enum graph_stream {
    GRAPH_HEAD_FIRST,  /* the reference, and what else there is: of the first list in a chunk; */
    GRAPH_HEAD_NEW,    /* after a list without a reference; */
    GRAPH_HEAD_SAME,   /* after a list that is exactly its reference; */
    GRAPH_HEAD_EDITED, /* after any other list */
    GRAPH_BLOCKS,      /* the number of blocks, less 1 */
    GRAPH_BLOCK_FIRST, /* the length of the first block, which is copied */
    GRAPH_BLOCK_SKIP,  /* the length of a block that is left out, less 1 */
    GRAPH_BLOCK_COPY,  /* the length of a later block that is copied, less 1 */
    GRAPH_DEGREE,      /* the number of successors of a list without a reference, less 1 */
    GRAPH_EXTRAS,      /* the number of successors that a reference does not have, less 1 */
    GRAPH_FIRST_NEW,   /* the first successor's distance from the node, in a list without a reference; */
    GRAPH_FIRST_EXTRA, /* and the first of the extras */
    GRAPH_GAP_NEAR,    /* the numbers left out since the last successor: if the gap before was 0 to 3; */
    GRAPH_GAP_MIDDLE,  /* 4 to 63; */
    GRAPH_GAP_FAR,     /* more; */
    GRAPH_GAP_START,   /* the gap after the first successor; */
    GRAPH_GAP_RUN,     /* the gap after a run */
    GRAPH_RUN,         /* the length of a run of consecutive numbers, less GRAPH_RUN_MIN */
    GRAPH_STREAMS
};

/* Flags of tokens. */
enum {
    GRAPH_FLAG_BLOCKS = 1, /* of a head: only parts of the reference are copied */
    GRAPH_FLAG_EXTRAS = 2, /* of a head: there are successors that the reference does not have */
    GRAPH_FLAG_RUN = 1,    /* of a gap or a first successor: a run begins here */
    GRAPH_FLAG_BEFORE = 2, /* of a first successor: it is less than the node */
};

/*
 * Lists are coded in chunks of neighbours, which refer only to each other. A chunk with more than one list has at most
 * so many successors. docs/design/0023-graph.md has the measurements behind these numbers.
 */
enum {
    GRAPH_CHUNK_NODES = 24,
    GRAPH_CHUNK_ARCS = 1024,
    GRAPH_WINDOW = 8,  /* how many lists back a reference may point */
    GRAPH_RUN_MIN = 3, /* the shortest run of consecutive numbers that is coded as one */
};

enum {
    GRAPH_CODE_BITS = 10,
    GRAPH_BUCKETS = 16 + 8 * 2 + 20,
    GRAPH_SYMBOLS = GRAPH_BUCKETS * 4,
    GRAPH_TOKEN_BITS_MAX = GRAPH_CODE_BITS + 31,
};

static inline unsigned wb_graph_bucket(uint32_t v)
{
    if (v < 16)
        return v;
    unsigned log = 31u - (unsigned)__builtin_clz(v);
    return log < 12 ? 16 + (log - 4) * 2 + (v >> (log - 1) & 1) : 32 + (log - 12);
}

/* How many bits follow the code word. */
static inline unsigned wb_graph_bucket_bits(unsigned bucket)
{
    return bucket < 16 ? 0 : bucket < 32 ? 3 + (bucket - 16) / 2 : 12 + (bucket - 32);
}

/* The lowest number of a bucket. */
static inline uint32_t wb_graph_bucket_base(unsigned bucket)
{
    return bucket < 16   ? bucket
           : bucket < 32 ? (2u + (bucket & 1)) << wb_graph_bucket_bits(bucket)
                         : 1u << wb_graph_bucket_bits(bucket);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The codes of a file while it is written. A symbol is bucket * 4 + flags. */
struct graph_model {
    uint64_t counts[GRAPH_STREAMS][GRAPH_SYMBOLS]; /* how often each symbol occurs in the sample */
    uint16_t words[GRAPH_STREAMS][GRAPH_SYMBOLS];  /* code words, the first bit lowest */
    uint8_t lengths[GRAPH_STREAMS][GRAPH_SYMBOLS]; /* of the words */
    uint8_t costs[GRAPH_STREAMS][GRAPH_SYMBOLS];   /* bits of a token, by which references are chosen */
};

/* Costs before anything is known about the graph. */
void wb_graph_model_guess(struct graph_model *model);

/*
 * Makes codes from the counts. With `whole`, the counts are those of the whole graph, and symbols that do not occur
 * get no word; otherwise every symbol that a list could need gets one.
 */
void wb_graph_model_build(struct graph_model *model, bool whole);

/* Takes the costs from the words, and sets the counts to 0. */
void wb_graph_model_learn(struct graph_model *model);

/* Appends the codes as they are in the file. */
int wb_graph_model_write(const struct graph_model *model, struct wb_buf *out);

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * Decodes the next bits of a stream: what a token is that begins with them. A number is `lead` with `extra` more bits
 * behind it, which works for all buckets. Entries are this small so that all tables fit into the first-level cache.
 */
struct graph_entry {
    uint16_t bits : 4;  /* length of the code word */
    uint16_t extra : 5; /* bits that follow it */
    uint16_t lead : 4;
    uint16_t flags : 2;
};
_Static_assert(sizeof(struct graph_entry) == 2, "an entry has two bytes");

struct graph_codes {
    struct graph_entry entries[GRAPH_STREAMS][1 << GRAPH_CODE_BITS];
};

/* Reads what wb_graph_model_write() wrote. WB_E_CORRUPT names `name`. */
int wb_graph_codes_read(struct wb_slice bytes, const char *name, struct graph_codes *codes_out);

/* A position in bits, the lowest bit of a byte first. From the last byte on, 8 further bytes must be readable. */
struct graph_bits {
    const char *bytes;
    uint64_t at; /* in bits */
};

/*
 * Reads one token. The caller makes sure that `at` is inside the bytes before each call. A stream without symbols gives
 * a number of more than 32 bits.
 */
static inline uint64_t wb_graph_read(struct graph_bits *bits, const struct graph_entry *table, unsigned *flags_out)
{
    uint64_t word = wb_get64(bits->bytes + (bits->at >> 3)) >> (bits->at & 7);
    struct graph_entry e = table[word & ((1 << GRAPH_CODE_BITS) - 1)];

    bits->at += e.bits + e.extra;
    *flags_out = e.flags;
    return (uint64_t)e.lead << e.extra | (word >> e.bits & ((1ull << e.extra) - 1));
}

#endif
