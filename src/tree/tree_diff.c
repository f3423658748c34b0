/*
 * tree_diff.c - finds the rows in which two states of a table differ. States share the pages that did not change
 * between them, so it walks over both at once, and passes over what both point to: the cost follows from what differs.
 *
 *   old   branch ----+---------+---------+         new   branch ----+----------+---------+
 *                 leaf 5     leaf 9    leaf 7                     leaf 5    leaf 12    leaf 7
 *                 (passed)             (passed)
 *
 * Each side has a *head*: the first page, or row, that was not dealt with yet. All keys behind a head of a page are at
 * least its lower bound. If both heads are the same page, both sides go on behind it. Otherwise the head that begins
 * first, or that is higher, is replaced by what is in it, until both are rows, which are compared. A row that comes
 * before the lower bound of the other side's page is on one side only. So it does not matter how pages were divided
 * and joined in between, or whether one of the trees is higher.
 */
#include "base/check.h"
#include "base/error.h"
#include "tree/tree_own.h"

enum diff_head { HEAD_END, HEAD_PAGE, HEAD_ROW };

/* A branch that a side is in. */
struct diff_branch {
    struct wb_tree_node *node; /* pinned */
    unsigned at;               /* the cell that leads to the head, or to what it is in */
    struct wb_slice low, high; /* bounds of its keys */
};

struct diff_side {
    struct wb_tree *tree;
    unsigned table;
    enum diff_head head;
    struct wb_tree_ref ref; /* the head is this page ... */
    unsigned level;
    struct wb_slice low, high;
    struct diff_branch branches[WB_TREE_LEVELS_MAX]; /* from the root on */
    unsigned depth;
    struct wb_tree_node *leaf; /* ... or row `row` of this leaf; NULL if that is in room */
    const char *page;
    unsigned row;
    char room[WB_TREE_PAGE_BYTES];
};

static void start(struct diff_side *side, struct wb_tree *tree, unsigned table, const struct wb_tree_root *root)
{
    side->tree = tree;
    side->table = table;
    side->head = root->ref.page ? HEAD_PAGE : HEAD_END;
    side->ref = root->ref;
    side->level = root->level;
    side->low = WB_SLICE_EMPTY;
    side->high = (struct wb_slice){NULL, 0};
    side->depth = 0;
    side->leaf = NULL;
}

static void release(struct diff_side *side)
{
    if (side->leaf)
        wb_tree_node_unpin(side->leaf);
    side->leaf = NULL;
    while (side->depth > 0)
        wb_tree_node_unpin(side->branches[--side->depth].node);
}

/* The head becomes the page that the innermost branch leads to. */
static void head_below(struct diff_side *side)
{
    const struct diff_branch *branch = &side->branches[side->depth - 1];

    WB_CHECK(side->depth > 0);
    side->head = HEAD_PAGE;
    side->ref = wb_tree_page_ref(branch->node->page, branch->at);
    side->level = wb_tree_page_level(branch->node->page) - 1;
    side->low = branch->low;
    side->high = branch->high;
    wb_tree_bounds_below(branch->node->page, branch->at, &side->low, &side->high);
}

/* Goes on behind the head. */
static void pass(struct diff_side *side)
{
    WB_CHECK(side->head != HEAD_END);
    if (side->head == HEAD_ROW && ++side->row < wb_tree_page_count(side->page))
        return;
    if (side->leaf)
        wb_tree_node_unpin(side->leaf);
    side->leaf = NULL;
    while (side->depth > 0) {
        struct diff_branch *branch = &side->branches[side->depth - 1];
        if (++branch->at < wb_tree_page_count(branch->node->page)) {
            head_below(side);
            return;
        }
        wb_tree_node_unpin(branch->node);
        side->depth--;
    }
    side->head = HEAD_END;
}

