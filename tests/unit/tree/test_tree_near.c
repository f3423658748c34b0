/*
 * test_tree_near.c - rows that are changed in the order of their keys, so that most of them belong in the leaf that was
 * used last: a tree and a simple sorted list contain the same, whatever is put, replaced and deleted on the way.
 */
#include "tree_support.h"

enum { TABLES = 2 };

struct walk {
    uint64_t chance;
    struct wb_tree *tree;
    struct twin_tree twin;
    unsigned used; /* how often a leaf was used again */
};

static struct wb_slice number_key(uint64_t number, char room[WB_TREE_KEY_MAX])
{
    wb_put64_be((uint8_t *)room, number);
    return wb_slice(room, 8 + number % 3 * 4); /* keys of several lengths, in the order of their numbers */
}

/* A value of one of two lengths, so that one is often replaced by one of the same length. */
static struct wb_slice some_value(struct walk *w, char room[WB_TREE_VALUE_MAX])
{
    size_t len = chance_one_in(&w->chance, 2) ? 40 : 41;

    for (size_t i = 0; i < len; i++)
        room[i] = (char)chance_next(&w->chance);
    return wb_slice(room, len);
}

static void change(struct walk *w, unsigned table, uint64_t number)
{
    char key_room[WB_TREE_KEY_MAX] = {0}, value_room[WB_TREE_VALUE_MAX], got[WB_TREE_VALUE_MAX];
    struct wb_slice key = number_key(number, key_room), value = some_value(w, value_room);
    struct twin_table *twin = &w->twin.tables[table];
    const struct twin_row *row = twin_get(twin, key);
    const struct wb_tree_node *near = w->tree->near[table].leaf;
    size_t len;

    int err = wb_tree_get(w->tree, wb_tree_next(w->tree), table, key, got, sizeof got, &len);
    must(err == (row ? 0 : WB_E_NOTFOUND));
    must(!row || wb_slice_equal(wb_slice(got, len), wb_slice(row->value, row->value_len)));
    if (row && chance_one_in(&w->chance, 8)) {
        must_ok(wb_tree_delete(w->tree, table, key));
        must(twin_delete(twin, key));
        return;
    }
    must_ok(wb_tree_put(w->tree, table, key, value));
    twin_put(twin, key, value);
    w->used += near && near == w->tree->near[table].leaf;
}

/* Goes up through the keys of both tables in turn. */
static void pass(struct walk *w, uint64_t keys, uint64_t step)
{
    for (uint64_t number = chance_below(&w->chance, step); number < keys; number += 1 + chance_below(&w->chance, step))
        change(w, chance_one_in(&w->chance, 3), number);
    compare_tables(w->tree, wb_tree_next(w->tree), &w->twin, TABLES);
}

static void run(uint64_t keys, unsigned rounds)
{
    struct walk w = {.chance = test_seed()};
    struct wb_tree_state state;

    must_ok(wb_tree_open(path, WB_TREE_CREATE, &w.tree));
    for (unsigned i = 0; i < rounds; i++) {
        must_ok(wb_tree_begin(w.tree));
        pass(&w, keys, 1 + i % 3 * 10);
        pass(&w, keys, 30);
        if (chance_one_in(&w.chance, 6)) {
            must_ok(wb_tree_clear(w.tree, 1));
            w.twin.tables[1].count = 0;
            pass(&w, keys, 30);
        }
        must_ok(wb_tree_commit(w.tree));
        for (unsigned t = 0; t < WB_TREE_TABLES_MAX; t++)
            assert_null(w.tree->near[t].leaf); /* it is not a changed page any more */
        must_ok(wb_tree_look(w.tree, &state));
        compare_tables(w.tree, &state, &w.twin, TABLES);
        must(check_tree(w.tree, &state) == 0);
    }
    assert_true(w.used > keys / 4);
    wb_tree_close(w.tree);
    twin_release(&w.twin);
}

static void test_in_order(void **state)
{
    (void)state;
    run(3000, test_rounds(12));
}

/* After an abort, nothing of it is left. */
static void test_abort(void **state)
{
    struct walk w = {.chance = test_seed()};
    struct twin_tree before = {0};

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &w.tree));
    for (unsigned i = 0; i < test_rounds(20); i++) {
        must_ok(wb_tree_begin(w.tree));
        pass(&w, 500, 5);
        if (i % 2) {
            wb_tree_abort(w.tree);
            twin_copy(&before, &w.twin);
        } else {
            must_ok(wb_tree_commit(w.tree));
            twin_copy(&w.twin, &before);
        }
    }
    must_ok(wb_tree_begin(w.tree));
    compare_tables(w.tree, wb_tree_next(w.tree), &w.twin, TABLES);
    wb_tree_abort(w.tree);
    wb_tree_close(w.tree);
    twin_release(&w.twin);
    twin_release(&before);
}

/* More pages than a transaction keeps in memory: leaves are written ahead of the commit, and read again. */
static void test_written_ahead(void **state)
{
    char key_room[WB_TREE_KEY_MAX] = {0}, value[600] = {0}, got[sizeof value];
    struct wb_tree_state now;
    struct wb_tree *tree;
    uint64_t many = 7 * WB_TREE_DIRTY_MAX;
    size_t len;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    must_ok(wb_tree_begin(tree));
    for (uint64_t i = 0; i < many; i++) {
        wb_put64(value, i);
        must_ok(wb_tree_put(tree, 0, number_key(i, key_room), wb_slice(value, sizeof value)));
        struct wb_slice before = number_key(i / 2, key_room);
        must_ok(wb_tree_get(tree, wb_tree_next(tree), 0, before, got, sizeof got, &len));
        must(wb_get64(got) == i / 2);
    }
    must_ok(wb_tree_commit(tree));
    must_ok(wb_tree_look(tree, &now));
    assert_int_equal(now.roots[0].rows, many);
    must(check_tree(tree, &now) == 0);
    wb_tree_close(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order, make_dir),
        cmocka_unit_test_setup(test_abort, make_dir),
        cmocka_unit_test_setup(test_written_ahead, make_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
