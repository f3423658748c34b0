/*
 * test_chronicle.c - the dashboard's history on disk: random samples against a naive twin, damage at every byte of a
 * record, writers that were killed, clocks that jump, two processes, disks that are full or read-only.
 */
#include "../otherformat.h"
#include "../testroot.h"
#include "../seeded.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include "serve/chronicle.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNTED = 0x5, T0 = 1700000000 - 1700000000 % 3600 };

static struct wb_chronicle *open_chronicle(void)
{
    struct wb_chronicle *c;

    assert_int_equal(wb_chronicle_open(test_root, COUNTED, &c), 0);
    return c;
}

static char *file_path(void)
{
    return wb_path_join(test_root, WB_CHRONICLE_FILE);
}

/* Numbers 0 and 2 are counted, 1 is measured, 3 is measured and sometimes unknown, the others are unknown. */
static struct wb_chronicle_record make_second(int64_t time_s, double number)
{
    struct wb_chronicle_record r = {.start_s = time_s, .watched_ms = 1000};

    for (size_t i = 0; i < WB_CHRONICLE_NUMBERS; i++)
        r.numbers[i] = NAN;
    r.numbers[0] = number;
    r.numbers[1] = number * 10;
    r.numbers[2] = 1;
    return r;
}

static void add(struct wb_chronicle *c, int64_t time_s, double number)
{
    struct wb_chronicle_record r = make_second(time_s, number);

    assert_int_equal(wb_chronicle_add(c, &r), 0);
}

struct seen {
    struct wb_chronicle_record records[8192];
    size_t count;
};

static int see(void *context, const struct wb_chronicle_record *record)
{
    struct seen *seen = context;

    assert_true(seen->count < 8192);
    assert_true(seen->count == 0 || record->start_s > seen->records[seen->count - 1].start_s);
    seen->records[seen->count++] = *record;
    return 0;
}

static struct seen *read_level(struct wb_chronicle *c, enum wb_chronicle_level level, int64_t from_s, int64_t to_s)
{
    static struct seen seen;

    seen.count = 0;
    assert_int_equal(wb_chronicle_read(c, level, from_s, to_s, see, &seen), 0);
    return &seen;
}

static void fail_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)context;
    if (problem)
        fail_msg("%s at %llu: %s", file, (unsigned long long)offset, message);
}

static void count_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)file, (void)offset, (void)message;
    *(size_t *)context += problem;
}

static size_t problems(void)
{
    size_t count = 0;

    assert_int_equal(wb_chronicle_verify(test_root, count_found, &count), 0);
    return count;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_levels(void **state)
{
    struct wb_chronicle *c = open_chronicle();

    (void)state;
    assert_int_equal(wb_chronicle_role(c), WB_CHRONICLE_WRITER);
    for (int64_t i = 0; i < 7300; i++)
        if (i < 100 || i >= 200) /* nobody watched then */
            add(c, T0 + i, i < 60 ? 1 : 2);
    /* Seconds: the last hour of them. */
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, T0 + 3700, T0 + 7300)->count, 3600);
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, T0, T0 + 3600)->count, 0);
    /* Minutes: the third has 20 of its 60 seconds; of 3 minutes and 20 s none, 40 s. The last one is not over: seconds.
     */
    const struct seen *s = read_level(c, WB_CHRONICLE_MINUTES, T0, T0 + 7300);
    assert_int_equal(s->count, 121 - 1 + 1 + 40 - 1);
    assert_int_equal(s->records[0].start_s, T0);
    assert_int_equal(s->records[0].watched_ms, 60000);
    assert_true(s->records[0].numbers[0] == 60 && s->records[0].numbers[1] == 10 && s->records[0].numbers[2] == 60);
    assert_true(isnan(s->records[0].numbers[3]));
    assert_int_equal(s->records[1].watched_ms, 40000);
    assert_true(s->records[1].numbers[0] == 80 && s->records[1].numbers[1] == 20);
    assert_int_equal(s->records[2].start_s, T0 + 180);
    assert_int_equal(s->records[2].watched_ms, 40000);
    /* Hours. */
    s = read_level(c, WB_CHRONICLE_HOURS, T0, T0 + 7300);
    assert_int_equal(s->records[0].start_s, T0);
    assert_int_equal(s->records[0].watched_ms, 3500000);
    assert_true(s->records[0].numbers[0] == 60 + 3440 * 2);
    assert_int_equal(s->records[1].start_s, T0 + 3600);
    assert_int_equal(s->records[1].watched_ms, 3600000);
    assert_int_equal(s->records[2].start_s, T0 + 7200);
    wb_chronicle_close(c);
    assert_int_equal(wb_chronicle_verify(test_root, fail_found, NULL), 0);
}

