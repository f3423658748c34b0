/* test_file.c - open files: reading, writing, locking, and each of them failing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "os/fault.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/webbase-test-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static int remove_file(void **state)
{
    (void)state;
    wb_fault_disarm();
    wb_fault_ask(NULL, NULL);
    unlink(path);
    return 0;
}

static void test_open(void **state)
{
    struct wb_file file, again;
    uint64_t size;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &file), WB_E_NOTFOUND);
    assert_int_equal(file.fd, -1);
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &file), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &again), WB_E_INVALID);
    assert_int_equal(wb_file_write_at(&file, 3, "abc", 3), 0);
    assert_int_equal(wb_file_size(&file, &size), 0);
    assert_int_equal(size, 6);
    assert_false(wb_file_unlinked(&file));
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_TRUNCATE, &again), 0);
    assert_int_equal(wb_file_size(&file, &size), 0);
    assert_int_equal(size, 0);
    unlink(path);
    assert_true(wb_file_unlinked(&file));
    wb_file_close(&file);
    wb_file_close(&file);
    wb_file_close(&again);
    assert_int_equal(wb_file_open(dir, WB_FILE_WRITE, &file), WB_E_IO);
}

static void test_read(void **state)
{
    struct wb_file file;
    char bytes[10];
    size_t got;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, 0, "0123456789", 10), 0);
    assert_int_equal(wb_file_read_at(&file, 4, bytes, 4, &got), 0);
    assert_int_equal(got, 4);
    assert_memory_equal(bytes, "4567", 4);
    assert_int_equal(wb_file_read_at(&file, 8, bytes, 10, &got), 0);
    assert_int_equal(got, 2);
    assert_int_equal(wb_file_read_at(&file, 100, bytes, 10, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(wb_file_read_exact(&file, 0, bytes, 10), 0);
    assert_int_equal(wb_file_read_exact(&file, 1, bytes, 10), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(wb_file_truncate(&file, 5), 0);
    assert_int_equal(wb_file_read_exact(&file, 0, bytes, 6), WB_E_CORRUPT);
    assert_int_equal(wb_file_sync(&file), 0);
    wb_file_sequential(&file);
    wb_file_close(&file);
}

static void test_lock(void **state)
{
    struct wb_file first, second;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &first), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &second), 0);
    assert_int_equal(wb_file_lock(&first, false), 0);
    assert_int_equal(wb_file_lock(&first, true), 0);
    assert_int_equal(wb_file_lock(&second, false), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), path));
    wb_file_unlock(&first);
    assert_int_equal(wb_file_lock(&second, false), 0);
    wb_file_close(&second);
    assert_int_equal(wb_file_lock(&first, false), 0);
    wb_file_close(&first);
}

/* Somebody is about to look at the lock of the file, or has just done so, and lets go of it after a moment. */
static void look_for_a_moment(void)
{
    struct wb_file file;
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    if (fork() == 0) {
        bool held = wb_file_open(path, WB_FILE_READ, &file) == 0 && flock(file.fd, LOCK_SH) == 0 &&
                    write(ready[1], "x", 1) == 1;
        usleep(20000);
        _exit(!held);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
}

static void test_looking_is_in_nobodys_way(void **state)
{
    struct wb_file first, second;
    int status;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &first), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &second), 0);
    assert_false(wb_file_is_locked(&second));
    look_for_a_moment();
    assert_false(wb_file_is_locked(&second));
    assert_int_equal(wb_file_lock(&first, false), 0);
    assert_true(wb_file_is_locked(&second));
    assert_int_equal(wb_file_lock(&second, false), WB_E_BUSY);
    wb_file_unlock(&first);
    look_for_a_moment();
    assert_int_equal(wb_file_lock(&second, true), 0);
    assert_true(wb_file_is_locked(&first));
    wb_file_close(&second);
    assert_false(wb_file_is_locked(&first));
    wb_file_close(&first);
    for (int i = 0; i < 2; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

/* ---- faults ------------------------------------------------------------------------------- */

/* Stops this process when it is about to open the file that it locks. */
static int stop_before_opening(void *context, enum wb_fault_kind kind, const char *which)
{
    (void)context;
    if (kind == WB_FAULT_OPEN && strcmp(which, path) == 0)
        raise(SIGSTOP);
    return 0;
}

/* Takes the lock, says so through a pipe, and keeps it until it is killed. */
static void lock_slowly(int told)
{
    struct wb_file file;

    wb_fault_ask(stop_before_opening, NULL);
    if (wb_file_open_locked(dir, "file", &file) < 0 || write(told, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* One that is stopped while it takes a lock keeps others out, as if it had the lock already. */
static void test_opening_and_locking_is_one_step(void **state)
{
    struct wb_file file;
    int told[2], status;
    char byte;

    (void)state;
    assert_int_equal(wb_file_open_locked("/nowhere", "file", &file), WB_E_NOTFOUND);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        lock_slowly(told[1]);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(wb_file_open_locked(dir, "file", &file), WB_E_BUSY);
    assert_int_equal(file.fd, -1);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(read(told[0], &byte, 1), 1);
    /* It has the lock, and others can take other locks in the directory. */
    assert_int_equal(wb_file_open_locked(dir, "file", &file), WB_E_BUSY);
    assert_int_equal(wb_file_open_locked(dir, "other", &file), 0);
    assert_int_equal(unlink(file.path), 0);
    wb_file_close(&file);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(wb_file_open_locked(dir, "file", &file), 0);
    assert_true(fcntl(file.fd, F_GETFD) & FD_CLOEXEC);
    wb_file_close(&file);
    close(told[0]);
    close(told[1]);
}

static void test_faults(void **state)
{
    struct wb_file file, none;
    char bytes[10];
    size_t got;
    uint64_t size;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file), 0);
    wb_fault_arm(WB_FAULT_WRITE, 2, ENOSPC);
    assert_int_equal(wb_file_write_at(&file, 0, "0123456789", 10), 0);
    assert_false(wb_fault_struck());
    assert_int_equal(wb_file_write_at(&file, 10, "0123456789", 10), WB_E_IO);
    assert_true(wb_fault_struck());
    assert_non_null(strstr(wb_error_message(), "No space left on device"));
    assert_int_equal(wb_file_size(&file, &size), 0);
    assert_int_equal(size, 15); /* half of the bytes were written */
    assert_int_equal(wb_file_write_at(&file, 10, "0123456789", 10), 0); /* the fault strikes only once */
    assert_int_equal(wb_fault_count(), 3);
    wb_fault_arm(WB_FAULT_READ | WB_FAULT_SYNC, 2, EIO);
    assert_int_equal(wb_file_read_at(&file, 0, bytes, 10, &got), 0);
    assert_int_equal(wb_file_sync(&file), WB_E_IO);
    wb_fault_arm(WB_FAULT_READ, 1, EIO);
    assert_int_equal(wb_file_read_exact(&file, 0, bytes, 10), WB_E_IO);
    wb_fault_arm(WB_FAULT_OPEN, 1, EACCES);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &none), WB_E_IO);
    assert_int_equal(none.fd, -1);
    wb_fault_arm(WB_FAULT_ALLOC, 1, ENOMEM);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &none), WB_E_NOMEM);
    wb_fault_arm(WB_FAULT_ANY, UINT64_MAX, EIO);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &none), 0);
    assert_int_equal(wb_fault_count(), 2); /* the allocation of the path, and the open */
    wb_fault_disarm();
    wb_file_close(&none);
    assert_int_equal(wb_file_sync(&file), 0);
    wb_file_close(&file);
}

