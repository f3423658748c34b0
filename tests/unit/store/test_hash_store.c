/*
 * test_hash_store.c - the organisation hash: what a get costs, records that wait in a file, pages that are too large
 * for their bucket, commits that fail at every step, and nodes that come and go before a commit.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/fault.h"
#include "pagefile/hash_store.h"
#include "store/store_nodes.h"

#include <errno.h>
#include <unistd.h>

static char dir[DIR_MAX];

static struct wb_store *new_store(void)
{
    const struct wb_store_options options = {.design.read.organisation = WB_ORGANISATION_HASH};

    test_dir(dir);
    must_ok(wb_store_create(dir, &options));
    return open_store(dir, WB_STORE_WRITE);
}

static struct spec page(uint32_t number, uint32_t size)
{
    return (struct spec){.site = number % 5, .number = number, .time_ms = 1000, .size = size, .variant = number};
}

static uint64_t count_reads(struct wb_store *store, struct wb_pageid id)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page found;

    wb_fault_arm(WB_FAULT_READ, UINT64_MAX, EIO);
    int err = wb_store_get(store, id, &found, &memory);
    uint64_t reads = wb_fault_count();
    wb_fault_disarm();
    must(err == 0 || err == WB_E_NOTFOUND);
    wb_buf_release(&memory);
    return reads;
}

/*
 * A get reads one bucket. Beside that, it looks at the first bytes of the catalog's root record, whether another
 * process has committed since; it reads no page of the catalog.
 */
static void test_one_read(void **state)
{
    struct wb_store *store = new_store();
    enum { PAGES = 400 };

    (void)state;
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page(i, 3000);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    wb_store_close(store);
    store = open_store(dir, WB_STORE_READ);
    struct wb_repo *repo = wb_repo_of(store);
    struct spec first = page(0, 3000);
    must(holds_spec(store, &first)); /* opens the files */
    must(repo->files.hash->files.rows.count == 1 && repo->files.hash->files.rows.items[0].map_count > 2);
    unsigned longer = 0;
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page(i, 3000);
        uint64_t reads = count_reads(store, spec_id(&spec));
        unsigned overflows = repo->files.hash->bucket.overflow_bytes > 0;
        assert_int_equal(reads, 1 + 1 + overflows);
        longer += overflows;
    }
    assert_true(longer < PAGES / 10);
    struct spec absent = page(PAGES, 10);
    assert_true(count_reads(store, spec_id(&absent)) <= 3);
    wb_store_close(store);
}

/* Records beyond a bound wait in a file without a name. They can be read before the commit, and are there after it. */
static void test_staging(void **state)
{
    struct wb_store *store;
    char staging[DIR_MAX];

    (void)state;
    use_small_sizes(9000);
    store = new_store();
    for (uint32_t i = 0; i < 60; i++) {
        struct spec spec = page(i, i % 9 == 4 ? 60000 : 4000);
        must_ok(put_spec(store, &spec));
    }
    must(wb_repo_of(store)->files.hash->staged_bytes > wb_pagefile_sizes.pending_bytes);
    path_in(dir, WB_PAGEFILE_STAGING_NAME, staging);
    assert_int_equal(access(staging, F_OK), -1);
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 60; i++) {
            struct spec spec = page(i, i % 9 == 4 ? 60000 : 4000);
            must(holds_spec(store, &spec));
        }
        if (round == 0)
            commit_store(store);
    }
    assert_int_equal(wb_repo_of(store)->files.hash->staged_bytes, 0);
    wb_store_close(store);
    verify_clean(dir);
    use_usual_sizes();
}

/* Commits that fail after buckets were changed in place: all is as before, in this handle, in others, and after a
 * repair. */
