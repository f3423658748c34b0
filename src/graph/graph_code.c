/*
 * graph_code.c - makes the prefix codes of a graph file, and reads them back. docs/formats/linkgraph.md describes the
 * bytes.
 */
#include "graph/graph_code.h"
#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>

void wb_graph_model_guess(struct graph_model *model)
{
    memset(model, 0, sizeof *model);
    for (unsigned s = 0; s < GRAPH_STREAMS; s++)
        for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS; symbol++) {
            unsigned bucket = symbol / 4;
            unsigned first = bucket < 2 ? 1 + bucket : bucket < 16 ? 4 : 5;
            model->costs[s][symbol] = (uint8_t)(first + wb_graph_bucket_bits(bucket));
        }
}

/* ---- the lengths of code words ----------------------------------------------------------------- */

struct code_leaf {
    uint64_t count;
    uint32_t symbol;
};

static int compare_leaves(const void *a, const void *b)
{
    const struct code_leaf *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

/*
 * Huffman's algorithm with two queues: the leaves in ascending order, and the inner nodes, which come into being in
 * ascending order. Counts how many words have each length; more than 10 bits count as 10.
 */
static void count_lengths(const struct code_leaf *leaves, unsigned n, unsigned by_length[GRAPH_CODE_BITS + 1])
{
    uint64_t weight[GRAPH_SYMBOLS];
    uint16_t parent[2 * GRAPH_SYMBOLS], depth[2 * GRAPH_SYMBOLS];
    unsigned leaf = 0, inner = 0;

    WB_CHECK(n >= 2 && n <= GRAPH_SYMBOLS);
    for (unsigned made = 0; made < n - 1; made++) {
        weight[made] = 0;
        for (int side = 0; side < 2; side++) {
            bool take_leaf = leaf < n && (inner == made || leaves[leaf].count <= weight[inner]);
            weight[made] += take_leaf ? leaves[leaf].count : weight[inner];
            parent[take_leaf ? leaf++ : n + inner++] = (uint16_t)(n + made);
        }
    }
    depth[2 * n - 2] = 0;
    memset(by_length, 0, (GRAPH_CODE_BITS + 1) * sizeof *by_length);
    for (unsigned i = 2 * n - 2; i-- > 0;) {
        depth[i] = (uint16_t)(depth[parent[i]] + 1);
        if (i < n)
            by_length[depth[i] < GRAPH_CODE_BITS ? depth[i] : GRAPH_CODE_BITS]++;
    }
}

/* Cutting long words has made the code too full: makes some shorter words longer until it is exactly full. */
static void repair_lengths(unsigned by_length[GRAPH_CODE_BITS + 1])
{
    unsigned total = 0;

    for (unsigned len = 1; len <= GRAPH_CODE_BITS; len++)
        total += by_length[len] << (GRAPH_CODE_BITS - len);
    for (; total > 1u << GRAPH_CODE_BITS; total--) {
        unsigned len = GRAPH_CODE_BITS - 1;
        while (by_length[len] == 0)
            len--;
        WB_CHECK(len > 0);
        by_length[GRAPH_CODE_BITS]--;
        by_length[len]--;
        by_length[len + 1] += 2;
    }
    WB_CHECK(total == 1u << GRAPH_CODE_BITS);
}

/* The first code word of each length, in canonical order: shorter words first, equal ones by symbol. */
static void first_words(const unsigned by_length[GRAPH_CODE_BITS + 1], unsigned next[GRAPH_CODE_BITS + 1])
{
    unsigned word = 0;

    next[0] = 0;
    for (unsigned len = 1; len <= GRAPH_CODE_BITS; len++) {
        next[len] = word;
        word = (word + by_length[len]) << 1;
    }
}

static unsigned reversed(unsigned word, unsigned len)
{
    unsigned out = 0;

    for (unsigned i = 0; i < len; i++)
        out |= (word >> i & 1) << (len - 1 - i);
    return out;
}

static void give_words(struct graph_model *model, unsigned s, const unsigned by_length[GRAPH_CODE_BITS + 1])
{
    unsigned next[GRAPH_CODE_BITS + 1];

    first_words(by_length, next);
    for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS; symbol++) {
        unsigned len = model->lengths[s][symbol];
        model->words[s][symbol] = len ? (uint16_t)reversed(next[len]++, len) : 0;
    }
}

