/* test_path.c - names in the file system; replacing a file as a whole, with every step failing once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../testroot.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <unistd.h>

static void test_join(void **state)
{
    static const struct {
        const char *dir, *name, *path;
    } known[] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"a//", "b", "a/b"}, {"/", "b", "/b"}, {"a/b", "c/d", "a/b/c/d"}};

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *path = wb_path_join(known[i].dir, known[i].name);
        assert_string_equal(path, known[i].path);
        wb_free(path);
    }
}

static void test_kinds(void **state)
{
    (void)state;
    assert_int_equal(wb_path_mkdirs(test_path("x/y/z")), 0);
    assert_int_equal(wb_path_mkdirs(test_path("x/y/z")), 0);
    assert_int_equal(wb_path_mkdirs(test_path("x/y/z/")), 0);
    assert_int_equal(wb_path_kind(test_path("x/y/z")), WB_PATH_DIR);
    assert_int_equal(wb_path_replace(test_path("f"), WB_SLICE_LIT("1")), 0);
    assert_int_equal(wb_path_kind(test_path("f")), WB_PATH_FILE);
    assert_int_equal(wb_path_mkdirs(test_path("f")), WB_E_IO);
    assert_int_equal(wb_path_mkdirs(""), WB_E_IO);
    assert_int_equal(wb_path_mkdirs(test_path("f/g")), WB_E_IO);
    assert_int_equal(wb_path_kind(test_path("none")), WB_PATH_NONE);
    assert_int_equal(wb_path_unlink(test_path("none")), 0);
    assert_int_equal(wb_path_rename(test_path("none"), test_path("other")), WB_E_IO);
    assert_int_equal(wb_path_sync_dir(test_path("x")), 0);
    assert_int_equal(wb_path_sync_dir(test_path("none")), WB_E_IO);
    assert_int_equal(wb_path_disk_bytes(test_path("none")), 0);
    assert_int_equal(symlink("f", test_path("link")), 0);
    assert_int_equal(wb_path_kind(test_path("link")), WB_PATH_FILE);
}

static void test_whole_files(void **state)
{
    struct wb_buf bytes;

    (void)state;
    assert_int_equal(wb_path_replace(test_path("w"), WB_SLICE_LIT("hello")), 0);
    assert_int_equal(wb_path_read(test_path("w"), 5, &bytes), 0);
    assert_int_equal(bytes.len, 5);
    wb_buf_release(&bytes);
    assert_int_equal(wb_path_read(test_path("w"), 4, &bytes), WB_E_LIMIT);
    assert_null(bytes.ptr);
    assert_int_equal(wb_path_read(test_path("none"), 4, &bytes), WB_E_NOTFOUND);
}

/* A copy has the same bytes, and does not depend on the original. */
static void test_copy(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_path_replace(test_path("original"), WB_SLICE_LIT("some bytes")), 0);
    assert_int_equal(wb_path_copy(test_path("original"), test_path("copy")), 0);
    assert_int_equal(wb_path_copy(test_path("none"), test_path("third")), WB_E_NOTFOUND);
    assert_int_equal(wb_path_copy(test_path("original"), test_path("copy")), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "copy"));
    assert_int_equal(wb_path_unlink(test_path("original")), 0);
    assert_int_equal(wb_path_read(test_path("copy"), 100, &bytes), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&bytes), WB_SLICE_LIT("some bytes")));
    assert_int_equal(wb_path_unlink(test_path("copy")), 0);
    wb_buf_release(&bytes);
}

static void test_real(void **state)
{
    (void)state;
    assert_int_equal(wb_path_mkdirs(test_path("real")), 0);
    assert_int_equal(symlink("real", test_path("symbolic")), 0);
    char *direct = wb_path_real(test_path("real")), *through = wb_path_real(test_path("symbolic/../symbolic"));
    assert_non_null(direct);
    assert_string_equal(direct, through);
    assert_int_equal(direct[0], '/');
    assert_null(wb_path_real(test_path("nowhere")));
    assert_non_null(strstr(wb_error_message(), "nowhere"));
    wb_free(direct);
    wb_free(through);
}

