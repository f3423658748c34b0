/*
 * tree_near.c - remembers the leaf that a transaction used last, in each table. Rows are mostly changed in the order of
 * their keys. Then the next one belongs in the same leaf, and need not be looked for from the root.
 *
 * Only a changed page is remembered: all pages above it are changed pages too, so nothing has to be copied before a row
 * is put, and nobody else can see it. Which keys belong in it is copied from the pages above. It is forgotten when
 * it is split, or leaves the list of changed pages.
 */
#include "base/check.h"
#include "tree/tree_own.h"

struct wb_tree_node *wb_tree_near(struct wb_tree *tree, unsigned table, struct wb_slice key)
{
    const struct wb_tree_near *near = &tree->near[table];

    WB_CHECK(tree->writing);
    if (!near->leaf || wb_tree_key_compare(key, wb_slice(near->low, near->low_len)) < 0 ||
        (near->high_len && wb_tree_key_compare(key, wb_slice(near->high, near->high_len)) >= 0))
        return NULL;
    WB_CHECK(near->leaf->dirty);
    WB_CHECK(wb_tree_page_table(near->leaf->page) == table);
    return near->leaf;
}

void wb_tree_near_set(struct wb_tree *tree, unsigned table, struct wb_tree_node *leaf, struct wb_slice low,
                      struct wb_slice high)
{
    struct wb_tree_near *near = &tree->near[table];

    WB_CHECK(leaf->dirty);
    WB_CHECK(low.len <= WB_TREE_KEY_MAX && high.len <= WB_TREE_KEY_MAX);
    if (near->leaf == leaf)
        return;
    WB_CHECK(!high.ptr || high.len > 0); /* only the first key of a branch is empty */
    near->leaf = leaf;
    near->low_len = (uint16_t)low.len;
    near->high_len = high.ptr ? (uint16_t)high.len : 0;
    if (low.len)
        memcpy(near->low, low.ptr, low.len);
    if (near->high_len)
        memcpy(near->high, high.ptr, high.len);
}

void wb_tree_near_forget(struct wb_tree *tree, unsigned table)
{
    WB_CHECK(table < WB_TREE_TABLES_MAX);
    tree->near[table].leaf = NULL;
}
