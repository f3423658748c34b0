/*
 * graph_encode.c - turns lists of successors into tokens, chooses references, and writes bits.
 *
 * The tokens of a list:
 *
 *   head        which list of the chunk it refers to, counted backwards; 0: none
 *   [blocks]    if the head says so: the reference is cut into blocks that are copied and left out in turn, and the
 *               first is copied (it may be empty). The last block is not listed; it reaches to the end.
 *   [count]     if the head says so: the number of successors that are not copied (extras)
 *   [first      their numbers: the first one relative to the node, the others as gaps. Consecutive numbers are a run:
 *    gap...]    its first number, with a flag, and its length.
 */
#include "graph/graph_encode.h"

/* A list to be coded, and what is known about its surroundings. */
struct list_case {
    uint32_t node;
    const uint32_t *list;
    size_t count;
    unsigned head; /* the stream of its head */
};

void wb_graph_gather_release(struct graph_gather *chunk)
{
    wb_vec_release(&chunk->arcs);
    wb_vec_release(&chunk->tokens);
}

bool wb_graph_gather_fits(const struct graph_gather *chunk, size_t count)
{
    return chunk->nodes == 0 || (chunk->nodes < GRAPH_CHUNK_NODES && chunk->arcs.count <= GRAPH_CHUNK_ARCS &&
                                 count <= GRAPH_CHUNK_ARCS - chunk->arcs.count);
}

int wb_graph_gather_add(struct graph_gather *chunk, const uint32_t *list, size_t count)
{
    WB_CHECK(wb_graph_gather_fits(chunk, count));
    int err = wb_vec_reserve(&chunk->arcs, chunk->arcs.count + count);
    if (err < 0)
        return err;
    if (count)
        memcpy(chunk->arcs.items + chunk->arcs.count, list, count * sizeof *list);
    chunk->arcs.count += count;
    chunk->starts[++chunk->nodes] = chunk->arcs.count;
    return 0;
}

/* ---- tokens ------------------------------------------------------------------------------------ */

/* Takes tokens: adds up what they cost, or keeps them; an error stays. */
struct token_sink {
    const struct graph_model *model; /* NULL: keep the tokens */
    uint64_t cost;
    struct graph_tokens *tokens;
    int err;
};

static void put_token(struct token_sink *sink, unsigned stream, uint32_t value, unsigned flags)
{
    if (sink->model)
        sink->cost += sink->model->costs[stream][wb_graph_bucket(value) * 4 + flags];
    else if (sink->err == 0)
        sink->err = wb_vec_push(sink->tokens, (struct graph_token){value, (uint8_t)stream, (uint8_t)flags});
}

/* The blocks of a reference, and the successors that it does not have. */
struct copy_plan {
    uint32_t blocks[GRAPH_CHUNK_ARCS + 1];
    size_t block_count;
    uint32_t extras[GRAPH_CHUNK_ARCS];
    size_t extra_count;
    size_t copied;
};

/* Compares a list with a reference. Both have at most GRAPH_CHUNK_ARCS successors. */
static void plan_copy(const struct list_case *c, const uint32_t *ref, size_t ref_count, struct copy_plan *plan)
{
    bool copying = true;
    uint32_t run = 0;
    size_t i = 0;

    plan->block_count = plan->extra_count = plan->copied = 0;
    for (size_t j = 0; j < ref_count; j++) {
        while (i < c->count && c->list[i] < ref[j])
            plan->extras[plan->extra_count++] = c->list[i++];
        bool same = i < c->count && c->list[i] == ref[j];
        if (same != copying) {
            plan->blocks[plan->block_count++] = run;
            copying = same;
            run = 0;
        }
        run++;
        plan->copied += same;
        i += same;
    }
    while (i < c->count)
        plan->extras[plan->extra_count++] = c->list[i++];
}

static unsigned gap_stream(uint32_t gap)
{
    return gap < 4 ? GRAPH_GAP_NEAR : gap < 64 ? GRAPH_GAP_MIDDLE : GRAPH_GAP_FAR;
}

