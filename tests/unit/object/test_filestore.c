/* test_filestore.c - a directory as an object store: what is written is there, whole, in order, for many at once. */
#include "object_support.h"

#include "../children.h"
#include "../must.h"
#include "../testroot.h"
#include "../unsynced.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <utime.h>

static struct wb_object_store *open_at(const char *dir)
{
    struct wb_object_store *store;
    char url[300];

    snprintf(url, sizeof url, "file://%s", dir);
    ok(wb_object_open(url, NULL, &store));
    assert_string_equal(wb_object_url(store), url);
    return store;
}

static void test_round(void **state)
{
    struct wb_object_store *store = open_at(test_path("a vault%20+"));
    struct wb_object_counts counts;
    uint64_t size;

    (void)state;
    assert_int_equal(wb_path_kind(test_path("a vault%20+")), WB_PATH_NONE);
    expect_list(store, "", "");
    expect_none(store, "head");
    ok(wb_object_put(store, "head", wb_slice_str("first")));
    expect_object(store, "head", "first");
    ok(wb_object_put(store, "head", wb_slice_str("second one")));
    expect_object(store, "head", "second one");
    assert_int_equal(wb_path_kind(test_path("a vault%20+/head")), WB_PATH_FILE);
    ok(wb_object_put(store, "objects/0f-1", WB_SLICE_EMPTY));
    expect_object(store, "objects/0f-1", "");
    ok(wb_object_size(store, "head", &size));
    assert_int_equal(size, 10);
    ok(wb_object_size(store, "objects/0f-1", &size));
    assert_int_equal(size, 0);
    ok(wb_object_delete(store, "head"));
    ok(wb_object_delete(store, "head"));
    ok(wb_object_delete(store, "nowhere/head"));
    expect_none(store, "head");
    wb_object_counts(store, &counts);
    assert_int_equal(counts.puts, 3);
    assert_int_equal(counts.gets, 3);
    assert_int_equal(counts.sizes, 2);
    assert_int_equal(counts.deletes, 3);
    assert_int_equal(counts.lists, 1);
    assert_int_equal(counts.bytes_put, 15);
    assert_int_equal(counts.bytes_got, 15);
    assert_int_equal(counts.repeated, 0);
    wb_object_close(store);
}

static void test_ranges(void **state)
{
    struct wb_object_store *store = open_at(test_path("ranges"));
    struct wb_buf bytes;

    (void)state;
    ok(wb_object_put(store, "ten", wb_slice_str("0123456789")));
    expect_range(store, "ten", 0, 1, "0");
    expect_range(store, "ten", 3, 4, "3456");
    expect_range(store, "ten", 8, 100, "89");
    expect_range(store, "ten", 10, 1, "");
    expect_range(store, "ten", INT64_MAX, WB_OBJECT_MAX, "");
    ok(wb_object_get(store, "ten", 10, &bytes));
    wb_buf_release(&bytes);
    assert_int_equal(wb_object_get(store, "ten", 9, &bytes), WB_E_LIMIT);
    assert_non_null(strstr(wb_error_message(), "ten"));
    wb_object_close(store);
}

/* A name is no object if other names go on behind it, and no names go on behind that of an object. */
static void test_folders(void **state)
{
    struct wb_object_store *store = open_at(test_path("folders"));

    (void)state;
    ok(wb_object_put(store, "a/b", wb_slice_str("x")));
    expect_none(store, "a");
    expect_none(store, "a/b/c");
    ok(wb_object_delete(store, "a"));
    ok(wb_object_delete(store, "a/b/c"));
    assert_true(wb_object_put(store, "a", wb_slice_str("y")) < 0);
    assert_true(wb_object_put(store, "a/b/c", wb_slice_str("y")) < 0);
    expect_object(store, "a/b", "x");
    expect_list(store, "", "a/b 1\n");
    wb_object_close(store);
}

