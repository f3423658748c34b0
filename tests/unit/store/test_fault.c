/*
 * test_fault.c - every allocation, open, read, write, sync and rename of each operation of a
 * store is made to fail once. There is an error with a message, nothing that was acknowledged
 * is lost, and the same handle, as well as a new one, can be used afterwards.
 *
 * Leaks are found by LeakSanitizer at the end of the program.
 */
#include "store_support.h"
#include "os/fault.h"

#include <errno.h>

enum { SITES = 3, NUMBERS = 8, NEW_PAGES = 20 };

static char template_dir[DIR_MAX], work_dir[DIR_MAX];
static struct wb_store *store; /* what is under test */
static uint64_t chance;

/* Made in advance, so that only the allocations of the store are counted. */
static struct made new_pages[NEW_PAGES], small_page;
static struct wb_pageid site1_ids[NUMBERS];

static struct spec spec_of(uint32_t site, uint32_t number, int64_t time_ms)
{
    return (struct spec){
        .site = site, .number = number, .time_ms = time_ms, .size = 700 * number + 10, .variant = site * 10 + number};
}

static void make_pages(void)
{
    struct spec spec;

    for (uint32_t i = 0; i < NEW_PAGES; i++) {
        spec = spec_of(i % SITES, 100 + i, 2000);
        spec.size = 3700 + i * 7;
        make_page(&spec, &new_pages[i]);
    }
    spec = spec_of(2, 50, 3000);
    make_page(&spec, &small_page);
    for (uint32_t i = 0; i < NUMBERS; i++)
        site1_ids[i] = spec_id(&(struct spec){.site = 1, .number = i});
}

static int release_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < NEW_PAGES; i++)
        made_release(&new_pages[i]);
    made_release(&small_page);
    return 0;
}

/* Pages of three sites in several segments: some replaced since the snapshot, some dead, one removed. */
static int make_template(void **state)
{
    uint32_t snapshot;

    (void)state;
    chance = test_seed();
    make_pages();
    use_small_sizes(9000);
    test_dir(template_dir);
    test_dir(work_dir);
    create_store(template_dir);
    store = open_store(template_dir, WB_STORE_WRITE);
    for (int64_t round = 0; round < 4; round++) {
        for (uint32_t site = 0; site < SITES; site++)
            for (uint32_t number = 0; number < NUMBERS; number++)
                if (round == 0 || (site + number) % 3 == round - 1) {
                    struct spec spec = spec_of(site, number, 1000 + round);
                    must_ok(put_spec(store, &spec));
                }
        if (round == 1)
            must_ok(wb_store_snapshot(store, &snapshot));
        else
            commit_store(store);
    }
    must_ok(wb_store_put_revisit(store, (struct wb_pageid){1, 2}, WB_SLICE_LIT("revisited.example"),
                                 &(struct wb_store_revisit){.time_ms = 5}));
    must_ok(remove_spec(store, &(struct spec){.site = 0, .number = 7}, true));
    commit_store(store);
    wb_store_close(store);
    store = NULL;
    verify_clean(template_dir);
    return 0;
}

static bool is_removed(uint32_t site, uint32_t number)
{
    return site == 0 && number == 7;
}

/* Everything acknowledged is there. */
static void check_pages(struct wb_store *s)
{
    for (uint32_t site = 0; site < SITES; site++)
        for (uint32_t number = 0; number < NUMBERS; number++) {
            struct spec spec = spec_of(site, number, 1001 + (site + number) % 3);
            if (!is_removed(site, number))
                must(holds_spec(s, &spec));
        }
}

/* ---- the operations: each returns the error of what it does -------------------------------------- */

static int do_put(void)
{
    int err = 0;

    for (size_t i = 0; i < NEW_PAGES && err == 0; i++)
        err = wb_store_put(store, &new_pages[i].page, NULL);
    return err;
}

static int do_commit(void)
{
    struct wb_store_commit_counts counts = {0};
    int err = do_put();

    return err < 0 ? err : wb_store_commit(store, &counts);
}

static int do_commit_only(void)
{
    return wb_store_commit(store, &(struct wb_store_commit_counts){0});
}

static int do_snapshot(void)
{
    uint32_t snapshot;

    return wb_store_snapshot(store, &snapshot);
}

