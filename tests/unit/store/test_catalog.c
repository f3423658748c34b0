/* test_catalog.c - the catalog's rows: round trips at the ends of their ranges, and every way a row can be wrong. */
#include "store_support.h"
#include "base/bytes.h"
#include "base/hash.h"

static char dir[DIR_MAX];
static struct wb_catalog *catalog;
static struct wb_txn txn;

static int begin(void **state)
{
    (void)state;
    test_dir(dir);
    must_ok(wb_catalog_open(dir, true, &catalog));
    must_ok(wb_txn_write(catalog, &txn));
    return 0;
}

static int end(void **state)
{
    (void)state;
    wb_txn_abort(&txn);
    wb_catalog_close(catalog);
    return 0;
}

static bool same_entry(const struct wb_entry *a, const struct wb_entry *b)
{
    return wb_place_equal(&a->place, &b->place) && a->time_ms == b->time_ms && a->body_bytes == b->body_bytes && a->stored == b->stored &&
           a->epoch == b->epoch && a->status == b->status && a->lifetime == b->lifetime && a->lifetime_count == b->lifetime_count &&
           a->site == b->site;
}

static const struct wb_entry entries[] = {
    {{1, 0, 64}, 0, 0, 0, 0, 0, 0, 0, 0},
    {{UINT32_MAX, UINT16_MAX, UINT64_MAX}, INT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT16_MAX, UINT16_MAX, UINT16_MAX, UINT64_MAX},
    {{7, 3, 1 << 30}, INT64_MIN, 1, 2, 3, 404, 30, 29, 1},
    {{7, 3, 1 << 20}, -1, 20000, 3000, 3, 200, 0, 0, 0x0123456789abcdef},
};

static void test_entries(void **state)
{
    struct wb_entry read;

    (void)state;
    for (uint64_t i = 0; i < COUNT(entries); i++) {
        struct wb_pageid id = {i, ~i};
        assert_int_equal(wb_entry_get(&txn, WB_TABLE_PAGES, id, &read), WB_E_NOTFOUND);
        must_ok(wb_entry_put(&txn, WB_TABLE_PAGES, id, &entries[i]));
        must_ok(wb_entry_get(&txn, WB_TABLE_PAGES, id, &read));
        assert_true(same_entry(&read, &entries[i]));
        assert_int_equal(wb_entry_get(&txn, WB_TABLE_OLD, id, &read), WB_E_NOTFOUND);
    }
    must_ok(wb_entry_delete(&txn, WB_TABLE_PAGES, (struct wb_pageid){1, ~(uint64_t)1}));
    assert_int_equal(wb_entry_get(&txn, WB_TABLE_PAGES, (struct wb_pageid){1, ~(uint64_t)1}, &read), WB_E_NOTFOUND);
    assert_int_equal(wb_entry_delete(&txn, WB_TABLE_PAGES, (struct wb_pageid){1, ~(uint64_t)1}), WB_E_NOTFOUND);
}

struct walk {
    struct wb_pageid last;
    unsigned count, stop_at;
};

static int step(void *context, struct wb_pageid id, const struct wb_entry *entry)
{
    struct walk *walk = context;

    must(walk->count == 0 || wb_pageid_compare(walk->last, id) < 0);
    must(entry->body_bytes == (uint32_t)id.lo);
    walk->last = id;
    return ++walk->count == walk->stop_at ? 42 : 0;
}

static void test_walking(void **state)
{
    struct chance chance = {test_seed()};
    struct walk walk = {0};
    uint64_t rows;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        struct wb_pageid id = {chance_next(&chance), chance_next(&chance)};
        must_ok(wb_entry_put(&txn, WB_TABLE_OLD, id, &(struct wb_entry){.body_bytes = (uint32_t)id.lo}));
    }
    must_ok(wb_entry_each(&txn, WB_TABLE_OLD, step, &walk));
    assert_int_equal(walk.count, 3000);
    walk = (struct walk){.stop_at = 10};
    assert_int_equal(wb_entry_each(&txn, WB_TABLE_OLD, step, &walk), 42);
    must_ok(wb_table_rows(&txn, WB_TABLE_OLD, &rows));
    assert_int_equal(rows, 3000);
    must_ok(wb_table_clear(&txn, WB_TABLE_OLD));
    must_ok(wb_table_rows(&txn, WB_TABLE_OLD, &rows));
    assert_int_equal(rows, 0);
}

