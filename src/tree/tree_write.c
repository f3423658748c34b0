/*
 * tree_write.c - a transaction: begins it, puts and deletes rows, and aborts it.
 *
 * A page that is to change is copied first, together with all pages above it up to the
 * root. The copies exist only in memory; they get places in the file when they are
 * written (tree_commit.c). So an abort just forgets them.
 *
 * All pages that a change needs are loaded before the first of them changes. So a key in
 * a damaged part of the tree is refused with WB_E_CORRUPT, and the rest of the transaction
 * can continue.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "tree/tree_own.h"

enum {
    SMALL = WB_TREE_ROOM / 3,      /* a page with fewer bytes is joined with a neighbour, */
    JOINED = WB_TREE_ROOM * 3 / 4, /* if both together do not have more than this */
};
_Static_assert(SMALL < JOINED && JOINED < (int)WB_TREE_ROOM, "a page that was joined has room for more");

/* ---- beginning and aborting ------------------------------------------------------------- */

/*
 * If an interrupted commit has left two different copies of the root record, this decides:
 * writes the newer state to both copies, durably.
 */
static int repair_roots(struct wb_tree *tree)
{
    WB_CHECK(tree->writable);
    WB_CHECK(tree->writing);

    struct wb_tree_roots roots;
    struct wb_tree_state state;
    int err = wb_tree_roots_read(tree, &state, &roots);

    if (err < 0)
        return err;
    if (roots.sound[0] && roots.sound[1] && memcmp(roots.bytes[0], roots.bytes[1], WB_TREE_ROOT_BYTES) == 0)
        return 0;
    for (unsigned i = 0; err == 0 && i < 2; i++) {
        err = wb_tree_root_write(tree, i, &state);
        if (err == 0)
            err = wb_file_sync(&tree->file);
    }
    if (err == 0)
        wb_tree_adopt(tree, &state);
    return err;
}

int wb_tree_begin(struct wb_tree *tree)
{
    int err = wb_tree_usable(tree);

    WB_CHECK(!tree->writing);
    WB_CHECK(!tree->changed);
    if (err == 0 && !tree->writable)
        err = wb_fail(WB_E_IO, "cannot write %s: it is open for reading", tree->file.path);
    if (err == 0)
        err = wb_tree_lock_writer(tree);
    if (err < 0)
        return err;
    tree->writing = true;
    tree->failed = false;
    err = repair_roots(tree);
    if (err == 0) {
        tree->next = tree->newest;
        tree->next.txn++;
        err = wb_tree_space_begin(tree);
    }
    if (err < 0)
        wb_tree_abort(tree);
    return err;
}

const struct wb_tree_state *wb_tree_next(const struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    return &tree->next;
}

void wb_tree_abort(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    if (!tree->writing)
        return;
    while (tree->changed)
        wb_tree_node_drop(tree, tree->changed);
    wb_tree_space_forget(&tree->space);
    WB_CHECK(tree->changed_count == 0);
    tree->out.count = 0;
    tree->writing = false;
    tree->changes++;
    wb_tree_unlock_writer(tree);
}

int wb_tree_spoil(struct wb_tree *tree, int err)
{
    WB_CHECK(tree->writing);
    WB_CHECK(err <= 0);
    tree->failed = tree->failed || err < 0;
    return err;
}

/* ---- copying what will change ------------------------------------------------------------ */

/* Replaces a page of a path by a copy that may be changed, and makes the page above point to the copy. */
static int make_changeable(struct wb_tree *tree, struct wb_tree_root *root, struct wb_tree_path *path, unsigned level)
{
    WB_CHECK(!tree->failed);
    WB_CHECK(tree->writing);
    WB_CHECK(level < path->depth);

    struct wb_tree_node *node = path->nodes[level], *copy;
    int err;

    WB_CHECK(node->pins > 0);
    if (node->dirty)
        return 0;
    err = wb_tree_space_give(tree, node->ref.page, wb_tree_page_txn(node->page));
    if (err < 0)
        return err;
    err = wb_tree_node_new(tree, node->page, &copy);
    if (err < 0)
        return wb_tree_spoil(tree, err);
    copy->pins++;
    path->nodes[level] = copy;
    if (level + 1 == path->depth)
        root->ref = wb_tree_node_ref(copy);
    else
        wb_tree_page_set_ref(path->nodes[level + 1]->page, path->index[level + 1], wb_tree_node_ref(copy));
    wb_tree_node_unpin(node);
    return 0;
}

