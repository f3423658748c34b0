/* test_scope.c - which sites a crawl may enter. */
#include "crawl/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_site(void **state)
{
    struct wb_scope scope;

    (void)state;
    wb_scope_init(&scope, WB_SCOPE_SITE);
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("b.example")), 0);
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("a.example:8080")), 0);
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("b.example")), 0);
    wb_scope_seal(&scope);
    assert_int_equal(scope.names.count, 2);
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("a.example:8080")));
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("b.example")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("a.example")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("b.example:1")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("b.exampl")));
    wb_scope_release(&scope);
}

static void test_domain(void **state)
{
    struct wb_scope scope;

    (void)state;
    wb_scope_init(&scope, WB_SCOPE_DOMAIN);
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("www.example.co.uk")), 0);
    wb_scope_seal(&scope);
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("example.co.uk")));
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("other.example.co.uk:81")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("example2.co.uk")));
    wb_scope_release(&scope);
}

static void test_any(void **state)
{
    struct wb_scope scope;

    (void)state;
    wb_scope_init(&scope, WB_SCOPE_ANY);
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("one.example")), 0);
    wb_scope_seal(&scope);
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("anything")));
    wb_scope_release(&scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_domain),
        cmocka_unit_test(test_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
