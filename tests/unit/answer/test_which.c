/* test_which.c - which page a text means, and finding every version that a timeline lists. */
#include "../stream/versions_support.h"

#include "answer/answer.h"
#include "base/buf.h"
#include "move/move.h"

static void test_a_url_or_an_id(void **state)
{
    static const char *const wrong[] = {"", "two words", "/a", "http://[", "[::1", "http://"};
    static const char *const same[] = {"h.example/a",   "h.example:80/a", "h.example:443/a",
                                       "//h.example/a", " H.Example/a#x", "https://h.example/a"};
    struct wb_pageid a, b;
    char hex[WB_PAGEID_HEX + 1];

    (void)state;
    assert_int_equal(wb_which_page(WB_SLICE_LIT("http://H.example:80/x/../a"), &a), 0);
    assert_true(wb_pageid_equal(a, wb_pageid_of_key(WB_SLICE_LIT("h.example/a"))));
    wb_pageid_hex(a, hex);
    assert_int_equal(wb_which_page(wb_slice_str(hex), &b), 0);
    assert_true(wb_pageid_equal(a, b));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(wb_which_page(wb_slice_str(same[i]), &b), 0);
        assert_true(wb_pageid_equal(a, b));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(wb_which_page(wb_slice_str(wrong[i]), &a) < 0);
        assert_non_null(strstr(wb_error_message(), wrong[i]));
    }
}

static void test_a_snapshot_by_number_or_name(void **state)
{
    struct wb_store *store = new_store("which", WB_STORE_KEEP_NEWEST);
    struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot = {0};
    uint32_t number;

    (void)state;
    put_on(store, "a", 0, "A");
    assert_int_equal(wb_store_seal(store, WB_SLICE_LIT("name"), &person, &snapshot), 0);
    assert_int_equal(wb_which_snapshot(store, WB_SLICE_LIT("name"), &number), 0);
    assert_int_equal(number, snapshot.number);
    assert_int_equal(wb_which_snapshot(store, WB_SLICE_LIT("1"), &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(wb_which_snapshot(store, WB_SLICE_LIT("other"), &number), WB_E_NOTFOUND);
    assert_int_equal(number, 0);
    assert_non_null(strstr(wb_error_message(), "other"));
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
}

/* Every version of the timeline is found, and has the body that is expected. */
static void assert_bodies(struct wb_store *store, const char *name, const char *const *bodies, size_t count)
{
    struct wb_store_timeline timeline;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pageid id = page_on(name, 0, "").id;
    struct wb_page page;

    assert_int_equal(wb_store_timeline(store, id, &timeline), 0);
    assert_int_equal(timeline.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(wb_store_get_version(store, id, &timeline.versions[i], &page, &mem), 1);
        if (!wb_slice_equal(page.body, wb_slice_str(bodies[i])))
            fail_msg("version %zu is %.*s, not %s", i + 1, WB_SLICE_ARG(page.body), bodies[i]);
    }
    wb_buf_release(&mem);
    wb_store_timeline_release(&timeline);
}

static void test_versions_are_found(void **state)
{
    struct wb_store *store = new_store("versions", WB_STORE_KEEP_ALL);

    (void)state;
    put_on(store, "a", 0, "A");
    put_on(store, "a", 4, "A again");
    put_on(store, "a", 2, "B");
    put_on(store, "a", 6, "A");
    put_on(store, "a", 7, "A");
    assert_bodies(store, "a", (const char *const[]){"A", "B", "A again", "A"}, 4);
    remove_page(store, "a", 8);
    assert_bodies(store, "a", (const char *const[]){"A", "B", "A again", "A"}, 4);
    wb_store_close(store);
}

/* A page that is removed under a snapshot, and whose first capture comes back with other bytes. */
static void test_two_versions_with_the_same_time(void **state)
{
    struct wb_store *store = new_store("same", WB_STORE_KEEP_NEWEST);
    struct wb_store_timeline timeline;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pageid id = page_on("a", 0, "").id;
    struct wb_page page;
    size_t held = 0, latest = 0;

    (void)state;
    put_on(store, "a", 0, "held");
    seal_state(store);
    remove_page(store, "a", 1);
    put_on(store, "a", 0, "latest");
    assert_int_equal(wb_store_timeline(store, id, &timeline), 0);
    assert_int_equal(timeline.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(timeline.versions[i].time_ms == START_MS);
        assert_int_equal(wb_store_get_version(store, id, &timeline.versions[i], &page, &mem), 1);
        held += wb_slice_equal(page.body, WB_SLICE_LIT("held"));
        latest += wb_slice_equal(page.body, WB_SLICE_LIT("latest"));
    }
    assert_true(held == 1 && latest == 1);
    wb_buf_release(&mem);
    wb_store_timeline_release(&timeline);
    wb_store_close(store);
}

/* What a timeline from before a change lists is either found or reported as changed. */
static void test_a_version_that_is_gone(void **state)
{
    struct wb_store *store = new_store("gone", WB_STORE_KEEP_NEWEST);
    struct wb_store_timeline timeline;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pageid id = page_on("a", 0, "").id;
    struct wb_page page;

    (void)state;
    put_on(store, "a", 0, "A");
    assert_int_equal(wb_store_timeline(store, id, &timeline), 0);
    put_on(store, "a", 1, "B");
    assert_int_equal(wb_store_get_version(store, id, &timeline.versions[0], &page, &mem), 0);
    remove_page(store, "a", 2);
    assert_int_equal(wb_store_get_version(store, id, &timeline.versions[0], &page, &mem), 0);
    wb_buf_release(&mem);
    wb_store_timeline_release(&timeline);
    wb_store_close(store);
}

/* Where a timeline has seen a version is only good for its handle, and until the next commit. */
static void test_versions_after_changes(void **state)
{
    static const char *const bodies[] = {"A", "B", "C"};
    struct wb_store *store = new_store("moved", WB_STORE_KEEP_NEWEST), *other;
    struct wb_move_compact_counts counts = {0};
    struct wb_store_timeline timeline;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pageid id = page_on("a", 0, "").id;
    struct wb_page page;

    (void)state;
    put_on(store, "b", 0, "in front of them");
    for (int i = 0; i < 3; i++) {
        put_on(store, "a", i, bodies[i]);
        seal_state(store);
    }
    assert_int_equal(wb_store_timeline(store, id, &timeline), 0);
    assert_int_equal(timeline.count, 3);
    for (int step = 0; step < 3; step++) {
        if (step == 1)
            put_on(store, "a", 9, "D");
        if (step == 2) { /* everything moves to the front, where a page was */
            remove_page(store, "b", 10);
            assert_int_equal(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts), 0);
            assert_true(counts.files > 0);
        }
        assert_int_equal(wb_store_open(test_path("moved"), WB_STORE_READ, &other), 0);
        for (size_t i = 0; i < 6; i++) {
            struct wb_store *reader = i < 3 ? store : other;
            assert_int_equal(wb_store_get_version(reader, id, &timeline.versions[i % 3], &page, &mem), 1);
            assert_true(wb_slice_equal(page.body, wb_slice_str(bodies[i % 3])));
            assert_true(page.time_ms == timeline.versions[i % 3].last_ms);
        }
        wb_store_close(other);
    }
    wb_buf_release(&mem);
    wb_store_timeline_release(&timeline);
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_or_an_id),
        cmocka_unit_test(test_a_snapshot_by_number_or_name),
        cmocka_unit_test(test_versions_are_found),
        cmocka_unit_test(test_two_versions_with_the_same_time),
        cmocka_unit_test(test_a_version_that_is_gone),
        cmocka_unit_test(test_versions_after_changes),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
