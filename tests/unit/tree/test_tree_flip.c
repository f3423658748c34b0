/*
 * test_tree_flip.c - bytes of a tree's file are changed. Looking up a key gives its value or
 * WB_E_CORRUPT; looking up a key that never existed gives WB_E_NOTFOUND or WB_E_CORRUPT; a
 * walk returns all rows or ends with WB_E_CORRUPT. Nothing else ever happens. A writer that
 * works on such a file never loses a row that it did not touch.
 */
#include "tree_support.h"
#include "os/path.h"

enum { TABLES = 2 };

/* ---- files ---------------------------------------------------------------------------------- */

struct original {
    struct wb_buf bytes;
    struct twin_tree twin;
    uint64_t keys;
};

/* Several commits, so that there are old pages, and classes in the free-space map. */
static void build(struct original *o, uint64_t keys, unsigned commits, uint64_t *chance)
{
    char key_room[WB_TREE_KEY_MAX], value_room[WB_TREE_VALUE_MAX];
    struct wb_tree *tree, *reader;
    struct wb_tree_state held;

    o->keys = keys;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    must_ok(wb_tree_open(path, WB_TREE_READ, &reader));
    for (unsigned commit = 0; commit < commits; commit++) {
        must_ok(wb_tree_begin(tree));
        for (uint64_t i = 0; i < keys; i++) {
            unsigned table = (unsigned)chance_below(chance, TABLES);
            struct wb_slice key = random_key(chance, keys, table == 0, key_room),
                            value = random_value(chance, value_room);
            must_ok(wb_tree_put(tree, table, key, value));
            twin_put(&o->twin.tables[table], key, value);
        }
        must_ok(wb_tree_commit(tree));
        if (commit == 1)
            must_ok(wb_tree_hold(reader, &held));
    }
    wb_tree_close(reader);
    wb_tree_close(tree);
    must_ok(wb_path_read(path, 1 << 26, &o->bytes));
}

static void release(struct original *o)
{
    wb_buf_release(&o->bytes);
    twin_release(&o->twin);
}

/* ---- reading ----------------------------------------------------------------------------------- */

struct outcome {
    unsigned right, refused;
};

static void look_up(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, struct wb_slice key,
                    const struct twin_row *row, struct outcome *outcome)
{
    char got[WB_TREE_VALUE_MAX];
    size_t len;
    int err = wb_tree_get(tree, state, table, key, got, sizeof got, &len);

    must(err == WB_E_CORRUPT || err == (row ? 0 : WB_E_NOTFOUND));
    must(err != WB_E_CORRUPT || (strstr(wb_error_message(), path) && strstr(wb_error_message(), "page")));
    must(err != 0 || wb_slice_equal(wb_slice(got, len), wb_slice(row->value, row->value_len)));
    outcome->right += err != WB_E_CORRUPT;
    outcome->refused += err == WB_E_CORRUPT;
}

struct expected {
    const struct twin_table *table;
    size_t at;
};

static int expect_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct expected *e = context;

    must(e->at < e->table->count);
    const struct twin_row *row = &e->table->rows[e->at++];
    must(wb_slice_equal(key, wb_slice(row->key, row->key_len)) &&
         wb_slice_equal(value, wb_slice(row->value, row->value_len)));
    return 0;
}

/* Looks up some keys that exist and some that do not, in a tree that has nothing in memory yet. */
static struct outcome read_changed(const struct original *o, unsigned lookups, uint64_t *chance)
{
    struct outcome outcome = {0};
    struct wb_tree_state state;
    struct wb_tree *tree;
    char room[WB_TREE_KEY_MAX];

    must_ok(wb_tree_open(path, WB_TREE_READ, &tree)); /* a flipped bit hits one copy of the root record only */
    must_ok(wb_tree_look(tree, &state));
    for (unsigned i = 0; i < lookups; i++) {
        unsigned table = (unsigned)chance_below(chance, TABLES);
        const struct twin_table *twin = &o->twin.tables[table];
        const struct twin_row *row = &twin->rows[chance_below(chance, twin->count)];
        look_up(tree, &state, table, wb_slice(row->key, row->key_len), row, &outcome);
        struct wb_slice key = random_key(chance, 1u << 30, table == 0, room);
        look_up(tree, &state, table, key, twin_get(twin, key), &outcome);
    }
    for (unsigned table = 0; table < TABLES; table++) {
        struct expected e = {&o->twin.tables[table], 0};
        int err = wb_tree_each(tree, &state, table, expect_row, &e);
        must(err == WB_E_CORRUPT || (err == 0 && e.at == e.table->count));
        outcome.refused += err == WB_E_CORRUPT;
    }
    unsigned problems = count_problems(tree, &state);
    must(outcome.refused == 0 || problems > 0);
    wb_tree_close(tree);
    return outcome;
}

