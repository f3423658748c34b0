/* test_catalog.c - the catalog's rows: written and read at the limits of their ranges, and all ways to be invalid. */
#include "catalog_support.h"
#include "base/bytes.h"

static bool same_entry(const struct wb_catalog_entry *a, const struct wb_catalog_entry *b)
{
    return wb_catalog_place_equal(&a->place, &b->place) && a->time_ms == b->time_ms && a->body_bytes == b->body_bytes &&
           a->stored_bytes == b->stored_bytes && a->epoch == b->epoch && a->status == b->status &&
           a->lifetime == b->lifetime && a->lifetime_count == b->lifetime_count && a->site == b->site &&
           a->content == b->content && a->history == b->history && a->floor_ms == b->floor_ms;
}

static const struct wb_catalog_entry entries[] = {
    {.place = {1, 0, 64}, .epoch = 1, .content = 2, .floor_ms = INT64_MIN},
    {.place = {UINT32_MAX, UINT16_MAX, UINT64_MAX},
     .time_ms = INT64_MAX,
     .body_bytes = UINT32_MAX,
     .stored_bytes = UINT32_MAX,
     .epoch = UINT64_MAX,
     .content = UINT64_MAX,
     .floor_ms = INT64_MIN + 1,
     .status = UINT16_MAX,
     .lifetime = UINT16_MAX,
     .lifetime_count = UINT16_MAX,
     .site = UINT64_MAX},
    {.place = {7, 3, 1 << 30},
     .time_ms = INT64_MIN,
     .body_bytes = 1,
     .stored_bytes = 2,
     .epoch = 3,
     .content = 4,
     .history = true,
     .floor_ms = INT64_MIN,
     .status = 404,
     .lifetime = 30,
     .lifetime_count = 29,
     .site = 1},
    {.place = {7, 3, 1 << 20},
     .time_ms = -1,
     .body_bytes = 20000,
     .stored_bytes = 3000,
     .epoch = 3,
     .content = 0xfedcba9876543210,
     .floor_ms = INT64_MAX,
     .status = 200,
     .site = 0x0123456789abcdef},
    {.place = {7, 4, 1 << 20}, .time_ms = 1700000000000, .epoch = 3, .content = 1, .floor_ms = 1699999990000},
    {.place = {7, 5, 1 << 20}, .time_ms = 5, .epoch = 3, .content = 1, .floor_ms = 5},
};

