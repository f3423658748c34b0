/*
 * test_sorted_scan.c - the organisation hashed-log: ranges of ids are divided and logs are split, and scans return all
 * pages in the order of their ids, whatever happens meanwhile.
 */
#include "store_support.h"
#include "move/move.h"
#include "store/scan/sorted_scan.h"

enum { PAGES = 600, SEGMENT = 40000 }; /* with use_small_sizes(), a log is full with a quarter of this */

static char dir[DIR_MAX];

static void create_as(const char *where, enum wb_organisation_kind organisation)
{
    must_ok(wb_store_create(where, &(struct wb_store_options){.design.read.organisation = organisation}));
}

static struct spec page_spec(uint32_t number, uint32_t version)
{
    return (struct spec){
        .site = number % 7, .number = number, .time_ms = 1000 * (int64_t)(version + 1), .size = 100 + number * 7 % 900};
}

static void put_pages(struct wb_store *store, uint32_t from, uint32_t to, uint32_t version)
{
    for (uint32_t i = from; i < to; i++) {
        struct spec spec = page_spec(i, version);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

static int setup(void **state)
{
    (void)state;
    use_small_sizes(SEGMENT);
    test_dir(dir);
    create_as(dir, WB_ORGANISATION_HASHED_LOG);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    verify_clean(dir);
    remove_tree(dir);
    use_usual_sizes();
    return 0;
}

/* Reads a whole scan, whose ids must ascend. Returns how many damaged parts it reported. */
static unsigned read_sorted(struct wb_store_scan *scan, unsigned without, struct sights *sights)
{
    struct wb_pageid last = {0, 0};
    struct wb_page page;
    unsigned damaged = 0;
    bool any = false;
    int got;

    while ((got = wb_store_scan_next(scan, &page)) != 0) {
        if (got == WB_E_CORRUPT) {
            damaged++;
            continue;
        }
        must(got == 1);
        must(!any || wb_pageid_compare(last, page.id) < 0);
        last = page.id;
        any = true;
        see(sights, &page, without);
    }
    return damaged;
}

static unsigned scan_sorted(struct wb_store *store, const struct wb_store_scan_options *options, struct sights *sights)
{
    struct wb_store_scan *scan;

    must_ok(wb_store_scan_open(store, options, &scan));
    unsigned damaged = read_sorted(scan, options->facts ? WITHOUT_EPOCH : 0, sights);
    wb_store_scan_close(scan);
    return damaged;
}

/* How many segments have at least so many bytes, and ranges of at least so many bits; wider: of fewer. */
static unsigned count_segments(uint32_t bits, uint64_t bytes, bool wider)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct wb_overview o;
    unsigned count = 0;

    must_ok(wb_pagefile_overview(&wb_repo_of(store)->files, &o));
    for (size_t i = 0; i < o.rows.count; i++)
        count += (wider ? o.rows.items[i].range.bits < bits : o.rows.items[i].range.bits >= bits) &&
                 o.rows.items[i].bytes >= bytes;
    wb_catalog_rows_release(&o.rows);
    wb_store_close(store);
    return count;
}

/* Both organisations have the same pages. */
static void test_same_as_log(void **state)
{
    struct sights sorted = {0}, unsorted = {0};
    char other[DIR_MAX];

    (void)state;
    test_dir(other);
    create_as(other, WB_ORGANISATION_LOG);
    struct wb_store *hashed = open_store(dir, WB_STORE_WRITE), *repo = open_store(other, WB_STORE_WRITE);
    for (uint32_t version = 0; version < 3; version++)
        for (uint32_t i = 0; i < PAGES; i += 150) {
            put_pages(hashed, i, i + 150 - version * 20, version);
            put_pages(repo, i, i + 150 - version * 20, version);
        }
    scan_sorted(hashed, &(struct wb_store_scan_options){0}, &sorted);
    scan_all(repo, &(struct wb_store_scan_options){0}, 0, &unsorted);
    assert_int_equal(sorted.count, PAGES);
    compare_sights("log and hashed-log", &sorted, &unsorted);
    wb_store_close(hashed);
    wb_store_close(repo);
    sights_release(&sorted);
    sights_release(&unsorted);
    remove_tree(other);
    assert_true(count_segments(4, 0, false) >= 16);
    assert_true(count_segments(4, SEGMENT / 4, true) >= 1);
}

/* Compaction splits the logs that were full, and no page is lost. */
static void test_split(void **state)
{
    struct sights before = {0}, after = {0};
    struct wb_move_compact_counts counts;

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 0);
    put_pages(store, PAGES, 2 * PAGES, 0);
    scan_sorted(store, &(struct wb_store_scan_options){0}, &before);
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    assert_true(counts.files >= 1);
    scan_sorted(store, &(struct wb_store_scan_options){0}, &after);
    compare_sights("after a split", &after, &before);
    for (uint32_t i = 0; i < 2 * PAGES; i++) {
        struct spec spec = page_spec(i, 0);
        assert_true(holds_spec(store, &spec));
    }
    wb_store_close(store);
    sights_release(&before);
    sights_release(&after);
    assert_int_equal(count_segments(4, SEGMENT / 4, true), 0);
}

