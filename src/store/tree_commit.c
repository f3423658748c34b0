/*
 * tree_commit.c - from changed pages in memory to a commit:
 *
 *   1 every changed page gets a free place and is written, pages below before those
 *     above, because a pointer holds the checksum of what it points to
 *   2 the same for the free-space map
 *   3 copy 1 of the root record is written as it is, sync
 *   4 copy 0 of the root record is written, sync: this is the commit
 *   5 copy 1 follows
 *
 * An error up to 3 leaves the file as it was: only free pages were written. Copy 1 is
 * written in 3 although it has not changed, because a sync that failed for somebody
 * else may have lost it, and it must be on disk before copy 0 is touched. An error in
 * 4 leaves the outcome open.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/tree_own.h"

/* ---- writing pages ------------------------------------------------------------------------ */

int wb_tree_out_flush(struct wb_tree *tree)
{
    struct wb_tree_out *out = &tree->out;
    uint32_t count = out->count;

    out->count = 0;
    if (count == 0)
        return 0;
    return wb_file_write_at(&tree->file, (uint64_t)out->first * WB_TREE_PAGE_BYTES, out->bytes, (size_t)count * WB_TREE_PAGE_BYTES);
}

int wb_tree_out_write(struct wb_tree *tree, uint32_t number, const char *page)
{
    struct wb_tree_out *out = &tree->out;
    int err = 0;

    WB_CHECK(tree->writing && number >= 2 && number < tree->next.pages && wb_get32(page) == number);
    if (!out->bytes) {
        out->bytes = wb_alloc((size_t)WB_TREE_OUT_PAGES * WB_TREE_PAGE_BYTES);
        if (!out->bytes)
            return WB_E_NOMEM;
    }
    if (out->count == WB_TREE_OUT_PAGES || (out->count && number != out->first + out->count))
        err = wb_tree_out_flush(tree);
    if (err < 0)
        return err;
    if (out->count == 0)
        out->first = number;
    memcpy(out->bytes + (size_t)out->count++ * WB_TREE_PAGE_BYTES, page, WB_TREE_PAGE_BYTES);
    return 0;
}

/* Writes a changed page and what has changed below it; ref is then where it lies. */
static int write_below(struct wb_tree *tree, struct wb_tree_ref *ref)
{
    struct wb_tree_node *node = (struct wb_tree_node *)(uintptr_t)ref->check;
    uint32_t number = 0;
    int err = 0;

    WB_CHECK(ref->page == WB_TREE_IN_MEMORY && node->dirty && node->pins == 0);
    for (unsigned i = 0; wb_tree_page_level(node->page) > 0 && i < wb_tree_page_count(node->page) && err == 0; i++) {
        struct wb_tree_ref below = wb_tree_page_ref(node->page, i);
        if (below.page != WB_TREE_IN_MEMORY)
            continue;
        err = write_below(tree, &below);
        if (err == 0)
            wb_tree_page_set_ref(node->page, i, below);
    }
    if (err == 0)
        err = wb_tree_space_take(tree, &number);
    if (err < 0)
        return err;
    wb_tree_page_stamp(node->page, number, tree->next.txn);
    *ref = (struct wb_tree_ref){number, wb_hash64(node->page, WB_TREE_PAGE_BYTES)};
    err = wb_tree_out_write(tree, number, node->page);
    if (err == 0)
        wb_tree_node_written(tree, node, *ref);
    return err;
}

int wb_tree_write_changed(struct wb_tree *tree)
{
    int err = 0;

    for (unsigned i = 0; i < WB_TREE_TABLES_MAX && err == 0; i++)
        if (tree->next.roots[i].ref.page == WB_TREE_IN_MEMORY)
            err = write_below(tree, &tree->next.roots[i].ref);
    WB_CHECK(err < 0 || tree->changed_count == 0);
    return err < 0 ? err : wb_tree_out_flush(tree); /* they may be read again from the file */
}

/* ---- the commit -------------------------------------------------------------------------------- */

static int write_all(struct wb_tree *tree)
{
    int err = tree->failed ? wb_fail(WB_E_IO, "%s: this transaction has failed", tree->file.path) : wb_tree_write_changed(tree);

    if (err == 0)
        err = wb_tree_space_write(tree);
    if (err == 0)
        err = wb_tree_out_flush(tree);
    if (err == 0)
        err = wb_tree_root_write(tree, 1, &tree->newest);
    return err < 0 ? err : wb_file_sync(&tree->file);
}

static int become_uncertain(struct wb_tree *tree)
{
    struct wb_error_copy why;

    wb_error_save(WB_E_IO, &why);
    tree->uncertain = true;
    return wb_fail(WB_E_IO, "%.900s; it is not known whether the commit is on disk", why.message);
}

int wb_tree_commit(struct wb_tree *tree)
{
    int err;

    WB_CHECK(tree->magic == WB_TREE_MAGIC && tree->writing && tree->next.txn == tree->newest.txn + 1);
    err = write_all(tree);
    if (err == 0) {
        err = wb_tree_root_write(tree, 0, &tree->next);
        if (err == 0)
            err = wb_file_sync(&tree->file);
        if (err < 0)
            err = become_uncertain(tree);
    }
    if (err < 0) {
        wb_tree_abort(tree);
        return err;
    }
    wb_tree_adopt(tree, &tree->next);
    (void)wb_tree_root_write(tree, 1, &tree->next); /* if this fails the copies differ, and the next writer sees to it */
    wb_tree_space_settle(&tree->space);
    tree->writing = false;
    tree->changes++;
    wb_tree_unlock_writer(tree);
    return 0;
}

bool wb_tree_uncertain(const struct wb_tree *tree)
{
    return tree->uncertain;
}
