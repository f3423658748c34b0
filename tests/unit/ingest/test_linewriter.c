/* test_linewriter.c - what is written is read back, and no file is replaced by accident. */
#include "base/error.h"
#include "line_support.h"

static void test_what_is_written_is_read(void **state)
{
    static const char *const names[] = {"plain.txt", "packed.txt.gz"};
    static const char *const empty[] = {"none", "none.gz"};
    int end;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        write_lines(names[i], 50000);
        assert_int_equal(read_lines(names[i], &end), 50000);
        assert_int_equal(end, 0);
        write_lines(empty[i], 0);
        assert_int_equal(read_lines(empty[i], &end), 0);
        assert_int_equal(end, 0);
    }
    assert_true(wb_path_disk_bytes(test_path("packed.txt.gz")) < 800000);
}

static void test_nothing_is_overwritten(void **state)
{
    struct wb_linewriter *writer;
    int end;

    (void)state;
    write_lines("kept", 5);
    assert_int_equal(wb_linewriter_create(test_path("kept"), false, &writer), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "kept"));
    assert_int_equal(wb_linewriter_create(test_path("kept"), true, &writer), 0);
    assert_int_equal(wb_linewriter_append(writer, "other\n", 6), 0);
    wb_linewriter_abandon(writer);
    assert_int_equal(read_lines("kept", &end), 5);
    assert_int_equal(wb_path_kind(test_path("kept.tmp")), WB_PATH_NONE);
    assert_true(wb_linewriter_create(test_root, true, &writer) < 0);
}

/* A file that appears while we write is not replaced either. */
static void test_a_file_that_appears_stays(void **state)
{
    struct wb_linewriter *writer;
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_linewriter_create(test_path("new"), false, &writer), 0);
    assert_int_equal(wb_linewriter_append(writer, "ours\n", 5), 0);
    FILE *theirs = fopen(test_path("new"), "w");
    assert_non_null(theirs);
    assert_true(fputs("theirs", theirs) >= 0 && fclose(theirs) == 0);
    assert_int_equal(wb_linewriter_finish(writer), WB_E_INVALID);
    assert_int_equal(wb_path_read(test_path("new"), 100, &text), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&text), WB_SLICE_LIT("theirs")));
    assert_int_equal(wb_path_kind(test_path("new.tmp")), WB_PATH_NONE);
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_written_is_read), TEST(test_nothing_is_overwritten), TEST(test_a_file_that_appears_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
