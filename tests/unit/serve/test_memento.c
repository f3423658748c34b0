/* test_memento.c - addresses of the archive, and which capture a time means. */
#include "base/date.h"
#include "base/error.h"
#include "serve/memento.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_find)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
