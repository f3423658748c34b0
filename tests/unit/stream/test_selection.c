/* test_selection.c - which pages a selection matches. */
#include "base/date.h"
#include "base/error.h"
#include "stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int select_pages(struct wb_selection *selection, const char *option, const char *value)
{
    *selection = WB_SELECTION_INIT;
    return wb_selection_set(selection, option + 2, wb_slice_str(value), true);
}

static bool matches(const char *option, const char *value, const char *key, const char *type, const char *time)
{
    struct wb_selection selection;
    struct wb_page page = {.key = wb_slice_str(key), .type = wb_slice_str(type)};

    assert_true(wb_date_parse(wb_slice_str(time), &page.time_ms));
    assert_int_equal(select_pages(&selection, option, value), 0);
    bool match = wb_selection_matches(&selection, &page);
    wb_selection_release(&selection);
    return match;
}

static bool host_matches(const char *option, const char *value, const char *key)
{
    return matches(option, value, key, "text/html", "2026-01-01");
}

static void test_site_is_the_exact_host(void **state)
{
    (void)state;
    assert_true(host_matches("--site", "one.example", "one.example/a"));
    assert_true(host_matches("--site", "ONE.example", "one.example/a"));
    assert_true(host_matches("--site",
                             "b\xc3\xbc"
                             "cher.example",
                             "xn--bcher-kva.example/"));
    assert_true(host_matches("--site", "one.example:8080", "one.example:8080/a"));
    assert_false(host_matches("--site", "one.example", "one.example:8080/a"));
    assert_false(host_matches("--site", "one.example", "sub.one.example/a"));
    assert_false(host_matches("--site", "one.example", "two.example/one.example"));
}

static void test_suffix_is_whole_labels(void **state)
{
    (void)state;
    assert_true(host_matches("--suffix", "edu", "www.stanford.edu/a"));
    assert_true(host_matches("--suffix", ".edu", "www.stanford.edu/a"));
    assert_true(host_matches("--suffix", "Stanford.edu", "stanford.edu:8080/a"));
    assert_false(host_matches("--suffix", "ford.edu", "stanford.edu/a"));
    assert_false(host_matches("--suffix", "stanford.edu", "edu/a"));
    assert_false(host_matches("--suffix", "edu", "example.org/edu"));
    assert_true(host_matches("--suffix", "[2001:db8::1]", "[2001:db8::1]:81/x"));
}

static void test_since_is_inclusive_and_until_exclusive(void **state)
{
    const char *key = "h.example/a";

    (void)state;
    assert_true(matches("--since", "2026-02-01", key, "", "2026-02-01T00:00:00Z"));
    assert_false(matches("--since", "2026-02-01", key, "", "2026-01-31T23:59:59.999Z"));
    assert_true(matches("--until", "2026-02-01", key, "", "2026-01-31T23:59:59.999Z"));
    assert_false(matches("--until", "2026-02-01", key, "", "2026-02-01T00:00:00Z"));
}

static void test_type(void **state)
{
    const char *key = "h.example/a", *time = "2026-01-01";

    (void)state;
    assert_true(matches("--type", "html", key, "text/html", time));
    assert_true(matches("--type", "html", key, "application/xhtml+xml", time));
    assert_false(matches("--type", "html", key, "text/plain", time));
    assert_true(matches("--type", "Text/Plain", key, "text/plain", time));
    assert_false(matches("--type", "text/plain", key, "", time));
}

/* Each condition can be asked for by itself; conditions that were not given match anything. */
static void test_one_condition_at_a_time(void **state)
{
    struct wb_selection selection;

    (void)state;
    assert_int_equal(select_pages(&selection, "--site", "one.example"), 0);
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("one.example/a")));
    assert_false(wb_selection_has_site(&selection, WB_SLICE_LIT("two.example/a")));
    assert_true(wb_selection_has_time(&selection, 0) && wb_selection_has_type(&selection, WB_SLICE_EMPTY));
    wb_selection_release(&selection);
    assert_int_equal(select_pages(&selection, "--since", "1970-01-01T00:00:00.005Z"), 0);
    assert_true(wb_selection_has_time(&selection, 5));
    assert_false(wb_selection_has_time(&selection, 4));
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("two.example/a")));
    wb_selection_release(&selection);
    assert_int_equal(select_pages(&selection, "--type", "html"), 0);
    assert_false(wb_selection_has_type(&selection, WB_SLICE_EMPTY));
    assert_true(wb_selection_has_type(&selection, WB_SLICE_LIT("text/html")));
    wb_selection_release(&selection);
}

