/* test_cyclestate.c - the state file: what is written is read; damage, other formats and failing writes are told; the
 * lock. */
#include "../otherformat.h"
#include "cycle/cyclestate.h"
#include "cycle/statefile.h"
#include "cycle_support.h"
#include "os/fault.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static struct wb_cyclestate some_state(void)
{
    struct wb_cyclestate state = {.seeded = 7};

    state.status = (struct wb_cycle_status){.cycle = 3,
                                            .step = WB_CYCLE_CRAWL,
                                            .began_ms = 1700000000123,
                                            .step_ms = 1700000001456,
                                            .next_ms = 0,
                                            .run = 42,
                                            .budget = 1000,
                                            .listed = 900,
                                            .fetched = 17,
                                            .stored = 5,
                                            .unchanged = 6,
                                            .gone = 4,
                                            .errors = 2,
                                            .expunged = 1,
                                            .theta = 0.1234567890123456};
    snprintf(state.status.last_error, sizeof state.status.last_error, "no space\nleft on /x");
    return state;
}

static char *state_path(const char *dir)
{
    return wb_path_join(dir, "cycle");
}

static void write_bytes(const char *dir, struct wb_slice bytes)
{
    char *path = state_path(dir);

    ok(wb_path_replace(path, bytes));
    free(path);
}

static void read_bytes(const char *dir, struct wb_buf *bytes_out)
{
    char *path = state_path(dir);

    ok(wb_path_read(path, 1 << 16, bytes_out));
    free(path);
}

static void assert_same(const struct wb_cyclestate *a, const struct wb_cyclestate *b)
{
    const struct wb_cycle_status *x = &a->status, *y = &b->status;

    assert_int_equal(a->seeded, b->seeded);
    assert_int_equal(x->cycle, y->cycle);
    assert_int_equal(x->step, y->step);
    assert_int_equal(x->began_ms, y->began_ms);
    assert_int_equal(x->step_ms, y->step_ms);
    assert_int_equal(x->next_ms, y->next_ms);
    assert_int_equal(x->run, y->run);
    assert_int_equal(x->budget, y->budget);
    assert_int_equal(x->listed, y->listed);
    assert_int_equal(x->fetched, y->fetched);
    assert_int_equal(x->stored, y->stored);
    assert_int_equal(x->unchanged, y->unchanged);
    assert_int_equal(x->gone, y->gone);
    assert_int_equal(x->errors, y->errors);
    assert_int_equal(x->expunged, y->expunged);
    assert_true(x->theta == y->theta);
}

static void test_written_is_read(void **state)
{
    struct wb_cyclestate written = some_state(), read;

    for (int step = WB_CYCLE_REST; step <= WB_CYCLE_COMPACT; step++) {
        written.status.step = (enum wb_cycle_step)step;
        written.status.next_ms += step;
        ok(wb_cyclestate_write(*state, &written));
        ok(wb_cyclestate_read(*state, &read));
        assert_same(&written, &read);
        assert_string_equal(read.status.last_error, "no space?left on /x");
    }
}

static void test_none_is_not_found(void **state)
{
    struct wb_cycle_status status;

    assert_int_equal(wb_cycle_status(*state, &status), WB_E_NOTFOUND);
    assert_int_equal(status.cycle, 0);
}

static void test_damage_is_told(void **state)
{
    struct wb_cyclestate written = some_state(), read;
    struct wb_buf bytes = WB_BUF_INIT;

    ok(wb_cyclestate_write(*state, &written));
    read_bytes(*state, &bytes);
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.ptr[i] ^= 0x10;
        write_bytes(*state, wb_buf_slice(&bytes));
        bytes.ptr[i] ^= 0x10;
        int err = wb_cyclestate_read(*state, &read);
        assert_true(err == WB_E_CORRUPT || err == WB_E_NEWER);
    }
    for (size_t len = 0; len < bytes.len; len++) {
        write_bytes(*state, wb_slice(bytes.ptr, len));
        assert_int_equal(wb_cyclestate_read(*state, &read), WB_E_CORRUPT);
    }
    wb_buf_release(&bytes);
}

