/* test_table.c - intact tables: writing, reading in order, seeking, getting single records. */
#include "../otherformat.h"
#include "table_support.h"

static const struct wb_table_options small_blocks = {.kind = "test", .block_bytes = 512};

static struct wb_table_stat write_table(const char *path, const struct wb_table_options *options,
                                        const struct list *list)
{
    struct wb_table_writer *writer;
    struct wb_table_stat stat;

    OK(wb_table_create(path, options, &writer));
    for (size_t i = 0; i < list->count; i++)
        OK(wb_table_add(writer, list_key(list, i), list_value(list, i)));
    OK(wb_table_finish(writer, &stat));
    assert_int_equal(stat.records, list->count);
    return stat;
}

static void no_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)context;
    fprintf(stderr, "%s: %llu: %s\n", file, (unsigned long long)offset, message);
    fail();
}

static struct wb_table *open_table(const char *path, struct wb_cursor **cursor_out)
{
    struct wb_table *table;
    uint64_t records;
    struct wb_table_stat stat;

    OK(wb_table_verify(path, "test", no_problem, NULL, &records));
    OK(wb_table_open(path, "test", &table));
    OK(wb_cursor_open(table, cursor_out));
    wb_table_stat(table, &stat);
    assert_int_equal(stat.records, records);
    return table;
}

static void check_record(const struct list *list, size_t i, const struct wb_table_record *record)
{
    assert_true(same_bytes(record->key, list_key(list, i)));
    assert_true(same_bytes(record->value, list_value(list, i)));
    assert_int_equal(record->number, i);
}

/* The cursor must be just before record i: reads on from there, up to `most` records, and compares. */
static void check_rest(struct wb_cursor *cursor, const struct list *list, size_t i, size_t most)
{
    struct wb_table_record record;

    for (; i < list->count && most > 0; i++, most--) {
        assert_int_equal(wb_cursor_next(cursor, &record), 1);
        check_record(list, i, &record);
    }
    if (i == list->count)
        for (int again = 0; again < 2; again++)
            assert_int_equal(wb_cursor_next(cursor, &record), 0);
}

static void make_list(struct list *list, size_t count, uint64_t *chance)
{
    char memory[700];
    char value[3000];

    for (size_t i = 0; i < count; i++) {
        struct wb_slice key = random_key(chance, memory, sizeof memory);
        size_t len = chance_below(chance, 20) ? chance_below(chance, 40) : chance_below(chance, sizeof value);
        for (size_t k = 0; k < len; k++)
            value[k] = (char)(chance_below(chance, 3) ? 'v' : chance_next(chance));
        list_add(list, key, wb_slice(value, len));
    }
    list_sort(list);
    list_unique(list);
}

/* ---- the tests ---------------------------------------------------------------------------- */

static void test_empty(void **state)
{
    const char *path = test_path("empty");
    struct list list = {0};
    struct wb_cursor *cursor;
    struct wb_table_record record;

    (void)state;
    struct wb_table_stat stat = write_table(path, &small_blocks, &list);
    assert_int_equal(stat.blocks, 0);
    assert_int_equal(stat.raw_bytes, 0);
    assert_int_equal(stat.bytes, 32 + 64);
    struct wb_table *table = open_table(path, &cursor);
    check_rest(cursor, &list, 0, 1);
    OK(wb_cursor_seek(cursor, WB_SLICE_LIT("x")));
    assert_int_equal(wb_cursor_next(cursor, &record), 0);
    assert_int_equal(wb_cursor_get(cursor, WB_SLICE_EMPTY, &record), WB_E_NOTFOUND);
    assert_int_equal(wb_cursor_get_number(cursor, 0, &record), WB_E_NOTFOUND);
    wb_cursor_close(cursor);
    wb_table_close(table);
}

