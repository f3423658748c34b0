/*
 * ask_simplify.c - makes a tree smaller without changing what it finds, and compares trees.
 *
 * Works from the leaves upwards, so that each node is looked at once, after its items. The depth of the recursion is
 * bounded by the parser.
 */
#include "query/ask_own.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"

struct wb_ask_leaf {
    uint64_t hash;
    struct wb_ask_node *node;
    bool negated;
};

union wb_ask_leaves WB_MAP_OF(struct wb_ask_leaf);

static bool is_leaf(const struct wb_ask_node *node)
{
    return node->item_count == 0;
}

static bool is_text(const struct wb_ask_node *node)
{
    return node->kind == WB_ASK_WORD || node->kind == WB_ASK_PREFIX || node->kind == WB_ASK_PHRASE;
}

/* Whether a and b are leaves that say the same, however often. */
static bool same_leaf(const struct wb_ask_node *a, const struct wb_ask_node *b)
{
    WB_CHECK(is_leaf(a) && is_leaf(b));
    /* Numbers are compared as numbers: -0 is 0. */
    return a->kind == b->kind && a->field == b->field && a->op == b->op && a->slop == b->slop &&
           a->number == b->number && a->low == b->low && a->high == b->high && wb_slice_equal(a->text, b->text) &&
           wb_slice_equal(a->column, b->column);
}

/* The same for leaves that say the same. */
static uint64_t leaf_hash(const struct wb_ask_node *node)
{
    WB_CHECK(is_leaf(node));
    uint64_t hash = wb_hash64(node->text.ptr, node->text.len);
    int64_t facts[] = {(int64_t)node->kind, (int64_t)node->field, node->low, node->high};

    hash = wb_hash64_seeded(node->column.ptr, node->column.len, hash);
    return wb_hash64_seeded(facts, sizeof facts, hash);
}

/* The earlier item of the group that says the same as this one, which may be a leaf or the negation of one; or NULL. */
static struct wb_ask_node *find_twin(union wb_ask_leaves *leaves, const struct wb_ask_node *leaf, bool negated)
{
    struct wb_ask_leaf *entry = NULL;

    while ((entry = wb_map_next(leaves, leaf_hash(leaf), entry)))
        if (entry->negated == negated && same_leaf(entry->node, leaf))
            return entry->node;
    return NULL;
}

/* Adds an item to the list of its group, or to the count of the same item. */
static int keep_item(struct wb_ask_node *item, struct wb_ask_node **list, size_t *count, union wb_ask_leaves *leaves)
{
    bool negated = item->kind == WB_ASK_NOT;

    WB_CHECK(!negated || item->item_count == 1);
    struct wb_ask_node *leaf = negated ? item->items[0] : item;
    if (is_leaf(leaf)) {
        struct wb_ask_node *twin = find_twin(leaves, leaf, negated);
        if (twin) {
            /* What is excluded is not counted. */
            twin->count += is_text(leaf) && !negated ? leaf->count : 0;
            return 0;
        }
        struct wb_ask_leaf *entry = wb_map_add(leaves, leaf_hash(leaf));
        if (!entry)
            return WB_E_NOMEM;
        entry->node = leaf;
        entry->negated = negated;
    }
    list[(*count)++] = item;
    return 0;
}

/* The number of items if groups of the same kind among them are replaced by their own items. */
static size_t flat_count(const struct wb_ask_node *node)
{
    size_t count = 0;

    for (size_t i = 0; i < node->item_count; i++)
        count += node->items[i]->kind == node->kind ? node->items[i]->item_count : 1;
    return count;
}

/* The items of a group are simple already. *node_at becomes the group, or its only item. */
static int simplify_group(struct wb_ask_node **node_at, struct wb_arena *arena)
{
    struct wb_ask_node *node = *node_at, **list = wb_ask_take(arena, flat_count(node) * sizeof *list);
    union wb_ask_leaves leaves = WB_MAP_INIT(0); /* without a secret: a query is too short to do harm */
    size_t count = 0;
    int err = list ? 0 : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < node->item_count; i++) {
        struct wb_ask_node *item = node->items[i];
        if (item->kind != node->kind)
            err = keep_item(item, list, &count, &leaves);
        for (size_t j = 0; err == 0 && item->kind == node->kind && j < item->item_count; j++)
            err = keep_item(item->items[j], list, &count, &leaves);
    }
    wb_map_release(&leaves);
    if (err < 0)
        return err;
    WB_CHECK(count > 0);
    node->items = list;
    node->item_count = count;
    if (count == 1)
        *node_at = list[0];
    return 0;
}

static int simplify(struct wb_ask_node **node_at, struct wb_arena *arena)
{
    struct wb_ask_node *node = *node_at;
    int err = 0;

    for (size_t i = 0; err == 0 && i < node->item_count; i++)
        err = simplify(&node->items[i], arena);
    if (err < 0)
        return err;
    if (node->kind == WB_ASK_AND || node->kind == WB_ASK_OR)
        return simplify_group(node_at, arena);
    if (node->kind == WB_ASK_NOT && node->items[0]->kind == WB_ASK_NOT)
        *node_at = node->items[0]->items[0];
    else if (node->kind == WB_ASK_NOT && is_leaf(node->items[0]))
        node->items[0]->count = 1;
    return 0;
}

int wb_ask_simplify(struct wb_ask *ask, struct wb_arena *arena)
{
    WB_CHECK(ask->root);
    return simplify(&ask->root, arena);
}

bool wb_ask_equal(const struct wb_ask_node *a, const struct wb_ask_node *b)
{
    if (a->kind != b->kind || a->item_count != b->item_count)
        return false;
    if (is_leaf(a))
        return a->count == b->count && same_leaf(a, b);
    for (size_t i = 0; i < a->item_count; i++)
        if (!wb_ask_equal(a->items[i], b->items[i]))
            return false;
    return true;
}
