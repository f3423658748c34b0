/* test_page_query.c - queries that facets change: what is added can be removed again, and nothing else is touched. */
#include "serve/page_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_refined(const char *query, const char *field, const char *value, const char *want)
{
    struct wb_buf out = WB_BUF_INIT;

    assert_int_equal(wb_page_query_refine(wb_slice_str(query), field, wb_slice_str(value), &out), 0);
    assert_int_equal(wb_buf_terminate(&out), 0);
    assert_string_equal(out.ptr, want);
    wb_buf_release(&out);
}

static void test_refine(void **state)
{
    (void)state;
    expect_refined("a b", "site", "x.org:8080", "a b site:x.org:8080");
    expect_refined("site:y.org", "site", "x.org", "site:x.org");
    expect_refined("(a OR b) site:y.org", "site", "x.org", "(a OR b) site:x.org");
    expect_refined("a AND site:y.org", "site", "x.org", "a site:x.org");
    expect_refined("a  site:y.org b", "site", "x.org", "a b site:x.org");
    expect_refined("a site:y.org", "lang", "de", "a site:y.org lang:de");
    expect_refined("a OR b", "type", "text/html", "(a OR b) type:text/html");
    expect_refined("(a OR b) c", "type", "text/html", "(a OR b) c type:text/html");
    expect_refined("\"a OR b\"", "lang", "de", "\"a OR b\" lang:de");
    expect_refined("\"site:y.org\" -site:z.org", "site", "x.org", "\"site:y.org\" -site:z.org site:x.org");
    expect_refined("a", "type", "odd \"type\" (x)", "a type:\"odd type (x)\"");
}

static void expect_term(const char *query, size_t number, const char *term, const char *rest)
{
    struct wb_buf out = WB_BUF_INIT;
    struct wb_slice found;

    int got = wb_page_query_term(wb_slice_str(query), number, &found, &out);
    assert_int_equal(got, term ? 1 : 0);
    if (term) {
        assert_true(wb_slice_equal(found, wb_slice_str(term)));
        assert_true(wb_slice_equal(wb_buf_slice(&out), wb_slice_str(rest)));
    }
    wb_buf_release(&out);
}

static void test_terms(void **state)
{
    (void)state;
    expect_term("a site:x.org b lang:de", 0, "site:x.org", "a b lang:de");
    expect_term("a site:x.org b lang:de", 1, "lang:de", "a site:x.org b");
    expect_term("a site:x.org b lang:de", 2, NULL, NULL);
    expect_term("a OR site:x.org", 0, NULL, NULL);
    expect_term("a -site:x.org (lang:de) \"type:x\" site: website:x.org", 0, NULL, NULL);
    expect_term("(a OR b) AND status:404", 0, "status:404", "a OR b");
    expect_term("site:x.org", 0, "site:x.org", "");
    expect_term("type:\"text/html\" (lang:de", 0, NULL, NULL);
    expect_term("type:\"text/html\" x", 0, "type:\"text/html\"", "x");
    assert_true(wb_page_query_has(WB_SLICE_LIT("a status:404"), "status"));
    assert_false(wb_page_query_has(WB_SLICE_LIT("a status:404"), "site"));
    assert_false(wb_page_query_has(WB_SLICE_LIT("a OR status:404"), "status"));
}

static void test_words(void **state)
{
    (void)state;
    assert_int_equal(wb_page_query_word(WB_SLICE_LIT("many more")), 4);
    assert_int_equal(wb_page_query_word(WB_SLICE_LIT(" x")), 2);
    assert_int_equal(wb_page_query_word(WB_SLICE_LIT("\xC3\xA4 b")), 2);
    assert_int_equal(wb_page_query_word(WB_SLICE_LIT("\xFF")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refine),
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests_name("page_query", tests, NULL, NULL);
}
