/*
 * test_webdb_holds.c - editions stay as long as an open handle or a name holds them, in whatever process, and go
 * afterwards; and the epoch of the store that an edition has seen.
 */
#include "../allocfail.h"
#include "webdb/edition.h"
#include "webdb_compare.h"

enum { ROUNDS = 300 };

static uint64_t seed, chance;
static struct twin twin;

/* Makes the next edition. */
static uint32_t update(const char *dir)
{
    static struct twin_batch batch;
    struct wb_webdb_merge merge;

    twin_batch_make(&batch, chance_next(&chance), 1790000000000 + (int64_t)chance_below(&chance, 1000), 60, 0);
    assert_int_equal(twin_update(dir, &batch, 0, 1, &merge), 0);
    twin_apply(&twin, &batch);
    return merge.edition;
}

/* Whether an edition can be opened. If it cannot, the message says which one. */
static bool exists(const char *dir, uint32_t edition)
{
    struct wb_webdb *webdb;
    struct wb_webdb_count count;
    char words[32];
    int err = wb_webdb_open_edition(dir, edition, &webdb);

    if (err == 0) {
        wb_webdb_count(webdb, &count);
        assert_int_equal(count.edition, edition);
        wb_webdb_close(webdb);
        return true;
    }
    assert_int_equal(err, WB_E_NOTFOUND);
    snprintf(words, sizeof words, "no edition %u", edition);
    assert_non_null(strstr(wb_error_message(), words));
    return false;
}

static void fresh_twin(void)
{
    memset(&twin, 0, sizeof twin);
    chance = seed;
}

/* ---- open handles ---------------------------------------------------------------------------- */

static void test_handles(void **state)
{
    const char *dir = new_dir();
    struct wb_webdb *first, *second;

    (void)state;
    fresh_twin();
    assert_int_equal(update(dir), 1);
    static struct twin then;
    then = twin;
    assert_int_equal(wb_webdb_open(dir, &first), 0);
    assert_int_equal(wb_webdb_open_edition(dir, 1, &second), 0);
    assert_int_equal(update(dir), 2);
    assert_int_equal(update(dir), 3);
    assert_true(exists(dir, 1) && !exists(dir, 2) && exists(dir, 3));
    same_as_twin(&then, second);
    wb_webdb_close(second);
    assert_int_equal(update(dir), 4);
    assert_true(exists(dir, 1)); /* the first handle is still open */
    same_as_twin(&then, first);
    wb_webdb_close(first);
    assert_true(exists(dir, 1)); /* until the next update */
    assert_int_equal(update(dir), 5);
    assert_true(!exists(dir, 1));
    check_tidy(dir);
}

static void open_and_wait(void *context, int to)
{
    struct wb_webdb *webdb;
    char byte = 1;

    must(wb_webdb_open(context, &webdb) == 0);
    must(write(to, &byte, 1) == 1);
    for (;;)
        pause();
}

/* Another process that is killed holds nothing any more. */
static void test_other_process(void **state)
{
    const char *dir = new_dir();
    char byte;

    (void)state;
    fresh_twin();
    assert_int_equal(update(dir), 1);
    struct child child = start_child(open_and_wait, (void *)(uintptr_t)dir);
    assert_true(next_ack(&child, &byte, 1));
    assert_int_equal(update(dir), 2);
    assert_int_equal(update(dir), 3);
    assert_true(exists(dir, 1));
    kill_child(&child, 0);
    close(child.from);
    assert_int_equal(update(dir), 4);
    check_tidy(dir);
}

/* ---- names ----------------------------------------------------------------------------------- */

struct listed {
    unsigned count;
    uint32_t editions[8];
    char names[8][WB_HOLDER_MAX + 1];
};

static int note_hold(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    struct listed *listed = context;

    assert_true(listed->count < COUNT(listed->editions));
    assert_true(since_ms > 1700000000000);
    listed->editions[listed->count] = edition;
    snprintf(listed->names[listed->count++], sizeof listed->names[0], "%s", holder);
    return 0;
}

static struct listed list(const char *dir)
{
    struct listed listed = {.count = 0};

    assert_int_equal(wb_webdb_holds(dir, note_hold, &listed), 0);
    return listed;
}

static int stop_listing(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    (void)edition;
    (void)holder;
    (void)since_ms;
    ++*(unsigned *)context;
    return WB_E_STOPPED;
}

