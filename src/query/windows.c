/*
 * windows.c - which documents of a window match a plan.
 *
 * Two ways to evaluate a node: all its documents in the window, or only those that are still candidates. AND takes the
 * first way for its cheapest part and the second one for the others.
 */
#include "base/check.h"
#include "query/queryplan.h"

enum { FEW = 16 }; /* so few candidates are tested one part after the other, even in an OR */

/* Whether a node has what its kind needs. */
static bool is_whole(const struct wb_qnode *node)
{
    if (node->kind == WB_QNODE_LEAF)
        return node->leaf && node->item_count == 0;
    return !node->leaf && (node->kind == WB_QNODE_NOT ? node->item_count == 1 : node->item_count > 0);
}

uint32_t wb_qnode_next(const struct wb_qplan *plan, const struct wb_qnode *node, uint32_t from)
{
    uint32_t next = WB_DOCID_END;

    WB_CHECK(is_whole(node));
    switch (node->kind) {
    case WB_QNODE_LEAF:
        return wb_leaf_next(node->leaf, from);
    case WB_QNODE_NOT:
        return from < plan->searcher->pages ? from : WB_DOCID_END;
    case WB_QNODE_OR:
        for (size_t i = 0; i < node->item_count && next > from; i++) {
            uint32_t docid = wb_qnode_next(plan, node->items[i], from);
            next = docid < next ? docid : next;
        }
        return next;
    case WB_QNODE_AND:
        next = from;
        if (node->items[0]->kind == WB_QNODE_NOT)
            return from < plan->searcher->pages ? from : WB_DOCID_END;
        for (size_t i = 0; i < node->item_count && next != WB_DOCID_END; i++)
            if (node->items[i]->kind != WB_QNODE_NOT) {
                uint32_t docid = wb_qnode_next(plan, node->items[i], next);
                next = docid > next ? docid : next;
            }
        return next;
    }
    return WB_DOCID_END;
}

/* ---- candidates ---------------------------------------------------------------------------------- */

/* What is found is kept for the score, which may need it again. */
static void verify_leaf(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_window window,
                        struct wb_windowbits *bits)
{
    if (leaf->verify)
        wb_leaf_verify(plan, leaf, window, bits);
}

/* A negation that is not part of an AND with something else is about pages, not about other URLs. */
static void keep_pages(const struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits)
{
    struct wb_windowbits pages;

    wb_bits_clear(window, &pages);
    wb_bits_range(window, &pages, 0, plan->searcher->pages);
    wb_bits_and(window, bits, pages.word);
}

static void filter_or(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                      struct wb_windowbits *bits)
{
    struct wb_windowbits found, part;

    if (wb_bits_count(window, bits) > FEW) {
        wb_qnode_eval(plan, node, window, &part);
        wb_bits_and(window, bits, part.word);
        return;
    }
    wb_bits_clear(window, &found);
    for (size_t i = 0; i < node->item_count && wb_bits_any(window, bits); i++) {
        memcpy(part.word, bits->word, window.size / 8);
        if (node->items[i]->kind == WB_QNODE_NOT)
            keep_pages(plan, window, &part);
        wb_qnode_filter(plan, node->items[i], window, &part);
        for (uint32_t w = 0; w < window.size / 64; w++) {
            found.word[w] |= part.word[w];
            bits->word[w] &= ~part.word[w];
        }
    }
    memcpy(bits->word, found.word, window.size / 8);
}

static void filter_not(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                       struct wb_windowbits *bits)
{
    struct wb_windowbits part;

    memcpy(part.word, bits->word, window.size / 8);
    wb_qnode_filter(plan, node->items[0], window, &part);
    for (uint32_t w = 0; w < window.size / 64; w++)
        bits->word[w] &= ~part.word[w];
}

void wb_qnode_filter(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                     struct wb_windowbits *bits)
{
    WB_CHECK(is_whole(node));
    switch (node->kind) {
    case WB_QNODE_LEAF:
        wb_leaf_filter(node->leaf, window, bits);
        verify_leaf(plan, node->leaf, window, bits);
        break;
    case WB_QNODE_OR:
        filter_or(plan, node, window, bits);
        break;
    case WB_QNODE_NOT:
        filter_not(plan, node, window, bits);
        break;
    case WB_QNODE_AND:
        if (node->items[0]->kind == WB_QNODE_NOT)
            keep_pages(plan, window, bits);
        for (size_t i = 0; i < node->item_count && wb_bits_any(window, bits); i++)
            wb_qnode_filter(plan, node->items[i], window, bits);
        break;
    }
}

/* ---- all documents of a window --------------------------------------------------------------------- */

/* The parts of an AND one after the other. Verifying comes last; deferred leaves are left to the caller. */
static void eval_and(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window, bool defer,
                     struct wb_windowbits *bits)
{
    const struct wb_qnode *first = node->items[0];
    size_t i = 0;

