/*
 * test_table_flip.c - changes any byte of a table, or cuts the table off anywhere. Reading must never crash and never
 * return a record that was not written; what cannot be read is reported as damaged; and verify notices every change.
 */
#include "table_support.h"

struct flip_case {
    struct list list;
    struct wb_buf bytes;
};

static struct flip_case plain, packed;

static void build(struct flip_case *c, const struct wb_table_options *options, size_t count, uint64_t *chance)
{
    const char *path = test_path("whole");
    struct wb_table_writer *writer;
    char memory[700], value[40];

    for (size_t i = 0; i < count; i++) {
        struct wb_slice key = random_key(chance, memory, sizeof memory);
        for (size_t k = 0; k < sizeof value; k++)
            value[k] = (char)chance_next(chance);
        list_add(&c->list, key, wb_slice(value, chance_below(chance, sizeof value)));
    }
    list_sort(&c->list);
    list_unique(&c->list);
    OK(wb_table_create(path, options, &writer));
    for (size_t i = 0; i < c->list.count; i++)
        OK(wb_table_add(writer, list_key(&c->list, i), list_value(&c->list, i)));
    OK(wb_table_finish(writer, NULL));
    c->bytes = read_whole(path);
}

static int build_all(void **state)
{
    uint64_t chance = test_seed();

    if (make_root(state) < 0)
        return -1;
    build(&plain, &(struct wb_table_options){.kind = "test", .block_bytes = 300}, 60, &chance);
    build(&packed, &(struct wb_table_options){.kind = "test", .block_bytes = 2000}, 2500, &chance);
    return 0;
}

static int forget_all(void **state)
{
    list_release(&plain.list);
    list_release(&packed.list);
    wb_buf_release(&plain.bytes);
    wb_buf_release(&packed.bytes);
    return remove_root(state);
}

/* ---- reading what was changed ---------------------------------------------------------------- */

static void count_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    (void)offset;
    assert_true(message[0]);
    ++*(unsigned *)context;
}

static void check_record(const struct list *list, const struct wb_table_record *record)
{
    assert_true(record->number < list->count);
    assert_true(same_bytes(record->key, list_key(list, record->number)));
    assert_true(same_bytes(record->value, list_value(list, record->number)));
}

/* Reads all records, which must be in order and unchanged, and returns how many there are. Errors are counted. */
static size_t walk(struct wb_cursor *cursor, const struct list *list, unsigned *errors)
{
    struct wb_table_record record;
    uint64_t next = 0;
    size_t count = 0;
    int more;

    while ((more = wb_cursor_next(cursor, &record)) != 0) {
        if (more < 0) {
            assert_int_equal(more, WB_E_CORRUPT);
            assert_non_null(strstr(wb_error_message(), "changed"));
            assert_true(++*errors <= list->count);
            continue;
        }
        check_record(list, &record);
        assert_true(record.number >= next);
        next = record.number + 1;
        count++;
    }
    return count;
}

static void ask(struct wb_cursor *cursor, const struct list *list, size_t step, unsigned *errors)
{
    struct wb_table_record record;

    for (size_t i = 0; i < list->count; i += step) {
        int by_key = wb_cursor_get(cursor, list_key(list, i), &record);
        if (by_key == 0)
            check_record(list, &record);
        int by_number = wb_cursor_get_number(cursor, i, &record);
        if (by_number == 0)
            check_record(list, &record);
        assert_true((by_key == 0 || by_key == WB_E_CORRUPT) && (by_number == 0 || by_number == WB_E_CORRUPT));
        *errors += by_key < 0 || by_number < 0;
    }
}

/* Returns whether reading noticed anything. */
static bool read_changed(const char *path, const struct list *list, size_t step)
{
    struct wb_table *table;
    struct wb_cursor *cursor;
    unsigned problems = 0, errors = 0, answers = 0;
    uint64_t records;

    OK(wb_table_verify(path, "test", count_problem, &problems, &records));
    assert_true(problems > 0);
    int err = wb_table_open(path, "test", &table);
    if (err < 0) {
        assert_true(err == WB_E_CORRUPT);
        return true;
    }
    OK(wb_cursor_open(table, &cursor));
    size_t came = walk(cursor, list, &errors);
    assert_true(errors > 0 || came == list->count);
    ask(cursor, list, step, &answers);
    assert_true(errors > 0 || answers == 0);
    wb_cursor_close(cursor);
    wb_table_close(table);
    return errors > 0;
}

/* ---- changing -------------------------------------------------------------------------------- */

static void flip(struct flip_case *c, size_t at, uint8_t mask, size_t step)
{
    const char *path = test_path("changed");

    c->bytes.ptr[at] = (char)(c->bytes.ptr[at] ^ mask);
    write_whole(path, c->bytes.ptr, c->bytes.len);
    c->bytes.ptr[at] = (char)(c->bytes.ptr[at] ^ mask);
    if (!read_changed(path, &c->list, step))
        fail_msg("byte %zu of %zu changed by %02x: reading did not notice", at, c->bytes.len, mask);
}

static void test_every_byte(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t at = 0; at < plain.bytes.len; at++)
        flip(&plain, at, (uint8_t)(1u << chance_below(&chance, 8)), 7);
}

static void test_random_bytes(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < 700; i++) {
        size_t at = i < 96 ? (i < 32 ? i : packed.bytes.len - i + 31) : chance_below(&chance, packed.bytes.len);
        flip(&packed, at, (uint8_t)(1 + chance_below(&chance, 255)), 97);
    }
}

static void test_cut(void **state)
{
    const char *path = test_path("changed");
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < plain.bytes.len + 300; i++) {
        const struct flip_case *c = i < plain.bytes.len ? &plain : &packed;
        size_t len = i < plain.bytes.len ? i : chance_below(&chance, packed.bytes.len);
        write_whole(path, c->bytes.ptr, len);
        assert_true(read_changed(path, &c->list, 1));
    }
    struct wb_buf longer = WB_BUF_INIT; /* extra bytes after the foot are damage too */
    assert_int_equal(wb_buf_append_slice(&longer, wb_buf_slice(&plain.bytes)), 0);
    assert_int_equal(wb_buf_append_char(&longer, 0), 0);
    write_whole(path, longer.ptr, longer.len);
    assert_true(read_changed(path, &plain.list, 1));
    wb_buf_release(&longer);
}

/* A part of the file is moved to another offset: the checksums notice it. */
static void test_moved(void **state)
{
    const char *path = test_path("changed");
    uint64_t chance = test_seed();
    struct wb_buf moved = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        size_t from = chance_below(&chance, packed.bytes.len), to = chance_below(&chance, packed.bytes.len);
        size_t most = packed.bytes.len - (from > to ? from : to),
               len = 1 + chance_below(&chance, most < 3000 ? most : 3000);
        if (memcmp(packed.bytes.ptr + from, packed.bytes.ptr + to, len) == 0)
            continue;
        wb_buf_clear(&moved);
        assert_int_equal(wb_buf_append_slice(&moved, wb_buf_slice(&packed.bytes)), 0);
        memcpy(moved.ptr + to, packed.bytes.ptr + from, len);
        write_whole(path, moved.ptr, moved.len);
        assert_true(read_changed(path, &packed.list, 97));
    }
    wb_buf_release(&moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_moved),
    };

    return cmocka_run_group_tests(tests, build_all, forget_all);
}
