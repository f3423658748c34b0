/*
 * tree_write.c - a transaction. Pages that change are copied into memory first, with
 * all pages above them up to the root; the copies get their places in the file when
 * they are written (tree_commit.c). Nothing that can fail for damage happens after a
 * page has begun to change, so a key that lies in a damaged part is refused and the
 * rest of the transaction goes on.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "store/tree_own.h"

enum {
    SMALL = WB_TREE_ROOM / 3,      /* a page with less is joined with a neighbour, */
    JOINED = WB_TREE_ROOM * 3 / 4, /* if both together have no more than this */
};

/* ---- beginning and giving up ----------------------------------------------------------- */

/* Makes both copies of the root record the newest state, durably: what an interrupted commit left is decided here. */
static int settle_roots(struct wb_tree *tree)
{
    struct wb_tree_roots roots;
    struct wb_tree_state state;
    int err = wb_tree_roots_read(tree, &state, &roots);

    if (err < 0 || (roots.sound[0] && roots.sound[1] && memcmp(roots.bytes[0], roots.bytes[1], WB_TREE_ROOT_BYTES) == 0))
        return err;
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

    WB_CHECK(tree->magic == WB_TREE_MAGIC && !tree->writing && !tree->changed);
    if (err == 0 && !tree->writable)
        err = wb_fail(WB_E_IO, "cannot write %s: it is open for reading", tree->file.path);
    if (err == 0)
        err = wb_tree_lock_writer(tree);
    if (err < 0)
        return err;
    tree->writing = true;
    tree->failed = false;
    err = settle_roots(tree);
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
    WB_CHECK(tree->writing);
    return &tree->next;
}

void wb_tree_abort(struct wb_tree *tree)
{
    if (!tree->writing)
        return;
    while (tree->changed)
        wb_tree_node_drop(tree, tree->changed);
    wb_tree_space_forget(&tree->space);
    tree->out.count = 0;
    tree->writing = false;
    tree->changes++;
    wb_tree_unlock_writer(tree);
}

/* An error in the middle of a change: the pages in memory are out of step. */
static int spoil(struct wb_tree *tree, int err)
{
    tree->failed = tree->failed || err < 0;
    return err;
}

/* ---- copying what will change ------------------------------------------------------------ */

/* Replaces a page of a path with a copy that may change; above is told where it is. */
static int make_changeable(struct wb_tree *tree, struct wb_tree_root *root, struct wb_tree_path *path, unsigned level)
{
    struct wb_tree_node *node = path->nodes[level], *copy;
    int err;

    if (node->dirty)
        return 0;
    err = wb_tree_space_give(tree, node->ref.page, wb_tree_page_txn(node->page));
    if (err < 0)
        return err;
    err = wb_tree_node_new(tree, node->page, &copy);
    if (err < 0)
        return spoil(tree, err);
    copy->pins++;
    path->nodes[level] = copy;
    if (level + 1 == path->depth)
        root->ref = wb_tree_node_ref(copy);
    else
        wb_tree_page_set_ref(path->nodes[level + 1]->page, path->index[level + 1], wb_tree_node_ref(copy));
    wb_tree_node_unpin(node);
    return 0;
}

/* The path of a key, all of it changeable. */
static int open_path(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_tree_path *path_out)
{
    struct wb_tree_root *root = &tree->next.roots[table];
    int err = wb_tree_descend(tree, root, table, key, path_out);

    for (unsigned level = path_out->depth; err == 0 && level-- > 0;)
        err = make_changeable(tree, root, path_out, level);
    if (err < 0)
        wb_tree_path_release(path_out);
    return err;
}

/* ---- putting ------------------------------------------------------------------------------- */

