/* test_catalog.c - the catalog's rows: written and read at the limits of their ranges, and all ways to be invalid. */
#include "store_support.h"

static char dir[DIR_MAX];
static struct wb_catalog *catalog;
static struct wb_catalog_txn txn;

static int begin(void **state)
{
    (void)state;
    test_dir(dir);
    must_ok(wb_catalog_open(dir, WB_TREE_CREATE, &catalog));
    must_ok(wb_catalog_txn_write(catalog, &txn));
    return 0;
}

static int end(void **state)
{
    (void)state;
    wb_catalog_txn_abort(&txn);
    wb_catalog_close(catalog);
    return 0;
}

static bool same_entry(const struct wb_catalog_entry *a, const struct wb_catalog_entry *b)
{
    return wb_catalog_place_equal(&a->place, &b->place) && a->time_ms == b->time_ms && a->body_bytes == b->body_bytes &&
           a->stored_bytes == b->stored_bytes && a->epoch == b->epoch && a->status == b->status &&
           a->lifetime == b->lifetime && a->lifetime_count == b->lifetime_count && a->site == b->site;
}

static const struct wb_catalog_entry entries[] = {
    {{1, 0, 64}, 0, 0, 0, 1, 0, 0, 0, 0},
    {{UINT32_MAX, UINT16_MAX, UINT64_MAX},
     INT64_MAX,
     UINT32_MAX,
     UINT32_MAX,
     UINT32_MAX,
     UINT16_MAX,
     UINT16_MAX,
     UINT16_MAX,
     UINT64_MAX},
    {{7, 3, 1 << 30}, INT64_MIN, 1, 2, 3, 404, 30, 29, 1},
    {{7, 3, 1 << 20}, -1, 20000, 3000, 3, 200, 0, 0, 0x0123456789abcdef},
};

static void test_entries(void **state)
{
    struct wb_catalog_entry read;

    (void)state;
    for (uint64_t i = 0; i < COUNT(entries); i++) {
        struct wb_pageid id = {i, ~i};
        assert_int_equal(wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, id, &read), WB_E_NOTFOUND);
        must_ok(wb_catalog_entry_put(&txn, WB_CATALOG_PAGES, id, &entries[i]));
        must_ok(wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, id, &read));
        assert_true(same_entry(&read, &entries[i]));
        assert_int_equal(wb_catalog_entry_get(&txn, WB_CATALOG_OLD, id, &read), WB_E_NOTFOUND);
    }
    must_ok(wb_catalog_entry_delete(&txn, WB_CATALOG_PAGES, (struct wb_pageid){1, ~(uint64_t)1}));
    assert_int_equal(wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, (struct wb_pageid){1, ~(uint64_t)1}, &read),
                     WB_E_NOTFOUND);
    assert_int_equal(wb_catalog_entry_delete(&txn, WB_CATALOG_PAGES, (struct wb_pageid){1, ~(uint64_t)1}),
                     WB_E_NOTFOUND);
}

struct entry_tally {
    struct wb_pageid last;
    unsigned count, stop_at;
};

static int step(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct entry_tally *walk = context;

    must(walk->count == 0 || wb_pageid_compare(walk->last, id) < 0);
    must(entry->body_bytes == (uint32_t)id.lo);
    walk->last = id;
    return ++walk->count == walk->stop_at ? 42 : 0;
}

static void test_walking(void **state)
{
    uint64_t chance = test_seed();
    struct entry_tally walk = {0};

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        struct wb_pageid id = {chance_next(&chance), chance_next(&chance)};
        struct wb_catalog_entry entry = {.place = {1, 0, 64}, .body_bytes = (uint32_t)id.lo, .epoch = 1};
        must_ok(wb_catalog_entry_put(&txn, WB_CATALOG_OLD, id, &entry));
    }
    must_ok(wb_catalog_entry_each(&txn, WB_CATALOG_OLD, step, &walk));
    assert_int_equal(walk.count, 3000);
    walk = (struct entry_tally){.stop_at = 10};
    assert_int_equal(wb_catalog_entry_each(&txn, WB_CATALOG_OLD, step, &walk), 42);
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_OLD), 3000);
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_OLD));
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_OLD), 0);
}