static void test_names(void **state)
{
    static const char *const wrong[] = {"",       "/",    "/a",     "a/",  "a//b", ".",    "..",      "../a",
                                        "a/../b", "a/.b", ".tmp-1", "a b", "a%20", "a\nb", "\xc3\xbc"};
    struct wb_object_store *store = open_at(test_path("names"));
    char longest[WB_OBJECT_NAME_MAX + 2];
    struct wb_buf bytes;
    uint64_t size;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(wb_object_put(store, wrong[i], WB_SLICE_EMPTY), WB_E_INVALID);
        assert_int_equal(wb_object_get(store, wrong[i], 1, &bytes), WB_E_INVALID);
        assert_int_equal(wb_object_get_range(store, wrong[i], 0, 1, &bytes), WB_E_INVALID);
        assert_int_equal(wb_object_size(store, wrong[i], &size), WB_E_INVALID);
        assert_int_equal(wb_object_delete(store, wrong[i]), WB_E_INVALID);
    }
    memset(longest, 'n', sizeof longest);
    longest[WB_OBJECT_NAME_MAX + 1] = '\0';
    assert_int_equal(wb_object_put(store, longest, WB_SLICE_EMPTY), WB_E_INVALID);
    longest[WB_OBJECT_NAME_MAX] = '\0';
    ok(wb_object_put(store, longest, wb_slice_str("long")));
    expect_object(store, longest, "long");
    wb_object_close(store);
}

static int stop_at_second(void *context, const char *name, uint64_t size)
{
    (void)name, (void)size;
    return ++*(int *)context == 2 ? 77 : 0;
}

static void test_list(void **state)
{
    static const char *const names[] = {"a/x", "a-b", "a.b", "a/x-1/y", "a/x/", "b", "a0", "B", "a/x.z"};
    struct wb_object_store *store = open_at(test_path("list"));
    int seen = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i][strlen(names[i]) - 1] != '/')
            ok(wb_object_put(store, names[i], wb_slice_str(names[i])));
    /* What is no object is not listed. */
    ok(wb_path_replace(test_path("list/a/.hidden"), wb_slice_str("x")));
    ok(wb_path_replace(test_path("list/other file"), wb_slice_str("x")));
    ok(wb_path_mkdirs(test_path("list/empty/folder")));
    assert_int_equal(symlink("b", test_path("list/link")), 0);
    expect_list(store, "", "B 1\na-b 3\na.b 3\na/x 3\na/x-1/y 7\na/x.z 5\na0 2\nb 1\n");
    expect_list(store, "a/", "a/x 3\na/x-1/y 7\na/x.z 5\n");
    expect_list(store, "a", "a-b 3\na.b 3\na/x 3\na/x-1/y 7\na/x.z 5\na0 2\n");
    expect_list(store, "a/x-", "a/x-1/y 7\n");
    expect_list(store, "a/x-1/y", "a/x-1/y 7\n");
    expect_list(store, "c", "");
    assert_int_equal(wb_object_list(store, "", stop_at_second, &seen), 77);
    assert_int_equal(seen, 2);
    wb_object_close(store);
}

/* What killed writers have left is removed by a listing when it is old, and never seen. */
static void test_leftovers(void **state)
{
    struct wb_object_store *store = open_at(test_path("leftovers"));
    struct utimbuf old;

    (void)state;
    ok(wb_object_put(store, "a/b", wb_slice_str("x")));
    ok(wb_path_replace(test_path("leftovers/a/.tmp-0123456789abcdef"), wb_slice_str("half")));
    ok(wb_path_replace(test_path("leftovers/a/.tmp-fedcba9876543210"), wb_slice_str("half")));
    old.actime = old.modtime = (time_t)(wb_clock_wall_ms() / 1000 - 7200);
    assert_int_equal(utime(test_path("leftovers/a/.tmp-0123456789abcdef"), &old), 0);
    expect_list(store, "", "a/b 1\n");
    assert_int_equal(wb_path_kind(test_path("leftovers/a/.tmp-0123456789abcdef")), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(test_path("leftovers/a/.tmp-fedcba9876543210")), WB_PATH_FILE);
    wb_clock_shift(7200000, 0);
    expect_list(store, "", "a/b 1\n");
    assert_int_equal(wb_path_kind(test_path("leftovers/a/.tmp-fedcba9876543210")), WB_PATH_NONE);
    wb_clock_shift(-7200000, 0);
    wb_object_close(store);
}

