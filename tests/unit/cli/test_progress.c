/* test_progress.c - the words of the progress line, and text that cannot steer a terminal. */
#include "base/slice.h"
#include "cli/crawl_show.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_line(const char *want, uint64_t done, uint64_t total, uint64_t pages, double seconds)
{
    char text[200];

    wb_progress_text("import", done, total, pages, seconds, text, sizeof text);
    assert_string_equal(text, want);
}

static void test_rate_done_and_left(void **state)
{
    (void)state;
    assert_line("import: 50.0 MB of 200.0 MB (25 %), 1234 pages, 5.0 MB/s, 30 s left", 50000000, 200000000, 1234, 10);
    assert_line("import: 1.0 GB of 100.0 GB (1 %), 9 pages, 10.0 MB/s, 2.8 h left", 1000000000, 100000000000, 9, 100);
    assert_line("import: 999 B of 2.0 kB (50 %), 0 pages, 16 B/s, 1 min left", 999, 1998, 0, 60.5);
}

static void test_unknown_totals(void **state)
{
    (void)state;
    assert_line("import: 1.5 kB, 3 pages, 750 B/s", 1500, 0, 3, 2);
    assert_line("import: 0 B, 0 pages, 0 B/s", 0, 100, 0, 0);
    assert_line("import: 300 B, 1 pages, 300 B/s", 300, 200, 1, 1);
}

/* run shows one crawl after another, and each of them counts from zero. */
static void test_rates_of_crawls(void **state)
{
    struct wb_crawl_stat last = {.pages = 900, .wire_bytes = 5000000};
    struct wb_crawl_stat stat = {.pages = 1000, .wire_bytes = 7000000, .sites_done = 3};
    char text[320];

    (void)state;
    wb_crawl_show_text(&last, &stat, 2, text, sizeof text);
    assert_string_equal(text, "crawl: 1000 pages, 50/s, 1.0 MB/s; sites 0 (0 waiting), 0 left, 3 done");
    stat = (struct wb_crawl_stat){.pages = 1};
    wb_crawl_show_text(&last, &stat, 2, text, sizeof text);
    assert_string_equal(text, "crawl: 1 pages, 0/s, 0.0 MB/s; sites 0 (0 waiting), 0 left, 0 done");
    wb_crawl_show_text(&(struct wb_crawl_stat){0}, &stat, 0, text, sizeof text);
    assert_string_equal(text, "crawl: 1 pages, 0/s, 0.0 MB/s; sites 0 (0 waiting), 0 left, 0 done");
}

static void test_control_characters_go(void **state)
{
    char text[] = "a\x1b[2Jb\nc\x7f" "d\xc2\x9b" "e\xc3\xa9\xc2";

    (void)state;
    wb_output_clean(text, strlen(text));
    assert_string_equal(text, "a?[2Jb?c?d??e\xc3\xa9\xc2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_done_and_left),
        cmocka_unit_test(test_unknown_totals),
        cmocka_unit_test(test_rates_of_crawls),
        cmocka_unit_test(test_control_characters_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
