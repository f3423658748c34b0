/* test_memento.c - addresses of the archive, and which capture a time means. */
#include "base/date.h"
#include "base/error.h"
#include "serve/memento.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_addresses(void **state)
{
    static const struct {
        const char *rest, *url;
        const char *end; /* the last second that the digits mean; NULL: no time */
        bool raw, list;
    } cases[] = {
        {"http://example.org/", "http://example.org/", NULL, false, false},
        {"20260102030405/http://example.org/a?b=c", "http://example.org/a?b=c", "20260102030405", false, false},
        {"20260102030405id_/https://example.org/", "https://example.org/", "20260102030405", true, false},
        {"id_/http://example.org/x", "http://example.org/x", NULL, true, false},
        {"20260102030405im_/http://example.org/i.png", "http://example.org/i.png", "20260102030405", false, false},
        {"*/http://example.org/", "http://example.org/", NULL, false, true},
        {"2026/http://example.org/", "http://example.org/", "20261231235959", false, false},
        {"202602/http://example.org/", "http://example.org/", "20260228235959", false, false},
        {"20260102/example.org/x", "http://example.org/x", "20260102235959", false, false},
        {"http:/example.org/one-slash", "http://example.org/one-slash", NULL, false, false},
        {"example.org:8080/port", "http://example.org:8080/port", NULL, false, false},
        {"HTTPS://EXAMPLE.org/", "https://example.org/", NULL, false, false},
        {"2026x/y", "http://2026x/y", NULL, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wb_memento_target t;
        int64_t end = 0;
        assert_int_equal(wb_memento_parse(wb_slice_str(cases[i].rest), &t), 0);
        if (!wb_slice_equal(wb_buf_slice(&t.url), wb_slice_str(cases[i].url)))
            fail_msg("%s: %.*s", cases[i].rest, WB_SLICE_ARG(wb_buf_slice(&t.url)));
        assert_int_equal(t.raw, cases[i].raw);
        assert_int_equal(t.list, cases[i].list);
        assert_int_equal(t.has_time, cases[i].end != NULL);
        assert_int_equal(t.has_second, strncmp(cases[i].rest, "20260102030405", 14) == 0);
        if (cases[i].end) {
            assert_true(wb_date_parse_digits(wb_slice_str(cases[i].end), &end));
            assert_int_equal(t.time_ms, end + 999);
        }
        wb_memento_target_release(&t);
    }
}

static void test_refused(void **state)
{
    static const char *const cases[] = {"",
                                        "20260102030405/",
                                        "javascript:alert(1)",
                                        "20260101000000/javascript:alert(1)",
                                        "file:///etc/passwd",
                                        "20260101/data:text/html,x",
                                        "http://",
                                        "http://[/"};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wb_memento_target t;
        if (wb_memento_parse(wb_slice_str(cases[i]), &t) >= 0)
            fail_msg("'%s' was taken for %.*s", cases[i], WB_SLICE_ARG(wb_buf_slice(&t.url)));
        wb_memento_target_release(&t);
    }
}

/* The newest capture at or before a time, or else the oldest one. */
static void test_find(void **state)
{
    int64_t times[] = {1000, 2000, 2000, 5000};
    struct wb_store_timeline timeline = {.times = times, .time_count = 4};

    (void)state;
    assert_int_equal(wb_memento_find(&timeline, 0), 0);
    assert_int_equal(wb_memento_find(&timeline, 1000), 0);
    assert_int_equal(wb_memento_find(&timeline, 1999), 0);
    assert_int_equal(wb_memento_find(&timeline, 2000), 2);
    assert_int_equal(wb_memento_find(&timeline, 4999), 2);
    assert_int_equal(wb_memento_find(&timeline, INT64_MAX), 3);
}

/* Two versions of which one lies between the captures of the other, as only a snapshot can have it. */
static void test_find_between(void **state)
{
    int64_t times[] = {1000, 9000, 9000, 4000, 6000, 6000};
    struct wb_store_timeline timeline = {.times = times, .time_count = 6};

    (void)state;
    assert_int_equal(wb_memento_find(&timeline, 0), 0);
    assert_int_equal(wb_memento_find(&timeline, 3999), 0);
    assert_int_equal(wb_memento_find(&timeline, 4000), 3);
    assert_int_equal(wb_memento_find(&timeline, 8000), 5);
    assert_int_equal(wb_memento_find(&timeline, INT64_MAX), 2);
    assert_int_equal(wb_memento_near(&timeline, 2999, NULL, 0), 0);
    assert_int_equal(wb_memento_near(&timeline, 3999, NULL, 0), 3);
    assert_int_equal(wb_memento_near(&timeline, 5999, NULL, 0), 4);
    assert_int_equal(wb_memento_near(&timeline, 8999, NULL, 0), 1);
}

/* The capture that belongs to a page of a second. */
static void test_near(void **state)
{
    static const int64_t times[] = {1000, 20000, 20400, 50000, 60000};
    static const struct {
        int64_t second;
        size_t want;
        int64_t seals[2]; /* 0: none */
    } cases[] = {
        {0, 0, {0}},
        {1, 0, {0}},
        {2, 0, {0}},
        {10, 0, {0}}, /* 9 s back, 10 s ahead */
        {11, 1, {0}},
        {20, 2, {0}},
        {21, 2, {0}},
        {34, 2, {0}},
        {35, 3, {0}}, /* as far either way: files come after their page */
        {36, 3, {0}},
        {50, 3, {0}},
        {54, 3, {0}},
        {55, 4, {0}},
        {61, 4, {0}},
        {99, 4, {0}},
        /* Sealed before the page: what comes after it is of the same cycle, unless it is much farther away... */
        {28, 3, {25000, 0}},
        {26, 3, {25000, 0}},
        {25, 2, {24000, 0}},
        /* ...or sealed again before it came. A seal before the earlier capture says nothing. */
        {28, 2, {25000, 49000}},
        {28, 2, {49000, 25000}},
        {28, 2, {10000, 0}},
        {28, 2, {20000, 0}},
    };
    struct wb_store_timeline timeline = {.times = (int64_t *)times, .time_count = 5};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count = cases[i].seals[1] ? 2 : cases[i].seals[0] ? 1 : 0;
        size_t got = wb_memento_near(&timeline, cases[i].second * 1000 + 999, cases[i].seals, count);
        if (got != cases[i].want)
            fail_msg("case %zu: capture %zu instead of %zu", i, got, cases[i].want);
    }
    timeline.time_count = 1;
    assert_int_equal(wb_memento_near(&timeline, 99999, NULL, 0), 0);
    assert_int_equal(wb_memento_near(&timeline, 999, NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_find), cmocka_unit_test(test_find_between),
                                       cmocka_unit_test(test_near)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
