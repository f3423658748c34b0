/*
 * test_tree_from.c - walks that begin at a key: exactly the rows from there on, of a committed state and of one
 * that is being changed, without reading pages that have only smaller keys.
 */
#include "tree_support.h"

struct from_walk {
    const struct twin_table *table;
    size_t at; /* the row that must come next */
    unsigned seen, stop_at;
};

static int see_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct from_walk *walk = context;

    must(walk->at < walk->table->count);
    const struct twin_row *row = &walk->table->rows[walk->at++];
    must(wb_slice_equal(key, wb_slice(row->key, row->key_len)));
    must(wb_slice_equal(value, wb_slice(row->value, row->value_len)));
    return ++walk->seen == walk->stop_at ? 42 : 0;
}

/* Walks from a key on, to the end and over a few rows. */
static void walk_from(struct wb_tree *tree, const struct wb_tree_state *state, const struct twin_table *table,
                      struct wb_slice from)
{
    struct from_walk walk = {.table = table};

    while (walk.at < table->count &&
           wb_slice_compare(wb_slice(table->rows[walk.at].key, table->rows[walk.at].key_len), from) < 0)
        walk.at++;
    struct from_walk few = walk;
    size_t rest = table->count - walk.at;
    must_ok(wb_tree_each_sound(tree, state, 0, from, see_row, NULL, &walk));
    assert_int_equal(walk.seen, rest);
    few.stop_at = 5;
    assert_int_equal(wb_tree_each_sound(tree, state, 0, from, see_row, NULL, &few), rest < 5 ? 0 : 42);
    assert_int_equal(few.seen, rest < 5 ? rest : 5);
}

static void walk_many(struct wb_tree *tree, const struct wb_tree_state *state, const struct twin_table *table,
                      uint64_t *chance)
{
    char room[WB_TREE_KEY_MAX + 1];

    walk_from(tree, state, table, WB_SLICE_EMPTY);
    memset(room, 0xff, sizeof room);
    walk_from(tree, state, table, wb_slice(room, WB_TREE_KEY_MAX));
    for (unsigned i = 0; i < 200; i++) {
        /* A key that is there, a bit more or less than one, or a random one. */
        struct wb_slice key = random_key(chance, 4000, false, room);
        if (table->count && i % 4 != 0) {
            const struct twin_row *row = &table->rows[chance_below(chance, table->count)];
            memcpy(room, row->key, row->key_len);
            room[row->key_len] = '\0';
            key = wb_slice(room, i % 4 == 1 ? row->key_len : i % 4 == 2 ? row->key_len + 1 : row->key_len - 1);
        }
        walk_from(tree, state, table, key);
    }
}

static void test_from(void **state)
{
    uint64_t chance = test_seed();
    char key_room[WB_TREE_KEY_MAX], value_room[WB_TREE_VALUE_MAX];
    struct twin_tree twin = {0};
    struct wb_tree_state newest;
    struct wb_tree *tree;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    for (unsigned commit = 0; commit < 4; commit++) {
        must_ok(wb_tree_begin(tree));
        walk_many(tree, wb_tree_next(tree), &twin.tables[0], &chance);
        for (unsigned i = 0; i < (commit == 0 ? 1 : 600); i++) {
            struct wb_slice key = random_key(&chance, 4000, false, key_room), value = random_value(&chance, value_room);
            must_ok(wb_tree_put(tree, 0, key, value));
            twin_put(&twin.tables[0], key, value);
        }
        walk_many(tree, wb_tree_next(tree), &twin.tables[0], &chance);
        must_ok(wb_tree_commit(tree));
        must_ok(wb_tree_look(tree, &newest));
        walk_many(tree, &newest, &twin.tables[0], &chance);
    }
    wb_tree_close(tree);
    twin_release(&twin);
}

static int count_row(void *context, struct wb_slice key, struct wb_slice value)
{
    unsigned *count = context;

    (void)key;
    (void)value;
    ++*count;
    return 0;
}