/* Replaces a head that is a page by what is in it. */
static int open_page(struct diff_side *side)
{
    struct wb_tree_node *node = NULL;
    const char *page, *wrong;
    int err;

    WB_CHECK(side->head == HEAD_PAGE);
    WB_CHECK(side->depth < WB_TREE_LEVELS_MAX);
    if (side->level == 0) {
        err = wb_tree_node_peek(side->tree, side->ref, side->table, side->room, &node, &page);
    } else {
        err = wb_tree_node_load(side->tree, side->ref, side->table, side->level, &node);
        page = err == 0 ? node->page : NULL;
    }
    if (err < 0)
        return err;
    wrong = wb_tree_bounds_check(page, side->low, side->high);
    if (wrong) {
        if (node)
            wb_tree_node_unpin(node);
        return wb_tree_damaged(side->tree, side->ref.page, wrong);
    }
    if (side->level == 0) {
        side->leaf = node;
        side->page = page;
        side->row = 0;
        side->head = HEAD_ROW;
        return 0;
    }
    side->branches[side->depth++] = (struct diff_branch){node, 0, side->low, side->high};
    head_below(side);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------------------------ */

struct tree_diff {
    struct diff_side old, new;
    wb_tree_each_change each;
    void *context;
};

static const struct wb_slice nothing = {NULL, 0};

/* What begins first: the old head (negative), the new one, or both at once (0). */
static int compare_heads(const struct tree_diff *d)
{
    const struct diff_side *old = &d->old, *new = &d->new;

    if (old->head == HEAD_END || new->head == HEAD_END)
        return old->head == HEAD_END ? 1 : -1;
    return wb_tree_key_compare(old->head == HEAD_ROW ? wb_tree_page_key(old->page, old->row) : old->low,
                               new->head == HEAD_ROW ? wb_tree_page_key(new->page, new->row) : new->low);
}

/* One of the two heads is a row that the other side does not have. */
static int pass_change(struct tree_diff *d, struct diff_side *side)
{
    struct wb_slice value = side == &d->new ? wb_tree_page_value(side->page, side->row) : nothing;
    int err = d->each(d->context, wb_tree_page_key(side->page, side->row), value);

    pass(side);
    return err;
}

/* Both heads are rows with the same key. */
static int compare_rows(struct tree_diff *d)
{
    struct wb_slice value = wb_tree_page_value(d->new.page, d->new.row);
    bool same = wb_slice_equal(wb_tree_page_value(d->old.page, d->old.row), value);
    int err = same ? 0 : d->each(d->context, wb_tree_page_key(d->new.page, d->new.row), value);

    pass(&d->old);
    pass(&d->new);
    return err;
}

/* Deals with what begins first. */
static int go_on(struct tree_diff *d)
{
    struct diff_side *old = &d->old, *new = &d->new;

    if (old->head == HEAD_PAGE && new->head == HEAD_PAGE &&
        old->level == new->level &&wb_tree_ref_equal(old->ref, new->ref)) {
        pass(old);
        pass(new);
        return 0;
    }
    int order = compare_heads(d);
    struct diff_side *first = order < 0 ? old : new;
    if (order == 0 && old->head == HEAD_ROW && new->head == HEAD_ROW)
        return compare_rows(d);
    if (order == 0) /* a row may be in a page that begins with its key; of two pages, the higher one is divided first */
        first = new->head == HEAD_ROW || (old->head == HEAD_PAGE && old->level >= new->level) ? old : new;
    struct diff_side *other = first == old ? new : old;
    if (first->head == HEAD_PAGE)
        return open_page(first);
    WB_CHECK(other->head != HEAD_PAGE || order != 0);
    return pass_change(d, first);
}

int wb_tree_diff(struct wb_tree *tree, const struct wb_tree_state *old, const struct wb_tree_state *new, unsigned table,
                 wb_tree_each_change each, void *context)
{
    struct tree_diff d;
    int err = wb_tree_usable(tree);

    WB_CHECK(table < WB_TREE_TABLES_MAX);
    WB_CHECK(!tree->writing);
    WB_CHECK(each != NULL);
    start(&d.old, tree, table, &old->roots[table]);
    start(&d.new, tree, table, &new->roots[table]);
    d.each = each;
    d.context = context;
    while (err == 0 && (d.old.head != HEAD_END || d.new.head != HEAD_END))
        err = go_on(&d);
    release(&d.old);
    release(&d.new);
    return err;
}
