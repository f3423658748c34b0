/*
 * test_tree.c - random operations on a tree and on a simple sorted list: after each commit,
 * abort and opening, both contain the same rows, states that are held have not changed, and
 * every page of the file is accounted for. Also the limits, and each allocation, read, write
 * and sync failing once.
 */
#include "../otherformat.h"
#include "tree_support.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>

enum { TABLES = 3, HELD_MAX = 3 };

static void create_tree(struct wb_tree **tree_out)
{
    must_ok(wb_tree_open(path, WB_TREE_CREATE, tree_out));
}

/* ---- against a naive list ------------------------------------------------------------------- */

struct held {
    struct wb_tree *tree;
    struct wb_tree_state state;
    struct twin_tree twin;
};

struct model {
    uint64_t chance;
    struct wb_tree *tree;
    struct twin_tree now, committed;
    struct held held[HELD_MAX];
    uint64_t keys;
    bool shrinking;
};

static void do_op(struct model *m)
{
    char key_room[WB_TREE_KEY_MAX], value_room[WB_TREE_VALUE_MAX], got[WB_TREE_VALUE_MAX];
    unsigned table = (unsigned)chance_below(&m->chance, TABLES);
    struct wb_slice key = random_key(&m->chance, m->keys, table == 0, key_room);
    struct twin_table *twin = &m->now.tables[table];
    unsigned kind = (unsigned)chance_below(&m->chance, 10);
    size_t len;

    if (chance_one_in(&m->chance, 5000)) {
        must_ok(wb_tree_clear(m->tree, table));
        twin->count = 0;
    } else if (kind < (m->shrinking ? 2u : 6u)) {
        struct wb_slice value = random_value(&m->chance, value_room);
        must_ok(wb_tree_put(m->tree, table, key, value));
        twin_put(twin, key, value);
    } else if (kind < 9) {
        must(wb_tree_delete(m->tree, table, key) == (twin_delete(twin, key) ? 0 : WB_E_NOTFOUND));
    } else {
        const struct twin_row *row = twin_get(twin, key);
        int err = wb_tree_get(m->tree, wb_tree_next(m->tree), table, key, got, sizeof got, &len);
        must(err == (row ? 0 : WB_E_NOTFOUND));
        must(!row || wb_slice_equal(wb_slice(got, len), wb_slice(row->value, row->value_len)));
    }
}

/* Sometimes another tree on the same file holds the state, or lets go of one. */
static void change_holders(struct model *m)
{
    struct held *held = &m->held[chance_below(&m->chance, HELD_MAX)];

    if (held->tree) {
        compare_tables(held->tree, &held->state, &held->twin, TABLES);
        check_tree(held->tree, &held->state);
        wb_tree_let_go(held->tree, held->state.txn);
        wb_tree_close(held->tree);
        held->tree = NULL;
    } else {
        must_ok(wb_tree_open(path, WB_TREE_READ, &held->tree));
        must_ok(wb_tree_hold(held->tree, &held->state));
        twin_copy(&m->committed, &held->twin);
    }
}

static void compare_newest(struct model *m)
{
    struct wb_tree_state state;

    must_ok(wb_tree_look(m->tree, &state));
    compare_tables(m->tree, &state, &m->committed, TABLES);
    must(check_tree(m->tree, &state) == 0);
}

static void do_transaction(struct model *m, unsigned ops)
{
    must_ok(wb_tree_begin(m->tree));
    for (unsigned i = 0; i < ops; i++)
        do_op(m);
    compare_tables(m->tree, wb_tree_next(m->tree), &m->now, TABLES);
    if (chance_one_in(&m->chance, 5)) {
        wb_tree_abort(m->tree);
        twin_copy(&m->committed, &m->now);
    } else {
        must_ok(wb_tree_commit(m->tree));
        twin_copy(&m->now, &m->committed);
    }
}

