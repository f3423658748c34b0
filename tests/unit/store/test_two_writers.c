/*
 * test_two_writers.c - two writers of one repository: one has put something and not committed it, and the other
 * one commits. If a content that the first one counts on is given up, its capture must not be lost: the
 * bytes are stored after all, and a revisit waits for its original.
 */
#include "store_support.h"
#include "move/move.h"

static char dir[DIR_MAX];

/* Two writers of one repository. */
struct two {
    struct wb_store *one, *other;
};

/* The page with the content `content`, as it was seen at a time. */
static struct spec page(uint32_t number, uint32_t content, int64_t time_ms)
{
    return (struct spec){
        .site = number % 3, .number = number, .time_ms = time_ms, .size = 900, .variant = 5, .content = content};
}

static struct two begin(enum wb_store_keep keep, uint64_t value)
{
    test_dir(dir);
    create_store_as(dir, (struct wb_store_history){keep, value});
    return (struct two){open_store(dir, WB_STORE_WRITE), open_store(dir, WB_STORE_WRITE)};
}

static void finish(struct two *t)
{
    wb_store_close(t->one);
    wb_store_close(t->other);
    verify_clean(dir);
}

static void put(struct wb_store *store, struct spec spec)
{
    must_ok(put_spec(store, &spec));
}

static void put_and_commit(struct wb_store *store, struct spec spec)
{
    put(store, spec);
    commit_store(store);
}

static void put_expecting(struct wb_store *store, struct spec spec, enum wb_store_outcome expected)
{
    enum wb_store_outcome outcome;

    must_ok(put_spec_as(store, &spec, &outcome));
    assert_int_equal(outcome, expected);
}

static struct wb_store_commit_counts commit_counting(struct wb_store *store)
{
    struct wb_store_commit_counts counts = {0};

    must_ok(wb_store_commit(store, &counts));
    return counts;
}

static bool reader_holds(struct spec spec)
{
    struct wb_store *reader = open_store(dir, WB_STORE_READ);
    bool holds = holds_spec(reader, &spec);

    wb_store_close(reader);
    return holds;
}

/* ---- how a content can go ---------------------------------------------------------------------------- */

/* One writer puts a stored content again, and the other one replaces it by a newer version. */
static struct two begin_with_replacement(struct spec seen_again)
{
    struct two t = begin(WB_STORE_KEEP_NEWEST, 0);

    put_and_commit(t.other, page(1, 1, 1000));
    put_expecting(t.one, seen_again, WB_STORE_PUT_CAPTURE);
    put_and_commit(t.other, page(1, 2, 2000));
    return t;
}

static void test_replaced(void **state)
{
    struct spec seen_again = page(1, 1, 3000);
    struct two t = begin_with_replacement(seen_again);

    (void)state;
    assert_true(reader_holds(page(1, 2, 2000)));
    struct wb_store_commit_counts counts = commit_counting(t.one);
    assert_int_equal(counts.replaced, 1);
    assert_int_equal(counts.older + counts.captures, 0);
    assert_true(reader_holds(seen_again));
    finish(&t);
}

static void remove_meanwhile(bool everywhere)
{
    struct two t = begin(WB_STORE_KEEP_NEWEST, 0);
    struct spec gone = page(1, 1, 2000), seen_again = page(1, 1, 3000);

    put_and_commit(t.other, page(1, 1, 1000));
    put_and_commit(t.other, page(2, 2, 1000));
    put_expecting(t.one, seen_again, WB_STORE_PUT_CAPTURE);
    must_ok(remove_spec(t.other, &gone, everywhere));
    commit_store(t.other);
    assert_int_equal(commit_counting(t.one).added, 1);
    assert_true(reader_holds(seen_again));
    struct wb_store_stat stat;
    must_ok(wb_store_stat(t.one, &stat));
    assert_int_equal(stat.pages, 2);
    assert_int_equal(stat.sites, 2); /* counted once, although the commit was carried out twice */
    finish(&t);
}

static void test_removed(void **state)
{
    (void)state;
    remove_meanwhile(false);
    remove_meanwhile(true);
}

/* A page that has two versions, and one writer puts the content of the older one. */
static struct two begin_with_return(enum wb_store_keep keep, uint64_t value, struct spec returned)
{
    struct two t = begin(keep, value);

    put_and_commit(t.other, page(1, 1, 1000));
    put_and_commit(t.other, page(1, 2, 2000));
    put_expecting(t.one, returned, WB_STORE_PUT_VERSION);
    return t;
}

/* The policy keeps two versions, and there is a third one. */
static void test_pushed_out(void **state)
{
    struct spec returned = page(1, 1, 4000);
    struct two t = begin_with_return(WB_STORE_KEEP_COUNT, 2, returned);

    (void)state;
    put_and_commit(t.other, page(1, 3, 3000));
    assert_int_equal(commit_counting(t.one).replaced, 1);
    assert_true(reader_holds(returned));
    finish(&t);
}