/* Finds the path to a key, and makes all its pages changeable. */
static int open_path(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_tree_path *path_out)
{
    WB_CHECK(tree->writing);

    struct wb_tree_root *root = &tree->next.roots[table];
    int err = wb_tree_descend(tree, root, table, key, path_out);

    for (unsigned level = path_out->depth; err == 0 && level-- > 0;)
        err = make_changeable(tree, root, path_out, level);
    if (err < 0)
        wb_tree_path_release(path_out);
    return err;
}

/* ---- putting ------------------------------------------------------------------------------- */

/* The root was split: makes a new root above the two halves. */
static int add_level(struct wb_tree *tree, unsigned table, struct wb_slice separator, struct wb_tree_node *right)
{
    struct wb_tree_root *root = &tree->next.roots[table];
    char cell[WB_TREE_CELL_MAX];
    struct wb_tree_node *node;
    int err;

    WB_CHECK(tree->writing);
    WB_CHECK(right->dirty);
    WB_CHECK(separator.len > 0);
    if (root->level + 1 == WB_TREE_LEVELS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: a table is full", tree->file.path);
    err = wb_tree_node_new(tree, NULL, &node);
    if (err < 0)
        return err;
    wb_tree_page_init(node->page, WB_TREE_KIND_TREE, table, root->level + 1);
    size_t len = wb_tree_cell_ref(cell, WB_SLICE_EMPTY, root->ref);
    WB_CHECK(wb_tree_page_insert(node->page, 0, wb_slice(cell, len)));
    len = wb_tree_cell_ref(cell, separator, wb_tree_node_ref(right));
    WB_CHECK(wb_tree_page_insert(node->page, 1, wb_slice(cell, len)));
    root->ref = wb_tree_node_ref(node);
    root->level++;
    return 0;
}

/* Inserts a cell before cell i of the leaf. While a page is full, splits it and inserts a pointer one level up. */
static int insert_cell(struct wb_tree *tree, unsigned table, struct wb_tree_path *path, unsigned i, char *cell,
                       size_t len)
{
    char separator[WB_TREE_KEY_MAX];

    WB_CHECK(path->depth > 0);
    WB_CHECK(len > 0);
    WB_CHECK(len <= WB_TREE_CELL_MAX);
    for (unsigned level = 0; level < path->depth; level++) {
        struct wb_tree_node *left = path->nodes[level], *right;
        if (wb_tree_page_insert(left->page, i, wb_slice(cell, len)))
            return 0;
        int err = wb_tree_node_new(tree, NULL, &right);
        if (err < 0)
            return err;
        wb_tree_near_forget(tree, table);
        size_t separator_len = wb_tree_page_split(left->page, right->page, i, wb_slice(cell, len), separator);
        struct wb_slice above = wb_slice(separator, separator_len);
        if (level + 1 == path->depth)
            return add_level(tree, table, above, right);
        len = wb_tree_cell_ref(cell, above, wb_tree_node_ref(right));
        i = path->index[level + 1] + 1;
    }
    return 0;
}

/* The first row of a table. */
static int plant(struct wb_tree *tree, unsigned table, struct wb_slice cell)
{
    WB_CHECK(tree->writing);
    WB_CHECK(tree->next.roots[table].ref.page == 0);
    WB_CHECK(tree->next.roots[table].rows == 0);

    struct wb_tree_root *root = &tree->next.roots[table];
    struct wb_tree_node *node;
    int err = wb_tree_node_new(tree, NULL, &node);

    if (err < 0)
        return err;
    wb_tree_page_init(node->page, WB_TREE_KIND_TREE, table, 0);
    WB_CHECK(wb_tree_page_insert(node->page, 0, cell));
    *root = (struct wb_tree_root){wb_tree_node_ref(node), 0, 1};
    return 0;
}

int wb_tree_begin_change(struct wb_tree *tree, unsigned table)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(tree->next.txn == tree->newest.txn + 1);
    WB_CHECK(table < WB_TREE_TABLES_MAX);
    if (tree->failed)
        return wb_fail(WB_E_IO, "%s: this transaction has failed", tree->file.path);
    tree->changes++;
    return tree->changed_count < WB_TREE_DIRTY_MAX ? 0 : wb_tree_spoil(tree, wb_tree_write_changed(tree));
}

