/*
 * test_fault.c - every allocation, open, read, write, sync and rename of each operation of a
 * store is made to fail once. There is an error with a message, nothing that was acknowledged
 * is lost, and the same handle, as well as a new one, can be used afterwards.
 *
 * Leaks are found by LeakSanitizer at the end of the program.
 */
#include "../faultkinds.h"
#include "fault_operations.h"
#include "move/move.h"

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

/* An operation that failed has neither sealed nor dropped anything, unless it says that it does not know. */
static void check_count(const struct operation *operation, int err)
{
    struct wb_store_stat stat;
    bool uncertain = err == WB_E_IO && strstr(wb_error_message(), "not known");

    if (!store)
        return;
    must_ok(wb_store_stat(store, &stat));
    bool before = stat.snapshots == SNAPSHOTS, after = (int)stat.snapshots == SNAPSHOTS + operation->snapshots;
    must(uncertain ? before || after : err < 0 ? before : after);
}

static uint64_t counted; /* how many system calls of the kind there were until one failed */

/* Makes the nth system call of a kind fail; returns false if there were fewer than n. */
static bool strike(const struct operation *operation, size_t kind, uint64_t nth)
{
    prepare(operation);
    wb_fail(WB_E_INVALID, "%s", "");
    wb_fault_arm(fault_kinds[kind].kind, nth, fault_kinds[kind].error);
    int err = operation->run();
    bool struck = wb_fault_struck();
    counted = wb_fault_count();
    wb_fault_disarm();
    if (err < 0 && (!struck || !wb_error_message()[0]))
        fprintf(stderr, "%s, %s number %llu: %d %s\n", operation->name, fault_kinds[kind].name, (unsigned long long)nth,
                err, wb_error_message());
    must(err == 0 || struck);
    must(err == 0 || wb_error_message()[0]);
    must(err == 0 || (fault_kinds[kind].kind == WB_FAULT_ALLOC ? err == WB_E_NOMEM : err == WB_E_IO));
    check_count(operation, err);
    check_after();
    return struck;
}

static void test_operation(void **state)
{
    const struct operation *operation = *state;

    for (size_t kind = 0; kind < COUNT(fault_kinds); kind++) {
        must(!strike(operation, kind, UINT64_MAX));
        uint64_t calls = counted;
        /* The first ones at short distances, then at growing ones. */
        for (uint64_t nth = 1; nth <= calls && strike(operation, kind, nth);)
            nth += nth < 40 ? test_stride_of(&chance, calls) : 1 + chance_below(&chance, nth * 4 / test_rounds(16));
        unsigned least = fault_kinds[kind].kind == WB_FAULT_SYNC    ? operation->syncs
                         : fault_kinds[kind].kind == WB_FAULT_WRITE ? operation->writes
                                                                    : 0;
        if (test_design().read.organisation != WB_ORGANISATION_LOG) /* less is written before the commit */
            least = 0;
        if (calls < least)
            fprintf(stderr, "%s: fewer than %u operations of kind %s\n", operation->name, least,
                    fault_kinds[kind].name);
        must(calls >= least);
    }
}

/* ---- creation, which starts from nothing -------------------------------------------------------------- */

/* As strike(). */
static bool strike_create(size_t kind, uint64_t nth)
{
    struct spec spec = spec_of(1, 1, 1);

    remove_tree(work_dir);
    wb_fail(WB_E_INVALID, "%s", "");
    wb_fault_arm(fault_kinds[kind].kind, nth, fault_kinds[kind].error);
    int err = do_create();
    bool struck = wb_fault_struck();
    counted = wb_fault_count();
    wb_fault_disarm();
    must(err == 0 || (struck && wb_error_message()[0]));
    if (err < 0 && !wb_store_exists(work_dir))
        must_ok(do_create());
    store = open_store(work_dir, WB_STORE_WRITE);
    must_ok(put_spec(store, &spec));
    commit_store(store);
    must(holds_spec(store, &spec));
    wb_store_close(store);
    store = NULL;
    verify_clean(work_dir);
    return struck;
}

static void test_create(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COUNT(fault_kinds); kind++) {
        must(!strike_create(kind, UINT64_MAX));
        uint64_t calls = counted;
        for (uint64_t nth = 1; nth <= calls && strike_create(kind, nth);)
            nth += test_stride_of(&chance, calls);
    }
}

/* ---- the same places for other pages ---------------------------------------------------------------------- */

/* The cached start of a block whose commit failed must not be used for the next block that is written to its place. */
static void test_places_used_again(void **state)
{
    const struct operation plain = {"commit", do_commit, false, false, 0, 0, 0};
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
    const struct operation operation = {"commit", do_commit_only, false, true, 0, 0, 0};

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
    uint64_t *left = context;

    must(done <= total);
    return (*left)-- > 0;
}

/* A full disk while old versions are being given up: nothing else is lost, and trying again succeeds. */
static void test_forgetting(void **state)
{
    const struct operation plain = {"forget", do_forget, false, false, 0, 0, 0};

    (void)state;
    for (uint64_t nth = 1;; nth += test_stride_of(&chance, 8 + 4 * nth)) { /* at most twice as far, and one more */
        struct wb_move_compact_counts compact;
        struct wb_store_stat stat;
        prepare(&plain);
        wb_fault_arm(WB_FAULT_WRITE, nth, ENOSPC);
        int err = do_forget();
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        must(err == 0 || (struck && err == WB_E_IO));
        check_pages(store);
        must_ok(wb_store_set_history(store, &(struct wb_store_history){WB_STORE_KEEP_NEWEST, 0}));
        err = wb_store_drop(store, 1);
        must(err == 0 || err == WB_E_NOTFOUND);
        must_ok(wb_store_drop(store, 2));
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact));
        must_ok(wb_store_stat(store, &stat));
        must(stat.versions == stat.pages && stat.bytes_dead == 0);
        check_after();
        if (!struck)
            break;
    }
}

static void test_stopped_compaction(void **state)
{
    const struct operation plain = {"compact", do_compact, false, false, 0, 0, 0};
    struct wb_move_compact_counts compact;

    (void)state;
    for (uint64_t steps = 0;; steps += test_stride_of(&chance, 8 + 4 * steps)) {
        uint64_t left = steps;
        prepare(&plain);
        int err = wb_move_compact(store, stop_at_once, &left, NULL, NULL, &compact);
        must(err == 0 || err == WB_E_STOPPED);
        check_after();
        if (err == 0)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_create),           cmocka_unit_test(test_stopped_compaction),
        cmocka_unit_test(test_forgetting),       cmocka_unit_test(test_places_used_again),
        cmocka_unit_test(test_uncertain_commit),
    };
    struct CMUnitTest tests[COUNT(others) + 32];
    size_t count = 0;

    must(operation_count <= 32);
    for (size_t i = 0; i < COUNT(others); i++)
        tests[count++] = others[i];
    for (size_t i = 0; i < operation_count; i++)
        tests[count++] =
            (struct CMUnitTest){operations[i].name, test_operation, NULL, NULL, (void *)(uintptr_t)&operations[i]};
    return _cmocka_run_group_tests("faults", tests, count, make_template, release_pages);
}
