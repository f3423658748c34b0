/* test_options.c - which command lines are accepted, and the messages of those that are not. */
#include "base/error.h"
#include "base/mem.h"
#include "cli/options.h"
#include "os/fault.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 16

/* Parses words; the last one is NULL. */
static int parse(struct wb_options *options, const char *const *words)
{
    char *argv[WORDS_MAX] = {(char *)"webbase"};
    int argc = 1;

    while (words[argc - 1]) {
        argv[argc] = (char *)words[argc - 1];
        argc++;
    }
    return wb_options_parse(argc, argv, options);
}

#define PARSE(options, ...) parse(options, (const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(const char *named, const char *const *words)
{
    struct wb_options options;

    assert_int_equal(parse(&options, words), WB_USAGE);
    if (!strstr(wb_error_message(), named))
        fail_msg("'%s' is not in '%s'", named, wb_error_message());
    wb_options_release(&options);
}

#define REFUSED(named, ...) assert_refused(named, (const char *const[]){__VA_ARGS__, NULL})

static void test_options_stand_anywhere(void **state)
{
    struct wb_options options;

    (void)state;
    assert_int_equal(PARSE(&options, "-r", "R", "import", "a", "--max-bytes", "7", "b", "--json"), 0);
    assert_string_equal(options.command->name, "import");
    assert_string_equal(options.dir, "R");
    assert_true(options.json);
    assert_int_equal(options.arg_count, 2);
    assert_string_equal(options.args[0], "a");
    assert_string_equal(options.args[1], "b");
    assert_int_equal(wb_options_number(&options, "max-bytes", 1), 7);
    assert_null(wb_options_text(&options, "dir"));
    wb_options_release(&options);

    assert_int_equal(PARSE(&options, "--json", "import", "a", "--repository=R2", "--max-bytes=8"), 0);
    assert_string_equal(options.dir, "R2");
    assert_true(options.json);
    assert_int_equal(wb_options_number(&options, "max-bytes", 1), 8);
    wb_options_release(&options);

    assert_int_equal(PARSE(&options, "-rR3", "stat"), 0);
    assert_string_equal(options.dir, "R3");
    wb_options_release(&options);
}

static void test_two_dashes_end_options(void **state)
{
    struct wb_options options;

    (void)state;
    assert_int_equal(PARSE(&options, "url", "--base", "http://h/", "--", "--json", "-", "--"), 0);
    assert_false(options.json);
    assert_int_equal(options.arg_count, 3);
    assert_string_equal(options.args[0], "--json");
    assert_string_equal(options.args[1], "-");
    assert_string_equal(options.args[2], "--");
    wb_options_release(&options);
}

static void test_a_dash_and_an_empty_word_are_arguments(void **state)
{
    struct wb_options options;

    (void)state;
    assert_int_equal(PARSE(&options, "url", "-", ""), 0);
    assert_int_equal(options.arg_count, 2);
    assert_string_equal(options.args[0], "-");
    assert_string_equal(options.args[1], "");
    wb_options_release(&options);
}

static void test_wrong_usage_is_named(void **state)
{
    (void)state;
    REFUSED("no command", "--json");
    REFUSED("frobnicate", "frobnicate");
    REFUSED("--frobnicate", "stat", "--frobnicate");
    REFUSED("--frobnicate=3", "stat", "--frobnicate=3");
    REFUSED("--warc", "--warc", "f", "export");
    REFUSED("'-x'", "stat", "-x");
    REFUSED("--max-bytes", "import", "f", "--max-bytes");
    REFUSED("many", "import", "f", "--max-bytes", "many");
    REFUSED("-1", "import", "f", "--max-bytes", "-1");
    REFUSED("'0'", "import", "f", "--max-bytes", "0");
    REFUSED("99999999999999999999", "import", "f", "--max-bytes=99999999999999999999");
    REFUSED("drawer", "init", "--organisation", "drawer");
    REFUSED("hash|", "init", "--organisation", "hash|hashed-log");
    REFUSED("2026-13-01", "export", "--warc", "f", "--since", "2026-13-01");
    REFUSED("--json takes no value", "stat", "--json=1");
    REFUSED("--dir", "import", "--dir", "");
    REFUSED("get", "get");
    REFUSED("'b'", "get", "a", "b");
    REFUSED("'extra'", "stat", "extra");
}

