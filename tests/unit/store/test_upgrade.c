/*
 * test_upgrade.c - a repository of format 2, made by a program of that time, is read without changing a byte of it,
 * and a writer makes it one of format 3, whatever happens to that writer in between.
 *
 * The directory format2 contains 38 pages (page_2), put by the old program in this order:
 *   pages 0 to 39, then 10 to 21 again; page 5 taken down; compacted; 0 to 3 touched; a snapshot sealed; 20 to 27
 *   again, and 30 removed; revisits of 50, 51 (with a digest) and 52 (without); bars on page 60 and on site 8, of which
 *   page 61 is excepted; 28 and 29 again
 * So eleven versions are in table old, two files are compacted, and one is not.
 */
#include "../faultkinds.h"
#include "store_support.h"
#include "../sourceroot.h"
#include "base/hash.h"
#include "move/move.h"
#include "os/path.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGES = 40 };
static const int64_t start_ms = 1700000000000;

static char fixture[DIR_MAX], work[DIR_MAX];

/* ---- what is in it --------------------------------------------------------------------------------------- */

static struct spec spec_at(uint32_t number, int64_t seconds)
{
    return (struct spec){.site = number % 5,
                         .number = number,
                         .time_ms = start_ms + seconds * 1000,
                         .size = 300 + number * 137 % 900,
                         .variant = number};
}

/* The latest version of a page. Returns false if it was removed. */
static bool page_2(uint32_t number, struct spec *spec_out)
{
    int64_t seconds = number < 10   ? number
                      : number < 20 ? 100 + number
                      : number < 28 ? 400 + number
                      : number < 30 ? 700 + number
                                    : number;

    *spec_out = spec_at(number, seconds);
    return number != 5 && number != 30;
}

/* The time of the capture; four pages were touched. */
static int64_t time_2(const struct spec *spec)
{
    return spec->number < 4 ? start_ms + 300000 + spec->number : spec->time_ms;
}

static void check_page(struct wb_store *store, const struct spec *spec)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_store_timeline timeline;
    struct wb_page page;
    struct made made;

    make_page(spec, &made);
    wb_page_digest(&made.page);
    must_ok(wb_store_get(store, spec_id(spec), &page, &memory));
    must(page.time_ms == time_2(spec));
    must(page_hash(&page, WITHOUT_EPOCH | WITHOUT_TIME | WITHOUT_LIFETIME) ==
         page_hash(&made.page, WITHOUT_EPOCH | WITHOUT_TIME | WITHOUT_LIFETIME));
    must(page.lifetime == made.page.lifetime);
    must_ok(wb_store_timeline(store, spec_id(spec), &timeline));
    must(timeline.count == 1 && timeline.time_count == 1 && timeline.times[0] == time_2(spec) && !timeline.gone_ms);
    must(timeline.versions[0].arrived > 0 && timeline.versions[0].ceased == 0);
    wb_store_timeline_release(&timeline);
    made_release(&made);
    wb_buf_release(&memory);
}

static void check_revisit(struct wb_store *store, uint32_t number, bool has_sha1)
{
    struct spec spec = spec_at(number, 1000);
    struct wb_store_revisit revisit;
    struct made made;

    make_page(&spec, &made);
    wb_page_digest(&made.page);
    must_ok(wb_store_get_revisit(store, spec_id(&spec), &revisit));
    must(revisit.time_ms == start_ms + (450 + number) * 1000ll && revisit.has_sha1 == has_sha1);
    must(!has_sha1 || memcmp(revisit.sha1, made.page.sha1, sizeof revisit.sha1) == 0);
    must(wb_pageid_equal(revisit.id, revisit.original) && !revisit.not_modified && revisit.original_ms == 0);
    made_release(&made);
}

