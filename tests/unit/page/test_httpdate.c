/* test_httpdate.c - HTTP dates, as the standard writes them and as servers do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/date.h"
#include "page/page.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *text, *want; /* NULL: not a date */
} dates[] = {
    /* the three forms of RFC 9110 */
    {"Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"},
    {"Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37.000Z"},
    {"Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37.000Z"},
    /* other forms that servers use */
    {" Sun, 06 Nov 1994 08:49:37 GMT\r\n", "1994-11-06T08:49:37.000Z"},
    {"sun, 6 nov 1994 8:49:37 gmt", "1994-11-06T08:49:37.000Z"},
    {"Sun, 06 Nov 1994 08:49:37", "1994-11-06T08:49:37.000Z"},
    {"Sun, 06 Nov 1994 08:49 GMT", "1994-11-06T08:49:00.000Z"},
    {"06 November 1994 08:49:37 UTC", "1994-11-06T08:49:37.000Z"},
    {"Nov 6, 1994", "1994-11-06T00:00:00.000Z"},
    {"Sun, 06 Nov 1994 08:49:37 +0200", "1994-11-06T06:49:37.000Z"},
    {"Sun, 06 Nov 1994 08:49:37 -0130", "1994-11-06T10:19:37.000Z"},
    {"Sun, 06 Nov 1994 08:49:37 +02:00", "1994-11-06T06:49:37.000Z"},
    {"Sun, 06 Nov 1994 08:49:37 EST", "1994-11-06T13:49:37.000Z"},
    {"Sun Nov 06 1994 08:49:37 GMT+0100 (Central European Time)", "1994-11-06T07:49:37.000Z"},
    {"Sun, 06 Nov 1994 08:49:37.123 GMT", "1994-11-06T08:49:37.000Z"},
    {"Sun, 06 Nov 1994 08:49:37 GMT, Mon, 07 Nov 1994 00:00:00 GMT", "1994-11-06T08:49:37.000Z"},
    {"1994-11-06T08:49:37Z", "1994-11-06T08:49:37.000Z"},
    {"1994-11-06", "1994-11-06T00:00:00.000Z"},
    {"Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"},
    {"Wednesday, 31-Dec-69 23:59:59 GMT", "2069-12-31T23:59:59.000Z"},
    {"Thursday, 01-Jan-70 00:00:00 GMT", "1970-01-01T00:00:00.000Z"},
    {"Thu, 29 Feb 2024 23:59:60 GMT", "2024-03-01T00:00:00.000Z"},
    {"Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59.000Z"},
    {"Mon, 01 Jan 0001 00:00:00 GMT", "0001-01-01T00:00:00.000Z"},
    /* not dates */
    {"", NULL},
    {"0", NULL},
    {"-1", NULL},
    {"now", NULL},
    {"GMT", NULL},
    {"Sun, 06 Nov", NULL},
    {"08:49:37", NULL},
    {"Sun, 31 Feb 1994 08:49:37 GMT", NULL},
    {"Sun, 29 Feb 2023 08:49:37 GMT", NULL},
    {"Sun, 06 Nov 1994 24:49:37 GMT", NULL},
    {"Sun, 06 Nov 1994 08:60:37 GMT", NULL},
    {"Sun, 00 Nov 1994 08:49:37 GMT", NULL},
    {"Sun, 06 Nev 1994 08:49:37 GMT", NULL},
    {"Sun, 06 Nov 19940 08:49:37 GMT", NULL},
    {"Sun, 06 Nov 0000 08:49:37 GMT", NULL},
    {"06 Nov 1994 1:2:3:4", NULL},
    {"06 11 1994 08:49:37", NULL},
    {"06 Novembers 1994", NULL},
};

static void test_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(dates); i++) {
        char text[WB_DATE_TEXT_MAX];
        int64_t ms = -1;
        bool ok = wb_http_date_parse(wb_slice_str(dates[i].text), &ms);
        if (ok != (dates[i].want != NULL))
            fail_msg("'%s' is %s", dates[i].text, ok ? "taken" : "refused");
        wb_date_format(ms, text);
        if (ok && strcmp(text, dates[i].want) != 0)
            fail_msg("'%s' is %s", dates[i].text, text);
        if (!ok)
            assert_int_equal(ms, 0);
    }
}

static void test_long(void **state)
{
    (void)state;
    char text[4096];
    int64_t ms;

    memset(text, ' ', sizeof text);
    memcpy(text + 2000, "Sun, 06 Nov 1994 08:49:37 GMT", 29);
    assert_true(wb_http_date_parse(wb_slice(text, sizeof text), &ms));
    text[sizeof text - 1] = 'x'; /* white space does not count, other bytes do */
    assert_false(wb_http_date_parse(wb_slice(text, sizeof text), &ms));
    memset(text, '1', sizeof text);
    assert_false(wb_http_date_parse(wb_slice(text, sizeof text), &ms));
}

static void test_retry_after(void **state)
{
    (void)state;
    enum { NOW = 1000000 };
    static const struct {
        const char *value;
        int64_t want; /* -1: nothing */
    } cases[] = {
        {"0", NOW}, {"120", NOW + 120000}, {" 120 ", NOW + 120000}, {"1.5", NOW + 1000},
        {"Thu, 01 Jan 1970 01:00:00 GMT", 3600000},
        {"99999999999999999999999999", NOW + INT64_C(1000) * 10 * 366 * WB_DAY_SECONDS},
        {"", -1}, {"-5", -1}, {"soon", -1}, {"120 seconds", -1}, {".5", -1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms;
        bool ok = wb_http_retry_after(wb_slice_str(cases[i].value), NOW, &ms);
        if (ok != (cases[i].want >= 0) || (ok && ms != cases[i].want))
            fail_msg("'%s' is %lld", cases[i].value, ok ? (long long)ms : -1);
    }
}

/* Fetched on 2026-01-02T03:04:05Z. */
static void test_modified(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int64_t time_ms;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nLast-Modified: Wed, 05 Feb 2020 10:00:00 GMT\r\n", 1580896800000},
        {"HTTP/1.1 200 OK\nlast-modified: Wednesday, 05-Feb-20 10:00:00 GMT\n", 1580896800000},
        {"HTTP/1.1 200 OK\r\nLast-Modified: yesterday\r\n", 0},
        {"HTTP/1.1 200 OK\r\n", 0},
        {"HTTP/1.1 200 OK\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n", 0},
        {"HTTP/1.1 200 OK\r\nLast-Modified: Fri, 02 Jan 2026 03:04:06 GMT\r\n", 0}, /* after the fetch */
        {"HTTP/1.1 200 OK\r\nLast-Modified: Fri, 02 Jan 2026 03:04:05 GMT\r\n", 0}, /* with it */
        {"HTTP/1.1 200 OK\r\nLast-Modified: Fri, 02 Jan 2026 03:04:04 GMT\r\n", 1767323044000},
        {"HTTP/1.1 200 OK\r\nDate: Fri, 02 Jan 2026 03:00:00 GMT\r\nLast-Modified: Fri, 02 Jan 2026 03:00:00 GMT\r\n",
         0},
        {"HTTP/1.1 200 OK\r\nDate: Fri, 02 Jan 2026 03:00:00 GMT\r\nLast-Modified: Fri, 02 Jan 2026 03:01:00 GMT\r\n",
         0},
        {"HTTP/1.1 200 OK\r\nDate: junk\r\nLast-Modified: Fri, 02 Jan 2026 03:01:00 GMT\r\n", 1767322860000},
        {"", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(wb_http_modified(wb_slice_str(cases[i].head), 1767323045678), cases[i].time_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modified),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_retry_after),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
