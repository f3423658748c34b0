/* test_idmap.c - the hash table of page ids against a plain array. */
#include "store_support.h"

static void test_empty(void **state)
{
    struct wb_idmap map = WB_IDMAP_INIT;
    uint32_t value = 7;

    (void)state;
    assert_false(wb_idmap_get(&map, (struct wb_pageid){1, 2}, &value));
    assert_int_equal(value, 0);
    wb_idmap_clear(&map);
    wb_idmap_release(&map);
}

/* Ids that fall on few slots, so that probing is used; both halves of an id count. */
static void test_against_array(void **state)
{
    enum { IDS = 3000 };
    static uint32_t values[IDS];
    static bool known[IDS];
    struct wb_idmap map = WB_IDMAP_INIT;
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned i = 0; i < 30000; i++) {
        uint32_t n = (uint32_t)chance_below(&chance, IDS), value;
        struct wb_pageid id = {n / 4, (n % 4) + (uint64_t)(n / 64) * 4096};
        assert_int_equal(wb_idmap_get(&map, id, &value), known[n]);
        assert_int_equal(value, known[n] ? values[n] : 0);
        if (chance_one_in(&chance, 2)) {
            values[n] = (uint32_t)chance_below(&chance, UINT32_MAX);
            known[n] = true;
            assert_int_equal(wb_idmap_set(&map, id, values[n]), 0);
        }
        if (chance_one_in(&chance, 5000)) {
            wb_idmap_clear(&map);
            memset(known, 0, sizeof known);
            assert_int_equal(map.count, 0);
        }
    }
    wb_idmap_release(&map);
    assert_int_equal(map.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_empty), cmocka_unit_test(test_against_array)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
