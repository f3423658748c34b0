/* test_filestore_fault.c - a directory on a disk that fails: an object has its old bytes or the new ones. */
#include "object_support.h"

#include "../faultkinds.h"
#include "../testroot.h"
#include "../unsynced.h"
#include "os/clock.h"
#include "os/path.h"

#include <stdlib.h>

static struct wb_object_store *store;

static int open_store(void **state)
{
    char url[300];

    make_root(state);
    snprintf(url, sizeof url, "file://%s", test_path("vault"));
    return wb_object_open(url, NULL, &store);
}

static int close_store(void **state)
{
    wb_object_close(store);
    return remove_root(state);
}

static int count_entry(void *context, const struct wb_path_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return 0;
}

static void expect_files(const char *dir, unsigned want)
{
    unsigned count = 0;

    ok(wb_path_each(test_path(dir), count_entry, &count));
    assert_int_equal(count, want);
}

/* Every step of a put fails once, in every way that it can. */
static void test_put(void **state)
{
    unsigned struck = 0;

    (void)state;
    ok(wb_object_put(store, "a/b", wb_slice_str("old")));
    for (size_t kind = 0; kind < COUNT(fault_kinds); kind++) {
        for (uint64_t n = 1;; n++) {
            wb_fault_arm(fault_kinds[kind].kind, n, fault_kinds[kind].error);
            int err = wb_object_put(store, "a/b", wb_slice_str("new bytes"));
            wb_fault_disarm();
            if (!wb_fault_struck()) {
                ok(err);
                break;
            }
            struck++;
            struct wb_buf bytes = bytes_of(store, "a/b");
            bool is_new = wb_slice_equal(wb_buf_slice(&bytes), WB_SLICE_LIT("new bytes"));
            if (err < 0)
                assert_true(is_new || wb_slice_equal(wb_buf_slice(&bytes), WB_SLICE_LIT("old")));
            else
                assert_true(is_new);
            wb_buf_release(&bytes);
            expect_files("vault/a", 1);
            if (err < 0 && fault_kinds[kind].error == EACCES)
                assert_int_equal(err, WB_E_DENIED);
            if (err < 0 && fault_kinds[kind].error == ENOSPC)
                assert_non_null(strstr(wb_error_message(), "No space left"));
            ok(wb_object_put(store, "a/b", wb_slice_str("old")));
        }
    }
    assert_true(struck > 6);
}

/* The first put makes directories. Whatever fails, the next attempt works. */
static void test_first_put(void **state)
{
    unsigned struck = 0;

    (void)state;
    for (uint64_t n = 1;; n++) {
        assert_true(wb_path_kind(test_path("vault")) == WB_PATH_NONE || remove_tree(test_path("vault")) == 0);
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = wb_object_put(store, "a/b/c", wb_slice_str("bytes"));
        wb_fault_disarm();
        if (!wb_fault_struck()) {
            ok(err);
            break;
        }
        struck++;
        if (err == 0)
            expect_object(store, "a/b/c", "bytes");
        ok(wb_object_put(store, "a/b/c", wb_slice_str("bytes")));
        expect_object(store, "a/b/c", "bytes");
        expect_list(store, "", "a/b/c 5\n");
    }
    assert_true(struck > 8);
}

/* A failure to read is an error, and never "no such object". */
static void test_read(void **state)
{
    unsigned struck = 0;

    (void)state;
    ok(wb_object_put(store, "a/b", wb_slice_str("bytes")));
    for (uint64_t n = 1;; n++) {
        struct wb_buf bytes, range = WB_BUF_INIT, lines = WB_BUF_INIT;
        uint64_t size;
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = wb_object_get(store, "a/b", 100, &bytes);
        if (err == 0)
            err = wb_object_get_range(store, "a/b", 1, 3, &range);
        if (err == 0)
            err = wb_object_size(store, "a/b", &size);
        if (err == 0)
            err = wb_object_list(store, "", append_entry, &lines);
        wb_fault_disarm();
        bool did = wb_fault_struck();
        if (!did) {
            ok(err);
            expect(wb_buf_slice(&bytes), "bytes");
            expect(wb_buf_slice(&range), "yte");
            expect(wb_buf_slice(&lines), "a/b 5\n");
        } else {
            struck++;
            assert_true(err == WB_E_IO || err == WB_E_NOMEM);
        }
        wb_buf_release(&bytes);
        wb_buf_release(&range);
        wb_buf_release(&lines);
        if (!did)
            break;
    }
    assert_true(struck > 6);
}

/* Opening a store without memory. */
static void test_open(void **state)
{
    uint64_t n = 1;

    (void)state;
    for (;; n++) {
        struct wb_object_store *other = NULL;
        wb_fault_arm(WB_FAULT_ALLOC, n, ENOMEM);
        int err = wb_object_open("file:///tmp", NULL, &other);
        wb_fault_disarm();
        wb_object_close(other);
        if (!wb_fault_struck()) {
            ok(err);
            break;
        }
        assert_int_equal(err, WB_E_NOMEM);
        assert_null(other);
    }
    assert_true(n > 2);
}

/* ---- the order of things ----------------------------------------------------------------------------------- */