/* Returns 1 if a walk from the key on fails because of damage, else 0. */
static unsigned refused(struct wb_slice from, unsigned *rows_out)
{
    struct wb_tree_state newest;
    struct wb_tree *tree;

    *rows_out = 0;
    if (wb_tree_open(path, WB_TREE_READ, &tree) < 0)
        return 1;
    int err = wb_tree_look(tree, &newest);
    if (err == 0)
        err = wb_tree_each_sound(tree, &newest, 0, from, count_row, NULL, rows_out);
    must(err == 0 || err == WB_E_CORRUPT);
    wb_tree_close(tree);
    return err == WB_E_CORRUPT;
}

/* A walk that passes over damage. */
struct sound_walk {
    uint64_t next; /* no key may be smaller */
    unsigned rows, passed, stop_at;
};

static int see_sound_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct sound_walk *walk = context;

    (void)value;
    must(wb_get64_be(key.ptr) >= walk->next);
    walk->next = wb_get64_be(key.ptr) + 1;
    walk->rows++;
    return 0;
}

static int pass(void *context)
{
    struct sound_walk *walk = context;

    must(strstr(wb_error_message(), "is damaged: page "));
    return ++walk->passed == walk->stop_at ? 42 : 0;
}

/* Returns how many damaged pages were passed over. */
static unsigned walk_soundly(uint64_t from, unsigned rows)
{
    struct sound_walk walk = {.next = from}, stopped = {.next = from, .stop_at = 1};
    struct wb_tree_state newest;
    struct wb_tree *tree;
    char key[8];

    if (wb_tree_open(path, WB_TREE_READ, &tree) < 0)
        return 0;
    int err = wb_tree_hold(tree, &newest);
    wb_put64_be(key, from);
    struct wb_slice first = from ? wb_slice(key, sizeof key) : WB_SLICE_EMPTY;
    if (err == 0)
        must_ok(wb_tree_each_sound(tree, &newest, 0, first, see_sound_row, pass, &walk));
    must(err < 0 || (walk.passed == 0 ? walk.rows == rows - from : walk.rows < rows - from));
    if (err == 0 && walk.passed)
        assert_int_equal(wb_tree_each_sound(tree, &newest, 0, first, see_sound_row, pass, &stopped), 42);
    if (err == 0)
        wb_tree_let_go(tree, newest.txn);
    wb_tree_close(tree);
    return walk.passed;
}

/* A damaged page does not matter to a walk that does not need it; one that does is never silently shorter. */
static void test_pages_read(void **state)
{
    enum { ROWS = 3000 };
    unsigned all = 0, last = 0, passed = 0, rows;
    struct wb_tree_state newest;
    struct wb_tree *tree;
    char key[8], value[100] = {0};

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    must_ok(wb_tree_begin(tree));
    for (uint64_t i = 0; i < ROWS; i++) {
        wb_put64_be(key, i);
        must_ok(wb_tree_put(tree, 0, wb_slice(key, sizeof key), wb_slice(value, sizeof value)));
    }
    must_ok(wb_tree_commit(tree));
    must_ok(wb_tree_look(tree, &newest));
    wb_tree_close(tree);
    for (uint64_t page = 0; page < newest.pages; page++) {
        flip_byte(path, page * WB_TREE_PAGE_BYTES + 2000, 1);
        all += refused(WB_SLICE_EMPTY, &rows);
        unsigned refusals = refused(wb_slice(key, sizeof key), &rows);
        assert_int_equal(rows, refusals ? 0 : 1);
        last += refusals;
        passed += walk_soundly(0, ROWS);
        assert_int_equal(walk_soundly(ROWS - 1, ROWS), refusals);
        flip_byte(path, page * WB_TREE_PAGE_BYTES + 2000, 1);
    }
    assert_true(all > newest.pages / 2);
    assert_int_equal(last, newest.roots[0].level + 1);
    assert_int_equal(passed, all); /* one for each page that the walk needs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from),
        cmocka_unit_test(test_pages_read),
    };

    return cmocka_run_group_tests(tests, make_dir, NULL);
}