/* Puts a row into the leaf that was used last. Returns false, and changes nothing, if it must be looked for. */
static bool put_near(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_slice cell)
{
    struct wb_tree_node *leaf = wb_tree_near(tree, table, key);
    unsigned i;

    if (!leaf)
        return false;
    if (wb_tree_page_find(leaf->page, key, &i))
        return wb_tree_page_replace(leaf->page, i, cell);
    if (!wb_tree_page_insert(leaf->page, i, cell))
        return false;
    tree->next.roots[table].rows++;
    return true;
}

int wb_tree_put(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_slice value)
{
    WB_CHECK(tree->writing);

    char cell[WB_TREE_CELL_MAX];
    struct wb_tree_path path;
    unsigned i;
    int err = wb_tree_begin_change(tree, table);

    if (err < 0)
        return err;
    if (key.len == 0 || key.len > WB_TREE_KEY_MAX || value.len > WB_TREE_VALUE_MAX)
        return wb_fail(WB_E_LIMIT, "%s: a row with a key of %zu and a value of %zu bytes is too large", tree->file.path,
                       key.len, value.len);
    size_t len = wb_tree_cell_row(cell, key, value);
    if (tree->next.roots[table].ref.page == 0)
        return plant(tree, table, wb_slice(cell, len));
    if (put_near(tree, table, key, wb_slice(cell, len)))
        return 0;
    err = open_path(tree, table, key, &path);
    if (err < 0)
        return err;
    char *leaf = path.nodes[0]->page;
    bool known = wb_tree_page_find(leaf, key, &i);
    if (known)
        wb_tree_page_remove(leaf, i);
    err = wb_tree_spoil(tree, insert_cell(tree, table, &path, i, cell, len));
    if (err == 0)
        tree->next.roots[table].rows += !known;
    wb_tree_path_release(&path);
    return err;
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* Removes a page that is no longer needed from the path and from memory. */
static void drop_node(struct wb_tree *tree, struct wb_tree_path *path, unsigned level)
{
    struct wb_tree_node *node = path->nodes[level];

    WB_CHECK(tree->writing);
    WB_CHECK(node != NULL);
    WB_CHECK(node->dirty);
    path->nodes[level] = NULL;
    wb_tree_node_unpin(node);
    wb_tree_node_drop(tree, node);
}

/* Removes cell i from a branch. */
static void remove_pointer(char *page, unsigned i)
{
    WB_CHECK(wb_tree_page_level(page) > 0);
    WB_CHECK(i < wb_tree_page_count(page));
    wb_tree_page_remove(page, i);
    if (i == 0 && wb_tree_page_count(page) > 0)
        wb_tree_page_open_first(page);
}

/*
 * Loads the page below cell i of `above`. Returns 1 if a page with `used` bytes can be joined
 * with it, otherwise 0. A damaged neighbour is left alone.
 */
static int find_neighbour(struct wb_tree *tree, unsigned table, const char *above, unsigned i, unsigned level,
                          size_t used, struct wb_tree_node **neighbour_out)
{
    WB_CHECK(tree->writing);
    WB_CHECK(i < wb_tree_page_count(above));
    WB_CHECK(wb_tree_page_level(above) == level + 1);

    size_t separator = level ? WB_TREE_KEY_MAX : 0; /* joining two branches adds a key */
    struct wb_slice low = WB_SLICE_EMPTY, high = {NULL, 0};
    int err = wb_tree_node_load(tree, wb_tree_page_ref(above, i), table, level, neighbour_out);

    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    wb_tree_bounds_below(above, i, &low, &high);
    if (!wb_tree_bounds_check((*neighbour_out)->page, low, high) &&
        wb_tree_page_used((*neighbour_out)->page) + used + separator <= JOINED)
        return 1;
    wb_tree_node_unpin(*neighbour_out);
    *neighbour_out = NULL;
    return 0;
}

/* Moves the cells of the path's page at a level to its left neighbour, which takes its place in the path. */
static int join_left(struct wb_tree *tree, unsigned table, struct wb_tree_path *path, unsigned level,
                     struct wb_tree_node *neighbour)
{
    struct wb_tree_node *above = path->nodes[level + 1], *node = path->nodes[level];
    unsigned i = path->index[level + 1];

    WB_CHECK(i > 0);
    WB_CHECK(node->dirty);
    WB_CHECK(above->dirty);
    struct wb_slice separator = wb_tree_page_key(above->page, i);
    path->nodes[level] = neighbour;
    path->index[level + 1] = i - 1;
    int err = make_changeable(tree, &tree->next.roots[table], path, level);
    if (err == 0)
        wb_tree_page_join(path->nodes[level]->page, node->page, separator);
    wb_tree_node_unpin(node);
    if (err == 0) {
        wb_tree_node_drop(tree, node);
        remove_pointer(above->page, i);
    }
    return err;
}

/* Moves the cells of the right neighbour to the path's page at a level. */
static int join_right(struct wb_tree *tree, struct wb_tree_path *path, unsigned level, struct wb_tree_node *neighbour)
{
    struct wb_tree_node *above = path->nodes[level + 1], *node = path->nodes[level];
    unsigned i = path->index[level + 1] + 1;

    WB_CHECK(i < wb_tree_page_count(above->page));
    WB_CHECK(node->dirty);
    WB_CHECK(above->dirty);
    int err = neighbour->dirty ? 0 : wb_tree_space_give(tree, neighbour->ref.page, wb_tree_page_txn(neighbour->page));
    if (err == 0) {
        wb_tree_page_join(node->page, neighbour->page, wb_tree_page_key(above->page, i));
        remove_pointer(above->page, i);
    }
    wb_tree_node_unpin(neighbour);
    if (err == 0 && neighbour->dirty)
        wb_tree_node_drop(tree, neighbour);
    return err;
}

/* Joins the path's page at a level with a neighbour, if it is small and both fit in one page. */
static int join(struct wb_tree *tree, unsigned table, struct wb_tree_path *path, unsigned level)
{
    WB_CHECK(tree->writing);
    WB_CHECK(level + 1 < path->depth);

    struct wb_tree_node *above = path->nodes[level + 1], *neighbour = NULL;
    unsigned i = path->index[level + 1];
    size_t used = wb_tree_page_used(path->nodes[level]->page);

    if (used >= SMALL || wb_tree_page_count(above->page) < 2)
        return 0;
    int err = find_neighbour(tree, table, above->page, i > 0 ? i - 1 : i + 1, level, used, &neighbour);
    if (err <= 0)
        return err;
    return i > 0 ? join_left(tree, table, path, level, neighbour) : join_right(tree, path, level, neighbour);
}

/* A root with only one pointer is not needed: the page that it points to becomes the root. */
static void lower_root(struct wb_tree *tree, unsigned table, struct wb_tree_path *path)
{
    struct wb_tree_root *root = &tree->next.roots[table];

    WB_CHECK(tree->writing);
    WB_CHECK(root->ref.page != 0);
    while (path->depth > 1) {
        const struct wb_tree_node *top = path->nodes[path->depth - 1];
        /* A page that was dropped is NULL in the path. What replaced it is handled by a later deletion. */
        if (!top || !wb_tree_ref_equal(root->ref, wb_tree_node_ref(path->nodes[path->depth - 1])) ||
            wb_tree_page_count(top->page) != 1)
            break;
        root->ref = wb_tree_page_ref(top->page, 0);
        root->level--;
        drop_node(tree, path, --path->depth);
    }
}

/* After a row was deleted: removes pages that are empty, and joins small ones. */
static int tidy(struct wb_tree *tree, unsigned table, struct wb_tree_path *path)
{
    int err = 0;

    WB_CHECK(tree->writing);
    WB_CHECK(path->depth > 0);
    WB_CHECK(path->nodes[0]->dirty);
    for (unsigned level = 0; level < path->depth && err == 0; level++) {
        bool top = level + 1 == path->depth;
        if (wb_tree_page_count(path->nodes[level]->page) == 0) {
            drop_node(tree, path, level);
            if (top)
                tree->next.roots[table] = (struct wb_tree_root){0};
            else
                remove_pointer(path->nodes[level + 1]->page, path->index[level + 1]);
        } else if (!top) {
            err = join(tree, table, path, level);
        }
    }
    if (err == 0 && tree->next.roots[table].ref.page)
        lower_root(tree, table, path);
    return err;
}

static int miscounted(struct wb_tree *tree, unsigned table)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(table < WB_TREE_TABLES_MAX);
    return wb_fail(WB_E_CORRUPT, "%s is damaged: table %u has another number of rows than its root record says",
                   tree->file.path, table);
}

