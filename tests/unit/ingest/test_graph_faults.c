/*
 * test_graph_faults.c - loads and writes graphs and rows while one operation after the other fails.
 *
 * Whatever fails, it is reported; webdb is as it was or as it should be; files are complete or do not exist.
 */
#include "../rounds.h"
#include "base/error.h"
#include "ingest/ingest.h"
#include "os/fault.h"
#include "os/path.h"
#include "store/store.h"
#include "ingest_support.h"

#include <errno.h>
#include <unistd.h>

#define NTH_MAX 20000
#define VERTICES 4
#define EDGES 5

static uint64_t chance;

static void make_repo(void)
{
    remove_tree(repo); /* if there is one */
    assert_int_equal(wb_store_create(repo, NULL), 0);
}

static int set_up(void **state)
{
    set_up_folder(state);
    put("v", "0\tcom.a\n1\tcom.b\n2\thttp://a.com/x\n3\tcom.c\n");
    put("e", "0\t1\n1\t0\n0\t2\n2\t3\n3\t3\n");
    put("p", "{\"url\":\"http://a.com/\",\"md5\":\"00000000000000000000000000000001\",\"flags\":[\"wanted\"],"
             "\"visits\":3,\"changes\":1,\"first_seen\":\"2026-01-01\",\"last_seen\":\"2026-01-05\"}\n"
             "{\"url\":\"http://b.com/\"}\n");
    put("l", "{\"from_md5\":\"00000000000000000000000000000001\",\"to\":\"http://b.com/\",\"anchor\":\"b\"}\n");
    make_repo();
    return 0;
}

/* ---- the three jobs ---------------------------------------------------------------------------- */

static const struct wb_ingest_sink silent;

static int import_graph(void)
{
    struct wb_graph_import_options options = {.dir = repo, .vertices = test_path("v"), .edges = test_path("e"),
                                              .memory_bytes = WB_INGEST_MEMORY_BYTES};
    struct wb_ingest_load loaded;
    int err = wb_graph_import(&options, &silent, &loaded);

    return err == 0 && loaded.unfinished ? WB_E_IO : err;
}

static int load_rows(void)
{
    struct wb_rows_import_options options = {.dir = repo, .pages = test_path("p"), .links = test_path("l"),
                                             .memory_bytes = WB_INGEST_MEMORY_BYTES};
    struct wb_ingest_load loaded;
    int err = wb_rows_import(&options, &silent, &loaded);

    return err == 0 && loaded.unfinished ? WB_E_IO : err;
}

static int export_graph(void)
{
    struct wb_graph_export_options options = {.dir = repo, .vertices = test_path("out.v.gz"),
                                              .edges = test_path("out.e"),
                                              .memory_bytes = WB_INGEST_MEMORY_BYTES};
    struct wb_graph_export export;

    return wb_graph_export(&options, &export);
}

static void on_problem(void *context, const char *path, uint64_t offset, const char *message)
{
    (void)context;
    print_message("# %s at %llu: %s\n", path, (unsigned long long)offset, message);
    fail();
}

static struct wb_webdb_count sound_webdb(void)
{
    struct wb_webdb_count count = {0};

    assert_int_equal(wb_webdb_check(repo, on_problem, NULL, &count), 0);
    return count;
}

/* Early operations one by one, later ones in strides. */
static uint64_t next(uint64_t nth)
{
    return nth + test_stride(&chance) + nth / 8;
}

/* Each time, the first load is into a repository without a webdb. */
static void load_with_faults(int (*load)(void), uint64_t pages, uint64_t links, unsigned kinds, int error)
{
    bool struck = true;

    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        make_repo();
        wb_fault_arm(kinds, nth, error);
        int result = load();
        struck = wb_fault_struck();
        wb_fault_disarm();
        struct wb_webdb_count count = sound_webdb();
        if (count.pages)
            assert_true(count.pages == pages && count.links == links);
        assert_true(count.pages || result < 0);
        if (!struck)
            assert_int_equal(result, 0);
        assert_int_equal(load(), 0);
        count = sound_webdb();
        assert_int_equal(count.pages, pages);
        assert_int_equal(count.links, links);
    }
    assert_false(struck);
}

static void test_graph_in_files_fail(void **state)
{
    (void)state;
    load_with_faults(import_graph, VERTICES, EDGES, WB_FAULT_ANY & ~(unsigned)WB_FAULT_ALLOC, EIO);
}

static void test_graph_in_memory_fails(void **state)
{
    (void)state;
    load_with_faults(import_graph, VERTICES, EDGES, WB_FAULT_ALLOC, ENOMEM);
}

static void test_rows_in_files_fail(void **state)
{
    (void)state;
    load_with_faults(load_rows, 2, 1, WB_FAULT_ANY & ~(unsigned)WB_FAULT_ALLOC, ENOSPC);
}

static void test_rows_in_memory_fails(void **state)
{
    (void)state;
    load_with_faults(load_rows, 2, 1, WB_FAULT_ALLOC, ENOMEM);
}

static void export_with_faults(unsigned kinds, int error)
{
    bool struck = true;

    assert_int_equal(import_graph(), 0);
    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        unlink(test_path("out.v.gz"));
        unlink(test_path("out.e"));
        wb_fault_arm(kinds, nth, error);
        int result = export_graph();
        struck = wb_fault_struck();
        wb_fault_disarm();
        if (result == 0) {
            assert_int_equal(wb_path_kind(test_path("out.v.gz")), WB_PATH_FILE);
            assert_int_equal(wb_path_kind(test_path("out.e")), WB_PATH_FILE);
        }
        assert_int_equal(wb_path_kind(test_path("out.v.gz.tmp")), WB_PATH_NONE);
        assert_int_equal(wb_path_kind(test_path("out.e.tmp")), WB_PATH_NONE);
        if (!struck)
            assert_int_equal(result, 0);
    }
    assert_false(struck);
}

static void test_graph_out_files_fail(void **state)
{
    (void)state;
    export_with_faults(WB_FAULT_ANY & ~(unsigned)WB_FAULT_ALLOC, EIO);
}

static void test_graph_out_memory_fails(void **state)
{
    (void)state;
    export_with_faults(WB_FAULT_ALLOC, ENOMEM);
}

#define FAULT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(test_graph_in_files_fail),
        FAULT_TEST(test_graph_in_memory_fails),
        FAULT_TEST(test_rows_in_files_fail),
        FAULT_TEST(test_rows_in_memory_fails),
        FAULT_TEST(test_graph_out_files_fail),
        FAULT_TEST(test_graph_out_memory_fails),
    };

    chance = test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