/* The policy changes from all to newest. */
static void test_policy_changed(void **state)
{
    struct spec returned = page(1, 1, 4000);
    struct two t = begin_with_return(WB_STORE_KEEP_ALL, 0, returned);
    struct wb_move_compact_counts compact;

    (void)state;
    must_ok(wb_store_set_history(t.other, &(struct wb_store_history){WB_STORE_KEEP_NEWEST, 0}));
    must_ok(wb_move_compact(t.other, NULL, NULL, NULL, NULL, &compact));
    assert_int_equal(compact.versions, 1);
    assert_int_equal(commit_counting(t.one).replaced, 1);
    assert_true(reader_holds(returned));
    finish(&t);
}

/* ---- what the writer sees before it commits ------------------------------------------------------------- */

static void test_own_view(void **state)
{
    struct spec seen_again = page(1, 1, 3000);
    struct two t = begin_with_replacement(seen_again);

    (void)state;
    for (uint32_t i = 2; i < 6 * WB_REPO_VIEWS; i++) /* so many that the view of page 1 is forgotten */
        put_expecting(t.one, page(i, 1, 1000), WB_STORE_PUT_NEW);
    assert_true(holds_spec(t.one, &seen_again));
    put_expecting(t.one, page(1, 1, 5000), WB_STORE_PUT_CAPTURE);
    struct wb_store_commit_counts counts = commit_counting(t.one);
    assert_int_equal(counts.replaced, 1);
    assert_int_equal(counts.captures, 1);
    finish(&t);
}

/* ---- many, and a bound on what is kept in memory ------------------------------------------------------------ */

static void test_many(void **state)
{
    enum { PAGES = 200 };
    use_small_sizes(60000);
    struct two t = begin(WB_STORE_KEEP_NEWEST, 0);
    const struct wb_repo_writer *writer = ((struct wb_repo *)t.one)->writer;

    (void)state;
    for (uint32_t i = 0; i < PAGES; i++)
        put(t.other, page(i, 1 + i, 1000));
    commit_store(t.other);
    for (uint32_t i = 0; i < PAGES; i++) {
        put_expecting(t.one, page(i, 1 + i, 3000), WB_STORE_PUT_CAPTURE);
        assert_true(writer->spare_bytes <= wb_pagefile_sizes.spare_bytes);
    }
    assert_true(writer->spare_bytes > wb_pagefile_sizes.spare_bytes / 2);
    for (uint32_t i = 0; i < PAGES; i += 2)
        put(t.other, page(i, 1000 + i, 2000));
    commit_store(t.other);
    struct wb_store_commit_counts counts = commit_counting(t.one);
    assert_int_equal(counts.replaced, PAGES / 2);
    assert_int_equal(counts.captures, PAGES / 2);
    assert_int_equal(writer->spare_bytes, 0);
    for (uint32_t i = 0; i < PAGES; i++)
        assert_true(i % 2 || reader_holds(page(i, 1 + i, 3000)));
    finish(&t);
    use_usual_sizes();
}

/* ---- revisits -------------------------------------------------------------------------------------------------- */

static void test_revisit(void **state)
{
    struct two t = begin(WB_STORE_KEEP_NEWEST, 0);
    struct spec original = page(1, 1, 1000);
    struct wb_buf room = WB_BUF_INIT;
    enum wb_store_outcome outcome;
    struct wb_store_stat stat;

    (void)state;
    put_and_commit(t.other, original);
    struct wb_store_revisit revisit = {.id = spec_id(&original),
                                       .site = spec_site(&original, &room),
                                       .time_ms = 3000,
                                       .original_ms = 1000,
                                       .original = spec_id(&original)};
    must_ok(wb_store_put_revisit(t.one, &revisit, &outcome));
    assert_int_equal(outcome, WB_STORE_PUT_CAPTURE);
    put_and_commit(t.other, page(1, 2, 2000));
    commit_store(t.one);
    must_ok(wb_store_stat(t.one, &stat));
    assert_int_equal(stat.revisits, 1);
    assert_true(reader_holds(page(1, 2, 2000)));
    wb_buf_release(&room);
    finish(&t);
}

/* ---- epochs ----------------------------------------------------------------------------------------------------- */

/* The first writer has read the epoch before the other one began two more. */
static void test_later_epochs(void **state)
{
    struct two t = begin(WB_STORE_KEEP_ALL, 0);
    struct spec removed = page(1, 2, 5000), back = page(1, 3, 6000);
    struct wb_store_timeline timeline;

    (void)state;
    put(t.one, page(2, 1, 1000));
    put_and_commit(t.other, page(1, 1, 1000));
    put_and_commit(t.other, page(1, 2, 2000));
    must_ok(remove_spec(t.one, &removed, false));
    put_expecting(t.one, back, WB_STORE_PUT_NEW);
    assert_true(holds_spec(t.one, &back));
    commit_store(t.one);
    assert_true(reader_holds(back));
    must_ok(wb_store_timeline(t.one, spec_id(&back), &timeline));
    assert_int_equal(timeline.count, 3);
    wb_store_timeline_release(&timeline);
    finish(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replaced),       cmocka_unit_test(test_removed),      cmocka_unit_test(test_pushed_out),
        cmocka_unit_test(test_policy_changed), cmocka_unit_test(test_own_view),     cmocka_unit_test(test_many),
        cmocka_unit_test(test_revisit),        cmocka_unit_test(test_later_epochs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