static void test_segments(void **state)
{
    struct wb_segment_row row = {.number = 7, .version = UINT32_MAX, .sealed = true, .bytes = UINT64_MAX, .logical_end = 2, .pages = 5, .live = 4,
                                 .bytes_dead = 6, .touched = 7, .removed = 8, .map_at = 9, .map_count = 10, .epoch_min = 11, .epoch_max = 12};
    struct wb_segment_row read;

    (void)state;
    assert_int_equal(wb_segment_row_get(&txn, 7, &read), WB_E_NOTFOUND);
    must_ok(wb_segment_row_put(&txn, &row));
    must_ok(wb_segment_row_get(&txn, 7, &read));
    assert_true(read.number == 7 && read.version == UINT32_MAX && read.sealed && read.bytes == UINT64_MAX && read.logical_end == 2 &&
                read.pages == 5 && read.live == 4 && read.bytes_dead == 6 && read.touched == 7 && read.removed == 8 && read.map_at == 9 &&
                read.map_count == 10 && read.epoch_min == 11 && read.epoch_max == 12);
    must_ok(wb_segment_row_delete(&txn, 7));
    assert_int_equal(wb_segment_row_get(&txn, 7, &read), WB_E_NOTFOUND);
}

static int count_site(void *context, struct wb_slice site, uint64_t pages)
{
    uint64_t *total = context;

    (void)site;
    *total += pages;
    return 0;
}

static void test_sites(void **state)
{
    struct wb_state counters = {0};
    uint64_t total = 0;
    char long_site[70000];

    (void)state;
    memset(long_site, 'x', sizeof long_site);
    must_ok(wb_site_add(&txn, WB_SLICE_LIT("example.com"), 3, &counters));
    must_ok(wb_site_add(&txn, WB_SLICE_LIT("example.com"), 2, &counters));
    must_ok(wb_site_add(&txn, WB_SLICE_EMPTY, 1, &counters));
    must_ok(wb_site_add(&txn, wb_slice(long_site, 480), 10, &counters));
    must_ok(wb_site_add(&txn, wb_slice(long_site, 481), 20, &counters));
    must_ok(wb_site_add(&txn, wb_slice(long_site, sizeof long_site), 30, &counters));
    assert_int_equal(counters.sites, 5);
    must_ok(wb_site_each(&txn, count_site, &total));
    assert_int_equal(total, 66);
    must_ok(wb_site_add(&txn, WB_SLICE_LIT("example.com"), -5, &counters));
    must_ok(wb_site_add(&txn, wb_slice(long_site, sizeof long_site), -30, &counters));
    must_ok(wb_site_add(&txn, WB_SLICE_LIT("never.seen"), 0, &counters));
    assert_int_equal(counters.sites, 3);
    assert_int_equal(wb_site_add(&txn, WB_SLICE_LIT("never.seen"), -1, &counters), WB_E_CORRUPT);
}

static int add_revisit_site(void *context, struct wb_pageid id, uint64_t site)
{
    uint64_t *sum = context;

    (void)id;
    *sum += site;
    return 0;
}

static int describe_bar(void *context, const struct wb_bar *bar, const struct wb_bar_row *row)
{
    return wb_buf_printf(context, "%s %llu %.*s %llu %s;", bar->kind == WB_BAR_PAGE ? "page" : "site", (unsigned long long)bar->id.lo,
                         WB_SLICE_ARG(bar->site), (unsigned long long)row->site, row->except ? "except" : "bar");
}