static void run_model(uint64_t keys, unsigned transactions, unsigned ops)
{
    struct model m = {.chance = test_seed(), .keys = keys};

    create_tree(&m.tree);
    for (unsigned i = 0; i < transactions; i++) {
        m.shrinking = i / 10 % 3 == 2;
        do_transaction(&m, 1 + (unsigned)chance_below(&m.chance, ops));
        if (chance_one_in(&m.chance, 3))
            change_holders(&m);
        if (chance_one_in(&m.chance, 5)) {
            wb_tree_close(m.tree);
            must_ok(wb_tree_open(path, WB_TREE_WRITE, &m.tree));
        }
        compare_newest(&m);
    }
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (m.held[i].tree)
            wb_tree_close(m.held[i].tree);
        twin_release(&m.held[i].twin);
    }
    wb_tree_close(m.tree);
    twin_release(&m.now);
    twin_release(&m.committed);
}

static void test_small(void **state)
{
    (void)state;
    run_model(40, test_rounds(300), 20);
}

static void test_middle(void **state)
{
    (void)state;
    run_model(2000, test_rounds(120), 400);
}

static void test_large(void **state)
{
    (void)state;
    run_model(20000, test_rounds(30), 12000);
}

/* ---- more changed pages than are kept in memory ------------------------------------------------ */

static int count_row(void *context, struct wb_slice key, struct wb_slice value)
{
    uint64_t *count = context;

    must(key.len == 8 && value.len == WB_TREE_VALUE_MAX && wb_get64(value.ptr) == wb_get64_be(key.ptr));
    (*count)++;
    return 0;
}

static void test_large_transaction(void **state)
{
    uint64_t rows = 5 * WB_TREE_DIRTY_MAX, count = 0;
    char key[8], value[WB_TREE_VALUE_MAX] = {0};
    struct wb_tree_state now;
    struct wb_tree *tree;

    (void)state;
    create_tree(&tree);
    for (unsigned round = 0; round < 2; round++) {
        must_ok(wb_tree_begin(tree));
        for (uint64_t i = 0; i < rows; i++) {
            uint64_t number = i * 7919 % rows;
            wb_put64_be(key, number);
            wb_put64(value, number);
            must_ok(wb_tree_put(tree, 0, wb_slice(key, sizeof key), wb_slice(value, sizeof value)));
            must(tree->changed_count <= WB_TREE_DIRTY_MAX + 2 * WB_TREE_LEVELS_MAX);
        }
        must_ok(wb_tree_commit(tree));
    }
    must_ok(wb_tree_look(tree, &now));
    must_ok(wb_tree_each(tree, &now, 0, count_row, &count));
    assert_int_equal(count, rows);
    must(check_tree(tree, &now) == 0);
    wb_tree_close(tree);
}

/* ---- limits ---------------------------------------------------------------------------------------- */

static void test_limits(void **state)
{
    char bytes[WB_TREE_VALUE_MAX + 1] = {1};
    struct wb_tree *tree, *other;
    size_t len;

    (void)state;
    create_tree(&tree);
    must_ok(wb_tree_begin(tree));
    assert_int_equal(wb_tree_put(tree, 0, WB_SLICE_EMPTY, wb_slice(bytes, 1)), WB_E_LIMIT);
    assert_int_equal(wb_tree_put(tree, 0, wb_slice(bytes, WB_TREE_KEY_MAX + 1), wb_slice(bytes, 1)), WB_E_LIMIT);
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(wb_tree_put(tree, 0, wb_slice(bytes, 1), wb_slice(bytes, WB_TREE_VALUE_MAX + 1)), WB_E_LIMIT);
    must_ok(wb_tree_put(tree, 0, wb_slice(bytes, WB_TREE_KEY_MAX), wb_slice(bytes, WB_TREE_VALUE_MAX)));
    assert_int_equal(wb_tree_get(tree, wb_tree_next(tree), 0, wb_slice(bytes, WB_TREE_KEY_MAX), bytes, 10, &len),
                     WB_E_CORRUPT);
    must_ok(wb_tree_commit(tree));
    must_ok(wb_tree_open(path, WB_TREE_READ, &other));
    assert_int_equal(wb_tree_begin(other), WB_E_IO);
    wb_tree_close(other);
    wb_tree_close(tree);
    path_in(dir, "no such tree", bytes);
    assert_int_equal(wb_tree_open(bytes, WB_TREE_READ, &other), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), "missing"));
}