/* Random samples, gaps, restarts and jumps of the clock, and a twin that keeps all seconds. */
static void test_model(void **state)
{
    enum { SPAN = 3 * 3600 };
    static double counted[SPAN], measured[SPAN];
    static uint32_t watched[SPAN];
    uint64_t chance = test_seed();
    struct wb_chronicle *c = open_chronicle();
    int64_t now = 0, last = 0;

    (void)state;
    while (now < SPAN) {
        struct wb_chronicle_record r = make_second(T0 + now, (double)chance_below(&chance, 100));
        r.watched_ms = 500 + chance_below(&chance, 1000);
        r.numbers[3] = chance_one_in(&chance, 3) ? NAN : (double)chance_below(&chance, 9);
        assert_int_equal(wb_chronicle_add(c, &r), 0);
        counted[now] = r.numbers[0];
        measured[now] = r.numbers[3];
        watched[now] = (uint32_t)r.watched_ms;
        last = now;
        now += chance_one_in(&chance, 200) ? 1 + (int64_t)chance_below(&chance, 700) : 1;
        if (chance_one_in(&chance, 300)) {
            wb_chronicle_close(c);
            c = open_chronicle();
        }
    }
    for (int64_t minute = 0; minute < last / 60; minute++) {
        double sum = 0, mean = 0, weight = 0;
        uint32_t all = 0;
        for (int64_t i = minute * 60; i < minute * 60 + 60; i++) {
            sum += watched[i] ? counted[i] : 0;
            all += watched[i];
            mean += watched[i] && !isnan(measured[i]) ? measured[i] : 0;
            weight += watched[i] && !isnan(measured[i]);
        }
        const struct seen *s = read_level(c, WB_CHRONICLE_MINUTES, T0 + minute * 60, T0 + minute * 60 + 60);
        assert_int_equal(s->count, all > 0);
        if (all) {
            assert_int_equal(s->records[0].watched_ms, all);
            assert_true(s->records[0].numbers[0] == sum);
            assert_int_equal(isnan(s->records[0].numbers[3]), weight == 0);
            /* The mean is weighted by time, the twin's is not. */
            assert_true(weight == 0 || fabs(s->records[0].numbers[3] - mean / weight) < 9);
        }
    }
    double total = 0, hours = 0;
    for (int64_t i = 0; i < last / 3600 * 3600; i++)
        total += watched[i] ? counted[i] : 0;
    for (int64_t hour = 0; hour < last / 3600; hour++) {
        const struct seen *s = read_level(c, WB_CHRONICLE_HOURS, T0 + hour * 3600, T0 + hour * 3600 + 3600);
        for (size_t i = 0; i < s->count; i++)
            hours += s->records[i].numbers[0];
    }
    assert_true(total == hours);
    wb_chronicle_close(c);
    assert_int_equal(problems(), 0);
}