static void test_bars(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_bar_row bar = {.time_ms = -7, .site = 9}, except = {.except = true, .site = 9}, read;
    struct wb_pageid id = {1, 2}, other = {1, 3};
    char long_site[1000];
    struct wb_slice site = WB_SLICE_LIT("h.example:81"), none = WB_SLICE_EMPTY;

    (void)state;
    memset(long_site, 'x', sizeof long_site);
    assert_int_equal(wb_bar_get(&txn, WB_BAR_PAGE, id, none, &read), WB_E_NOTFOUND);
    must_ok(wb_bar_put(&txn, WB_BAR_PAGE, id, none, &bar));
    must_ok(wb_bar_put(&txn, WB_BAR_PAGE, other, site, &except));
    must_ok(wb_bar_put(&txn, WB_BAR_SITE, id, site, &bar));
    must_ok(wb_bar_get(&txn, WB_BAR_PAGE, id, site, &read)); /* the site is not part of a page's key */
    assert_true(read.time_ms == -7 && read.site == 9 && !read.except);
    must_ok(wb_bar_get(&txn, WB_BAR_SITE, other, site, &read)); /* nor the id of a site's */
    must_ok(wb_bar_each(&txn, describe_bar, &text));
    must_ok(wb_buf_terminate(&text));
    assert_string_equal(text.ptr, "page 2  9 bar;page 3  9 except;site 0 h.example:81 9 bar;");
    for (size_t len = 478; len <= 481; len++) {
        must_ok(wb_bar_put(&txn, WB_BAR_SITE, id, wb_slice(long_site, len), &bar));
        must_ok(wb_bar_get(&txn, WB_BAR_SITE, id, wb_slice(long_site, len), &read));
        must_ok(wb_bar_delete(&txn, WB_BAR_SITE, id, wb_slice(long_site, len)));
        assert_int_equal(wb_bar_get(&txn, WB_BAR_SITE, id, wb_slice(long_site, len), &read), WB_E_NOTFOUND);
    }
    must_ok(wb_bar_delete(&txn, WB_BAR_PAGE, id, none));
    assert_int_equal(wb_bar_get(&txn, WB_BAR_PAGE, id, none, &read), WB_E_NOTFOUND);
    assert_int_equal(wb_bar_delete(&txn, WB_BAR_PAGE, id, none), WB_E_NOTFOUND);
    wb_buf_release(&text);
}

static void test_other_rows(void **state)
{
    struct wb_store_revisit revisit = {.time_ms = -5, .has_sha1 = true}, read;
    struct wb_state all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, read_state;
    uint64_t sites = 0;
    bool has;

    (void)state;
    memset(revisit.sha1, 0xee, sizeof revisit.sha1);
    assert_int_equal(wb_revisit_get(&txn, (struct wb_pageid){1, 1}, &read), WB_E_NOTFOUND);
    must_ok(wb_revisit_put(&txn, (struct wb_pageid){1, 1}, 77, &revisit));
    must_ok(wb_revisit_get(&txn, (struct wb_pageid){1, 1}, &read));
    assert_true(read.time_ms == -5 && read.has_sha1);
    assert_memory_equal(read.sha1, revisit.sha1, sizeof read.sha1);
    must_ok(wb_revisit_put(&txn, (struct wb_pageid){2, 2}, 70, &revisit));
    must_ok(wb_revisit_each(&txn, add_revisit_site, &sites));
    assert_int_equal(sites, 147);
    must_ok(wb_revisit_delete(&txn, (struct wb_pageid){2, 2}));
    assert_int_equal(wb_revisit_delete(&txn, (struct wb_pageid){2, 2}), WB_E_NOTFOUND);

    must_ok(wb_retired_put(&txn, 3, 1, 99));
    must_ok(wb_retired_has(&txn, 3, 1, &has));
    assert_true(has);
    must_ok(wb_retired_has(&txn, 3, 0, &has));
    assert_false(has);
    must_ok(wb_retired_delete(&txn, 3, 1));
    must_ok(wb_retired_has(&txn, 3, 1, &has));
    assert_false(has);

    assert_int_equal(wb_state_get(&txn, &read_state), WB_E_CORRUPT); /* a catalog without one is none */
    must_ok(wb_state_put(&txn, &all));
    must_ok(wb_state_get(&txn, &read_state));
    assert_memory_equal(&read_state, &all, sizeof all);
}