    /* Negations only take away: something else must come first, unless there is nothing else. */
    WB_CHECK(first->kind != WB_QNODE_NOT || node->items[node->item_count - 1]->kind == WB_QNODE_NOT);

    wb_bits_clear(window, bits);
    if (first->kind == WB_QNODE_NOT)
        wb_bits_range(window, bits, 0, plan->searcher->pages);
    else if (first->kind == WB_QNODE_LEAF)
        wb_leaf_fill(node->items[i++]->leaf, window, bits);
    else
        wb_qnode_eval(plan, node->items[i++], window, bits);
    for (; i < node->item_count && wb_bits_any(window, bits); i++) {
        if (node->items[i]->kind == WB_QNODE_LEAF)
            wb_leaf_filter(node->items[i]->leaf, window, bits);
        else
            wb_qnode_filter(plan, node->items[i], window, bits);
    }
    for (i = 0; !defer && i < node->item_count && wb_bits_any(window, bits); i++)
        if (node->items[i]->kind == WB_QNODE_LEAF)
            verify_leaf(plan, node->items[i]->leaf, window, bits);
}

static void eval_leaf(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits)
{
    wb_bits_clear(window, bits);
    wb_leaf_fill(leaf, window, bits);
    verify_leaf(plan, leaf, window, bits);
    struct wb_leaf_words *words = leaf->kind == WB_LEAF_WORDS ? WB_WORDS_OF(leaf) : NULL;
    if (words && words->matched) {
        memcpy(words->matched->word, bits->word, window.size / 8);
        words->matched_at = window;
    }
}

static void eval_or(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                    struct wb_windowbits *bits)
{
    struct wb_windowbits part;

    wb_bits_clear(window, bits);
    for (size_t i = 0; i < node->item_count; i++) {
        const struct wb_qnode *item = node->items[i];
        if (item->kind == WB_QNODE_LEAF && !item->leaf->verify) {
            wb_leaf_fill(item->leaf, window, bits);
            continue;
        }
        wb_qnode_eval(plan, item, window, &part);
        for (uint32_t w = 0; w < window.size / 64; w++)
            bits->word[w] |= part.word[w];
    }
}

bool wb_qnode_eval(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                   struct wb_windowbits *bits)
{
    WB_CHECK(is_whole(node));
    WB_CHECK(wb_window_is_sound(window));
    switch (node->kind) {
    case WB_QNODE_LEAF:
        eval_leaf(plan, node->leaf, window, bits);
        break;
    case WB_QNODE_OR:
        eval_or(plan, node, window, bits);
        break;
    case WB_QNODE_AND:
        eval_and(plan, node, window, false, bits);
        break;
    case WB_QNODE_NOT:
        wb_bits_clear(window, bits);
        wb_bits_range(window, bits, 0, plan->searcher->pages);
        filter_not(plan, node, window, bits);
        break;
    }
    return wb_bits_any(window, bits);
}

/* ---- the plan --------------------------------------------------------------------------------------- */

const uint64_t *wb_qplan_shown(const struct wb_qplan *plan, struct wb_window window)
{
    const struct wb_searcher *searcher = plan->searcher;

    WB_CHECK(wb_window_is_sound(window));
    WB_CHECK(searcher->shown && (window.base + window.size) / 64 <= searcher->bit_words);
    return (plan->with_status ? searcher->allowed : searcher->shown) + window.base / 64;
}

bool wb_qplan_eval(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits)
{
    const struct wb_qnode *root = plan->root;

    WB_CHECK(root && is_whole(root));
    if (root->kind == WB_QNODE_LEAF) {
        wb_bits_clear(window, bits);
        wb_leaf_fill(root->leaf, window, bits);
    } else if (root->kind == WB_QNODE_AND) {
        eval_and(plan, root, window, true, bits);
    } else {
        wb_qnode_eval(plan, root, window, bits);
    }
    wb_bits_and(window, bits, wb_qplan_shown(plan, window));
    return wb_bits_any(window, bits);
}

void wb_qplan_verify(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits)
{
    for (size_t i = 0; i < plan->leaves.count; i++)
        if (plan->leaves.items[i]->deferred)
            wb_leaf_verify(plan, plan->leaves.items[i], window, bits);
}

struct wb_window wb_qplan_window(const struct wb_qplan *plan, uint32_t from)
{
    bool more = plan->root && from < plan->searcher->urls && !wb_search_is_given_up(plan->options);
    uint32_t next = more ? wb_qnode_next(plan, plan->root, from) : WB_DOCID_END;

    WB_CHECK(next >= from); /* so that a walk over the windows ends */
    if (next >= plan->searcher->urls)
        return (struct wb_window){0, 0};
    return (struct wb_window){next / WB_WINDOW * WB_WINDOW, WB_WINDOW};
}
