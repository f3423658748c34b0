/* test_superblock.c - webbase.repo: what was written can be read; anything else is refused, naming the file. */
#include "store_support.h"
#include "base/hash.h"
#include "os/path.h"

static char dir[DIR_MAX], path[DIR_MAX];

static int make_dir(void **state)
{
    (void)state;
    test_dir(dir);
    path_in(dir, WB_SUPERBLOCK_NAME, path);
    return 0;
}

static const struct wb_superblock example = {
    .design = {.batch = true, .update = {.organisation = WB_ORGANISATION_HASHED_LOG}},
    .id = {1, 2, 3, 255},
    .created_ms = 1700000000123};

static void test_round_trip(void **state)
{
    struct wb_superblock read;
    struct wb_buf bytes;

    (void)state;
    assert_int_equal(wb_superblock_write(dir, &example), 0);
    assert_int_equal(wb_superblock_read(dir, &read), 0);
    assert_memory_equal(&read.design, &example.design, sizeof read.design);
    assert_memory_equal(read.id, example.id, sizeof read.id);
    assert_int_equal(read.created_ms, example.created_ms);
    assert_int_equal(wb_path_read(path, 4096, &bytes), 0);
    assert_true(
        wb_slice_starts(wb_buf_slice(&bytes),
                        WB_SLICE_LIT("webbase repository\nformat 1\ndesign Batch[U(hash,hashed-log),R(hash,log)]\n"
                                     "id 010203ff000000000000000000000000\n"
                                     "created 2023-11-14T22:13:20.123Z\ncheck ")));
    wb_buf_release(&bytes);
}

/* Writes text followed by a line with the right checksum. */
static int read_text(const char *text, bool with_check)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_superblock read;

    must_ok(wb_buf_append_str(&bytes, text));
    if (with_check)
        must_ok(wb_buf_printf(&bytes, "check %016llx\n", (unsigned long long)wb_hash64(text, strlen(text))));
    must_ok(wb_path_replace(path, wb_buf_slice(&bytes)));
    wb_buf_release(&bytes);
    return wb_superblock_read(dir, &read);
}

#define LINE1 "webbase repository\n"
#define KIND "design Incr[uniform,hash]\n"
#define ID "id 010203ff000000000000000000000000\n"
#define CREATED "created 2023-11-14T22:13:20.123Z\n"

static void test_rules(void **state)
{
    static const char *const wrong[] = {
        "",
        "webbase\nformat 1\n" KIND ID CREATED,
        "webbase store\nformat 1\n" KIND ID CREATED,
        LINE1 "format 0\n" KIND ID CREATED,
        LINE1 "format x\n" KIND ID CREATED,
        LINE1 "format 18446744073709551616\n" KIND ID CREATED,
        LINE1 KIND "format 1\n" ID CREATED,
        LINE1 "format 1\ndesign \n" ID CREATED,
        LINE1 "format 1\ndesign Incr[moon,log]\n" ID CREATED,
        LINE1 "format 1\norganisation log\nupdate incremental\n" ID CREATED,
        LINE1 "format 1\n" ID CREATED,
        LINE1 "format 1\n" KIND CREATED,
        LINE1 "format 1\n" KIND "id 0102\n" CREATED,
        LINE1 "format 1\n" KIND ID,
        LINE1 "format 1\n" KIND ID "created yesterday\n",
        LINE1 "format 1\n" KIND ID CREATED "extra line\n",
    };

    (void)state;
    assert_int_equal(read_text(LINE1 "format 1\n" KIND ID CREATED, true), 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(read_text(wrong[i], true), WB_E_CORRUPT);
        assert_non_null(strstr(wb_error_message(), path));
    }
    assert_int_equal(read_text(LINE1 "format 1\n" KIND ID CREATED, false), WB_E_CORRUPT);
    assert_int_equal(read_text(LINE1 "format 1\n" KIND ID CREATED "check 0000000000000000\n", false), WB_E_CORRUPT);
}

static void test_newer(void **state)
{
    struct wb_store *store;
    struct wb_store_verify_counts result;

    (void)state;
    /* We do not judge what else a newer format contains, or how it ends. */
    assert_int_equal(read_text(LINE1 "format 2\nsomething else\n", false), WB_E_NEWER);
    assert_non_null(strstr(wb_error_message(), "has format 2; this program reads format 1"));
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(wb_store_open(dir, WB_STORE_WRITE, &store), WB_E_NEWER);
    assert_non_null(strstr(wb_error_message(), path));
    assert_null(store);
    assert_int_equal(wb_store_verify(dir, NULL, NULL, NULL, NULL, &result), WB_E_NEWER);
    assert_true(wb_store_exists(dir));
    assert_int_equal(wb_store_create(dir, &(struct wb_store_options){0}), WB_E_INVALID);
}

static void test_not_a_repository(void **state)
{
    struct wb_superblock read;
    struct wb_store *store;
    char other[DIR_MAX], missing[DIR_MAX], file[DIR_MAX], large[5000];

    (void)state;
    test_dir(other);
    path_in(other, "missing", missing);
    assert_int_equal(wb_superblock_read(other, &read), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), other));
    assert_int_equal(wb_store_open(missing, WB_STORE_READ, &store), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), missing));
    path_in(other, "file", file);
    must_ok(wb_path_replace(file, WB_SLICE_LIT("hello")));
    assert_int_equal(wb_store_open(file, WB_STORE_READ, &store), WB_E_NOTFOUND);
    assert_int_equal(wb_store_create(file, &(struct wb_store_options){0}), WB_E_INVALID);
    /* It contains files that are not ours. */
    assert_int_equal(wb_store_create(other, &(struct wb_store_options){0}), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), other));
    assert_int_equal(wb_path_kind(missing), WB_PATH_NONE);
    memset(large, 'x', sizeof large);
    must_ok(wb_path_replace(path, wb_slice(large, sizeof large)));
    assert_true(wb_superblock_read(dir, &read) < 0);
    assert_non_null(strstr(wb_error_message(), path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_not_a_repository),
    };

    return cmocka_run_group_tests(tests, make_dir, NULL);
}
