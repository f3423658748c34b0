/* test_linereader.c - lines of plain and gzip'd files, whole, damaged and too long. */
#include "base/error.h"
#include "line_support.h"

static void test_members_follow_each_other(void **state)
{
    char text[256];
    int end;

    (void)state;
    write_lines("a.gz", 3);
    snprintf(text, sizeof text,
             "cd %s && printf '3\\thttp://example.org/page/23757\\n' | gzip > b.gz && cat a.gz b.gz > ab.gz",
             test_root);
    assert_int_equal(system(text), 0);
    assert_int_equal(read_lines("ab.gz", &end), 4);
    assert_int_equal(end, 0);
}

static void test_broken_gzip(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int end;

    (void)state;
    write_lines("whole.gz", 50000);
    assert_int_equal(wb_path_read(test_path("whole.gz"), 1 << 20, &bytes), 0);
    put_bytes("cut.gz", bytes.ptr, bytes.len / 2);
    assert_true(read_lines("cut.gz", &end) > 10000);
    assert_int_equal(end, WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), "cut.gz"));
    memset(bytes.ptr + 20, 0xff, 50);
    put_bytes("wrong.gz", bytes.ptr, bytes.len);
    assert_true(read_lines("wrong.gz", &end) < 50000);
    assert_int_equal(end, WB_E_CORRUPT);
    wb_buf_release(&bytes);
}

static void test_line_ends(void **state)
{
    static const char *const expected[] = {"one", "", "two", "\rx", "last"};
    struct wb_linereader *reader;
    struct wb_slice line;

    (void)state;
    put_bytes("ends", "one\n\ntwo\r\n\rx\nlast", 17);
    assert_int_equal(wb_linereader_open(test_path("ends"), &reader), 0);
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
    put_bytes("long", bytes, len);
    assert_int_equal(wb_linereader_open(test_path("long"), &reader), 0);
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
    put_bytes("longest", bytes, len);
    assert_int_equal(wb_linereader_open(test_path("longest"), &reader), 0);
    assert_int_equal(wb_linereader_next(reader, &line), 1);
    assert_int_equal(line.len, WB_LINEREADER_LINE_MAX);
    assert_int_equal(wb_linereader_next(reader, &line), WB_E_LIMIT);
    assert_int_equal(wb_linereader_next(reader, &line), 0);
    wb_linereader_close(reader);
    free(bytes);
}

static void test_not_a_file(void **state)
{
    struct wb_linereader *reader;

    (void)state;
    assert_int_equal(wb_linereader_open(test_root, &reader), WB_E_INVALID);
    assert_int_equal(wb_linereader_open(test_path("missing"), &reader), WB_E_NOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_members_follow_each_other), TEST(test_broken_gzip), TEST(test_line_ends),
        TEST(test_a_line_without_end),        TEST(test_not_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