/* ---- rows that are wrong ------------------------------------------------------------------------------------ */

static void put_raw(enum wb_table table, const void *key, size_t key_len, const void *value, size_t value_len)
{
    MDB_val k = {key_len, (void *)(uintptr_t)key}, v = {value_len, (void *)(uintptr_t)value};

    must(mdb_put(txn.lmdb, wb_catalog_dbi(catalog, table), &k, &v, 0) == 0);
}

static size_t get_raw(enum wb_table table, const void *key, size_t key_len, char *value_out)
{
    MDB_val k = {key_len, (void *)(uintptr_t)key}, v;

    must(mdb_get(txn.lmdb, wb_catalog_dbi(catalog, table), &k, &v) == 0);
    memcpy(value_out, v.mv_data, v.mv_size);
    return v.mv_size;
}

static int ignore_entry(void *context, struct wb_pageid id, const struct wb_entry *entry)
{
    (void)context;
    (void)id;
    (void)entry;
    return 0;
}

/* A row that was moved under another key, cut, lengthened or changed in any byte is damage. */
static void test_wrong_entries(void **state)
{
    struct wb_pageid id = {5, 6};
    struct wb_entry read;
    char key[WB_PAGEID_BYTES], other[WB_PAGEID_BYTES], row[600];

    (void)state;
    wb_pageid_put(id, key);
    wb_pageid_put((struct wb_pageid){5, 7}, other);
    must_ok(wb_entry_put(&txn, WB_TABLE_PAGES, id, &entries[2]));
    size_t len = get_raw(WB_TABLE_PAGES, key, sizeof key, row);
    put_raw(WB_TABLE_PAGES, other, sizeof other, row, len);
    assert_int_equal(wb_entry_get(&txn, WB_TABLE_PAGES, (struct wb_pageid){5, 7}, &read), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), wb_catalog_path(catalog)));
    for (size_t cut = 0; cut <= len + 40; cut++) {
        memset(row + len, 0, 60);
        put_raw(WB_TABLE_PAGES, key, sizeof key, row, cut);
        assert_int_equal(wb_entry_get(&txn, WB_TABLE_PAGES, id, &read), cut == len ? 0 : WB_E_CORRUPT);
    }
    for (size_t at = 0; at < len; at++) {
        row[at] ^= 4;
        put_raw(WB_TABLE_PAGES, key, sizeof key, row, len);
        assert_int_equal(wb_entry_get(&txn, WB_TABLE_PAGES, id, &read), WB_E_CORRUPT);
        row[at] ^= 4;
    }
    must_ok(wb_entry_delete(&txn, WB_TABLE_PAGES, (struct wb_pageid){5, 7}));
    put_raw(WB_TABLE_PAGES, key, sizeof key, row, len);
    must_ok(wb_entry_each(&txn, WB_TABLE_PAGES, ignore_entry, NULL));
}

