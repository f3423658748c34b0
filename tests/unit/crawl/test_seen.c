/*
 * test_seen.c - the set of known pages against a plain list, in memory and mapped, and what happens when memory or disk
 * is full.
 */
#include "../journal/edit_support.h"
#include "crawl/seen.h"

enum { MODEL_IDS = 60000, MILLION = 1000000 };

static struct wb_pageid id_of(uint64_t n)
{
    uint64_t state = n;

    return (struct wb_pageid){chance_next(&state), chance_next(&state)};
}

static void test_small(void **state)
{
    struct wb_seen seen = WB_SEEN_INIT;
    /* Only the lower half of an id counts. 0 and 1 have the same fingerprint, which is not that of a free slot. */
    const struct wb_pageid zero = {5, 0}, one = {5, 1}, two = {5, 2}, four = {5, 4};

    (void)state;
    assert_false(wb_seen_has(&seen, zero));
    assert_false(wb_seen_marked(&seen, zero));
    wb_seen_mark(&seen, zero, true);
    assert_int_equal(wb_seen_bytes(&seen), 0);
    assert_int_equal(wb_seen_add(&seen, test_root, four), 1);
    assert_false(wb_seen_has(&seen, zero));
    assert_int_equal(wb_seen_add(&seen, test_root, zero), 1);
    assert_int_equal(wb_seen_add(&seen, test_root, one), 0);
    assert_int_equal(wb_seen_add(&seen, test_root, two), 0); /* 0 is written as 2 */
    assert_int_equal(seen.count, 2);
    assert_in_range(wb_seen_bytes(&seen), 16, 64);
    wb_seen_mark(&seen, zero, true);
    assert_true(wb_seen_marked(&seen, zero));
    assert_false(wb_seen_marked(&seen, four));
    assert_int_equal(wb_seen_add(&seen, test_root, zero), 0);
    assert_true(wb_seen_marked(&seen, zero));
    wb_seen_mark(&seen, zero, false);
    assert_false(wb_seen_marked(&seen, zero));
    wb_seen_release(&seen);
    assert_int_equal(wb_seen_bytes(&seen), 0);
    wb_seen_release(&seen);
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    static uint8_t model[MODEL_IDS]; /* 1: there, 2: marked */
    struct wb_seen seen = WB_SEEN_INIT;
    size_t count = 0;

    (void)state;
    memset(model, 0, sizeof model);
    for (unsigned i = 0; i < 300000; i++) {
        /* The range of ids grows with the set, so that there are hits and misses at every size. */
        size_t n = chance_below(&chance, 1 + i / 5);
        struct wb_pageid id = id_of(n);
        bool mark = chance_below(&chance, 2);
        switch (chance_below(&chance, 4)) {
        case 0:
            assert_int_equal(wb_seen_add(&seen, test_root, id), !(model[n] & 1));
            count += !(model[n] & 1);
            model[n] |= 1;
            break;
        case 1:
            assert_int_equal(wb_seen_has(&seen, id), model[n] & 1);
            break;
        case 2:
            assert_int_equal(wb_seen_marked(&seen, id), model[n] >> 1);
            break;
        default:
            wb_seen_mark(&seen, id, mark);
            if (model[n])
                model[n] = mark ? 3 : 1;
        }
        assert_int_equal(seen.count, count);
        assert_true(4 * seen.count <= 3 * seen.cap);
    }
    assert_true(seen.mapped);
    for (size_t n = 0; n < MODEL_IDS; n++) {
        assert_int_equal(wb_seen_has(&seen, id_of(n)), model[n] & 1);
        assert_int_equal(wb_seen_marked(&seen, id_of(n)), model[n] >> 1);
    }
    wb_seen_release(&seen);
}

static void test_million(void **state)
{
    struct wb_seen seen = WB_SEEN_INIT;

    (void)state;
    for (uint64_t n = 0; n < MILLION; n++)
        assert_int_equal(wb_seen_add(&seen, test_root, id_of(n)), 1);
    for (uint64_t n = 0; n < MILLION; n += 7)
        assert_int_equal(wb_seen_add(&seen, test_root, id_of(n)), 0);
    assert_int_equal(seen.count, MILLION);
    assert_true(wb_seen_bytes(&seen) <= 16 << 20);
    wb_seen_release(&seen);
}

/* Ids that somebody chose so that they collide: with the same upper bits, or the same lower bits. */
static void test_chosen(void **state)
{
    (void)state;
    for (unsigned shift = 1; shift < 48; shift += 23) {
        struct wb_seen seen = WB_SEEN_INIT;
        for (uint64_t n = 1; n <= 50000; n++)
            assert_int_equal(wb_seen_add(&seen, test_root, (struct wb_pageid){0, n << shift}), 1);
        /* If all of them were in one row of slots, this would take minutes. */
        size_t longest = 0, run = 0;
        for (size_t i = 0; i < seen.cap; i++) {
            run = seen.slots[i] ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        assert_true(longest < 5000);
        wb_seen_release(&seen);
    }
}

/* A set that cannot grow keeps its members, and grows later when it can. */
static void test_no_room(void **state)
{
    struct wb_seen seen = WB_SEEN_INIT;
    unsigned failures = 0;
    int err;

    (void)state;
    for (uint64_t n = 0; n < 20000; n++) {
        wb_fault_arm(WB_FAULT_ANY, 1, ENOSPC);
        err = wb_seen_add(&seen, test_root, id_of(n));
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(struck, err < 0);
        if (err < 0) {
            failures++;
            bool mapped = seen.cap * 2 * sizeof(uint64_t) > 64 << 10;
            assert_true(err == WB_E_NOMEM || (mapped && err == WB_E_IO));
            assert_false(wb_seen_has(&seen, id_of(n)));
            assert_int_equal(seen.count, n);
            assert_int_equal(wb_seen_add(&seen, test_root, id_of(n)), 1);
        }
    }
    assert_in_range(failures, 10, 16);
    for (uint64_t n = 0; n < 20000; n++)
        assert_true(wb_seen_has(&seen, id_of(n)));
    /* The disk is full, so there is no space for a mapped set. */
    while (4 * (seen.count + 1) <= 3 * seen.cap)
        assert_int_equal(wb_seen_add(&seen, test_root, id_of(100000 + seen.count)), 1);
    wb_fault_arm(WB_FAULT_WRITE, 1, ENOSPC);
    assert_int_equal(wb_seen_add(&seen, test_root, id_of(1)), 0); /* needs no room */
    assert_int_equal(wb_seen_add(&seen, test_root, id_of(99999)), WB_E_IO);
    wb_fault_disarm();
    assert_non_null(strstr(wb_error_message(), test_root));
    assert_int_equal(wb_seen_add(&seen, "/no/such/folder", id_of(99999)), WB_E_IO);
    wb_seen_release(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),  cmocka_unit_test(test_model),   cmocka_unit_test(test_million),
        cmocka_unit_test(test_chosen), cmocka_unit_test(test_no_room),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
