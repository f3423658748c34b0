/*
 * test_stream_fault.c - allocations and operations on files fail while a stream runs. A stream then reports an
 * error, or works without what it could not have (a hold, a place on the shelf); what it delivers is right in any case,
 * and a named stream loses nothing.
 */
#include "versions_support.h"

#include "../seeded.h"
#include "os/fault.h"
#include "stream/stream.h"

#include <errno.h>

#define PAGES 12

static void fill(struct wb_store *store)
{
    char name[20], body[60];

    for (int i = 0; i < PAGES; i++) {
        snprintf(name, sizeof name, "page%d", i);
        snprintf(body, sizeof body, "<title>%d</title><a href=/page%d>text</a>", i, i + 1);
        put_on(store, name, i % 5, body);
    }
    wb_store_close(store);
}

/* What a run delivered. */
struct run {
    unsigned records;
    unsigned seen; /* bit i: page i */
};

static int take(struct run *run, const struct wb_stream_record *record)
{
    unsigned number = (unsigned)atoi(record->page.url.ptr + strlen("http://h.example/page"));

    assert_true(number < PAGES && record->page.body.len > 0 && record->token.len > 20);
    assert_false(run->seen >> number & 1);
    run->seen |= 1u << number;
    run->records++;
    return 0;
}

static int read_stream(struct wb_stream *stream, enum wb_stream_format format, struct run *run)
{
    struct wb_stream_record record;
    struct wb_stream_pen *pen = NULL;
    struct wb_buf out = WB_BUF_INIT;
    int got = wb_stream_pen_new(format, true, &pen);

    while (got >= 0) {
        got = wb_stream_next(stream, &record);
        if (got <= 0)
            break;
        take(run, &record);
        size_t before = out.len;
        got = wb_stream_pen_write(pen, &record, &out);
        assert_true(got == 0 || out.len == before);
        if (got == 0)
            got = wb_stream_acknowledge(stream);
    }
    if (got == 0)
        got = wb_stream_acknowledge(stream);
    wb_stream_pen_free(pen);
    wb_buf_release(&out);
    return got;
}

static int run_stream(const char *dir, const char *order, const char *name, enum wb_stream_format format,
                      struct run *run)
{
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
    struct wb_stream_home *home = NULL;
    struct wb_stream *stream = NULL;

    *run = (struct run){0, 0};
    int err = wb_stream_spec_set(&spec, "order", wb_slice_str(order), false);
    if (err == 0 && name)
        err = wb_stream_spec_set(&spec, "name", wb_slice_str(name), false);
    if (err == 0)
        err = wb_stream_spec_set(&spec, "suffix", WB_SLICE_LIT("example"), false);
    if (err == 0)
        err = wb_stream_home_open(dir, &home);
    if (err == 0)
        err = wb_stream_open(home, &spec, false, &stream);
    if (err == 0)
        err = read_stream(stream, format, run);
    wb_stream_close(stream);
    wb_stream_home_close(home);
    wb_stream_spec_release(&spec);
    return err;
}

/*
 * Lets operations of a kind fail: each of the first ones, and a random choice of the later ones, because each run waits
 * for the disk.
 */
static void fail_each(uint64_t *chance, const char *dir, unsigned kinds, int error, const char *order, bool named)
{
    static unsigned names;
    unsigned format = 0;

    for (uint64_t n = 1;; n += 1 + chance_below(chance, n / 8 + 1)) {
        struct run run, again;
        char name[32];
        snprintf(name, sizeof name, "named-%u", names++);
        wb_fault_arm(kinds, n, error);
        int err =
            run_stream(dir, order, named ? name : NULL, (enum wb_stream_format)(format++ % WB_STREAM_FORMATS), &run);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(err == 0 || struck);
        assert_true(err < 0 || run.records == PAGES);
        if (named && err < 0) { /* what is left comes with the name, after what may be repeated */
            assert_int_equal(run_stream(dir, order, name, WB_STREAM_URLS, &again), 0);
            assert_int_equal(run.seen | again.seen, (1u << PAGES) - 1);
        }
        if (!struck)
            break;
    }
}

static void test_everything_fails_once(void **state)
{
    static const char *const orders[] = {"stored", "url", "modified"};
    uint64_t chance = test_seed();

    (void)state;
    fill(new_store("faults", WB_STORE_KEEP_NEWEST));
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        fail_each(&chance, test_path("faults"), WB_FAULT_ALLOC, ENOMEM, orders[i], false);
        fail_each(&chance, test_path("faults"), WB_FAULT_ANY & ~WB_FAULT_ALLOC, EIO, orders[i], i % 2);
    }
    fail_each(&chance, test_path("faults"), WB_FAULT_WRITE | WB_FAULT_SYNC, ENOSPC, "url", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_fails_once)};

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