static void build_stream(struct graph_model *model, unsigned s)
{
    struct code_leaf leaves[GRAPH_SYMBOLS];
    unsigned by_length[GRAPH_CODE_BITS + 1] = {0}, n = 0;

    for (uint32_t symbol = 0; symbol < GRAPH_SYMBOLS; symbol++)
        if (model->counts[s][symbol])
            leaves[n++] = (struct code_leaf){model->counts[s][symbol], symbol};
    memset(model->lengths[s], 0, sizeof model->lengths[s]);
    if (n >= 2) {
        qsort(leaves, n, sizeof *leaves, compare_leaves);
        count_lengths(leaves, n, by_length);
        repair_lengths(by_length);
        for (unsigned len = GRAPH_CODE_BITS, i = 0; len > 0; len--)
            for (unsigned k = 0; k < by_length[len]; k++)
                model->lengths[s][leaves[i++].symbol] = (uint8_t)len;
    }
    give_words(model, s, by_length);
}

/* Whether a list, in whatever graph, can need this symbol. */
static bool possible(unsigned s, unsigned symbol)
{
    uint32_t least = wb_graph_bucket_base(symbol / 4);
    unsigned flags = symbol % 4;

    if (s == GRAPH_HEAD_FIRST)
        return least == 0 && (flags & GRAPH_FLAG_BLOCKS) == 0;
    if (s <= GRAPH_HEAD_EDITED)
        return least <= GRAPH_WINDOW;
    if (s <= GRAPH_BLOCK_COPY || s == GRAPH_EXTRAS)
        return least <= GRAPH_CHUNK_ARCS && flags == 0;
    if (s == GRAPH_FIRST_NEW || s == GRAPH_FIRST_EXTRA)
        return true;
    return s == GRAPH_DEGREE || s == GRAPH_RUN ? flags == 0 : flags <= GRAPH_FLAG_RUN;
}

void wb_graph_model_build(struct graph_model *model, bool whole)
{
    for (unsigned s = 0; s < GRAPH_STREAMS; s++) {
        for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS && !whole; symbol++)
            model->counts[s][symbol] += possible(s, symbol);
        build_stream(model, s);
    }
}

void wb_graph_model_learn(struct graph_model *model)
{
    for (unsigned s = 0; s < GRAPH_STREAMS; s++)
        for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS; symbol++)
            model->costs[s][symbol] = (uint8_t)(model->lengths[s][symbol] + wb_graph_bucket_bits(symbol / 4));
    memset(model->counts, 0, sizeof model->counts);
}

/* ---- codes as bytes ---------------------------------------------------------------------------- */

/*
 * For each stream: the number of symbols (varint), then for each symbol a byte: its length in the lower half, and in
 * the upper half how many symbols were left out since the one before; 15 means that a varint follows with 15 less.
 * The only symbol of a stream has length 0.
 */
int wb_graph_model_write(const struct graph_model *model, struct wb_buf *out)
{
    int err = 0;

    for (unsigned s = 0; s < GRAPH_STREAMS && err == 0; s++) {
        unsigned n = 0, expected = 0;
        char head[WB_VARINT_MAX];
        for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS; symbol++)
            n += model->counts[s][symbol] != 0;
        err = wb_buf_append(out, head, wb_put_varint(head, n));
        for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS && err == 0; symbol++) {
            if (model->counts[s][symbol] == 0)
                continue;
            char entry[1 + WB_VARINT_MAX];
            unsigned left_out = symbol - expected;
            size_t len = 1;
            entry[0] = (char)((left_out < 15 ? left_out : 15) << 4 | model->lengths[s][symbol]);
            if (left_out >= 15)
                len += wb_put_varint(entry + 1, left_out - 15);
            err = wb_buf_append(out, entry, len);
            expected = symbol + 1;
        }
    }
    return err;
}

