/* test_pick.c - the most urgent of many, against sorting them all. */
#include "cycle/pick.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../allocfail.h"

enum { OFFERED_MAX = 500 };

static uint64_t state = 88172645463325252ull;

static uint64_t chance(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static int compare(const void *a, const void *b)
{
    return wb_pick_item_before(a, b) ? -1 : wb_pick_item_before(b, a);
}

/* Few values, so that equals are frequent. */
static void test_against_sorting(void **unused)
{
    struct wb_pick_item all[OFFERED_MAX];

    (void)unused;
    for (int round = 0; round < 300; round++) {
        size_t count = chance(OFFERED_MAX), max = chance(2) ? chance(20) : chance(600), trimmed = chance(max + 1);
        struct wb_pick pick = {.max = max};
        for (size_t i = 0; i < count; i++) {
            all[i] = (struct wb_pick_item){
                .number = i, .value = (double)chance(10), .tier = (uint8_t)chance(3), .kind = (uint8_t)chance(4)};
            assert_int_equal(wb_pick_offer(&pick, &all[i]), 0);
            assert_true(pick.count <= max);
        }
        if (round % 2)
            wb_pick_trim(&pick, trimmed);
        size_t want = round % 2 && trimmed < max ? trimmed : max;
        want = want < count ? want : count;
        qsort(all, count, sizeof *all, compare);
        assert_int_equal(pick.count, want);
        if (pick.count)
            qsort(pick.items, pick.count, sizeof *pick.items, compare);
        for (size_t i = 0; i < want; i++)
            assert_int_equal(pick.items[i].number, all[i].number);
        wb_pick_release(&pick);
    }
}

static void test_without_limit(void **unused)
{
    struct wb_pick pick = {.max = UINT64_MAX};

    (void)unused;
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(wb_pick_offer(&pick, &(struct wb_pick_item){.number = i, .value = (double)chance(1000)}), 0);
    assert_int_equal(pick.count, 1000);
    wb_pick_release(&pick);
}

static void test_of_nothing(void **unused)
{
    struct wb_pick pick = {.max = 0};

    (void)unused;
    assert_int_equal(wb_pick_offer(&pick, &(struct wb_pick_item){.number = 1, .value = 1e9}), 0);
    assert_int_equal(pick.count, 0);
    wb_pick_trim(&pick, 0);
    wb_pick_release(&pick);
}

static void test_no_memory(void **unused)
{
    struct wb_pick pick = {.max = 10};

    (void)unused;
    alloc_fail_all();
    int err = wb_pick_offer(&pick, &(struct wb_pick_item){.number = 1});
    alloc_fail_none();
    assert_true(err < 0);
    assert_int_equal(pick.count, 0);
    wb_pick_release(&pick);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sorting), cmocka_unit_test(test_without_limit),
                                       cmocka_unit_test(test_of_nothing), cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
