/*
 * graph_cursor.c - decodes lists of successors. graph_encode.c describes the tokens that they consist of.
 *
 * A cursor holds one chunk: the lists that it has decoded so far, and where the next one begins. The bytes may be
 * anybody's, so every number is checked before it is used; all lists of a chunk together are at most GRAPH_CHUNK_ARCS
 * numbers, except the only list of a chunk, which has at most graph->longest.
 */
#include "base/vec.h"
#include "graph/graph_cursor.h"

enum { LIST_ROOM = 16 }; /* copies may write so many numbers too many */

/* The end of a chunk is checked after every second token at the latest; a token is read from a word of 8 bytes. */
_Static_assert(2 * GRAPH_TOKEN_BITS_MAX / 8 + 1 + 8 <= GRAPH_FOOT_BYTES, "reading too far stays inside the file");

struct wb_graph_cursor {
    const struct wb_graph *graph;
    struct graph_place place; /* of the chunk */
    unsigned done;            /* lists of it that were decoded */
    unsigned head;            /* the stream of the next list's head */
    struct graph_bits bits;   /* where the next list begins */
    uint64_t end;             /* of the chunk, in bits */
    uint32_t next;            /* node for wb_graph_next() */
    uint32_t *lists;          /* one after the other */
    size_t cap;
    size_t starts[GRAPH_CHUNK_NODES + 1];
    uint32_t copied[GRAPH_CHUNK_ARCS + LIST_ROOM]; /* scratch */
    uint32_t extras[GRAPH_CHUNK_ARCS + LIST_ROOM];
};

int wb_graph_cursor_open(const struct wb_graph *graph, struct wb_graph_cursor **cursor_out)
{
    struct wb_graph_cursor *c = wb_alloc_zero(1, sizeof *c);

    *cursor_out = NULL;
    if (!c)
        return WB_E_NOMEM;
    c->graph = graph;
    /* The lists of a chunk, and a list that is being copied before it is known whether it fits. */
    int err = wb_grow(&c->lists, &c->cap, 2 * GRAPH_CHUNK_ARCS + LIST_ROOM);
    if (err < 0) {
        wb_free(c);
        return err;
    }
    *cursor_out = c;
    return 0;
}

void wb_graph_cursor_close(struct wb_graph_cursor *cursor)
{
    if (!cursor)
        return;
    wb_free(cursor->lists);
    wb_free(cursor);
}

/* ---- one list ---------------------------------------------------------------------------------- */

/* Copies count numbers, and up to LIST_ROOM - 1 more: most blocks are short, and this has no branch for them. */
static inline void copy_numbers(uint32_t *to, const uint32_t *from, size_t count)
{
    for (size_t i = 0; i < count; i += 8) {
        uint32_t eight[8]; /* in registers; the lists may be neighbours, so that these ranges overlap */
        memcpy(eight, from + i, sizeof eight);
        memcpy(to + i, eight, sizeof eight);
    }
}

/*
 * Copies the blocks of the reference to `to`, which has room for the whole reference. Returns how many numbers that
 * were, or SIZE_MAX if the blocks are longer than the reference.
 */
static size_t copy_blocks(struct wb_graph_cursor *c, const uint32_t *ref, size_t ref_count, uint32_t *to)
{
    const struct graph_codes *codes = c->graph->codes;
    struct graph_bits bits = c->bits;
    unsigned flags;
    size_t blocks = (size_t)wb_graph_read(&bits, codes->entries[GRAPH_BLOCKS], &flags) + 1;
    size_t at = 0, copied = 0;

    for (size_t i = 0; i < blocks; i++) {
        unsigned stream = i == 0 ? GRAPH_BLOCK_FIRST : i % 2 ? GRAPH_BLOCK_SKIP : GRAPH_BLOCK_COPY;
        if (bits.at > c->end)
            return SIZE_MAX;
        size_t len = (size_t)wb_graph_read(&bits, codes->entries[stream], &flags) + (i > 0);
        if (len > ref_count - at)
            return SIZE_MAX;
        if (i % 2 == 0) {
            copy_numbers(to + copied, ref + at, len);
            copied += len;
        }
        at += len;
    }
    if (blocks % 2 == 0) {
        copy_numbers(to + copied, ref + at, ref_count - at);
        copied += ref_count - at;
    }
    c->bits = bits;
    return copied;
}

/*
 * Decodes count numbers, ascending and less than the number of nodes, to `to`. Returns false if they are not. A gap
 * that leads past the highest 32-bit number is noticed because the arithmetic has 64 bits.
 */
