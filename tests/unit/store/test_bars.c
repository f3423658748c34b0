/*
 * test_bars.c - what was taken down does not come back: not through a page that another process has not committed
 * yet, not through older versions, revisits or exceptions, and not after kill -9. Also tests what put reports, and
 * times in the future.
 */
#include "base/date.h"
#include "store_support.h"
#include "move/move.h"
#include "os/clock.h"
#include "os/file.h"

#include <signal.h>
#include <unistd.h>

static char dir[DIR_MAX];

static struct wb_store *new_store(void)
{
    test_dir(dir);
    create_store(dir);
    return open_store(dir, WB_STORE_WRITE);
}

static struct spec page(uint32_t site, uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = site, .number = number, .time_ms = time_ms, .size = 3000, .variant = 5};
}

static enum wb_store_outcome put(struct wb_store *store, uint32_t site, uint32_t number, int64_t time_ms)
{
    struct spec spec = page(site, number, time_ms);
    enum wb_store_outcome outcome;

    must_ok(put_spec_as(store, &spec, &outcome));
    return outcome;
}

static bool has(struct wb_store *store, uint32_t site, uint32_t number)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct spec spec = page(site, number, 0);
    struct wb_page found;
    int err = wb_store_get(store, spec_id(&spec), &found, &memory);

    must(err == 0 || err == WB_E_NOTFOUND);
    wb_buf_release(&memory);
    return err == 0;
}

static struct wb_store_commit_counts commit(struct wb_store *store)
{
    struct wb_store_commit_counts counts = {0};

    must_ok(wb_store_commit(store, &counts));
    return counts;
}

static void bar(struct wb_store *store, uint32_t site, uint32_t number, enum wb_store_bar_kind kind, bool allow)
{
    struct spec spec = page(site, number, 0);

    must_ok(bar_spec(store, &spec, kind, allow));
}

static bool barred(struct wb_store *store, uint32_t site, uint32_t number)
{
    struct spec spec = page(site, number, 0);

    return spec_barred(store, &spec);
}

/* ---- what becomes of a page ------------------------------------------------------------------------- */

static void test_outcomes(void **state)
{
    struct wb_store *store = new_store();

    (void)state;
    assert_int_equal(put(store, 1, 1, 1000), WB_STORE_PUT_NEW);
    assert_int_equal(put(store, 1, 1, 1000), WB_STORE_PUT_KNOWN);
    assert_int_equal(put(store, 1, 1, 999), WB_STORE_PUT_OLDER);
    assert_int_equal(put(store, 1, 1, 1001), WB_STORE_PUT_VERSION);
    struct wb_store_commit_counts counts = commit(store);
    assert_true(counts.added == 1 && counts.replaced == 1 && counts.older == 2 && counts.barred == 0);
    assert_int_equal(put(store, 1, 1, 1001), WB_STORE_PUT_KNOWN);
    assert_int_equal(put(store, 1, 1, 1002), WB_STORE_PUT_VERSION);
    bar(store, 1, 1, WB_STORE_BAR_PAGE, false); /* commits what was put before */
    assert_true(has(store, 1, 1));
    assert_int_equal(put(store, 1, 1, 2000), WB_STORE_PUT_BARRED);
    assert_int_equal(put(store, 1, 2, 2000), WB_STORE_PUT_NEW);
    counts = commit(store);
    assert_true(counts.added == 1 && counts.barred == 1);
    wb_store_close(store);
    verify_clean(dir);
}