/* Every byte of a small tree, or the share of them that this run does. */
static void test_every_byte(void **state)
{
    uint64_t chance = test_seed();
    struct original o = {0};
    unsigned refused = 0, flips = 0;

    (void)state;
    build(&o, 60, 3, &chance);
    for (uint64_t at = 0; at < o.bytes.len; at += test_stride(&chance)) {
        uint8_t mask = (uint8_t)(1u << chance_below(&chance, 8));
        flip_byte(path, at, mask);
        refused += read_changed(&o, 20, &chance).refused > 0;
        flip_byte(path, at, mask);
        flips++;
    }
    printf("# %u of %zu bytes, %u of them noticed by reading\n", flips, o.bytes.len, refused);
    must(refused > flips / 10);
    release(&o);
}

/* Random bits of a larger one. */
static void test_random_bits(void **state)
{
    uint64_t chance = test_seed();
    struct original o = {0};
    unsigned refused = 0, rounds = test_rounds(2000);

    (void)state;
    build(&o, 4000, 4, &chance);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t at = chance_below(&chance, o.bytes.len);
        uint8_t mask = (uint8_t)(1 + chance_below(&chance, 255));
        flip_byte(path, at, mask);
        refused += read_changed(&o, 30, &chance).refused > 0;
        flip_byte(path, at, mask);
    }
    printf("# %u of %u flips noticed by reading\n", refused, rounds);
    must(refused > 0);
    release(&o);
}

/* Whole pages that are out of date, swapped, zeroed or cut off. */
static void test_wrong_pages(void **state)
{
    uint64_t chance = test_seed();
    struct original o = {0};
    unsigned rounds = test_rounds(600), refused = 0;

    (void)state;
    build(&o, 2000, 4, &chance);
    uint64_t pages = o.bytes.len / WB_TREE_PAGE_BYTES;
    for (unsigned i = 0; i < rounds; i++) {
        struct wb_buf copy = WB_BUF_INIT;
        uint64_t to = 2 + chance_below(&chance, pages - 2), from = 2 + chance_below(&chance, pages - 2);
        must_ok(wb_buf_append_slice(&copy, wb_buf_slice(&o.bytes)));
        if (i % 3 == 0)
            memcpy(copy.ptr + to * WB_TREE_PAGE_BYTES, o.bytes.ptr + from * WB_TREE_PAGE_BYTES, WB_TREE_PAGE_BYTES);
        else if (i % 3 == 1)
            memset(copy.ptr + to * WB_TREE_PAGE_BYTES + chance_below(&chance, 8) * 512, 0, 512);
        else
            copy.len = (size_t)(to * WB_TREE_PAGE_BYTES);
        must_ok(wb_path_replace(path, wb_buf_slice(&copy)));
        wb_buf_release(&copy);
        refused += read_changed(&o, 30, &chance).refused > 0;
    }
    printf("# %u of %u wrong pages noticed by reading\n", refused, rounds);
    must(refused > 0);
    release(&o);
}

/* ---- writing ---------------------------------------------------------------------------------------- */

/* Puts and deletes rows. What is accepted is done to the twin too; the rest is refused. */
static void write_changed(struct original *o, struct wb_tree *tree, uint64_t *chance)
{
    char key_room[WB_TREE_KEY_MAX], value_room[WB_TREE_VALUE_MAX];
    struct twin_tree before = {0};

    int err = wb_tree_begin(tree);
    must(err == 0 || err == WB_E_CORRUPT);
    if (err < 0)
        return;
    twin_copy(&o->twin, &before);
    for (unsigned i = 0; i < 60; i++) {
        unsigned table = (unsigned)chance_below(chance, TABLES);
        struct wb_slice key = random_key(chance, o->keys, table == 0, key_room),
                        value = random_value(chance, value_room);
        bool known = twin_get(&o->twin.tables[table], key);
        err = i % 3 ? wb_tree_put(tree, table, key, value) : wb_tree_delete(tree, table, key);
        must(err == 0 || err == WB_E_CORRUPT || (err == WB_E_NOTFOUND && i % 3 == 0 && !known));
        if (err == 0 && i % 3)
            twin_put(&o->twin.tables[table], key, value);
        else if (err == 0)
            must(twin_delete(&o->twin.tables[table], key));
    }
    if (wb_tree_commit(tree) < 0)
        twin_copy(&before, &o->twin);
    twin_release(&before);
}

static void test_writing(void **state)
{
    uint64_t chance = test_seed();
    struct original first = {0}, o = {0};
    unsigned rounds = test_rounds(800);

    (void)state;
    build(&first, 1500, 3, &chance);
    o.keys = first.keys;
    for (unsigned i = 0; i < rounds; i++) {
        struct wb_tree *tree;
        must_ok(wb_path_replace(path, wb_buf_slice(&first.bytes)));
        twin_copy(&first.twin, &o.twin);
        flip_byte(path, chance_below(&chance, first.bytes.len), (uint8_t)(1 + chance_below(&chance, 255)));
        must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
        for (unsigned k = 0; k < 3; k++)
            write_changed(&o, tree, &chance);
        wb_tree_close(tree);
        read_changed(&o, 100, &chance);
    }
    release(&first);
    twin_release(&o.twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_wrong_pages),
        cmocka_unit_test(test_writing),
    };

    return cmocka_run_group_tests(tests, make_dir, NULL);
}
