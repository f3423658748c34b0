/*
 * test_carousel.c - streams that share a scan: each gets every page exactly once, whatever the others do, however they
 * are interleaved, and while the repository is changed; and the disk is read about once for all.
 *
 * WEBBASE_SEED=N repeats a run.
 */
#include "../seeded.h"
#include "../store/store_support.h"
#include "move/move.h"
#include "os/path.h"
#include "pagefile/segment.h"
#include "stream/carousel.h"

#include <pthread.h>

enum { SITES = 5, NUMBERS = 60, PAGES = SITES * NUMBERS, THREADS = 8 };

static char dir[DIR_MAX];
static uint32_t snapshot;
static struct sights expected;

static struct wb_store *make_store(void)
{
    test_dir(dir);
    create_store(dir);
    use_small_sizes(64 << 10);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t number = 0; number < NUMBERS; number++)
        for (uint32_t site = 0; site < SITES; site++) {
            struct spec spec = {.site = site, .number = number, .time_ms = 1000, .size = 500 + 37 * number};
            must_ok(put_spec(store, &spec));
            if ((number * SITES + site) % 10 == 9)
                commit_store(store);
        }
    commit_store(store);
    snapshot = seal_store(store);
    expected.count = 0;
    scan_all(store, &(struct wb_store_scan_options){.snapshot = snapshot}, WITHOUT_EPOCH, &expected);
    must(expected.count == PAGES);
    return store;
}

/* ---- a reader, as a stream is one ------------------------------------------------------------------ */

struct reader {
    struct wb_carousels *set;
    bool share, parcels, ids;
    struct wb_supplier *supplier;
    bool has_at, has_start, wrapped;
    struct wb_store_position at, start;
    struct wb_supply supply;
    size_t next;
    struct sights seen;
    unsigned joined, busy, damaged;
};

static int join(struct reader *r)
{
    struct wb_supply_request request = {
        .snapshot = snapshot,
        .after = r->has_at ? &r->at : NULL,
        .until = r->wrapped ? &r->start : NULL,
        .parcels = r->parcels,
        .ids = r->ids,
    };
    int err = wb_carousels_join(r->set, &request, r->share, &r->supplier);

    must_ok(err);
    r->joined++;
    if (r->supplier->has_start) {
        must(!r->has_at && !r->wrapped);
        r->has_start = r->has_at = true;
        r->start = r->at = r->supplier->start;
    }
    return err;
}

static void leave(struct reader *r)
{
    wb_supplier_close(r->supplier);
    r->supplier = NULL;
    r->supply.count = r->next = 0;
}

/* Sees one page. Returns false at the end. */
static bool step(struct reader *r)
{
    while (r->next == r->supply.count) {
        if (!r->supplier)
            join(r);
        int got = r->supplier->kind->next(r->supplier, &r->supply);
        r->next = 0;
        if (got > 0)
            continue;
        r->supply.count = 0;
        if (got == WB_E_CORRUPT) {
            r->damaged++;
            continue;
        }
        must(got == 0 || got == WB_E_BUSY);
        leave(r);
        r->busy += got == WB_E_BUSY;
        if (got == WB_E_BUSY)
            continue;
        if (!r->has_start || r->wrapped)
            return false;
        r->wrapped = true;
        r->has_at = false;
    }
    size_t i = r->next++;
    r->supplier->kind->tell(r->supplier, i, &r->at);
    r->has_at = true;
    if (r->parcels) {
        size_t entry = r->supply.entries ? r->supply.entries[i] : i;
        const struct wb_store_parcel_page *listed = &r->supply.parcel->pages[entry];
        must(memcmp(&listed->position, &r->at, sizeof r->at) == 0);
        struct wb_page page = {.id = listed->id};
        must(r->ids || wb_pageid_equal(page.id, r->supply.pages[i].id));
        see(&r->seen, &page, WITHOUT_EPOCH);
    } else {
        see(&r->seen, &r->supply.pages[i], WITHOUT_EPOCH);
    }
    return true;
}

