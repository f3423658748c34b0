/* test_s3_repeat.c - what fails for a passing reason is repeated, for as long as was asked for, and not more often. */
#include "s3_support.h"

#include "../children.h"
#include "../must.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/stop.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static struct stand stand;

static int begin(void **state)
{
    (void)state;
    stand_start(&stand);
    pauses_skip();
    return 0;
}

static int end(void **state)
{
    (void)state;
    pauses_take_time();
    stand_stop(&stand);
    return 0;
}

/* Each request once, with the trouble before it. Returns how many attempts failed. */
static uint64_t use_in_trouble(const struct act *act)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");
    struct wb_object_counts counts;
    uint64_t size;

    stand_next(&stand, *act);
    ok(wb_object_put(store, "x", wb_slice_str("some bytes")));
    stand_next(&stand, *act);
    expect_object(store, "x", "some bytes");
    stand_next(&stand, *act);
    expect_range(store, "x", 5, 3, "byt");
    stand_next(&stand, *act);
    ok(wb_object_size(store, "x", &size));
    assert_int_equal(size, 10);
    stand_next(&stand, *act);
    expect_list(store, "", "x 10\n");
    stand_next(&stand, *act);
    ok(wb_object_delete(store, "x"));
    assert_int_equal(stand_count(&stand), 0);
    wb_object_counts(store, &counts);
    assert_int_equal(counts.puts + counts.gets + counts.sizes + counts.lists + counts.deletes, 6);
    wb_object_close(store);
    assert_int_equal(stand.bad, 0);
    return counts.repeated;
}

static void test_statuses(void **state)
{
    static const struct act acts[] = {
        {ACT_STATUS, 503, "SlowDown", NULL},
        {ACT_STATUS, 500, "InternalError", NULL},
        {ACT_STATUS, 502, "", NULL},
        {ACT_STATUS, 504, "", NULL},
        {ACT_STATUS, 429, "TooManyRequests", NULL},
        {ACT_STATUS, 408, "", NULL},
        {ACT_STATUS, 400, "RequestTimeout", NULL},
        {ACT_STATUS, 400, "BadDigest", NULL},
        {ACT_STATUS, 409, "OperationAborted", NULL},
        {ACT_STATUS, 400, "XAmzContentSHA256Mismatch", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(acts); i++) {
        /* A HEAD that is refused with 4xx is explained by a GET, which succeeds. */
        bool explained = acts[i].status < 500 && acts[i].status != 408 && acts[i].status != 429;
        assert_int_equal(use_in_trouble(&acts[i]), explained ? 5 : 6);
    }
}

/* libcurl repeats what fails on a connection that was used before; these are repeated by it or by us. */
static void test_connections(void **state)
{
    static const struct act acts[] = {{.kind = ACT_RESET}, {.kind = ACT_LOST}, {.kind = ACT_CUT}};

    (void)state;
    for (size_t i = 0; i < COUNT(acts); i++)
        assert_true(use_in_trouble(&acts[i]) >= 1);
}

/* An answer that was lost, and all the connections with it: the same bytes are put again. */
static void test_lost(void **state)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");

    (void)state;
    for (int i = 0; i < 4; i++)
        stand_next(&stand, (struct act){.kind = ACT_LOST});
    ok(wb_object_put(store, "x", wb_slice_str("bytes")));
    assert_true(stand_has(&stand, "p/x", "bytes"));
    assert_int_equal(stand_requests(&stand), 5);
    wb_object_close(store);
}

static void expect_given_up(const char *reason)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");
    struct wb_object_counts counts;
    struct wb_buf bytes;
    unsigned before = stand_requests(&stand);

    int64_t begun = wb_clock_mono_ns();
    assert_int_equal(wb_object_get(store, "x", 10, &bytes), WB_E_DOWN);
    int64_t took_ms = (wb_clock_mono_ns() - begun) / 1000000;
    assert_non_null(strstr(wb_error_message(), "s3://bucket/p does not answer"));
    assert_non_null(strstr(wb_error_message(), "127.0.0.1"));
    if (!strstr(wb_error_message(), reason))
        fail_msg("no '%s' in '%s'", reason, wb_error_message());
    assert_null(strstr(wb_error_message(), STAND_SECRET));
    wb_object_counts(store, &counts);
    assert_true(counts.repeated >= 2 && counts.repeated <= 15);
    assert_true(stand_requests(&stand) - before <= 16); /* libcurl may have repeated the first one */
    assert_true(took_ms >= 29000);                      /* by the clock, which pauses move */
    wb_object_close(store);
}

static void test_given_up(void **state)
{
    (void)state;
    stand.rest = (struct act){ACT_STATUS, 503, "SlowDown", NULL};
    expect_given_up("503 SlowDown");
    stand.rest = (struct act){.kind = ACT_RESET};
    expect_given_up("tried");
}