static void test_one(void **state)
{
    static const char *const keys[] = {"", "one"};

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *path = test_path("one");
        struct list list = {0};
        struct wb_cursor *cursor;
        struct wb_table_record record;
        list_add(&list, wb_slice_str(keys[i]), WB_SLICE_LIT("value"));
        struct wb_table_stat stat = write_table(path, &small_blocks, &list);
        assert_int_equal(stat.raw_bytes, strlen(keys[i]) + 5);
        struct wb_table *table = open_table(path, &cursor);
        check_rest(cursor, &list, 0, 9);
        OK(wb_cursor_get(cursor, wb_slice_str(keys[i]), &record));
        check_record(&list, 0, &record);
        assert_int_equal(wb_cursor_get(cursor, WB_SLICE_LIT("two"), &record), WB_E_NOTFOUND);
        assert_int_equal(wb_cursor_next(cursor, &record), 0);
        assert_int_equal(wb_cursor_get(cursor, WB_SLICE_LIT("onf"), &record), WB_E_NOTFOUND);
        OK(wb_cursor_get_number(cursor, 0, &record));
        check_record(&list, 0, &record);
        assert_int_equal(wb_cursor_get_number(cursor, 1, &record), WB_E_NOTFOUND);
        wb_cursor_close(cursor);
        wb_table_close(table);
        list_release(&list);
    }
}