/* Deletes a row of the leaf that was used last, if that leaves enough in it. Otherwise changes nothing. */
static bool delete_near(struct wb_tree *tree, unsigned table, struct wb_slice key)
{
    struct wb_tree_node *leaf = wb_tree_near(tree, table, key);
    unsigned i;

    if (!leaf || !wb_tree_page_find(leaf->page, key, &i))
        return false;
    size_t row = WB_TREE_ROW_HEAD + key.len + wb_tree_page_value(leaf->page, i).len + 2; /* with its offset */
    if (wb_tree_page_used(leaf->page) < SMALL + row || tree->next.roots[table].rows < 2)
        return false;
    wb_tree_page_remove(leaf->page, i);
    tree->next.roots[table].rows--;
    return true;
}

int wb_tree_delete(struct wb_tree *tree, unsigned table, struct wb_slice key)
{
    WB_CHECK(key.len > 0);
    WB_CHECK(tree->writing);

    struct wb_tree_root *root = &tree->next.roots[table];
    struct wb_tree_path path;
    unsigned i = 0;
    int err = wb_tree_begin_change(tree, table);

    if (err < 0)
        return err;
    if (root->ref.page == 0)
        return wb_fail(WB_E_NOTFOUND, "not in %s", tree->file.path);
    if (delete_near(tree, table, key))
        return 0;
    err = wb_tree_descend(tree, root, table, key, &path);
    if (err == 0 && !wb_tree_page_find(path.nodes[0]->page, key, &i))
        err = wb_fail(WB_E_NOTFOUND, "not in %s", tree->file.path);
    for (unsigned level = path.depth; err == 0 && level-- > 0;)
        err = make_changeable(tree, root, &path, level);
    if (err == 0 && root->rows == 0)
        err = miscounted(tree, table);
    if (err == 0) {
        wb_tree_page_remove(path.nodes[0]->page, i);
        root->rows--;
        err = wb_tree_spoil(tree, tidy(tree, table, &path));
        wb_tree_near_forget(tree, table);
    }
    if (err == 0 && (root->rows == 0) != (root->ref.page == 0))
        err = wb_tree_spoil(tree, miscounted(tree, table));
    wb_tree_path_release(&path);
    return err;
}