static void test_segments(void **state)
{
    struct wb_catalog_segment row = {.number = 7,
                                     .revision = UINT32_MAX,
                                     .sealed = true,
                                     .bytes = UINT64_MAX,
                                     .logical_end = 2,
                                     .pages = 5,
                                     .live = 4,
                                     .bytes_dead = 6,
                                     .touched = 7,
                                     .removed = 8,
                                     .map_at = 9,
                                     .map_count = 10,
                                     .epoch_min = 11,
                                     .epoch_max = 12};
    struct wb_catalog_segment read;

    (void)state;
    assert_int_equal(wb_catalog_segment_get(&txn, 7, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_segment_put(&txn, &row));
    must_ok(wb_catalog_segment_get(&txn, 7, &read));
    assert_true(read.number == 7 && read.revision == UINT32_MAX && read.sealed && read.bytes == UINT64_MAX &&
                read.logical_end == 2 && read.pages == 5 && read.live == 4 && read.bytes_dead == 6 &&
                read.touched == 7 && read.removed == 8 && read.map_at == 9 && read.map_count == 10 &&
                read.epoch_min == 11 && read.epoch_max == 12);
    must_ok(wb_catalog_segment_delete(&txn, 7));
    assert_int_equal(wb_catalog_segment_get(&txn, 7, &read), WB_E_NOTFOUND);
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
    struct wb_catalog_summary counters = {0};
    uint64_t total = 0;
    char long_site[70000];

    (void)state;
    memset(long_site, 'x', sizeof long_site);
    must_ok(wb_catalog_site_add(&txn, WB_SLICE_LIT("example.com"), 3, &counters));
    must_ok(wb_catalog_site_add(&txn, WB_SLICE_LIT("example.com"), 2, &counters));
    must_ok(wb_catalog_site_add(&txn, WB_SLICE_EMPTY, 1, &counters));
    must_ok(wb_catalog_site_add(&txn, wb_slice(long_site, 480), 10, &counters));
    must_ok(wb_catalog_site_add(&txn, wb_slice(long_site, 481), 20, &counters));
    must_ok(wb_catalog_site_add(&txn, wb_slice(long_site, sizeof long_site), 30, &counters));
    assert_int_equal(counters.sites, 5);
    must_ok(wb_catalog_site_each(&txn, count_site, &total));
    assert_int_equal(total, 66);
    must_ok(wb_catalog_site_add(&txn, WB_SLICE_LIT("example.com"), -5, &counters));
    must_ok(wb_catalog_site_add(&txn, wb_slice(long_site, sizeof long_site), -30, &counters));
    must_ok(wb_catalog_site_add(&txn, WB_SLICE_LIT("never.seen"), 0, &counters));
    assert_int_equal(counters.sites, 3);
    assert_int_equal(wb_catalog_site_add(&txn, WB_SLICE_LIT("never.seen"), -1, &counters), WB_E_CORRUPT);
}

static int add_revisit_site(void *context, struct wb_pageid id, uint64_t site)
{
    uint64_t *sum = context;

    (void)id;
    *sum += site;
    return 0;
}

static int describe_bar(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row)
{
    return wb_buf_printf(context, "%s %llu %.*s %llu %s;", bar->kind == WB_STORE_BAR_PAGE ? "page" : "site",
                         (unsigned long long)bar->id.lo, WB_SLICE_ARG(bar->site), (unsigned long long)row->site,
                         row->except ? "except" : "bar");
}

static void test_bars(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_catalog_bar bar = {.time_ms = -7, .site = 9}, except = {.except = true, .site = 9}, read;
    struct wb_pageid id = {1, 2}, other = {1, 3};
    char long_site[1000];
    struct wb_slice site = WB_SLICE_LIT("h.example:81"), none = WB_SLICE_EMPTY;

    (void)state;
    memset(long_site, 'x', sizeof long_site);
    assert_int_equal(wb_catalog_bar_get(&txn, WB_STORE_BAR_PAGE, id, none, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_bar_put(&txn, WB_STORE_BAR_PAGE, id, none, &bar));
    must_ok(wb_catalog_bar_put(&txn, WB_STORE_BAR_PAGE, other, site, &except));
    must_ok(wb_catalog_bar_put(&txn, WB_STORE_BAR_SITE, id, site, &bar));
    must_ok(wb_catalog_bar_get(&txn, WB_STORE_BAR_PAGE, id, site, &read)); /* the site is not part of a page's key */
    assert_true(read.time_ms == -7 && read.site == 9 && !read.except);
    must_ok(wb_catalog_bar_get(&txn, WB_STORE_BAR_SITE, other, site, &read)); /* nor the id of a site's */
    must_ok(wb_catalog_bar_each(&txn, describe_bar, &text));
    must_ok(wb_buf_terminate(&text));
    assert_string_equal(text.ptr, "page 2  9 bar;page 3  9 except;site 0 h.example:81 9 bar;");
    for (size_t len = 478; len <= 481; len++) {
        must_ok(wb_catalog_bar_put(&txn, WB_STORE_BAR_SITE, id, wb_slice(long_site, len), &bar));
        must_ok(wb_catalog_bar_get(&txn, WB_STORE_BAR_SITE, id, wb_slice(long_site, len), &read));
        must_ok(wb_catalog_bar_delete(&txn, WB_STORE_BAR_SITE, id, wb_slice(long_site, len)));
        assert_int_equal(wb_catalog_bar_get(&txn, WB_STORE_BAR_SITE, id, wb_slice(long_site, len), &read),
                         WB_E_NOTFOUND);
    }
    must_ok(wb_catalog_bar_delete(&txn, WB_STORE_BAR_PAGE, id, none));
    assert_int_equal(wb_catalog_bar_get(&txn, WB_STORE_BAR_PAGE, id, none, &read), WB_E_NOTFOUND);
    assert_int_equal(wb_catalog_bar_delete(&txn, WB_STORE_BAR_PAGE, id, none), WB_E_NOTFOUND);
    wb_buf_release(&text);
}

static void test_other_rows(void **state)
{
    struct wb_store_revisit revisit = {.time_ms = -5, .has_sha1 = true}, read;
    struct wb_catalog_summary all = {1, 2, 3, 4, 5, 6, 7, 11, 9, 10, 8}, read_state;
    uint64_t sites = 0;
    bool has;

    (void)state;
    memset(revisit.sha1, 0xee, sizeof revisit.sha1);
    assert_int_equal(wb_catalog_revisit_get(&txn, (struct wb_pageid){1, 1}, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_revisit_put(&txn, (struct wb_pageid){1, 1}, 77, &revisit));
    must_ok(wb_catalog_revisit_get(&txn, (struct wb_pageid){1, 1}, &read));
    assert_true(read.time_ms == -5 && read.has_sha1);
    assert_memory_equal(read.sha1, revisit.sha1, sizeof read.sha1);
    must_ok(wb_catalog_revisit_put(&txn, (struct wb_pageid){2, 2}, 70, &revisit));
    must_ok(wb_catalog_revisit_each(&txn, add_revisit_site, &sites));
    assert_int_equal(sites, 147);
    must_ok(wb_catalog_revisit_delete(&txn, (struct wb_pageid){2, 2}));
    assert_int_equal(wb_catalog_revisit_delete(&txn, (struct wb_pageid){2, 2}), WB_E_NOTFOUND);

    must_ok(wb_catalog_retired_put(&txn, 3, 1, wb_catalog_txn_id(&txn)));
    must_ok(wb_catalog_retired_has(&txn, 3, 1, &has));
    assert_true(has);
    must_ok(wb_catalog_retired_has(&txn, 3, 0, &has));
    assert_false(has);
    must_ok(wb_catalog_retired_delete(&txn, 3, 1));
    must_ok(wb_catalog_retired_has(&txn, 3, 1, &has));
    assert_false(has);

    assert_int_equal(wb_catalog_summary_get(&txn, &read_state), WB_E_CORRUPT); /* every catalog has one */
    must_ok(wb_catalog_summary_put(&txn, &all));
    must_ok(wb_catalog_summary_get(&txn, &read_state));
    assert_memory_equal(&read_state, &all, sizeof all);
}

/* ---- rows that are wrong ------------------------------------------------------------------------------------ */

static void put_raw(enum wb_catalog_table table, const void *key, size_t key_len, const void *value, size_t value_len)
{
    must_ok(wb_tree_put(wb_catalog_tree(catalog), table, wb_slice(key, key_len), wb_slice(value, value_len)));
}

static size_t get_raw(enum wb_catalog_table table, const void *key, size_t key_len, char *value_out)
{
    size_t len;

    must_ok(wb_tree_get(wb_catalog_tree(catalog), wb_catalog_txn_state(&txn), table, wb_slice(key, key_len), value_out,
                        600, &len));
    return len;
}

static int ignore_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    (void)context;
    (void)id;
    (void)entry;
    return 0;
}

/*
 * A row that is too short or too long, or whose numbers do not end, is damage. The tree notices changed bytes
 * (test_tree_flip.c).
 */
static void test_wrong_entries(void **state)
{
    struct wb_pageid id = {5, 6};
    struct wb_catalog_entry read;
    char key[WB_PAGEID_BYTES], row[600], long_key[20] = {0};

    (void)state;
    wb_pageid_put(id, key);
    must_ok(wb_catalog_entry_put(&txn, WB_CATALOG_PAGES, id, &entries[2]));
    size_t len = get_raw(WB_CATALOG_PAGES, key, sizeof key, row);
    for (size_t cut = 0; cut <= len + 40; cut++) {
        memset(row + len, 0, 60);
        put_raw(WB_CATALOG_PAGES, key, sizeof key, row, cut);
        assert_int_equal(wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, id, &read), cut == len ? 0 : WB_E_CORRUPT);
        assert_true(cut == len || strstr(wb_error_message(), wb_catalog_path(catalog)));
        assert_int_equal(wb_catalog_entry_each(&txn, WB_CATALOG_PAGES, ignore_entry, NULL),
                         cut == len ? 0 : WB_E_CORRUPT);
    }
    for (size_t ones = 0; ones <= 64; ones++) {
        memset(row, 0xff, sizeof row);
        put_raw(WB_CATALOG_PAGES, key, sizeof key, row, ones);
        assert_int_equal(wb_catalog_entry_get(&txn, WB_CATALOG_PAGES, id, &read), WB_E_CORRUPT);
    }
    must_ok(wb_catalog_entry_put(&txn, WB_CATALOG_PAGES, id, &entries[3]));
    len = get_raw(WB_CATALOG_PAGES, key, sizeof key, row);
    put_raw(WB_CATALOG_PAGES, long_key, sizeof long_key, row, len);
    assert_int_equal(wb_catalog_entry_each(&txn, WB_CATALOG_PAGES, ignore_entry, NULL), WB_E_CORRUPT);
}

static void test_wrong_state(void **state)
{
    struct wb_catalog_summary counters = {.pages = 3, .epoch = 1, .next_segment = 1}, read;
    char row[600];

    (void)state;
    must_ok(wb_catalog_summary_put(&txn, &counters));
    size_t len = get_raw(WB_CATALOG_SUMMARY, "state", 5, row);
    put_raw(WB_CATALOG_SUMMARY, "state", 5, row, len - 1);
    assert_int_equal(wb_catalog_summary_get(&txn, &read), WB_E_CORRUPT);
    put_raw(WB_CATALOG_SUMMARY, "state", 5, row, len + 1);
    assert_int_equal(wb_catalog_summary_get(&txn, &read), WB_E_CORRUPT);
    memset(row + 48, 0, 4); /* no epoch */
    put_raw(WB_CATALOG_SUMMARY, "state", 5, row, len);
    assert_int_equal(wb_catalog_summary_get(&txn, &read), WB_E_CORRUPT);
}

static int ignore_segment(void *context, const struct wb_catalog_segment *row)
{
    (void)context;
    (void)row;
    return 0;
}

/* A row with more live pages than pages contradicts itself. */
static void test_wrong_segment(void **state)
{
    struct wb_catalog_segment segment = {.number = 7, .pages = 5, .live = 4}, read;
    char row[600];

    (void)state;
    must_ok(wb_catalog_segment_put(&txn, &segment));
    size_t len = get_raw(WB_CATALOG_SEGMENTS, "\0\0\0\7", 4, row);
    row[32] = 6;
    put_raw(WB_CATALOG_SEGMENTS, "\0\0\0\7", 4, row, len);
    assert_int_equal(wb_catalog_segment_get(&txn, 7, &read), WB_E_CORRUPT);
    assert_int_equal(wb_catalog_segment_each(&txn, ignore_segment, NULL), WB_E_CORRUPT);
}

/* ---- transactions ----------------------------------------------------------------------------------------------- */

static void test_readers(void **state)
{
    struct wb_catalog_txn reader;
    struct wb_catalog_entry read;
    uint64_t oldest;

    (void)state;
    must_ok(wb_catalog_txn_read(catalog, &reader));
    must_ok(wb_catalog_entry_put(&txn, WB_CATALOG_PAGES, (struct wb_pageid){1, 1}, &entries[0]));
    uint64_t written = wb_catalog_txn_id(&txn);
    must_ok(wb_catalog_txn_commit(&txn));
    assert_int_equal(wb_catalog_entry_get(&reader, WB_CATALOG_PAGES, (struct wb_pageid){1, 1}, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest < written);
    wb_catalog_txn_abort(&reader);
    must_ok(wb_catalog_oldest_reader(catalog, &oldest));
    assert_true(oldest == UINT64_MAX);
    must_ok(wb_catalog_txn_read(catalog, &reader));
    must_ok(wb_catalog_entry_get(&reader, WB_CATALOG_PAGES, (struct wb_pageid){1, 1}, &read));
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
        struct wb_catalog_entry entry = {.place = {1, 0, 64}, .body_bytes = i, .epoch = 1, .status = 200};
        must_ok(wb_catalog_txn_write(other, &change));
        for (uint64_t id = 0; id < 3000; id++)
            must_ok(wb_catalog_entry_put(&change, WB_CATALOG_PAGES, (struct wb_pageid){id << 50, id}, &entry));
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
    err = wb_catalog_entry_each(&r->reader, WB_CATALOG_PAGES, see_row, r);
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
        cmocka_unit_test_setup_teardown(test_entries, begin, end),
        cmocka_unit_test_setup_teardown(test_walking, begin, end),
        cmocka_unit_test_setup_teardown(test_segments, begin, end),
        cmocka_unit_test_setup_teardown(test_sites, begin, end),
        cmocka_unit_test_setup_teardown(test_other_rows, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_entries, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_state, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_segment, begin, end),
        cmocka_unit_test_setup_teardown(test_readers, begin, end),
        cmocka_unit_test_setup_teardown(test_repeated_read, begin, end),
        cmocka_unit_test_setup_teardown(test_bars, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
