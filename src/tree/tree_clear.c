/*
 * tree_clear.c - deletes all rows of a table at once, by giving up all its pages. The pages
 * are not changed, so readers of older states still see them.
 */
#include "base/check.h"
#include "base/error.h"
#include "tree/tree_own.h"

/* A page of the table. */
struct tree_part {
    uint32_t page;
    uint64_t born;                /* the transaction that wrote it */
    struct wb_tree_node *changed; /* its node if it was changed in this transaction; NULL for a page of the file */
};

struct tree_parts WB_VEC_OF(struct tree_part);

/*
 * Collects the page at ref and all pages below it. Nothing is given up before all pages
 * are known, so that damage found on the way changes nothing.
 */
static int find_parts(struct wb_tree *tree, unsigned table, struct wb_tree_ref ref, unsigned level,
                      struct tree_parts *parts)
{
    char room[WB_TREE_PAGE_BYTES];
    struct wb_tree_node *node;
    const char *page;

    if (parts->count > tree->next.pages + tree->changed_count)
        return wb_tree_damaged(tree, ref.page, "it is used twice");
    if (level == 0) {
        int err = wb_tree_node_peek(tree, ref, table, room, &node, &page);
        if (err == 0)
            err = wb_vec_push(parts,
                              (struct tree_part){ref.page, wb_tree_page_txn(page), node && node->dirty ? node : NULL});
        if (node)
            wb_tree_node_unpin(node);
        return err;
    }
    int err = wb_tree_node_load(tree, ref, table, level, &node);
    if (err < 0)
        return err;
    WB_CHECK(node->pins > 0);
    WB_CHECK(wb_tree_page_level(node->page) == level);
    err = wb_vec_push(parts, (struct tree_part){ref.page, wb_tree_page_txn(node->page), node->dirty ? node : NULL});
    for (unsigned i = 0; err == 0 && i < wb_tree_page_count(node->page); i++)
        err = find_parts(tree, table, wb_tree_page_ref(node->page, i), level - 1, parts);
    wb_tree_node_unpin(node);
    return err;
}

static int give_up(struct wb_tree *tree, const struct tree_part *part)
{
    WB_CHECK(tree->writing);
    WB_CHECK((part->changed != NULL) == (part->page == WB_TREE_IN_MEMORY));
    if (!part->changed)
        return wb_tree_spoil(tree, wb_tree_space_give(tree, part->page, part->born));
    wb_tree_node_drop(tree, part->changed);
    return 0;
}

int wb_tree_clear(struct wb_tree *tree, unsigned table)
{
    struct wb_tree_root *root = &tree->next.roots[table];
    struct tree_parts parts = WB_VEC_INIT;
    int err = wb_tree_begin_change(tree, table);

    WB_CHECK(err < 0 || (root->ref.page == 0) == (root->rows == 0));
    if (err == 0 && root->ref.page)
        err = find_parts(tree, table, root->ref, root->level, &parts);
    for (size_t i = 0; i < parts.count && err == 0; i++)
        err = give_up(tree, &parts.items[i]);
    if (err == 0)
        *root = (struct wb_tree_root){0};
    wb_vec_release(&parts);
    return err;
}
