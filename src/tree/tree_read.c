/*
 * tree_read.c - finds a key, and walks over all rows of a table. It changes nothing.
 *
 * On the way down, the keys of each page must be within the bounds that the page above
 * promises for it. Together with the checksums in the pointers, this makes "not found" as
 * certain as "found".
 */
#include "base/check.h"
#include "base/error.h"
#include "tree/tree_own.h"

const char *wb_tree_bounds_check(const char *page, struct wb_slice low, struct wb_slice high)
{
    WB_CHECK(wb_tree_page_level(page) < WB_TREE_LEVELS_MAX);

    unsigned count = wb_tree_page_count(page), first = wb_tree_page_level(page) > 0;

    WB_CHECK(count > 0);
    /* The first key of a branch is empty, so it is not compared. */
    if (first < count && wb_tree_key_compare(wb_tree_page_key(page, first), low) < 0)
        return "a key is smaller than the page above says";
    if (high.ptr && first < count && wb_tree_key_compare(wb_tree_page_key(page, count - 1), high) >= 0)
        return "a key is greater than the page above says";
    return NULL;
}

void wb_tree_bounds_below(const char *page, unsigned i, struct wb_slice *low, struct wb_slice *high)
{
    WB_CHECK(wb_tree_page_level(page) < WB_TREE_LEVELS_MAX);
    WB_CHECK(i < wb_tree_page_count(page));
    WB_CHECK(wb_tree_page_level(page) > 0);
    if (i > 0)
        *low = wb_tree_page_key(page, i);
    if (i + 1 < wb_tree_page_count(page))
        *high = wb_tree_page_key(page, i + 1);
}

void wb_tree_path_release(struct wb_tree_path *path)
{
    WB_CHECK(path->depth <= WB_TREE_LEVELS_MAX);
    for (unsigned i = 0; i < WB_TREE_LEVELS_MAX; i++)
        if (path->nodes[i])
            wb_tree_node_unpin(path->nodes[i]);
    *path = (struct wb_tree_path){0};
}

int wb_tree_descend(struct wb_tree *tree, const struct wb_tree_root *root, unsigned table, struct wb_slice key,
                    struct wb_tree_path *path_out)
{
    struct wb_slice low = WB_SLICE_EMPTY, high = {NULL, 0};
    struct wb_tree_ref ref = root->ref;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(table < WB_TREE_TABLES_MAX);
    WB_CHECK(ref.page != 0);
    WB_CHECK(root->level < WB_TREE_LEVELS_MAX);
    *path_out = (struct wb_tree_path){.depth = root->level + 1};
    for (unsigned level = root->level;; level--) {
        struct wb_tree_node *node;
        int err = wb_tree_node_load(tree, ref, table, level, &node);
        const char *wrong = NULL;
        if (err == 0) {
            path_out->nodes[level] = node;
            /*
             * A reader checks each kept page once. A writer checks always: it joins and splits
             * pages, so it must be sure about this page together with this page above it.
             */
            wrong = node->bounded && !tree->writing ? NULL : wb_tree_bounds_check(node->page, low, high);
            node->bounded = !wrong;
            if (wrong)
                err = wb_tree_damaged(tree, ref.page, wrong);
        }
        if (err < 0) {
            wb_tree_path_release(path_out);
            return err;
        }
        if (level == 0) {
            if (node->dirty && root == &tree->next.roots[table])
                wb_tree_near_set(tree, table, node, low, high);
            return 0;
        }
        unsigned i = path_out->index[level] = wb_tree_page_child(node->page, key);
        wb_tree_bounds_below(node->page, i, &low, &high);
        ref = wb_tree_page_ref(node->page, i);
    }
}

/* Reads a value from the leaf in which it must be. */
static int read_row(const struct wb_tree *tree, const struct wb_tree_node *leaf, struct wb_slice key, char *value_out,
                    size_t cap, size_t *len_out)
{
    unsigned i;

    WB_CHECK(wb_tree_page_level(leaf->page) == 0);
    if (!wb_tree_page_find(leaf->page, key, &i))
        return wb_fail(WB_E_NOTFOUND, "not in %s", tree->file.path);
    struct wb_slice value = wb_tree_page_value(leaf->page, i);
    if (value.len > cap)
        return wb_tree_damaged(tree, leaf->ref.page, "a value is longer than its table allows");
    memcpy(value_out, value.ptr, value.len);
    *len_out = value.len;
    return 0;
}

int wb_tree_get(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, struct wb_slice key,
                char *value_out, size_t cap, size_t *len_out)
{
    WB_CHECK(state->txn > 0);
    WB_CHECK(key.len > 0);
    WB_CHECK(key.len <= WB_TREE_KEY_MAX);
    WB_CHECK(table < WB_TREE_TABLES_MAX);

    const struct wb_tree_root *root = &state->roots[table];
    struct wb_tree_path path;
    int err = wb_tree_usable(tree);

    *len_out = 0;
    if (err < 0)
        return err;
    if (root->ref.page == 0)
        return wb_fail(WB_E_NOTFOUND, "not in %s", tree->file.path);
    const struct wb_tree_node *leaf = state == &tree->next && tree->writing ? wb_tree_near(tree, table, key) : NULL;
    if (leaf)
        return read_row(tree, leaf, key, value_out, cap, len_out);
    err = wb_tree_descend(tree, root, table, key, &path);
    if (err < 0)
        return err;
    err = read_row(tree, path.nodes[0], key, value_out, cap, len_out);
    wb_tree_path_release(&path);
    return err;
}

