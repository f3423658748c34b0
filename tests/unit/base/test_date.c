/* test_date.c - dates against the C library's calendar, and the forms that archives use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/date.h"

#include <time.h>

static void test_format(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } known[] = {{0, "1970-01-01T00:00:00.000Z"},
                 {-1, "1969-12-31T23:59:59.999Z"},
                 {951782400000, "2000-02-29T00:00:00.000Z"},
                 {1767323045678, "2026-01-02T03:04:05.678Z"},
                 {-62135596800000, "0001-01-01T00:00:00.000Z"},
                 {253402300799999, "9999-12-31T23:59:59.999Z"}};
    char text[WB_DATE_TEXT_MAX];
    int64_t back;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        wb_date_format(known[i].ms, text);
        assert_string_equal(text, known[i].text);
        assert_true(wb_date_parse(wb_slice_str(text), &back));
        assert_int_equal(back, known[i].ms);
    }
    wb_date_format(INT64_MAX, text); /* not a date, but it fits into the text */
    wb_date_format(INT64_MIN, text);
    assert_true(strlen(text) < WB_DATE_TEXT_MAX);
}

/* Every seventh day of some centuries is the one that gmtime_r() gives. */
static void test_calendar(void **state)
{
    (void)state;
    for (int64_t day = -100000; day < 100000; day += 7) {
        time_t seconds = (time_t)(day * WB_DAY_SECONDS + 3723);
        struct tm tm;
        char text[WB_DATE_TEXT_MAX], expected[64];
        gmtime_r(&seconds, &tm);
        strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000Z", &tm);
        wb_date_format((int64_t)seconds * 1000, text);
        assert_string_equal(text, expected);
    }
}

static void test_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"2026-01-02", 1767312000000},
                {"2026-01-02T03:04Z", 1767323040000},
                {"2026-01-02T03:04:05", 1767323045000},
                {"2026-01-02t03:04:05z", 1767323045000},
                {" 2026-01-02 03:04:05.6789123Z\n", 1767323045678},
                {"2026-01-02T03:04:05.6Z", 1767323045600},
                {"2026-01-02T05:04:05+02:00", 1767323045000},
                {"2026-01-01T23:34:05-0330", 1767323045000},
                {"2016-12-31T23:59:60Z", 1483228800000}};
    static const char *const bad[] = {"", "2026", "2026-1-2", "2026-13-01", "2026-00-01", "2026-02-29", "2026-01-32",
                                      "2026-01-02T", "2026-01-02T24:00Z", "2026-01-02T03:60Z", "2026-01-02T03:04:61Z",
                                      "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+25:00", "2026-01-02T03:04:05Zx",
                                      "0000-01-01", "-026-01-02", "2026-01-02X03:04", "2026-01-02T03:04:05+1"};
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!wb_date_parse(wb_slice_str(good[i].text), &ms) || ms != good[i].ms)
            fail_msg("'%s' is %lld", good[i].text, (long long)ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (wb_date_parse(wb_slice_str(bad[i]), &ms))
            fail_msg("'%s' is taken for a date", bad[i]);
}

static void test_digits(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"2026", 1767225600000},           {"202601", 1767225600000},           {"20260102", 1767312000000},
                {"20260102030405", 1767323045000}, {"20260102030405678", 1767323045678}, {"2026010203", 1767322800000}};
    static const char *const bad[] = {"", "202", "20261", "20261301", "2026010203040567a", "202601020304056789",
                                      "2026-01"};
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!wb_date_parse_digits(wb_slice_str(good[i].text), &ms) || ms != good[i].ms)
            fail_msg("'%s' is %lld", good[i].text, (long long)ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (wb_date_parse_digits(wb_slice_str(bad[i]), &ms))
            fail_msg("'%s' is taken for a date", bad[i]);
}

static void test_http(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"Sun, 06 Nov 1994 08:49:37 GMT", 784111777000},
                {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
                {"Wed, 31 Dec 1969 23:59:59 GMT", -1000},
                {"Thu, 29 Feb 2024 12:00:00 GMT", 1709208000000},
                {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799000},
                {"Mon, 01 Jan 0001 00:00:00 GMT", -62135596800000}};
    static const char *const bad[] = {"", "Sun, 06 Nov 1994 08:49:37 UTC", "Mon, 06 Nov 1994 08:49:37 GMT",
                                      "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 GMT ", "Sunday, 06-Nov-94 08:49:37 GMT",
                                      "Sun Nov  6 08:49:37 1994", "Sun, 06 Nox 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 0000 08:49:37 GMT", "1994-11-06T08:49:37Z"};
    char text[WB_DATE_HTTP_BYTES + 1] = "";
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!wb_date_parse_http(wb_slice_str(good[i].text), &ms) || ms != good[i].ms)
            fail_msg("'%s' is %lld", good[i].text, (long long)ms);
        assert_true(wb_date_format_http(good[i].ms, text));
        assert_string_equal(text, good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (wb_date_parse_http(wb_slice_str(bad[i]), &ms))
            fail_msg("'%s' is taken for a date", bad[i]);
    /* Fractions of a second are rounded down, before 1970 too. */
    assert_true(wb_date_format_http(-1, text));
    assert_string_equal(text, "Wed, 31 Dec 1969 23:59:59 GMT");
    assert_false(wb_date_format_http(253402300800000, text));
    assert_false(wb_date_format_http(-62135596800001, text));
    assert_false(wb_date_format_http(INT64_MIN, text));
    for (int64_t at = -62135596800000; at < 253402300800000; at += 86399000 * INT64_C(97)) {
        assert_true(wb_date_format_http(at, text));
        assert_true(wb_date_parse_http(wb_slice_str(text), &ms));
        assert_int_equal(ms, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_format), cmocka_unit_test(test_calendar),
                                       cmocka_unit_test(test_forms), cmocka_unit_test(test_digits),
                                       cmocka_unit_test(test_http)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
