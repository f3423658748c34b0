/*
 * test_blob.c - writes, maps and verifies blobs. Every byte that has changed is noticed, by opening the blob or by
 * checking the range that holds it.
 */
#include "../otherformat.h"
#include "table_support.h"

#include <pthread.h>

/* Byte i of a test blob; no two pieces are alike. */
static char byte_at(size_t i)
{
    return (char)(i * 31 + i / 1000 * 7);
}

static void write_blob(const char *path, size_t bytes, uint64_t *chance)
{
    struct wb_blob_writer *writer;
    static char part[700000];
    uint64_t file_bytes;
    struct stat st;

    OK(wb_blob_create(path, "test", &writer));
    for (size_t at = 0; at < bytes;) {
        size_t len = chance_one_in(chance, 20) ? chance_below(chance, sizeof part) : chance_below(chance, 5000);
        len = len < bytes - at ? len : bytes - at;
        for (size_t i = 0; i < len; i++)
            part[i] = byte_at(at + i);
        assert_int_equal(wb_blob_tell(writer), at);
        OK(wb_blob_append(writer, part, len));
        at += len;
    }
    OK(wb_blob_append(writer, NULL, 0));
    OK(wb_blob_finish(writer, &file_bytes));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, file_bytes);
}

static void count_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    (void)offset;
    assert_true(message[0]);
    ++*(unsigned *)context;
}

static unsigned verify_blob(const char *path, uint64_t *bytes_out)
{
    unsigned problems = 0;

    OK(wb_blob_verify(path, "test", count_problem, &problems, bytes_out));
    return problems;
}

static void test_round(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 65535, 65536, 65537, 262144, 1000000, 3000000};
    uint64_t chance = test_seed(), bytes;

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        const char *path = test_path("blob");
        struct wb_blob blob;
        write_blob(path, sizes[s], &chance);
        assert_int_equal(verify_blob(path, &bytes), 0);
        assert_int_equal(bytes, sizes[s]);
        OK(wb_blob_open(path, "test", &blob));
        OK(wb_path_unlink(path)); /* an open blob stays readable */
        assert_int_equal(blob.bytes, sizes[s]);
        assert_int_equal((uintptr_t)blob.data % 64, 0);
        OK(wb_blob_check(&blob, sizes[s], 0));
        OK(wb_blob_check(&blob, sizes[s] / 2, sizes[s] - sizes[s] / 2));
        OK(wb_blob_check(&blob, 0, sizes[s]));
        assert_int_equal(wb_blob_check(&blob, 0, sizes[s] + 1), WB_E_CORRUPT);
        assert_non_null(strstr(wb_error_message(), path));
        assert_int_equal(wb_blob_check(&blob, sizes[s] + 1, 0), WB_E_CORRUPT);
        assert_int_equal(wb_blob_check(&blob, 1, UINT64_MAX), WB_E_CORRUPT);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_true(blob.data[i] == byte_at(i));
        wb_blob_close(&blob);
        wb_blob_close(&blob);
    }
}

/* The bytes of the file do not depend on how the data was cut when it was appended. */
static void test_same_bytes(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    write_blob(test_path("one"), 500000, &chance);
    write_blob(test_path("two"), 500000, &chance);
    struct wb_buf one = read_whole(test_path("one")), two = read_whole(test_path("two"));
    assert_true(same_bytes(wb_buf_slice(&one), wb_buf_slice(&two)));
    wb_buf_release(&one);
    wb_buf_release(&two);
}

static void test_not_this_blob(void **state)
{
    const char *path = test_path("blob");
    struct wb_blob blob;
    struct wb_blob_writer *writer;
    unsigned problems = 0;
    uint64_t chance = test_seed(), bytes;

    (void)state;
    write_blob(path, 1000, &chance);
    assert_int_equal(wb_blob_open(path, "rank", &blob), WB_E_CORRUPT);
    assert_null(blob.map);
    put_format(path, 0, 8, 2, 56);
    assert_refused_format(wb_blob_open(path, "test", &blob), path, 2);
    assert_int_equal(wb_blob_open(test_path("nothing"), "test", &blob), WB_E_NOTFOUND);
    assert_int_equal(wb_blob_verify(test_path("nothing"), "test", count_problem, &problems, &bytes), WB_E_NOTFOUND);
    OK(wb_blob_create(path, "test", &writer));
    OK(wb_blob_append(writer, "abc", 3));
    wb_blob_abandon(writer);
    wb_blob_abandon(NULL);
    assert_int_equal(wb_blob_open(path, "test", &blob), WB_E_CORRUPT);
    assert_int_equal(verify_blob(path, &bytes), 1);
}

