/* test_kept.c - the account of what caches keep: kinds, the bound, and who is told when it is reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/kept.h"

static void test_bound(void **state)
{
    uint64_t seen = 0, other = 0;

    (void)state;
    assert_true(wb_kept_bound() == UINT64_MAX);
    assert_true(wb_kept_add(WB_KEPT_TEXTS, SIZE_MAX / 2));
    wb_kept_drop(WB_KEPT_TEXTS, SIZE_MAX / 2);
    wb_kept_set_bound(100);
    assert_true(wb_kept_add(WB_KEPT_TEXTS, 60));
    assert_true(wb_kept_add(WB_KEPT_BLOCKS, 40));
    assert_false(wb_kept_pressed(&seen));
    assert_false(wb_kept_add(WB_KEPT_BLOCKS, 1));
    assert_true(wb_kept_add(WB_KEPT_BLOCKS, 0));
    assert_int_equal(wb_kept_bytes(WB_KEPT_BLOCKS), 40);
    assert_int_equal(wb_kept_all(), 100);
    assert_true(wb_kept_pressed(&seen)); /* every cache is told once */
    assert_true(wb_kept_pressed(&other));
    assert_false(wb_kept_pressed(&seen));
    wb_kept_need(WB_KEPT_GENERATIONS, 50); /* is never refused, and leaves less for the others */
    wb_kept_drop(WB_KEPT_TEXTS, 60);
    assert_false(wb_kept_add(WB_KEPT_TEXTS, 11));
    assert_true(wb_kept_add(WB_KEPT_TEXTS, 10));
    wb_kept_need(WB_KEPT_GENERATIONS, 1000);
    assert_false(wb_kept_add(WB_KEPT_TEXTS, 0)); /* beyond the bound */
    wb_kept_set_bound(UINT64_MAX);
    wb_kept_drop(WB_KEPT_GENERATIONS, 1050);
    wb_kept_drop(WB_KEPT_TEXTS, 10);
    wb_kept_drop(WB_KEPT_BLOCKS, 40);
    assert_int_equal(wb_kept_all(), 0);
}

static void test_words(void **state)
{
    (void)state;
    for (enum wb_kept kind = 0; kind < WB_KEPT_COUNT; kind++) {
        assert_non_null(wb_kept_word(kind));
        for (enum wb_kept k = 0; k < kind; k++)
            assert_string_not_equal(wb_kept_word(k), wb_kept_word(kind));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound), cmocka_unit_test(test_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
