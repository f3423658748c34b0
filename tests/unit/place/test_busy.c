/* test_busy.c - requests that are under way are counted, those of processes that were killed are not. */
#include "../expect.h"
#include "../testroot.h"
#include "place/node.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static void expect_counts(uint32_t node, uint64_t gets, uint64_t puts, uint64_t streams)
{
    uint64_t counts[WB_BUSY_KINDS];

    ok(wb_busy_count(test_root, node, counts));
    assert_int_equal(counts[WB_BUSY_GET], gets);
    assert_int_equal(counts[WB_BUSY_PUT], puts);
    assert_int_equal(counts[WB_BUSY_STREAM], streams);
}

static void test_counts(void **state)
{
    struct wb_busy busy, other;
    struct wb_busy_mark scans[50], put, scan;

    (void)state;
    expect_counts(1, 0, 0, 0); /* there is no file yet */
    ok(wb_busy_init(&busy, test_root));
    scan = wb_busy_begin(&busy, WB_BUSY_STREAM, 1, 1);
    assert_int_equal(scan.bytes, 0);
    assert_int_equal(wb_path_kind(test_path(WB_BUSY_NAME)), WB_PATH_NONE); /* reading makes no file, but storing does */
    put = wb_busy_begin(&busy, WB_BUSY_PUT, 1, 1);
    expect_counts(1, 0, 1, 0);
    wb_busy_end(&busy, &put);
    busy.next = UINT32_MAX - 10; /* the slots begin again */
    ok(wb_busy_init(&other, test_root));
    for (size_t i = 0; i < COUNT(scans); i++)
        scans[i] = wb_busy_begin(i % 2 ? &busy : &other, WB_BUSY_STREAM, 2, i < 10 ? 2 : 4);
    put = wb_busy_begin(&busy, WB_BUSY_PUT, 1, WB_BUSY_NODE_MAX);
    scan = wb_busy_begin(&other, WB_BUSY_STREAM, WB_BUSY_NODE_MAX, WB_BUSY_NODE_MAX);
    expect_counts(1, 0, 1, 0);
    expect_counts(2, 0, 1, 50);
    expect_counts(3, 0, 1, 40);
    expect_counts(4, 0, 1, 40);
    expect_counts(5, 0, 1, 0);
    expect_counts(WB_BUSY_NODE_MAX, 0, 1, 1);
    for (size_t i = 0; i < COUNT(scans); i += 2)
        wb_busy_end(&other, &scans[i]);
    wb_busy_end(&other, &scans[0]); /* ended already */
    wb_busy_end(&busy, &put);
    expect_counts(2, 0, 0, 25);
    expect_counts(3, 0, 0, 20);
    wb_busy_release(&busy);
    expect_counts(2, 0, 0, 0);
    expect_counts(WB_BUSY_NODE_MAX, 0, 0, 1);
    wb_busy_end(&other, &scan);
    expect_counts(WB_BUSY_NODE_MAX, 0, 0, 0);
    wb_busy_release(&other);
    wb_busy_release(&other);
}

/* The number of bytes in the slots is that of the locks: the longest marks of neighbouring slots stay apart. */
static void test_neighbours(void **state)
{
    struct wb_busy busy;
    struct wb_busy_mark a, b;

    (void)state;
    ok(wb_path_replace(test_path(WB_BUSY_NAME), WB_SLICE_EMPTY));
    ok(wb_busy_init(&busy, test_root));
    a = wb_busy_begin(&busy, WB_BUSY_STREAM, 1, WB_BUSY_NODE_MAX);
    b = wb_busy_begin(&busy, WB_BUSY_STREAM, 1, WB_BUSY_NODE_MAX);
    expect_counts(1, 0, 0, 2);
    expect_counts(WB_BUSY_NODE_MAX, 0, 0, 2);
    wb_busy_end(&busy, &a);
    expect_counts(77, 0, 0, 1);
    wb_busy_end(&busy, &b);
    expect_counts(77, 0, 0, 0);
    wb_busy_release(&busy);
}

/* Counts the gets of the nodes 1 to 3. */
static void count_gets(uint64_t gets_out[3])
{
    uint64_t counts[WB_BUSY_KINDS];

    for (uint32_t node = 1; node <= 3; node++) {
        ok(wb_busy_count(test_root, node, counts));
        gets_out[node - 1] = counts[WB_BUSY_GET];
    }
}