/* All pages, times, bars and revisits, through gets and through a scan. */
static void check_all(struct wb_store *store)
{
    struct spec barred = spec_at(60, 0), site = {.site = 8, .number = 1}, excepted = {.site = 8, .number = 61};
    struct sights sights = {0};
    struct wb_store_stat stat;
    unsigned pages = 0;

    for (uint32_t number = 0; number < PAGES; number++) {
        struct spec spec;
        struct wb_buf memory = WB_BUF_INIT;
        if (page_2(number, &spec)) {
            check_page(store, &spec);
            pages++;
        } else {
            must(wb_store_get(store, spec_id(&spec), &(struct wb_page){0}, &memory) == WB_E_NOTFOUND);
        }
        wb_buf_release(&memory);
    }
    scan_all(store, &(struct wb_store_scan_options){0}, 0, &sights);
    must(sights.count == pages);
    sights_release(&sights);
    check_revisit(store, 50, true);
    check_revisit(store, 51, true);
    check_revisit(store, 52, false);
    must(spec_barred(store, &barred) && spec_barred(store, &site) && !spec_barred(store, &excepted));
    must_ok(wb_store_stat(store, &stat));
    must(stat.pages == pages && stat.versions == pages && stat.captures == pages && stat.sites == 5);
    must(stat.revisits == 3 && stat.bars == 3 && stat.snapshots == 0 && stat.snapshot == 1);
    must(stat.history.keep == WB_STORE_KEEP_NEWEST);
}

/* ---- files ----------------------------------------------------------------------------------------------- */

/* A hash of the names and bytes of all files in a directory. */
static uint64_t hash_dir(const char *dir)
{
    DIR *list = opendir(dir);
    uint64_t sum = 0;
    char path[DIR_MAX];

    must(list != NULL);
    for (struct dirent *entry; (entry = readdir(list));) {
        struct wb_buf bytes = WB_BUF_INIT;
        if (entry->d_name[0] == '.')
            continue;
        path_in(dir, entry->d_name, path);
        if (wb_path_kind(path) == WB_PATH_DIR) {
            sum += hash_dir(path);
            continue;
        }
        must_ok(wb_path_read(path, 1 << 24, &bytes));
        sum += wb_hash64_seeded(bytes.ptr, bytes.len, wb_hash64(entry->d_name, strlen(entry->d_name)));
        wb_buf_release(&bytes);
    }
    closedir(list);
    return sum;
}

/* The number of blocks of a format in all segments. */
static unsigned blocks_of(const char *dir, char format)
{
    char pages[DIR_MAX], path[DIR_MAX], magic[] = {'W', 'B', 'B', 'K', format, 0};
    unsigned count = 0;

    path_in(dir, WB_SEGMENT_DIR, pages);
    DIR *list = opendir(pages);
    must(list != NULL);
    for (struct dirent *entry; (entry = readdir(list));) {
        struct wb_buf bytes = WB_BUF_INIT;
        if (entry->d_name[0] == '.')
            continue;
        path_in(pages, entry->d_name, path);
        must_ok(wb_path_read(path, 1 << 24, &bytes));
        for (size_t at = 0; at + sizeof magic <= bytes.len; at++)
            count += memcmp(bytes.ptr + at, magic, sizeof magic) == 0;
        wb_buf_release(&bytes);
    }
    closedir(list);
    return count;
}

static uint32_t format_of(const char *dir)
{
    struct wb_superblock superblock;

    must_ok(wb_superblock_read(dir, &superblock));
    return superblock.format;
}

static void fresh_copy(void)
{
    remove_tree(work);
    copy_repository(fixture, work);
}

/* ---- reading and writing -------------------------------------------------------------------------------------- */

static void test_read(void **state)
{
    (void)state;
    fresh_copy();
    uint64_t before = hash_dir(work);
    struct wb_store *store = open_store(work, WB_STORE_READ);
    check_all(store);
    wb_store_close(store);
    struct wb_store_verify_counts found = verify_clean(work);
    assert_true(found.pages == PAGES - 2 && found.notes == 0);
    assert_true(hash_dir(work) == before);
    assert_int_equal(format_of(work), 2);
    assert_true(blocks_of(work, 1) > 0 && blocks_of(work, 2) == 0);
}

static void test_upgrade(void **state)
{
    (void)state;
    fresh_copy();
    struct wb_store *reader = open_store(work, WB_STORE_READ);
    struct wb_store *store = open_store(work, WB_STORE_WRITE);
    assert_int_equal(format_of(work), WB_SUPERBLOCK_FORMAT);
    check_all(store);
    check_all(reader); /* it was there before */
    wb_store_close(store);
    assert_int_equal(verify_clean(work).notes, 0);
    uint64_t upgraded = hash_dir(work);
    store = open_store(work, WB_STORE_WRITE); /* nothing is left to do */
    check_all(store);
    wb_store_close(store);
    wb_store_close(reader);
    assert_true(hash_dir(work) == upgraded);
}