/* The checksum holds, but what it covers is not such a row. */
static void test_true_checksums(void **state)
{
    struct wb_pageid id = {5, 6};
    struct wb_entry read;
    char row[200], both[200], key[WB_PAGEID_BYTES], long_key[20] = {0};
    size_t len;

    (void)state;
    wb_pageid_put(id, key);
    for (len = 4; len <= 64; len++) {
        memset(row, 0xff, sizeof row); /* varints that do not end */
        memcpy(both, key, sizeof key);
        memcpy(both + sizeof key, row, len - 4);
        wb_put32(row + len - 4, wb_hash32(both, sizeof key + len - 4));
        put_raw(WB_TABLE_PAGES, key, sizeof key, row, len);
        assert_int_equal(wb_entry_get(&txn, WB_TABLE_PAGES, id, &read), WB_E_CORRUPT);
        assert_int_equal(wb_entry_each(&txn, WB_TABLE_PAGES, ignore_entry, NULL), WB_E_CORRUPT);
    }
    must_ok(wb_entry_delete(&txn, WB_TABLE_PAGES, id));
    must_ok(wb_entry_put(&txn, WB_TABLE_PAGES, id, &entries[3]));
    len = get_raw(WB_TABLE_PAGES, key, sizeof key, row);
    memcpy(both, long_key, sizeof long_key);
    memcpy(both + sizeof long_key, row, len - 4);
    wb_put32(row + len - 4, wb_hash32(both, sizeof long_key + len - 4));
    put_raw(WB_TABLE_PAGES, long_key, sizeof long_key, row, len);
    assert_int_equal(wb_entry_each(&txn, WB_TABLE_PAGES, ignore_entry, NULL), WB_E_CORRUPT);
}

static void test_wrong_state(void **state)
{
    struct wb_state counters = {.pages = 3}, read;
    char row[600];

    (void)state;
    must_ok(wb_state_put(&txn, &counters));
    size_t len = get_raw(WB_TABLE_STATE, "state", 5, row);
    for (size_t at = 0; at < len; at++) {
        row[at] ^= 1;
        put_raw(WB_TABLE_STATE, "state", 5, row, len);
        assert_int_equal(wb_state_get(&txn, &read), WB_E_CORRUPT);
        row[at] ^= 1;
    }
    put_raw(WB_TABLE_STATE, "state", 5, row, len - 1);
    assert_int_equal(wb_state_get(&txn, &read), WB_E_CORRUPT);
}

/* ---- transactions ----------------------------------------------------------------------------------------------- */

static void test_readers(void **state)
{
    struct wb_txn reader;
    struct wb_entry read;
    uint64_t oldest;

    (void)state;
    must_ok(wb_txn_read(catalog, &reader));
    must_ok(wb_entry_put(&txn, WB_TABLE_PAGES, (struct wb_pageid){1, 1}, &entries[0]));
    uint64_t written = wb_txn_id(&txn);
    must_ok(wb_txn_commit(&txn));
    assert_int_equal(wb_entry_get(&reader, WB_TABLE_PAGES, (struct wb_pageid){1, 1}, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest < written);
    wb_txn_park(&reader);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest == UINT64_MAX);
    must_ok(wb_txn_wake(&reader));
    must_ok(wb_entry_get(&reader, WB_TABLE_PAGES, (struct wb_pageid){1, 1}, &read));
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_int_equal(oldest, written);
    wb_txn_abort(&reader);
}

/* One environment a process: a second handle is the same one. */
static void test_shared(void **state)
{
    struct wb_catalog *again;

    (void)state;
    must_ok(wb_catalog_open(dir, false, &again));
    assert_ptr_equal(again, catalog);
    wb_catalog_close(again);
    assert_true(wb_catalog_writable(catalog));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_entries, begin, end),     cmocka_unit_test_setup_teardown(test_walking, begin, end),
        cmocka_unit_test_setup_teardown(test_segments, begin, end),    cmocka_unit_test_setup_teardown(test_sites, begin, end),
        cmocka_unit_test_setup_teardown(test_bars, begin, end),
        cmocka_unit_test_setup_teardown(test_other_rows, begin, end),  cmocka_unit_test_setup_teardown(test_wrong_entries, begin, end),
        cmocka_unit_test_setup_teardown(test_true_checksums, begin, end), cmocka_unit_test_setup_teardown(test_wrong_state, begin, end),
        cmocka_unit_test_setup_teardown(test_readers, begin, end),     cmocka_unit_test_setup_teardown(test_shared, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