/* ---- space -------------------------------------------------------------------------------------------- */

static uint32_t pages_of(struct wb_tree *tree)
{
    struct wb_tree_state state;

    must_ok(wb_tree_look(tree, &state));
    return state.pages;
}

/* Changes every leaf. */
static void rewrite(struct wb_tree *tree, unsigned rows, char content)
{
    char key[8], value[40];

    must_ok(wb_tree_begin(tree));
    memset(value, content, sizeof value);
    for (uint64_t i = 0; i < rows; i++) {
        wb_put64_be(key, i);
        must_ok(wb_tree_put(tree, 0, wb_slice(key, sizeof key), wb_slice(value, sizeof value)));
    }
    must_ok(wb_tree_commit(tree));
}

/* However often a tree is rewritten, the file is about twice its size; with one reader that stays, three times. */
static void test_space(void **state)
{
    enum { ROWS = 5000 };
    struct wb_tree *tree, *slow, *quick[3] = {0};
    struct wb_tree_state held, state_of[3];

    (void)state;
    create_tree(&tree);
    rewrite(tree, ROWS, 'a');
    uint32_t once = pages_of(tree);
    for (unsigned i = 0; i < 30; i++)
        rewrite(tree, ROWS, (char)i);
    assert_true(pages_of(tree) <= 2 * once + 10);
    must_ok(wb_tree_open(path, WB_TREE_READ, &slow));
    must_ok(wb_tree_hold(slow, &held));
    for (unsigned i = 0; i < 30; i++)
        rewrite(tree, ROWS, (char)i);
    assert_true(pages_of(tree) <= 3 * once + 20);
    /* A succession of readers, three at a time, costs the states that they hold. */
    for (unsigned i = 0; i < 60; i++) {
        struct wb_tree **one = &quick[i % 3];
        if (*one)
            wb_tree_close(*one);
        must_ok(wb_tree_open(path, WB_TREE_READ, one));
        must_ok(wb_tree_hold(*one, &state_of[i % 3]));
        rewrite(tree, ROWS, (char)i);
    }
    assert_true(pages_of(tree) <= 6 * once);
    for (unsigned i = 0; i < 3; i++)
        wb_tree_close(quick[i]);
    must(check_tree(slow, &held) == 0);
    wb_tree_close(slow);
    must_ok(wb_tree_look(tree, &held));
    check_tree(tree, &held);
    wb_tree_close(tree);
}

/* ---- faults ------------------------------------------------------------------------------------------- */

static int change_tree(struct wb_tree *tree)
{
    char key[8], value[300] = {7};
    int err = wb_tree_begin(tree);

    if (err < 0)
        return err;
    for (uint64_t i = 0; i < 60 && err == 0; i++) {
        wb_put64_be(key, i * 3 + 500);
        err = i % 4 ? wb_tree_put(tree, i % 2, wb_slice(key, sizeof key), wb_slice(value, sizeof value))
                    : wb_tree_delete(tree, 0, wb_slice(key, sizeof key));
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    if (err == 0)
        return wb_tree_commit(tree);
    wb_tree_abort(tree);
    return err;
}

static void grow_tree(struct wb_tree *tree)
{
    char key[8], value[200] = {1};

    must_ok(wb_tree_begin(tree));
    for (uint64_t i = 0; i < 1000; i++) {
        wb_put64_be(key, i);
        must_ok(wb_tree_put(tree, 0, wb_slice(key, sizeof key), wb_slice(value, sizeof value)));
    }
    must_ok(wb_tree_commit(tree));
}

struct rows {
    uint64_t count, changed;
};

static int look_at_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct rows *rows = context;

    (void)key;
    rows->count++;
    rows->changed += value.len == 300;
    return 0;
}

/* Either the whole change is there, or nothing of it. */
static bool is_changed(struct wb_tree *tree)
{
    struct rows rows = {0};
    struct wb_tree_state state;

    must_ok(wb_tree_look(tree, &state));
    must(check_tree(tree, &state) <= 1);
    must_ok(wb_tree_each(tree, &state, 0, look_at_row, &rows));
    must_ok(wb_tree_each(tree, &state, 1, look_at_row, &rows));
    must(rows.changed == 0 ? rows.count == 1000 : rows.changed == 45);
    return rows.changed != 0;
}