/* Each page once; if only ids were read, only they are compared. */
static void check(struct reader *r)
{
    for (size_t i = 0; r->parcels && i < r->seen.count; i++)
        for (size_t j = 0; j < expected.count; j++)
            if (wb_pageid_equal(r->seen.list[i].id, expected.list[j].id))
                r->seen.list[i] = expected.list[j];
    compare_sights("a stream that shares a scan", &r->seen, &expected);
    sights_release(&r->seen);
    leave(r);
}

/* ---- interleavings ---------------------------------------------------------------------------------- */

static void choose_kind(uint64_t *chance, struct reader *r)
{
    r->share = !chance_one_in(chance, 8);
    r->parcels = chance_one_in(chance, 4);
    r->ids = chance_one_in(chance, 2);
}

/* Readers that start, stop, are resumed elsewhere, and run at different speeds, in one thread. */
static void interleave(uint64_t *chance, struct wb_store *store, const struct wb_carousel_limits *limits)
{
    struct reader readers[6] = {0};
    struct wb_carousels *set;
    unsigned finished = 0;

    must_ok(wb_carousels_new(dir, limits, &set));
    for (size_t i = 0; i < COUNT(readers); i++) {
        readers[i].set = set;
        choose_kind(chance, &readers[i]);
    }
    while (finished < 40) {
        struct reader *r = &readers[chance_below(chance, COUNT(readers))];
        size_t steps = chance_one_in(chance, 10) ? PAGES : chance_below(chance, 12);
        bool more = true;
        for (size_t i = 0; i < steps && more; i++)
            more = step(r);
        if (!more) {
            check(r);
            finished++;
            *r = (struct reader){.set = set};
            choose_kind(chance, r);
        } else if (chance_one_in(chance, 40)) {
            leave(r); /* and goes on later from its place, as with a token */
        }
        if (chance_one_in(chance, 60)) {
            struct spec spec = {.site = (uint32_t)chance_below(chance, SITES),
                                .number = (uint32_t)chance_below(chance, NUMBERS),
                                .time_ms = 2000 + (int64_t)finished,
                                .size = 700};
            must_ok(put_spec(store, &spec));
            commit_store(store);
        }
        if (chance_one_in(chance, 300)) {
            struct wb_move_compact_counts counts;
            must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
        }
    }
    for (size_t i = 0; i < COUNT(readers); i++) {
        leave(&readers[i]);
        sights_release(&readers[i].seen);
    }
    wb_carousels_free(set);
}

static void test_interleaved(void **state)
{
    uint64_t chance = test_seed();
    struct wb_store *store = make_store();

    (void)state;
    interleave(&chance, store, &WB_CAROUSEL_LIMITS);
    interleave(&chance, store, &(struct wb_carousel_limits){20000, 20000}); /* hardly anything is in the window */
    interleave(&chance, store, &(struct wb_carousel_limits){100000, 1});
    wb_store_close(store);
    sights_release(&expected);
}

/* ---- threads ---------------------------------------------------------------------------------------- */

static void *run_reader(void *context)
{
    struct reader *r = context;

    while (step(r))
        ;
    return NULL;
}

