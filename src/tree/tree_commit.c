/*
 * tree_commit.c - commits a transaction: writes the changed pages and the root record.
 *
 *   1 give every changed page a free place, and write it; pages below before those above,
 *     because a pointer contains the checksum of the page it points to
 *   2 write the changed parts of the free-space map
 *   3 write copy 1 of the root record again, with the old state; sync
 *   4 write copy 0 of the root record, with the new state; sync. This is the commit
 *   5 write copy 1, with the new state
 *
 * An error up to step 3 leaves the tree as it was, because only free pages were written.
 * Copy 1 is written in step 3, although it has not changed, because it may be lost: a sync
 * that failed for another process can discard what it wrote. Copy 1 must be on disk before
 * copy 0 is touched. After an error in step 4, nobody knows whether the commit is on disk.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tree/tree_own.h"

/* ---- writing pages ------------------------------------------------------------------------ */

/* Writes the pages that wait in memory. */
static int flush_out(struct wb_tree *tree)
{
    struct wb_tree_out *out = &tree->out;
    uint32_t count = out->count;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(out->count <= WB_TREE_OUT_PAGES);
    out->count = 0;
    if (count == 0)
        return 0;
    WB_CHECK(out->first >= WB_TREE_FIRST_PAGE);
    WB_CHECK(out->first + count <= tree->next.pages);
    return wb_file_write_at(&tree->file, (uint64_t)out->first * WB_TREE_PAGE_BYTES, out->bytes,
                            (size_t)count * WB_TREE_PAGE_BYTES);
}

int wb_tree_out_write(struct wb_tree *tree, uint32_t number, const char *page)
{
    struct wb_tree_out *out = &tree->out;
    int err = 0;

    WB_CHECK(tree->writing);
    WB_CHECK(wb_get32(page) == number);
    WB_CHECK(number >= WB_TREE_FIRST_PAGE);
    WB_CHECK(number < tree->next.pages);
    WB_CHECK(wb_tree_page_txn(page) == tree->next.txn);
    if (!out->bytes) {
        out->bytes = wb_alloc((size_t)WB_TREE_OUT_PAGES * WB_TREE_PAGE_BYTES);
        if (!out->bytes)
            return WB_E_NOMEM;
    }
    if (out->count == WB_TREE_OUT_PAGES || (out->count && number != out->first + out->count))
        err = flush_out(tree);
    if (err < 0)
        return err;
    if (out->count == 0)
        out->first = number;
    memcpy(out->bytes + (size_t)out->count++ * WB_TREE_PAGE_BYTES, page, WB_TREE_PAGE_BYTES);
    return 0;
}

/* Writes a changed page, after the changed pages below it. Then sets ref to its place in the file. */
static int write_below(struct wb_tree *tree, struct wb_tree_ref *ref)
{
    struct wb_tree_node *node = (struct wb_tree_node *)(uintptr_t)ref->check;
    uint32_t number = 0;
    int err = 0;

    WB_CHECK(tree->writing);
    WB_CHECK(ref->page == WB_TREE_IN_MEMORY);
    WB_CHECK(node->dirty);
    WB_CHECK(node->pins == 0);
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
    WB_CHECK(wb_tree_page_count(node->page) > 0); /* an empty page would not be valid */
    *ref = (struct wb_tree_ref){number, wb_hash64(node->page, WB_TREE_PAGE_BYTES)};
    err = wb_tree_out_write(tree, number, node->page);
    if (err == 0)
        wb_tree_node_written(tree, node, *ref);
    return err;
}

int wb_tree_write_changed(struct wb_tree *tree)
{
    int err = 0;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    for (unsigned i = 0; i < WB_TREE_TABLES_MAX && err == 0; i++)
        if (tree->next.roots[i].ref.page == WB_TREE_IN_MEMORY)
            err = write_below(tree, &tree->next.roots[i].ref);
    WB_CHECK(err < 0 || tree->changed_count == 0);
    return err < 0 ? err : flush_out(tree); /* because they may be read again from the file */
}

/* ---- the commit -------------------------------------------------------------------------------- */

/* Steps 1 to 3. */
static int write_all(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(tree->writable);

    int err = tree->failed ? wb_fail(WB_E_IO, "%s: this transaction has failed", tree->file.path)
                           : wb_tree_write_changed(tree);

    if (err == 0)
        err = wb_tree_space_write(tree);
    if (err == 0)
        err = flush_out(tree);
    if (err == 0)
        err = wb_tree_root_write(tree, 1, &tree->newest);
    return err < 0 ? err : wb_file_sync(&tree->file);
}

static int become_uncertain(struct wb_tree *tree)
{
    struct wb_error_copy why;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(!tree->uncertain);
    wb_error_save(WB_E_IO, &why);
    tree->uncertain = true;
    return wb_fail(WB_E_IO, "%.900s; it is not known whether the commit is on disk", why.message);
}

int wb_tree_commit(struct wb_tree *tree)
{
    int err;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(tree->next.txn == tree->newest.txn + 1);
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
    (void)wb_tree_root_write(tree, 1, &tree->next); /* if this fails, the next writer repairs it */
    wb_tree_space_keep(&tree->space);
    tree->writing = false;
    tree->changes++;
    WB_CHECK(tree->changed_count == 0);
    wb_tree_unlock_writer(tree);
    return 0;
}

bool wb_tree_uncertain(const struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    return tree->uncertain;
}