static void put_numbers(struct token_sink *sink, uint32_t node, const uint32_t *list, size_t count, bool referring)
{
    unsigned stream = referring ? GRAPH_FIRST_EXTRA : GRAPH_FIRST_NEW;
    unsigned next = GRAPH_GAP_START;

    for (size_t i = 0; i < count;) {
        uint32_t value = list[i] - (i ? list[i - 1] + 1 : node);
        unsigned flags = 0;
        size_t run = 1;
        if (i == 0 && list[0] < node) {
            value = node - list[0];
            flags = GRAPH_FLAG_BEFORE;
        }
        while (i + run < count && list[i + run] == list[i] + run)
            run++;
        if (i)
            next = gap_stream(value);
        if (run >= GRAPH_RUN_MIN) {
            put_token(sink, stream, value, flags | GRAPH_FLAG_RUN);
            put_token(sink, GRAPH_RUN, (uint32_t)(run - GRAPH_RUN_MIN), 0);
            stream = GRAPH_GAP_RUN;
            i += run;
        } else {
            put_token(sink, stream, value, flags);
            stream = next;
            i++;
        }
    }
}

static void put_new_list(struct token_sink *sink, const struct list_case *c)
{
    put_token(sink, c->head, 0, c->count ? GRAPH_FLAG_EXTRAS : 0);
    if (c->count == 0)
        return;
    put_token(sink, GRAPH_DEGREE, (uint32_t)(c->count - 1), 0);
    put_numbers(sink, c->node, c->list, c->count, false);
}

static void put_referring_list(struct token_sink *sink, const struct list_case *c, unsigned back,
                               const struct copy_plan *plan)
{
    unsigned flags = (plan->block_count ? GRAPH_FLAG_BLOCKS : 0) | (plan->extra_count ? GRAPH_FLAG_EXTRAS : 0);

    put_token(sink, c->head, back, flags);
    if (plan->block_count)
        put_token(sink, GRAPH_BLOCKS, (uint32_t)(plan->block_count - 1), 0);
    for (size_t i = 0; i < plan->block_count; i++) {
        if (i == 0)
            put_token(sink, GRAPH_BLOCK_FIRST, plan->blocks[i], 0);
        else
            put_token(sink, i % 2 ? GRAPH_BLOCK_SKIP : GRAPH_BLOCK_COPY, plan->blocks[i] - 1, 0);
    }
    if (plan->extra_count) {
        put_token(sink, GRAPH_EXTRAS, (uint32_t)(plan->extra_count - 1), 0);
        put_numbers(sink, c->node, plan->extras, plan->extra_count, true);
    }
}

/* ---- choosing ---------------------------------------------------------------------------------- */

static struct list_case case_of(const struct graph_gather *chunk, unsigned i, unsigned head)
{
    return (struct list_case){.node = chunk->first + i,
                              .list = chunk->arcs.items + chunk->starts[i],
                              .count = chunk->starts[i + 1] - chunk->starts[i],
                              .head = head};
}

static void plan_back(const struct graph_gather *chunk, unsigned i, const struct list_case *c, unsigned back,
                      struct copy_plan *plan)
{
    size_t from = chunk->starts[i - back];

    plan_copy(c, chunk->arcs.items + from, chunk->starts[i - back + 1] - from, plan);
}

/* Chooses the reference of list i. Returns the stream of the next list's head. */
static unsigned choose_back(struct graph_gather *chunk, unsigned i, unsigned head, const struct graph_model *model)
{
    struct list_case c = case_of(chunk, i, head);
    struct token_sink best = {.model = model};
    unsigned next = GRAPH_HEAD_NEW;

    chunk->back[i] = 0;
    put_new_list(&best, &c);
    for (unsigned back = 1; back <= GRAPH_WINDOW && back <= i && c.count; back++) {
        struct token_sink trial = {.model = model};
        struct copy_plan plan;
        plan_back(chunk, i, &c, back, &plan);
        if (plan.copied == 0)
            continue;
        put_referring_list(&trial, &c, back, &plan);
        if (trial.cost < best.cost) {
            best.cost = trial.cost;
            chunk->back[i] = (uint8_t)back;
            next = plan.block_count || plan.extra_count ? GRAPH_HEAD_EDITED : GRAPH_HEAD_SAME;
        }
        if (plan.block_count == 0 && plan.extra_count == 0)
            break; /* the same list: only a head is left to write, and those of nearer lists are the shorter ones */
    }
    return next;
}