static void test_names(void **state)
{
    const char *dir = new_dir();
    unsigned called = 0;

    (void)state;
    fresh_twin();
    assert_int_equal(list(dir).count, 0);
    assert_int_equal(wb_webdb_hold(dir, 1, "me"), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "no edition 1"));
    assert_int_equal(update(dir), 1);
    assert_int_equal(wb_webdb_hold(dir, 1, "generation-7"), 0);
    assert_int_equal(wb_webdb_hold(dir, 1, "generation-7"), 0); /* the same once more */
    assert_int_equal(wb_webdb_hold(dir, 1, "Another_1.x"), 0);
    check_clean(dir);
    assert_int_equal(update(dir), 2);
    assert_int_equal(wb_webdb_hold(dir, 2, "generation-7"), 0);
    assert_int_equal(update(dir), 3);
    assert_int_equal(update(dir), 4);
    assert_true(exists(dir, 1) && exists(dir, 2) && !exists(dir, 3));
    struct listed found = list(dir);
    assert_int_equal(found.count, 3);
    assert_true(found.editions[0] == 1 && found.editions[1] == 1 && found.editions[2] == 2);
    assert_string_equal(found.names[0], "Another_1.x");
    assert_string_equal(found.names[1], "generation-7");
    assert_string_equal(found.names[2], "generation-7");
    assert_int_equal(wb_webdb_holds(dir, stop_listing, &called), WB_E_STOPPED);
    assert_int_equal(called, 1);
    assert_int_equal(wb_webdb_release(dir, 1, "generation-7"), 0);
    assert_int_equal(wb_webdb_release(dir, 1, "generation-7"), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_release(dir, 3, "generation-7"), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_release(dir, 2, "generation-7"), 0);
    assert_int_equal(wb_webdb_hold(dir, 3, "late"), WB_E_NOTFOUND);
    assert_int_equal(update(dir), 5);
    assert_true(exists(dir, 1) && !exists(dir, 2)); /* Another_1.x still holds the first */
    assert_int_equal(wb_webdb_release(dir, 1, "Another_1.x"), 0);
    assert_int_equal(update(dir), 6);
    check_tidy(dir);
    assert_int_equal(list(dir).count, 0);
}