/* A new root above two pages. */
static int add_level(struct wb_tree *tree, unsigned table, struct wb_slice separator, struct wb_tree_node *right)
{
    struct wb_tree_root *root = &tree->next.roots[table];
    char cell[WB_TREE_CELL_MAX];
    struct wb_tree_node *node;
    int err;

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

/* Inserts a cell into the page at a level of the path, splitting pages upwards as long as there is no room. */
static int insert_cell(struct wb_tree *tree, unsigned table, struct wb_tree_path *path, unsigned i, char *cell, size_t len)
{
    char separator[WB_TREE_KEY_MAX];

    for (unsigned level = 0; level < path->depth; level++) {
        struct wb_tree_node *left = path->nodes[level], *right;
        if (wb_tree_page_insert(left->page, i, wb_slice(cell, len)))
            return 0;
        int err = wb_tree_node_new(tree, NULL, &right);
        if (err < 0)
            return err;
        struct wb_slice above = wb_slice(separator, wb_tree_page_split(left->page, right->page, i, wb_slice(cell, len), separator));
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

/* What every change begins with. */
static int begin_change(struct wb_tree *tree, unsigned table)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC && tree->writing && table < WB_TREE_TABLES_MAX);
    if (tree->failed)
        return wb_fail(WB_E_IO, "%s: this transaction has failed", tree->file.path);
    tree->changes++;
    return tree->changed_count < WB_TREE_DIRTY_MAX ? 0 : spoil(tree, wb_tree_write_changed(tree));
}

int wb_tree_put(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_slice value)
{
    char cell[WB_TREE_CELL_MAX];
    struct wb_tree_path path;
    unsigned i;
    int err = begin_change(tree, table);

    if (err < 0)
        return err;
    if (key.len == 0 || key.len > WB_TREE_KEY_MAX || value.len > WB_TREE_VALUE_MAX)
        return wb_fail(WB_E_LIMIT, "%s: a row with a key of %zu and a value of %zu bytes is too large", tree->file.path, key.len, value.len);
    size_t len = wb_tree_cell_row(cell, key, value);
    if (tree->next.roots[table].ref.page == 0)
        return plant(tree, table, wb_slice(cell, len));
    err = open_path(tree, table, key, &path);
    if (err < 0)
        return err;
    char *leaf = path.nodes[0]->page;
    bool known = wb_tree_page_find(leaf, key, &i);
    if (known)
        wb_tree_page_remove(leaf, i);
    err = spoil(tree, insert_cell(tree, table, &path, i, cell, len));
    if (err == 0)
        tree->next.roots[table].rows += !known;
    wb_tree_path_release(&path);
    return err;
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* Takes a page that is not needed any more out of the path. */
static void drop_node(struct wb_tree *tree, struct wb_tree_path *path, unsigned level)
{
    struct wb_tree_node *node = path->nodes[level];

    path->nodes[level] = NULL;
    wb_tree_node_unpin(node);
    wb_tree_node_drop(tree, node);
}

/* Takes cell i out of a branch. */
static void remove_pointer(char *page, unsigned i)
{
    wb_tree_page_remove(page, i);
    if (i == 0 && wb_tree_page_count(page) > 0)
        wb_tree_page_open_first(page);
}

/* The pointer to a neighbour, loaded: 1; or 0 if there is none to join with. One that is damaged is left alone. */
static int find_neighbour(struct wb_tree *tree, unsigned table, const char *above, unsigned i, unsigned level, size_t used,
                          struct wb_tree_node **neighbour_out)
{
    size_t separator = level ? WB_TREE_KEY_MAX : 0; /* which a join of branches adds */
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

/* Joins the page at a level with a neighbour, if both are small: the right one's cells go to the left one. */
static int join(struct wb_tree *tree, unsigned table, struct wb_tree_path *path, unsigned level)
{
    struct wb_tree_node *above = path->nodes[level + 1], *node = path->nodes[level], *neighbour = NULL;
    unsigned i = path->index[level + 1];
    size_t used = wb_tree_page_used(node->page);
    bool to_left = i > 0;
    int err;

    if (used >= SMALL || wb_tree_page_count(above->page) < 2)
        return 0;
    err = find_neighbour(tree, table, above->page, to_left ? i - 1 : i + 1, level, used, &neighbour);
    if (err <= 0)
        return err;
    struct wb_slice separator = wb_tree_page_key(above->page, to_left ? i : i + 1);
    if (to_left) {
        /* The neighbour takes our place in the path, so that it can be made changeable. */
        path->nodes[level] = neighbour;
        path->index[level + 1] = i - 1;
        err = make_changeable(tree, &tree->next.roots[table], path, level);
        if (err == 0)
            wb_tree_page_join(path->nodes[level]->page, node->page, separator);
        wb_tree_node_unpin(node);
        if (err == 0) {
            wb_tree_node_drop(tree, node);
            remove_pointer(above->page, i);
        }
        return err;
    }
    err = neighbour->dirty ? 0 : wb_tree_space_give(tree, neighbour->ref.page, wb_tree_page_txn(neighbour->page));
    if (err == 0) {
        wb_tree_page_join(node->page, neighbour->page, separator);
        remove_pointer(above->page, i + 1);
    }
    wb_tree_node_unpin(neighbour);
    if (err == 0 && neighbour->dirty)
        wb_tree_node_drop(tree, neighbour);
    return err;
}

/* A root with one pointer is not needed: what it points to becomes the root. */
static void lower_root(struct wb_tree *tree, unsigned table, struct wb_tree_path *path)
{
    struct wb_tree_root *root = &tree->next.roots[table];

    /* A page that went is NULL in the path; what took its place above is found by a later deletion. */
    while (path->depth > 1 && path->nodes[path->depth - 1] && wb_tree_ref_equal(root->ref, wb_tree_node_ref(path->nodes[path->depth - 1])) &&
           wb_tree_page_count(path->nodes[path->depth - 1]->page) == 1) {
        root->ref = wb_tree_page_ref(path->nodes[path->depth - 1]->page, 0);
        root->level--;
        drop_node(tree, path, --path->depth);
    }
}

/* After a row has gone: pages that are empty go, small ones are joined. */
static int tidy(struct wb_tree *tree, unsigned table, struct wb_tree_path *path)
{
    int err = 0;

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
    return wb_fail(WB_E_CORRUPT, "%s is damaged: table %u has another number of rows than its root record says", tree->file.path, table);
}

int wb_tree_delete(struct wb_tree *tree, unsigned table, struct wb_slice key)
{
    struct wb_tree_root *root = &tree->next.roots[table];
    struct wb_tree_path path;
    unsigned i = 0;
    int err = begin_change(tree, table);

    if (err < 0)
        return err;
    if (root->ref.page == 0)
        return wb_fail(WB_E_NOTFOUND, "not in %s", tree->file.path);
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
        err = spoil(tree, tidy(tree, table, &path));
    }
    if (err == 0 && (root->rows == 0) != (root->ref.page == 0))
        err = spoil(tree, miscounted(tree, table));
    wb_tree_path_release(&path);
    return err;
}

/* ---- clearing a table --------------------------------------------------------------------------- */

/* What a table consists of. */
struct tree_parts {
    struct tree_part {
        uint32_t page;
        uint64_t born;
        struct wb_tree_node *changed; /* NULL: a page of the file */
    } *list;
    size_t count, cap;
};

static int add_part(struct tree_parts *parts, struct tree_part part)
{
    if (parts->count == parts->cap) {
        size_t cap = parts->cap ? parts->cap * 2 : 64;
        struct tree_part *grown = wb_realloc(parts->list, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        parts->list = grown;
        parts->cap = cap;
    }
    parts->list[parts->count++] = part;
    return 0;
}

/* Nothing is given up before everything is known: damage found on the way must change nothing. */
static int find_parts(struct wb_tree *tree, unsigned table, struct wb_tree_ref ref, unsigned level, struct tree_parts *parts)
{
    struct wb_tree_node *node;
    int err = wb_tree_node_load(tree, ref, table, level, &node);

    if (err < 0)
        return err;
    err = parts->count > tree->next.pages + tree->changed_count ? wb_tree_damaged(tree, ref.page, "it is used twice")
                                                                : add_part(parts, (struct tree_part){ref.page, wb_tree_page_txn(node->page), node->dirty ? node : NULL});
    for (unsigned i = 0; level > 0 && err == 0 && i < wb_tree_page_count(node->page); i++)
        err = find_parts(tree, table, wb_tree_page_ref(node->page, i), level - 1, parts);
    wb_tree_node_unpin(node);
    return err;
}

int wb_tree_clear(struct wb_tree *tree, unsigned table)
{
    struct wb_tree_root *root = &tree->next.roots[table];
    struct tree_parts parts = {0};
    int err = begin_change(tree, table);

    if (err == 0 && root->ref.page)
        err = find_parts(tree, table, root->ref, root->level, &parts);
    for (size_t i = 0; i < parts.count && err == 0; i++) {
        if (parts.list[i].changed)
            wb_tree_node_drop(tree, parts.list[i].changed);
        else
            err = spoil(tree, wb_tree_space_give(tree, parts.list[i].page, parts.list[i].born));
    }
    if (err == 0)
        *root = (struct wb_tree_root){0};
    wb_free(parts.list);
    return err;
}
