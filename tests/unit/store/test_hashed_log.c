/*
 * test_hashed_log.c - ranges of ids at their real size: 10 MB of pages that cannot be compressed fill the first log,
 * more pages go to 16 ranges, compaction divides the full log, and a writer or a compaction may be killed at any sync.
 * test_sorted_scan.c has the same with small logs, and more of it.
 */
#include "store_support.h"
#include "move/move.h"

#include <signal.h>
#include <unistd.h>

enum {
    FULL = 10 << 20, /* bytes that fill a log */
    PAGE = 60000,    /* bytes of a page */
    FIRST = 200,     /* pages that are 12 MB ... */
    ALL = 520,       /* ... and 31 MB */
    MORE = 40,       /* pages of a writer that is killed */
    RANGES = 16,
};

static char dir[DIR_MAX];

/* ---- syncs at which a process is killed -------------------------------------------------------------------- */

static unsigned syncs_left; /* 0: nobody is killed */

static int count_sync(void)
{
    if (syncs_left > 0 && --syncs_left == 0)
        raise(SIGKILL);
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return count_sync();
}

int fsync(int fd)
{
    (void)fd;
    return count_sync();
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

static struct spec spec_of(uint32_t number)
{
    return (struct spec){.site = number % 5, .number = number, .time_ms = 1000, .size = PAGE, .content = 1};
}

static void put_pages(struct wb_store *store, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        struct spec spec = spec_of(i);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

/* The rows of segments by the width of their ranges: those of the whole node, and those of each of its 16 ranges. */
struct widths {
    uint64_t whole_bytes;
    unsigned whole, narrow[RANGES];
    uint64_t largest; /* segment of the whole node, in bytes */
};

static struct widths read_widths(void)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct widths widths = {0};
    struct wb_overview o;

    must_ok(wb_pagefile_overview(&wb_repo_of(store)->files, &o));
    for (size_t i = 0; i < o.rows.count; i++) {
        const struct wb_catalog_segment *row = &o.rows.items[i];
        must(row->range.bits == 0 || row->range.bits == 4);
        if (row->range.bits == 4) {
            widths.narrow[row->range.prefix >> 60]++;
            continue;
        }
        widths.whole++;
        widths.whole_bytes += row->bytes;
        widths.largest = row->bytes > widths.largest ? row->bytes : widths.largest;
    }
    wb_catalog_rows_release(&o.rows);
    wb_store_close(store);
    return widths;
}

/* The repository is sound. Pages below `count` are there, as they were put; each once, in the order of ids. */
static void check_pages(uint32_t count)
{
    struct sights sights = {0};

    verify_clean(dir);
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    scan_all(store, &(struct wb_store_scan_options){0}, 0, &sights);
    for (size_t i = 1; i < sights.count; i++)
        assert_true(wb_pageid_compare(sights.list[i - 1].id, sights.list[i].id) < 0);
    assert_true(sights.count >= count && sights.count <= count + MORE);
    for (uint32_t i = 0; i < count; i++) {
        struct spec spec = spec_of(i);
        assert_true(holds_spec(store, &spec));
    }
    wb_store_close(store);
    sights_release(&sights);
}

/* ---- in child processes ---------------------------------------------------------------------------------------- */

static int compact_in_child(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_compact_counts counts;

    syncs_left = *(unsigned *)context;
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    wb_store_close(store);
    return 0;
}

static int put_in_child(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    syncs_left = *(unsigned *)context;
    put_pages(store, ALL, ALL + MORE);
    wb_store_close(store);
    return 0;
}

/*
 * Runs a function that is killed at a sync, again and again, until it comes to its end. Of the first `alike` syncs,
 * those of its files, only every fourth one is chosen. Returns the number of kills.
 */
static unsigned kill_again_and_again(int (*function)(void *context), unsigned alike, uint32_t count)
{
    unsigned kills = 0;

    for (unsigned at = 1;; at += at + 4 < alike ? 4 : 1, kills++) {
        int status = run_child(function, &at);
        if (status == 0) {
            printf("# %u kills, the last one at sync %u\n", kills, at - 1);
            return kills;
        }
        assert_int_equal(status, -SIGKILL);
        if (kills % 4 == 1)
            check_pages(count);
        else
            verify_clean(dir);
    }
}

static void test_real_size(void **state)
{
    (void)state;
    test_dir(dir);
    must_ok(wb_store_create(dir, &(struct wb_store_options){.design.read.organisation = WB_ORGANISATION_HASHED_LOG}));
    assert_int_equal(wb_pagefile_sizes.hashed_bytes, FULL);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, FIRST);
    struct widths first = read_widths();
    assert_true(first.largest >= FULL && first.whole_bytes > (uint64_t)FIRST * PAGE);
    for (unsigned i = 0; i < RANGES; i++)
        assert_int_equal(first.narrow[i], 0);

    /* All others go to the narrower ranges. */
    put_pages(store, FIRST, ALL);
    wb_store_close(store);
    struct widths all = read_widths();
    assert_int_equal(all.whole_bytes, first.whole_bytes);
    for (unsigned i = 0; i < RANGES; i++)
        assert_int_equal(all.narrow[i], 1);
    check_pages(ALL);

    assert_true(kill_again_and_again(put_in_child, RANGES / 2, ALL) > 4);
    check_pages(ALL + MORE);

    /* The full log is divided, and what is left of the others is not worth it. */
    assert_true(kill_again_and_again(compact_in_child, 2 * RANGES, ALL + MORE) > 10);
    struct widths after = read_widths();
    assert_true(after.largest < FULL / 4 && after.whole_bytes < first.whole_bytes - FULL / 2);
    for (unsigned i = 0; i < RANGES; i++)
        assert_true(after.narrow[i] > all.narrow[i]);
    check_pages(ALL + MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_size)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