static bool read_numbers(struct wb_graph_cursor *c, uint32_t node, size_t count, bool referring, uint32_t *to)
{
    const struct graph_entry(*tables)[1 << GRAPH_CODE_BITS] = c->graph->codes->entries;
    const uint64_t nodes = c->graph->nodes;
    struct graph_bits bits = c->bits;
    unsigned flags;
    uint64_t gap = wb_graph_read(&bits, tables[referring ? GRAPH_FIRST_EXTRA : GRAPH_FIRST_NEW], &flags);
    uint64_t v = flags & GRAPH_FLAG_BEFORE ? node - gap : node + gap;
    unsigned stream = GRAPH_GAP_START;

    for (size_t i = 0;;) {
        if (v >= nodes || bits.at > c->end)
            return false;
        to[i++] = (uint32_t)v++;
        if (flags & GRAPH_FLAG_RUN) {
            unsigned none;
            size_t more = (size_t)wb_graph_read(&bits, tables[GRAPH_RUN], &none) + GRAPH_RUN_MIN - 1;
            if (more > count - i || more > nodes - v)
                return false;
            for (size_t k = 0; k < more; k++)
                to[i + k] = (uint32_t)(v + k);
            i += more;
            v += more;
            stream = GRAPH_GAP_RUN;
        }
        if (i >= count)
            break;
        gap = wb_graph_read(&bits, tables[stream], &flags);
        v += gap;
        stream = gap < 4 ? GRAPH_GAP_NEAR : gap < 64 ? GRAPH_GAP_MIDDLE : GRAPH_GAP_FAR;
    }
    c->bits = bits;
    return true;
}

/* Merges two ascending lists. Returns false if they have a number in common. */
static bool merge_lists(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, uint32_t *to)
{
    const uint32_t *a_end = a + a_count, *b_end = b + b_count;
    bool common = false;

    while (a < a_end && b < b_end) {
        uint32_t x = *a, y = *b;
        common |= x == y;
        *to++ = x < y ? x : y;
        a += x < y;
        b += x >= y;
    }
    if (a < a_end)
        memcpy(to, a, (size_t)(a_end - a) * sizeof *a);
    else
        memcpy(to, b, (size_t)(b_end - b) * sizeof *b);
    return !common;
}

/* Decodes a list without a reference behind the other lists. Returns its length, or a negative code. */
static int64_t read_new_list(struct wb_graph_cursor *c, uint32_t node, size_t start)
{
    unsigned flags;
    size_t count = (size_t)wb_graph_read(&c->bits, c->graph->codes->entries[GRAPH_DEGREE], &flags) + 1;

    if (count > c->graph->longest || (c->place.nodes > 1 && count > GRAPH_CHUNK_ARCS - start))
        return WB_E_CORRUPT;
    if (wb_grow(&c->lists, &c->cap, start + count + LIST_ROOM) < 0)
        return WB_E_NOMEM;
    return read_numbers(c, node, count, false, c->lists + start) ? (int64_t)count : WB_E_CORRUPT;
}

/* Decodes a list that refers to the one `back` lists before it. */
static int64_t read_referring_list(struct wb_graph_cursor *c, uint32_t node, size_t start, uint64_t back, unsigned has)
{
    unsigned flags;

    if (back > c->done)
        return WB_E_CORRUPT;
    const uint32_t *ref = c->lists + c->starts[c->done - back];
    size_t count = c->starts[c->done - back + 1] - c->starts[c->done - back], extras = 0;
    uint32_t *copy_to = has & GRAPH_FLAG_EXTRAS ? c->copied : c->lists + start;
    if (has & GRAPH_FLAG_BLOCKS)
        count = copy_blocks(c, ref, count, copy_to);
    else
        copy_numbers(copy_to, ref, count);
    if (count > GRAPH_CHUNK_ARCS - start || c->bits.at > c->end)
        return WB_E_CORRUPT;
    if (!(has & GRAPH_FLAG_EXTRAS))
        return (int64_t)count;
    extras = (size_t)wb_graph_read(&c->bits, c->graph->codes->entries[GRAPH_EXTRAS], &flags) + 1;
    if (extras > GRAPH_CHUNK_ARCS - start - count || c->bits.at > c->end ||
        !read_numbers(c, node, extras, true, c->extras) ||
        !merge_lists(c->copied, count, c->extras, extras, c->lists + start))
        return WB_E_CORRUPT;
    return (int64_t)(count + extras);
}