void wb_graph_chunk_choose(struct graph_gather *chunk, const struct graph_model *model)
{
    unsigned head = GRAPH_HEAD_FIRST;

    for (unsigned i = 0; i < chunk->nodes; i++)
        head = choose_back(chunk, i, head, model);
}

/* Leaves the tokens of list i in chunk->tokens, and moves *head on to the next list. */
static int make_tokens(struct graph_gather *chunk, unsigned i, unsigned *head)
{
    struct list_case c = case_of(chunk, i, *head);
    struct token_sink sink = {.tokens = &chunk->tokens};
    struct copy_plan plan;

    wb_vec_clear(&chunk->tokens);
    if (chunk->back[i] == 0) {
        put_new_list(&sink, &c);
        *head = GRAPH_HEAD_NEW;
    } else {
        plan_back(chunk, i, &c, chunk->back[i], &plan);
        put_referring_list(&sink, &c, chunk->back[i], &plan);
        *head = plan.block_count || plan.extra_count ? GRAPH_HEAD_EDITED : GRAPH_HEAD_SAME;
    }
    return sink.err;
}

int wb_graph_chunk_count(struct graph_gather *chunk, struct graph_model *model)
{
    unsigned head = GRAPH_HEAD_FIRST;
    int err = 0;

    for (unsigned i = 0; i < chunk->nodes && err == 0; i++) {
        err = make_tokens(chunk, i, &head);
        for (size_t k = 0; k < chunk->tokens.count && err == 0; k++) {
            const struct graph_token *t = &chunk->tokens.items[k];
            model->counts[t->stream][wb_graph_bucket(t->value) * 4 + t->flags]++;
        }
    }
    return err;
}

/* ---- bits -------------------------------------------------------------------------------------- */

/* Bits that do not fill a byte yet. */
struct bit_pen {
    struct wb_buf *out;
    uint64_t word;
    unsigned bits;
};

static int put_bits(struct bit_pen *pen, uint64_t value, unsigned bits)
{
    pen->word |= value << pen->bits;
    pen->bits += bits;
    WB_CHECK(pen->bits <= 64);
    char bytes[8];
    wb_put64(bytes, pen->word);
    size_t whole = pen->bits / 8;
    pen->word = whole < 8 ? pen->word >> (whole * 8) : 0;
    pen->bits %= 8;
    return wb_buf_append(pen->out, bytes, whole);
}

static int put_coded(struct bit_pen *pen, const struct graph_model *model, const struct graph_token *t)
{
    unsigned bucket = wb_graph_bucket(t->value), symbol = bucket * 4 + t->flags;
    unsigned len = model->lengths[t->stream][symbol];

    WB_CHECK(model->counts[t->stream][symbol] > 0);
    uint64_t rest = t->value - wb_graph_bucket_base(bucket);
    return put_bits(pen, rest << len | model->words[t->stream][symbol], len + wb_graph_bucket_bits(bucket));
}

int wb_graph_chunk_encode(struct graph_gather *chunk, const struct graph_model *model, struct wb_buf *out)
{
    struct bit_pen pen = {.out = out};
    unsigned head = GRAPH_HEAD_FIRST;
    int err = 0;

    for (unsigned i = 0; i < chunk->nodes && err == 0; i++) {
        err = make_tokens(chunk, i, &head);
        for (size_t k = 0; k < chunk->tokens.count && err == 0; k++)
            err = put_coded(&pen, model, &chunk->tokens.items[k]);
    }
    return err < 0 || pen.bits == 0 ? err : put_bits(&pen, 0, 8 - pen.bits);
}
