/* test_orders.c - the operators' log: what is noted is read, newest first; torn and damaged lines; a full file. */
#include "../testroot.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "serve/orders.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void note(const char *what, const char *subject, bool ok, const char *said)
{
    struct wb_order order = {.time_ms = 1700000000123,
                             .what = wb_slice_str(what),
                             .subject = wb_slice_str(subject),
                             .ok = ok,
                             .said = wb_slice_str(said)};

    assert_int_equal(wb_orders_note(test_root, &order), 0);
}

struct seen {
    char text[4000]; /* what and subject of each, newest first */
    size_t count;
};

static int see(void *context, const struct wb_order *order)
{
    struct seen *seen = context;
    size_t len = strlen(seen->text);

    assert_int_equal(order->time_ms, 1700000000123);
    snprintf(seen->text + len, sizeof seen->text - len, "%.*s %.*s %d %.*s;", WB_SLICE_ARG(order->what),
             WB_SLICE_ARG(order->subject), order->ok, WB_SLICE_ARG(order->said));
    seen->count++;
    return 0;
}

static struct seen *read_orders(size_t max)
{
    static struct seen seen;

    seen = (struct seen){.count = 0};
    assert_int_equal(wb_orders_read(test_root, max, see, &seen), 0);
    return &seen;
}

struct findings {
    size_t problems, notes;
};

static void count_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    struct findings *f = context;

    (void)file, (void)offset, (void)message;
    f->problems += problem;
    f->notes += !problem;
}

static struct findings verify(void)
{
    struct findings f = {0};

    assert_int_equal(wb_orders_verify(test_root, count_found, &f), 0);
    return f;
}

static void read_file(struct wb_buf *text)
{
    char *path = wb_path_join(test_root, "control/orders");

    assert_int_equal(wb_path_read(path, 1 << 22, text), 0);
    wb_free(path);
}

static void write_file(struct wb_slice text)
{
    char *path = wb_path_join(test_root, "control/orders");

    assert_int_equal(wb_path_replace(path, text), 0);
    wb_free(path);
}

static void test_order(void **state)
{
    (void)state;
    assert_int_equal(read_orders(9)->count, 0);
    note("pause", "", true, "the crawl begins no requests");
    note("stop", "a.example", false, "there is no \"site\"\nlike \x01 this");
    assert_string_equal(read_orders(9)->text,
                        "stop a.example 0 there is no \"site\"\nlike \x01 this;pause  1 the crawl begins no requests;");
    assert_int_equal(read_orders(1)->count, 1);
    assert_int_equal(verify().problems + verify().notes, 0);
}

/* Killed while a line is appended, at each of its bytes: the lines before it stay, and so does the next one. */
static void test_torn(void **state)
{
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    note("pause", "", true, "a");
    read_file(&text);
    size_t first = text.len;
    note("resume", "", true, "b");
    wb_buf_release(&text);
    read_file(&text);
    for (size_t len = first; len < text.len; len++) {
        write_file(wb_slice(text.ptr, len));
        assert_int_equal(verify().problems, 0);
        note("stop", "a.example", true, "c");
        struct seen *seen = read_orders(9);
        assert_true(strstr(seen->text, "pause") && strstr(seen->text, "stop a.example"));
        assert_int_equal(seen->count, len + 1 == text.len ? 3 : 2); /* only its end was missing */
        assert_int_equal(verify().problems, 0);
    }
    wb_buf_release(&text);
}

static void test_damage(void **state)
{
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    note("pause", "", true, "a");
    note("resume", "", true, "b");
    read_file(&text);
    text.ptr[40] ^= 1;
    write_file(wb_buf_slice(&text));
    assert_string_equal(read_orders(9)->text, "resume  1 b;");
    assert_int_equal(verify().problems, 1);
    wb_buf_release(&text);
}

/* A full file is put aside, and read after the one that takes its place. */
static void test_full(void **state)
{
    static char said[2000];
    struct stat about;
    char path[128];
    size_t count = 0;

    (void)state;
    memset(said, 'x', sizeof said - 1);
    snprintf(path, sizeof path, "%s/control/orders.old", test_root);
    while (stat(path, &about) != 0) {
        note("push", "", true, said);
        count++;
        assert_true(count < 3000);
    }
    assert_true(about.st_size < (1 << 20) + 3000);
    struct seen *seen = read_orders(3);
    assert_int_equal(seen->count, 3);
    assert_int_equal(verify().problems, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_torn, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_damage, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_full, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
