/* test_format.c - the message about another format, and numbers of formats in marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/format.h"

static void test_refusal(void **state)
{
    (void)state;
    assert_int_equal(wb_fail_format("DIR/file", UINT64_MAX, 1), WB_E_NEWER);
    assert_string_equal(wb_error_message(), "DIR/file has format 18446744073709551615; this program reads format 1");
}

static void test_marks(void **state)
{
    static const char *const none[] = {"WBCHRON0", "WBCHRON:", "WBCHRONx", "WBCHRO11", "wBCHRON1", "        "};

    (void)state;
    for (unsigned number = 1; number <= 9; number++) {
        char last[9], inside[9];
        snprintf(last, sizeof last, "WBCHRON%u", number);
        snprintf(inside, sizeof inside, "WBTEXT%u\n", number);
        assert_int_equal(wb_mark_format(last, "WBCHRON1"), number);
        assert_int_equal(wb_mark_format(inside, "WBTEXT1\n"), number);
        assert_int_equal(wb_mark_format(inside, "WBDICT1\n"), 0);
    }
    assert_int_equal(wb_mark_format("WBtree02", "WBtree01"), 2);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(wb_mark_format(none[i], "WBCHRON1"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusal), cmocka_unit_test(test_marks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