static int do_get(void)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    int err = 0;

    for (uint32_t number = 0; number < NUMBERS && err == 0; number++)
        err = wb_store_get(store, site1_ids[number], &page, &memory);
    wb_buf_release(&memory);
    return err;
}

static int do_scan(void)
{
    struct wb_store_scan_options options = {.view = WB_STORE_VIEW_SNAPSHOT, .site = WB_SLICE_LIT("site1.example")};
    struct wb_store_scan *scan;
    struct wb_page page;
    int more, err = wb_store_scan_open(store, &options, &scan);

    if (err < 0)
        return err;
    while ((more = wb_store_scan_next(scan, &page)) > 0)
        ;
    wb_store_scan_close(scan);
    return more;
}

static int do_compact(void)
{
    struct wb_store_compact_counts compact;

    return wb_store_compact(store, NULL, NULL, NULL, NULL, &compact);
}

static int do_stat(void)
{
    struct wb_store_stat stat;

    return wb_store_stat(store, &stat);
}

static int do_small_ops(void)
{
    struct wb_store_revisit revisit = {.time_ms = 7};
    struct wb_pageid id = small_page.page.id;
    int err = wb_store_put(store, &small_page.page, NULL);

    if (err == 0)
        err = wb_store_touch(store, id, 4000);
    if (err == 0)
        err = wb_store_put_revisit(store, id, wb_key_site(small_page.page.key), &revisit);
    if (err == 0)
        err = wb_store_get_revisit(store, id, &revisit);
    if (err == 0)
        err = wb_store_remove(store, id, wb_key_site(small_page.page.key), true);
    return err;
}

/* A bar on a site that has no pages here, and its end. */
static int do_bar(void)
{
    struct wb_store_bar bar = {.kind = WB_STORE_BAR_SITE, .site = WB_SLICE_LIT("taken.example"), .time_ms = 7};
    struct wb_store_bar page = {.kind = WB_STORE_BAR_PAGE, .id = {3, 4}, .site = WB_SLICE_LIT("taken.example")};
    int err = wb_store_bar(store, &bar);

    if (err == 0)
        err = wb_store_allow(store, &page);
    if (err == 0)
        err = wb_store_barred(store, (struct wb_pageid){5, 6}, bar.site) == 1 ? 0 : WB_E_IO;
    if (err == 0)
        err = wb_store_allow(store, &bar);
    return err;
}

static int do_verify(void)
{
    struct wb_store_verify_counts result;
    int err = wb_store_verify(work_dir, NULL, NULL, NULL, NULL, &result);

    must(err < 0 || result.problems == 0 || wb_fault_struck());
    return err;
}

static int do_open(enum wb_store_mode mode)
{
    struct wb_store *opened;
    int err = wb_store_open(work_dir, mode, &opened);

    must((err == 0) == (opened != NULL));
    wb_store_close(opened);
    return err;
}

static int do_open_read(void)
{
    return do_open(WB_STORE_READ);
}

static int do_open_write(void)
{
    return do_open(WB_STORE_WRITE);
}

static int do_create(void)
{
    return wb_store_create(work_dir, &(struct wb_store_options){0});
}

struct operation {
    const char *name;
    int (*run)(void);
    bool without_store; /* no handle is open during the operation */
    bool put_before;    /* pages were put but not committed */
    unsigned syncs, writes; /* it has at least this many: with fewer, the test would make nothing fail */
};

static const struct operation operations[] = {
    {"put", do_put, false, false, 1, 2},
    {"put and commit", do_commit, false, false, 2, 2},
    {"commit", do_commit_only, false, true, 1, 1},
    {"snapshot", do_snapshot, false, true, 1, 1},
    {"get", do_get, false, false, 0, 0},
    {"scan", do_scan, false, false, 0, 0},
    {"compact", do_compact, false, false, 2, 3},
    {"compact with pages taken", do_compact, false, true, 3, 4},
    {"stat", do_stat, false, false, 0, 0},
    {"touch, remove and revisits", do_small_ops, false, false, 0, 0},
    {"bar and allow", do_bar, false, false, 0, 0},
    {"bar and allow with pages taken", do_bar, false, true, 1, 1},
    {"verify", do_verify, true, false, 0, 0},
    {"verify beside a writer", do_verify, false, true, 0, 0},
    {"open for reading", do_open_read, true, false, 0, 0},
    {"open for writing", do_open_write, true, false, 0, 0},
};

