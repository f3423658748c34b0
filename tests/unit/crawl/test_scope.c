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

static void test_class(void **state)
{
    struct wb_scope scope;

    (void)state;
    wb_scope_init(&scope, WB_SCOPE_ANY);
    wb_scope_limit(&scope, "news");
    assert_int_equal(wb_scope_classed(&scope, WB_SLICE_LIT("b.example"), WB_SLICE_LIT("news")), 0);
    assert_int_equal(wb_scope_classed(&scope, WB_SLICE_LIT("a.example"), WB_SLICE_LIT("shop")), 0);
    assert_int_equal(wb_scope_classed(&scope, WB_SLICE_LIT("c.example"), WB_SLICE_EMPTY), 0);
    wb_scope_seal(&scope);
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("b.example")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("a.example")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("c.example")));
    assert_false(wb_scope_in_class(&scope, WB_SLICE_LIT("new.example"))); /* a site without a class */
    wb_scope_release(&scope);
}

static void test_default_class(void **state)
{
    struct wb_scope scope;

    (void)state;
    wb_scope_init(&scope, WB_SCOPE_SITE);
    wb_scope_limit(&scope, "default");
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("a.example")), 0);
    assert_int_equal(wb_scope_add(&scope, WB_SLICE_LIT("c.example")), 0);
    assert_int_equal(wb_scope_classed(&scope, WB_SLICE_LIT("a.example"), WB_SLICE_LIT("shop")), 0);
    assert_int_equal(wb_scope_classed(&scope, WB_SLICE_LIT("c.example"), WB_SLICE_LIT("default")), 0);
    wb_scope_seal(&scope);
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("a.example")));
    assert_true(wb_scope_has(&scope, WB_SLICE_LIT("c.example")));
    assert_true(wb_scope_in_class(&scope, WB_SLICE_LIT("new.example")));
    assert_false(wb_scope_has(&scope, WB_SLICE_LIT("new.example"))); /* of the class, but not of the seeds' sites */
    wb_scope_release(&scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_domain),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_class),
        cmocka_unit_test(test_default_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
