/* test_trap.c - guards against sites without end catch traps and let ordinary sites pass. */
#include "crawl/trap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define NOW 1790000000000ll

static const char *check(struct wb_trap *trap, const char *path)
{
    return wb_trap_check(trap, wb_slice_str(path), NOW);
}

static void test_ordinary(void **state)
{
    static const char *const paths[] = {"/", "/a/b/c.html", "/java.base/java/lang/java/x.html", "/2024/05/06/post",
                                        "/a/a/b", "/?q=1&p=2",
                                        "/x?year=2026", "/en/docs/en/docs/", "//double//slashes//everywhere//"};
    struct wb_trap trap = {0};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_null(check(&trap, paths[i]));
    wb_trap_release(&trap);
}

static void test_repetition(void **state)
{
    struct wb_trap trap = {0};

    (void)state;
    assert_string_equal(check(&trap, "/a/a/a"), "trap:path");
    assert_string_equal(check(&trap, "/t/x/y/x/y/x/y/x/y/x"), "trap:path");
    assert_string_equal(check(&trap, "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26/27/28/29"
                                     "/30/31/32/33"),
                        "trap:long");
    wb_trap_release(&trap);
}

static void test_calendar(void **state)
{
    struct wb_trap trap = {0};
    char path[64];
    unsigned let_in = 0;

    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(path, sizeof path, "/calendar?month=%u", i);
        let_in += check(&trap, path) == NULL;
    }
    assert_int_equal(let_in, WB_TRAP_CALENDAR_MAX);
    /* Numbers that are not dates are not limited. */
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(path, sizeof path, "/item/%u", i);
        assert_null(check(&trap, path));
    }
    assert_string_equal(check(&trap, "/x?year=2999"), "trap:calendar");
    wb_trap_release(&trap);
}

static void test_similar(void **state)
{
    struct wb_trap trap = {0};
    char path[64];

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        snprintf(path, sizeof path, "/page/%u", i);
        wb_trap_learn(&trap, wb_slice_str(path), 0x123456789abcdefull ^ (i & 1));
        snprintf(path, sizeof path, "/other/%u", i);
        wb_trap_learn(&trap, wb_slice_str(path), 0x9e3779b97f4a7c15ull * (i + 1));
    }
    assert_string_equal(check(&trap, "/page/61"), "trap:similar");
    assert_null(check(&trap, "/other/61"));
    assert_null(check(&trap, "/page"));
    wb_trap_release(&trap);
}

static void test_promise(void **state)
{
    struct wb_trap trap = {0};
    char path[64];

    (void)state;
    assert_true(wb_trap_promise(&trap, WB_SLICE_LIT("/dead/1")) == 1);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/dead/%u", i);
        wb_trap_tried(&trap, wb_slice_str(path), false);
        snprintf(path, sizeof path, "/half/%u", i);
        wb_trap_tried(&trap, wb_slice_str(path), i % 2);
        wb_trap_tried(&trap, WB_SLICE_LIT("/none"), false);
    }
    assert_true(wb_trap_promise(&trap, WB_SLICE_LIT("/dead/1234")) < 0.02);
    double half = wb_trap_promise(&trap, WB_SLICE_LIT("/half/1234"));
    assert_true(half > 0.4 && half < 0.55);
    for (unsigned i = 0; i < 2 * WB_TRAP_FAMILY; i++)
        wb_trap_tried(&trap, WB_SLICE_LIT("/item/1"), true);
    double another = wb_trap_promise(&trap, WB_SLICE_LIT("/item/1234"));
    assert_true(another > 0.3 && another < 0.35);
    /* A path without a number belongs to no family. */
    assert_true(wb_trap_promise(&trap, WB_SLICE_LIT("/none")) == 1);
    wb_trap_release(&trap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ordinary), cmocka_unit_test(test_repetition),
                                       cmocka_unit_test(test_calendar),
                                       cmocka_unit_test(test_similar), cmocka_unit_test(test_promise)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
