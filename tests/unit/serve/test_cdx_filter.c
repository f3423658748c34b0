/* test_cdx_filter.c - filters of the CDX API: what they match, and that none takes long. */
#include "base/error.h"
#include "serve/cdx_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_matches(void **state)
{
    static const struct {
        const char *filter;
        bool ia;
        const char *value;
        bool want;
    } cases[] = {
        {"mime:html", false, "text/html", true},
        {"mime:html", false, "text/plain", false},
        {"!mime:html", false, "text/html", false},
        {"=mime:text/html", false, "text/html", true},
        {"=mime:text", false, "text/html", false},
        {"!=status:200", false, "404", true},
        {"~url:.*/a.*", false, "http://h/abc", true},
        {"~url:h", false, "xh", false},
        {"~url:http", false, "http://h/", true},     /* pywb: a match at the beginning is enough */
        {"original:http", true, "http://h/", false}, /* the Internet Archive: the whole value */
        {"statuscode:[23]..", true, "302", true},
        {"!statuscode:[23]..", true, "302", false},
        {"url:", false, "anything", true},
        {"=url:", false, "", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdx_filter filter;
        assert_int_equal(cdx_filter_read(wb_slice_str(cases[i].filter), cases[i].ia, &filter), 0);
        if (cdx_filter_matches(&filter, wb_slice_str(cases[i].value)) != cases[i].want)
            fail_msg("%s on %s", cases[i].filter, cases[i].value);
        cdx_filter_release(&filter);
    }
}

static void test_wrong(void **state)
{
    static const char *const cases[] = {"", "=", "!", "nofield:x", "mime", "~url:([", "~url:(", "~url:a{2,1}"};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdx_filter filter;
        assert_int_equal(cdx_filter_read(wb_slice_str(cases[i]), false, &filter), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), "filter"));
        cdx_filter_release(&filter);
    }
}

/* Expressions that take exponential time are given up, or are harmless; values may be any bytes. */
static void test_hostile(void **state)
{
    static const char *const patterns[] = {"~url:(a*)*(a*)*(a*)*b", "~url:(a|a)*$b", "~url:((a{1,100}){1,100}){1,100}",
                                           "~url:(?=(a+))a*b\\1"};
    char value[8000];

    (void)state;
    memset(value, 'a', sizeof value);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct cdx_filter filter;
        if (cdx_filter_read(wb_slice_str(patterns[i]), false, &filter) == 0)
            for (size_t len = 1; len <= sizeof value; len *= 2) {
                int got = cdx_filter_matches(&filter, wb_slice(value, len));
                assert_true(got == 0 || got == 1 || got == WB_E_LIMIT);
            }
        cdx_filter_release(&filter);
    }
    struct cdx_filter filter;
    assert_int_equal(cdx_filter_read(WB_SLICE_LIT("~url:.*\xff.*"), false, &filter), 0);
    assert_true(cdx_filter_matches(&filter, WB_SLICE_LIT("\xff\xfe\0\x80")) >= 0);
    cdx_filter_release(&filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matches), cmocka_unit_test(test_wrong),
                                       cmocka_unit_test(test_hostile)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