/* Sound, but not what a state can be; and lines of a later version, which are passed over. */
static void test_strange_lines(void **state)
{
    char *path = state_path(*state);
    struct wb_cyclestate read;

    ok(wb_statefile_write(path, "cycle", WB_SLICE_LIT("step dance\n")));
    assert_int_equal(wb_cyclestate_read(*state, &read), WB_E_CORRUPT);
    ok(wb_statefile_write(path, "cycle", WB_SLICE_LIT("cycle -1\n")));
    assert_int_equal(wb_cyclestate_read(*state, &read), WB_E_CORRUPT);
    ok(wb_statefile_write(path, "cycle", WB_SLICE_LIT("cycle 9\nmoon full\nnext never\n")));
    ok(wb_cyclestate_read(*state, &read));
    assert_int_equal(read.status.cycle, 9);
    ok(wb_statefile_write(path, "thresholds", WB_SLICE_LIT("cycle 9\n")));
    assert_int_equal(wb_cyclestate_read(*state, &read), WB_E_CORRUPT);
    free(path);
}

static void test_another_format(void **state)
{
    struct wb_cyclestate read;
    char *path = state_path(*state);

    write_bytes(*state, WB_SLICE_LIT("webbase cycle 2\nwhatever\n"));
    assert_refused_format(wb_cyclestate_read(*state, &read), path, 2);
    free(path);
}

/* A write that fails leaves the state before it. */
static void test_failing_writes(void **state)
{
    struct wb_cyclestate before = some_state(), after = some_state(), read;
    bool struck = true;

    ok(wb_cyclestate_write(*state, &before));
    after.status.cycle++;
    for (uint64_t nth = 1; struck; nth++) {
        wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
        int err = wb_cyclestate_write(*state, &after);
        struck = wb_fault_struck();
        wb_fault_disarm();
        ok(wb_cyclestate_read(*state, &read));
        /* The rename may be done where only the directory's sync failed. */
        assert_same(err == 0 || read.status.cycle == after.status.cycle ? &after : &before, &read);
        ok(wb_cyclestate_write(*state, &before));
    }
}

static void test_lock(void **state)
{
    struct wb_cyclestate written = some_state();
    struct wb_cycle_status status;
    struct wb_file lock, again;
    int ready[2], status_code;
    char byte;

    ok(wb_cyclestate_write(*state, &written));
    ok(wb_cycle_status(*state, &status));
    assert_false(status.running);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (wb_cyclestate_lock(*state, &lock) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    ok(wb_cycle_status(*state, &status));
    assert_true(status.running);
    assert_int_equal(wb_cyclestate_lock(*state, &again), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), *state));
    kill(child, SIGKILL);
    waitpid(child, &status_code, 0);
    ok(wb_cyclestate_lock(*state, &again));
    wb_file_close(&again);
    assert_false(wb_cyclestate_locked(*state));
    close(ready[0]);
    close(ready[1]);
}

/* A run that is killed leaves a crawler, which has its lock for a moment. That is waited for. */
static void test_lock_of_a_dead_run(void **state)
{
    struct wb_file lock;
    int ready[2], status;
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t run = fork();
    if (run == 0) {
        pid_t self = getpid();
        if (wb_cyclestate_lock(*state, &lock) < 0)
            _exit(1);
        if (fork() == 0) {
            while (getppid() == self)
                usleep(10000);
            usleep(200000);
            _exit(0);
        }
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(wb_cyclestate_lock(*state, &lock), WB_E_BUSY);
    kill(run, SIGKILL);
    assert_int_equal(waitpid(run, &status, 0), run);
    assert_true(wb_cyclestate_locked(*state));
    ok(wb_cyclestate_lock(*state, &lock));
    wb_file_close(&lock);
    assert_false(wb_cyclestate_locked(*state));
    close(ready[0]);
    close(ready[1]);
}

/* Others who ask whether there is a run at the same time are not taken for one. */
static void test_asked_by_two(void **state)
{
    char *path = wb_path_join(*state, "cycle.lock");
    struct wb_file lock, other;

    ok(wb_cyclestate_lock(*state, &lock));
    ok(wb_file_open(path, WB_FILE_READ, &other));
    assert_true(wb_cyclestate_locked(*state));
    wb_file_close(&lock);
    assert_int_equal(flock(other.fd, LOCK_SH), 0); /* as while somebody looks */
    assert_false(wb_cyclestate_locked(*state));
    wb_file_close(&other);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_REPOSITORY(test_written_is_read),
                                       IN_REPOSITORY(test_none_is_not_found),
                                       IN_REPOSITORY(test_damage_is_told),
                                       IN_REPOSITORY(test_strange_lines),
                                       IN_REPOSITORY(test_another_format),
                                       IN_REPOSITORY(test_failing_writes),
                                       IN_REPOSITORY(test_lock),
                                       IN_REPOSITORY(test_lock_of_a_dead_run),
                                       IN_REPOSITORY(test_asked_by_two)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