static void test_several_sites(void **state)
{
    struct wb_selection selection = WB_SELECTION_INIT;
    static const char *const sites[] = {"two.example", "one.example", "three.example:81", "One.example"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(wb_selection_set(&selection, "site", wb_slice_str(sites[i]), false), 0);
    assert_int_equal(selection.sites.count, 3);
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("one.example/a")));
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("two.example")));
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("three.example:81/")));
    assert_false(wb_selection_has_site(&selection, WB_SLICE_LIT("three.example/")));
    assert_int_equal(wb_selection_only_site(&selection).len, 0);
    wb_selection_release(&selection);
    assert_int_equal(select_pages(&selection, "--site", "One.example"), 0);
    assert_true(wb_slice_equal(wb_selection_only_site(&selection), WB_SLICE_LIT("one.example")));
    wb_selection_release(&selection);
}

static void test_several_suffixes(void **state)
{
    struct wb_selection selection = WB_SELECTION_INIT;

    (void)state;
    assert_int_equal(wb_selection_set(&selection, "suffix", WB_SLICE_LIT("edu"), false), 0);
    assert_int_equal(wb_selection_set(&selection, "suffix", WB_SLICE_LIT(".Example.org"), false), 0);
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("www.stanford.edu/")));
    assert_true(wb_selection_has_site(&selection, WB_SLICE_LIT("a.example.org/")));
    assert_false(wb_selection_has_site(&selection, WB_SLICE_LIT("example.com/")));
    wb_selection_release(&selection);
}

/* What a stranger may ask for over HTTP never names a file. */
static void test_files_and_unknown_names(void **state)
{
    struct wb_selection selection = WB_SELECTION_INIT;

    (void)state;
    assert_int_equal(wb_selection_set(&selection, "sites", WB_SLICE_LIT("/etc/passwd"), false), WB_E_INVALID);
    assert_int_equal(wb_selection_set(&selection, "sites", WB_SLICE_LIT("/no/such/file"), true), WB_E_NOTFOUND);
    assert_int_equal(wb_selection_set(&selection, "colour", WB_SLICE_LIT("red"), true), WB_E_NOTFOUND);
    assert_int_equal(wb_selection_set(&selection, "lang", WB_SLICE_LIT("klingon"), true), WB_E_INVALID);
    assert_int_equal(wb_selection_set(&selection, "since", WB_SLICE_LIT("yesterdayish"), true), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "yesterdayish"));
    wb_selection_release(&selection);
}

static void test_status(void **state)
{
    static const char *const wrong[] = {"4", "40", "4040", "x04", "4x4", "000", "-04", "4xxx"};
    struct wb_selection selection;

    (void)state;
    assert_int_equal(select_pages(&selection, "--status", "404"), 0);
    assert_true(wb_selection_has_status(&selection, 404));
    assert_false(wb_selection_has_status(&selection, 403) || wb_selection_has_status(&selection, 405));
    wb_selection_release(&selection);
    assert_int_equal(select_pages(&selection, "--status", "4Xx"), 0);
    assert_true(wb_selection_has_status(&selection, 400) && wb_selection_has_status(&selection, 499));
    assert_false(wb_selection_has_status(&selection, 399) || wb_selection_has_status(&selection, 500));
    wb_selection_release(&selection);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(select_pages(&selection, "--status", wrong[i]), WB_E_INVALID);
        wb_selection_release(&selection);
    }
}

static void test_what_is_no_host_is_refused(void **state)
{
    static const char *const wrong[] = {"a b", "host/path", "user@host", "[::1", "h?q"};
    struct wb_selection selection;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(select_pages(&selection, "--site", wrong[i]), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), wrong[i]));
        wb_selection_release(&selection);
    }
}

/* WB_STREAM_PARAMS says what the server documents: all of it is known, and nothing else. */
static void test_every_name_is_known(void **state)
{
    static const char *const others[] = {"sites", "", "Site", "format", "token", "facts", "who"};
    char names[] = WB_STREAM_PARAMS, *rest = names, *name;
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
    size_t count = 0;

    (void)state;
    for (; (name = strtok_r(rest, " ", &rest)); count++)
        assert_int_not_equal(wb_stream_spec_set(&spec, name, WB_SLICE_LIT("1"), false), WB_E_NOTFOUND);
    assert_int_equal(count, 17);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(wb_stream_spec_set(&spec, others[i], WB_SLICE_LIT("1"), false) < 0);
    wb_stream_spec_release(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_is_known),
        cmocka_unit_test(test_site_is_the_exact_host),
        cmocka_unit_test(test_suffix_is_whole_labels),
        cmocka_unit_test(test_since_is_inclusive_and_until_exclusive),
        cmocka_unit_test(test_type),
        cmocka_unit_test(test_several_sites),
        cmocka_unit_test(test_several_suffixes),
        cmocka_unit_test(test_files_and_unknown_names),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_one_condition_at_a_time),
        cmocka_unit_test(test_what_is_no_host_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
