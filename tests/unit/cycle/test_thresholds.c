/* test_thresholds.c - thresholds are kept by policy and class; a damaged file is started again, and reported. */
#include "cycle/thresholds.h"
#include "cycle_support.h"

static void test_kept(void **state)
{
    struct wb_thresholds t;

    ok(wb_thresholds_read(*state, NULL, NULL, &t));
    assert_int_equal(t.count, 0);
    double begin = wb_thresholds_get(&t, WB_REFRESH_OPTIMAL, WB_SLICE_EMPTY);
    assert_true(begin > 0);
    ok(wb_thresholds_set(&t, WB_REFRESH_OPTIMAL, WB_SLICE_EMPTY, 0.1234567890123456));
    ok(wb_thresholds_set(&t, WB_REFRESH_OPTIMAL, WB_SLICE_LIT("news"), 3));
    ok(wb_thresholds_set(&t, WB_REFRESH_UNIFORM, WB_SLICE_EMPTY, 8));
    ok(wb_thresholds_set(&t, WB_REFRESH_OPTIMAL, WB_SLICE_LIT("news"), 4));
    assert_int_equal(t.count, 3);
    t.policy = WB_REFRESH_ADAPTIVE;
    ok(wb_thresholds_write(*state, &t));
    wb_thresholds_release(&t);

    ok(wb_thresholds_read(*state, NULL, NULL, &t));
    assert_int_equal(t.policy, WB_REFRESH_ADAPTIVE);
    assert_true(wb_thresholds_get(&t, WB_REFRESH_OPTIMAL, WB_SLICE_EMPTY) == 0.1234567890123456);
    assert_true(wb_thresholds_get(&t, WB_REFRESH_OPTIMAL, WB_SLICE_LIT("news")) == 4);
    assert_true(wb_thresholds_get(&t, WB_REFRESH_UNIFORM, WB_SLICE_EMPTY) == 8);
    assert_true(wb_thresholds_get(&t, WB_REFRESH_OPTIMAL, WB_SLICE_LIT("other")) == begin);
    wb_thresholds_release(&t);
}

static void test_damage_begins_anew(void **state)
{
    char *path = wb_path_join(*state, "thresholds");
    struct wb_buf warnings = WB_BUF_INIT;
    struct wb_thresholds t;

    ok(wb_path_replace(path, WB_SLICE_LIT("webbase thresholds 1\ntheta optimal 5\ncheck 0000000000000000\n")));
    ok(wb_thresholds_read(*state, gather_warning, &warnings, &t));
    assert_int_equal(t.count, 0);
    ok(wb_buf_terminate(&warnings));
    assert_non_null(strstr(warnings.ptr, path));
    wb_thresholds_release(&t);
    wb_buf_release(&warnings);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_REPOSITORY(test_kept), IN_REPOSITORY(test_damage_begins_anew)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