/* ---- walking ----------------------------------------------------------------------------- */

struct tree_walk {
    struct wb_tree *tree;
    unsigned table;
    struct wb_slice from; /* keys before this one are left out */
    wb_tree_each_row each;
    wb_tree_passed damaged; /* NULL: damage ends the walk */
    void *context;
    bool ended;                    /* by each() or damaged(), whose result is to be returned as it is */
    bool brief;                    /* the table is large: leaves are not kept, because others would have to go */
    char room[WB_TREE_PAGE_BYTES]; /* for such a leaf */
};

enum { LARGE_ROWS = 10000 };

static int walk_leaf(struct tree_walk *w, const char *page)
{
    uint64_t changes = w->tree->changes;
    int err = 0;

    WB_CHECK(wb_tree_page_count(page) > 0);
    WB_CHECK(wb_tree_page_level(page) == 0);
    for (unsigned i = 0; i < wb_tree_page_count(page) && err == 0; i++) {
        if (wb_slice_compare(wb_tree_page_key(page, i), w->from) < 0)
            continue;
        err = w->each(w->context, wb_tree_page_key(page, i), wb_tree_page_value(page, i));
        WB_CHECK(w->tree->changes == changes); /* each() must not change the tree */
    }
    w->ended = err != 0;
    return err;
}

/* Passes over a damaged page, if that is wanted. err: what the walk over it has returned. */
static int pass_over(struct tree_walk *w, int err)
{
    WB_CHECK(w->tree->magic == WB_TREE_MAGIC);
    if (err != WB_E_CORRUPT || w->ended || !w->damaged)
        return err;
    err = w->damaged(w->context);
    w->ended = err != 0;
    return err;
}

/* Walks over the leaf at ref. */
static int walk_to_leaf(struct tree_walk *w, struct wb_tree_ref ref, struct wb_slice low, struct wb_slice high)
{
    WB_CHECK(w->tree->magic == WB_TREE_MAGIC);
    WB_CHECK(w->brief);

    struct wb_tree_node *node;
    const char *page, *wrong;
    int err = wb_tree_node_peek(w->tree, ref, w->table, w->room, &node, &page);

    if (err < 0)
        return err;
    wrong = wb_tree_bounds_check(page, low, high);
    err = wrong ? wb_tree_damaged(w->tree, ref.page, wrong) : walk_leaf(w, page);
    if (node)
        wb_tree_node_unpin(node);
    return err;
}

/* Walks over the page at ref and everything below it. */
static int walk_below(struct tree_walk *w, struct wb_tree_ref ref, unsigned level, struct wb_slice low,
                      struct wb_slice high)
{
    WB_CHECK(w->tree->magic == WB_TREE_MAGIC);
    WB_CHECK(level < WB_TREE_LEVELS_MAX);

    struct wb_tree_node *node;
    int err = wb_tree_node_load(w->tree, ref, w->table, level, &node);

    if (err < 0)
        return err;
    const char *wrong = wb_tree_bounds_check(node->page, low, high);
    if (wrong)
        err = wb_tree_damaged(w->tree, ref.page, wrong);
    else if (level == 0)
        err = walk_leaf(w, node->page);
    else
        for (unsigned i = 0; i < wb_tree_page_count(node->page) && err == 0; i++) {
            struct wb_slice l = low, h = high;
            wb_tree_bounds_below(node->page, i, &l, &h);
            if (h.ptr && wb_slice_compare(h, w->from) <= 0)
                continue; /* all keys below are smaller than h */
            struct wb_tree_ref below = wb_tree_page_ref(node->page, i);
            err = level == 1 && w->brief ? walk_to_leaf(w, below, l, h) : walk_below(w, below, level - 1, l, h);
            err = pass_over(w, err);
        }
    wb_tree_node_unpin(node);
    return err;
}

int wb_tree_each(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, wb_tree_each_row each,
                 void *context)
{
    return wb_tree_each_sound(tree, state, table, WB_SLICE_EMPTY, each, NULL, context);
}

int wb_tree_each_sound(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, struct wb_slice from,
                       wb_tree_each_row each, wb_tree_passed damaged, void *context)
{
    WB_CHECK(state->txn > 0);
    WB_CHECK(each != NULL);
    WB_CHECK(table < WB_TREE_TABLES_MAX);

    const struct wb_tree_root *root = &state->roots[table];
    struct tree_walk w;
    int err = wb_tree_usable(tree);

    if (err < 0 || root->ref.page == 0)
        return err;
    w.tree = tree;
    w.table = table;
    w.from = from;
    w.each = each;
    w.damaged = damaged;
    w.context = context;
    w.ended = false;
    w.brief = root->rows >= LARGE_ROWS && from.len == 0; /* otherwise it may be about a few rows */
    return pass_over(&w, walk_below(&w, root->ref, root->level, WB_SLICE_EMPTY, (struct wb_slice){NULL, 0}));
}