/* A scan that goes on after every few pages, while pages are replaced and logs are split. */
static void test_positions(void **state)
{
    struct sights all = {0}, pieces = {0};
    struct wb_store_position position;
    struct wb_move_compact_counts counts;
    struct wb_store_scan *scan;

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 0);
    uint32_t snapshot = seal_store(store);
    struct wb_store_scan_options options = {.snapshot = snapshot};
    scan_sorted(store, &options, &all);
    bool more = true;
    for (uint32_t round = 1; more; round++) {
        must_ok(wb_store_scan_open(store, &options, &scan));
        more = scan_some(scan, 37, 0, &pieces);
        wb_store_scan_tell(scan, &position);
        wb_store_scan_close(scan);
        options.after = &position;
        put_pages(store, 0, 100, round);
        if (round % 5 == 2)
            must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    }
    compare_sights("piece by piece", &pieces, &all);
    position.bytes[20] ^= 1;
    assert_int_equal(wb_store_scan_open(store, &options, &scan), WB_E_INVALID);
    wb_store_close(store);
    sights_release(&all);
    sights_release(&pieces);
}

/* A position in a scan of a log is not one in a sorted scan. */
static void test_foreign_position(void **state)
{
    char other[DIR_MAX];
    struct wb_store_position position;
    struct wb_store_scan *scan;
    struct wb_page page;

    (void)state;
    test_dir(other);
    create_as(other, WB_ORGANISATION_LOG);
    struct wb_store *store = open_store(other, WB_STORE_WRITE);
    put_pages(store, 0, 3, 0);
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    must(wb_store_scan_next(scan, &page) == 1);
    wb_store_scan_tell(scan, &position);
    wb_store_scan_close(scan);
    wb_store_close(store);
    store = open_store(dir, WB_STORE_READ);
    assert_int_equal(wb_store_scan_open(store, &(struct wb_store_scan_options){.after = &position}, &scan),
                     WB_E_INVALID);
    wb_store_close(store);
    remove_tree(other);
}

/* Parts are disjoint and complete. */
static void test_parts(void **state)
{
    struct sights all = {0};

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 0);
    for (uint32_t parts = 1; parts <= 5; parts++) {
        struct sights sights = {0};
        sights_release(&all);
        scan_sorted(store, &(struct wb_store_scan_options){0}, &all);
        for (uint32_t part = 1; part <= parts; part++)
            scan_sorted(store, &(struct wb_store_scan_options){.part = part, .parts = parts}, &sights);
        compare_sights("parts", &sights, &all);
        sights_release(&sights);
    }
    wb_store_close(store);
    sights_release(&all);
}

/* Facts are the same as pages without bodies. */
static void test_facts(void **state)
{
    struct wb_store_scan *whole, *facts;
    struct wb_page page, fact;

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 0);
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &whole));
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){.facts = true}, &facts));
    for (unsigned i = 0; i < PAGES; i++) {
        must(wb_store_scan_next(whole, &page) == 1);
        must(wb_store_scan_next(facts, &fact) == 1);
        assert_true(fact.body.len == 0 && fact.body_bytes == page.body.len);
        page.body = WB_SLICE_EMPTY;
        assert_true(page_hash(&page, 0) == page_hash(&fact, 0));
    }
    assert_int_equal(wb_store_scan_next(facts, &fact), 0);
    wb_store_scan_close(whole);
    wb_store_scan_close(facts);
    wb_store_close(store);
}

