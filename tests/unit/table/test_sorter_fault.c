/*
 * test_sorter_fault.c - makes every allocation, open, read and write of a sort fail once. The sorter must report it,
 * must not return a wrong record, and must leave neither a file nor a thread that waits forever.
 */
#include "table_support.h"

#include <dirent.h>

static struct list all;

static int build_all(void **state)
{
    uint64_t chance = test_seed();
    char memory[700], value[100];

    if (make_root(state) < 0)
        return -1;
    memset(value, 'v', sizeof value);
    while (all.bytes.len < 9 << 20) {
        struct wb_slice key = random_key(&chance, memory, sizeof memory);
        list_add(&all, key, wb_slice(value, chance_below(&chance, sizeof value)));
    }
    char *large = calloc(1, 300 << 10); /* a record that needs a block to itself */
    if (!large)
        return -1;
    list_add(&all, WB_SLICE_LIT("large"), wb_slice(large, 300 << 10));
    free(large);
    return 0;
}

static int forget_all(void **state)
{
    list_release(&all);
    return remove_root(state);
}

static void no_files(void)
{
    struct dirent *entry;
    DIR *dir = opendir(test_root);

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        assert_int_equal(entry->d_name[0], '.');
    closedir(dir);
}

/* A hash of the records in the order in which they came out. */
static int sort_all(unsigned threads, uint64_t *mix_out)
{
    struct wb_sorter *sorter = NULL;
    struct wb_table_record record;
    struct wb_buf last = WB_BUF_INIT;
    int more = 0, err = wb_sorter_open(&(struct wb_sorter_options){test_root, 4 << 20, threads}, &sorter);
    bool any = false;

    *mix_out = 0;
    for (size_t i = 0; i < all.count && err == 0; i++)
        err = wb_sorter_add(sorter, list_key(&all, i), list_value(&all, i));
    if (err < 0 && sorter) /* after an error every call fails */
        assert_true(wb_sorter_sort(sorter) < 0 && wb_sorter_next(sorter, &record) < 0);
    if (err == 0)
        err = wb_sorter_sort(sorter);
    while (err == 0 && (more = wb_sorter_next(sorter, &record)) != 0) {
        if (more < 0) {
            assert_true(wb_sorter_next(sorter, &record) < 0);
            err = more;
            break;
        }
        assert_true(!any || order_of(wb_buf_slice(&last), record.key) <= 0);
        uint8_t ending = record.key.len ? (uint8_t)record.key.ptr[record.key.len - 1] : 0;
        *mix_out = *mix_out * 31 + record.key.len + record.value.len * 7 + ending;
        /* Not wb_buf_append(): the fault must not hit the test itself. */
        if (record.key.len > last.cap) {
            free(last.ptr);
            last = (struct wb_buf){malloc(record.key.len), 0, record.key.len};
            assert_non_null(last.ptr);
        }
        if (record.key.len)
            memcpy(last.ptr, record.key.ptr, record.key.len);
        last.len = record.key.len;
        any = true;
    }
    wb_sorter_close(sorter);
    free(last.ptr);
    return err;
}

static void fail_each(unsigned kinds, unsigned threads, uint64_t first_step)
{
    uint64_t right, mix, nth = 1, struck = 0;

    OK(sort_all(threads, &right));
    for (;; nth += nth < 40 ? 1 : first_step) {
        wb_fault_arm(kinds, nth, ENOSPC);
        int err = sort_all(threads, &mix);
        bool hit = wb_fault_struck();
        wb_fault_disarm();
        no_files();
        if (!hit) {
            assert_int_equal(err, 0);
            assert_int_equal(mix, right);
            break;
        }
        struck++;
        if (err == 0)
            fail_msg("operation %llu of kinds %x failed and nobody said so", (unsigned long long)nth, kinds);
        assert_true(err == WB_E_IO || err == WB_E_NOMEM);
        if (err == WB_E_IO) /* the message names the directory and the reason */
            assert_true(strstr(wb_error_message(), test_root) && strstr(wb_error_message(), strerror(ENOSPC)));
    }
    assert_true(struck > 0);
    printf("# kinds %x, %u threads: %llu faults\n", kinds, threads, (unsigned long long)struck);
}

static void test_files(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads < 3; threads++)
        fail_each(WB_FAULT_OPEN | WB_FAULT_READ | WB_FAULT_WRITE | WB_FAULT_SYNC | WB_FAULT_RENAME, threads, 17);
}

static void test_allocations(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads < 3; threads++)
        fail_each(WB_FAULT_ALLOC, threads, 41);
}

/* A sorter can be closed at any moment: it waits for its threads and leaves nothing behind. */
static void test_closed_early(void **state)
{
    struct wb_table_record record;

    (void)state;
    for (size_t part = 0; part < 6; part++) {
        struct wb_sorter *sorter;
        OK(wb_sorter_open(&(struct wb_sorter_options){test_root, 4 << 20, 2}, &sorter));
        size_t count = part < 3 ? all.count * part / 2 : all.count;
        for (size_t i = 0; i < count; i++)
            OK(wb_sorter_add(sorter, list_key(&all, i), list_value(&all, i)));
        if (part >= 3)
            OK(wb_sorter_sort(sorter));
        for (size_t i = 0; part >= 4 && i < all.count * (part - 4) / 2 + 1; i++)
            assert_int_equal(wb_sorter_next(sorter, &record), 1);
        wb_sorter_close(sorter);
        no_files();
    }
}

static void test_no_directory(void **state)
{
    struct wb_sorter *sorter;
    int err = 0;

    (void)state;
    OK(wb_sorter_open(&(struct wb_sorter_options){"/nonexistent/directory", 4 << 20, 1}, &sorter));
    for (size_t i = 0; i < all.count && err == 0; i++)
        err = wb_sorter_add(sorter, list_key(&all, i), list_value(&all, i));
    assert_int_equal(err, WB_E_IO);
    assert_non_null(strstr(wb_error_message(), "/nonexistent/directory"));
    wb_sorter_close(sorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_closed_early),
        cmocka_unit_test(test_no_directory),
    };

    return cmocka_run_group_tests(tests, build_all, forget_all);
}