static int note_step(void *context, enum wb_fault_kind kind, const char *path)
{
    static const struct {
        enum wb_fault_kind kind;
        const char *name;
    } names[] = {{WB_FAULT_WRITE, "write"}, {WB_FAULT_SYNC, "sync"}, {WB_FAULT_RENAME, "rename"}};

    for (size_t i = 0; i < COUNT(names); i++)
        if (kind == names[i].kind) {
            const char *last = strrchr(path, '/') + 1;
            ok(wb_buf_printf(context, "%s %s, ", names[i].name, strncmp(last, ".tmp-", 5) == 0 ? "temporary" : last));
        }
    return 0;
}

/* An object gets its name after its bytes are on disk, and a put ends after the name is. */
static void test_order(void **state)
{
    struct wb_buf steps = WB_BUF_INIT;

    (void)state;
    ok(wb_object_put(store, "a/b", wb_slice_str("old")));
    wb_fault_ask(note_step, &steps);
    ok(wb_object_put(store, "a/b", wb_slice_str("new")));
    ok(wb_object_put(store, "c/d", wb_slice_str("new")));
    ok(wb_object_delete(store, "a/b"));
    wb_fault_ask(NULL, NULL);
    expect(wb_buf_slice(&steps), "write temporary, sync temporary, rename b, sync a, "
                                 "sync vault, write temporary, sync temporary, rename d, sync c, "
                                 "sync a, ");
    wb_buf_release(&steps);
}

/* ---- what passes ------------------------------------------------------------------------------------------- */

struct trouble {
    enum wb_fault_kind kind;
    int error;
    unsigned left;    /* how often it still strikes */
    int64_t shift_ms; /* how far the clock goes each time */
    bool removes;     /* the temporary name vanishes before it is renamed */
    unsigned asked;
};

static int make_trouble(void *context, enum wb_fault_kind kind, const char *path)
{
    struct trouble *trouble = context;

    if (kind != trouble->kind || !strstr(path, "vault"))
        return 0;
    trouble->asked++;
    if (trouble->left == 0)
        return 0;
    trouble->left--;
    wb_clock_shift(0, trouble->shift_ms);
    if (!trouble->removes)
        return trouble->error;
    char command[300];
    snprintf(command, sizeof command, "rm -f %s/.tmp-*", test_path("vault"));
    assert_int_equal(system(command), 0);
    return 0;
}

static int put_in_trouble(struct trouble *trouble)
{
    wb_fault_ask(make_trouble, trouble);
    int err = wb_object_put(store, "a", wb_slice_str("bytes"));
    wb_fault_ask(NULL, NULL);
    return err;
}

/* What NFS reports for a passing reason is tried again; so is a temporary file that somebody has removed. */
static void test_passing(void **state)
{
    struct trouble troubles[] = {
        {.kind = WB_FAULT_OPEN, .error = ESTALE, .left = 2},   {.kind = WB_FAULT_WRITE, .error = ETIMEDOUT, .left = 1},
        {.kind = WB_FAULT_SYNC, .error = ESTALE, .left = 1},   {.kind = WB_FAULT_RENAME, .error = ESTALE, .left = 2},
        {.kind = WB_FAULT_RENAME, .left = 3, .removes = true},
    };
    struct wb_object_counts before, after;

    (void)state;
    ok(wb_object_put(store, "a", wb_slice_str("old")));
    for (size_t i = 0; i < COUNT(troubles); i++) {
        unsigned times = troubles[i].left;
        wb_object_counts(store, &before);
        ok(put_in_trouble(&troubles[i]));
        wb_object_counts(store, &after);
        assert_int_equal(after.repeated - before.repeated, times);
        expect_object(store, "a", "bytes");
        expect_files("vault", 1);
    }
}

/* A server that stays away is given up: after the time that was set, by the clock. */
static void test_given_up(void **state)
{
    struct trouble trouble = {.kind = WB_FAULT_RENAME, .error = ESTALE, .left = UINT32_MAX, .shift_ms = 12000};

    (void)state;
    assert_int_equal(put_in_trouble(&trouble), WB_E_DOWN);
    assert_non_null(strstr(wb_error_message(), "file://"));
    assert_non_null(strstr(wb_error_message(), "does not answer"));
    assert_int_equal(trouble.asked, 3);
    ok(wb_object_put(store, "a", wb_slice_str("x")));
}

/* Other failures are not repeated. */
static void test_final(void **state)
{
    static const struct {
        int error, code;
    } finals[] = {{ENOSPC, WB_E_IO}, {EIO, WB_E_IO}, {EACCES, WB_E_DENIED}, {EROFS, WB_E_DENIED}, {EDQUOT, WB_E_IO}};

    (void)state;
    for (size_t i = 0; i < COUNT(finals); i++) {
        struct trouble trouble = {.kind = WB_FAULT_WRITE, .error = finals[i].error, .left = 5};
        assert_int_equal(put_in_trouble(&trouble), finals[i].code);
        assert_int_equal(trouble.asked, 1);
        assert_non_null(strstr(wb_error_message(), test_path("vault")));
        expect_files("vault", 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_first_put, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_read, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_open, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_order, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_passing, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_given_up, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_final, open_store, close_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
