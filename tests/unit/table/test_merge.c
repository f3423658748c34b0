/* test_merge.c - walks an old table and sorted edits together, and compares with two sorted lists. */
#include "table_support.h"

enum { SUFFIX = 5 }; /* a zero byte, which no key here contains, and a number */

struct sides {
    struct list old, edits; /* edits: with whole keys */
};

static void make_sides(struct sides *sides, size_t old_count, size_t edit_count, uint64_t *chance)
{
    char key[64];

    for (size_t i = 0; i < old_count + edit_count; i++) {
        int len = snprintf(key, sizeof key, "com,site%zu)/page", chance_below(chance, 5));
        size_t more = chance_below(chance, 3);
        for (size_t k = 0; k < more; k++)
            len += snprintf(key + len, sizeof key - (size_t)len, "/%zu", chance_below(chance, 9));
        if (i < old_count) {
            list_add(&sides->old, wb_slice(key, (size_t)len), wb_slice(key, chance_below(chance, (size_t)len)));
            continue;
        }
        key[len] = '\0';
        wb_put32_be(key + len + 1, (uint32_t)chance_below(chance, 4));
        list_add(&sides->edits, wb_slice(key, (size_t)len + SUFFIX), wb_slice((const char *)&i, 4));
    }
    list_sort(&sides->old);
    list_unique(&sides->old);
}

static struct wb_table *write_old(const struct list *old, struct wb_cursor **cursor_out)
{
    const char *path = test_path("old");
    struct wb_table_writer *writer;
    struct wb_table *table;

    OK(wb_table_create(path, &(struct wb_table_options){.kind = "test", .block_bytes = 300}, &writer));
    for (size_t i = 0; i < old->count; i++)
        OK(wb_table_add(writer, list_key(old, i), list_value(old, i)));
    OK(wb_table_finish(writer, NULL));
    OK(wb_table_open(path, "test", &table));
    OK(wb_cursor_open(table, cursor_out));
    return table;
}

static struct wb_sorter *sort_edits(const struct list *edits)
{
    struct wb_sorter *sorter;

    OK(wb_sorter_open(&(struct wb_sorter_options){test_root, 0, 0}, &sorter));
    for (size_t i = 0; i < edits->count; i++)
        OK(wb_sorter_add(sorter, list_key(edits, i), list_value(edits, i)));
    OK(wb_sorter_sort(sorter));
    return sorter;
}

static struct wb_slice stem(const struct list *edits, size_t i)
{
    struct wb_slice key = list_key(edits, i);

    return wb_slice(key.ptr, key.len - SUFFIX);
}

/* take: how many edits of a key are asked for; the others must be skipped. */
static void check_merge(struct wb_merge *merge, const struct sides *sides, size_t take)
{
    size_t o = 0, e = 0;
    struct wb_slice key;
    struct wb_table_record old, edit;

    while (o < sides->old.count || e < sides->edits.count) {
        int order = e == sides->edits.count ? -1
                    : o == sides->old.count ? 1
                                            : order_of(list_key(&sides->old, o), stem(&sides->edits, e));
        struct wb_slice expected = order <= 0 ? list_key(&sides->old, o) : stem(&sides->edits, e);
        assert_int_equal(wb_merge_next(merge, &key, &old), 1);
        assert_true(same_bytes(key, expected));
        if (order <= 0) {
            assert_true(same_bytes(old.key, expected) && same_bytes(old.value, list_value(&sides->old, o)));
            assert_int_equal(old.number, o++);
        } else {
            assert_null(old.key.ptr);
        }
        size_t asked = 0;
        for (; e < sides->edits.count && order >= 0 && order_of(stem(&sides->edits, e), expected) == 0; e++)
            if (asked++ < take) {
                assert_int_equal(wb_merge_edit(merge, &edit), 1);
                assert_true(same_bytes(edit.key, list_key(&sides->edits, e)));
                assert_true(same_bytes(edit.value, list_value(&sides->edits, e)));
                /* The key stays valid while its edits are read. */
                assert_true(same_bytes(key, expected));
            }
        if (asked <= take)
            for (int again = 0; again < 2; again++)
                assert_int_equal(wb_merge_edit(merge, &edit), 0);
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(wb_merge_next(merge, &key, &old), 0);
        assert_int_equal(wb_merge_edit(merge, &edit), 0);
    }
}

static void test_model(void **state)
{
    static const size_t counts[] = {0, 1, 30, 3000};
    uint64_t chance = test_seed();

    (void)state;
    for (size_t round = 0; round < 4 * 4 * 3; round++) {
        struct sides sides = {0};
        struct wb_cursor *cursor = NULL;
        struct wb_table *table = NULL;
        struct wb_merge *merge;
        make_sides(&sides, counts[round % 4], counts[round / 4 % 4], &chance);
        if (sides.old.count || round / 16 == 0)
            table = write_old(&sides.old, &cursor);
        struct wb_sorter *sorter = sort_edits(&sides.edits);
        list_sort(&sides.edits);
        OK(wb_merge_open(cursor, sorter, SUFFIX, &merge));
        check_merge(merge, &sides, round / 16 == 0 ? SIZE_MAX : round / 16 - 1);
        wb_merge_close(merge);
        wb_sorter_close(sorter);
        wb_cursor_close(cursor);
        wb_table_close(table);
        list_release(&sides.old);
        list_release(&sides.edits);
    }
    wb_merge_close(NULL);
}

static int merge_all(const char *const *keys, size_t count)
{
    struct list edits = {0};
    struct wb_merge *merge;
    struct wb_slice key;
    struct wb_table_record old;
    int more;

    for (size_t i = 0; i < count; i++)
        list_add(&edits, wb_slice_str(keys[i]), WB_SLICE_EMPTY);
    struct wb_sorter *sorter = sort_edits(&edits);
    OK(wb_merge_open(NULL, sorter, SUFFIX, &merge));
    while ((more = wb_merge_next(merge, &key, &old)) == 1)
        ;
    wb_merge_close(merge);
    wb_sorter_close(sorter);
    list_release(&edits);
    return more;
}

/* An edit that is shorter than its suffix, or a suffix that puts keys out of order, gives an error. */
static void test_wrong_edits(void **state)
{
    (void)state;
    assert_int_equal(merge_all((const char *const[]){"b!~~~~", "bA!zzzz", "b~!zzzz"}, 3), 0);
    assert_int_equal(merge_all((const char *const[]){"b~~~~~", "bA~zzzz"}, 2), WB_E_INVALID); /* "bA" came before "b" */
    assert_int_equal(merge_all((const char *const[]){"abcd"}, 1), WB_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_wrong_edits)};

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