static void test_failed_sweeps(void **state)
{
    struct wb_store *store, *other;

    (void)state;
    use_small_sizes(9000);
    store = new_store();
    for (uint32_t i = 0; i < 80; i++) {
        struct spec spec = page(i, 1500);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    other = open_store(dir, WB_STORE_READ);
    for (uint64_t nth = 1;; nth++) {
        struct spec changed = page(7, 900), added = page(100 + (uint32_t)nth, 700), old = page(7, 1500);
        changed.time_ms = 2000;
        must_ok(put_spec(store, &changed));
        must_ok(put_spec(store, &added));
        wb_fault_arm(WB_FAULT_SYNC, nth, EIO);
        int err = wb_store_commit(store, &(struct wb_store_commit_counts){0});
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        if (!struck) {
            must_ok(err);
            must(holds_spec(store, &changed) && holds_spec(other, &changed) && holds_spec(other, &added));
            break;
        }
        bool unknown = err == WB_E_IO && strstr(wb_error_message(), "not known");
        must(err < 0);
        if (unknown)
            break; /* the last sync of the catalog: the outcome is decided by what is there */
        must(holds_spec(store, &old) && holds_spec(other, &old));
        struct wb_buf memory = WB_BUF_INIT;
        struct wb_page found;
        assert_int_equal(wb_store_get(other, spec_id(&added), &found, &memory), WB_E_NOTFOUND);
        wb_buf_release(&memory);
        verify_clean(dir);
    }
    wb_store_close(other);
    wb_store_close(store);
    wb_store_close(open_store(dir, WB_STORE_WRITE));
    must(verify_clean(dir).notes == 0);
    use_usual_sizes();
}

/* After a takedown and a compaction, no file has the bytes. */
static void test_takedown(void **state)
{
    struct wb_move_compact_counts compact;
    struct wb_store *store;
    unsigned seen = 0;

    (void)state;
    use_small_sizes(9000);
    for (uint32_t size = 600; size < 40000; size *= 8) { /* in its bucket, in an overflow, in an extent of its own */
        struct spec secret = page(3, size);
        secret.variant = 5; /* random bytes, which zstd stores as they are */
        store = new_store();
        must_ok(put_spec(store, &secret));
        for (uint32_t i = 10; i < 40; i++) {
            struct spec spec = page(i, 800);
            must_ok(put_spec(store, &spec));
        }
        commit_store(store);
        seen += files_with(dir, &secret); /* 0 if its bytes are partly in the bucket, and partly in its overflow */
        must_ok(remove_spec(store, &secret, true));
        commit_store(store);
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact));
        wb_store_close(store);
        wb_store_close(open_store(dir, WB_STORE_WRITE));
        assert_int_equal(files_with(dir, &secret), 0);
        verify_clean(dir);
    }
    assert_true(seen > 0);
    use_usual_sizes();
}

/* A writer has pages that are not committed while another one adds a node, or removes one with its directory. */
static void test_nodes_that_change(void **state)
{
    char disks[DIR_MAX], path[DIR_MAX];
    uint32_t number, round = 0;
    enum { PAGES = 60 };
    struct wb_store *store = new_store();

    (void)state;
    test_dir(disks);
    path_in(disks, "node", path);
    for (; round < 4; round++) {
        struct wb_store *other = open_store(dir, WB_STORE_WRITE);
        for (uint32_t i = 0; i < PAGES; i++) {
            struct spec spec = page(round * PAGES / 2 + i, 2000);
            spec.time_ms += round;
            spec.variant += round;
            must_ok(put_spec(store, &spec));
        }
        if (round % 2 == 0)
            must_ok(wb_move_node_add(other, path, false, NULL, NULL, &number));
        else
            must_ok(wb_move_node_remove(other, number, NULL, NULL));
        wb_store_close(other);
        commit_store(store);
        for (uint32_t i = 0; i < PAGES; i++) {
            struct spec spec = page(round * PAGES / 2 + i, 2000);
            spec.time_ms += round;
            spec.variant += round;
            assert_true(holds_spec(store, &spec));
        }
    }
    wb_store_close(store);
    verify_clean(dir);
}

enum { SCANNED = 60 };

/* Reads on in the order of ids; returns what the last call returned. */
static int read_on(struct wb_store_scan *scan, struct wb_pageid *last, unsigned *came)
{
    struct wb_page found;
    int got;

    while ((got = wb_store_scan_next(scan, &found)) > 0) {
        must(*came == 0 || wb_pageid_compare(*last, found.id) < 0);
        *last = found.id;
        (*came)++;
    }
    return got;
}

