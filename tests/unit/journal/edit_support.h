/*
 * edit_support.h - what the tests of the journal, the queues and the spool share: chance with a seed, directories
 * that go away, child processes. Header only; every test program is one file.
 */
#ifndef WB_TESTS_EDIT_SUPPORT_H
#define WB_TESTS_EDIT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "../testroot.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define UNUSED __attribute__((unused)) static

/* ---- directories ---------------------------------------------------------------------- */

static unsigned test_dirs;

/* Makes an empty directory. Its name stays valid until the eighth call after this one. */
UNUSED const char *new_dir(void)
{
    static char names[8][96];
    char *dir = names[test_dirs % 8];

    snprintf(dir, sizeof names[0], "%s/%u", test_root, ++test_dirs);
    assert_int_equal(wb_path_mkdirs(dir), 0);
    return dir;
}

static const char *copy_from, *copy_to;

UNUSED int copy_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char to[256];

    (void)st;
    (void)ftw;
    snprintf(to, sizeof to, "%s%s", copy_to, path + strlen(copy_from));
    if (type == FTW_D)
        return wb_path_mkdirs(to);
    int err = wb_path_read(path, 64 << 20, &bytes);
    if (err == 0)
        err = wb_path_replace(to, wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    return err;
}

/* Copies a directory with everything in it. */
UNUSED void copy_tree(const char *from, const char *to)
{
    copy_from = from;
    copy_to = to;
    assert_int_equal(nftw(from, copy_one, 16, FTW_PHYS), 0);
}

UNUSED void change_byte(const char *path, uint64_t at, uint8_t mask)
{
    struct wb_file file;
    uint8_t byte;

    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &file), 0);
    assert_int_equal(wb_file_read_exact(&file, at, &byte, 1), 0);
    byte ^= mask;
    assert_int_equal(wb_file_write_at(&file, at, &byte, 1), 0);
    wb_file_close(&file);
}

UNUSED void cut_file(const char *path, uint64_t size)
{
    assert_int_equal(truncate(path, (off_t)size), 0);
}

/* ---- child processes --------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int from; /* what it acknowledges */
};

/* For child processes, which cannot use cmocka's assertions. */
#define must(cond) ((cond) ? (void)0 : must_failed(#cond, __LINE__))

UNUSED void must_failed(const char *what, int line)
{
    fprintf(stderr, "child, line %d: %s (last message: %s)\n", line, what, wb_error_message());
    _exit(99);
}

UNUSED struct child start_child(void (*function)(void *context, int to), void *context)
{
    struct child child = {0};
    int ends[2];

    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        close(ends[0]);
        alarm(1200); /* so that it ends with the test, however that ends */
        function(context, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    child.from = ends[0];
    return child;
}

/* Kills it after some microseconds. It must not have ended before by itself. */
UNUSED void kill_child(struct child *child, unsigned after_us)
{
    int status;

    usleep(after_us);
    kill(child->pid, SIGKILL);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Reads the next complete acknowledgement. False at the end. */
UNUSED bool next_ack(struct child *child, void *ack_out, size_t bytes)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = read(child->from, (char *)ack_out + got, bytes - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got == bytes;
}

/* Three processes do the same at the same time. Each must acknowledge so many rounds, as numbers of 32 bits. */
UNUSED void run_three(void (*function)(void *context, int to), const char *dir, uint32_t rounds)
{
    struct child children[3];
    uint32_t done[3] = {0}, last;

    for (unsigned i = 0; i < 3; i++)
        children[i] = start_child(function, (void *)(uintptr_t)dir);
    for (unsigned i = 0; i < 3; i++) {
        while (next_ack(&children[i], &last, sizeof last))
            done[i]++;
        close(children[i].from);
        assert_int_equal(waitpid(children[i].pid, NULL, 0), children[i].pid);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(done[i], rounds);
}

#endif
