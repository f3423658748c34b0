/* test_manifest.c - the manifest of an edition, and which edition is the newest. */
#include "../journal/edit_support.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "webdb/edition.h"

enum { HEAD_BYTES = 104, LOG_BYTES = 20, CHECK_BYTES = 8 };

static const char *dir;
static char *path;

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    path = wb_path_join(dir, WB_MANIFEST_FILE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wb_free(path);
    return 0;
}

static struct wb_manifest_log logs[] = {{1, 64, 100}, {7, 0, 0}, {4000000000, UINT64_MAX - 1, UINT64_MAX}};
static const struct wb_manifest sample = {
    .count = {.edition = 3,
              .pages = 90,
              .fetched = 80,
              .links = 1ull << 40,
              .contents = 70,
              .sites = 6,
              .bytes = 5000,
              .link_bytes = 400,
              .time_ms = 1767225600000,
              .store_epoch = 1ull << 50},
    .rows = 100,
    .logs = {.items = logs, .count = COUNT(logs)},
};

static void expect_same(const struct wb_manifest *found, const struct wb_manifest *expected)
{
    const struct wb_webdb_count *a = &found->count, *b = &expected->count;

    assert_int_equal(a->edition, b->edition);
    assert_true(a->pages == b->pages && a->fetched == b->fetched && a->links == b->links && a->contents == b->contents);
    assert_true(a->sites == b->sites && a->bytes == b->bytes && a->link_bytes == b->link_bytes &&
                a->time_ms == b->time_ms);
    assert_true(found->rows == expected->rows && a->urls == expected->rows && a->store_epoch == b->store_epoch);
    assert_int_equal(found->logs.count, expected->logs.count);
    for (size_t i = 0; i < found->logs.count; i++) {
        assert_int_equal(found->logs.items[i].log, expected->logs.items[i].log);
        assert_true(found->logs.items[i].last == expected->logs.items[i].last &&
                    found->logs.items[i].end == expected->logs.items[i].end);
    }
}

static void test_round_trip(void **state)
{
    struct wb_manifest found, none = sample;

    (void)state;
    assert_int_equal(wb_manifest_write(path, &sample), 0);
    assert_int_equal(wb_manifest_read(path, &found), 0);
    expect_same(&found, &sample);
    wb_manifest_release(&found);
    assert_null(found.logs.items);
    none.logs.items = NULL;
    none.logs.count = 0;
    assert_int_equal(wb_manifest_write(path, &none), 0);
    assert_int_equal(wb_manifest_read(path, &found), 0);
    expect_same(&found, &none);
    wb_manifest_release(&found);
}

static int read_bytes(struct wb_slice bytes)
{
    struct wb_manifest found;

    assert_int_equal(wb_path_replace(path, bytes), 0);
    int err = wb_manifest_read(path, &found);
    assert_true(err == 0 || !found.logs.items);
    wb_manifest_release(&found);
    return err;
}

/* Changes some bytes, corrects the checksum, and reads the result. */
static int read_changed(size_t at, const void *bytes, size_t len)
{
    struct wb_buf copy = WB_BUF_INIT;

    assert_int_equal(wb_manifest_write(path, &sample), 0);
    assert_int_equal(wb_path_read(path, 1 << 20, &copy), 0);
    memcpy(copy.ptr + at, bytes, len);
    wb_put64(copy.ptr + copy.len - CHECK_BYTES, wb_hash64(copy.ptr, copy.len - CHECK_BYTES));
    int err = read_bytes(wb_buf_slice(&copy));
    wb_buf_release(&copy);
    return err;
}

static void test_damage(void **state)
{
    struct wb_buf whole = WB_BUF_INIT;
    struct wb_manifest found;

    (void)state;
    assert_int_equal(wb_manifest_read(path, &found), WB_E_NOTFOUND);
    assert_int_equal(wb_manifest_write(path, &sample), 0);
    assert_int_equal(wb_path_read(path, 1 << 20, &whole), 0);
    assert_int_equal(whole.len, HEAD_BYTES + COUNT(logs) * LOG_BYTES + CHECK_BYTES);
    for (size_t i = 0; i < whole.len; i++) {
        whole.ptr[i] ^= 4;
        assert_int_equal(read_bytes(wb_buf_slice(&whole)), WB_E_CORRUPT);
        whole.ptr[i] ^= 4;
        assert_int_equal(read_bytes(wb_slice(whole.ptr, i)), WB_E_CORRUPT);
    }
    assert_int_equal(read_bytes(wb_buf_slice(&whole)), 0);
    assert_int_equal(wb_buf_append_char(&whole, 0), 0);
    assert_int_equal(read_bytes(wb_buf_slice(&whole)), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), WB_MANIFEST_FILE));
    wb_buf_release(&whole);
}