/* A handle that reads pages of a node counts there once, until nothing was read for a second or two. */
static void test_gets(void **state)
{
    struct wb_busy busy, other;
    uint64_t gets[3], calls;
    bool counted = false;

    (void)state;
    ok(wb_busy_init(&busy, test_root));
    ok(wb_busy_init(&other, test_root));
    wb_busy_get(&busy, 1);
    assert_int_equal(wb_path_kind(test_path(WB_BUSY_NAME)), WB_PATH_NONE);
    ok(wb_path_replace(test_path(WB_BUSY_NAME), WB_SLICE_EMPTY));
    for (unsigned i = 0; i < 100 && !counted; i++) { /* a busy machine can lose a second anywhere */
        wb_clock_shift(0, 3000);
        count_gets(gets);
        assert_true(gets[0] == 0 && gets[1] == 0 && gets[2] == 0); /* what was read three seconds ago */
        int64_t since = wb_clock_mono_ns();
        for (calls = 0; calls < 1000; calls++)
            wb_busy_get(&busy, calls % 2 ? 1 : 3);
        wb_busy_get(&other, 3);
        count_gets(gets);
        counted = wb_clock_mono_ns() - since < 1000000000;
    }
    assert_true(counted);
    assert_true(gets[0] == 1 && gets[1] == 0 && gets[2] == 2);
    wb_busy_release(&other);
    count_gets(gets);
    assert_true(gets[2] < 2);
    wb_busy_release(&busy);
    count_gets(gets);
    assert_true(gets[0] == 0 && gets[1] == 0 && gets[2] == 0);
}

enum { CHILDREN = 5 };

/* A process with two scans of nodes 1 to 3 and one put on node 2. */
static pid_t start_child(int ready)
{
    pid_t child = fork();

    if (child == 0) {
        struct wb_busy busy;
        if (wb_busy_init(&busy, test_root) < 0)
            _exit(1);
        for (int i = 0; i < 2; i++)
            if (wb_busy_begin(&busy, WB_BUSY_STREAM, 1, 3).bytes != 3)
                _exit(2);
        if (wb_busy_begin(&busy, WB_BUSY_PUT, 2, 2).bytes != 1 || write(ready, "x", 1) != 1)
            _exit(3);
        pause();
        _exit(4);
    }
    return child;
}

static void test_killed(void **state)
{
    pid_t children[CHILDREN];
    int ends[2];
    char c;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    ok(wb_path_replace(test_path(WB_BUSY_NAME), WB_SLICE_EMPTY));
    for (int i = 0; i < CHILDREN; i++)
        children[i] = start_child(ends[1]);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(read(ends[0], &c, 1), 1);
    for (int left = CHILDREN; left >= 0; left--) {
        expect_counts(1, 0, 0, 2 * (uint64_t)left);
        expect_counts(2, 0, (uint64_t)left, 2 * (uint64_t)left);
        if (left > 0) {
            kill(children[left - 1], SIGKILL);
            waitpid(children[left - 1], NULL, 0);
        }
    }
    close(ends[0]);
    close(ends[1]);
}

/* Where marks cannot be set, nothing fails, and the message of an error before stays. */
static void test_unable(void **state)
{
    struct wb_busy busy;
    struct wb_busy_mark mark;

    (void)state;
    ok(wb_busy_init(&busy, test_path("no such directory")));
    wb_fail(WB_E_IO, "before");
    mark = wb_busy_begin(&busy, WB_BUSY_PUT, 1, 1);
    assert_string_equal(wb_error_message(), "before");
    assert_int_equal(mark.bytes, 0);
    wb_busy_end(&busy, &mark);
    wb_busy_release(&busy);

    /* Open for reading only, as in a repository that we may not write to. */
    ok(wb_path_replace(test_path(WB_BUSY_NAME), WB_SLICE_EMPTY));
    ok(wb_busy_init(&busy, test_root));
    wb_fault_arm(WB_FAULT_OPEN, 1, EACCES);
    mark = wb_busy_begin(&busy, WB_BUSY_PUT, 1, 1);
    wb_fault_disarm();
    assert_true(wb_fault_struck());
    assert_int_equal(mark.bytes, 1);
    assert_int_equal(fcntl(busy.file.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    expect_counts(1, 0, 1, 0);
    wb_busy_end(&busy, &mark);
    wb_busy_release(&busy);
}

/* Locks of others that are not marks are not counted, and do not stop the count. */
static void test_foreign(void **state)
{
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    struct wb_file file;

    (void)state;
    ok(wb_file_open(test_path(WB_BUSY_NAME), WB_FILE_WRITE | WB_FILE_CREATE, &file));
    assert_int_equal(fcntl(file.fd, F_OFD_SETLK, &all), 0);
    expect_counts(1, 0, 0, 0);
    wb_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_gets, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_neighbours, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_killed, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_unable, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_foreign, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
