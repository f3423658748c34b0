/*
 * test_growth.c - what a repository that is changed again and again takes: files, bytes that are copied, the catalog,
 * and the memory of a handle that lives as long as a server. All of that follows from the pages, and not from how many
 * commits there were.
 */
#include "store_support.h"
#include "base/kept.h"
#include "move/move.h"
#include "os/path.h"

#include <malloc.h>

enum { PAGES = 60, PUT_AT_ONCE = 12 };

static char dir[DIR_MAX];

struct rig {
    uint64_t chance;
    int64_t now_ms;
    uint32_t times[PAGES]; /* the second of each page's newest capture */
};

/* A page whose content depends on the time, or is always the same. Its bytes are random: they do not become fewer. */
static struct spec page_at(uint32_t number, int64_t time_ms, bool same)
{
    return (struct spec){.site = 1, .number = number, .time_ms = time_ms, .size = 2000, .variant = 5, .content = same};
}

static void set_up(struct rig *rig, struct wb_store_history history)
{
    *rig = (struct rig){.chance = test_seed(), .now_ms = 1000000};
    test_dir(dir);
    create_store_as(dir, history);
}

/* A crawler that comes, stores some pages, and goes. */
static void put_some(struct rig *rig, unsigned count, bool same)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    rig->now_ms += 1000;
    for (unsigned i = 0; i < count; i++) {
        uint32_t number = count < PAGES ? (uint32_t)chance_below(&rig->chance, PAGES) : i;
        struct spec spec = page_at(number, rig->now_ms, same);
        must_ok(put_spec(store, &spec));
        rig->times[number] = (uint32_t)(rig->now_ms / 1000);
    }
    commit_store(store);
    wb_store_close(store);
}

/* Compacts, as a run does. Adds what was copied. */
static void tidy(uint64_t *copied_inout)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_compact_counts counts;

    must_ok(wb_move_compact_worthwhile(store, NULL, NULL, NULL, NULL, &counts));
    *copied_inout += counts.bytes_after;
    wb_store_close(store);
}

/* The newest snapshot is held, as that of a generation is; the one before is dropped. */
static uint32_t seal_instead(uint32_t before)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    uint32_t number = seal_store(store);

    if (before)
        must_ok(wb_store_drop(store, before));
    wb_store_close(store);
    return number;
}

static uint64_t catalog_bytes(void)
{
    char path[DIR_MAX];

    path_in(dir, "catalog.wbt", path);
    return file_bytes(path);
}

static struct wb_store_stat stat_now(void)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct wb_store_stat stat;

    must_ok(wb_store_stat(store, &stat));
    wb_store_close(store);
    return stat;
}

/* Many small commits, each followed by a compaction, leave few files, whether somebody holds what there was or not. */
static void grow(struct wb_store_history history, bool held)
{
    enum { COMMITS = 60 };
    struct rig rig;
    uint32_t snapshot = 0;
    uint64_t copied = 0;

    set_up(&rig, history);
    put_some(&rig, PAGES, false);
    for (unsigned i = 0; i < COMMITS; i++) {
        if (held)
            snapshot = seal_instead(snapshot);
        put_some(&rig, PUT_AT_ONCE, false);
        tidy(&copied);
    }
    struct wb_store_stat stat = stat_now();
    if (stat.files > 4)
        fail_msg("%d pages are in %llu files after %d commits", PAGES, (unsigned long long)stat.files, COMMITS);
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_at(i, (int64_t)rig.times[i] * 1000, false);
        assert_true(holds_spec(store, &spec));
    }
    wb_store_close(store);
    verify_clean(dir);
}

static void test_files(void **state)
{
    (void)state;
    grow((struct wb_store_history){.keep = WB_STORE_KEEP_NEWEST}, false);
    grow((struct wb_store_history){.keep = WB_STORE_KEEP_NEWEST}, true);
    grow((struct wb_store_history){.keep = WB_STORE_KEEP_ALL}, true);
}

/* Each byte is copied a few times, and not once for each compaction that comes by. */
static void copy_some(bool held)
{
    enum { COMMITS = 100 };
    struct rig rig;
    uint32_t snapshot = 0;
    uint64_t copied = 0, put = (uint64_t)COMMITS * 2 * 2000;

    set_up(&rig, (struct wb_store_history){0});
    put_some(&rig, PAGES, false);
    for (unsigned i = 0; i < COMMITS; i++) {
        put_some(&rig, 2, false);
        if (held)
            snapshot = seal_instead(snapshot);
        tidy(&copied);
    }
    if (copied > 6 * put)
        fail_msg("%llu bytes were copied for %llu that were stored", (unsigned long long)copied,
                 (unsigned long long)put);
    struct wb_store_stat stat = stat_now();
    assert_true(stat.bytes_dead <= stat.bytes_stored / 3);
    verify_clean(dir);
}

