/*
 * test_slow_nodes.c - stores of all designs with several nodes that are slow (slow_support.h): what they store, compact
 * and move between nodes is what is read later. test_model runs in the same way (WEBBASE_TEST_SLOW).
 */
#include "store_support.h"
#include "slow_support.h"
#include "move/move.h"
#include "store/store_nodes.h"

enum { PAGES = 120, NODES = 3 };

static struct spec page(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 5,
                         .number = number,
                         .time_ms = time_ms,
                         .size = number % 17 == 3 ? 30000 : 700,
                         .variant = number};
}

static bool is_gone(uint32_t number)
{
    return number % 10 == 7;
}

static bool is_changed(uint32_t number)
{
    return number % 4 == 1;
}

static void put_pages(struct wb_store *store, int64_t time_ms)
{
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page(i, time_ms);
        if (time_ms == 1000 || is_changed(i))
            must_ok(put_spec(store, &spec));
        if (time_ms > 1000 && is_gone(i))
            must_ok(remove_spec(store, &spec, true));
    }
    commit_store(store);
}

/* Every page is there by get and by scan, and none that should not be. */
static void check_pages(const char *dir)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct sights seen = {0};
    size_t there = 0;

    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page(i, is_changed(i) ? 2000 : 1000);
        struct wb_buf memory = WB_BUF_INIT;
        struct wb_page found;
        if (is_gone(i))
            assert_int_equal(wb_store_get(store, spec_id(&spec), &found, &memory), WB_E_NOTFOUND);
        else
            must(holds_spec(store, &spec));
        there += !is_gone(i);
        wb_buf_release(&memory);
    }
    scan_all(store, &(struct wb_store_scan_options){0}, WITHOUT_EPOCH, &seen);
    assert_int_equal(seen.count, there);
    sights_release(&seen);
    wb_store_close(store);
    verify_clean(dir);
}

static int sum_used(void *context, const struct wb_store_node *node)
{
    must(node->state == WB_STORE_NODE_IDLE && node->capacity > node->used);
    *(uint64_t *)context += node->used;
    return 0;
}

static void run_design(const char *text)
{
    struct wb_store_options options = {.nodes = {.count = NODES}};
    struct wb_move_compact_counts compact;
    char dir[DIR_MAX], beside[DIR_MAX], added[DIR_MAX];
    struct wb_store_stat stat = {0};
    uint64_t used = 0;
    uint32_t number;

    must_ok(wb_design_parse(wb_slice_str(text), &options.design));
    test_dir(dir);
    test_dir(beside);
    path_in(beside, "disk", added);
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 1000);
    must(seal_store(store) == 1);
    put_pages(store, 2000);
    must_ok(wb_store_drop(store, 1));
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact));
    must(compact.files > 0 && compact.damaged == 0 && compact.skipped == 0);
    wb_store_close(store);
    check_pages(dir);
    store = open_store(dir, WB_STORE_WRITE);
    must_ok(wb_move_node_add(store, added, false, NULL, NULL, &number));
    must_ok(wb_move_node_remove(store, 2, NULL, NULL));
    wb_store_close(store);
    check_pages(dir);
    store = open_store(dir, WB_STORE_READ);
    must_ok(wb_store_stat(store, &stat));
    must_ok(wb_store_node_each(store, sum_used, &used));
    must(stat.nodes == NODES && used > 0 && stat.bytes_stored >= used);
    wb_store_close(store);
}

static void test_designs(void **state)
{
    static const char *const designs[] = {"Incr[hash,log]",           "Incr[uniform,log]", "Incr[hash,hashed-log]",
                                          "Incr[uniform,hashed-log]", "Incr[hash,hash]",   "Incr[uniform,hash]"};

    (void)state;
    use_small_sizes(9000);
    for (size_t i = 0; i < COUNT(designs); i++) {
        use_slow_nodes();
        run_design(designs[i]);
        struct slow_counts counts = slow_counted();
        must(counts.opens > 0 && counts.reads > 0 && counts.writes > 0 && counts.syncs > 0);
        use_fast_nodes();
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_designs)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