/* What only the old snapshot had is dead, and compaction rewrites the blocks. */
static void test_compaction(void **state)
{
    struct wb_move_compact_counts counts;
    struct wb_store_stat before, after;

    (void)state;
    fresh_copy();
    struct wb_store *store = open_store(work, WB_STORE_WRITE);
    must_ok(wb_store_stat(store, &before));
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    assert_true(counts.files == 3 && counts.pages == PAGES - 2 && counts.damaged == 0);
    must_ok(wb_store_stat(store, &after));
    assert_true(after.bytes_stored < before.bytes_stored && after.bytes_dead == 0);
    check_all(store);
    wb_store_close(store);
    assert_int_equal(verify_clean(work).notes, 0);
    assert_true(blocks_of(work, 1) == 0 && blocks_of(work, 2) > 0);
    store = open_store(work, WB_STORE_READ);
    check_all(store);
    wb_store_close(store);
}

/* Puts the page that is there already, seen again. */
static void put_again(struct wb_store *store, const struct spec *spec, int64_t time_ms, enum wb_store_outcome expected)
{
    enum wb_store_outcome outcome;
    struct made made;

    make_page(spec, &made);
    made.page.time_ms = time_ms;
    must_ok(wb_store_put(store, &made.page, &outcome));
    assert_int_equal(outcome, expected);
    made_release(&made);
}

static void check_times(struct wb_store *store, const struct spec *spec, size_t versions, size_t captures,
                        int64_t last_ms)
{
    struct wb_store_timeline timeline;

    must_ok(wb_store_timeline(store, spec_id(spec), &timeline));
    assert_int_equal(timeline.count, versions);
    assert_int_equal(timeline.time_count, captures);
    assert_int_equal(timeline.times[captures - 1], last_ms);
    wb_store_timeline_release(&timeline);
}

/* Bytes that are there already are recognised, although rows of format 2 have no hash of them. */
static void test_captures(void **state)
{
    struct wb_store_commit_counts counts = {0};
    struct spec spec;

    (void)state;
    fresh_copy();
    struct wb_store *store = open_store(work, WB_STORE_WRITE);
    char pages[DIR_MAX];
    path_in(work, WB_SEGMENT_DIR, pages);
    uint64_t files = hash_dir(pages);
    for (uint32_t number = 0; number < PAGES; number++)
        if (page_2(number, &spec))
            put_again(store, &spec, start_ms + 5000000 + number, WB_STORE_PUT_CAPTURE);
    must_ok(wb_store_commit(store, &counts));
    assert_true(counts.captures == PAGES - 2 && counts.added == 0 && counts.replaced == 0);
    assert_true(hash_dir(pages) == files);
    for (uint32_t number = 0; number < PAGES; number++)
        if (page_2(number, &spec))
            check_times(store, &spec, 1, 2, start_ms + 5000000 + number);
    verify_clean(work);
    wb_store_close(store);
}

/* A page that is known continues its past; revisits are resolved; snapshots get numbers that were never used. */
static void test_history(void **state)
{
    struct spec spec, changed = spec_at(7, 9000), first = spec_at(50, 1000), second = spec_at(51, 1000);
    struct wb_store_revisit revisit;
    struct wb_store_stat stat;

    (void)state;
    fresh_copy();
    struct wb_store *store = open_store(work, WB_STORE_WRITE);
    must_ok(wb_store_set_history(store, &(struct wb_store_history){.keep = WB_STORE_KEEP_ALL}));
    assert_int_equal(seal_store(store), 2);
    page_2(7, &spec);
    put_again(store, &changed, changed.time_ms, WB_STORE_PUT_VERSION);
    put_again(store, &first, first.time_ms, WB_STORE_PUT_NEW);
    put_again(store, &second, start_ms, WB_STORE_PUT_NEW);
    commit_store(store);
    check_times(store, &spec, 2, 2, changed.time_ms);
    check_times(store, &first, 1, 2, first.time_ms);
    check_times(store, &second, 1, 2, start_ms + 501000); /* the revisit is newer */
    assert_int_equal(wb_store_get_revisit(store, spec_id(&first), &revisit), WB_E_NOTFOUND);
    assert_int_equal(wb_store_get_revisit(store, spec_id(&second), &revisit), WB_E_NOTFOUND);
    must_ok(wb_store_stat(store, &stat));
    assert_true(stat.pages == PAGES && stat.versions == PAGES + 1 && stat.revisits == 1 && stat.snapshots == 1);
    verify_clean(work);
    struct wb_move_compact_counts counts;
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    check_times(store, &spec, 2, 2, changed.time_ms);
    struct sights sights = {0};
    scan_all(store, &(struct wb_store_scan_options){.snapshot = 2}, 0, &sights);
    assert_int_equal(sights.count, PAGES - 2);
    sights_release(&sights);
    wb_store_close(store);
    verify_clean(work);
}

