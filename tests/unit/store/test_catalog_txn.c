/* test_catalog_txn.c - transactions of the catalog: readers that hold a state, and reads that are repeated. */
#include "catalog_support.h"

static void test_readers(void **state)
{
    struct wb_catalog_txn reader;
    struct wb_catalog_entry entry = {.place = {1, 0, 64}, .epoch = 1, .content = 2}, read;
    uint64_t oldest;

    (void)state;
    must_ok(wb_catalog_txn_read(catalog, &reader));
    must_ok(wb_catalog_entry_put(&txn, (struct wb_pageid){1, 1}, &entry));
    uint64_t written = wb_catalog_txn_id(&txn);
    must_ok(wb_catalog_txn_commit(&txn));
    assert_int_equal(wb_catalog_entry_get(&reader, (struct wb_pageid){1, 1}, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest < written);
    wb_catalog_txn_abort(&reader);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest == UINT64_MAX);
    must_ok(wb_catalog_txn_read(catalog, &reader));
    must_ok(wb_catalog_entry_get(&reader, (struct wb_pageid){1, 1}, &read));
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_int_equal(oldest, written);
    wb_catalog_txn_abort(&reader);
}

/* Changes everything through another handle, as another process would. */
static void change_all(unsigned times)
{
    struct wb_catalog *other;
    struct wb_catalog_txn change;

    must_ok(wb_catalog_open(dir, WB_TREE_WRITE, &other));
    for (unsigned i = 0; i < times; i++) {
        struct wb_catalog_entry entry = {.place = {1, 0, 64}, .body_bytes = i, .epoch = 1, .content = 2, .status = 200};
        must_ok(wb_catalog_txn_write(other, &change));
        for (uint64_t id = 0; id < 3000; id++)
            must_ok(wb_catalog_entry_put(&change, (struct wb_pageid){id << 50, id}, &entry));
        must_ok(wb_catalog_txn_commit(&change));
    }
    wb_catalog_close(other);
}

struct repeated {
    struct wb_catalog_txn reader;
    unsigned runs, rows;
    uint32_t body_bytes;
};

static int see_row(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct repeated *r = context;

    (void)id;
    must(r->rows == 0 || entry->body_bytes == r->body_bytes);
    r->body_bytes = entry->body_bytes;
    if (r->rows++ == 1 && r->runs == 1)
        change_all(5); /* now the pages that we are about to read are reused */
    return 0;
}

static int walk_all(void *context)
{
    struct repeated *r = context;
    int err = wb_catalog_txn_wake(&r->reader);

    if (err < 0)
        return err;
    r->runs++;
    r->rows = 0;
    err = wb_catalog_entry_each(&r->reader, see_row, r);
    wb_catalog_txn_park(&r->reader);
    return err;
}

/* A read that does not hold its state fails when the state goes. It is repeated, and then sees one state. */
static void test_repeated_read(void **state)
{
    struct repeated r = {.runs = 0};
    struct wb_catalog *reading;
    uint64_t oldest;

    (void)state;
    must_ok(wb_catalog_txn_commit(&txn));
    change_all(2);
    must_ok(wb_catalog_open(dir, WB_TREE_READ, &reading));
    wb_catalog_txn_init(reading, &r.reader);
    must_ok(wb_catalog_call(reading, walk_all, &r));
    assert_int_equal(r.runs, 2);
    assert_int_equal(r.rows, 3000);
    assert_int_equal(r.body_bytes, 4);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest == UINT64_MAX);
    wb_catalog_close(reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_readers, begin, end),
        cmocka_unit_test_setup_teardown(test_repeated_read, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