/* A discarded part reads as zeros, or as before if the file system cannot discard. Nothing else changes. */
static void test_discard(void **state)
{
    enum { PIECE = 64 << 10 };
    struct wb_file file;
    static char bytes[3 * PIECE], again[3 * PIECE];
    uint64_t size;

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, 0, bytes, sizeof bytes), 0);
    wb_file_discard(&file, PIECE, PIECE);
    wb_file_discard(&file, 0, 0);
    assert_int_equal(wb_file_size(&file, &size), 0);
    assert_int_equal(size, sizeof bytes);
    assert_int_equal(wb_file_read_exact(&file, 0, again, sizeof again), 0);
    assert_memory_equal(again, bytes, PIECE);
    assert_memory_equal(again + 2 * PIECE, bytes, PIECE);
    assert_true(again[PIECE] == 0 || again[PIECE] == 'x');
    wb_file_close(&file);
}

static int judge(void *context, enum wb_fault_kind kind, const char *judged)
{
    unsigned *kinds = context;

    if (strcmp(judged, path) != 0)
        return 0;
    *kinds |= kind;
    return kind == WB_FAULT_WRITE ? ENOSPC : 0;
}

static void test_judged(void **state)
{
    struct wb_file file, other;
    unsigned kinds = 0;
    char other_path[96], c;
    size_t got;

    (void)state;
    snprintf(other_path, sizeof other_path, "%s-2", path);
    assert_int_equal(wb_file_open(other_path, WB_FILE_WRITE | WB_FILE_CREATE, &other), 0);
    wb_fault_ask(judge, &kinds);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file), 0);
    assert_int_equal(wb_file_write_at(&other, 0, "abcd", 4), 0);
    assert_int_equal(kinds, WB_FAULT_OPEN);
    assert_int_equal(wb_file_write_at(&file, 0, "abcd", 4), WB_E_IO);
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(wb_file_sync(&file), 0);
    assert_int_equal(wb_file_read_at(&file, 0, &c, 1, &got), 0);
    assert_int_equal(kinds, WB_FAULT_OPEN | WB_FAULT_WRITE | WB_FAULT_SYNC | WB_FAULT_READ);
    wb_fault_ask(NULL, NULL);
    assert_int_equal(wb_file_write_at(&file, 0, "abcd", 4), 0);
    wb_file_close(&file);
    wb_file_close(&other);
    unlink(other_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_open, remove_file),
        cmocka_unit_test_teardown(test_read, remove_file),
        cmocka_unit_test_teardown(test_lock, remove_file),
        cmocka_unit_test_teardown(test_looking_is_in_nobodys_way, remove_file),
        cmocka_unit_test_teardown(test_opening_and_locking_is_one_step, remove_file),
        cmocka_unit_test_teardown(test_faults, remove_file),
        cmocka_unit_test_teardown(test_discard, remove_file),
        cmocka_unit_test_teardown(test_judged, remove_file),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