/* A record that was written in part is a gap; its neighbours stay. Whatever a byte becomes, it is never believed. */
static void test_torn_at_each_byte(void **state)
{
    struct wb_chronicle_record good = make_second(T0 + 61, 7), seen;
    uint8_t bytes[WB_CHRONICLE_RECORD_BYTES], torn[WB_CHRONICLE_RECORD_BYTES];
    int64_t slot = (T0 + 61) % wb_chronicle_slots(WB_CHRONICLE_SECONDS);

    (void)state;
    wb_chronicle_encode(&good, bytes);
    assert_int_equal(wb_chronicle_decode(WB_CHRONICLE_SECONDS, slot, bytes, &seen), WB_CHRONICLE_RECORD);
    assert_memory_equal(&seen.numbers, &good.numbers, sizeof good.numbers);
    assert_int_equal(wb_chronicle_decode(WB_CHRONICLE_SECONDS, slot + 1, bytes, &seen), WB_CHRONICLE_DAMAGED);
    for (size_t i = 0; i < sizeof bytes; i++) {
        memset(torn, 0, sizeof torn); /* over an empty slot */
        memcpy(torn, bytes, i);
        assert_int_not_equal(wb_chronicle_decode(WB_CHRONICLE_SECONDS, slot, torn, &seen), WB_CHRONICLE_RECORD);
        struct wb_chronicle_record old = make_second(T0 + 61 - 3600, 3); /* over the round before */
        wb_chronicle_encode(&old, torn);
        memcpy(torn, bytes, i);
        enum wb_chronicle_found found = wb_chronicle_decode(WB_CHRONICLE_SECONDS, slot, torn, &seen);
        assert_true(found != WB_CHRONICLE_RECORD || seen.start_s == T0 + 61 || (i == 0 && seen.start_s == T0 - 3539));
        memcpy(torn, bytes, sizeof torn);
        torn[i] ^= 0x10;
        assert_int_equal(wb_chronicle_decode(WB_CHRONICLE_SECONDS, slot, torn, &seen), WB_CHRONICLE_DAMAGED);
    }
    memset(torn, 0, sizeof torn);
    assert_int_equal(wb_chronicle_decode(WB_CHRONICLE_SECONDS, slot, torn, &seen), WB_CHRONICLE_NOTHING);
}

static void write_file(uint64_t at, const void *bytes, size_t len)
{
    char *path = file_path();
    struct wb_file file;

    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, at, bytes, len), 0);
    wb_file_close(&file);
    wb_free(path);
}

/* Damage is found, costs what was damaged, and is written over when its turn comes. A head is made again. */
static void test_damage(void **state)
{
    struct wb_chronicle *c = open_chronicle();
    uint64_t slot = T0 % 3600 + 10;

    (void)state;
    for (int64_t i = 0; i < 130; i++)
        add(c, T0 + i, 1);
    wb_chronicle_close(c);
    write_file(WB_CHRONICLE_HEAD_BYTES + slot * WB_CHRONICLE_RECORD_BYTES + 50, "damage", 6);
    assert_int_equal(problems(), 1);
    write_file(3, "damage", 6);
    assert_int_equal(problems(), 1); /* the head: without it nothing else is checked */
    c = open_chronicle();
    assert_int_equal(wb_chronicle_role(c), WB_CHRONICLE_WRITER);
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, T0, T0 + 130)->count, 129);
    assert_int_equal(problems(), 1);
    add(c, T0 + 10 + 3600, 1);
    wb_chronicle_close(c);
    assert_int_equal(problems(), 0);
}

static void expect_other_format(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)file, (void)offset;
    assert_false(problem);
    assert_non_null(strstr(message, "has format 2; this program reads format 1"));
    ++*(size_t *)context;
}

/* A file of another format is left alone, and the server keeps what it learns in memory. */
static void test_another_format(void **state)
{
    struct wb_chronicle *c = open_chronicle();
    char *path = file_path();
    size_t told = 0;

    (void)state;
    add(c, T0, 1);
    wb_chronicle_close(c);
    put_format(path, 0, 7, '2', 32);
    assert_int_equal(wb_chronicle_verify(test_root, expect_other_format, &told), 0);
    assert_int_equal(told, 1);
    c = open_chronicle();
    assert_int_equal(wb_chronicle_role(c), WB_CHRONICLE_MEMORY);
    add(c, T0 + 1, 1);
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, T0, T0 + 9)->count, 1);
    wb_chronicle_close(c);
    put_format(path, 0, 7, '1', 32);
    c = open_chronicle();
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, T0, T0 + 9)->count, 1);
    wb_chronicle_close(c);
    wb_free(path);
}

