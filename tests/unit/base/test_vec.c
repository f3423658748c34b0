/* test_vec.c - vectors: a model test against a plain array, named types, and growth that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocfail.h"
#include "../seeded.h"
#include "base/vec.h"

struct item {
    uint64_t number;
    char tag;
};

/* A vector with a name, as a header would declare it. */
struct items WB_VEC_OF(struct item);

enum { STEPS = 20000, ITEMS_MAX = 3000 };

static void check_equal(const struct items *items, const struct item *twin, size_t count)
{
    assert_int_equal(items->count, count);
    assert_true(items->cap >= items->count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(items->items[i].number, twin[i].number);
        assert_int_equal(items->items[i].tag, twin[i].tag);
    }
}

/* One random operation on the vector and on its twin. Returns the twin's new count. */
static size_t take_step(uint64_t *chance, struct items *items, struct item *twin, size_t count)
{
    struct item item = {chance_next(chance), (char)chance_below(chance, 128)}, *added = NULL;

    switch (count < ITEMS_MAX ? chance_below(chance, 100) : 99) {
    case 0:
        wb_vec_clear(items);
        return 0;
    case 1:
        wb_vec_release(items);
        assert_null(items->items);
        return 0;
    case 2:
        assert_int_equal(wb_vec_reserve(items, count + chance_below(chance, 50)), 0);
        return count;
    case 3 ... 49:
        assert_int_equal(wb_vec_push(items, (struct item){item.number, item.tag}), 0);
        twin[count] = item;
        return count + 1;
    case 50 ... 74:
        added = wb_vec_add(items);
        assert_non_null(added);
        assert_true(added->number == 0 && added->tag == 0);
        *added = twin[count] = item;
        return count + 1;
    default:
        if (count == 0)
            return 0;
        item = wb_vec_pop(items);
        assert_int_equal(item.number, twin[count - 1].number);
        return count - 1;
    }
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    struct items items = WB_VEC_INIT;
    static struct item twin[ITEMS_MAX];
    size_t count = 0;

    (void)state;
    for (unsigned i = 0; i < STEPS; i++) {
        count = take_step(&chance, &items, twin, count);
        if (i % 64 == 0)
            check_equal(&items, twin, count);
    }
    check_equal(&items, twin, count);
    wb_vec_release(&items);
}

/* Appending one by one allocates rarely, and room that was reserved is used. */
static void test_growth(void **state)
{
    WB_VEC(char) bytes = WB_VEC_INIT;
    size_t moves = 0;

    (void)state;
    for (size_t i = 0, cap = 0; i < 100000; i++, cap = bytes.cap) {
        assert_int_equal(wb_vec_push(&bytes, (char)i), 0);
        moves += bytes.cap != cap;
    }
    assert_true(moves < 40);
    wb_vec_clear(&bytes);
    alloc_fail_all();
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(wb_vec_push(&bytes, 'x'), 0);
    alloc_fail_none();
    wb_vec_release(&bytes);
}

static void test_no_memory(void **state)
{
    struct items items = WB_VEC_INIT;

    (void)state;
    alloc_fail_all();
    assert_int_equal(wb_vec_push(&items, (struct item){1, 'a'}), WB_E_NOMEM);
    assert_null(wb_vec_add(&items));
    assert_string_equal(wb_error_message(), "out of memory");
    alloc_fail_none();
    assert_int_equal(wb_vec_push(&items, (struct item){1, 'a'}), 0);
    while (items.count < items.cap)
        assert_non_null(wb_vec_add(&items));
    alloc_fail_nth(0);
    assert_int_equal(wb_vec_push(&items, (struct item){2, 'b'}), WB_E_NOMEM);
    alloc_fail_none();
    assert_int_equal(items.count, items.cap);
    assert_int_equal(items.items[0].number, 1);
    assert_int_equal(wb_vec_reserve(&items, SIZE_MAX), WB_E_NOMEM);
    assert_int_equal(wb_vec_reserve(&items, SIZE_MAX / sizeof(struct item) + 2), WB_E_NOMEM);
    assert_int_equal(items.items[0].tag, 'a');
    wb_vec_release(&items);
}

/* An array that is not a vector grows in the same way, and is unchanged if that fails. */
static void test_grow(void **state)
{
    uint32_t *ids = NULL;
    size_t cap = 0;

    (void)state;
    assert_int_equal(wb_grow(&ids, &cap, 3), 0);
    assert_true(ids && cap >= 3);
    ids[2] = 7;
    alloc_fail_all();
    assert_int_equal(wb_grow(&ids, &cap, cap), 0);
    size_t was = cap;
    assert_int_equal(wb_grow(&ids, &cap, cap + 1), WB_E_NOMEM);
    alloc_fail_none();
    assert_int_equal(cap, was);
    assert_int_equal(wb_grow(&ids, &cap, 1000), 0);
    assert_int_equal(cap, 1000);
    assert_int_equal(ids[2], 7);
    wb_free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_growth),
                                       cmocka_unit_test(test_no_memory), cmocka_unit_test(test_grow)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