/* A stream without symbols decodes to a number that is valid nowhere. */
static void fill_empty(struct graph_entry *table)
{
    for (unsigned i = 0; i < 1 << GRAPH_CODE_BITS; i++)
        table[i] = (struct graph_entry){.extra = 31, .lead = 15};
}

static struct graph_entry entry_of(unsigned symbol, unsigned len)
{
    unsigned bucket = symbol / 4, extra = wb_graph_bucket_bits(bucket);
    struct graph_entry e = {0};

    e.bits = len & 15;
    e.extra = extra & 31;
    e.lead = wb_graph_bucket_base(bucket) >> extra & 15;
    e.flags = symbol & 3;
    return e;
}

/* Returns false unless the lengths form a code that is exactly full, or there is only one symbol. */
static bool fill_table(const uint8_t lengths[GRAPH_SYMBOLS], unsigned n, unsigned last, struct graph_entry *table)
{
    unsigned by_length[GRAPH_CODE_BITS + 1] = {0}, next[GRAPH_CODE_BITS + 1], total = 0;

    if (n == 1) {
        for (unsigned i = 0; i < 1 << GRAPH_CODE_BITS; i++)
            table[i] = entry_of(last, 0);
        return lengths[last] == 0;
    }
    for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS; symbol++)
        if (lengths[symbol]) {
            by_length[lengths[symbol]]++;
            total += 1u << (GRAPH_CODE_BITS - lengths[symbol]);
        }
    if (total != 1u << GRAPH_CODE_BITS)
        return false;
    first_words(by_length, next);
    for (unsigned symbol = 0; symbol < GRAPH_SYMBOLS; symbol++) {
        unsigned len = lengths[symbol];
        if (len == 0)
            continue;
        unsigned word = reversed(next[len]++, len);
        for (unsigned i = word; i < 1 << GRAPH_CODE_BITS; i += 1u << len)
            table[i] = entry_of(symbol, len);
    }
    return true;
}

static bool read_stream(const char **p, const char *end, struct graph_entry *table)
{
    uint8_t lengths[GRAPH_SYMBOLS] = {0};
    uint64_t n, symbol = 0, more;

    if (!wb_get_varint(p, end, &n) || n > GRAPH_SYMBOLS)
        return false;
    if (n == 0) {
        fill_empty(table);
        return true;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (*p >= end)
            return false;
        uint8_t entry = (uint8_t)*(*p)++;
        symbol += (uint64_t)(i > 0) + (entry >> 4);
        if (entry >> 4 == 15) {
            if (!wb_get_varint(p, end, &more) || more > GRAPH_SYMBOLS)
                return false;
            symbol += more;
        }
        if (symbol >= GRAPH_SYMBOLS || (entry & 15) > GRAPH_CODE_BITS || ((entry & 15) == 0 && n > 1))
            return false;
        lengths[symbol] = entry & 15;
    }
    return fill_table(lengths, (unsigned)n, (unsigned)symbol, table);
}

int wb_graph_codes_read(struct wb_slice bytes, const char *name, struct graph_codes *codes_out)
{
    const char *p = bytes.ptr, *end = bytes.ptr + bytes.len;

    for (unsigned s = 0; s < GRAPH_STREAMS; s++)
        if (!read_stream(&p, end, codes_out->entries[s]))
            return wb_fail(WB_E_CORRUPT, "%s: the codes of the graph are damaged", name);
    if (p != end)
        return wb_fail(WB_E_CORRUPT, "%s: bytes follow the codes of the graph", name);
    return 0;
}
