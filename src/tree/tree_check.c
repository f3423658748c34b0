/*
 * tree_check.c - reads every page of a state and checks that
 *   - each page is valid, and its keys are within the bounds of the page above
 *   - no page is used twice
 *   - each table has as many rows as the root record says
 *   - the free-space map marks exactly these pages as in use
 * Damage in one place does not stop the check: everything that can still be reached is
 * checked. Nothing is changed.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "tree/tree_own.h"

#include <stdio.h>

enum { MESSAGES_MAX = 20 };

struct tree_check {
    struct wb_tree *tree;
    const struct wb_tree_state *state;
    uint8_t *seen;      /* one bit for each page: it was reached */
    uint64_t rows;      /* in the current table */
    unsigned problems;  /* reported so far */
    unsigned misjudged; /* pages about which the free-space map is wrong; only MESSAGES_MAX are reported */
    wb_tree_found found;
    void *context;
};

static void report(struct tree_check *c, uint64_t offset, const char *message)
{
    WB_CHECK(message != NULL);
    c->problems++;
    if (c->found)
        c->found(c->context, true, offset, message);
}

/* Reports damage; returns any other error. */
static int absorb(struct tree_check *c, int err, uint32_t page)
{
    WB_CHECK(err <= 0);
    if (err != WB_E_CORRUPT)
        return err;
    report(c, (uint64_t)page * WB_TREE_PAGE_BYTES, wb_error_message());
    return 0;
}

/* Marks a page as reached. */
static int see(void *context, uint32_t page)
{
    struct tree_check *c = context;

    WB_CHECK(c->tree->magic == WB_TREE_MAGIC);
    WB_CHECK(c->seen != NULL);
    if (page >= c->state->pages)
        return wb_tree_damaged(c->tree, page, "it is pointed to, but the file ends before it");
    if (c->seen[page / 8] & 1 << page % 8)
        return wb_tree_damaged(c->tree, page, "it is used twice");
    c->seen[page / 8] |= (uint8_t)(1 << page % 8);
    return 0;
}

/* Checks the page at ref and everything below it. */
static int check_below(struct tree_check *c, unsigned table, struct wb_tree_ref ref, unsigned level,
                       struct wb_slice low, struct wb_slice high)
{
    WB_CHECK(c->seen != NULL);
    WB_CHECK(level < WB_TREE_LEVELS_MAX);
    WB_CHECK(table < WB_TREE_TABLES_MAX);

    struct wb_tree_node *node = NULL;
    int err = see(c, ref.page);

    if (err == 0)
        err = wb_tree_node_load(c->tree, ref, table, level, &node);
    if (err == 0) {
        const char *wrong = wb_tree_bounds_check(node->page, low, high);
        if (wrong)
            err = wb_tree_damaged(c->tree, ref.page, wrong);
    }
    if (err == 0 && level == 0)
        c->rows += wb_tree_page_count(node->page);
    for (unsigned i = 0; level > 0 && err == 0 && i < wb_tree_page_count(node->page); i++) {
        struct wb_slice l = low, h = high;
        wb_tree_bounds_below(node->page, i, &l, &h);
        err = check_below(c, table, wb_tree_page_ref(node->page, i), level - 1, l, h);
    }
    if (node)
        wb_tree_node_unpin(node);
    return absorb(c, err, ref.page);
}

static int check_table(struct tree_check *c, unsigned table)
{
    const struct wb_tree_root *root = &c->state->roots[table];
    unsigned before = c->problems;
    char message[128];
    int err;

    WB_CHECK(c->seen != NULL);
    WB_CHECK(table < WB_TREE_TABLES_MAX);
    if (root->ref.page == 0)
        return 0;
    c->rows = 0;
    err = check_below(c, table, root->ref, root->level, WB_SLICE_EMPTY, (struct wb_slice){NULL, 0});
    if (err == 0 && c->problems == before && c->rows != root->rows) {
        snprintf(message, sizeof message, "table %u has %llu rows, the root record says %llu", table,
                 (unsigned long long)c->rows, (unsigned long long)root->rows);
        report(c, 0, message);
    }
    return err;
}

/* Compares the free-space map with the pages that were reached. */
static void compare_map(struct tree_check *c, const struct wb_tree_space *space)
{
    char message[128];

    WB_CHECK(space->maps.count > 0 || c->state->pages <= WB_TREE_FIRST_PAGE);
    for (uint32_t page = WB_TREE_FIRST_PAGE; page < c->state->pages; page++) {
        bool seen = c->seen[page / 8] & 1 << page % 8, used = wb_tree_space_of(space, page) == 1;
        if (seen == used || c->misjudged++ >= MESSAGES_MAX)
            continue;
        snprintf(message, sizeof message, "page %lu is %s, but the free-space map says otherwise", (unsigned long)page,
                 seen ? "in use" : "not in use");
        report(c, (uint64_t)page * WB_TREE_PAGE_BYTES, message);
    }
}

static int check_map(struct tree_check *c)
{
    WB_CHECK(c->tree->magic == WB_TREE_MAGIC);
    WB_CHECK(c->seen != NULL);

    struct wb_tree_space space = {0};
    unsigned before = c->problems;
    int err = wb_tree_space_read(c->tree, c->state, &space, see, c);

    if (err == 0 && before == 0) /* otherwise pages below a damaged one were not reached, and would be reported too */
        compare_map(c, &space);
    wb_tree_space_release(&space);
    return absorb(c, err, 0);
}

/*
 * Both copies of the root record should be valid, unless a writer is writing them right
 * now. An invalid copy is only a note, not a problem: we cannot tell whether it was damaged
 * or whether a power failure interrupted a commit; the other copy is used, and the next
 * writer replaces this one.
 */
static int check_roots(struct tree_check *c)
{
    WB_CHECK(c->tree->magic == WB_TREE_MAGIC);

    struct wb_tree_state state;
    struct wb_tree_roots roots;
    int err = wb_tree_roots_read(c->tree, &state, &roots);

    if (err == 0 && !(roots.sound[0] && roots.sound[1]))
        err = wb_tree_writer_busy(c->tree);
    if (err > 0)
        return 0;
    if (err == 0) /* the writer may have finished after we read the copies, and before we asked for its lock */
        err = wb_tree_roots_read(c->tree, &state, &roots);
    for (unsigned i = 0; i < 2 && err == 0; i++)
        if (!roots.sound[i] && c->found)
            c->found(c->context, false, i * WB_TREE_PAGE_BYTES,
                     "this copy of the root record is unfinished or damaged: the other one is used");
    return absorb(c, err, 0);
}

int wb_tree_check(struct wb_tree *tree, const struct wb_tree_state *state, wb_tree_found found, void *context)
{
    struct tree_check c = {.tree = tree, .state = state, .found = found, .context = context};
    int err = wb_tree_usable(tree);

    WB_CHECK(state->pages >= WB_TREE_FIRST_PAGE);
    c.seen = err == 0 ? wb_alloc_zero(state->pages / 8 + 1, 1) : NULL;
    if (err == 0 && !c.seen)
        err = WB_E_NOMEM;
    if (err == 0)
        err = check_roots(&c);
    for (unsigned i = 0; i < WB_TREE_TABLES_MAX && err == 0; i++)
        err = check_table(&c, i);
    if (err == 0)
        err = check_map(&c);
    wb_free(c.seen);
    return err;
}