/* Makes one system call fail; returns false if there were not enough of them. */
static bool fail_once(unsigned kind, uint64_t nth, int error)
{
    struct wb_tree *tree;

    create_tree(&tree);
    grow_tree(tree);
    wb_tree_close(tree);
    must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
    wb_fault_arm(kind, nth, error);
    int err = change_tree(tree);
    bool struck = wb_fault_struck();
    wb_fault_disarm();
    must(err == 0 || (struck && err == (kind == WB_FAULT_ALLOC ? WB_E_NOMEM : WB_E_IO)));
    if (wb_tree_uncertain(tree)) {
        struct wb_tree_state state;
        must(err == WB_E_IO && strstr(wb_error_message(), "not known"));
        must(wb_tree_look(tree, &state) == WB_E_IO && wb_tree_begin(tree) == WB_E_IO);
        wb_tree_close(tree);
        must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
        is_changed(tree);
    } else {
        must(is_changed(tree) == (err == 0));
    }
    must_ok(change_tree(tree)); /* the tree can still be used */
    must(is_changed(tree));
    wb_tree_close(tree);
    return struck;
}

static void test_faults(void **state)
{
    static const struct {
        unsigned kind;
        int error;
    } kinds[] = {{WB_FAULT_ALLOC, ENOMEM}, {WB_FAULT_READ, EIO}, {WB_FAULT_WRITE, ENOSPC}, {WB_FAULT_SYNC, EIO}};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        uint64_t nth = 1;
        while (fail_once(kinds[i].kind, nth, kinds[i].error))
            nth++;
        must(nth > 2);
    }
}

/* Only the beginning of the root record was written when the power failed. */
static void test_torn_roots(void **state)
{
    struct wb_tree *tree;
    struct wb_buf before, after;

    (void)state;
    create_tree(&tree);
    grow_tree(tree);
    wb_tree_close(tree);
    must_ok(wb_path_read(path, 1 << 24, &before));
    must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
    must_ok(change_tree(tree));
    wb_tree_close(tree);
    must_ok(wb_path_read(path, 1 << 24, &after));
    for (size_t cut = 0; cut <= 1024; cut += 8) {
        /* All pages were written, this many bytes of copy 0, and nothing of copy 1. */
        struct wb_buf torn = WB_BUF_INIT;
        must_ok(wb_buf_append_slice(&torn, wb_buf_slice(&after)));
        memcpy(torn.ptr + cut, before.ptr + cut, 2 * WB_TREE_PAGE_BYTES - cut);
        bool whole = memcmp(torn.ptr, after.ptr, WB_TREE_ROOT_BYTES) == 0;
        must_ok(wb_path_replace(path, wb_buf_slice(&torn)));
        wb_buf_release(&torn);
        must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
        must(is_changed(tree) == whole);
        must_ok(change_tree(tree));
        must(is_changed(tree));
        wb_tree_close(tree);
    }
    wb_buf_release(&before);
    wb_buf_release(&after);
}

/* A tree of another format is not called damaged. */
static void test_another_format(void **state)
{
    struct wb_tree *tree;

    (void)state;
    create_tree(&tree);
    grow_tree(tree);
    wb_tree_close(tree);
    for (uint64_t copy = 0; copy < 2; copy++) {
        /* One copy of the root record is enough to read it. */
        must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
        wb_tree_close(tree);
        put_format(path, copy * WB_TREE_PAGE_BYTES, 7, '2', 0);
    }
    assert_refused_format(wb_tree_open(path, WB_TREE_READ, &tree), path, 2);
    assert_refused_format(wb_tree_open(path, WB_TREE_WRITE, &tree), path, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),          cmocka_unit_test(test_middle),
        cmocka_unit_test(test_large),          cmocka_unit_test(test_large_transaction),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_space),
        cmocka_unit_test(test_faults),         cmocka_unit_test(test_torn_roots),
        cmocka_unit_test(test_another_format),
    };

    return cmocka_run_group_tests(tests, make_dir, NULL);
}