/* A page that is taken down while a scan has it in memory is not delivered long after that. */
static void test_takedown(void **state)
{
    struct wb_store_scan *scan;
    struct wb_page page;

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 0);
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    must(wb_store_scan_next(scan, &page) == 1);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_spec(i, 0);
        must_ok(remove_spec(store, &spec, true));
    }
    commit_store(store);
    unsigned count = 1;
    while (wb_store_scan_next(scan, &page) == 1)
        count++;
    assert_true(count <= 64);
    wb_store_scan_close(scan);
    wb_store_close(store);
}

/* Damage in a block is reported once, and everything else is returned. */
static void test_damage(void **state)
{
    struct sights sights = {0};
    char path[DIR_MAX];

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 0);
    put_pages(store, PAGES, 2 * PAGES, 0);
    wb_store_close(store);
    path_in(dir, "pages/00000001.seg", path);
    flip_byte(path, 64 + 30, 0x10); /* the header of the first block */
    store = open_store(dir, WB_STORE_READ);
    assert_int_equal(scan_sorted(store, &(struct wb_store_scan_options){0}, &sights), 1);
    assert_true(sights.count < 2 * PAGES && sights.count > PAGES);
    wb_store_close(store);
    flip_byte(path, 64 + 30, 0x10);
    sights_release(&sights);
}

/* A scan in chunks of so many bytes. */
static unsigned scan_in_chunks(struct wb_store *store, size_t bytes, const struct wb_store_scan_options *options,
                               struct sights *sights)
{
    struct wb_sorted_source source = wb_sorted_log;
    struct wb_store_scan *scan;

    source.chunk_bytes = bytes;
    must_ok(wb_sorted_scan_open(wb_repo_of(store), &source, options, &scan));
    unsigned damaged = read_sorted(scan, options->facts ? WITHOUT_EPOCH : 0, sights);
    wb_store_scan_close(scan);
    return damaged;
}

/* All pages in a few segments of narrow ranges, and one that all chunks need, sound or damaged. */
static void check_chunks(const struct wb_store_scan_options *options, unsigned damaged, size_t least)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct sights all = {0};

    assert_int_equal(scan_sorted(store, options, &all), damaged);
    assert_true(all.count >= least);
    for (size_t bytes = 4000; bytes < 3 << 20; bytes *= 9) {
        struct sights found = {0};
        assert_int_equal(scan_in_chunks(store, bytes, options, &found), damaged);
        assert_int_equal(found.count, all.count);
        for (size_t i = 0; i < found.count; i++)
            assert_true(wb_pageid_equal(found.list[i].id, all.list[i].id) && found.list[i].hash == all.list[i].hash);
        sights_release(&found);
    }
    sights_release(&all);
    wb_store_close(store);
}

/* It makes no difference how large chunks are, how many threads read them, or how much of a segment a chunk needs. */
static void test_chunks(void **state)
{
    const uint32_t groups = 5;
    char path[DIR_MAX];

    (void)state;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t i = 0; i < groups; i++)
        put_pages(store, i * PAGES, (i + 1) * PAGES, 0);
    wb_store_close(store);
    assert_true(count_segments(1, 0, true) > 0); /* at least one has a wider range than others */
    assert_true(count_segments(4, 0, false) > 0);
    check_chunks(&(struct wb_store_scan_options){0}, 0, groups * PAGES);
    check_chunks(&(struct wb_store_scan_options){.facts = true}, 0, groups * PAGES);
    check_chunks(&(struct wb_store_scan_options){.part = 2, .parts = 3}, 0, PAGES);
    path_in(dir, "pages/00000001.seg", path);
    flip_byte(path, 64 + 30, 0x10);
    check_chunks(&(struct wb_store_scan_options){0}, 1, PAGES);
    flip_byte(path, 64 + 30, 0x10);
    uint64_t middle = file_bytes(path) / 2; /* of a block: a frame, or its directory */
    flip_byte(path, middle, 0x10);
    check_chunks(&(struct wb_store_scan_options){0}, 1, PAGES);
    flip_byte(path, middle, 0x10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_as_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_split, setup, teardown),
        cmocka_unit_test_setup_teardown(test_positions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_position, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_facts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_takedown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chunks, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
