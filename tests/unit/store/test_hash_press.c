/*
 * test_hash_press.c - threads that work for a writer of the organisation hash: a file that is rewritten is the same,
 * however many there are; what one of them cannot do makes the commit fail, and nothing else; and pages that they are
 * still working on can be read, and dropped.
 */
#include "store_support.h"
#include "os/fault.h"
#include "pagefile/append_block.h"
#include "pagefile/hash_store.h"

#include <errno.h>

static char dir[DIR_MAX];

static void new_repository(void)
{
    const struct wb_store_options options = {.design.read.organisation = WB_ORGANISATION_HASH};

    test_dir(dir);
    must_ok(wb_store_create(dir, &options));
}

/* Pages of many sizes: most share a bucket with others, some have an extent. */
static struct spec page(uint32_t number, uint32_t round)
{
    static const uint32_t sizes[] = {300, 2000, 9000, 700, 15000, 40000, 1200};
    uint32_t size = number % 97 == 13 ? 600000 : sizes[number % 7];

    return (struct spec){
        .site = number % 11, .number = number, .time_ms = 1000 + round, .size = size, .variant = number + round};
}

static void put_pages(struct wb_store *store, uint32_t first, uint32_t last, uint32_t round)
{
    for (uint32_t i = first; i < last; i++) {
        struct spec spec = page(i, round);
        must_ok(put_spec(store, &spec));
    }
}

static bool holds_pages(struct wb_store *store, uint32_t first, uint32_t last, uint32_t round)
{
    bool all = true;

    for (uint32_t i = first; i < last && all; i++) {
        struct spec spec = page(i, round);
        all = holds_spec(store, &spec);
    }
    return all;
}

/* Gives the writer another number of threads. */
static void use_threads(struct wb_store *store, unsigned threads)
{
    struct wb_repo_writer *writer = wb_repo_of(store)->writer;

    wb_pool_free(writer->files.pool);
    wb_builders_free(writer->files.builders);
    must_ok(wb_builders_new(threads ? threads : 1, &writer->files.builders));
    must_ok(wb_pool_new(threads, &writer->files.pool));
}

static char *read_bytes(const char *path, size_t *bytes_out)
{
    FILE *in = fopen(path, "rb");

    *bytes_out = (size_t)file_bytes(path);
    char *bytes = malloc(*bytes_out + 1);
    must(in && bytes && fread(bytes, 1, *bytes_out, in) == *bytes_out);
    fclose(in);
    return bytes;
}

enum { PAGES = 900, MORE = 1800 };

/* Adds pages to an empty store, and then so many that its file is rewritten. */
static void fill(const char *where, unsigned threads)
{
    struct wb_store *store = open_store(where, WB_STORE_WRITE);

    use_threads(store, threads);
    put_pages(store, 0, PAGES, 0);
    commit_store(store);
    put_pages(store, PAGES / 2, MORE, 1);
    commit_store(store);
    must(holds_pages(store, 0, PAGES / 2, 0) && holds_pages(store, PAGES / 2, MORE, 1));
    wb_store_close(store);
    verify_clean(where);
}

/* The bytes of a file do not depend on the number of threads, nor on which of them is faster. */
static void test_same_bytes(void **state)
{
    static const unsigned threads[] = {0, 1, 2, 8};
    char others[4][DIR_MAX], path[DIR_MAX];
    char *first = NULL;
    size_t first_bytes = 0, bytes;

    (void)state;
    new_repository();
    for (size_t i = 0; i < 4; i++) {
        test_dir(others[i]);
        copy_repository(dir, others[i]);
        fill(others[i], threads[i]);
        path_in(others[i], "pages/00000001.2.bkt", path);
        char *now = read_bytes(path, &bytes);
        must(i == 0 || (bytes == first_bytes && memcmp(now, first, bytes) == 0));
        free(first);
        first = now;
        first_bytes = bytes;
    }
    free(first);
}

/* Puts pages and commits them, while an operation fails. Returns what failed, or 0. */
static int fail_once(struct wb_store *store, uint32_t pages, uint32_t round, unsigned kind, uint64_t nth)
{
    int err = 0;

    if (kind == WB_FAULT_WRITE) /* also of pages that memory has no room for */
        wb_fault_arm(kind, nth, ENOSPC);
    for (uint32_t i = 0; i < pages && err == 0; i++) {
        struct spec spec = page(i, round);
        err = put_spec(store, &spec);
    }
    if (kind == WB_FAULT_ALLOC)
        wb_fault_arm(kind, nth, ENOMEM);
    int committed = wb_store_commit(store, &(struct wb_store_commit_counts){0});
    wb_fault_disarm();
    must(err == 0 || committed < 0);
    return committed;
}

/* Errors at any point of a merge: nothing has changed, no thread is left behind, and the next commit goes through. */
static void test_failed_merges(void **state)
{
    static const unsigned kinds[] = {WB_FAULT_ALLOC, WB_FAULT_WRITE};
    static const uint32_t pages[] = {12, 120, 300};
    unsigned failed[2] = {0, 0};

    (void)state;
    use_small_sizes(9000);
    new_repository();
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    use_threads(store, 2);
    put_pages(store, 0, pages[0], 0);
    commit_store(store);
    for (uint32_t k = 0; k < 2; k++) {
        int err = -1;
        for (uint64_t nth = 1; err < 0; nth += 1 + nth / 8) {
            err = fail_once(store, pages[k + 1], k + 1, kinds[k], nth);
            if (err == 0 || strstr(wb_error_message(), "not known")) /* nothing was left that could fail; or almost */
                break;
            assert_int_equal(err, k == 0 ? WB_E_NOMEM : WB_E_IO);
            must(holds_pages(store, 0, pages[k], k));
            failed[k]++;
        }
        put_pages(store, 0, pages[k + 1], k + 1);
        commit_store(store);
        must(holds_pages(store, 0, pages[k + 1], k + 1));
        verify_clean(dir);
    }
    assert_true(failed[0] > 20 && failed[1] > 20);
    wb_store_close(store);
    verify_clean(dir);
    use_usual_sizes();
}

/* Pages that threads are writing to a file can be read; and they are gone if nobody commits. */
static void test_in_flight(void **state)
{
    struct wb_store *store;

    (void)state;
    use_small_sizes(9000);
    new_repository();
    for (uint32_t round = 0; round < 3; round++) {
        store = open_store(dir, WB_STORE_WRITE);
        use_threads(store, 2);
        bool flew = false;
        for (uint32_t i = 0; i < 60; i++) {
            put_pages(store, i, i + 1, round);
            flew = flew || wb_repo_of(store)->files.hash->flight;
            must(holds_pages(store, i > 3 ? i - 3 : 0, i + 1, round));
        }
        must(flew && wb_repo_of(store)->files.hash->staged_bytes > 0);
        must(holds_pages(store, 0, 60, round));
        if (round == 1)
            commit_store(store);
        wb_store_close(store);
        store = open_store(dir, WB_STORE_READ);
        struct spec spec = page(0, 0);
        struct wb_buf memory = WB_BUF_INIT;
        struct wb_page found;
        int err = wb_store_get(store, spec_id(&spec), &found, &memory);
        wb_buf_release(&memory);
        must(round == 0 ? err == WB_E_NOTFOUND : err == 0 && holds_pages(store, 0, 60, 1));
        wb_store_close(store);
    }
    verify_clean(dir);
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_failed_merges),
        cmocka_unit_test(test_in_flight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
