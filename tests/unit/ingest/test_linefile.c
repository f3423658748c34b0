/* test_linefile.c - lines of plain and gzip'd files, in and out. */
#include "base/error.h"
#include "ingest/linereader.h"
#include "ingest/linewriter.h"
#include "os/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64], path[96];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/webbase-lines-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int tear_down(void **state)
{
    char text[96];

    (void)state;
    snprintf(text, sizeof text, "rm -rf '%s'", folder);
    return system(text);
}

static void name_file(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
}

static void write_file(const char *name, const void *bytes, size_t len)
{
    name_file(name);
    assert_int_equal(wb_path_replace(path, wb_slice(bytes, len)), 0);
}

static void write_lines(const char *name, size_t count)
{
    struct wb_linewriter *writer;
    char line[64];

    name_file(name);
    assert_int_equal(wb_linewriter_create(path, false, &writer), 0);
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(line, sizeof line, "%zu\thttp://example.org/page/%zu\n", i, i * 7919);
        assert_int_equal(wb_linewriter_append(writer, line, (size_t)len), 0);
    }
    assert_int_equal(wb_linewriter_finish(writer), 0);
}

/* Lines as written by write_lines: how many there are before the end or an error. */
static size_t read_lines(int *end_out)
{
    struct wb_linereader *reader;
    struct wb_slice line;
    char expected[64];
    size_t count = 0;

    assert_int_equal(wb_linereader_open(path, &reader), 0);
    while ((*end_out = wb_linereader_next(reader, &line)) == 1) {
        snprintf(expected, sizeof expected, "%zu\thttp://example.org/page/%zu", count, count * 7919);
        assert_true(wb_slice_equal(line, wb_slice_str(expected)));
        count++;
        assert_int_equal(wb_linereader_number(reader), count);
    }
    wb_linereader_close(reader);
    return count;
}

static void test_what_is_written_is_read(void **state)
{
    static const char *const names[] = {"plain.txt", "packed.txt.gz"};
    int end;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        write_lines(names[i], 50000);
        assert_int_equal(read_lines(&end), 50000);
        assert_int_equal(end, 0);
        write_lines(i ? "none.gz" : "none", 0);
        assert_int_equal(read_lines(&end), 0);
        assert_int_equal(end, 0);
    }
    name_file("packed.txt.gz");
    assert_true(wb_path_disk_bytes(path) < 800000);
}

static void test_members_follow_each_other(void **state)
{
    char text[256];
    int end;

    (void)state;
    write_lines("a.gz", 3);
    snprintf(text, sizeof text, "cd %s && printf '3\\thttp://example.org/page/23757\\n' | gzip > b.gz && cat a.gz b.gz > ab.gz", folder);
    assert_int_equal(system(text), 0);
    name_file("ab.gz");
    assert_int_equal(read_lines(&end), 4);
    assert_int_equal(end, 0);
}

static void test_broken_gzip(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int end;

    (void)state;
    write_lines("whole.gz", 50000);
    assert_int_equal(wb_path_read(path, 1 << 20, &bytes), 0);
    write_file("cut.gz", bytes.ptr, bytes.len / 2);
    assert_true(read_lines(&end) > 10000);
    assert_int_equal(end, WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), "cut.gz"));
    memset(bytes.ptr + 20, 0xff, 50);
    write_file("wrong.gz", bytes.ptr, bytes.len);
    assert_true(read_lines(&end) < 50000);
    assert_int_equal(end, WB_E_CORRUPT);
    wb_buf_release(&bytes);
}

static void test_line_ends(void **state)
{
    static const char *const expected[] = {"one", "", "two", "\rx", "last"};
    struct wb_linereader *reader;
    struct wb_slice line;

    (void)state;
    write_file("ends", "one\n\ntwo\r\n\rx\nlast", 17);
    assert_int_equal(wb_linereader_open(path, &reader), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(wb_linereader_next(reader, &line), 1);
        assert_true(wb_slice_equal(line, wb_slice_str(expected[i])));
    }
    assert_int_equal(wb_linereader_next(reader, &line), 0);
    assert_int_equal(wb_linereader_next(reader, &line), 0);
    wb_linereader_close(reader);
}

static void test_a_line_without_end(void **state)
{
    size_t len = 3 * WB_LINEREADER_LINE_MAX;
    char *bytes = malloc(len);
    struct wb_linereader *reader;
    struct wb_slice line;

    (void)state;
    memset(bytes, 'x', len);
    memcpy(bytes, "first\n", 6);
    memcpy(bytes + len - 6, "\nlast\n", 6);
    write_file("long", bytes, len);
    assert_int_equal(wb_linereader_open(path, &reader), 0);
    assert_int_equal(wb_linereader_next(reader, &line), 1);
    assert_int_equal(wb_linereader_next(reader, &line), WB_E_LIMIT);
    assert_int_equal(wb_linereader_number(reader), 2);
    assert_int_equal(wb_linereader_next(reader, &line), 1);
    assert_true(wb_slice_equal(line, WB_SLICE_LIT("last")));
    assert_int_equal(wb_linereader_next(reader, &line), 0);
    wb_linereader_close(reader);
    /* The longest line there may be, and one that ends with the file. */
    memset(bytes, 'x', len);
    bytes[WB_LINEREADER_LINE_MAX] = '\n';
    write_file("longest", bytes, len);
    assert_int_equal(wb_linereader_open(path, &reader), 0);
    assert_int_equal(wb_linereader_next(reader, &line), 1);
    assert_int_equal(line.len, WB_LINEREADER_LINE_MAX);
    assert_int_equal(wb_linereader_next(reader, &line), WB_E_LIMIT);
    assert_int_equal(wb_linereader_next(reader, &line), 0);
    wb_linereader_close(reader);
    free(bytes);
}

static void test_nothing_is_overwritten(void **state)
{
    struct wb_linewriter *writer;
    struct wb_linereader *reader;
    char temporary[128];
    int end;

    (void)state;
    write_lines("kept", 5);
    assert_int_equal(wb_linewriter_create(path, false, &writer), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "kept"));
    assert_int_equal(wb_linewriter_create(path, true, &writer), 0);
    assert_int_equal(wb_linewriter_append(writer, "other\n", 6), 0);
    wb_linewriter_abandon(writer);
    assert_int_equal(read_lines(&end), 5);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_int_equal(wb_path_kind(temporary), WB_PATH_NONE);
    assert_true(wb_linewriter_create(folder, true, &writer) < 0);
    assert_true(wb_linereader_open(folder, &reader) < 0);
    name_file("missing");
    assert_int_equal(wb_linereader_open(path, &reader), WB_E_NOTFOUND);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_written_is_read), TEST(test_members_follow_each_other), TEST(test_broken_gzip),
        TEST(test_line_ends),               TEST(test_a_line_without_end),        TEST(test_nothing_is_overwritten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