/* kill -9 at any moment: what was added is there, and minutes and hours are completed by the next writer. */
static void test_killed_writer(void **state)
{
    int pipes[2], status;
    int64_t told = -1, next;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct wb_chronicle *c = NULL;
        if (wb_chronicle_open(test_root, COUNTED, &c) < 0)
            _exit(1);
        for (int64_t i = 0; i < 100000; i++) {
            struct wb_chronicle_record r = make_second(T0 + i, 1);
            if (wb_chronicle_add(c, &r) < 0 || write(pipes[1], &i, sizeof i) != sizeof i)
                _exit(1);
        }
        pause();
    }
    close(pipes[1]);
    for (int64_t i = 0; i < 3700 && read(pipes[0], &next, sizeof next) == sizeof next; i++)
        told = next;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    while (read(pipes[0], &next, sizeof next) == sizeof next)
        told = next;
    close(pipes[0]);
    assert_true(told >= 3699);
    assert_int_equal(problems(), 0);
    struct wb_chronicle *c = open_chronicle();
    assert_int_equal(wb_chronicle_role(c), WB_CHRONICLE_WRITER);
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, told - 1000 + T0, told + T0 + 1)->count, 1001);
    add(c, T0 + told + 7 * 86400, 1); /* long after */
    const struct seen *s = read_level(c, WB_CHRONICLE_HOURS, T0, T0 + told + 1);
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->records[i].numbers[0];
    assert_true(sum == (double)(told + 1) || sum == (double)(told + 2)); /* one that was written and not told */
    wb_chronicle_close(c);
}

/* A step of charts can be longer than what a record of the file can say. */
static void test_long_sums(void **state)
{
    struct wb_chronicle_record sum = make_second(T0, 1), hour = make_second(T0, 1);

    (void)state;
    sum.watched_ms = hour.watched_ms = 3600 * 1000;
    for (int i = 1; i < 60 * 24; i++)
        wb_chronicle_merge(&sum, &hour, COUNTED);
    assert_true(sum.watched_ms == UINT64_C(60) * 86400 * 1000);
    assert_true(sum.numbers[0] == 60 * 24 && fabs(sum.numbers[1] - 10) < 1e-6);
}

/* Forward: a gap. Back: what was is shown where the clock says it is, and what is written again is replaced. */
static void test_clock_jumps(void **state)
{
    enum { AHEAD = 31536000 + 1800 }; /* in other slots than these seconds */
    struct wb_chronicle *c = open_chronicle();

    (void)state;
    for (int64_t i = 0; i < 90; i++)
        add(c, T0 + i, 1);
    for (int64_t i = 0; i < 90; i++) /* a year ahead */
        add(c, T0 + AHEAD + i, 2);
    for (int64_t i = 0; i < 90; i++) /* and back, a little further than it was before */
        add(c, T0 + 60 + i, 4);
    const struct seen *s = read_level(c, WB_CHRONICLE_SECONDS, T0, T0 + 150);
    assert_int_equal(s->count, 150);
    assert_true(s->records[59].numbers[0] == 1 && s->records[60].numbers[0] == 4);
    add(c, T0 + 180, 1);
    s = read_level(c, WB_CHRONICLE_MINUTES, T0, T0 + 180);
    assert_int_equal(s->count, 3);
    assert_true(s->records[0].numbers[0] == 60 && s->records[1].numbers[0] == 240);
    assert_int_equal(read_level(c, WB_CHRONICLE_MINUTES, T0 + AHEAD, T0 + AHEAD + 60)->count, 1);
    struct wb_chronicle_record ancient = make_second(-5, 1); /* before 1970: there is no place for it */
    assert_int_equal(wb_chronicle_add(c, &ancient), 0);
    add(c, 3, 1);
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, 0, 100)->count, 1);
    /* Two samples in one second are one. */
    add(c, 3, 1);
    s = read_level(c, WB_CHRONICLE_SECONDS, 0, 100);
    assert_true(s->records[0].numbers[0] == 2 && s->records[0].watched_ms == 2000);
    /* Also if both were late, because the clock went back. */
    for (int i = 0; i < 2; i++) {
        struct wb_chronicle_record late = make_second(4, 1);
        late.watched_ms = 50000;
        assert_int_equal(wb_chronicle_add(c, &late), 0);
    }
    s = read_level(c, WB_CHRONICLE_SECONDS, 4, 5);
    assert_true(s->count == 1 && s->records[0].numbers[0] == 2 && s->records[0].watched_ms == 60000);
    wb_chronicle_close(c);
    assert_int_equal(problems(), 0);
}

