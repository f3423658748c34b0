/*
 * test_recent.c - the latest fetches: what is written is read, newest first, by however many processes it is written; a
 * full ring, damage, texts that are too long.
 */
#include "../otherformat.h"
#include "../testroot.h"

#include "base/error.h"
#include "base/mem.h"
#include "crawl/recent.h"
#include "os/path.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t now_ms; /* every flush comes long after the last one */

static void add(struct wb_recent *recent, const char *url, unsigned number)
{
    char text[64];
    struct wb_recent_fetch fetch = {.time_ms = 1700000000000 + number,
                                    .took_ms = number,
                                    .queued = WB_RECENT_UNKNOWN,
                                    .status = 200,
                                    .bytes = number,
                                    .result = WB_SLICE_LIT("stored"),
                                    .reason = WB_SLICE_EMPTY};

    snprintf(text, sizeof text, "%s%u", url, number);
    fetch.url = wb_slice_str(text);
    wb_recent_add(recent, &fetch);
}

struct seen {
    uint64_t numbers[WB_RECENT_SLOTS];
    uint64_t bytes[WB_RECENT_SLOTS];
    size_t count;
};

static int see(void *context, const struct wb_recent_fetch *fetch)
{
    struct seen *seen = context;

    assert_true(seen->count < WB_RECENT_SLOTS);
    assert_true(seen->count == 0 || fetch->number < seen->numbers[seen->count - 1]);
    assert_true(wb_slice_equal(fetch->result, WB_SLICE_LIT("stored")));
    seen->bytes[seen->count] = fetch->bytes;
    seen->numbers[seen->count++] = fetch->number;
    return 0;
}

static const struct seen *read_after(uint64_t after, uint64_t *newest_out)
{
    static struct seen seen;

    seen.count = 0;
    assert_int_equal(wb_recent_read(test_root, after, see, &seen, newest_out), 0);
    return &seen;
}

static void count_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)file, (void)offset, (void)message;
    *(size_t *)context += problem;
}

static size_t problems(void)
{
    size_t count = 0;

    assert_int_equal(wb_recent_verify(test_root, count_found, &count), 0);
    return count;
}

static void test_nothing(void **state)
{
    uint64_t newest;

    (void)state;
    assert_int_equal(read_after(0, &newest)->count, 0);
    assert_int_equal(newest, 0);
    assert_int_equal(problems(), 0);
}

static void test_round_and_round(void **state)
{
    struct wb_recent recent;
    uint64_t newest;
    unsigned number = 0;

    (void)state;
    wb_recent_open(test_root, &recent);
    for (unsigned batch = 1; number < 3 * WB_RECENT_SLOTS / 2; batch++) {
        for (unsigned i = 0; i < batch * 7 % 3000; i++)
            add(&recent, "http://a.example/", ++number);
        wb_recent_flush(&recent, now_ms += 1000);
    }
    const struct seen *s = read_after(0, &newest);
    assert_int_equal(newest, number);
    assert_int_equal(s->count, WB_RECENT_SLOTS);
    for (size_t i = 0; i < s->count; i++)
        assert_true(s->numbers[i] == number - i && s->bytes[i] == number - i);
    assert_int_equal(read_after(number - 5, &newest)->count, 5);
    assert_int_equal(read_after(number, &newest)->count, 0);
    assert_int_equal(read_after(UINT64_MAX - 1, &newest)->count, 0);
    wb_recent_close(&recent);
    assert_int_equal(problems(), 0);
}

static void test_several_processes(void **state)
{
    enum { PROCESSES = 4, EACH = 2000 };
    uint64_t newest;
    int status;

    (void)state;
    for (unsigned p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            struct wb_recent recent;
            wb_recent_open(test_root, &recent);
            for (unsigned i = 0; i < EACH; i++) {
                add(&recent, "http://b.example/", i);
                wb_recent_flush(&recent, now_ms += 1000);
            }
            while (recent.slots.len)
                wb_recent_flush(&recent, now_ms += 1000);
            wb_recent_close(&recent);
            _exit(0);
        }
    for (unsigned p = 0; p < PROCESSES; p++) {
        wait(&status);
        assert_int_equal(status, 0);
    }
    assert_int_equal(read_after(0, &newest)->count, PROCESSES * EACH);
    assert_int_equal(newest, PROCESSES * EACH);
    assert_int_equal(problems(), 0);
}

