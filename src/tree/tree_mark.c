/*
 * tree_mark.c - marks: states that stay available although nobody holds them, not even after all processes have ended
 * (tree.h). The root record has the number of the transaction of each marked state, and a random token, by which a mark
 * is told from another one of the same transaction, made here or in a copy of this file. The free-space map treats a
 * marked state like one that a reader holds (tree_space.c).
 *
 * Where the pages of a marked state are is not in the file. Whoever marked it keeps that, as bytes:
 *
 *   +-------+-----+-------+-------+----------------------+- -  -+
 *   | token | txn | pages | count | number, level, root  |      |     of each table that is not empty
 *   +-------+-----+-------+-------+----------------------+- -  -+
 *       4      8      4       1      1      1    4+8+8
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "os/random.h"
#include "tree/tree_own.h"

enum { HEAD_BYTES = 4 + 8 + 4 + 1, TABLE_BYTES = 1 + 1 + 4 + 8 + 8 };
_Static_assert(HEAD_BYTES + WB_TREE_TABLES_MAX * TABLE_BYTES == WB_TREE_MARK_BYTES_MAX, "room for all tables");

/* ---- as bytes ------------------------------------------------------------------------------------------------- */

size_t wb_tree_mark_encode(const struct wb_tree_marked *mark, char bytes_out[WB_TREE_MARK_BYTES_MAX])
{
    const struct wb_tree_state *state = &mark->state;
    char *at = bytes_out + HEAD_BYTES;

    WB_CHECK(mark->token != 0);
    WB_CHECK(state->txn > 0);
    wb_put32(bytes_out, mark->token);
    wb_put64(bytes_out + 4, state->txn);
    wb_put32(bytes_out + 12, state->pages);
    bytes_out[16] = 0;
    for (unsigned i = 0; i < WB_TREE_TABLES_MAX; i++) {
        const struct wb_tree_root *root = &state->roots[i];
        if (root->ref.page == 0)
            continue;
        at[0] = (char)i;
        at[1] = (char)root->level;
        wb_put32(at + 2, root->ref.page);
        wb_put64(at + 6, root->ref.check);
        wb_put64(at + 14, root->rows);
        at += TABLE_BYTES;
        bytes_out[16]++;
    }
    return (size_t)(at - bytes_out);
}

bool wb_tree_mark_decode(struct wb_slice bytes, struct wb_tree_marked *mark_out)
{
    struct wb_tree_state *state = &mark_out->state;

    *mark_out = (struct wb_tree_marked){0};
    if (bytes.len < HEAD_BYTES || (bytes.len - HEAD_BYTES) != (size_t)(uint8_t)bytes.ptr[16] * TABLE_BYTES)
        return false;
    mark_out->token = wb_get32(bytes.ptr);
    state->txn = wb_get64(bytes.ptr + 4);
    state->pages = wb_get32(bytes.ptr + 12);
    for (const char *at = bytes.ptr + HEAD_BYTES; at < bytes.ptr + bytes.len; at += TABLE_BYTES) {
        unsigned table = (uint8_t)at[0];
        struct wb_tree_root root = {{wb_get32(at + 2), wb_get64(at + 6)}, (uint8_t)at[1], wb_get64(at + 14)};
        if (table >= WB_TREE_TABLES_MAX || state->roots[table].ref.page || !wb_tree_ref_valid(root.ref.page) ||
            root.ref.page >= state->pages || root.level >= WB_TREE_LEVELS_MAX)
            return false;
        state->roots[table] = root;
    }
    return mark_out->token != 0 && state->txn > 0;
}

/* ---- in the root record --------------------------------------------------------------------------------------- */

/* The place of a mark in a state; WB_TREE_MARKS_MAX if it is not there. */
static unsigned place_of(const struct wb_tree_state *state, const struct wb_tree_marked *mark)
{
    unsigned i = 0;

    while (i < WB_TREE_MARKS_MAX && (state->marks[i].txn != mark->state.txn || state->marks[i].token != mark->token))
        i++;
    return i;
}

int wb_tree_mark(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_marked *mark_out)
{
    struct wb_tree_mark *marks = tree->next.marks;
    unsigned at = 0;
    uint64_t held;

    WB_CHECK(tree->writing);
    WB_CHECK(state->txn > 0 && state->txn < tree->next.txn);
    *mark_out = (struct wb_tree_marked){.state = *state};
    int found = wb_tree_first_held(tree, state->txn, state->txn + 1, &held);
    if (found == 0) /* nobody knows whether it is still there */
        return wb_fail(WB_E_INVALID, "%s: a state that is not held cannot be marked", tree->file.path);
    if (found < 0)
        return found;
    while (mark_out->token == 0 || place_of(&tree->next, mark_out) < WB_TREE_MARKS_MAX)
        wb_random_bytes(&mark_out->token, sizeof mark_out->token);
    for (unsigned i = 0; i < WB_TREE_MARKS_MAX && marks[at].txn; i++) /* a free place, or that of the oldest */
        if (marks[i].txn < marks[at].txn)
            at = i;
    marks[at] = (struct wb_tree_mark){state->txn, mark_out->token};
    return 0;
}

bool wb_tree_unmark(struct wb_tree *tree, const struct wb_tree_marked *mark)
{
    unsigned at = place_of(&tree->next, mark);

    WB_CHECK(tree->writing);
    if (at == WB_TREE_MARKS_MAX)
        return false;
    tree->next.marks[at] = (struct wb_tree_mark){0};
    return true;
}

int wb_tree_is_marked(struct wb_tree *tree, const struct wb_tree_marked *mark, bool *marked_out)
{
    struct wb_tree_state newest;
    int err = wb_tree_look(tree, &newest);

    *marked_out = err == 0 && place_of(&newest, mark) < WB_TREE_MARKS_MAX;
    return err;
}
