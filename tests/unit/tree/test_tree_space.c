/*
 * test_tree_space.c - what readers cost. Readers hold states while all rows are written again and again: each keeps the
 * pages of its own state and no others, however many commits there are, and none of its pages is reused.
 */
#include "tree_support.h"

enum { ROWS = 600, VALUE_BYTES = 100, READERS = 6 };

/* A reader with the state that it holds, and what is in it. */
struct reader {
    struct wb_tree *tree; /* NULL if it has none */
    struct wb_tree_state state;
    uint64_t values[ROWS];
};

static struct wb_tree *writer;
static uint64_t values[ROWS];

static uint64_t number; /* of the last commit */

static void put_row(unsigned table, uint64_t row)
{
    char key[8], value[VALUE_BYTES] = {0};

    wb_put64_be(key, row);
    wb_put64(value, number);
    must_ok(wb_tree_put(writer, table, wb_slice(key, sizeof key), wb_slice(value, sizeof value)));
}

/* Writes the rows [from, to) of table 0, with a value that they have never had. Before that, a row of another table. */
static void write_rows(unsigned other, uint64_t from, uint64_t to)
{
    must_ok(wb_tree_begin(writer));
    number++;
    if (other)
        put_row(other, 0);
    for (uint64_t i = from; i < to; i++) {
        values[i] = number;
        put_row(0, i);
    }
    must_ok(wb_tree_commit(writer));
}

static void rewrite(unsigned times)
{
    while (times-- > 0)
        write_rows(0, 0, ROWS);
}

static uint32_t pages_now(void)
{
    struct wb_tree_state state;

    must_ok(wb_tree_look(writer, &state));
    return state.pages;
}

/* A new tree with all rows. Returns how many pages its file has. */
static uint32_t plant(void)
{
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &writer));
    rewrite(1);
    return pages_now();
}

static void begin_reader(struct reader *reader)
{
    must_ok(wb_tree_open(path, WB_TREE_READ, &reader->tree));
    must_ok(wb_tree_hold(reader->tree, &reader->state));
    memcpy(reader->values, values, sizeof values);
}

static void end_reader(struct reader *reader)
{
    wb_tree_close(reader->tree);
    reader->tree = NULL;
}

static int compare_value(void *context, struct wb_slice key, struct wb_slice value)
{
    const struct reader *reader = context;

    must(wb_get64(value.ptr) == reader->values[wb_get64_be(key.ptr)]);
    return 0;
}

/* Everything that the reader holds is in the file. Its own handle could have pages in memory, so this uses another. */
static void check_reader(struct reader *reader)
{
    struct wb_tree *fresh;

    must_ok(wb_tree_open(path, WB_TREE_READ, &fresh));
    must_ok(wb_tree_each(fresh, &reader->state, 0, compare_value, reader));
    must(check_tree(fresh, &reader->state) == 0);
    wb_tree_close(fresh);
}

/*
 * Slow readers, each with a state of its own. The file has these states, the newest one, and the one that
 * replaces it, which is written while the newest is still there. Pages that nobody needs do not wait
 * together with a page that a reader needs. When readers go, the file does not grow either.
 */
static void slow_readers(bool oldest_first)
{
    static struct reader readers[READERS];
    uint32_t once = plant();

    for (unsigned i = 0; i < READERS; i++) {
        write_rows(1 + i, 0, ROWS);
        begin_reader(&readers[i]);
        rewrite(1 + i % 3);
    }
    rewrite(50);
    uint32_t before = pages_now();
    assert_in_range(before, 1, (READERS + 2) * (once + READERS));
    for (unsigned i = 0; i < READERS; i++)
        write_rows(1 + i, 0, ROWS);
    rewrite(2);
    assert_in_range(pages_now(), 1, before + READERS);
    for (unsigned i = 0; i < READERS; i++) {
        end_reader(&readers[oldest_first ? i : READERS - 1 - i]);
        rewrite(20);
        for (unsigned r = 0; r < READERS; r++)
            if (readers[r].tree)
                check_reader(&readers[r]);
    }
    assert_in_range(pages_now(), 1, before + READERS);
    wb_tree_close(writer);
}

static void test_oldest_first(void **state)
{
    (void)state;
    slow_readers(true);
}

static void test_newest_first(void **state)
{
    (void)state;
    slow_readers(false);
}

/*
 * Two readers that stay, and others that come and go, several of them at any time. There are more readers
 * than classes, so pages wait for readers that do not need them; but how many must not depend on the
 * number of commits.
 */
static void test_succession(void **state)
{
    static struct reader slow[2], quick[READERS];
    uint32_t once = plant(), early = 0;

    (void)state;
    for (unsigned i = 0; i < COUNT(slow); i++) {
        begin_reader(&slow[i]);
        rewrite(2);
    }
    for (unsigned i = 0; i < 400; i++) {
        struct reader *one = &quick[i % READERS];
        if (one->tree) {
            check_reader(one);
            end_reader(one);
        }
        begin_reader(one);
        rewrite(1);
        if (i == 100)
            early = pages_now();
    }
    assert_int_equal(pages_now(), early);
    assert_in_range(early, 1, (COUNT(slow) + READERS + 2) * 2 * once);
    for (unsigned i = 0; i < COUNT(slow); i++) {
        check_reader(&slow[i]);
        end_reader(&slow[i]);
    }
    for (unsigned i = 0; i < READERS; i++)
        end_reader(&quick[i]);
    wb_tree_close(writer);
}

/* More held states than a transaction looks at. Those that it does not know are safe too. */
static void test_many(void **state)
{
    enum { MANY = WB_TREE_SPACE_HELD_MAX + 40 };
    static struct reader readers[MANY];

    (void)state;
    plant();
    for (unsigned i = 0; i < MANY; i++) {
        begin_reader(&readers[i]);
        write_rows(0, i, ROWS - i);
    }
    rewrite(5);
    for (unsigned i = 0; i < MANY; i++) {
        check_reader(&readers[i]);
        end_reader(&readers[i]);
        if (i % 30 == 0)
            rewrite(2);
    }
    wb_tree_close(writer);
}

/* Readers come and go at random, and commits change some of the rows. Whatever is held can be read. */
static void test_random(void **state)
{
    static struct reader readers[2 * READERS];
    uint64_t chance = test_seed();
    unsigned rounds = test_rounds(1500);

    (void)state;
    plant();
    for (unsigned i = 0; i < rounds; i++) {
        struct reader *one = &readers[chance_below(&chance, chance_one_in(&chance, 3) ? COUNT(readers) : 3)];
        if (one->tree) {
            check_reader(one);
            end_reader(one);
        } else {
            begin_reader(one);
        }
        for (uint64_t commits = chance_below(&chance, 4); commits > 0; commits--) {
            uint64_t from = chance_below(&chance, ROWS);
            write_rows((unsigned)chance_below(&chance, READERS), from, from + 1 + chance_below(&chance, ROWS - from));
        }
    }
    for (unsigned i = 0; i < COUNT(readers); i++)
        if (readers[i].tree) {
            check_reader(&readers[i]);
            end_reader(&readers[i]);
        }
    struct reader last;
    begin_reader(&last);
    check_reader(&last);
    end_reader(&last);
    wb_tree_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_first), cmocka_unit_test(test_newest_first), cmocka_unit_test(test_succession),
        cmocka_unit_test(test_many),         cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, make_dir, NULL);
}