static void overwrite(uint64_t at, const char *bytes)
{
    char *path = wb_path_join(test_root, "control/fetches");
    struct wb_file file;

    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, at, bytes, strlen(bytes)), 0);
    wb_file_close(&file);
    wb_free(path);
}

/* Damage costs what was damaged; the number of the newest fetch is found again. */
static void test_damage(void **state)
{
    struct wb_recent recent;
    uint64_t newest;

    (void)state;
    wb_recent_open(test_root, &recent);
    for (unsigned i = 1; i <= 100; i++)
        add(&recent, "http://c.example/", i);
    wb_recent_flush(&recent, now_ms += 1000);
    overwrite(WB_RECENT_HEAD_BYTES + 50 * WB_RECENT_SLOT_BYTES + 60, "damage");
    assert_int_equal(read_after(0, &newest)->count, 99);
    assert_int_equal(problems(), 1);
    overwrite(66, "damage");
    assert_int_equal(read_after(0, &newest)->count, 99);
    assert_int_equal(newest, 100);
    add(&recent, "http://c.example/", 101);
    wb_recent_flush(&recent, now_ms += 1000);
    assert_int_equal(read_after(100, &newest)->count, 1);
    wb_recent_close(&recent);
    overwrite(2, "damage");
    assert_int_equal(problems(), 1);
    wb_recent_open(test_root, &recent);
    wb_recent_close(&recent);
    assert_int_equal(read_after(0, &newest)->count, 100);
}

/* A file of another format is left alone by writers, and neither read nor judged. */
static void test_another_format(void **state)
{
    struct wb_recent recent;
    struct seen seen = {.count = 0};
    uint64_t newest;

    (void)state;
    wb_recent_open(test_root, &recent);
    add(&recent, "http://c.example/", 1);
    wb_recent_flush(&recent, now_ms += 1000);
    wb_recent_close(&recent);
    char *path = wb_path_join(test_root, "control/fetches");
    put_format(path, 0, 7, '2', 16);
    assert_refused_format(wb_recent_read(test_root, 0, see, &seen, &newest), path, 2);
    assert_int_equal(problems(), 0);
    wb_recent_open(test_root, &recent);
    add(&recent, "http://c.example/", 2);
    wb_recent_flush(&recent, now_ms += 1000);
    wb_recent_close(&recent);
    put_format(path, 0, 7, '1', 16);
    assert_int_equal(read_after(0, &newest)->count, 1);
    wb_free(path);
}

static void test_long_texts(void **state)
{
    static char longest[5000];
    uint8_t bytes[WB_RECENT_SLOT_BYTES];
    struct wb_recent_fetch fetch = {.number = 7, .status = 599, .queued = 3}, again;

    (void)state;
    memset(longest, 'x', sizeof longest);
    fetch.url = fetch.result = fetch.reason = wb_slice(longest, sizeof longest);
    wb_recent_encode(&fetch, bytes);
    assert_true(wb_recent_decode(bytes, &again));
    assert_true(again.cut && again.number == 7 && again.status == 599 && again.queued == 3);
    assert_int_equal(again.url.len + again.result.len + again.reason.len, WB_RECENT_SLOT_BYTES - 48);
    fetch.url = wb_slice(longest, 100);
    wb_recent_encode(&fetch, bytes);
    assert_true(wb_recent_decode(bytes, &again) && !again.cut && again.url.len == 100);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        assert_false(wb_recent_decode(bytes, &again));
        bytes[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_round_and_round, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_several_processes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_damage, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_another_format, make_root, remove_root),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
