/*
 * queryplan.c - turns the tree of a query into nodes over leaves, in the order in which they are evaluated.
 *
 * In an AND, what has the fewest documents comes first, tests of columns come after everything that has lists, and
 * negations last. Leaves that have to look at positions or fields are verified after all others have had their say.
 */
#include "base/check.h"
#include "query/queryplan.h"

#include <stdalign.h>
#include <stdlib.h>

void *wb_qplan_take(struct wb_qplan *plan, size_t size)
{
    char *at = wb_arena_take(plan->arena, size + alignof(max_align_t) - 1);

    if (!at)
        return NULL;
    at = (char *)(((uintptr_t)at + alignof(max_align_t) - 1) & ~(uintptr_t)(alignof(max_align_t) - 1));
    return memset(at, 0, size);
}

int wb_qplan_keep(struct wb_qplan *plan, void *memory)
{
    int err = memory ? wb_vec_push(&plan->memory, memory) : WB_E_NOMEM;

    if (err < 0)
        wb_free(memory);
    return err;
}

struct wb_leaf *wb_qplan_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, enum wb_leaf_kind kind)
{
    struct wb_leaf *leaf = wb_qplan_take(plan, sizeof *leaf);

    if (!leaf || wb_vec_push(&plan->leaves, leaf) < 0)
        return NULL;
    leaf->kind = kind;
    leaf->ask = ask;
    return leaf;
}

struct wb_qnode *wb_qplan_node(struct wb_qplan *plan, enum wb_qnode_kind kind, size_t items)
{
    struct wb_qnode *node = wb_qplan_take(plan, sizeof *node);

    if (!node)
        return NULL;
    node->kind = kind;
    node->items = wb_qplan_take(plan, (items ? items : 1) * sizeof *node->items);
    return node->items ? node : NULL;
}

int wb_plan_leaf_node(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_qnode **node_out)
{
    *node_out = leaf ? wb_qplan_node(plan, WB_QNODE_LEAF, 0) : NULL;
    if (!*node_out)
        return WB_E_NOMEM;
    (*node_out)->leaf = leaf;
    (*node_out)->cost = leaf->cost;
    return 0;
}

/* ---- from the tree --------------------------------------------------------------------------- */

static int build(struct wb_qplan *plan, const struct wb_ask_node *ask, bool negated, bool top,
                 struct wb_qnode **node_out);

static int build_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, bool negated, bool top,
                      struct wb_qnode **node_out)
{
    switch (ask->field) {
    case WB_ASK_ANY:
    case WB_ASK_TITLE:
    case WB_ASK_HEADING:
    case WB_ASK_URL:
    case WB_ASK_ANCHOR:
        return wb_plan_words(plan, ask, !negated, node_out);
    case WB_ASK_SITE:
    case WB_ASK_SUFFIX:
    case WB_ASK_LINK:
    case WB_ASK_LINKFROM:
    case WB_ASK_RELATED:
        return wb_plan_place(plan, ask, !negated, node_out);
    case WB_ASK_DUP:
        if (top) { /* about the results as a whole, so it is not a test of a document */
            plan->dup_no = true;
            *node_out = NULL;
            return 0;
        }
        return wb_plan_fact(plan, ask, node_out);
    case WB_ASK_STATUS:
        plan->with_status |= !negated;
        return wb_plan_fact(plan, ask, node_out);
    default:
        return wb_plan_fact(plan, ask, node_out);
    }
}

/* Negations last; before them what needs no lists, because testing each candidate is cheap. */
static int rank_of(const struct wb_qnode *node)
{
    if (node->kind == WB_QNODE_NOT)
        return 2;
    return node->kind == WB_QNODE_LEAF && node->leaf->kind == WB_LEAF_COLUMN;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct wb_qnode *x = *(struct wb_qnode *const *)a, *y = *(struct wb_qnode *const *)b;

    if (rank_of(x) != rank_of(y))
        return rank_of(x) - rank_of(y);
    return x->cost < y->cost ? -1 : x->cost > y->cost;
}

static int build_group(struct wb_qplan *plan, const struct wb_ask_node *ask, bool negated, bool top,
                       struct wb_qnode **node_out)
{
    bool is_and = ask->kind == WB_ASK_AND;

