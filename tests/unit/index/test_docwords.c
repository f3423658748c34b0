/*
 * test_docwords.c - what the length of a page counts for its score.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "index/docwords.h"

static void test_length(void **state)
{
    (void)state;
    assert_int_equal(wb_docwords_length(1, 0), 1);
    assert_int_equal(wb_docwords_length(700, 0), 700);
    assert_int_equal(wb_docwords_length(700, 50), 700 * (1 + 1 + 1.5));
    assert_int_equal(wb_docwords_length(700, 100), 700 * 9);
    assert_int_equal(wb_docwords_length(UINT32_MAX, 100), 9ull * UINT32_MAX);
    for (uint8_t linked = 1; linked <= 100; linked++)
        assert_true(wb_docwords_length(1000, linked) > wb_docwords_length(1000, linked - 1));
    /* Nothing is known of a page without words, and links do not make it longer. */
    assert_int_equal(wb_docwords_length(0, 0), WB_UNKNOWN_LENGTH);
    assert_int_equal(wb_docwords_length(0, 100), WB_UNKNOWN_LENGTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_length)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