/* A machine with a wrong clock has stored a page: any page with a plausible time replaces it. */
static void test_wrong_clock(void **state)
{
    struct wb_store *store = new_store();
    int64_t now = wb_clock_wall_ms(), ahead = now + 10 * 365 * WB_DAY_MS;
    struct spec spec = page(1, 1, ahead);

    (void)state;
    assert_int_equal(put(store, 1, 1, ahead), WB_STORE_PUT_NEW);
    commit(store);
    assert_int_equal(put(store, 1, 1, now), WB_STORE_PUT_VERSION);
    assert_int_equal(put(store, 1, 1, now - 1), WB_STORE_PUT_OLDER); /* another content than what has given way */
    assert_int_equal(put(store, 1, 1, now - 2), WB_STORE_PUT_OLDER);
    /* Less than a day ahead: somebody's clock is a little fast. */
    assert_int_equal(put(store, 1, 1, now + 1000), WB_STORE_PUT_VERSION);
    assert_int_equal(put(store, 1, 1, now), WB_STORE_PUT_KNOWN);
    assert_int_equal(commit(store).replaced, 2);
    /* The page is seen unchanged: its time becomes a plausible one. */
    assert_int_equal(put(store, 1, 1, ahead), WB_STORE_PUT_VERSION);
    commit(store);
    must_ok(wb_store_touch(store, spec_id(&spec), now + 2000));
    commit(store);
    assert_int_equal(put(store, 1, 1, now + 3000), WB_STORE_PUT_VERSION);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- bars --------------------------------------------------------------------------------------------- */

/* A writer has put pages but not committed them when another one takes them down: its commit leaves them out. */
static void test_pages_in_hand(void **state)
{
    struct wb_store *crawler = new_store(), *other = open_store(dir, WB_STORE_WRITE);
    struct wb_buf room = WB_BUF_INIT;
    struct spec secret = page(1, 3, 1000), revisited = page(2, 99, 0);
    struct wb_store_revisit revisit = {
        .id = spec_id(&revisited), .site = spec_site(&revisited, &room), .time_ms = 5, .original = spec_id(&revisited)};
    struct wb_move_compact_counts compact;
    struct wb_store_stat stat;

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(put(crawler, 1, i, 1000), WB_STORE_PUT_NEW);
    assert_int_equal(put(crawler, 2, 0, 1000), WB_STORE_PUT_NEW);
    must_ok(wb_store_put_revisit(crawler, &revisit, NULL));
    bar(other, 1, 3, WB_STORE_BAR_PAGE, false);
    bar(other, 2, 0, WB_STORE_BAR_SITE, false);
    assert_true(barred(crawler, 1, 3)); /* the crawler can see that at once */
    struct wb_store_commit_counts counts = commit(crawler);
    assert_int_equal(counts.added, 9);
    assert_int_equal(counts.barred, 3);
    assert_false(has(crawler, 1, 3) || has(crawler, 2, 0));
    assert_true(has(crawler, 1, 4));
    must_ok(wb_store_stat(crawler, &stat));
    assert_true(stat.pages == 9 && stat.sites == 1 && stat.revisits == 0 && stat.bars == 2);

    /* In logs, its bytes were already in the segment; the next compaction removes them. Buckets are written later. */
    assert_int_equal(files_with(dir, &secret) != 0, test_design().read.organisation != WB_ORGANISATION_HASH);
    wb_store_close(crawler);
    must_ok(wb_move_compact(other, NULL, NULL, NULL, NULL, &compact));
    wb_store_close(other);
    wb_store_close(open_store(dir, WB_STORE_WRITE));
    assert_int_equal(files_with(dir, &secret), 0);
    wb_buf_release(&room);
    verify_clean(dir);
}

static int count_bar(void *context, const struct wb_store_bar *bar_found)
{
    unsigned *counts = context;

    counts[bar_found->kind == WB_STORE_BAR_SITE ? 0 : bar_found->except ? 1 : 2]++;
    return 0;
}

static void test_sites_and_exceptions(void **state)
{
    struct wb_store *store = new_store(), *reader = open_store(dir, WB_STORE_READ);
    struct spec any = page(1, 7, 0);
    unsigned counts[3] = {0};

    (void)state;
    bar(store, 1, 0, WB_STORE_BAR_SITE, false);
    assert_true(barred(reader, 1, 7) && barred(reader, 1, 8) && !barred(reader, 2, 7));
    assert_int_equal(put(store, 1, 7, 1000), WB_STORE_PUT_BARRED);
    bar(store, 1, 7, WB_STORE_BAR_PAGE, true);
    assert_true(!barred(reader, 1, 7) && barred(reader, 1, 8));
    assert_int_equal(bar_spec(store, &any, WB_STORE_BAR_PAGE, true), WB_E_NOTFOUND); /* it is allowed already */
    assert_int_equal(put(store, 1, 7, 1000), WB_STORE_PUT_NEW);
    bar(store, 1, 8, WB_STORE_BAR_PAGE, false);
    must_ok(wb_store_bar_each(reader, count_bar, counts));
    assert_true(counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
    /* Lifting the bar of the site also lifts the page's own bar. */
    bar(store, 1, 0, WB_STORE_BAR_SITE, true);
    assert_true(!barred(reader, 1, 7) && !barred(reader, 1, 8));
    assert_int_equal(bar_spec(store, &any, WB_STORE_BAR_SITE, true), WB_E_NOTFOUND);
    /* Taking down the site again ends exceptions. */
    bar(store, 1, 0, WB_STORE_BAR_SITE, false);
    bar(store, 1, 7, WB_STORE_BAR_PAGE, true);
    bar(store, 1, 0, WB_STORE_BAR_SITE, false);
    assert_true(barred(reader, 1, 7));
    wb_store_close(reader);
    wb_store_close(store);
    reader = open_store(dir, WB_STORE_READ);
    assert_true(barred(reader, 1, 7) && !barred(reader, 2, 7));
    wb_store_close(reader);
    verify_clean(dir);
}

static uint64_t version(struct wb_store *store)
{
    uint64_t number;

    must_ok(wb_store_bar_version(store, &number));
    return number;
}

/* Another handle sees every change of the bars, and nothing else, in their version. */
static void test_version(void **state)
{
    struct wb_store *store = new_store(), *reader = open_store(dir, WB_STORE_READ);
    struct wb_store_commit_counts counts = {0};
    uint64_t none = version(reader), one, two;

    (void)state;
    put(store, 1, 1, 1000);
    must_ok(wb_store_commit(store, &counts));
    assert_int_equal(version(reader), none);
    bar(store, 1, 7, WB_STORE_BAR_PAGE, false);
    one = version(reader);
    assert_int_not_equal(one, none);
    put(store, 1, 2, 1000);
    must_ok(wb_store_commit(store, &counts));
    assert_true(version(reader) == one && version(store) == one);
    bar(store, 2, 0, WB_STORE_BAR_SITE, false);
    two = version(reader);
    assert_true(two != one && two != none);
    bar(store, 2, 3, WB_STORE_BAR_PAGE, true);
    assert_true(version(reader) != two && version(reader) != one);
    bar(store, 2, 0, WB_STORE_BAR_SITE, true);
    bar(store, 1, 7, WB_STORE_BAR_PAGE, true);
    assert_int_equal(version(reader), none);
    wb_store_close(reader);
    wb_store_close(store);
}

/* A revisit that waits for its original. */
static enum wb_store_outcome put_revisit(struct wb_store *store, uint32_t site, uint32_t number)
{
    struct wb_buf room = WB_BUF_INIT;
    struct spec spec = page(site, number, 0);
    struct wb_store_revisit revisit = {.id = spec_id(&spec),
                                       .site = spec_site(&spec, &room),
                                       .time_ms = 5,
                                       .has_sha1 = true,
                                       .original = spec_id(&spec)};
    enum wb_store_outcome outcome;

    must_ok(wb_store_put_revisit(store, &revisit, &outcome));
    wb_buf_release(&room);
    return outcome;
}

/* A remembered revisit reveals when a page existed, and its digest. */
static void test_revisits_go(void **state)
{
    struct wb_store *store = new_store();

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(put_revisit(store, i / 2, i), WB_STORE_PUT_NEW);
    bar(store, 0, 0, WB_STORE_BAR_PAGE, false);
    bar(store, 1, 99, WB_STORE_BAR_SITE, false);
    for (uint32_t i = 0; i < 4; i++) {
        struct spec spec = page(i / 2, i, 0);
        struct wb_store_revisit found;
        assert_int_equal(wb_store_get_revisit(store, spec_id(&spec), &found), i == 1 ? 0 : WB_E_NOTFOUND);
        assert_int_equal(put_revisit(store, i / 2, i), i == 1 ? WB_STORE_PUT_KNOWN : WB_STORE_PUT_BARRED);
    }
    assert_int_equal(commit(store).barred, 3);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- kill -9 -------------------------------------------------------------------------------------------- */

enum { PAGES = 30 };

/* Puts all pages again and again, like a crawler that knows nothing about takedowns. */
static int put_on(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    (void)context;
    for (int64_t time_ms = 1000;; time_ms++) {
        for (uint32_t i = 0; i < PAGES; i++)
            put(store, i % 3, i, time_ms);
        commit(store);
    }
    return 0;
}

/* Takes down one page after the other (bar, then remove), and reports each one when it is done. */
static int take_down_on(void *context)
{
    const int *pipe_fd = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page(i % 3, i, 0);
        bar(store, i % 3, i, WB_STORE_BAR_PAGE, false);
        int err = remove_spec(store, &spec, true);
        must(err == 0 || err == WB_E_NOTFOUND);
        commit(store);
        must(write(*pipe_fd, &i, sizeof i) == sizeof i);
    }
    pause();
    return 0;
}

static int look_at_bars(void *context)
{
    const uint32_t *done = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (uint32_t i = 0; i < *done; i++) {
        must(barred(store, i % 3, i));
        must(!has(store, i % 3, i));
        must(put(store, i % 3, i, 900000) == WB_STORE_PUT_BARRED);
    }
    wb_store_close(store);
    verify_clean(dir);
    return 0;
}

static int create(void *context)
{
    (void)context;
    create_store(dir);
    return 0;
}

/* The crawler and the takedown are killed at random moments: what was reported as taken down stays down. */
static void test_killed(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = test_rounds(12); round > 0; round--) {
        int fds[2];
        uint32_t done = 0, number;
        test_dir(dir);
        must(run_child(create, NULL) == 0);
        must(pipe(fds) == 0);
        pid_t crawler = start_child(put_on, NULL), taker = start_child(take_down_on, &fds[1]);
        close(fds[1]);
        uint32_t wanted = (uint32_t)chance_below(&chance, PAGES);
        while (done < wanted && read(fds[0], &number, sizeof number) == sizeof number)
            must(number == done++);
        usleep((useconds_t)chance_below(&chance, 3000));
        kill(chance_one_in(&chance, 2) ? taker : crawler, SIGKILL);
        kill(taker, SIGKILL);
        kill(crawler, SIGKILL);
        assert_int_equal(end_child(taker), -SIGKILL);
        assert_int_equal(end_child(crawler), -SIGKILL);
        while (read(fds[0], &number, sizeof number) == sizeof number)
            done = number + 1;
        close(fds[0]);
        must(run_child(look_at_bars, &done) == 0);
        remove_tree(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),      cmocka_unit_test(test_wrong_clock),
        cmocka_unit_test(test_pages_in_hand), cmocka_unit_test(test_sites_and_exceptions),
        cmocka_unit_test(test_version),       cmocka_unit_test(test_revisits_go),
        cmocka_unit_test(test_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