static void test_values_of_their_kinds(void **state)
{
    struct wb_options options;

    (void)state;
    assert_int_equal(PARSE(&options, "export", "--warc", "f", "--since", "2026-01-01",
                           "--until=1970-01-01T00:00:01.500Z"), 0);
    assert_true(wb_options_time(&options, "since", 0) == 1767225600000);
    assert_true(wb_options_time(&options, "until", 0) == 1500);
    assert_false(wb_options_flag(&options, "force"));
    wb_options_release(&options);
    assert_int_equal(PARSE(&options, "export", "--force", "--warc", "f"), 0);
    assert_true(wb_options_flag(&options, "force"));
    assert_true(wb_options_time(&options, "since", -5) == -5);
    wb_options_release(&options);
    assert_int_equal(PARSE(&options, "init", "--organisation", "hashed-log"), 0);
    assert_string_equal(wb_options_text(&options, "organisation"), "hashed-log");
    wb_options_release(&options);
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } right[] = {{"500ms", 500}, {"0.5", 500}, {"90", 90000}, {"10m", 600000}, {"6h", 21600000}, {"30d", 2592000000},
                 {"2w", 1209600000}, {"1y", 31536000000}};
    static const char *const wrong[] = {"", "-1s", "banana", "5 parsecs", "1e99y", "0x10", "d", ".", "1d1", "inf"};
    struct wb_options options;

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(PARSE(&options, "snapshot", "--keep", right[i].text), 0);
        assert_true(wb_options_duration(&options, "keep", 0) == right[i].ms);
        wb_options_release(&options);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED("--keep", "snapshot", "--keep", wrong[i]);
        REFUSED(wrong[i], "snapshot", "--keep", wrong[i]);
    }
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } right[] = {{"1", 1}, {"1234", 1234}, {"500k", 500000}, {"2M", 2000000}, {"3G", 3000000000},
                 {"1T", 1000000000000}};
    static const char *const wrong[] = {"0", "0k", "k", "1.5M", "10q", "1kk", "99999999999T", "18446744073709551616"};
    struct wb_options options;

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(PARSE(&options, "crawl", "--max-rate", right[i].text, "u"), 0);
        assert_true(wb_options_size(&options, "max-rate", 0) == right[i].bytes);
        wb_options_release(&options);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        REFUSED(wrong[i], "crawl", "u", "--max-rate", wrong[i]);
}

/* Two options of one command may be given several times, in any order. */
static void test_several_lists(void **state)
{
    struct wb_options options;
    const char *const *list;
    size_t count;

    (void)state;
    assert_int_equal(PARSE(&options, "crawl", "--with", "a", "--resolve", "x", "--with=b", "u", "--resolve", "y",
                           "--with", "c"), 0);
    list = wb_options_list(&options, "with", &count);
    assert_int_equal(count, 3);
    assert_true(strcmp(list[0], "a") == 0 && strcmp(list[1], "b") == 0 && strcmp(list[2], "c") == 0);
    list = wb_options_list(&options, "resolve", &count);
    assert_int_equal(count, 2);
    assert_true(strcmp(list[0], "x") == 0 && strcmp(list[1], "y") == 0);
    wb_options_release(&options);
    assert_int_equal(PARSE(&options, "crawl", "--resolve", "x", "u"), 0);
    wb_options_list(&options, "with", &count);
    assert_int_equal(count, 0);
    wb_options_release(&options);
}

static void test_help_forgives_what_is_missing(void **state)
{
    struct wb_options options;

    (void)state;
    assert_int_equal(PARSE(&options, "get", "--help"), 0);
    assert_true(options.help);
    assert_string_equal(options.command->name, "get");
    wb_options_release(&options);
    assert_int_equal(PARSE(&options, "-h"), 0);
    assert_true(options.help);
    assert_null(options.command);
    wb_options_release(&options);
    assert_int_equal(PARSE(&options, "--version"), 0);
    assert_true(options.version);
    wb_options_release(&options);
}

static void test_the_repository_comes_from_the_environment(void **state)
{
    struct wb_options options;

    (void)state;
    setenv("WEBBASE_REPO", "/some/where", 1);
    assert_int_equal(PARSE(&options, "stat"), 0);
    assert_string_equal(options.dir, "/some/where");
    wb_options_release(&options);
    setenv("WEBBASE_REPO", "", 1);
    assert_int_equal(PARSE(&options, "stat"), 0);
    assert_string_equal(options.dir, "webbase-data");
    wb_options_release(&options);
    unsetenv("WEBBASE_REPO");
}

static void test_out_of_memory(void **state)
{
    struct wb_options options;

    (void)state;
    wb_fault_arm(WB_FAULT_ALLOC, 1, ENOMEM);
    assert_int_equal(PARSE(&options, "stat"), WB_E_NOMEM);
    wb_fault_disarm();
    wb_options_release(&options);
}

static void test_the_table_is_sound(void **state)
{
    (void)state;
    for (const struct wb_command *c = wb_commands; c->name; c++) {
        size_t n = 0;
        assert_ptr_equal(wb_command_find(c->name), c);
        assert_non_null(c->run);
        assert_true(c->args_min <= c->args_max);
        for (const struct wb_option *o = c->options; o->name; o++, n++) {
            assert_true((o->kind == WB_OPTION_FLAG) == (o->arg == NULL));
            for (const struct wb_option *common = wb_common_options; common->name; common++)
                assert_string_not_equal(o->name, common->name);
        }
        assert_true(n <= WB_COMMAND_OPTIONS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_stand_anywhere),
        cmocka_unit_test(test_two_dashes_end_options),
        cmocka_unit_test(test_a_dash_and_an_empty_word_are_arguments),
        cmocka_unit_test(test_wrong_usage_is_named),
        cmocka_unit_test(test_values_of_their_kinds),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_several_lists),
        cmocka_unit_test(test_help_forgives_what_is_missing),
        cmocka_unit_test(test_the_repository_comes_from_the_environment),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_the_table_is_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
