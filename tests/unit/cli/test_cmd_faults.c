/*
 * test_cmd_faults.c - import, export, snapshot, history and versions while one operation after the other fails.
 *
 * Whatever fails, the command says so or does its work; what it leaves behind is
 * a sound repository, and an archive that is whole or not there.
 */
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "cli/options.h"
#include "os/fault.h"
#include "os/path.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../rounds.h"
#include "../testroot.h"

#define PAGES 3
#define NTH_MAX 5000
#define ALL_FILES (WB_FAULT_OPEN | WB_FAULT_READ | WB_FAULT_WRITE | WB_FAULT_SYNC | WB_FAULT_RENAME)

static uint64_t chance;
static char repo[80], archive[80], out[80], out_tmp[96];

/* Runs a command. Its standard output and error are thrown away, because they are not TAP. */
static int run_quietly(char **argv, int argc)
{
    struct wb_options options;
    int nowhere = open("/dev/null", O_WRONLY), saved_out, saved_err, result;

    fflush(stdout);
    saved_out = dup(1);
    saved_err = dup(2);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    result = wb_options_parse(argc, argv, &options);
    if (result == 0)
        result = options.command->run(&options);
    wb_options_release(&options);
    fflush(stdout);
    dup2(saved_out, 1);
    dup2(saved_err, 2);
    close(saved_out);
    close(saved_err);
    close(nowhere);
    return result;
}

static int run_import(void)
{
    char *argv[] = {(char *)"webbase", (char *)"-r", repo, (char *)"import", archive};

    return run_quietly(argv, 5);
}

static int run_export(void)
{
    char *argv[] = {(char *)"webbase", (char *)"-r", repo, (char *)"export", (char *)"--warc", out};

    return run_quietly(argv, 6);
}

static int run_export_versions(void)
{
    char *argv[] = {(char *)"webbase", (char *)"-r", repo, (char *)"export", (char *)"--warc", out,
                    (char *)"--versions"};

    return run_quietly(argv, 7);
}

/* A command of up to two words. */
static int run_words(const char *first, const char *second)
{
    char *argv[] = {(char *)"webbase", (char *)"-r", repo, (char *)first, (char *)second};

    return run_quietly(argv, second ? 5 : 4);
}

static uint64_t sound_pages(void)
{
    struct wb_store_verify_counts result;

    assert_int_equal(wb_store_verify(repo, NULL, NULL, NULL, NULL, &result), 0);
    assert_int_equal(result.problems, 0);
    return result.pages;
}

static int set_up(void **state)
{
    struct wb_buf text = WB_BUF_INIT;

    assert_int_equal(make_root(state), 0);
    snprintf(repo, sizeof repo, "%s/repo", test_root);
    snprintf(archive, sizeof archive, "%s/in.warc", test_root);
    snprintf(out, sizeof out, "%s/out.warc.gz", test_root);
    snprintf(out_tmp, sizeof out_tmp, "%s.tmp", out);
    for (int i = 0; i < PAGES; i++)
        assert_int_equal(wb_buf_printf(&text,
                                       "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://h.example/%d\r\n"
                                       "WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Record-ID: <urn:x:%d>\r\n"
                                       "Content-Type: application/http\r\nContent-Length: 46\r\n\r\n"
                                       "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n%d!\r\n\r\n", i, i, i), 0);
    assert_int_equal(wb_path_replace(archive, wb_buf_slice(&text)), 0);
    wb_buf_release(&text);
    return 0;
}

/* Fails early operations one by one, and later ones in growing steps, because there are many allocations. */
static uint64_t next(uint64_t nth)
{
    return nth + test_stride(&chance) + nth / 64;
}

static void import_with_faults(unsigned kinds, int error)
{
    bool struck = true;

    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        remove_tree(repo); /* if there is one */
        wb_fault_arm(kinds, nth, error);
        int result = run_import();
        struck = wb_fault_struck();
        wb_fault_disarm();
        if (!struck)
            assert_int_equal(result, 0);
        if (wb_store_exists(repo)) {
            uint64_t pages = sound_pages();
            assert_true(pages == PAGES || result != 0);
        } else {
            assert_true(result != 0);
        }
        assert_int_equal(run_import(), 0);
        assert_int_equal(sound_pages(), PAGES);
    }
    assert_false(struck);
}