static const struct {
    unsigned kind;
    int error;
    const char *name;
} kinds[] = {
    {WB_FAULT_ALLOC, ENOMEM, "alloc"}, {WB_FAULT_OPEN, EACCES, "open"},   {WB_FAULT_READ, EIO, "read"},
    {WB_FAULT_WRITE, ENOSPC, "write"}, {WB_FAULT_SYNC, EIO, "sync"},      {WB_FAULT_RENAME, ENOSPC, "rename"},
};

/* ---- one fault --------------------------------------------------------------------------------------- */

static void prepare(const struct operation *operation)
{
    remove_tree(work_dir);
    copy_repository(template_dir, work_dir);
    if (!operation->without_store)
        store = open_store(work_dir, WB_STORE_WRITE);
    if (operation->put_before)
        must_ok(do_put());
}

/* The same handle, then a new one, have what they should, and accept more. */
static void check_after(void)
{
    struct spec more = spec_of(1, 200, 9000);

    if (store) {
        check_pages(store);
        /* This commit returns the error of a failed put, and forgets it. */
        int err = wb_store_commit(store, &(struct wb_store_commit_counts){0});
        must(err == 0 || wb_error_message()[0]);
        must_ok(put_spec(store, &more));
        commit_store(store);
        check_pages(store);
        must(holds_spec(store, &more));
        wb_store_close(store);
        store = NULL;
        verify_clean(work_dir);
    }
    store = open_store(work_dir, WB_STORE_WRITE);
    check_pages(store);
    more.time_ms++;
    must_ok(put_spec(store, &more));
    commit_store(store);
    must(holds_spec(store, &more));
    wb_store_close(store);
    store = NULL;
    must(verify_clean(work_dir).notes == 0);
}

/* Makes the nth system call of a kind fail; returns false if there were fewer than n. */
static bool strike(const struct operation *operation, size_t kind, uint64_t nth)
{
    prepare(operation);
    wb_fail(WB_E_INVALID, "%s", "");
    wb_fault_arm(kinds[kind].kind, nth, kinds[kind].error);
    int err = operation->run();
    bool struck = wb_fault_struck();
    wb_fault_disarm();
    if (err < 0 && (!struck || !wb_error_message()[0]))
        fprintf(stderr, "%s, %s number %llu: %d %s\n", operation->name, kinds[kind].name, (unsigned long long)nth, err,
                wb_error_message());
    must(err == 0 || struck);
    must(err == 0 || wb_error_message()[0]);
    must(err == 0 || (kinds[kind].kind == WB_FAULT_ALLOC ? err == WB_E_NOMEM : err == WB_E_IO));
    check_after();
    return struck;
}

static void test_operation(void **state)
{
    const struct operation *operation = *state;

    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        /* All of the first ones, then at growing distances. */
        uint64_t nth = 1, step = test_rounds(10) < 10 ? 3 : 1;
        while (strike(operation, kind, nth))
            nth += nth < 40 ? step : 1 + chance_below(&chance, nth / 4);
        unsigned least = kinds[kind].kind == WB_FAULT_SYNC    ? operation->syncs
                         : kinds[kind].kind == WB_FAULT_WRITE ? operation->writes
                                                              : 0;
        if (nth <= least)
            fprintf(stderr, "%s: fewer than %u operations of kind %s\n", operation->name, least, kinds[kind].name);
        must(nth > least);
    }
}

/* ---- creation, which starts from nothing -------------------------------------------------------------- */

static void test_create(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (uint64_t nth = 1;; nth++) {
            remove_tree(work_dir);
            wb_fail(WB_E_INVALID, "%s", "");
            wb_fault_arm(kinds[kind].kind, nth, kinds[kind].error);
            int err = do_create();
            bool struck = wb_fault_struck();
            wb_fault_disarm();
            must(err == 0 || (struck && wb_error_message()[0]));
            if (err < 0 && !wb_store_exists(work_dir))
                must_ok(do_create());
            store = open_store(work_dir, WB_STORE_WRITE);
            struct spec spec = spec_of(1, 1, 1);
            must_ok(put_spec(store, &spec));
            commit_store(store);
            must(holds_spec(store, &spec));
            wb_store_close(store);
            store = NULL;
            verify_clean(work_dir);
            if (!struck)
                break;
        }
}

