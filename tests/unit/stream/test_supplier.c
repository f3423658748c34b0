/*
 * test_supplier.c - a private supplier starts after any place and stops after any place, also when pages have moved or
 * are gone. A stream that begins in the middle of a shared scan depends on that.
 */
#include "versions_support.h"

#include "move/move.h"
#include "stream/supplier.h"

#define PAGES 90

struct supplied {
    struct wb_pageid ids[PAGES];
    struct wb_store_position places[PAGES];
    size_t count;
};

static void supply(struct wb_store *store, uint32_t snapshot, const struct wb_store_position *after,
                   const struct wb_store_position *until, struct supplied *out)
{
    struct wb_supply_request request = {.snapshot = snapshot, .site = WB_SLICE_EMPTY, .after = after, .until = until};
    struct wb_supplier *supplier = NULL;
    struct wb_supply batch;
    int got;

    out->count = 0;
    assert_int_equal(wb_supplier_scan(store, &request, &supplier), 0);
    assert_false(supplier->shared || supplier->has_start);
    while ((got = supplier->kind->next(supplier, &batch)) > 0)
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(out->count < PAGES);
            out->ids[out->count] = batch.pages[i].id;
            supplier->kind->tell(supplier, i, &out->places[out->count++]);
        }
    assert_int_equal(got, 0);
    assert_int_equal(supplier->kind->next(supplier, &batch), 0);
    wb_supplier_close(supplier);
}

/* The pages of `whole` from number `from` up to before `to`, without the one that is missing. */
static void assert_range(const struct supplied *whole, size_t from, size_t to, const struct wb_pageid *missing,
                         const struct supplied *got)
{
    size_t at = 0;

    for (size_t i = from; i < to; i++) {
        if (missing && wb_pageid_equal(whole->ids[i], *missing))
            continue;
        assert_true(at < got->count && wb_pageid_equal(whole->ids[i], got->ids[at]));
        at++;
    }
    assert_int_equal(at, got->count);
}

static void assert_all_ranges(struct wb_store *store, uint32_t snapshot, const struct supplied *whole,
                              const struct wb_pageid *missing)
{
    struct supplied got;

    for (size_t i = 0; i < whole->count; i++) {
        supply(store, snapshot, NULL, &whole->places[i], &got);
        assert_range(whole, 0, i + 1, missing, &got);
        supply(store, snapshot, &whole->places[i], NULL, &got);
        assert_range(whole, i + 1, whole->count, missing, &got);
        for (size_t j = 0; j < whole->count; j += 7) {
            supply(store, snapshot, &whole->places[i], &whole->places[j], &got);
            assert_range(whole, i + 1, j + 1, missing, &got);
        }
    }
}

static uint32_t seal_number(struct wb_store *store)
{
    struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot = {0};

    assert_int_equal(wb_store_seal(store, WB_SLICE_EMPTY, &person, &snapshot), 0);
    uint32_t number = snapshot.number;
    wb_store_snapshot_release(&snapshot);
    return number;
}

static void test_ranges(void **state)
{
    struct wb_store *store = new_store("ranges", WB_STORE_KEEP_NEWEST);
    struct wb_move_compact_counts compacted;
    struct wb_store_commit_counts counts = {0};
    struct supplied whole;
    char name[20];

    (void)state;
    for (int i = 0; i < PAGES; i++) {
        snprintf(name, sizeof name, "page%d", i);
        struct wb_page page = page_on(name, 0, "first");
        assert_int_equal(wb_store_put(store, &page, NULL), 0);
        if (i % 20 == 19)
            assert_int_equal(wb_store_commit(store, &counts), 0);
    }
    uint32_t snapshot = seal_number(store);
    supply(store, snapshot, NULL, NULL, &whole);
    assert_int_equal(whole.count, PAGES);
    assert_all_ranges(store, snapshot, &whole, NULL);
    /* Some pages change, one is taken down everywhere, and everything is compacted. */
    for (int i = 0; i < PAGES; i += 3) {
        snprintf(name, sizeof name, "page%d", i);
        put_on(store, name, 1, "second");
    }
    struct wb_pageid missing = whole.ids[40];
    assert_int_equal(wb_store_remove(store, missing, WB_SLICE_LIT("h.example"), START_MS, true), 0);
    assert_int_equal(wb_store_commit(store, &counts), 0);
    assert_int_equal(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted), 0);
    assert_all_ranges(store, snapshot, &whole, &missing);
    wb_store_close(store);
}

static void test_what_is_not_a_place(void **state)
{
    struct wb_store *store = new_store("places", WB_STORE_KEEP_NEWEST);
    struct wb_store_position wrong = {{1}};
    struct wb_supply_request request = {.site = WB_SLICE_EMPTY, .until = &wrong};
    struct wb_supplier *supplier = NULL;

    (void)state;
    put_on(store, "a", 0, "A");
    assert_int_equal(wb_supplier_scan(store, &request, &supplier), WB_E_INVALID);
    assert_null(supplier);
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_what_is_not_a_place),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
