/* test_newfile.c - a file appears when it is complete, replaces nothing by accident, and leaves nothing if it fails. */
#include "../expect.h"
#include "../testroot.h"
#include "os/fault.h"
#include "os/newfile.h"
#include "os/path.h"

#include <errno.h>

static void expect_file(const char *name, const char *want)
{
    struct wb_buf bytes = WB_BUF_INIT;

    ok(wb_path_read(test_path(name), 1 << 20, &bytes));
    expect(wb_buf_slice(&bytes), want);
    wb_buf_release(&bytes);
}

static void test_complete(void **state)
{
    struct wb_newfile file;

    (void)state;
    ok(wb_newfile_open(&file, test_path("file"), false));
    ok(wb_newfile_write(&file, "hello, ", 7));
    assert_int_equal(wb_path_kind(test_path("file")), WB_PATH_NONE);
    ok(wb_newfile_write(&file, "world", 5));
    ok(wb_newfile_finish(&file));
    wb_newfile_close(&file);
    wb_newfile_close(&file);
    expect_file("file", "hello, world");
    assert_int_equal(wb_path_kind(test_path("file.tmp")), WB_PATH_NONE);
}

static void test_refused(void **state)
{
    struct wb_newfile file, other;

    (void)state;
    ok(wb_path_replace(test_path("file"), wb_slice_str("old")));
    assert_int_equal(wb_newfile_open(&file, test_path("file"), false), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), test_path("file")));
    wb_newfile_close(&file);
    assert_int_equal(wb_newfile_open(&file, test_root, true), WB_E_INVALID);
    wb_newfile_close(&file);
    /* Two who write the same file: the second one is told, and harms nothing. */
    ok(wb_newfile_open(&file, test_path("file"), true));
    ok(wb_newfile_write(&file, "new", 3));
    assert_int_equal(wb_newfile_open(&other, test_path("file"), true), WB_E_BUSY);
    wb_newfile_close(&other);
    expect_file("file", "old");
    ok(wb_newfile_finish(&file));
    wb_newfile_close(&file);
    expect_file("file", "new");
    /* A file that appears while we write is not replaced. */
    ok(wb_newfile_open(&file, test_path("later"), false));
    ok(wb_path_replace(test_path("later"), wb_slice_str("theirs")));
    assert_int_equal(wb_newfile_finish(&file), WB_E_INVALID);
    wb_newfile_close(&file);
    expect_file("later", "theirs");
    assert_int_equal(wb_path_kind(test_path("later.tmp")), WB_PATH_NONE);
}

static int write_it(void)
{
    struct wb_newfile file;
    int err = wb_newfile_open(&file, test_path("file"), true);

    for (int i = 0; err == 0 && i < 20000; i++) /* more than is kept in memory */
        err = wb_newfile_write(&file, test_root, sizeof test_root);
    if (err == 0)
        err = wb_newfile_finish(&file);
    wb_newfile_close(&file);
    return err;
}

static void test_faults(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        ok(wb_path_replace(test_path("file"), wb_slice_str("old")));
        wb_fault_arm(WB_FAULT_ANY & ~WB_FAULT_ALLOC, n, ENOSPC);
        int err = write_it();
        wb_fault_disarm();
        assert_int_equal(wb_path_kind(test_path("file.tmp")), WB_PATH_NONE);
        if (!wb_fault_struck()) {
            ok(err);
            return;
        }
        assert_int_equal(err, WB_E_IO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_complete, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_refused, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_faults, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