/* A replacement that fails anywhere leaves the old file or the new one, and no temporary. */
static void test_failing_replacement(void **state)
{
    static const unsigned kinds[] = {WB_FAULT_ALLOC, WB_FAULT_OPEN, WB_FAULT_WRITE, WB_FAULT_SYNC, WB_FAULT_RENAME};
    unsigned failures = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint64_t nth = 1;; nth++) {
            struct wb_buf bytes;
            assert_int_equal(wb_path_replace(test_path("r"), WB_SLICE_LIT("old contents")), 0);
            wb_fault_arm(kinds[i], nth, kinds[i] == WB_FAULT_ALLOC ? ENOMEM : ENOSPC);
            int err = wb_path_replace(test_path("r"), WB_SLICE_LIT("new"));
            bool struck = wb_fault_struck();
            wb_fault_disarm();
            assert_int_equal(err < 0, struck);
            assert_int_equal(wb_path_read(test_path("r"), 100, &bytes), 0);
            assert_true(wb_slice_equal(wb_buf_slice(&bytes), WB_SLICE_LIT("new")) ||
                        (err < 0 && wb_slice_equal(wb_buf_slice(&bytes), WB_SLICE_LIT("old contents"))));
            wb_buf_release(&bytes);
            assert_int_equal(wb_path_kind(test_path("r.tmp")), WB_PATH_NONE);
            if (!struck)
                break;
            failures++;
        }
    assert_true(failures >= 6);
}

struct listing {
    char names[200];
    int stop_after;
};

static int list_entry(void *context, const struct wb_path_entry *entry)
{
    struct listing *listing = context;
    size_t used = strlen(listing->names);

    snprintf(listing->names + used, sizeof listing->names - used, "%s:%d:%llu ", entry->name, (int)entry->kind,
             entry->kind == WB_PATH_FILE ? (unsigned long long)entry->size : 0);
    return --listing->stop_after == 0 ? 5 : 0;
}

static void test_walk(void **state)
{
    struct listing listing = {0}, first = {.stop_after = 1};

    (void)state;
    assert_int_equal(wb_path_mkdirs(test_path("d/sub")), 0);
    assert_int_equal(wb_path_replace(test_path("d/b"), WB_SLICE_LIT("12")), 0);
    assert_int_equal(wb_path_replace(test_path("d/a"), WB_SLICE_LIT("")), 0);
    assert_int_equal(symlink("a", test_path("d/link")), 0);
    assert_int_equal(wb_path_each(test_path("d"), list_entry, &listing), 0);
    assert_string_equal(listing.names, "a:1:0 b:1:2 link:3:0 sub:2:0 ");
    assert_int_equal(wb_path_each(test_path("d"), list_entry, &first), 5);
    assert_string_equal(first.names, "a:1:0 ");
    assert_int_equal(wb_path_each(test_path("none"), list_entry, &listing), WB_E_IO);
}

/* How many directories a call syncs. */
static uint64_t syncs_of_mkdirs(const char *path)
{
    wb_fault_arm(WB_FAULT_SYNC, UINT64_MAX, EIO);
    assert_int_equal(wb_path_mkdirs(path), 0);
    uint64_t count = wb_fault_count();
    wb_fault_disarm();
    return count;
}

/* After a power failure a directory is lost unless the directory above it was synced; so it is for every new one. */
static void test_entries_are_synced(void **state)
{
    (void)state;
    assert_int_equal(syncs_of_mkdirs(test_path("s1/a/b")), 3);
    assert_int_equal(syncs_of_mkdirs(test_path("s1/a/c/")), 1);
    /* It exists, but the process that made it may have died before it synced the entry. */
    assert_int_equal(syncs_of_mkdirs(test_path("s1/a/c")), 1);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        char name[32];
        snprintf(name, sizeof name, "s2%d/a/b", (int)nth);
        wb_fault_arm(WB_FAULT_SYNC, nth, EIO);
        assert_int_equal(wb_path_mkdirs(test_path(name)), WB_E_IO);
        assert_true(wb_fault_struck());
        wb_fault_disarm();
        assert_int_equal(wb_path_mkdirs(test_path(name)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_join),        cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_whole_files), cmocka_unit_test(test_copy),
                                       cmocka_unit_test(test_real),        cmocka_unit_test(test_failing_replacement),
                                       cmocka_unit_test(test_walk),        cmocka_unit_test(test_entries_are_synced)};

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