/* How many pages up to this one can be read, if others are on a node that is down. */
static unsigned count_up_to(struct wb_pageid last)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ); /* one that has no file of the node open */
    unsigned count = 0, away = 0;

    for (uint32_t i = 0; i < SCANNED; i++) {
        struct spec spec = page(i, 500);
        struct wb_buf memory = WB_BUF_INIT;
        struct wb_page found;
        int err = wb_store_get(store, spec_id(&spec), &found, &memory);
        must(err == 0 || err == WB_E_DOWN);
        count += err == 0 && wb_pageid_compare(spec_id(&spec), last) <= 0;
        away += err < 0;
        wb_buf_release(&memory);
    }
    must(away > 0);
    wb_store_close(store);
    return count;
}

/* A scan while a node is down, and after its return. Returns how many pages came before. */
static unsigned scan_without(const char *name)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct wb_pageid last = {0, 0};
    struct wb_store_scan *scan;
    char node[DIR_MAX], away[DIR_MAX];
    unsigned came = 0;

    path_in(dir, name, node);
    path_in(dir, "away", away);
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    must(rename(node, away) == 0);
    assert_int_equal(read_on(scan, &last, &came), WB_E_DOWN);
    must(strstr(wb_error_message(), name));
    unsigned before = came;
    must(came == 0 || count_up_to(last) == came);
    must(rename(away, node) == 0);
    must_ok(read_on(scan, &last, &came));
    assert_int_equal(came, SCANNED);
    wb_store_scan_close(scan);
    wb_store_close(store);
    return before;
}

/* A scan with a node down returns what comes before the first page of that node, and goes on when it is back. */
static void test_scan_with_a_node_down(void **state)
{
    struct wb_store_options options = {.nodes = {.count = 2}};

    (void)state;
    must_ok(wb_design_parse(WB_SLICE_LIT("Incr[uniform,hash]"), &options.design));
    test_dir(dir);
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t i = 0; i < SCANNED; i++) {
        struct spec spec = page(i, 500);
        must_ok(put_spec(store, &spec));
        if (i % 9 == 8) /* the nodes take turns */
            commit_store(store);
    }
    commit_store(store);
    wb_store_close(store);
    /* The first page is on one of them. */
    must(scan_without("node1") + scan_without("node2") > 0);
}

static void keep_message(void *context, const struct wb_store_finding *finding)
{
    must(!finding->problem);
    snprintf(context, DIR_MAX, "%s", finding->message);
}

/* The file of a node that is down is left out by compaction, which says so; the others are compacted. */
static void test_compaction_with_a_node_down(void **state)
{
    struct wb_store_options options = {.nodes = {.count = 2}, .design.read.organisation = WB_ORGANISATION_HASH};
    struct wb_move_compact_counts counts;
    char node[DIR_MAX], away[DIR_MAX], message[DIR_MAX] = "";

    (void)state;
    test_dir(dir);
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t i = 0; i < 60; i++) {
        struct spec spec = page(i, 500);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    for (uint32_t i = 0; i < 10; i++) {
        struct spec spec = page(i, 500);
        must_ok(remove_spec(store, &spec, true));
    }
    commit_store(store);
    wb_store_close(store);
    path_in(dir, "node1", node);
    path_in(dir, "away", away);
    must(rename(node, away) == 0);
    store = open_store(dir, WB_STORE_WRITE);
    must_ok(wb_move_compact(store, NULL, NULL, keep_message, message, &counts));
    must(counts.files == 1 && counts.skipped == 1 && counts.damaged == 0 && strstr(message, "node 1 is down"));
    must(rename(away, node) == 0);
    must_ok(wb_move_compact(store, NULL, NULL, keep_message, message, &counts));
    must(counts.files == 1 && counts.skipped == 0);
    wb_store_close(store);
    verify_clean(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_read),
        cmocka_unit_test(test_staging),
        cmocka_unit_test(test_failed_sweeps),
        cmocka_unit_test(test_takedown),
        cmocka_unit_test(test_nodes_that_change),
        cmocka_unit_test(test_scan_with_a_node_down),
        cmocka_unit_test(test_compaction_with_a_node_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