/* Of two, one writes and the other reads what it writes. When the first one goes, the other takes over. */
static void test_two_servers(void **state)
{
    struct wb_chronicle *a = open_chronicle(), *b = open_chronicle();

    (void)state;
    assert_int_equal(wb_chronicle_role(a), WB_CHRONICLE_WRITER);
    assert_int_equal(wb_chronicle_role(b), WB_CHRONICLE_READER);
    add(a, T0, 1);
    add(b, T0 + 1, 100);
    assert_int_equal(read_level(b, WB_CHRONICLE_SECONDS, T0, T0 + 9)->count, 1);
    wb_chronicle_close(a);
    wb_clock_shift(0, 5000);
    add(b, T0 + 2, 1);
    assert_int_equal(wb_chronicle_role(b), WB_CHRONICLE_WRITER);
    assert_int_equal(read_level(b, WB_CHRONICLE_SECONDS, T0, T0 + 9)->count, 2);
    wb_chronicle_close(b);
}

/* Where the file cannot be written, memory does, with what was there before; and the file again as soon as it can be.
 */
static void test_read_only(void **state)
{
    struct wb_chronicle *c = open_chronicle();

    (void)state;
    add(c, T0, 1);
    wb_chronicle_close(c);
    wb_fault_arm(WB_FAULT_OPEN, 1, EROFS);
    c = open_chronicle();
    wb_fault_disarm();
    assert_int_equal(wb_chronicle_role(c), WB_CHRONICLE_MEMORY);
    add(c, T0 + 1, 1);
    assert_int_equal(read_level(c, WB_CHRONICLE_SECONDS, T0, T0 + 9)->count, 2);
    wb_clock_shift(0, 5000);
    add(c, T0 + 2, 1);
    assert_int_equal(wb_chronicle_role(c), WB_CHRONICLE_WRITER);
    wb_chronicle_close(c);
}

/* Whichever operation fails: at most what was added then is lost, and never anything else. */
static void test_faults(void **state)
{
    uint64_t n = 1;
    bool struck = true;

    (void)state;
    for (; struck; n++) {
        char *path = file_path();
        wb_path_unlink(path);
        wb_free(path);
        struct wb_chronicle *c = open_chronicle();
        struct wb_chronicle_record r = make_second(T0 + 60, 1);
        for (int64_t i = 0; i < 60; i++)
            add(c, T0 + i, 1);
        wb_fault_arm(WB_FAULT_READ | WB_FAULT_WRITE, n, ENOSPC);
        int err = wb_chronicle_add(c, &r);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        add(c, T0 + 61, 1);
        add(c, T0 + 120, 1);
        const struct seen *s = read_level(c, WB_CHRONICLE_MINUTES, T0, T0 + 120);
        assert_int_equal(s->count, 2);
        assert_true(s->records[0].numbers[0] == 60);
        assert_true(s->records[1].numbers[0] == 2 || (struck && s->records[1].numbers[0] == 1));
        wb_chronicle_close(c);
    }
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_levels, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_model, make_root, remove_root),
        cmocka_unit_test(test_torn_at_each_byte),
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test_setup_teardown(test_damage, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_another_format, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_killed_writer, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_clock_jumps, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_two_servers, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_read_only, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_faults, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
