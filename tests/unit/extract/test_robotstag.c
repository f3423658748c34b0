/* test_robotstag.c - robots directives in pages and in response headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "extract/module.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum {
    I = WB_ROBOTSTAG_NOINDEX,
    F = WB_ROBOTSTAG_NOFOLLOW,
    A = WB_ROBOTSTAG_NOARCHIVE,
    S = WB_ROBOTSTAG_NOSNIPPET,
};

static const struct {
    const char *value, *agent;
    unsigned want;
} cases[] = {
    {"", "", 0},
    {"noindex", "", I},
    {"index, NoFollow", "", F},
    {"none", "", I | F},
    {"all", "", 0},
    {" NOINDEX ,, nofollow,noarchive , nosnippet ", "", I | F | A | S},
    {"noindex nofollow", "", I | F},
    {"noindex;nofollow", "", I | F},
    {"noindex\r\n nofollow", "", I | F},
    {"nocache", "", A},
    {"noindexing, xnofollow, no index", "", 0},
    {"noimageindex, notranslate, noodp", "", 0},
    /* for one agent */
    {"otherbot: noindex, nofollow", "", 0},
    {"otherbot: noindex, nofollow", "webbase", 0},
    {"webbase: noindex, nofollow", "webbase", I | F},
    {"WebBase : noindex", "webbase", I},
    {"nofollow, otherbot: noindex", "webbase", F},
    {"otherbot: noindex, webbase: nofollow", "webbase", F},
    {"otherbot: none, *: nofollow", "webbase", F},
    {"webbase-news: noindex", "webbase", 0},
    {"googlebot: noindex", "", 0},
    /* directives with a value are not agents */
    {"max-image-preview:large, noindex", "", I},
    {"max-snippet: -1, max-video-preview: 10, nofollow", "", F},
    {"max-snippet:0", "", S},
    {"max-snippet: 20", "", 0},
    {"unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", "", I},
    {"unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", "", I},
    {"otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", "", 0},
    {"webbase: max-snippet: 0", "webbase", S},
    {"otherbot: max-snippet: 0", "webbase", 0},
    {"noindex: x", "", I},
    {":", "", 0},
    {":noindex", "", 0},
    {"15:noindex", "", 0},
};

static void test_directives(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned got = wb_robotstag_parse(wb_slice_str(cases[i].value), wb_slice_str(cases[i].agent));
        if (got != cases[i].want)
            fail_msg("'%s' for '%s' is %x, not %x", cases[i].value, cases[i].agent, got, cases[i].want);
    }
}

static void test_head(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\n"
                               "X-Robots-Tag: otherbot: noindex\r\n"
                               "x-robots-tag: nofollow\r\n"
                               "X-Robots-Tag: webbase:\r\n noarchive\r\n"
                               "X-Robots: nosnippet\r\n";

    assert_int_equal(wb_robotstag_of_head(wb_slice_str(head), wb_slice_str("webbase")), F | A);
    assert_int_equal(wb_robotstag_of_head(wb_slice_str(head), wb_slice_str("otherbot")), I | F);
    assert_int_equal(wb_robotstag_of_head(wb_slice_str(head), WB_SLICE_EMPTY), F);
    assert_int_equal(wb_robotstag_of_head(WB_SLICE_LIT("HTTP/1.1 200 OK\r\n"), WB_SLICE_EMPTY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directives),
        cmocka_unit_test(test_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