static void test_nobody_listens(void **state)
{
    struct wb_object_options options = {.patience_ms = 5000};
    struct wb_object_store *store;
    struct stand none = {.port = 1};

    (void)state;
    stand_environment(&none);
    ok(wb_object_open("s3://bucket/p", &options, &store));
    assert_int_equal(wb_object_put(store, "x", wb_slice_str("y")), WB_E_DOWN);
    assert_non_null(strstr(wb_error_message(), "127.0.0.1:1"));
    wb_object_close(store);
}

/* A store that says nothing: the clock decides, and there is a limit to it. */
static void test_silence(void **state)
{
    struct wb_object_store *store;
    struct wb_object_counts counts;
    struct wb_buf bytes;

    (void)state;
    store = stand_open(&stand, "s3://bucket/p");
    stand.clock_shift_ms = 20500;
    ok(wb_object_put(store, "x", wb_slice_str("bytes")));
    stand_next(&stand, (struct act){.kind = ACT_SILENT});
    expect_object(store, "x", "bytes");
    wb_object_counts(store, &counts);
    assert_int_equal(counts.repeated, 1);
    stand.rest = (struct act){.kind = ACT_SILENT};
    assert_int_equal(wb_object_get(store, "x", 10, &bytes), WB_E_DOWN);
    assert_non_null(strstr(wb_error_message(), "silent"));
    assert_int_equal(stand_requests(&stand), 5);
    wb_object_close(store);
}

/* ---- stopping ---------------------------------------------------------------------------------------------- */

static int stop_in_child(void *context)
{
    bool stoppable = *(bool *)context;
    struct wb_object_options options = {.stoppable = stoppable, .patience_ms = stoppable ? INT64_C(1) << 40 : 1000};
    struct wb_object_store *store;
    struct stand none = {.port = 1};

    stand_environment(&none);
    wb_stop_on_signals();
    raise(SIGTERM);
    must_ok(wb_object_open("s3://bucket/p", &options, &store));
    int err = wb_object_put(store, "x", wb_slice_str("y"));
    must(err == (stoppable ? WB_E_STOPPED : WB_E_DOWN));
    must(strstr(wb_error_message(), "s3://bucket/p") != NULL);
    struct wb_object_counts counts;
    wb_object_counts(store, &counts);
    must(!stoppable || counts.repeated == 1);
    wb_object_close(store);
    return 0;
}

static void test_stop(void **state)
{
    bool stoppable[] = {true, false};

    (void)state;
    for (size_t i = 0; i < COUNT(stoppable); i++)
        assert_int_equal(run_child(stop_in_child, &stoppable[i]), 0);
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* Every allocation of a request fails once, libcurl's too. */
static void test_memory(void **state)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");
    unsigned refused = 0;

    (void)state;
    stand.trusting = true;
    ok(wb_object_put(store, "x", wb_slice_str("bytes")));
    for (uint64_t n = 1;; n++) {
        struct wb_buf bytes, lines = WB_BUF_INIT;
        uint64_t size;
        wb_fault_arm(WB_FAULT_ALLOC, n, ENOMEM);
        int err = wb_object_put(store, "x", wb_slice_str("bytes"));
        if (err == 0)
            err = wb_object_get(store, "x", 10, &bytes);
        if (err == 0) {
            expect(wb_buf_slice(&bytes), "bytes");
            wb_buf_release(&bytes);
            err = wb_object_size(store, "x", &size);
        }
        if (err == 0)
            err = wb_object_list(store, "", append_entry, &lines);
        wb_fault_disarm();
        if (err == 0)
            expect(wb_buf_slice(&lines), "x 5\n");
        else if (err != WB_E_NOMEM)
            fail_msg("allocation %llu: %d %s", (unsigned long long)n, err, wb_error_message());
        wb_buf_release(&lines);
        if (!wb_fault_struck())
            break;
        refused += err < 0;
    }
    assert_true(refused > 20);
    wb_object_close(store);
}

static void test_open_memory(void **state)
{
    unsigned refused = 0;

    (void)state;
    stand_environment(&stand);
    for (uint64_t n = 1;; n++) {
        struct wb_object_store *store;
        wb_fault_arm(WB_FAULT_ALLOC, n, ENOMEM);
        int err = wb_object_open("s3://bucket/p", NULL, &store);
        wb_fault_disarm();
        wb_object_close(store);
        if (!wb_fault_struck()) {
            ok(err);
            break;
        }
        assert_int_equal(err, WB_E_NOMEM);
        refused++;
    }
    assert_true(refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop), /* before there are threads, because it forks */
        cmocka_unit_test_setup_teardown(test_statuses, begin, end),
        cmocka_unit_test_setup_teardown(test_connections, begin, end),
        cmocka_unit_test_setup_teardown(test_lost, begin, end),
        cmocka_unit_test_setup_teardown(test_given_up, begin, end),
        cmocka_unit_test_setup_teardown(test_nobody_listens, begin, end),
        cmocka_unit_test_setup_teardown(test_silence, begin, end),
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_open_memory, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
