/* test_journal_logs.c - logs as files: listing them, who writes them, which are needed, and removing them. */
#include "journal_support.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

static size_t count_logs(const char *dir)
{
    struct wb_journal_log *logs;
    size_t count;

    assert_int_equal(wb_journal_list_logs(dir, &logs, &count), 0);
    for (size_t i = 1; i < count; i++)
        assert_true(logs[i - 1].number < logs[i].number);
    wb_free(logs);
    return count;
}

static void test_list(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *writer;
    struct wb_journal_log *logs;
    struct written list[20];
    size_t count;

    (void)state;
    assert_int_equal(count_logs(dir), 0);
    write_log(dir, list, 20, true);
    write_log(dir, list, 10, false);
    assert_int_equal(wb_journal_writer_open(dir, 0, &writer), 0);
    assert_int_equal(wb_journal_list_logs(dir, &logs, &count), 0);
    assert_int_equal(count, 3);
    assert_true(logs[0].ended && logs[0].end == logs[0].bytes && logs[0].end > WB_JOURNAL_RECORDS_AT);
    assert_true(!logs[1].ended && logs[1].end == logs[1].bytes);
    assert_false(logs[2].ended);
    wb_free(logs);
    /* Only the third has a living writer. */
    assert_false(wb_journal_log_is_written(dir, 1));
    assert_false(wb_journal_log_is_written(dir, 2));
    assert_true(wb_journal_log_is_written(dir, 3));
    assert_false(wb_journal_log_is_written(dir, 4));
    wb_journal_writer_close(writer);
}

static void test_whose(void **state)
{
    const char *dir = new_dir();
    struct wb_edit push = {.kind = WB_EDIT_PUSH, .text = WB_SLICE_LIT("http://h.test/"), .count = WB_PUSH_CHANGED};
    struct wb_journal_reader *reader;
    struct wb_journal_writer *writer;
    struct wb_edit_place place;
    struct written list[20];

    (void)state;
    write_log(dir, list, 20, true);
    assert_int_equal(wb_journal_writer_open(dir, 0, &writer), 0);
    assert_int_equal(wb_journal_writer_append(writer, &push, &place), 0);
    assert_int_equal(wb_journal_writer_finish(writer), 0);
    wb_journal_writer_close(writer);
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    assert_true(wb_journal_log_is_of_crawl(reader, 1));
    assert_false(wb_journal_log_is_of_crawl(reader, 2));
    assert_true(wb_journal_log_is_of_crawl(reader, 3)); /* it cannot be read: better keep it */
    wb_journal_reader_close(reader);
}

static void test_needs(void **state)
{
    uint32_t *logs = wb_alloc_zero(3, sizeof *logs);
    struct wb_journal_needs needs = {.logs = logs, .count = 3}, all = {.all = true}, none = WB_JOURNAL_NEEDS_INIT;

    (void)state;
    memcpy(logs, (uint32_t[]){2, 5, 9}, 3 * sizeof *logs);
    for (uint32_t log = 1; log <= 10; log++) {
        assert_int_equal(wb_journal_needs_log(&needs, log), log == 2 || log == 5 || log == 9);
        assert_true(wb_journal_needs_log(&all, log));
        assert_false(wb_journal_needs_log(&none, log));
    }
    wb_journal_needs_release(&needs);
    assert_false(wb_journal_needs_log(&needs, 5));
}

/* The number of the newest log is never used again, whether the log is removed or not. */
static void test_remove(void **state)
{
    const char *dir = new_dir();
    static struct written list[2000];
    uint32_t numbers[] = {1, 2, 3};
    uint64_t bytes;

    (void)state;
    write_log(dir, list, 20, true);
    write_log(dir, list, 20, true);
    write_log(dir, list, 20, true);
    /* The newest one is small: it stays. */
    assert_int_equal(wb_journal_remove_logs(dir, numbers, 3, &bytes), 0);
    assert_true(bytes > 2 * WB_JOURNAL_RECORDS_AT);
    assert_int_equal(count_logs(dir), 1);
    assert_int_equal(wb_path_kind(log_path(dir, 3)), WB_PATH_FILE);
    /* Another process may have removed a log since it was listed. */
    assert_int_equal(wb_journal_remove_logs(dir, numbers, 2, &bytes), 0);
    assert_int_equal(bytes, 0);
    /* A large one is replaced by an empty one with the next number. */
    write_log(dir, list, COUNT(list), true);
    assert_int_equal(wb_journal_remove_logs(dir, (uint32_t[]){3, 4}, 2, &bytes), 0);
    assert_true(bytes > 4096);
    assert_int_equal(count_logs(dir), 1);
    assert_int_equal(wb_path_kind(log_path(dir, 5)), WB_PATH_FILE);
    write_log(dir, list, 1, true);
    assert_int_equal(wb_path_kind(log_path(dir, 6)), WB_PATH_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_remove),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
