/* test_clock.c - the clock of the process when somebody sets the time of day, or the machine is suspended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/date.h"
#include "os/clock.h"

enum { SLACK_MS = 900 };

/* The clocks are read one after the other. */
static void assert_near(int64_t a, int64_t b)
{
    assert_true(a - b < SLACK_MS && b - a < SLACK_MS);
}

static void test_set_clock(void **state)
{
    static const int64_t steps[] = {WB_HOUR_MS,       -WB_HOUR_MS,       -WB_HOUR_MS,
                                    3650 * WB_DAY_MS, -3650 * WB_DAY_MS, WB_HOUR_MS};

    (void)state;
    assert_near(wb_clock_now_ms(), wb_clock_wall_ms());
    assert_int_equal(wb_clock_follow(), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t before = wb_clock_now_ms();
        wb_clock_shift(steps[i], 0);
        /* Those who wait do not notice... */
        int64_t after = wb_clock_now_ms();
        assert_true(after >= before);
        assert_near(after, before);
        /* ...until the process follows. */
        assert_near(wb_clock_follow(), steps[i]);
        assert_near(wb_clock_now_ms(), wb_clock_wall_ms());
        assert_near(wb_clock_now_ms(), before + steps[i]);
        assert_int_equal(wb_clock_follow(), 0);
    }
}

/* While a machine is suspended both clocks go on, and so does the clock of the process. */
static void test_suspended(void **state)
{
    (void)state;
    int64_t before = wb_clock_now_ms();
    wb_clock_shift(WB_HOUR_MS, WB_HOUR_MS);
    assert_near(wb_clock_now_ms(), before + WB_HOUR_MS);
    assert_int_equal(wb_clock_follow(), 0);
}

/* Less than a second is drift. */
static void test_drift(void **state)
{
    (void)state;
    wb_clock_shift(90, 0);
    assert_int_equal(wb_clock_follow(), 0);
    wb_clock_shift(-90, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_set_clock), cmocka_unit_test(test_suspended),
                                       cmocka_unit_test(test_drift)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