/* Values that make no sense are refused even if the checksum is right. */
static void test_nonsense(void **state)
{
    (void)state;
    assert_int_equal(read_changed(8, "\x02", 1), WB_E_NEWER);
    assert_non_null(strstr(wb_error_message(), WB_MANIFEST_FILE " has format 2; this program reads format 1"));
    assert_int_equal(read_changed(8, "\x00", 1), WB_E_NEWER);
    assert_int_equal(read_changed(92, "\x01", 1), WB_E_CORRUPT);
    assert_int_equal(read_changed(88, "\x02", 1), WB_E_CORRUPT);             /* fewer logs */
    assert_int_equal(read_changed(88, "\xff\xff\xff\xff", 4), WB_E_CORRUPT); /* many more */
    assert_int_equal(read_changed(24, "\x59", 1), WB_E_CORRUPT);             /* 89 rows, 90 pages */
    assert_int_equal(read_changed(40, "\x5b", 1), WB_E_CORRUPT);             /* 91 of them fetched */
    assert_int_equal(read_changed(HEAD_BYTES, "\x00", 1), WB_E_CORRUPT);
    assert_int_equal(read_changed(HEAD_BYTES, "\x08", 1), WB_E_CORRUPT);     /* 8 before 7 */
    assert_int_equal(read_changed(HEAD_BYTES + 12, "\x40", 1), WB_E_CORRUPT); /* a record without length */
}

static void test_faults(void **state)
{
    struct wb_manifest found;

    (void)state;
    assert_int_equal(wb_manifest_write(path, &sample), 0);
    for (uint64_t nth = 1;; nth++) {
        struct wb_manifest other = sample;
        other.rows = 1000;
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = wb_manifest_write(path, &other);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        assert_int_equal(wb_manifest_read(path, &found), 0); /* the old one or the new one, complete */
        assert_true(found.rows == sample.rows || found.rows == other.rows);
        wb_manifest_release(&found);
        if (!struck)
            break;
    }
    for (uint64_t nth = 1;; nth++) {
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = wb_manifest_read(path, &found);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        wb_manifest_release(&found);
        if (!struck)
            break;
    }
}

static void make_dir(const char *name)
{
    char *made = wb_path_join(dir, name);

    assert_int_equal(wb_path_mkdirs(made), 0);
    wb_free(made);
}

static void expect_newest(uint32_t expected)
{
    uint32_t number;

    assert_int_equal(wb_edition_newest(dir, &number), 0);
    assert_int_equal(number, expected);
}

static void test_newest(void **state)
{
    (void)state;
    expect_newest(0);
    make_dir("webdb");
    expect_newest(0);
    make_dir("webdb/new-00000009");
    make_dir("webdb/9");
    make_dir("webdb/00000009x");
    make_dir("webdb/00000000");
    make_dir("webdb/18446744073709551617");
    expect_newest(0);
    make_dir("webdb/00000002");
    make_dir("webdb/00000010");
    expect_newest(10);
    make_dir("webdb/100000000");
    expect_newest(100000000);
    char *file = wb_edition_path(dir, 200000000);
    assert_int_equal(wb_path_replace(file, WB_SLICE_LIT("a file")), 0);
    expect_newest(100000000);
    wb_free(file);
}

static void test_remove(void **state)
{
    char *edition = wb_edition_path(dir, 12);

    (void)state;
    assert_string_equal(edition + strlen(dir), "/webdb/00000012");
    assert_int_equal(wb_series_remove(edition), 0); /* it does not exist */
    make_dir("webdb/00000012");
    char *file = wb_path_join(edition, WB_PAGES_FILE);
    assert_int_equal(wb_path_replace(file, WB_SLICE_LIT("pages")), 0);
    assert_int_equal(wb_series_remove(edition), 0);
    assert_int_equal(wb_path_kind(edition), WB_PATH_NONE);
    expect_newest(0);
    wb_free(file);
    wb_free(edition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_remove, setup, teardown),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