/* The number of the first record whose key is not less. */
static size_t model_seek(const struct list *list, struct wb_slice key)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (order_of(list_key(list, middle), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void try_key(struct wb_cursor *cursor, const struct list *list, struct wb_slice key, size_t look)
{
    struct wb_table_record record;
    size_t at = model_seek(list, key);

    OK(wb_cursor_seek(cursor, key));
    check_rest(cursor, list, at, look);
    bool there = at < list->count && order_of(list_key(list, at), key) == 0;
    int err = wb_cursor_get(cursor, key, &record);
    assert_int_equal(err, there ? 0 : WB_E_NOTFOUND);
    if (there) {
        check_record(list, at, &record);
        check_rest(cursor, list, at + 1, look);
    }
}

static void try_number(struct wb_cursor *cursor, const struct list *list, size_t number, size_t look)
{
    struct wb_table_record record;

    assert_int_equal(wb_cursor_get_number(cursor, number, &record), number < list->count ? 0 : WB_E_NOTFOUND);
    if (number < list->count) {
        check_record(list, number, &record);
    }
    check_rest(cursor, list, number + 1, look); /* after the last record there are no more */
}

static void test_model(void **state)
{
    static const size_t counts[] = {2, 16, 17, 300, 5000};
    static const size_t blocks[] = {1, 600, 4096, 0};
    uint64_t chance = test_seed();
    char memory[700];

    (void)state;
    for (size_t round = 0; round < COUNT(counts) * COUNT(blocks); round++) {
        const char *path = test_path("model");
        struct list list = {0};
        struct wb_cursor *cursor;
        make_list(&list, counts[round / COUNT(blocks)], &chance);
        struct wb_table_options options = {
            .kind = "test", .block_bytes = blocks[round % COUNT(blocks)], .level = (int)(round % 3)};
        write_table(path, &options, &list);
        struct wb_table *table = open_table(path, &cursor);
        check_rest(cursor, &list, 0, SIZE_MAX);
        for (size_t i = 0; i < 600; i++) {
            size_t look = chance_below(&chance, 10) ? chance_below(&chance, 4) : chance_below(&chance, 60);
            try_key(cursor, &list, random_key(&chance, memory, sizeof memory), look);
            try_key(cursor, &list, list_key(&list, chance_below(&chance, list.count)), look);
            try_number(cursor, &list, chance_below(&chance, list.count + 2), look);
        }
        wb_cursor_close(cursor);
        wb_table_close(table);
        list_release(&list);
    }
}

static void test_huge_values(void **state)
{
    static const size_t sizes[] = {1 << 10, 300 << 10, 3 << 20, 0, 17, WB_TABLE_VALUE_MAX, 5};
    const char *path = test_path("huge");
    struct list list = {0};
    struct wb_cursor *cursor;
    struct wb_table_record record;
    uint64_t chance = test_seed();
    char *value = malloc(WB_TABLE_VALUE_MAX), *key = calloc(1, WB_TABLE_KEY_MAX), name[2] = "a";

    (void)state;
    assert_non_null(value);
    assert_non_null(key);
    for (size_t i = 0; i < WB_TABLE_VALUE_MAX; i += 8)
        wb_put64(value + i, i % 64 ? i : chance_next(&chance));
    for (size_t i = 0; i < COUNT(sizes); i++, name[0]++)
        list_add(&list, wb_slice_str(name), wb_slice(value, sizes[i]));
    memset(key, 'z', WB_TABLE_KEY_MAX);
    list_add(&list, wb_slice(key, WB_TABLE_KEY_MAX - 1), wb_slice(value, 5));
    list_add(&list, wb_slice(key, WB_TABLE_KEY_MAX), wb_slice(value, 50000));
    for (unsigned threads = 0; threads < 3; threads += 2) {
        write_table(path, &(struct wb_table_options){.kind = "test", .block_bytes = 16 << 10, .threads = threads},
                    &list);
        struct wb_table *table = open_table(path, &cursor);
        check_rest(cursor, &list, 0, SIZE_MAX);
        for (size_t i = list.count; i-- > 0;) {
            OK(wb_cursor_get(cursor, list_key(&list, i), &record));
            check_record(&list, i, &record);
        }
        wb_cursor_close(cursor);
        wb_table_close(table);
    }
    struct wb_table_writer *writer;
    OK(wb_table_create(path, &small_blocks, &writer));
    assert_int_equal(wb_table_add(writer, wb_slice(value, WB_TABLE_KEY_MAX + 1), WB_SLICE_EMPTY), WB_E_LIMIT);
    assert_int_equal(wb_table_finish(writer, NULL), WB_E_LIMIT);
    list_release(&list);
    free(value);
    free(key);
}

static void test_threads(void **state)
{
    uint64_t chance = test_seed();
    struct list list = {0};
    struct wb_buf first = WB_BUF_INIT;

    (void)state;
    make_list(&list, 40000, &chance);
    for (unsigned threads = 0; threads < 5; threads++) {
        const char *path = test_path("threads");
        write_table(path, &(struct wb_table_options){.kind = "test", .block_bytes = 2000, .threads = threads}, &list);
        struct wb_buf bytes = read_whole(path);
        if (threads == 0)
            first = wb_buf_take(&bytes);
        else
            assert_true(same_bytes(wb_buf_slice(&first), wb_buf_slice(&bytes)));
        wb_buf_release(&bytes);
    }
    wb_buf_release(&first);
    list_release(&list);
}

static void test_order(void **state)
{
    static const char *const wrong[][2] = {{"b", "a"}, {"a", "a"}, {"ab", "a"}, {"a\xff", "a\x7f"}, {"", ""}};
    struct wb_table_writer *writer;
    struct wb_table *table;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *path = test_path("order");
        OK(wb_table_create(path, &small_blocks, &writer));
        OK(wb_table_add(writer, wb_slice_str(wrong[i][0]), WB_SLICE_EMPTY));
        assert_int_equal(wb_table_add(writer, wb_slice_str(wrong[i][1]), WB_SLICE_EMPTY), WB_E_INVALID);
        assert_int_equal(wb_table_add(writer, WB_SLICE_LIT("zz"), WB_SLICE_EMPTY), WB_E_INVALID);
        assert_int_equal(wb_table_finish(writer, NULL), WB_E_INVALID);
        assert_int_equal(wb_table_open(path, "test", &table), WB_E_CORRUPT);
    }
}

static void count_problems(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    (void)offset;
    assert_true(message[0]);
    ++*(unsigned *)context;
}

static void test_not_this_table(void **state)
{
    const char *path = test_path("kind");
    struct list list = {0};
    struct wb_table *table;
    struct wb_table_writer *writer;
    unsigned problems = 0;
    uint64_t records;

    (void)state;
    list_add(&list, WB_SLICE_LIT("a"), WB_SLICE_LIT("b"));
    write_table(path, &small_blocks, &list);
    assert_int_equal(wb_table_open(path, "link", &table), WB_E_CORRUPT);
    assert_null(table);
    assert_non_null(strstr(wb_error_message(), "link"));
    OK(wb_table_verify(path, "link", count_problems, &problems, &records));
    assert_int_equal(problems, 1);
    put_format(path, 0, 8, 2, 24);
    assert_refused_format(wb_table_open(path, "test", &table), path, 2);
    assert_int_equal(wb_table_open(test_path("nothing"), "test", &table), WB_E_NOTFOUND);
    assert_int_equal(wb_table_verify(test_path("nothing"), "test", count_problems, &problems, &records), WB_E_NOTFOUND);
    OK(wb_table_create(path, &small_blocks, &writer)); /* abandoned: the old file is gone all the same */
    OK(wb_table_add(writer, WB_SLICE_LIT("c"), WB_SLICE_LIT("d")));
    wb_table_abandon(writer);
    wb_table_abandon(NULL);
    assert_int_equal(wb_table_open(path, "test", &table), WB_E_CORRUPT);
    assert_int_equal(wb_table_create(test_path("no/such/dir"), &small_blocks, &writer), WB_E_NOTFOUND);
    list_release(&list);
}

/* A reader can go on with the old file while a new one takes its name. */
static void test_replaced(void **state)
{
    const char *path = test_path("replaced");
    uint64_t chance = test_seed();
    struct list old = {0}, new = {0};
    struct wb_cursor *cursor, *cursor2;

    (void)state;
    make_list(&old, 2000, &chance);
    make_list(&new, 500, &chance);
    write_table(path, &small_blocks, &old);
    struct wb_table *table = open_table(path, &cursor);
    check_rest(cursor, &old, 0, 100);
    write_table(path, &small_blocks, &new);
    struct wb_table *table2 = open_table(path, &cursor2);
    OK(wb_path_unlink(path));
    check_rest(cursor, &old, 100, SIZE_MAX);
    check_rest(cursor2, &new, 0, SIZE_MAX);
    wb_cursor_close(cursor);
    wb_cursor_close(cursor2);
    wb_table_close(table);
    wb_table_close(table2);
    list_release(&old);
    list_release(&new);
}

/* If the Nth operation fails there is an error, and never a table with records missing. */
static void test_faults(void **state)
{
    uint64_t chance = test_seed();
    struct list list = {0};
    unsigned struck = 0;

    (void)state;
    make_list(&list, 1500, &chance);
    for (unsigned threads = 0; threads < 2; threads++)
        for (uint64_t nth = 1;; nth += nth < 60 ? 1 : 7) {
            const char *path = test_path("faults");
            struct wb_table_writer *writer = NULL;
            struct wb_table_stat stat = {0};
            wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
            int err = wb_table_create(
                path, &(struct wb_table_options){.kind = "test", .block_bytes = 3000, .threads = threads}, &writer);
            for (size_t i = 0; err == 0 && i < list.count; i++)
                err = wb_table_add(writer, list_key(&list, i), list_value(&list, i));
            int end = writer ? wb_table_finish(writer, &stat) : err;
            bool hit = wb_fault_struck();
            wb_fault_disarm();
            if (!hit) {
                assert_true(err == 0 && end == 0 && stat.records == list.count);
                break;
            }
            struck++;
            assert_true(err < 0 || end < 0);
            assert_true(end == WB_E_IO || end == WB_E_NOMEM);
            assert_true(wb_error_message()[0]);
        }
    assert_true(struck > 50);
    list_release(&list);
}

static int read_all(const char *path, const struct list *list)
{
    struct wb_table *table = NULL;
    struct wb_cursor *cursor = NULL;
    struct wb_table_record record;
    size_t count = 0;
    int more = 0, err = wb_table_open(path, "test", &table);

    if (err == 0)
        err = wb_cursor_open(table, &cursor);
    while (err == 0 && (more = wb_cursor_next(cursor, &record)) != 0) {
        err = more < 0 ? more : 0;
        if (more == 1)
            check_record(list, count++, &record);
    }
    assert_true(err < 0 || count == list->count);
    /* After a failure that does not last, the same call works. */
    for (; err == WB_E_IO && cursor && (more = wb_cursor_next(cursor, &record)) == 1; count++)
        check_record(list, count, &record);
    if (err == WB_E_IO && cursor)
        assert_int_equal(count, list->count);
    wb_cursor_close(cursor);
    wb_table_close(table);
    return err;
}

static void test_read_faults(void **state)
{
    const char *path = test_path("read-faults");
    uint64_t chance = test_seed();
    struct list list = {0};
    unsigned struck = 0;

    (void)state;
    make_list(&list, 1500, &chance);
    write_table(path, &small_blocks, &list);
    for (uint64_t nth = 1;; nth++) {
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = read_all(path, &list);
        bool hit = wb_fault_struck();
        wb_fault_disarm();
        if (!hit)
            break;
        struck++;
        assert_true(err == WB_E_IO || err == WB_E_NOMEM);
    }
    assert_true(struck > 10);
    list_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),          cmocka_unit_test(test_one),      cmocka_unit_test(test_model),
        cmocka_unit_test(test_huge_values),    cmocka_unit_test(test_threads),  cmocka_unit_test(test_order),
        cmocka_unit_test(test_not_this_table), cmocka_unit_test(test_replaced), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_read_faults),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
