/* test_cmd_extract.c - webbase extract: the object that scripts rely on, several files, types, and what goes wrong. */
#include "base/error.h"
#include "cli/options.h"
#include "cli/output.h"
#include "os/path.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../testroot.h"

static char page_path[80], text_path[80], other_path[80], out_path[80];
static struct wb_buf printed;

static void write_file(const char *path, const char *content)
{
    assert_int_equal(wb_path_replace(path, wb_slice_str(content)), 0);
}

static int set_up(void **state)
{
    assert_int_equal(make_root(state), 0);
    snprintf(page_path, sizeof page_path, "%s/page.html", test_root);
    snprintf(text_path, sizeof text_path, "%s/text.txt", test_root);
    snprintf(other_path, sizeof other_path, "%s/other", test_root);
    snprintf(out_path, sizeof out_path, "%s/out", test_root);
    write_file(page_path, "<html lang=en><title>T &amp; U</title><link rel=canonical href=c>"
                          "<meta name=robots content=noindex><meta name=author content='A. Uthor'>"
                          "<meta property=article:published_time content=2026-01-02T03:04:05Z>"
                          "<script type=application/ld+json>{\"@type\":\"NewsArticle\"}</script>"
                          "<a rel=nofollow href='x#y'>z</a>");
    write_file(text_path, "<b>words</b>");
    write_file(other_path, "<!DOCTYPE html><p>\x1b[31m\xc3\xa4");
    return 0;
}

static int tear_down(void **state)
{
    wb_buf_release(&printed);
    return remove_root(state);
}

/* Runs the command with its standard output in a file, which is read into printed; in_path is its standard input. */
static int run(char **argv, int argc, const char *in_path)
{
    struct wb_options options;
    int out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), in = open(in_path ? in_path : "/dev/null", O_RDONLY);
    int nowhere = open("/dev/null", O_WRONLY);

    fflush(stdout);
    int saved[3] = {dup(0), dup(1), dup(2)};
    dup2(in, 0);
    dup2(out, 1);
    dup2(nowhere, 2);
    int result = wb_options_parse(argc, argv, &options);
    if (result == 0)
        result = options.command->run(&options);
    wb_options_release(&options);
    if (wb_output_flush() < 0)
        result = result ? result : WB_E_IO;
    for (int fd = 0; fd < 3; fd++) {
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    close(in);
    close(out);
    close(nowhere);
    wb_buf_release(&printed);
    assert_int_equal(wb_path_read(out_path, 1 << 20, &printed), 0);
    assert_int_equal(wb_buf_terminate(&printed), 0);
    return result;
}

#define WORDS(...) ((char *[]){(char *)"webbase", (char *)"extract", __VA_ARGS__, NULL})
#define RUN(in_path, ...)                                                                                              \
    run(WORDS(__VA_ARGS__), (int)(sizeof WORDS(__VA_ARGS__) / sizeof(char *)) - 1, in_path)
#define ARG(text) ((char *)(text))

static json_t *line(unsigned n)
{
    char *p = printed.ptr;

    while (n-- > 0 && (p = strchr(p, '\n')))
        p++;
    assert_non_null(p);
    json_t *object = json_loads(p, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(object);
    return object;
}

static void expect_text(json_t *object, const char *key, const char *want)
{
    assert_string_equal(json_string_value(json_object_get(object, key)), want);
}

static void the_object(void **state)
{
    (void)state;
    assert_int_equal(RUN(NULL, ARG("--json"), ARG("--url"), ARG("https://a.org/d/e"), page_path), 0);
    json_t *object = line(0), *link = json_array_get(json_object_get(object, "links"), 1);
    expect_text(object, "charset", "windows-1252");
    expect_text(object, "title", "T & U");
    expect_text(object, "lang", "en");
    expect_text(object, "canonical", "https://a.org/d/c");
    expect_text(object, "robots", "noindex");
    expect_text(object, "text", "z");
    expect_text(object, "main_text", "z");
    expect_text(object, "author", "A. Uthor");
    expect_text(object, "type", "NewsArticle");
    expect_text(object, "module", "html");
    expect_text(object, "published", "2026-01-02T03:04:05.000Z");
    assert_true(json_is_null(json_object_get(object, "modified")));
    assert_int_equal(json_string_length(json_object_get(object, "simhash")), 16);
    expect_text(link, "tag", "a");
    expect_text(link, "href", "x#y");
    expect_text(link, "url", "https://a.org/d/x#y");
    expect_text(link, "anchor", "z");
    expect_text(link, "rel", "nofollow");
    json_decref(object);
}

static void several_files(void **state)
{
    (void)state;
    /* A missing file costs a message and the exit status; the others are read. */
    assert_int_equal(RUN(NULL, ARG("--json"), page_path, ARG("/nonexistent/x.html"), text_path, other_path), 1);
    json_t *text = line(1), *other = line(2);
    expect_text(text, "module", "text");
    expect_text(text, "text", "<b>words</b>");
    expect_text(other, "module", "html");
    json_decref(text);
    json_decref(other);
    assert_int_equal(RUN(NULL, ARG("/nonexistent/x.html")), WB_E_NOTFOUND);
}

static void types_and_charsets(void **state)
{
    (void)state;
    char *type = ARG("text/html; charset=utf-8");
    assert_int_equal(RUN(NULL, ARG("--json"), ARG("--type"), type, text_path, other_path), 0);
    json_t *text = line(0), *other = line(1);
    expect_text(text, "text", "words");
    expect_text(other, "charset", "utf-8");
    json_decref(text);
    json_decref(other);
    assert_int_equal(RUN(other_path, ARG("--json"), ARG("--charset"), ARG("latin1"), ARG("-")), 0);
    json_t *object = line(0);
    expect_text(object, "text", "[31m\xc3\x83\xc2\xa4");
    json_decref(object);
    assert_int_equal(RUN(NULL, ARG("--type"), ARG("nonsense"), text_path), WB_USAGE);
}

/* Without --json the output is for people, and cannot steer their terminals. */
static void in_words(void **state)
{
    (void)state;
    assert_int_equal(RUN(NULL, ARG("--url"), ARG("https://a.org/d/e"), page_path, other_path), 0);
    assert_non_null(strstr(printed.ptr, "title       T & U\n"));
    assert_non_null(strstr(printed.ptr, "https://a.org/d/x#y  rel nofollow  z\n"));
    for (size_t i = 0; i < printed.len; i++)
        assert_true((unsigned char)printed.ptr[i] >= ' ' || printed.ptr[i] == '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_object),
        cmocka_unit_test(several_files),
        cmocka_unit_test(types_and_charsets),
        cmocka_unit_test(in_words),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