static void test_copied(void **state)
{
    (void)state;
    copy_some(false);
    copy_some(true);
}

/* The same pages are seen again and again. Their past is their versions. */
static void test_catalog(void **state)
{
    enum { COMMITS = 120 };
    struct rig rig;
    uint64_t copied = 0, early = 0;

    (void)state;
    set_up(&rig, (struct wb_store_history){0});
    for (unsigned i = 0; i < COMMITS; i++) {
        put_some(&rig, PAGES, true);
        if (i == COMMITS / 3)
            early = catalog_bytes();
    }
    tidy(&copied);
    if (catalog_bytes() > early)
        fail_msg("the catalog has grown from %llu to %llu bytes", (unsigned long long)early,
                 (unsigned long long)catalog_bytes());
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_at(i, (int64_t)rig.times[i] * 1000, true);
        assert_true(holds_spec(store, &spec));
    }
    wb_store_close(store);
    verify_clean(dir);
}

/* With history all, every capture stays. */
static void test_all_captures(void **state)
{
    enum { COMMITS = 40 };
    struct rig rig;

    (void)state;
    set_up(&rig, (struct wb_store_history){.keep = WB_STORE_KEEP_ALL});
    for (unsigned i = 0; i < COMMITS; i++)
        put_some(&rig, PAGES, true);
    assert_int_equal(stat_now().captures, COMMITS * PAGES);
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

/* What malloc() has given out, in all heaps and directly. */
static uint64_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* A handle as a worker of the server has one: it lives through all commits, and reads some pages after each. */
static void test_memory(void **state)
{
    enum { COMMITS = 500, SETTLED = 100 };
    struct rig rig;
    uint64_t copied = 0, kept = 0, used = 0, none = wb_kept_all();

    (void)state;
    set_up(&rig, (struct wb_store_history){0});
    put_some(&rig, PAGES, false);
    struct wb_store *reader = open_store(dir, WB_STORE_READ);
    for (unsigned i = 0; i < COMMITS; i++) {
        put_some(&rig, PUT_AT_ONCE, false);
        tidy(&copied);
        for (uint32_t page = i % 3; page < PAGES; page += 3) {
            struct spec spec = page_at(page, (int64_t)rig.times[page] * 1000, false);
            assert_true(holds_spec(reader, &spec));
        }
        if (i == SETTLED) {
            kept = wb_kept_all();
            used = bytes_in_use();
        }
    }
    assert_true(kept > none);
    if (wb_kept_all() > kept + kept / 2)
        fail_msg("the caches keep %llu bytes, and kept %llu before %d commits", (unsigned long long)wb_kept_all(),
                 (unsigned long long)kept, COMMITS - SETTLED);
    if (bytes_in_use() > used + (256 << 10))
        fail_msg("%llu bytes are in use, and %llu were before %d commits", (unsigned long long)bytes_in_use(),
                 (unsigned long long)used, COMMITS - SETTLED);
    wb_store_close(reader);
    assert_int_equal(wb_kept_all(), none);
}

/* All handles together keep what they may, and read everything nevertheless. */
static void test_bound(void **state)
{
    enum { READERS = 4, BOUND = 300 << 10 };
    struct wb_store *readers[READERS];
    struct rig rig;

    (void)state;
    set_up(&rig, (struct wb_store_history){0});
    put_some(&rig, PAGES, false);
    wb_kept_set_bound(wb_kept_all() + BOUND);
    for (unsigned i = 0; i < READERS; i++)
        readers[i] = open_store(dir, WB_STORE_READ);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < READERS; i++)
            for (uint32_t page = 0; page < PAGES; page++) {
                struct spec spec = page_at(page, (int64_t)rig.times[page] * 1000, false);
                assert_true(holds_spec(readers[i], &spec));
                assert_true(wb_kept_all() <= wb_kept_bound());
            }
    for (unsigned i = 0; i < READERS; i++)
        wb_store_close(readers[i]);
    wb_kept_set_bound(UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),  cmocka_unit_test(test_copied), cmocka_unit_test(test_catalog),
        cmocka_unit_test(test_all_captures), cmocka_unit_test(test_memory), cmocka_unit_test(test_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