    WB_CHECK(ask->item_count >= 2);
    struct wb_qnode *node = wb_qplan_node(plan, is_and ? WB_QNODE_AND : WB_QNODE_OR, ask->item_count);
    int err = node ? 0 : WB_E_NOMEM;
    *node_out = NULL;
    for (size_t i = 0; err == 0 && i < ask->item_count; i++) {
        struct wb_qnode *item = NULL;
        err = build(plan, ask->items[i], negated, top && is_and, &item);
        if (err == 0 && item)
            node->items[node->item_count++] = item;
    }
    if (err < 0 || node->item_count == 0)
        return err;
    if (node->item_count == 1) {
        *node_out = node->items[0];
        return 0;
    }
    qsort(node->items, node->item_count, sizeof *node->items, compare_nodes);
    node->cost = node->items[0]->cost;
    for (size_t i = 1; !is_and && i < node->item_count; i++)
        node->cost += node->items[i]->cost;
    *node_out = node;
    return 0;
}

static int build(struct wb_qplan *plan, const struct wb_ask_node *ask, bool negated, bool top,
                 struct wb_qnode **node_out)
{
    struct wb_qnode *item = NULL;
    int err;

    *node_out = NULL;
    if (ask->kind == WB_ASK_AND || ask->kind == WB_ASK_OR)
        return build_group(plan, ask, negated, top, node_out);
    if (ask->kind != WB_ASK_NOT)
        return build_leaf(plan, ask, negated, top, node_out);
    WB_CHECK(ask->item_count == 1);
    err = build(plan, ask->items[0], !negated, false, &item);
    if (err < 0 || !item)
        return err;
    *node_out = wb_qplan_node(plan, WB_QNODE_NOT, 1);
    if (!*node_out)
        return WB_E_NOMEM;
    (*node_out)->items[0] = item;
    (*node_out)->item_count = 1;
    (*node_out)->cost = plan->searcher->pages;
    return 0;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static bool is_word(const struct wb_qnode *node)
{
    const struct wb_leaf *leaf = node->leaf;

    if (node->kind != WB_QNODE_LEAF)
        return false;
    WB_CHECK(leaf);
    return leaf->kind == WB_LEAF_NOTHING ||
           (leaf->kind == WB_LEAF_WORDS && WB_WORDS_OF(leaf)->slot_count == 1 && !leaf->verify);
}

/* Whether a node asks for any of some words, and nothing else. */
static bool is_any_of_words(const struct wb_qnode *node)
{
    bool all = node->kind == WB_QNODE_OR || is_word(node);

    for (size_t i = 0; node->kind == WB_QNODE_OR && i < node->item_count; i++)
        all &= is_word(node->items[i]);
    return all;
}

static bool has_scores(const struct wb_qnode *node)
{
    bool has = node->kind == WB_QNODE_LEAF && node->leaf->scored;

    for (size_t i = 0; !has && i < node->item_count; i++)
        has = has_scores(node->items[i]);
    return has;
}

/* (a OR b) and tests that do not throw out so much that it is better to begin with them. */
static int find_filters(struct wb_qplan *plan)
{
    const struct wb_qnode *root = plan->root, *words = NULL;

    for (size_t i = 0; root->kind == WB_QNODE_AND && i < root->item_count; i++)
        if (root->items[i]->kind == WB_QNODE_OR && is_any_of_words(root->items[i]))
            words = root->items[i];
    if (!words)
        return 0;
    plan->filters = wb_qplan_take(plan, root->item_count * sizeof *plan->filters);
    if (!plan->filters)
        return WB_E_NOMEM;
    plan->any_of_words = true;
    for (size_t i = 0; i < root->item_count; i++) {
        if (root->items[i] == words)
            continue;
        WB_CHECK(plan->filter_count < root->item_count);
        plan->any_of_words &= !has_scores(root->items[i]) && root->items[i]->cost > words->cost / 8;
        plan->filters[plan->filter_count++] = root->items[i];
    }
    return 0;
}

static int look_at_shape(struct wb_qplan *plan)
{
    struct wb_qnode *root = plan->root;

    WB_CHECK(!plan->filters && !plan->any_of_words);
    plan->any_of_words = is_any_of_words(root);
    int err = plan->any_of_words ? 0 : find_filters(plan);
    if (err < 0)
        return err;
    plan->all_of_words = root->kind == WB_QNODE_AND && plan->leaves.count == root->item_count;
    for (size_t i = 0; plan->all_of_words && i < root->item_count; i++)
        plan->all_of_words =
            is_word(root->items[i]) && root->items[i]->leaf->kind == WB_LEAF_WORDS && root->items[i]->leaf->scored;
    if (root->kind == WB_QNODE_LEAF)
        root->leaf->deferred = root->leaf->verify;
    for (size_t i = 0; root->kind == WB_QNODE_AND && i < root->item_count; i++)
        if (root->items[i]->kind == WB_QNODE_LEAF)
            root->items[i]->leaf->deferred = root->items[i]->leaf->verify;
    for (size_t i = 0; i < plan->leaves.count; i++) {
        struct wb_leaf *leaf = plan->leaves.items[i];
        if (!leaf->verify || !leaf->scored || leaf->deferred)
            continue;
        struct wb_leaf_words *words = WB_WORDS_OF(leaf);
        words->matched = wb_qplan_take(plan, sizeof *words->matched);
        if (!words->matched)
            return WB_E_NOMEM;
    }
    return 0;
}

/* The query is the URL of a page: that page is found, whatever its words are. */
static int add_typed(struct wb_qplan *plan)
{
    struct wb_leaf *leaf = wb_qplan_leaf(plan, plan->ask.root, WB_LEAF_DOCS);
    struct wb_qnode *page, *both = wb_qplan_node(plan, WB_QNODE_OR, 2);

    WB_CHECK(plan->typed < plan->searcher->urls);
    if (!leaf || !both)
        return WB_E_NOMEM;
    *WB_DOCS_OF(leaf) = (struct wb_leaf_docs){.items = &plan->typed, .count = 1};
    leaf->cost = 1;
    int err = wb_plan_leaf_node(plan, leaf, &page);
    if (err < 0 || !plan->root) {
        plan->root = err == 0 ? page : NULL;
        return err;
    }
    both->items[both->item_count++] = page;
    both->items[both->item_count++] = plan->root;
    both->cost = page->cost + plan->root->cost;
    plan->root = both;
    return 0;
}

int wb_qplan_make(struct wb_searcher *searcher, const struct wb_search_options *options, struct wb_arena *arena,
                  const struct wb_ask *ask, uint32_t typed, struct wb_qplan *plan)
{
    *plan = (struct wb_qplan){
        .searcher = searcher, .options = options, .arena = arena, .ask = *ask, .typed = typed, .scale = 1};
    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    WB_CHECK(searcher->bars_read); /* or what was taken down would be found */
    WB_CHECK(ask->root);
    int err = build(plan, ask->root, false, true, &plan->root);
    if (err == 0 && plan->dup_no && !plan->root) {
        /* dup:no alone: one of each group of all pages. */
        struct wb_leaf *leaf = wb_qplan_leaf(plan, ask->root, WB_LEAF_RANGES);
        struct wb_index_range *range = leaf ? wb_qplan_take(plan, sizeof *range) : NULL;
        if (!range)
            return WB_E_NOMEM;
        *range = (struct wb_index_range){0, searcher->pages};
        *WB_RANGES_OF(leaf) = (struct wb_leaf_ranges){.items = range, .count = searcher->pages != 0};
        leaf->cost = searcher->pages;
        err = wb_plan_leaf_node(plan, leaf, &plan->root);
    }
    if (err == 0 && typed != WB_DOCID_NONE)
        err = add_typed(plan);
    return err == 0 && plan->root ? look_at_shape(plan) : err;
}

int wb_qplan_error(const struct wb_qplan *plan)
{
    if (plan->err < 0)
        return plan->err;
    for (size_t i = 0; i < plan->lists.count; i++)
        if (plan->lists.items[i]->error)
            return wb_postlist_error(plan->lists.items[i]);
    return 0;
}

void wb_qplan_release(struct wb_qplan *plan)
{
    for (size_t i = 0; i < plan->leaves.count; i++) {
        struct wb_leaf *leaf = plan->leaves.items[i];
        struct wb_leaf_words *words = leaf->kind == WB_LEAF_WORDS ? WB_WORDS_OF(leaf) : NULL;
        for (size_t s = 0; words && words->merged && s < words->slot_count; s++)
            wb_free(words->merged[s]);
    }
    for (size_t i = 0; i < plan->lists.count; i++)
        wb_postlist_close(plan->lists.items[i]);
    for (size_t i = 0; i < plan->memory.count; i++)
        wb_free(plan->memory.items[i]);
    wb_vec_release(&plan->memory);
    wb_vec_release(&plan->leaves);
    wb_vec_release(&plan->lists);
    wb_vec_release(&plan->terms);
    wb_vec_release(&plan->order);
}
