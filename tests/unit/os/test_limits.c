/*
 * test_limits.c - limits of the process become errors with a message. Each test runs in a child process, because a
 * limit that was lowered cannot be raised again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "os/file.h"
#include "os/largepage.h"
#include "os/limits.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in a child, which must return 0 and must not die of a signal. */
static void run_child(int (*child)(void))
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int write_too_much(void)
{
    char name[] = "/tmp/webbase-limits-XXXXXX", bytes[8192] = {0};
    struct wb_file file = WB_FILE_INIT;
    int fd = mkstemp(name);

    if (fd < 0 || setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}) != 0)
        return 1;
    close(fd);
    wb_limits_prepare();
    int err = wb_file_open(name, WB_FILE_WRITE, &file);
    if (err == 0)
        err = wb_file_write_at(&file, 0, bytes, sizeof bytes);
    wb_file_close(&file);
    unlink(name);
    return err == WB_E_IO && strstr(wb_error_message(), name) && strstr(wb_error_message(), "ulimit -f") ? 0 : 2;
}

static int open_too_many(void)
{
    struct wb_file file = WB_FILE_INIT;
    int err = 0;

    if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){16, 16}) != 0)
        return 1;
    wb_limits_prepare();
    for (int i = 0; i < 20 && err == 0; i++) /* left open; the child ends */
        err = wb_file_open("/dev/null", WB_FILE_READ, &file);
    return err == WB_E_IO && strstr(wb_error_message(), "/dev/null") && strstr(wb_error_message(), "ulimit -n") ? 0 : 2;
}

static int raise_files(void)
{
    struct rlimit limit;

    if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){20, 100}) != 0)
        return 1;
    wb_limits_prepare();
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != 100 || limit.rlim_max != 100)
        return 2;
    return 0;
}

static int write_to_nobody(void)
{
    int ends[2];

    wb_limits_prepare();
    if (pipe(ends) != 0)
        return 1;
    close(ends[0]);
    return write(ends[1], "x", 1) == -1 ? 0 : 2;
}

static int limit_memory(void)
{
    if (setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)4 << 30, (rlim_t)4 << 30}) != 0)
        return 1;
    return wb_limits_memory() == (uint64_t)4 << 30 ? 0 : 2;
}

static void test_file_size(void **state)
{
    (void)state;
    run_child(write_too_much);
}

static void test_open_files(void **state)
{
    (void)state;
    run_child(open_too_many);
    run_child(raise_files);
}

static void test_pipe(void **state)
{
    (void)state;
    run_child(write_to_nobody);
}

static void test_memory(void **state)
{
    (void)state;
    run_child(limit_memory);
}

static void test_processors(void **state)
{
    (void)state;
    assert_in_range(wb_limits_processors(), 1, 1 << 20);
}

/* Asking for large pages changes no byte, whichever part of a buffer it is about. */
static void test_large_pages(void **state)
{
    size_t bytes = 7 << 20;
    char *memory = malloc(bytes);

    (void)state;
    assert_non_null(memory);
    memset(memory, 42, bytes);
    for (size_t from = 0; from < bytes; from += 999999)
        for (size_t len = 0; len <= bytes - from; len += 1234567)
            wb_largepage_want(memory + from, len);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(memory[i], 42);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_size), cmocka_unit_test(test_open_files), cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_processors), cmocka_unit_test(test_large_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