static void export_with_faults(int (*export)(void), unsigned kinds, int error)
{
    bool struck = true;

    remove_tree(repo);
    assert_int_equal(run_import(), 0);
    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        unlink(out);
        wb_fault_arm(kinds, nth, error);
        int result = export();
        struck = wb_fault_struck();
        wb_fault_disarm();
        /* A failure after the rename is reported, although the archive exists. */
        assert_true(result < 0 || wb_path_kind(out) == WB_PATH_FILE);
        assert_int_equal(wb_path_kind(out_tmp), WB_PATH_NONE);
        if (!struck)
            assert_int_equal(result, 0);
    }
    assert_false(struck);
    unlink(out);
    assert_int_equal(export(), 0);
}

static uint64_t snapshots(void)
{
    struct wb_store *store = NULL;
    struct wb_store_stat stat;

    assert_int_equal(wb_store_open(repo, WB_STORE_READ, &store), 0);
    assert_int_equal(wb_store_stat(store, &stat), 0);
    wb_store_close(store);
    return stat.snapshots;
}

/* A command that fails has done nothing; one that succeeds has done its work. */
static void snapshot_with_faults(unsigned kinds, int error)
{
    bool struck = true;

    remove_tree(repo);
    assert_int_equal(run_import(), 0);
    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        uint64_t before = snapshots();
        wb_fault_arm(kinds, nth, error);
        int result = run_words("snapshot", NULL);
        struck = wb_fault_struck();
        wb_fault_disarm();
        uint64_t after = snapshots();
        assert_true(after == before + 1 || (result != 0 && after == before));
        if (!struck)
            assert_int_equal(result, 0);
    }
    assert_false(struck);
    assert_int_equal(sound_pages(), PAGES);
}

/* Commands that only read, or whose effect shows in the next call. */
static void words_with_faults(const char *first, const char *second, unsigned kinds, int error)
{
    bool struck = true;

    remove_tree(repo);
    assert_int_equal(run_import(), 0);
    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        wb_fault_arm(kinds, nth, error);
        int result = run_words(first, second);
        struck = wb_fault_struck();
        wb_fault_disarm();
        if (!struck)
            assert_int_equal(result, 0);
        assert_int_equal(run_words(first, second), 0);
    }
    assert_false(struck);
    assert_int_equal(sound_pages(), PAGES);
}

static void test_import_files_fail(void **state)
{
    (void)state;
    import_with_faults(WB_FAULT_OPEN | WB_FAULT_WRITE | WB_FAULT_SYNC | WB_FAULT_RENAME, ENOSPC);
}

static void test_import_reads_fail(void **state)
{
    (void)state;
    import_with_faults(WB_FAULT_READ, EIO);
}

static void test_import_memory_fails(void **state)
{
    (void)state;
    import_with_faults(WB_FAULT_ALLOC, ENOMEM);
}

static void test_export_files_fail(void **state)
{
    (void)state;
    export_with_faults(run_export, ALL_FILES, EIO);
    export_with_faults(run_export_versions, ALL_FILES, EIO);
}

static void test_export_memory_fails(void **state)
{
    (void)state;
    export_with_faults(run_export, WB_FAULT_ALLOC, ENOMEM);
    export_with_faults(run_export_versions, WB_FAULT_ALLOC, ENOMEM);
}

static void test_snapshot_fails(void **state)
{
    (void)state;
    snapshot_with_faults(ALL_FILES, ENOSPC);
    snapshot_with_faults(WB_FAULT_ALLOC, ENOMEM);
}

static void test_words_fail(void **state)
{
    static const char *const words[][2] = {
        {"versions", "http://h.example/1"}, {"get", "http://h.example/1"}, {"snapshot", "list"}, {"history", "all"},
        {"history", NULL}, {"stat", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        words_with_faults(words[i][0], words[i][1], ALL_FILES, EIO);
        words_with_faults(words[i][0], words[i][1], WB_FAULT_ALLOC, ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import_files_fail),
        cmocka_unit_test(test_import_reads_fail),
        cmocka_unit_test(test_import_memory_fails),
        cmocka_unit_test(test_export_files_fail),
        cmocka_unit_test(test_export_memory_fails),
        cmocka_unit_test(test_snapshot_fails),
        cmocka_unit_test(test_words_fail),
    };

    chance = test_seed();
    return cmocka_run_group_tests(tests, set_up, remove_root);
}