/* Decodes the next list of the chunk. */
static int read_list(struct wb_graph_cursor *c)
{
    size_t start = c->starts[c->done];
    uint32_t node = c->place.first + c->done;
    unsigned has;
    int64_t count = 0;

    if (c->bits.at > c->end)
        return WB_E_CORRUPT;
    uint64_t back = wb_graph_read(&c->bits, c->graph->codes->entries[c->head], &has);
    if (c->bits.at > c->end)
        return WB_E_CORRUPT;
    if (back == 0) {
        c->head = GRAPH_HEAD_NEW;
        if (has & GRAPH_FLAG_EXTRAS)
            count = read_new_list(c, node, start);
    } else {
        c->head = has ? GRAPH_HEAD_EDITED : GRAPH_HEAD_SAME;
        count = read_referring_list(c, node, start, back, has);
    }
    if (count < 0 || c->bits.at > c->end)
        return count < 0 ? (int)count : WB_E_CORRUPT;
    c->starts[++c->done] = start + (size_t)count;
    return 0;
}

/* ---- chunks ------------------------------------------------------------------------------------ */

static void begin_chunk(struct wb_graph_cursor *c)
{
    c->done = 0;
    c->head = GRAPH_HEAD_FIRST;
    c->bits = (struct graph_bits){.bytes = c->graph->data + c->place.offset};
    c->end = c->place.bytes * 8;
    c->starts[0] = 0;
}

/* Makes sure that the cursor has the node's chunk, with at least its list decoded. */
static int bring(struct wb_graph_cursor *c, uint32_t node)
{
    int err = 0;

    if (node - c->place.first >= c->place.nodes) {
        if (c->place.nodes && node == c->place.first + c->place.nodes)
            err = wb_graph_place_next(c->graph, &c->place);
        else
            err = wb_graph_place_find(c->graph, node, &c->place);
        if (err < 0) {
            c->place = (struct graph_place){0};
            return err;
        }
        begin_chunk(c);
    }
    while (err == 0 && c->place.first + c->done <= node)
        err = read_list(c);
    if (err < 0) {
        uint32_t first = c->place.first;
        c->place = (struct graph_place){0};
        if (err == WB_E_CORRUPT)
            err = wb_fail(err, "%s: the lists from node %u on are damaged", c->graph->name, first);
    }
    return err;
}

static void hand_out(const struct wb_graph_cursor *c, uint32_t node, const uint32_t **list_out, size_t *count_out)
{
    unsigned i = node - c->place.first;

    *list_out = c->lists + c->starts[i];
    *count_out = c->starts[i + 1] - c->starts[i];
}

int wb_graph_successors(struct wb_graph_cursor *cursor, uint32_t node, const uint32_t **list_out, size_t *count_out)
{
    *list_out = NULL;
    *count_out = 0;
    if (node >= cursor->graph->nodes)
        return wb_fail(WB_E_INVALID, "%s has no node %u", cursor->graph->name, node);
    int err = bring(cursor, node);
    if (err == 0)
        hand_out(cursor, node, list_out, count_out);
    return err;
}

void wb_graph_seek(struct wb_graph_cursor *cursor, uint32_t node)
{
    cursor->next = node;
}

int wb_graph_next(struct wb_graph_cursor *cursor, uint32_t *node_out, const uint32_t **list_out, size_t *count_out)
{
    uint32_t node = cursor->next;

    *node_out = node;
    *list_out = NULL;
    *count_out = 0;
    if (node >= cursor->graph->nodes)
        return 0;
    int err = bring(cursor, node);
    if (err < 0)
        return err;
    hand_out(cursor, node, list_out, count_out);
    cursor->next = node + 1;
    return 1;
}

int wb_graph_verify(const struct wb_graph *graph)
{
    struct wb_graph_cursor *cursor;
    uint64_t arcs = 0, longest = 0;
    const uint32_t *list;
    uint32_t node;
    size_t count;
    int err = wb_graph_directory_check(graph);

    if (err == 0)
        err = wb_graph_cursor_open(graph, &cursor);
    if (err < 0)
        return err;
    while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
        arcs += count;
        longest = count > longest ? count : longest;
    }
    wb_graph_cursor_close(cursor);
    if (err == 0 && (arcs != graph->arcs || longest != graph->longest))
        return wb_fail(WB_E_CORRUPT, "%s: the graph does not have as many arcs as it says", graph->name);
    return err;
}