static void test_entries(void **state)
{
    struct wb_catalog_entry read;

    (void)state;
    for (uint64_t i = 0; i < COUNT(entries); i++) {
        struct wb_pageid id = {i, ~i};
        assert_int_equal(wb_catalog_entry_get(&txn, id, &read), WB_E_NOTFOUND);
        must_ok(wb_catalog_entry_put(&txn, id, &entries[i]));
        must_ok(wb_catalog_entry_get(&txn, id, &read));
        assert_true(same_entry(&read, &entries[i]));
    }
    /* The floor of a page that has a history is part of that, and not of the entry. */
    struct wb_catalog_entry both = entries[4];
    both.history = true;
    must_ok(wb_catalog_entry_put(&txn, (struct wb_pageid){1, 1}, &both));
    must_ok(wb_catalog_entry_get(&txn, (struct wb_pageid){1, 1}, &read));
    assert_true(read.history && read.floor_ms == INT64_MIN);
    must_ok(wb_catalog_entry_delete(&txn, (struct wb_pageid){1, ~(uint64_t)1}));
    assert_int_equal(wb_catalog_entry_get(&txn, (struct wb_pageid){1, ~(uint64_t)1}, &read), WB_E_NOTFOUND);
    assert_int_equal(wb_catalog_entry_delete(&txn, (struct wb_pageid){1, ~(uint64_t)1}), WB_E_NOTFOUND);
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
        struct wb_catalog_entry entry = {
            .place = {1, 0, 64}, .body_bytes = (uint32_t)id.lo, .epoch = 1, .content = 2, .floor_ms = 0};
        must_ok(wb_catalog_entry_put(&txn, id, &entry));
    }
    must_ok(wb_catalog_entry_each(&txn, step, &walk));
    assert_int_equal(walk.count, 3000);
    walk = (struct entry_tally){.stop_at = 10};
    assert_int_equal(wb_catalog_entry_each(&txn, step, &walk), 42);
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_PAGES), 3000);
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_PAGES));
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_PAGES), 0);
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
                                     .old = 3,
                                     .bytes_dead = 6,
                                     .touched = 7,
                                     .removed = 8,
                                     .map_at = 9,
                                     .map_count = 10,
                                     .epoch_min = UINT64_MAX - 1,
                                     .epoch_max = UINT64_MAX,
                                     .lead_dead = UINT32_MAX,
                                     .old_known = 11,
                                     .old_epoch = UINT64_MAX - 2,
                                     .returned = 12,
                                     .node = 3,
                                     .range = {.prefix = (uint64_t)5 << 61, .bits = 3},
                                     .origin = 6,
                                     .split = true};
    struct wb_catalog_segment read;

    (void)state;
    wb_cells_add(&row.range.gaps, 700);
    assert_int_equal(wb_catalog_segment_get(&txn, 7, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_segment_put(&txn, &row));
    must_ok(wb_catalog_segment_get(&txn, 7, &read));
    assert_true(read.number == 7 && read.revision == UINT32_MAX && read.sealed && read.bytes == UINT64_MAX &&
                read.logical_end == 2 && read.pages == 5 && read.live == 4 && read.old == 3 && read.bytes_dead == 6 &&
                read.touched == 7 && read.removed == 8 && read.map_at == 9 && read.map_count == 10 &&
                read.epoch_min == UINT64_MAX - 1 && read.epoch_max == UINT64_MAX && read.lead_dead == UINT32_MAX);
    assert_true(read.old_known == 11 && read.old_epoch == UINT64_MAX - 2 && read.returned == 12);
    assert_true(read.node == 3 && wb_catalog_range_equal(&read.range, &row.range) && read.origin == 6 && read.split);
    row.range.gaps = (struct wb_cells){.words = {0}};
    must_ok(wb_catalog_segment_put(&txn, &row));
    must_ok(wb_catalog_segment_get(&txn, 7, &read));
    assert_true(wb_catalog_range_equal(&read.range, &row.range));
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

static bool same_summary(const struct wb_catalog_summary *a, const struct wb_catalog_summary *b)
{
    return a->commit == b->commit && a->pages == b->pages && a->versions == b->versions && a->captures == b->captures &&
           a->gone == b->gone && a->sites == b->sites && a->revisits == b->revisits && a->bars == b->bars &&
           a->bytes_pages == b->bytes_pages && a->epoch == b->epoch && a->snapshot == b->snapshot &&
           a->next_segment == b->next_segment && a->next_node == b->next_node && a->history.keep == b->history.keep &&
           a->history.value == b->history.value;
}

static void test_other_rows(void **state)
{
    struct wb_catalog_summary all = {.commit = 1,
                                     .pages = 2,
                                     .versions = 3,
                                     .captures = UINT64_MAX,
                                     .gone = 5,
                                     .sites = 6,
                                     .revisits = 7,
                                     .bars = 11,
                                     .bytes_pages = 9,
                                     .epoch = UINT64_MAX - 1,
                                     .snapshot = UINT32_MAX,
                                     .next_segment = 10,
                                     .next_node = 12,
                                     .history = {WB_STORE_KEEP_DURATION, WB_STORE_HISTORY_VALUE_MAX}};
    struct wb_catalog_summary read_state;
    bool has;

    (void)state;
    must_ok(wb_catalog_retired_put(&txn, 3, 1, 2, wb_catalog_txn_id(&txn)));
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
    assert_true(same_summary(&read_state, &all));

    struct wb_catalog_summary wrong = all;
    wrong.epoch = UINT64_MAX; /* none could come after it */
    must_ok(wb_catalog_summary_put(&txn, &wrong));
    assert_int_equal(wb_catalog_summary_get(&txn, &read_state), WB_E_CORRUPT);
    wrong = all;
    wrong.history.value = WB_STORE_HISTORY_VALUE_MAX + 1; /* it could not be subtracted from a time */
    must_ok(wb_catalog_summary_put(&txn, &wrong));
    assert_int_equal(wb_catalog_summary_get(&txn, &read_state), WB_E_CORRUPT);
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
    for (size_t which = 2; which < COUNT(entries); which++) {
        must_ok(wb_catalog_entry_put(&txn, id, &entries[which]));
        size_t len = get_raw(WB_CATALOG_PAGES, key, sizeof key, row);
        for (size_t cut = 0; cut <= len + 40; cut++) {
            bool valid = cut == len;
            memset(row + len, 0, 60);
            put_raw(WB_CATALOG_PAGES, key, sizeof key, row, cut);
            int err = wb_catalog_entry_get(&txn, id, &read);
            assert_int_equal(err, valid ? 0 : WB_E_CORRUPT);
            assert_true(valid || strstr(wb_error_message(), wb_catalog_path(catalog)));
            assert_int_equal(wb_catalog_entry_each(&txn, ignore_entry, NULL), valid ? 0 : WB_E_CORRUPT);
        }
        memset(row + len - 16, 0, 8); /* the hash of a content is never 0 */
        put_raw(WB_CATALOG_PAGES, key, sizeof key, row, len);
        assert_int_equal(wb_catalog_entry_get(&txn, id, &read), WB_E_CORRUPT);
    }
    for (size_t ones = 0; ones <= 64; ones++) {
        memset(row, 0xff, sizeof row);
        put_raw(WB_CATALOG_PAGES, key, sizeof key, row, ones);
        assert_int_equal(wb_catalog_entry_get(&txn, id, &read), WB_E_CORRUPT);
    }
    must_ok(wb_catalog_entry_put(&txn, id, &entries[3]));
    size_t len = get_raw(WB_CATALOG_PAGES, key, sizeof key, row);
    put_raw(WB_CATALOG_PAGES, long_key, sizeof long_key, row, len);
    assert_int_equal(wb_catalog_entry_each(&txn, ignore_entry, NULL), WB_E_CORRUPT);
}

static void test_wrong_state(void **state)
{
    struct wb_catalog_summary counters = {.pages = 3, .versions = 3, .captures = 3, .epoch = 1, .next_segment = 1};
    struct wb_catalog_summary read;
    static const struct {
        size_t at;
        char value;
    } wrong[] = {
        {8, 4},  /* more pages than versions */
        {16, 4}, /* more versions than captures */
        {72, 0}, /* no epoch */
        {84, 0}, /* no segment comes next */
        {88, 4}, /* no such policy */
    };
    char row[600] = {0}, changed[600];

    (void)state;
    must_ok(wb_catalog_summary_put(&txn, &counters));
    size_t len = get_raw(WB_CATALOG_SUMMARY, "state", 5, row);
    for (size_t cut = 0; cut <= len + 8; cut++) {
        put_raw(WB_CATALOG_SUMMARY, "state", 5, row, cut);
        assert_int_equal(wb_catalog_summary_get(&txn, &read), cut == len ? 0 : WB_E_CORRUPT);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        memcpy(changed, row, len);
        changed[wrong[i].at] = wrong[i].value;
        put_raw(WB_CATALOG_SUMMARY, "state", 5, changed, len);
        assert_int_equal(wb_catalog_summary_get(&txn, &read), WB_E_CORRUPT);
    }
}

static int ignore_segment(void *context, const struct wb_catalog_segment *row)
{
    (void)context;
    (void)row;
    return 0;
}

static void check_wrong_segment(const char *row, size_t len)
{
    struct wb_catalog_segment read;

    put_raw(WB_CATALOG_SEGMENTS, "\0\0\0\7", 4, row, len);
    assert_int_equal(wb_catalog_segment_get(&txn, 7, &read), WB_E_CORRUPT);
    assert_int_equal(wb_catalog_segment_each(&txn, ignore_segment, NULL), WB_E_CORRUPT);
}

static void test_wrong_segment(void **state)
{
    struct wb_catalog_segment segment = {.number = 7, .node = 1, .pages = 5, .live = 4, .old = 4};
    static const struct {
        size_t at;
        char value;
    } wrong[] = {
        {32, 6},   /* more live pages than pages */
        {104, 5},  /* more old pages than live ones */
        {64, 1},   /* a map of a file that was not compacted */
        {80, 1},   /* the oldest page arrived after the newest */
        {100, 0},  /* no node */
        {136, 1},  /* a prefix that is longer than its bits */
        {144, 65}, /* more bits than a prefix has */
    };
    char row[600], changed[600];

    (void)state;
    must_ok(wb_catalog_segment_put(&txn, &segment));
    size_t len = get_raw(WB_CATALOG_SEGMENTS, "\0\0\0\7", 4, row);
    memset(row + len, 0, 8);
    for (size_t cut = 0; cut <= len + 8; cut++)
        if (cut != len)
            check_wrong_segment(row, cut);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        memcpy(changed, row, len);
        changed[wrong[i].at] = wrong[i].value;
        check_wrong_segment(changed, len);
    }
    put_raw(WB_CATALOG_SEGMENTS, "\0\0\0\7", 4, row, len);
    must_ok(wb_catalog_segment_each(&txn, ignore_segment, NULL));
    put_raw(WB_CATALOG_SEGMENTS, "\0\0\0\0", 4, row, len); /* numbers begin with 1 */
    assert_int_equal(wb_catalog_segment_each(&txn, ignore_segment, NULL), WB_E_CORRUPT);
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
        cmocka_unit_test_setup_teardown(test_bars, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
