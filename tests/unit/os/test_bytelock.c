/* test_bytelock.c - locks belong to the open file, are found in order, and end with the process that holds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "os/bytelock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/webbase-bytelock-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void test_lowest(void **state)
{
    static const uint64_t places[] = {900, 30, 31, 500, 1ull << 60, 32};
    struct wb_file readers[6], writer;
    uint64_t at;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &writer), 0);
    assert_int_equal(wb_bytelock_first(&writer, 0, 1ull << 61, &at), 0);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(wb_file_open(path, WB_FILE_READ, &readers[i]), 0);
        assert_int_equal(wb_bytelock_share(&readers[i], places[i]), 0);
    }
    assert_int_equal(wb_bytelock_share(&readers[0], 30), 0); /* a second one on the same byte */
    assert_int_equal(wb_bytelock_first(&writer, 0, 1ull << 61, &at), 1);
    assert_int_equal(at, 30);
    assert_int_equal(wb_bytelock_first(&writer, 33, 1ull << 61, &at), 1);
    assert_int_equal(at, 500);
    assert_int_equal(wb_bytelock_first(&writer, 501, 900, &at), 0);
    assert_int_equal(wb_bytelock_first(&readers[4], 1ull << 59, 1ull << 61, &at), 0); /* our own lock is not reported */
    wb_file_close(&readers[1]);
    assert_int_equal(wb_bytelock_first(&writer, 0, 31, &at), 1);
    wb_bytelock_release(&readers[0], 30);
    assert_int_equal(wb_bytelock_first(&writer, 0, 31, &at), 0);
    for (unsigned i = 0; i < 6; i++)
        wb_file_close(&readers[i]);
    assert_int_equal(wb_bytelock_first(&writer, 0, 1ull << 61, &at), 0);
    wb_file_close(&writer);
}

/* Starts a process that takes byte 7 and holds it until it is killed. Returns when it has it. */
static pid_t start_holder(int (*take)(const struct wb_file *file, uint64_t at), int taken)
{
    int ends[2];
    char c;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct wb_file file;
        if (wb_file_open(path, WB_FILE_WRITE, &file) == 0 && take(&file, 7) == taken && write(ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &c, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void test_exclusive(void **state)
{
    struct wb_file here;
    uint64_t at;

    (void)state;
    pid_t child = start_holder(wb_bytelock_take, 0);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &here), 0);
    assert_int_equal(wb_bytelock_first(&here, 7, 8, &at), 1);
    kill(child, SIGKILL);
    assert_int_equal(wb_bytelock_take(&here, 7), 0); /* waits until the child is gone */
    wb_bytelock_release(&here, 7);
    waitpid(child, NULL, 0);
    wb_file_close(&here);
}

static void test_try(void **state)
{
    struct wb_file a, b, reader;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &a), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &b), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &reader), 0);
    assert_int_equal(wb_bytelock_try(&a, 9), 1);
    assert_int_equal(wb_bytelock_try(&a, 9), 1); /* it has it already */
    assert_int_equal(wb_bytelock_try(&b, 9), 0);
    assert_int_equal(wb_bytelock_try(&b, 10), 1);
    wb_bytelock_release(&a, 9);
    assert_int_equal(wb_bytelock_share(&reader, 9), 0);
    assert_int_equal(wb_bytelock_try(&b, 9), 0); /* a shared lock keeps it out as well */
    wb_file_close(&reader);
    assert_int_equal(wb_bytelock_try(&b, 9), 1);
    wb_file_close(&a);
    wb_file_close(&b);
}

/* A shared lock waits until the process that has an exclusive one is gone. */
static void test_share_waits(void **state)
{
    struct wb_file here;

    (void)state;
    pid_t child = start_holder(wb_bytelock_try, 1);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &here), 0);
    assert_int_equal(wb_bytelock_try(&here, 7), 0);
    kill(child, SIGKILL);
    assert_int_equal(wb_bytelock_share(&here, 7), 0);
    waitpid(child, NULL, 0);
    wb_file_close(&here);
}

/* Such a lock does not outlive its process, even if a process that it has forked has the file open. */
static void test_alone(void **state)
{
    struct wb_file file, other;
    int ready[2], end[2], status;
    uint64_t at;
    char byte;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &other), 0);
    pid_t child = fork();
    if (child == 0) {
        if (wb_file_open(path, WB_FILE_WRITE, &file) < 0 || wb_bytelock_try_alone(&file, 7) != 1)
            _exit(1);
        close(end[1]);
        if (fork() == 0)
            _exit(read(end[0], &byte, 1) == 1); /* until the test is over */
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(wb_bytelock_first(&other, 7, 8, &at), 1);
    assert_int_equal(wb_bytelock_try(&other, 7), 0);
    assert_int_equal(wb_bytelock_try_alone(&other, 7), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(wb_bytelock_first(&other, 7, 8, &at), 0);
    assert_int_equal(wb_bytelock_try_alone(&other, 7), 1);
    wb_file_close(&other);
    close(end[0]);
    close(end[1]);
    close(ready[0]);
    close(ready[1]);
}

static void test_refusal(void **state)
{
    struct wb_file file;

    (void)state;
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &file), 0);
    assert_int_equal(wb_bytelock_take(&file, 7), WB_E_IO); /* exclusive, but open for reading only */
    assert_int_equal(wb_bytelock_try(&file, 7), WB_E_IO);
    assert_non_null(strstr(wb_error_message(), path));
    wb_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lowest), cmocka_unit_test(test_exclusive),
                                       cmocka_unit_test(test_try), cmocka_unit_test(test_share_waits),
                                       cmocka_unit_test(test_alone), cmocka_unit_test(test_refusal)};

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