/* ---- deaths ------------------------------------------------------------------------------------------------------ */

/* Moments before and after calls of the C library, and the one at which a child kills itself; shared with children. */
struct moments {
    unsigned passed, die_at;
};
static struct moments *moments;
static bool watched; /* this is a child whose calls count */

static void moment(void)
{
    if (watched && ++moments->passed == moments->die_at)
        kill(getpid(), SIGKILL);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    moment();
    /* Torn in the middle, too. */
    ssize_t half = watched && len > 1 ? (ssize_t)(len / 2) : 0, n;
    if (half) {
        n = syscall(SYS_pwrite64, fd, bytes, (size_t)half, offset);
        if (n != half)
            return n;
        moment();
    }
    n = syscall(SYS_pwrite64, fd, (const char *)bytes + half, len - (size_t)half, offset + half);
    moment();
    return n < 0 ? n : half + n;
}

int fdatasync(int fd)
{
    moment();
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    moment();
    return (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t bytes)
{
    moment();
    return (int)syscall(SYS_ftruncate, fd, bytes);
}

int rename(const char *from, const char *to)
{
    moment();
    int result = (int)syscall(SYS_rename, from, to);
    moment();
    return result;
}

static int upgrade_watched(void *context)
{
    (void)context;
    watched = true;
    wb_store_close(open_store(work, WB_STORE_WRITE));
    return 0;
}

static int upgrade_and_check(void *context)
{
    struct wb_store *store = open_store(work, WB_STORE_READ);

    (void)context;
    check_all(store);
    wb_store_close(store);
    verify_clean(work);
    store = open_store(work, WB_STORE_WRITE);
    check_all(store);
    wb_store_close(store);
    must(format_of(work) == WB_SUPERBLOCK_FORMAT);
    must(verify_clean(work).notes == 0);
    return 0;
}

static void test_killed(void **state)
{
    unsigned deaths = 0, old_format = 0;
    int status;

    (void)state;
    moments = mmap(NULL, sizeof *moments, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(moments != MAP_FAILED);
    do {
        fresh_copy();
        *moments = (struct moments){.die_at = deaths + 1};
        status = run_child(upgrade_watched, NULL);
        assert_true(status == 0 || status == -SIGKILL);
        deaths += status != 0;
        old_format += format_of(work) == 2;
        assert_int_equal(run_child(upgrade_and_check, NULL), 0);
    } while (status != 0);
    printf("# killed %u times, %u before it had format 3\n", deaths, old_format);
    assert_true(old_format > 2 && deaths > old_format + 4);
    munmap(moments, sizeof *moments);
}

/* Everything that can fail does so once. Then the next writer makes up for it. */
static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fault_kinds); i++) {
        bool struck = true;
        for (uint64_t nth = 1; struck; nth++) {
            struct wb_store *store;
            fresh_copy();
            wb_fault_arm(fault_kinds[i].kind, nth, fault_kinds[i].error);
            int err = wb_store_open(work, WB_STORE_WRITE, &store);
            struck = wb_fault_struck();
            wb_fault_disarm();
            must(err == 0 || (struck && wb_error_message()[0]));
            wb_store_close(store);
            upgrade_and_check(NULL);
            must(nth < 2000);
        }
    }
}

static int set_up(void **state)
{
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    path_in(dir, "repository", work);
    snprintf(fixture, sizeof fixture, "%s/tests/unit/store/format2", test_source_root);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),     cmocka_unit_test(test_upgrade), cmocka_unit_test(test_compaction),
        cmocka_unit_test(test_captures), cmocka_unit_test(test_history), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_failures),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