/* ---- the same places for other pages ---------------------------------------------------------------------- */

/* The cached start of a block whose commit failed must not be used for the next block that is written to its place. */
static void test_places_used_again(void **state)
{
    const struct operation plain = {"commit", do_commit, false, false, 0, 0};
    struct spec specs[40];

    (void)state;
    for (int64_t time_ms = 5000; time_ms < 5004; time_ms++) {
        prepare(&plain);
        for (int64_t attempt = 0; attempt < 3; attempt++) {
            for (uint32_t i = 0; i < COUNT(specs); i++) {
                specs[i] = spec_of(1, 300 + i, time_ms + attempt);
                specs[i].size = 1500;
                must_ok(put_spec(store, &specs[i]));
            }
            for (uint32_t i = 0; i < COUNT(specs); i++)
                must(holds_spec(store, &specs[i]));
            if (attempt == 2)
                break;
            wb_fault_arm(WB_FAULT_SYNC, 1, EIO);
            int err = do_commit_only();
            wb_fault_disarm();
            must(err == WB_E_IO);
        }
        commit_store(store);
        for (uint32_t i = 0; i < COUNT(specs); i++)
            must(holds_spec(store, &specs[i]));
        check_after();
    }
}

/* ---- a commit whose result is not known ------------------------------------------------------------------- */

/* Either all pages of the commit are there, or none of them. */
static bool has_new_pages(void)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    size_t there = 0;

    for (size_t i = 0; i < NEW_PAGES; i++) {
        int err = wb_store_get(store, new_pages[i].page.id, &page, &memory);
        must(err == 0 || err == WB_E_NOTFOUND);
        there += err == 0;
    }
    wb_buf_release(&memory);
    must(there == 0 || there == NEW_PAGES);
    return there != 0;
}

/*
 * The sync after the root record fails, although the record is in the file. The error says that the outcome is not
 * known, nothing is cut off, and the same handle finds out and can be used.
 */
static void test_uncertain_commit(void **state)
{
    const struct operation operation = {"commit", do_commit_only, false, true, 0, 0};

    (void)state;
    prepare(&operation);
    wb_fault_arm(WB_FAULT_SYNC, UINT64_MAX, EIO);
    must_ok(do_commit_only());
    uint64_t syncs = wb_fault_count();
    wb_fault_disarm();
    wb_store_close(store);
    prepare(&operation);
    wb_fault_arm(WB_FAULT_SYNC, syncs, EIO);
    must(do_commit_only() == WB_E_IO && strstr(wb_error_message(), "not known"));
    wb_fault_disarm();
    must(has_new_pages());
    check_after();
    /* One sync earlier, the root record was not written yet. */
    prepare(&operation);
    wb_fault_arm(WB_FAULT_SYNC, syncs - 1, EIO);
    must(do_commit_only() == WB_E_IO && !strstr(wb_error_message(), "not known"));
    wb_fault_disarm();
    must(!has_new_pages());
    check_after();
}

/* ---- a compaction that is told to stop ------------------------------------------------------------------ */

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    unsigned *left = context;

    must(done <= total);
    return (*left)-- > 0;
}

static void test_stopped_compaction(void **state)
{
    const struct operation plain = {"compact", do_compact, false, false, 0, 0};
    struct wb_store_compact_counts compact;

    (void)state;
    for (unsigned steps = 0;; steps++) {
        unsigned left = steps;
        prepare(&plain);
        int err = wb_store_compact(store, stop_at_once, &left, NULL, NULL, &compact);
        must(err == 0 || err == WB_E_STOPPED);
        check_after();
        if (err == 0)
            break;
    }
}

int main(void)
{
    struct CMUnitTest tests[COUNT(operations) + 4] = {
        cmocka_unit_test(test_create), cmocka_unit_test(test_stopped_compaction),
        cmocka_unit_test(test_places_used_again), cmocka_unit_test(test_uncertain_commit)};

    for (size_t i = 0; i < COUNT(operations); i++)
        tests[i + 4] =
            (struct CMUnitTest){operations[i].name, test_operation, NULL, NULL, (void *)(uintptr_t)&operations[i]};
    return cmocka_run_group_tests(tests, make_template, release_pages);
}
