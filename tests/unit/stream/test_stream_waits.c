/*
 * test_stream_waits.c - streams of a batch design while a transfer is under way, for a home that must not wait: opening
 * one is refused, and one that is open goes on where it was when the transfer is over. Each page comes exactly once.
 */
#include "../store/store_support.h"
#include "move/move.h"
#include "store/batch/batched.h"
#include "stream/stream.h"

enum { SITES = 3, NUMBERS = 40, PAGES = SITES * NUMBERS };

static char dir[DIR_MAX];
static struct wb_stream_home *home;
static struct wb_batched_gate gate;
static bool shut;

static void make_repository(void)
{
    struct wb_store_options options = {.history = {WB_STORE_KEEP_ALL, 0}};
    struct wb_move_transfer_counts counts;

    test_dir(dir);
    must_ok(wb_design_parse(WB_SLICE_LIT("Batch[U(hash,log),R(hash,log)]"), &options.design));
    must_ok(wb_store_create(dir, &options));
    use_small_sizes(64 << 10);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t n = 0; n < PAGES; n++) {
        struct spec spec = {.site = n % SITES, .number = n, .time_ms = 1000, .size = 700};
        must_ok(put_spec(store, &spec));
        if (n % 10 == 9)
            commit_store(store);
    }
    must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
    must(counts.added == PAGES);
    wb_store_close(store);
    must_ok(wb_stream_home_open(dir, &home));
    wb_stream_home_hasten(home);
}

static void begin_transfer(void)
{
    must_ok(wb_batched_gate_shut(dir, &gate));
    shut = true;
}

static void end_transfer(void)
{
    wb_batched_gate_leave(&gate);
    shut = false;
}

static int clean_up(void **state)
{
    (void)state;
    if (shut)
        end_transfer();
    wb_stream_home_close(home);
    home = NULL;
    use_usual_sizes();
    return 0;
}

static struct wb_stream_spec latest(void)
{
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;

    spec.state = WB_STREAM_LATEST;
    return spec;
}

static void must_be_refused(const struct wb_stream_spec *spec)
{
    struct wb_stream *stream = NULL;

    must(wb_stream_open(home, spec, true, &stream) == WB_E_BUSY);
    must(stream == NULL && strstr(wb_error_message(), "transfer") != NULL);
}

static void test_records(void **state)
{
    struct wb_stream_spec spec = latest(), ordered = latest();
    struct wb_stream *stream = NULL;
    struct wb_stream_record record;
    uint64_t count = 0;
    int got;

    (void)state;
    make_repository();
    for (int share = 0; share < 2; share++) {
        must_ok(wb_stream_open(home, &spec, share, &stream));
        begin_transfer();
        ordered.order = WB_STREAM_URL;
        must_be_refused(&spec);
        must_be_refused(&ordered);
        for (unsigned i = 0; i < 3; i++) {
            must(wb_stream_next(stream, &record) == WB_E_BUSY);
            must(wb_stream_waits(stream));
        }
        end_transfer();
        for (count = 0; (got = wb_stream_next(stream, &record)) == 1; count++)
            must(record.position == count && !wb_stream_waits(stream));
        must(got == 0 && count == PAGES);
        wb_stream_close(stream);
        must_ok(wb_stream_open(home, &ordered, share, &stream)); /* whose list was made before */
        begin_transfer();
        for (count = 0; (got = wb_stream_next(stream, &record)) == 1; count++)
            continue;
        must(got == 0 && count == PAGES);
        end_transfer();
        wb_stream_close(stream);
    }
}

static void test_bytes(void **state)
{
    struct wb_stream_spec spec = latest();
    struct wb_stream *stream = NULL;
    struct wb_buf out = WB_BUF_INIT;
    struct wb_stream_info info;
    int got;

    (void)state;
    make_repository();
    must_ok(wb_stream_open(home, &spec, true, &stream));
    must(wb_stream_next_wire(stream, &out) == 1); /* the header needs no scan */
    size_t header = out.len;
    begin_transfer();
    must(wb_stream_next_wire(stream, &out) == WB_E_BUSY && wb_stream_waits(stream) && out.len == header);
    end_transfer();
    while ((got = wb_stream_next_wire(stream, &out)) == 1)
        continue;
    wb_stream_info(stream, &info);
    must(got == 0 && out.len > header && info.delivered == PAGES);
    wb_stream_close(stream);
    wb_buf_release(&out);
}

/* A worker of a shared stream is told to come again. */
static void test_deals(void **state)
{
    struct wb_stream_spec spec = latest();
    struct wb_deal_worker *worker = NULL;
    struct wb_stream_record record;
    unsigned count = 0;
    int got;

    (void)state;
    make_repository();
    spec.join = WB_SLICE_LIT("shared");
    must_ok(wb_deal_join(home, &spec, &worker));
    begin_transfer();
    must(wb_deal_next(worker, &record) == WB_DEAL_LATER);
    end_transfer();
    while ((got = wb_deal_next(worker, &record)) == 1) {
        count++;
        must_ok(wb_deal_acknowledge(worker, record.position));
    }
    must(got == 0 && count == PAGES);
    wb_deal_leave(worker);
}

/* The store itself: a scan that must not wait, and one that may. */
static void test_scans(void **state)
{
    struct wb_store_scan_options options = {.at_once = true};
    struct wb_store_scan *scan = NULL, *other = NULL;

    (void)state;
    make_repository();
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    must_ok(wb_store_scan_ready(store));
    begin_transfer();
    must(wb_store_scan_ready(store) == WB_E_BUSY);
    must(wb_store_scan_open(store, &options, &scan) == WB_E_BUSY && scan == NULL);
    end_transfer();
    must_ok(wb_store_scan_ready(store));
    must_ok(wb_store_scan_open(store, &options, &scan));
    begin_transfer(); /* which now waits for this process: more scans may begin, but no new work should be taken on */
    must(wb_store_scan_ready(store) == WB_E_BUSY);
    must_ok(wb_store_scan_open(store, &options, &other));
    wb_store_scan_close(other);
    wb_store_scan_close(scan);
    must(wb_store_scan_ready(store) == WB_E_BUSY);
    end_transfer();
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_records, clean_up),
        cmocka_unit_test_teardown(test_bytes, clean_up),
        cmocka_unit_test_teardown(test_deals, clean_up),
        cmocka_unit_test_teardown(test_scans, clean_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