static void run_threads(const struct wb_carousel_limits *limits, struct wb_carousel_counts *counts_out)
{
    struct reader readers[THREADS] = {0};
    pthread_t threads[THREADS];
    struct wb_carousels *set;

    must_ok(wb_carousels_new(dir, limits, &set));
    for (size_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.set = set, .share = true, .parcels = i == 5, .ids = i == 5};
        must(pthread_create(&threads[i], NULL, run_reader, &readers[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < THREADS; i++)
        check(&readers[i]);
    wb_carousels_count(set, counts_out);
    assert_int_equal(counts_out->carousels, 0);
    wb_carousels_free(set);
}

static void test_threads(void **state)
{
    struct wb_store *store = make_store();
    struct wb_carousel_counts counts;

    (void)state;
    for (unsigned round = 0; round < 20; round++)
        run_threads(&WB_CAROUSEL_LIMITS, &counts);
    for (unsigned round = 0; round < 20; round++)
        run_threads(&(struct wb_carousel_limits){50000, 50000}, &counts);
    wb_store_close(store);
    sights_release(&expected);
}

/* ---- what it costs ---------------------------------------------------------------------------------- */

/* Ten streams that go on together read and decompress everything once. */
static void test_cost(void **state)
{
    struct wb_store *store = make_store();
    struct reader readers[10] = {0};
    struct wb_carousel_counts counts;
    struct wb_carousels *set;
    struct wb_store_scan *scan;
    struct wb_store_parcel parcel;
    uint64_t parcels = 0;

    (void)state;
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){.snapshot = snapshot}, &scan));
    while (wb_store_scan_parcel(scan, &parcel) > 0)
        parcels++;
    wb_store_scan_close(scan);
    assert_true(parcels > 10);
    must_ok(wb_carousels_new(dir, &WB_CAROUSEL_LIMITS, &set));
    for (size_t i = 0; i < COUNT(readers); i++) {
        readers[i] = (struct reader){.set = set, .share = true};
        join(&readers[i]);
    }
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < COUNT(readers); i++)
            more = step(&readers[i]) || more;
    }
    wb_carousels_count(set, &counts);
    assert_int_equal(counts.parcels, parcels);
    assert_int_equal(counts.batches, parcels);
    for (size_t i = 0; i < COUNT(readers); i++) {
        assert_false(readers[i].has_start);
        check(&readers[i]);
    }
    wb_carousels_free(set);
    wb_store_close(store);
    sights_release(&expected);
}

/* A stream that comes late begins in the middle, and the beginning is read once more for all late ones together. */
static void test_late(void **state)
{
    struct wb_store *store = make_store();
    struct reader readers[3] = {0};
    struct wb_carousels *set;

    (void)state;
    must_ok(wb_carousels_new(dir, &(struct wb_carousel_limits){20000, 20000}, &set));
    for (size_t i = 0; i < COUNT(readers); i++)
        readers[i] = (struct reader){.set = set, .share = true};
    for (size_t i = 0; i < PAGES / 2; i++)
        must(step(&readers[0]));
    step(&readers[1]);
    step(&readers[2]);
    assert_true(readers[1].has_start && readers[2].has_start && readers[1].supplier->shared);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < COUNT(readers); i++)
            more = step(&readers[i]) || more;
    }
    for (size_t i = 0; i < COUNT(readers); i++) {
        assert_int_equal(readers[i].busy, 0);
        check(&readers[i]);
    }
    wb_carousels_free(set);
    wb_store_close(store);
    sights_release(&expected);
}

/* Damage is reported to each stream; everything else arrives. */
static void test_damage(void **state)
{
    struct wb_store *store = make_store();
    struct reader readers[3] = {0};
    struct wb_carousels *set;
    char pages[DIR_MAX], path[DIR_MAX];

    (void)state;
    wb_store_close(store);
    path_in(dir, WB_SEGMENT_DIR, pages);
    path_in(pages, "00000001.seg", path);
    uint64_t bytes = file_bytes(path);
    for (uint64_t at = 5000; at < bytes; at += bytes / 7) {
        flip_byte(path, at, 1);
        must_ok(wb_carousels_new(dir, &WB_CAROUSEL_LIMITS, &set));
        for (size_t i = 0; i < COUNT(readers); i++) {
            readers[i] = (struct reader){.set = set, .share = true};
            join(&readers[i]);
        }
        for (size_t i = 0; i < COUNT(readers); i++) {
            while (step(&readers[i]))
                ;
            assert_true(readers[i].damaged > 0);
            assert_true(readers[i].seen.count < PAGES);
            assert_int_equal(readers[i].seen.count, readers[0].seen.count);
            assert_int_equal(readers[i].damaged, readers[0].damaged);
        }
        for (size_t i = 0; i < COUNT(readers); i++) {
            leave(&readers[i]);
            sights_release(&readers[i].seen);
        }
        wb_carousels_free(set);
        flip_byte(path, at, 1);
    }
    sights_release(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interleaved), cmocka_unit_test(test_threads), cmocka_unit_test(test_cost),
        cmocka_unit_test(test_late),        cmocka_unit_test(test_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