static void test_bad_names(void **state)
{
    static const char *const bad[] = {"", "a/b", "..\\", "a b", "\xc3\xa4", "a\n"};
    const char *dir = new_dir();
    char longest[WB_HOLDER_MAX + 2];

    (void)state;
    fresh_twin();
    assert_int_equal(update(dir), 1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(wb_webdb_hold(dir, 1, bad[i]), WB_E_INVALID);
        assert_int_equal(wb_webdb_release(dir, 1, bad[i]), WB_E_INVALID);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(wb_webdb_hold(dir, 1, longest), WB_E_INVALID);
    assert_int_equal(wb_webdb_hold(dir, 1, longest + 1), 0);
    assert_int_equal(wb_webdb_hold(dir, 0, "me"), WB_E_INVALID);
    assert_int_equal(wb_webdb_release(dir, 0, "me"), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_hold(dir, UINT32_MAX, "me"), WB_E_NOTFOUND);
    assert_int_equal(list(dir).count, 1);
}

/* If the disk fails, the caller learns that nothing is certain; a hold that was acknowledged is there. */
static void test_faults(void **state)
{
    const char *dir = new_dir();
    unsigned called = 0;

    (void)state;
    fresh_twin();
    assert_int_equal(update(dir), 1);
    for (uint64_t nth = 1;; nth++) {
        wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
        int err = wb_webdb_hold(dir, 1, "me");
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        if (!struck)
            break;
    }
    for (size_t nth = 0;; nth++) {
        alloc_fail_nth(nth);
        int err = wb_webdb_hold(dir, 1, "me");
        if (err == 0)
            err = wb_webdb_holds(dir, stop_listing, &called) == WB_E_STOPPED ? 0 : WB_E_NOMEM;
        bool failed = alloc_has_failed();
        wb_alloc_should_fail = NULL;
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        if (!failed)
            break;
    }
    assert_int_equal(list(dir).count, 1);
    assert_int_equal(wb_webdb_release(dir, 1, "me"), 0);
    assert_int_equal(update(dir), 2);
    check_tidy(dir);
}

/* ---- races ----------------------------------------------------------------------------------- */

static void update_for_ever(void *context, int to)
{
    (void)to;
    for (;;)
        update(context);
}

/* What has been held exists until it is released, however fast editions are replaced. */
static void test_race(void **state)
{
    const char *dir = new_dir();
    unsigned held = 0, late = 0;
    uint32_t newest;

    (void)state;
    fresh_twin();
    assert_int_equal(update(dir), 1);
    struct child child = start_child(update_for_ever, (void *)(uintptr_t)dir);
    for (int i = 0; i < ROUNDS || held < 10; i++) {
        struct wb_webdb *webdb;
        assert_int_equal(wb_edition_newest(dir, &newest), 0);
        usleep((unsigned)chance_below(&chance, 5000));
        int err = i & 1 ? wb_webdb_hold(dir, newest, "racer") : wb_webdb_open_edition(dir, newest, &webdb);
        if (err == WB_E_NOTFOUND) {
            late++;
            continue;
        }
        assert_int_equal(err, 0);
        usleep((unsigned)chance_below(&chance, 5000));
        assert_true(exists(dir, newest));
        held++;
        if (i & 1)
            assert_int_equal(wb_webdb_release(dir, newest, "racer"), 0);
        else
            wb_webdb_close(webdb);
    }
    printf("# held %u, late %u\n", held, late);
    kill_child(&child, 0);
    close(child.from);
    update(dir);
    check_tidy(dir);
    check_clean(dir);
}

/* ---- the epoch of the store -------------------------------------------------------------------- */

static uint64_t epoch_of(const char *dir, uint32_t *edition_out)
{
    struct wb_webdb *webdb;
    struct wb_webdb_count count;

    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    wb_webdb_count(webdb, &count);
    wb_webdb_close(webdb);
    *edition_out = count.edition;
    return count.store_epoch;
}

/* Merges with this epoch, or without saying one if it is UINT64_MAX. */
static void merge_epoch(const char *dir, uint64_t epoch, bool from_scratch, const char *url)
{
    struct wb_webdb_options options = {.from_scratch = from_scratch};
    struct wb_webdb_page page = {.url = wb_slice_str(url ? url : "")};
    struct wb_webdb_writer *writer;

    assert_int_equal(wb_webdb_writer_open(dir, &options, &writer), 0);
    if (url)
        assert_int_equal(wb_webdb_add_page(writer, &page), 0);
    if (epoch != UINT64_MAX)
        wb_webdb_writer_saw_epoch(writer, epoch);
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
}

static void test_epoch(void **state)
{
    const char *dir = new_dir();
    struct wb_webdb *webdb;
    uint32_t edition;

    (void)state;
    merge_epoch(dir, 5, false, NULL); /* there is no edition that could record it */
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_NOTFOUND);
    merge_epoch(dir, UINT64_MAX, false, "http://a.example/");
    assert_int_equal(epoch_of(dir, &edition), 0);
    merge_epoch(dir, 7, false, "http://b.example/");
    assert_int_equal(epoch_of(dir, &edition), 7);
    assert_int_equal(edition, 2);
    merge_epoch(dir, UINT64_MAX, false, "http://c.example/"); /* it stays */
    assert_int_equal(epoch_of(dir, &edition), 7);
    assert_int_equal(edition, 3);
    merge_epoch(dir, 1ull << 40, false, NULL); /* only the manifest is replaced */
    assert_int_equal(epoch_of(dir, &edition), 1ull << 40);
    assert_int_equal(edition, 3);
    check_clean(dir);
    merge_epoch(dir, UINT64_MAX, false, NULL);
    assert_int_equal(epoch_of(dir, &edition), 1ull << 40);
    merge_epoch(dir, UINT64_MAX, true, "http://d.example/");
    assert_int_equal(epoch_of(dir, &edition), 0);
    assert_int_equal(edition, 4);
    check_tidy(dir);
}

static int begin(void **state)
{
    seed = test_seed();
    twin_init();
    return make_root(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles),   cmocka_unit_test(test_other_process), cmocka_unit_test(test_names),
        cmocka_unit_test(test_bad_names), cmocka_unit_test(test_faults),        cmocka_unit_test(test_race),
        cmocka_unit_test(test_epoch),
    };

    return cmocka_run_group_tests(tests, begin, remove_root);
}