/* The directory of a vault is made. The one in which it is must be there: it may be a mount that is missing. */
static void test_missing_parent(void **state)
{
    struct wb_object_store *store = open_at(test_path("unmounted/vault"));

    (void)state;
    assert_int_equal(wb_object_put(store, "a", WB_SLICE_EMPTY), WB_E_DENIED);
    assert_non_null(strstr(wb_error_message(), "unmounted"));
    assert_non_null(strstr(wb_error_message(), "mount it"));
    assert_int_equal(wb_path_kind(test_path("unmounted")), WB_PATH_NONE);
    expect_none(store, "a");
    expect_list(store, "", "");
    ok(wb_object_delete(store, "a"));
    wb_object_close(store);
    ok(wb_path_replace(test_path("plain"), wb_slice_str("x")));
    store = open_at(test_path("plain"));
    assert_true(wb_object_put(store, "a", WB_SLICE_EMPTY) < 0);
    assert_non_null(strstr(wb_error_message(), "plain"));
    expect_none(store, "a");
    wb_object_close(store);
}

/* A directory that is removed while the store is open is made again. */
static void test_removed(void **state)
{
    struct wb_object_store *store = open_at(test_path("removed"));

    (void)state;
    ok(wb_object_put(store, "a/b", wb_slice_str("x")));
    assert_int_equal(remove_tree(test_path("removed")), 0);
    expect_none(store, "a/b");
    ok(wb_object_put(store, "a/b", wb_slice_str("y")));
    expect_object(store, "a/b", "y");
    wb_object_close(store);
}

/* ---- many at once ------------------------------------------------------------------------------------------ */

enum { THREADS = 12, NAMES = 5, TURNS = 40, BYTES = 20000 };

/* Every version of a shared object consists of one letter, so a mixture of two shows. */
static void check_uniform(const struct wb_buf *bytes)
{
    must(bytes->len > 0 && bytes->len <= BYTES);
    for (size_t i = 1; i < bytes->len; i++)
        must(bytes->ptr[i] == bytes->ptr[0]);
}

/* Writes, reads, lists and deletes names that all others use as well, and one of its own. */
static void use_store(struct wb_object_store *store, unsigned who)
{
    char *letters = wb_alloc(BYTES), name[32];
    struct wb_buf bytes;

    must(letters != NULL);
    memset(letters, (int)('a' + who % 26), BYTES);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        snprintf(name, sizeof name, "shared/%u", (who * 7 + turn) % NAMES);
        must_ok(wb_object_put(store, name, wb_slice(letters, 1 + (who * 977 + turn * 131) % BYTES)));
        int err = wb_object_get(store, name, BYTES, &bytes);
        must(err == 0 || err == WB_E_NOTFOUND);
        if (err == 0)
            check_uniform(&bytes);
        wb_buf_release(&bytes);
        if (turn % 8 == 0)
            must_ok(wb_object_delete(store, name));
        snprintf(name, sizeof name, "own/%u-%u", who, turn);
        must_ok(wb_object_put(store, name, wb_slice(letters, BYTES)));
    }
    wb_free(letters);
}

struct crowd {
    struct wb_object_store *store;
    unsigned first;
};

static void *use_in_thread(void *context)
{
    struct crowd *crowd = context;
    static atomic_uint next;

    use_store(crowd->store, crowd->first + next++ % THREADS);
    return NULL;
}

static int use_in_process(void *context)
{
    unsigned who = *(unsigned *)context;
    struct wb_object_store *store;
    char url[300];

    snprintf(url, sizeof url, "file://%s", test_path("crowd"));
    must_ok(wb_object_open(url, NULL, &store));
    use_store(store, who);
    wb_object_close(store);
    return 0;
}

static int count_own(void *context, const char *name, uint64_t size)
{
    (void)name;
    assert_int_equal(size, BYTES);
    ++*(unsigned *)context;
    return 0;
}

static void test_crowd(void **state)
{
    static const unsigned numbers[] = {100, 101};
    struct crowd crowd = {.first = 1};
    pthread_t threads[THREADS];
    pid_t children[COUNT(numbers)];
    unsigned own = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++)
        children[i] = start_child(use_in_process, (void *)&numbers[i]);
    crowd.store = open_at(test_path("crowd"));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, &crowd), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < COUNT(numbers); i++)
        assert_int_equal(end_child(children[i]), 0);
    ok(wb_object_list(crowd.store, "own/", count_own, &own));
    assert_int_equal(own, (THREADS + COUNT(numbers)) * TURNS);
    wb_object_close(crowd.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),   cmocka_unit_test(test_ranges),         cmocka_unit_test(test_folders),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_list),           cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_removed), cmocka_unit_test(test_missing_parent), cmocka_unit_test(test_crowd),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
