/*
 * test_tally.c - what the processes of a crawl share: bad URLs, the words for errors, and the count of requests of a
 * fetch list's run, which outlives the crawl.
 */
#include "../journal/edit_support.h"
#include "../rounds.h"
#include "crawl/tally.h"
#include "os/fault.h"

#include <errno.h>
#include <unistd.h>

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(wb_crawl_error_word(WB_FETCH_TIMEOUT), "timeout");
    assert_string_equal(wb_crawl_error_word(WB_CRAWL_STATUS), "status");
    assert_string_equal(wb_crawl_error_word(WB_CRAWL_STORE), "store");
}

/* When the list is full, more bad URLs are not remembered, and those that are stay. */
static void test_blame(void **state)
{
    struct wb_tally *tally = wb_tally_new();
    uint64_t subject = wb_tally_subject(WB_SLICE_LIT("http://a.org/"));

    (void)state;
    assert_false(wb_tally_is_bad(tally, subject));
    for (unsigned i = 0; i < 2; i++)
        wb_tally_blame(tally, subject);
    assert_int_equal(tally->bad_count, 1);
    for (uint64_t i = 0; i < 2 * WB_TALLY_BAD_MAX; i++)
        wb_tally_blame(tally, 2 * i + 2);
    assert_int_equal(tally->bad_count, WB_TALLY_BAD_MAX);
    assert_true(wb_tally_is_bad(tally, subject));
    wb_tally_free(tally);
}

/* Orders are found by site. A list that is full takes no more sites, but still changes those it has. */
static void test_orders(void **state)
{
    struct wb_tally *tally = wb_tally_new();
    struct wb_tally_orders *orders = &tally->orders;

    (void)state;
    assert_null(wb_tally_order_find(orders, 7));
    assert_int_equal(wb_tally_order_delay(orders, 7, 3000), 0);
    assert_int_equal(wb_tally_order_stop(orders, 8), 0);
    assert_int_equal(orders->changes, 2);
    assert_int_equal(wb_tally_order_find(orders, 7)->delay_ms, 3000);
    assert_false(wb_tally_order_find(orders, 7)->stopped);
    assert_true(wb_tally_order_find(orders, 8)->stopped);
    assert_null(wb_tally_order_find(orders, 9));
    for (uint64_t site = 9; orders->count < WB_TALLY_ORDERS_MAX; site++)
        assert_int_equal(wb_tally_order_stop(orders, site), 0);
    assert_int_equal(wb_tally_order_stop(orders, 1), WB_E_LIMIT);
    assert_int_equal(wb_tally_order_delay(orders, 1, 1), WB_E_LIMIT);
    assert_int_equal(wb_tally_order_delay(orders, 7, 0), 0);
    assert_int_equal(wb_tally_order_find(orders, 7)->delay_ms, 0);
    assert_int_equal(orders->count, WB_TALLY_ORDERS_MAX);
    wb_tally_free(tally);
}

static void test_limit(void **state)
{
    struct wb_tally *tally = wb_tally_new();
    struct wb_file none = WB_FILE_INIT;

    (void)state;
    assert_int_equal(wb_tally_count_fetch(tally, 2, &none), 1);
    assert_int_equal(wb_tally_count_fetch(tally, 2, &none), 1);
    assert_int_equal(wb_tally_count_fetch(tally, 2, &none), 0);
    assert_int_equal(tally->fetches, 2);
    assert_int_equal(wb_tally_count_fetch(tally, 0, &none), 1); /* no limit */
    wb_tally_free(tally);
}

static bool is_there(const char *dir, const char *name)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* What one crawl has counted is there for the next one, until another run is counted. */
static void test_file(void **state)
{
    const char *dir = new_dir();
    struct wb_tally *tally = wb_tally_new();
    struct wb_file file, other;
    uint64_t count;

    (void)state;
    assert_int_equal(wb_tally_open_fetches(dir, 7, &file, &count), 0);
    assert_int_equal(count, 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(wb_tally_count_fetch(tally, 0, &file), 1);
    wb_file_close(&file);
    assert_int_equal(wb_tally_open_fetches(dir, 7, &file, &count), 0);
    assert_int_equal(count, 5);
    /* A process took a number and died before it could write its byte: the next number counts for both. */
    atomic_fetch_add(&tally->fetches, 1);
    assert_int_equal(wb_tally_count_fetch(tally, 0, &file), 1);
    wb_fault_arm(WB_FAULT_WRITE, 1, ENOSPC);
    assert_int_equal(wb_tally_count_fetch(tally, 0, &file), WB_E_IO);
    wb_fault_disarm();
    /* While a crawl is at work its count stays, whatever else begins. */
    assert_int_equal(wb_tally_open_fetches(dir, 8, &other, &count), 0);
    assert_true(count == 0 && is_there(dir, "fetches-7") && is_there(dir, "fetches-8"));
    wb_file_close(&other);
    wb_file_close(&file);
    assert_int_equal(wb_tally_open_fetches(dir, 7, &file, &count), 0);
    assert_true(count == 7 && !is_there(dir, "fetches-8"));
    wb_file_close(&file);
    assert_int_equal(wb_tally_open_fetches(dir, 9, &file, &count), 0);
    assert_true(count == 0 && !is_there(dir, "fetches-7") && is_there(dir, "fetches-9"));
    wb_file_close(&file);
    wb_tally_free(tally);
}

enum { LIST_ROUNDS = 4000 };

/* Crawls of one list, one after the other. Says the number of each one whose count was there while it had it. */
static void crawl_list(void *context, int to)
{
    const char *dir = context;
    uint32_t rounds = test_rounds(LIST_ROUNDS);
    struct wb_file file;
    uint64_t count;

    for (uint32_t i = 0; i < rounds; i++) {
        if (wb_tally_open_fetches(dir, getpid(), &file, &count) != 0 || wb_file_unlinked(&file))
            _exit(1);
        wb_file_close(&file);
        if (write(to, &i, sizeof i) != sizeof i)
            _exit(1);
    }
    _exit(0);
}

/* Crawls of several lists remove the counts of each other's ends, and not those that have just been made. */
static void test_two_lists(void **state)
{
    const char *dir = new_dir();

    (void)state;
    run_three(crawl_list, dir, test_rounds(LIST_ROUNDS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_blame), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_two_lists),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