static void test_flips(void **state)
{
    const char *path = test_path("blob"), *changed = test_path("changed");
    uint64_t chance = test_seed(), unused;
    struct wb_blob blob;

    (void)state;
    write_blob(path, 240000, &chance);
    struct wb_buf bytes = read_whole(path);
    for (size_t i = 0; i < 600; i++) {
        size_t at = i < 64 ? i : i < 192 ? bytes.len - (i - 63) : chance_below(&chance, bytes.len);
        char was = bytes.ptr[at];
        bytes.ptr[at] = (char)(was ^ 1 << chance_below(&chance, 8));
        write_whole(changed, bytes.ptr, bytes.len);
        bytes.ptr[at] = was;
        assert_true(verify_blob(changed, &unused) > 0);
        int err = wb_blob_open(changed, "test", &blob);
        assert_true(err == 0 ? at >= 64 && at < 64 + 240000 : err == WB_E_CORRUPT || err == WB_E_NEWER);
        if (err == 0) {
            assert_int_equal(wb_blob_check(&blob, 0, blob.bytes), WB_E_CORRUPT);
            /* Other pieces can still be read; its own piece is reported as damaged every time. */
            assert_int_equal(wb_blob_check(&blob, at - 64, 1), WB_E_CORRUPT);
            assert_int_equal(wb_blob_check(&blob, at - 64, 1), WB_E_CORRUPT);
            assert_non_null(strstr(wb_error_message(), changed));
            OK(wb_blob_check(&blob, (at - 64 + 120000) % 240000, 1));
        }
        wb_blob_close(&blob);
    }
    for (size_t i = 0; i < 300; i++) {
        size_t len = i < 150 ? i : chance_below(&chance, bytes.len);
        write_whole(changed, bytes.ptr, len);
        assert_int_equal(wb_blob_open(changed, "test", &blob), WB_E_CORRUPT);
        assert_int_equal(verify_blob(changed, &unused), 1);
    }
    wb_buf_release(&bytes);
}

static void *check_everything(void *context)
{
    const struct wb_blob *blob = context;
    uint64_t chance = (uintptr_t)pthread_self();

    for (size_t i = 0; i < 1000; i++)
        if (wb_blob_check(blob, chance_below(&chance, blob->bytes), 1) < 0)
            return context;
    return NULL;
}

static void test_threads(void **state)
{
    uint64_t chance = test_seed();
    struct wb_blob blob;
    pthread_t threads[4];
    void *failed;

    (void)state;
    write_blob(test_path("blob"), 1000000, &chance);
    OK(wb_blob_open(test_path("blob"), "test", &blob));
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_everything, &blob), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    wb_blob_close(&blob);
}

static void test_faults(void **state)
{
    const char *path = test_path("blob");
    static const char part[100000] = {1};
    unsigned struck = 0;

    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct wb_blob_writer *writer = NULL;
        struct wb_blob blob;
        wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
        int err = wb_blob_create(path, "test", &writer);
        for (size_t i = 0; err == 0 && i < 10; i++)
            err = wb_blob_append(writer, part, sizeof part);
        int end = writer ? wb_blob_finish(writer, NULL) : err;
        if (end == 0)
            end = wb_blob_open(path, "test", &blob);
        bool hit = wb_fault_struck();
        wb_fault_disarm();
        if (!hit) {
            assert_true(err == 0 && end == 0 && blob.bytes == 10 * sizeof part);
            wb_blob_close(&blob);
            break;
        }
        struck++;
        assert_true(end == WB_E_IO || end == WB_E_NOMEM);
    }
    assert_true(struck > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round), cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_not_this_blob),
        cmocka_unit_test(test_flips), cmocka_unit_test(test_threads),    cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
