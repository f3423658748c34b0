/*
 * test_log_compact.c - what compaction promises besides keeping pages: it frees space, keeps
 * the order of pages, and really removes the bytes of a page that was taken down, wherever a
 * version of it was stored.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/path.h"

static char dir[DIR_MAX];

/* Bodies of random bytes, which zstd stores as they are, so that we can search for them. */
static struct spec noise(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = 1, .number = number, .time_ms = time_ms, .size = 3000, .variant = 5};
}

static struct wb_move_compact_counts compact(struct wb_store *store)
{
    struct wb_move_compact_counts result;

    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &result));
    return result;
}

static struct wb_store *new_store(void)
{
    test_dir(dir);
    create_store(dir);
    return open_store(dir, WB_STORE_WRITE);
}

static void put_pages(struct wb_store *store, uint32_t first, uint32_t count, int64_t time_ms)
{
    for (uint32_t i = first; i < first + count; i++) {
        struct spec spec = noise(i, time_ms);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

/* Page 3 is in the lead, page 35 in a frame of its own. */
static void take_down_and_look(struct wb_store *store, uint32_t number, const int64_t *times, size_t versions)
{
    struct spec latest = noise(number, times[versions - 1]);

    for (size_t i = 0; i < versions; i++) {
        struct spec spec = noise(number, times[i]);
        assert_int_not_equal(files_with(dir, &spec), 0);
    }
    must_ok(remove_spec(store, &latest, true));
    compact(store);
    wb_store_close(store);
    wb_store_close(open_store(dir, WB_STORE_WRITE));
    for (size_t i = 0; i < versions; i++) {
        struct spec spec = noise(number, times[i]);
        if (files_with(dir, &spec) != 0)
            fail_msg("the version of %lld of page %u is still on disk", (long long)times[i], number);
    }
    verify_clean(dir);
}

static void test_takedown(void **state)
{
    (void)state;
    for (uint32_t number = 3; number <= 35; number += 32) {
        struct wb_store *store = new_store();
        put_pages(store, 0, 40, 1000);
        take_down_and_look(store, number, (int64_t[]){1000}, 1);
    }
}

/* The version in the snapshot is in another block than the latest one. */
static void test_takedown_of_class_a(void **state)
{
    (void)state;
    for (uint32_t number = 3; number <= 35; number += 32) {
        struct wb_store *store = new_store();
        put_pages(store, 0, 40, 1000);
        seal_store(store);
        put_pages(store, number, 2, 2000);
        take_down_and_look(store, number, (int64_t[]){1000, 2000}, 2);
    }
}

/* A version that was replaced earlier, in a segment that the removal does not touch. */
static void test_takedown_of_replaced(void **state)
{
    (void)state;
    for (uint32_t number = 3; number <= 35; number += 32) {
        use_small_sizes(100000);
        wb_pagefile_sizes.block_bytes = WB_BLOCK_RAW_TARGET;
        wb_pagefile_sizes.group_bytes = 1 << 20;
        struct wb_store *store = new_store();
        put_pages(store, 0, 40, 1000);
        put_pages(store, number, 2, 2000);
        take_down_and_look(store, number, (int64_t[]){1000, 2000}, 2);
        use_usual_sizes();
    }
}

/* A version whose bytes an earlier compaction kept, as part of a lead. */
static void test_takedown_of_compacted(void **state)
{
    struct wb_store *store = new_store();

    (void)state;
    put_pages(store, 0, 40, 1000);
    put_pages(store, 3, 1, 2000);
    compact(store);
    take_down_and_look(store, 3, (int64_t[]){2000}, 1);
    struct spec first = noise(3, 1000);
    if (files_with(dir, &first) != 0)
        fail_msg("the first version is still on disk");
}

/* ---- space and order ------------------------------------------------------------------------------------------ */

static void test_space(void **state)
{
    struct wb_store *store = new_store();
    struct wb_store_stat before, after;

    (void)state;
    put_pages(store, 0, 200, 1000);
    put_pages(store, 50, 100, 2000);
    must_ok(wb_store_stat(store, &before));
    assert_true(before.bytes_dead > 50 * 3000);
    struct wb_move_compact_counts result = compact(store);
    assert_true(result.files >= 1 && result.bytes_before - result.bytes_after > 50 * 3000);
    wb_store_close(store);
    store = open_store(dir, WB_STORE_WRITE);
    must_ok(wb_store_stat(store, &after));
    assert_int_equal(after.pages, 200);
    assert_true(after.bytes_stored + 50 * 3000 < before.bytes_stored);
    result = compact(store); /* nothing left to do */
    assert_int_equal(result.files, 0);
    wb_store_close(store);
}

/* A scan that waits for its reader keeps no file that was replaced, and still returns everything. */
static void test_replaced_file(void **state)
{
    struct wb_store *store = new_store();
    struct wb_store_scan *scan = NULL;
    struct wb_store_scan_holds holds;
    struct sights before = {0}, after = {0};
    char path[DIR_MAX];

    (void)state;
    put_pages(store, 0, 100, 1000);
    put_pages(store, 0, 50, 2000);
    scan_all(store, &(struct wb_store_scan_options){0}, 0, &before);
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    assert_true(scan_some(scan, 1, 0, &after));
    put_pages(store, 50, 60, 3000);
    compact(store);
    path_in(dir, WB_SEGMENT_DIR "/00000001.seg", path);
    assert_int_equal(wb_path_kind(path), WB_PATH_NONE);
    must_ok(wb_store_scan_holds(scan, &holds));
    assert_true(holds.epoch > 0);
    drain_scan(scan, 0, &after);
    compare_sights("a scan whose file was replaced", &after, &before);
    sights_release(&before);
    sights_release(&after);
    wb_store_close(store);
}

/* A scan returns the remaining pages in the same order as before. */
static void test_order(void **state)
{
    struct sights before = {0}, after = {0};
    size_t at = 0;
    struct wb_store *store = new_store();

    (void)state;
    put_pages(store, 0, 100, 1000);
    for (uint32_t i = 0; i < 100; i += 3) {
        struct spec spec = noise(i, 1000);
        must_ok(remove_spec(store, &spec, i % 2));
    }
    commit_store(store);
    scan_all(store, &(struct wb_store_scan_options){0}, 0, &before);
    compact(store);
    scan_all(store, &(struct wb_store_scan_options){0}, 0, &after);
    assert_int_equal(before.count, 66);
    assert_int_equal(after.count, 66);
    for (at = 0; at < after.count; at++)
        assert_true(before.list[at].hash == after.list[at].hash);
    sights_release(&before);
    sights_release(&after);
    wb_store_close(store);
}

/* When the last page of a segment is removed, the file is deleted. */
static void test_whole_segments(void **state)
{
    char pages[DIR_MAX];
    struct wb_store *store = new_store();
    struct wb_store_stat stat;

    (void)state;
    put_pages(store, 0, 30, 1000);
    for (uint32_t i = 0; i < 30; i++) {
        struct spec spec = noise(i, 1000);
        must_ok(remove_spec(store, &spec, false));
    }
    struct wb_move_compact_counts result = compact(store);
    assert_int_equal(result.bytes_after, 0);
    wb_store_close(store);
    store = open_store(dir, WB_STORE_WRITE);
    must_ok(wb_store_stat(store, &stat));
    assert_int_equal(stat.files, 0);
    assert_int_equal(stat.bytes_dead, 0);
    path_in(dir, WB_SEGMENT_DIR "/00000001.seg", pages);
    assert_int_equal(wb_path_kind(pages), WB_PATH_NONE);
    put_pages(store, 0, 30, 2000); /* numbers are not reused */
    wb_store_close(store);
    path_in(dir, WB_SEGMENT_DIR "/00000002.seg", pages);
    assert_int_equal(wb_path_kind(pages), WB_PATH_FILE);
    verify_clean(dir);
}

/* More of them than are removed at once, between others that stay; and one to which somebody else is writing. */
static void test_many_whole_segments(void **state)
{
    enum { PAGES = 400, STAY = 40 }; /* every STAYth page stays */
    struct wb_store_stat before, after;
    struct wb_store *store;

    (void)state;
    use_small_sizes(3000);
    store = new_store();
    for (uint32_t i = 0; i < PAGES; i++)
        put_pages(store, i, 1, 1000); /* a commit for each, so that few share a segment */
    must_ok(wb_store_stat(store, &before));
    assert_true(before.files > 100);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = noise(i, 1000);
        if (i % STAY)
            must_ok(remove_spec(store, &spec, false));
    }
    commit_store(store);
    use_usual_sizes(); /* one whose segment is not full */
    struct wb_store *other = open_store(dir, WB_STORE_WRITE);
    put_pages(other, PAGES, 1, 1000);
    struct spec last = noise(PAGES, 1000);
    must_ok(remove_spec(store, &last, false)); /* now nothing is alive in the other one's segment */
    commit_store(store);
    struct wb_move_compact_counts result = compact(store);
    assert_int_equal(result.skipped, 1);
    must_ok(wb_store_stat(store, &after));
    assert_true(after.files <= PAGES / STAY + 1);
    assert_true(result.files >= before.files - after.files);
    put_pages(other, PAGES, 1, 2000); /* into the same segment */
    wb_store_close(other);
    for (uint32_t i = 0; i <= PAGES; i++) {
        struct spec spec = noise(i, i == PAGES ? 2000 : 1000);
        int64_t time_ms;
        if (i % STAY == 0)
            must(holds_spec(store, &spec));
        else
            assert_int_equal(wb_store_time(store, spec_id(&spec), &time_ms), WB_E_NOTFOUND);
    }
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- versions that a snapshot holds ------------------------------------------------------------------------- */

enum { APART = 200, RETURNING = 4 };

/* Version 1, 2 or 3 of a page; one page has the same content in versions 1 and 3. */
static struct spec apart(uint32_t number, uint32_t version)
{
    struct spec spec = noise(number, version * 1000);

    if (number == RETURNING)
        spec.content = version == 2 ? 2 : 1;
    return spec;
}

/* Notes a page of a scan: that it has not been returned before, and is the version that it should be. */
static void note(const struct wb_page *page, const uint32_t *versions, bool *seen)
{
    for (uint32_t i = 0; i < APART; i++) {
        struct spec spec = apart(i, versions[i]);
        struct made made;
        if (!wb_pageid_equal(spec_id(&spec), page->id))
            continue;
        assert_false(seen[i]);
        seen[i] = true;
        make_page(&spec, &made);
        assert_int_equal(page->time_ms, spec.time_ms);
        assert_true(wb_slice_equal(page->body, made.page.body));
        made_release(&made);
        return;
    }
    fail_msg("a page that nobody has put");
}

/* Reads up to `max` pages of a scan that goes on where an earlier one ended. Returns whether there are more. */
static bool read_some(struct wb_store *store, uint32_t snapshot, struct wb_store_position *position_inout, bool *begun,
                      size_t max, const uint32_t *versions, bool *seen)
{
    struct wb_store_scan_options options = {.snapshot = snapshot, .after = *begun ? position_inout : NULL};
    struct wb_store_scan *scan;
    struct wb_page page;
    int more = 1;

    must_ok(wb_store_scan_open(store, &options, &scan));
    for (size_t i = 0; i < max && (more = wb_store_scan_next(scan, &page)) > 0; i++)
        note(&page, versions, seen);
    must_ok(more);
    wb_store_scan_tell(scan, position_inout);
    *begun = true;
    wb_store_scan_close(scan);
    return more;
}

/* The latest state is what it should be. */
static void check_latest(struct wb_store *store, const uint32_t *versions)
{
    struct wb_store_position position;
    bool begun = false, seen[APART] = {false};

    assert_false(read_some(store, 0, &position, &begun, SIZE_MAX, versions, seen));
    for (size_t i = 0; i < APART; i++)
        assert_true(seen[i]);
}

static void put_version(struct wb_store *store, uint32_t number, uint32_t version, uint32_t *versions)
{
    struct spec spec = apart(number, version);

    must_ok(put_spec(store, &spec));
    versions[number] = version;
}

/*
 * Two thirds of the pages are replaced, but a snapshot holds what they were. Compaction puts these versions into frames
 * of their own. While that happens, the snapshot is scanned piece by piece, and each page comes exactly once.
 */
static void test_held_apart(void **state)
{
    struct wb_store *store = new_store();
    struct wb_store_position position;
    uint32_t latest[APART], held[APART], pieces = 0;
    bool begun = false, more = true, seen[APART] = {false};

    (void)state;
    for (uint32_t i = 0; i < APART; i++) {
        put_version(store, i, 1, latest);
        held[i] = 1;
    }
    commit_store(store);
    uint32_t snapshot = seal_store(store);
    for (; more; pieces++) {
        more = read_some(store, snapshot, &position, &begun, 17, held, seen);
        for (uint32_t i = 0; i < APART && pieces < 3; i++)
            if (i % 3 == pieces && latest[i] == 1 && pieces > 0)
                put_version(store, i, 2, latest);
        commit_store(store);
        check_latest(store, latest);
        assert_int_equal(compact(store).files, pieces == 1 || pieces == 2);
        check_latest(store, latest);
    }
    assert_int_equal(pieces, APART / 17 + 1);
    for (size_t i = 0; i < APART; i++)
        assert_true(seen[i]);
    /* An old content returns: its version is the latest again, though the block says that it is old. */
    put_version(store, RETURNING, 3, latest);
    commit_store(store);
    check_latest(store, latest);
    verify_clean(dir);
    compact(store);
    check_latest(store, latest);
    wb_store_close(store);
    verify_clean(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takedown),
        cmocka_unit_test(test_takedown_of_class_a),
        cmocka_unit_test(test_takedown_of_replaced),
        cmocka_unit_test(test_takedown_of_compacted),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_replaced_file),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_whole_segments),
        cmocka_unit_test(test_many_whole_segments),
        cmocka_unit_test(test_held_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
