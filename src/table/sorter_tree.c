/*
 * sorter_tree.c - a loser tree: merges sorted inputs without comparing the same bytes twice.
 *
 * Each inner node of the tree holds the input that lost there, and the number of bytes that its key shares with the key
 * that beat it. After a winner has been returned, its input advances to a new key, and the input knows how many bytes
 * the new key shares with the old one. The losers on the path to the root were all beaten by that same old key. So at
 * each node two numbers are compared that measure the distance to the same key: the one that shares more is nearer to
 * it and therefore smaller. Only if the numbers are equal are bytes compared, and then only the bytes after the shared
 * ones.
 *
 * The tree also returns how many bytes each key shares with the previous one, which is what front coding needs. It
 * never copies a record: the caller reads it from the winning input.
 */
#include "base/mem.h"
#include "table/sorter.h"

#define NOBODY UINT32_MAX

/*
 * Whether input b comes before input a. Their keys are known to share the first `shared` bytes; *shared_out is how many
 * they really share.
 */
static bool comes_before(const struct wb_sorter_tree *tree, uint32_t a, uint32_t b, int32_t shared, int32_t *shared_out)
{
    struct wb_slice x = tree->inputs[a]->key, y = tree->inputs[b]->key;
    size_t from = (size_t)shared;
    size_t n = from + wb_table_key_shared(wb_slice(x.ptr + from, x.len - from), wb_slice(y.ptr + from, y.len - from));

    *shared_out = (int32_t)n;
    if (n == x.len || n == y.len)
        return x.len == y.len ? b < a : n == y.len;
    return (uint8_t)y.ptr[n] < (uint8_t)x.ptr[n];
}

/*
 * The contender meets the loser of a node: the greater of the two stays at the node, the other becomes the contender.
 */
static inline void play(const struct wb_sorter_tree *tree, struct wb_sorter_tree_node *node,
                        struct wb_sorter_tree_node *contender)
{
    struct wb_sorter_tree_node was = *node;
    int32_t shared = was.shared;

    if (contender->shared > was.shared || was.shared < 0)
        return;
    if (contender->shared == was.shared && !comes_before(tree, contender->input, was.input, was.shared, &shared)) {
        node->shared = shared;
        return;
    }
    node->input = contender->input;
    node->shared = contender->shared == was.shared ? shared : contender->shared;
    *contender = was;
}

/* Reads the first record of input i and plays it up the tree, as far as the first node that has no loser yet. */
static int enter(struct wb_sorter_tree *tree, uint32_t i)
{
    WB_CHECK(tree->nodes != NULL);
    WB_CHECK(i < tree->count);
    int more = tree->inputs[i]->advance(tree->inputs[i]);
    struct wb_sorter_tree_node contender = {i, more == 1 ? 0 : -1};

    if (more < 0)
        return more;
    for (uint32_t at = (i + tree->count) / 2; at > 0; at /= 2) {
        if (tree->nodes[at].input == NOBODY) {
            tree->nodes[at] = contender;
            return 0;
        }
        play(tree, &tree->nodes[at], &contender);
    }
    tree->nodes[0] = contender;
    return 0;
}

int wb_sorter_tree_init(struct wb_sorter_tree *tree, struct wb_sorter_input **inputs, size_t count)
{
    int err = 0;

    WB_CHECK(inputs != NULL);
    WB_CHECK(count < NOBODY / 2);
    *tree = (struct wb_sorter_tree){.inputs = inputs, .count = (uint32_t)count};
    tree->nodes = wb_alloc((count + 1) * sizeof *tree->nodes);
    if (!tree->nodes)
        return WB_E_NOMEM;
    for (size_t i = 0; i <= count; i++)
        tree->nodes[i] = (struct wb_sorter_tree_node){NOBODY, -1};
    for (uint32_t i = 0; i < tree->count && err == 0; i++)
        err = enter(tree, i);
    WB_CHECK(err < 0 || count == 0 || tree->nodes[0].input < count); /* there is a winner */
    return err;
}

void wb_sorter_tree_release(struct wb_sorter_tree *tree)
{
    WB_CHECK(tree->count == 0 || tree->inputs != NULL);
    WB_CHECK(!tree->started || tree->nodes != NULL);
    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->inputs[i])
            tree->inputs[i]->close(tree->inputs[i]);
    wb_free(tree->inputs);
    wb_free(tree->nodes);
    *tree = (struct wb_sorter_tree){0};
}

int wb_sorter_tree_next(struct wb_sorter_tree *tree, const struct wb_sorter_input **record_out, size_t *shared_out)
{
    struct wb_sorter_tree_node winner = tree->nodes[0];

    *record_out = NULL;
    *shared_out = 0;
    if (tree->started && tree->count && winner.shared >= 0) {
        struct wb_sorter_input *input = tree->inputs[winner.input];
        int more = input->advance(input);
        if (more < 0)
            return more;
        winner.shared = more ? (int32_t)input->shared : -1;
        for (uint32_t at = (winner.input + tree->count) / 2; at > 0; at /= 2)
            play(tree, &tree->nodes[at], &winner);
        tree->nodes[0] = winner;
    }
    tree->started = true;
    if (tree->count == 0 || winner.shared < 0)
        return 0;
    WB_CHECK(winner.input < tree->count);
    *record_out = tree->inputs[winner.input];
    *shared_out = (size_t)winner.shared;
    WB_CHECK(*shared_out <= (*record_out)->key.len);
    return 1;
}
