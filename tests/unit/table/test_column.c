/*
 * test_column.c - writes, maps and verifies columns. The verification notices any byte that has changed, and opening a
 * damaged file never crashes.
 */
#include "../otherformat.h"
#include "table_support.h"

static void write_column(const char *path, size_t record_bytes, size_t count)
{
    struct wb_column_writer *writer;
    char record[64];
    uint64_t bytes;
    struct stat st;

    OK(wb_column_create(path, "test", record_bytes, &writer));
    for (size_t i = 0; i < count; i++) {
        memset(record, (int)(i * 31), sizeof record);
        wb_put32(record, (uint32_t)i);
        OK(wb_column_add(writer, record));
    }
    OK(wb_column_finish(writer, &bytes));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, bytes);
}

static void count_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    (void)offset;
    assert_true(message[0]);
    ++*(unsigned *)context;
}

static unsigned verify_column(const char *path, size_t record_bytes, uint64_t *records_out)
{
    unsigned problems = 0;

    OK(wb_column_verify(path, "test", record_bytes, count_problem, &problems, records_out));
    return problems;
}

static void test_round(void **state)
{
    static const size_t sizes[] = {4, 7, 16, 64}, counts[] = {0, 1, 1000, 65536 / 4, 65537, 200000};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t c = 0; c < COUNT(counts); c++) {
            const char *path = test_path("column");
            struct wb_column column;
            uint64_t records;
            write_column(path, sizes[s], counts[c]);
            assert_int_equal(verify_column(path, sizes[s], &records), 0);
            assert_int_equal(records, counts[c]);
            OK(wb_column_open(path, "test", sizes[s], &column));
            assert_int_equal(column.count, counts[c]);
            assert_int_equal(column.record_bytes, sizes[s]);
            assert_int_equal((uintptr_t)column.records % 64, 0);
            OK(wb_path_unlink(path)); /* an open column stays readable */
            for (size_t i = 0; i < counts[c]; i++) {
                assert_int_equal(wb_get32(wb_column_at(&column, i)), i);
                if (sizes[s] > 4)
                    assert_int_equal(((const uint8_t *)wb_column_at(&column, i))[sizes[s] - 1], (uint8_t)(i * 31));
            }
            wb_column_close(&column);
            wb_column_close(&column);
        }
}

static void test_not_this_column(void **state)
{
    const char *path = test_path("column");
    struct wb_column column;
    struct wb_column_writer *writer;
    unsigned problems = 0;
    uint64_t records;

    (void)state;
    write_column(path, 8, 100);
    assert_int_equal(wb_column_open(path, "rank", 8, &column), WB_E_CORRUPT);
    assert_null(column.map);
    assert_int_equal(wb_column_open(path, "test", 4, &column), WB_E_CORRUPT);
    put_format(path, 0, 8, 2, 56);
    assert_refused_format(wb_column_open(path, "test", 8, &column), path, 2);
    assert_int_equal(wb_column_open(test_path("nothing"), "test", 4, &column), WB_E_NOTFOUND);
    assert_int_equal(wb_column_verify(test_path("nothing"), "test", 4, count_problem, &problems, &records),
                     WB_E_NOTFOUND);
    OK(wb_column_create(path, "test", 8, &writer));
    wb_column_abandon(writer);
    wb_column_abandon(NULL);
    assert_int_equal(wb_column_open(path, "test", 8, &column), WB_E_CORRUPT);
    assert_int_equal(verify_column(path, 8, &records), 1);
}

static void test_flips(void **state)
{
    const char *path = test_path("column"), *changed = test_path("changed");
    uint64_t chance = test_seed(), records;
    struct wb_column column;

    (void)state;
    write_column(path, 12, 20000); /* 240 kB: several sums */
    struct wb_buf bytes = read_whole(path);
    for (size_t i = 0; i < 600; i++) {
        size_t at = i < 64 ? i : i < 192 ? bytes.len - (i - 63) : chance_below(&chance, bytes.len);
        char was = bytes.ptr[at];
        bytes.ptr[at] = (char)(was ^ 1 << chance_below(&chance, 8));
        write_whole(changed, bytes.ptr, bytes.len);
        bytes.ptr[at] = was;
        assert_true(verify_column(changed, 12, &records) > 0);
        int err = wb_column_open(changed, "test", 12, &column);
        assert_true(err == 0 ? at >= 64 && at < bytes.len - 64 : err == WB_E_CORRUPT || err == WB_E_NEWER);
        if (err == 0) {
            assert_int_equal(wb_column_check(&column, 0, column.count), WB_E_CORRUPT);
            /* Records of other pieces can still be read; its own piece is reported as damaged every time. */
            size_t record = at < 64 + 20000 * 12 ? (at - 64) / 12 : (at - 64 - 20000 * 12) / 8 * 65536 / 12 + 1;
            assert_int_equal(wb_column_check(&column, record, 1), WB_E_CORRUPT);
            assert_int_equal(wb_column_check(&column, record, 1), WB_E_CORRUPT);
            assert_int_equal(wb_column_check(&column, (record + 10000) % 20000, 1), 0);
        }
        wb_column_close(&column);
    }
    for (size_t i = 0; i < 300; i++) {
        size_t len = i < 150 ? i : chance_below(&chance, bytes.len);
        write_whole(changed, bytes.ptr, len);
        assert_int_equal(wb_column_open(changed, "test", 12, &column), WB_E_CORRUPT);
        assert_int_equal(verify_column(changed, 12, &records), 1);
    }
    wb_buf_release(&bytes);
}

static void test_faults(void **state)
{
    const char *path = test_path("column");
    unsigned struck = 0;

    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct wb_column_writer *writer = NULL;
        char record[8] = {0};
        struct wb_column column;
        wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
        int err = wb_column_create(path, "test", sizeof record, &writer);
        for (size_t i = 0; err == 0 && i < 100000; i++)
            err = wb_column_add(writer, record);
        int end = writer ? wb_column_finish(writer, NULL) : err;
        if (end == 0)
            end = wb_column_open(path, "test", sizeof record, &column);
        bool hit = wb_fault_struck();
        wb_fault_disarm();
        if (!hit) {
            assert_true(err == 0 && end == 0 && column.count == 100000);
            wb_column_close(&column);
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
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_not_this_column),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
