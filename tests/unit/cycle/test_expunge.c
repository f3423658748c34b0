/*
 * test_expunge.c - what leaves and what stays: gone, expired, moved pages; pages and sites that are taken down; and
 * that a process that is killed between two steps finds the rest again.
 */
#include "cycle_support.h"

static void merge_all(const char *dir)
{
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY};
    struct wb_webdb_merge merge;

    ok(wb_update(&options, NULL, &merge, NULL));
}

static void note_url(void *context, struct wb_slice url, const char *reason)
{
    ok(wb_buf_printf(context, "%s %.*s\n", reason, WB_SLICE_ARG(url)));
}

static struct wb_expunge_stat expunge(const char *dir, const char *said)
{
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY};
    struct wb_buf text = WB_BUF_INIT;
    struct wb_expunge_stat stat;

    ok(wb_expunge_expired(&options, NULL, note_url, &text, &stat));
    ok(wb_buf_terminate(&text));
    if (said)
        assert_string_equal(text.ptr, said);
    wb_buf_release(&text);
    return stat;
}

static struct wb_expunge_stat take_down(const char *dir, const char *what, bool allow)
{
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY};
    struct wb_expunge_stat stat;

    ok(wb_expunge(&options, what, allow, NULL, NULL, NULL, &stat));
    return stat;
}

/* ---- gone and expired -------------------------------------------------------------------------------------- */

static void test_what_leaves(void **state)
{
    int64_t now = wb_clock_wall_ms();
    const char *urls[] = {"http://done.test/stays",     "http://done.test/gone",         "http://done.test/expired",
                          "http://done.test/not-asked", "http://open.test/expired",      "http://away.test/expired",
                          "http://done.test/moved",     "http://done.test/moved-lately", "http://alias.test/expired",
                          "http://nobody.test/expired"};
    struct wb_webdb_page pages[COUNT(urls)], page;

    for (size_t i = 0; i < COUNT(urls); i++) {
        pages[i] = fetched_page(urls[i], now - 100 * WB_DAY_MS);
        store_page(*state, urls[i], now - 100 * WB_DAY_MS, i == 7 ? 200 : 90);
    }
    pages[1].flags |= WB_PAGE_GONE;
    for (int i = 2; i <= 9; i++) {
        if (i == 6 || i == 7)
            continue;
        pages[i].lifetime = 90;
        pages[i].expires_ms = now - 10 * WB_DAY_MS;
        pages[i].asked_ms = i == 3 || i >= 8 ? 0 : now - WB_DAY_MS;
    }
    for (int i = 6; i <= 7; i++) {
        pages[i].has_content = false;
        pages[i].outcome = WB_OUTCOME_REDIRECT;
        pages[i].location = WB_SLICE_LIT("http://done.test/stays");
        pages[i].last_tried_ms = now - WB_DAY_MS;
    }
    add_pages(*state, pages, COUNT(pages));
    make_site(*state, "done.test", WB_SITE_DONE, 0);
    make_site(*state, "open.test", WB_SITE_READY, 0);
    make_site(*state, "away.test", WB_SITE_WAITING, now + WB_DAY_MS);
    make_site(*state, "alias.test", WB_SITE_ALIAS, 0);

    struct wb_expunge_stat stat =
        expunge(*state, "expired http://alias.test/expired\nexpired http://done.test/expired\ngone "
                        "http://done.test/gone\nmoved http://done.test/moved\n");
    assert_int_equal(stat.pages, 4);
    assert_int_equal(stat.reprieved, 2);
    for (size_t i = 0; i < COUNT(urls); i++)
        assert_int_equal(in_store(*state, urls[i]), i != 1 && i != 2 && i != 6 && i != 8);
    assert_false(get_page(*state, urls[1], &page));
    assert_false(get_page(*state, urls[2], &page));
    assert_true(get_page(*state, urls[0], &page) && page.has_content);
    assert_true(get_page(*state, urls[4], &page) && page.has_content);
    stat = expunge(*state, "");
    assert_int_equal(stat.pages, 0);
    assert_int_equal(stat.reprieved, 2);
}

/* A page that ends keeps its past, and the store knows since when it has been gone. */
static void test_history_stays(void **state)
{
    int64_t now = wb_clock_wall_ms(), gone_ms;
    struct wb_webdb_page pages[] = {fetched_page("http://done.test/gone", now - 20 * WB_DAY_MS),
                                    fetched_page("http://done.test/expired", now - 20 * WB_DAY_MS),
                                    fetched_page("http://done.test/back", now - 20 * WB_DAY_MS)};

    keep_all_versions(*state);
    for (size_t i = 0; i < COUNT(pages); i++) {
        const char *url = pages[i].url.ptr;
        store_body(*state, url, "old", now - 30 * WB_DAY_MS, 7);
        store_body(*state, url, "new", now - 20 * WB_DAY_MS, 7);
        pages[i].last_tried_ms = i == 1 ? now - 20 * WB_DAY_MS : now - 2 * WB_DAY_MS;
        pages[i].flags |= i == 1 ? 0 : WB_PAGE_GONE;
    }
    pages[1].lifetime = 7;
    pages[1].expires_ms = now - 13 * WB_DAY_MS;
    pages[1].asked_ms = now - WB_DAY_MS;
    add_pages(*state, pages, COUNT(pages));
    make_site(*state, "done.test", WB_SITE_DONE, 0);
    /* Somebody has seen this one after the 404, and nobody has told webdb. */
    store_body(*state, "http://done.test/back", "newest", now - WB_DAY_MS, 7);
    expunge(*state, "expired http://done.test/expired\ngone http://done.test/gone\n");
    assert_false(in_store(*state, "http://done.test/gone"));
    assert_int_equal(count_versions(*state, "http://done.test/gone", &gone_ms), 2);
    assert_true(gone_ms == now - 2 * WB_DAY_MS);
    assert_int_equal(count_versions(*state, "http://done.test/expired", &gone_ms), 2);
    assert_true(gone_ms == now - 13 * WB_DAY_MS);
    assert_true(in_store(*state, "http://done.test/back"));
    assert_int_equal(count_versions(*state, "http://done.test/back", &gone_ms), 3);
    assert_true(gone_ms == 0);
    /* A takedown ends the history too. */
    struct wb_expunge_stat stat = take_down(*state, "http://done.test/gone", false);
    assert_int_equal(stat.pages, 1);
    assert_int_equal(count_versions(*state, "http://done.test/gone", &gone_ms), 0);
    stat = take_down(*state, "done.test", false);
    assert_int_equal(stat.pages, 2);
    assert_int_equal(count_versions(*state, "http://done.test/expired", &gone_ms), 0);
}

/* All versions of what is taken down leave all snapshots. */
static void test_snapshots_lose_what_is_taken_down(void **state)
{
    struct wb_store_when when = {.kind = WB_STORE_WHEN_SNAPSHOT};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_store *store = NULL;
    struct wb_page page;
    uint32_t snapshots[2];

    store_body(*state, "http://h.test/a", "first", 1000, 90);
    store_body(*state, "http://h.test/b", "first", 1000, 90);
    snapshots[0] = seal(*state);
    store_body(*state, "http://h.test/a", "second", 2000, 90);
    snapshots[1] = seal(*state);
    store_body(*state, "http://h.test/a", "third", 3000, 90);
    take_down(*state, "http://h.test/a", false);
    ok(wb_store_open(*state, WB_STORE_READ, &store));
    for (int i = 0; i < 2; i++) {
        when.snapshot = snapshots[i];
        assert_int_equal(wb_store_get_when(store, id_of("http://h.test/a"), &when, &page, &mem), WB_E_NOTFOUND);
        ok(wb_store_get_when(store, id_of("http://h.test/b"), &when, &page, &mem));
    }
    wb_store_close(store);
    wb_buf_release(&mem);
}

/* Killed after the store has committed: webdb still has the page, and the next one says goodbye to it. */
static void test_taken_up(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page page = fetched_page("http://h.test/gone", now - WB_DAY_MS);

    page.flags |= WB_PAGE_GONE;
    add_pages(*state, &page, 1);
    struct wb_expunge_stat stat = expunge(*state, "");
    assert_int_equal(stat.pages, 0);
    assert_false(get_page(*state, "http://h.test/gone", &page));
}

static void test_nothing_known(void **state)
{
    struct wb_expunge_stat stat = expunge(*state, "");

    assert_int_equal(stat.pages, 0);
}

/* ---- taken down ---------------------------------------------------------------------------------------------- */

static void test_page_is_taken_down(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page pages[] = {fetched_page("http://h.test/a", now), fetched_page("http://h.test/b", now)}, page;

    add_pages(*state, pages, 2);
    store_page(*state, "http://h.test/a", now, 90);
    store_page(*state, "http://h.test/b", now, 90);
    struct wb_expunge_stat stat = take_down(*state, "HTTP://H.test/x/../a/#here", false);
    assert_int_equal(stat.pages, 1);
    assert_int_equal(stat.bytes, 5);
    assert_false(in_store(*state, "http://h.test/a"));
    assert_true(in_store(*state, "http://h.test/b"));
    assert_true(get_page(*state, "http://h.test/a", &page) && page.flags == WB_PAGE_BARRED && !page.has_content);
    assert_true(get_page(*state, "http://h.test/b", &page) && page.has_content);
    /* Again: nothing is left to do, which is no error. */
    stat = take_down(*state, "http://h.test/a", false);
    assert_int_equal(stat.pages, 0);
    /* And back. */
    take_down(*state, "http://h.test/a", true);
    assert_true(get_page(*state, "http://h.test/a", &page) && page.flags == WB_PAGE_WANTED);
}

/* A crawler that had the page in hand wants to store it after it was taken down. */
static void test_barred_page_comes_back(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page page = fetched_page("http://h.test/a", now);

    add_pages(*state, &page, 1);
    take_down(*state, "http://h.test/a", false);
    store_page(*state, "http://h.test/a", now + 1000, 90);
    assert_false(in_store(*state, "http://h.test/a"));
    struct wb_expunge_stat stat = expunge(*state, "");
    assert_int_equal(stat.pages, 0);
    assert_true(get_page(*state, "http://h.test/a", &page) && page.flags & WB_PAGE_BARRED);
}

/* Takedowns that were killed right after the bar: the next expunge removes what they name, but for what was allowed
 * since. */
static void test_takedown_is_finished(void **state)
{
    store_page(*state, "http://h.test/a", 1000, 90);
    store_page(*state, "http://h.test/b", 1000, 90);
    store_page(*state, "http://s.test/c", 1000, 90);
    bar_in_store(*state, "http://h.test/a", WB_STORE_BAR_PAGE);
    bar_in_store(*state, "http://s.test/", WB_STORE_BAR_SITE);
    take_down(*state, "http://s.test/d", true);
    store_page(*state, "http://s.test/d", 1000, 90);
    assert_true(in_store(*state, "http://h.test/a") && in_store(*state, "http://s.test/c") &&
                in_store(*state, "http://s.test/d"));
    struct wb_expunge_stat stat = expunge(*state, NULL);
    assert_int_equal(stat.pages, 2);
    assert_int_equal(stat.left, 0);
    assert_false(in_store(*state, "http://h.test/a"));
    assert_true(in_store(*state, "http://h.test/b"));
    assert_false(in_store(*state, "http://s.test/c"));
    assert_true(in_store(*state, "http://s.test/d"));
}

/* What nobody knows yet is barred in advance; a host with all URLs that are found later. */
static void test_taken_down_in_advance(void **state)
{
    struct wb_update_options options = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct wb_expunge_stat stat;

    take_down(*state, "http://h.test/later", false);
    take_down(*state, "s.test", false);
    const char *urls[] = {"http://h.test/later", "http://h.test/other", "http://s.test/x", "http://s.test:81/x"};
    for (size_t i = 0; i < COUNT(urls); i++) {
        store_page(*state, urls[i], 1000, 90);
        assert_int_equal(in_store(*state, urls[i]), i % 2);
    }
    /* A page of a barred host can be let in by itself; taking down the host again ends that. */
    take_down(*state, "http://s.test/x", true);
    store_page(*state, "http://s.test/x", 1000, 90);
    store_page(*state, "http://s.test/y", 1000, 90);
    assert_true(in_store(*state, "http://s.test/x"));
    assert_false(in_store(*state, "http://s.test/y"));
    assert_int_equal(wb_expunge(&options, "http://s.test/x", true, NULL, NULL, NULL, &stat), WB_E_NOTFOUND);
    stat = take_down(*state, "s.test", false);
    assert_int_equal(stat.pages, 1);
    store_page(*state, "http://s.test/x", 2000, 90);
    assert_false(in_store(*state, "http://s.test/x"));
    /* Lifting the bar of a host lifts those of its pages. */
    take_down(*state, "http://s.test/y", false);
    take_down(*state, "s.test", true);
    store_page(*state, "http://s.test/x", 3000, 90);
    store_page(*state, "http://s.test/y", 3000, 90);
    assert_true(in_store(*state, "http://s.test/x") && in_store(*state, "http://s.test/y"));
}

/* Pages that only the store knows (nobody merged the journal), that only webdb knows, old versions of a snapshot.
 */
static void test_site_is_taken_down(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page pages[] = {fetched_page("http://h.test:81/both", now), known_page("http://h.test:81/heard"),
                                    fetched_page("http://h.test/", now)};
    struct wb_webdb_page page;
    struct wb_store *store = NULL;
    struct wb_store_stat counts;

    add_pages(*state, pages, 3);
    store_page(*state, "http://h.test:81/both", now - WB_DAY_MS, 90);
    store_page(*state, "http://h.test:81/stored", now, 90);
    store_page(*state, "http://h.test/", now, 90);
    seal(*state);
    store_body(*state, "http://h.test:81/both", "other bytes", now, 90);

    struct wb_expunge_stat stat = take_down(*state, "H.test:81", false);
    assert_int_equal(stat.pages, 2);
    assert_int_equal(stat.known, 1);
    assert_false(in_store(*state, "http://h.test:81/both"));
    assert_false(in_store(*state, "http://h.test:81/stored"));
    assert_true(in_store(*state, "http://h.test/"));
    ok(wb_store_open(*state, WB_STORE_READ, &store));
    ok(wb_store_stat(store, &counts));
    wb_store_close(store);
    assert_int_equal(counts.pages, 1);
    assert_int_equal(counts.versions, 1);
    const char *barred[] = {"http://h.test:81/both", "http://h.test:81/stored", "http://h.test:81/heard"};
    for (size_t i = 0; i < 3; i++)
        assert_true(get_page(*state, barred[i], &page) && page.flags & WB_PAGE_BARRED);
    assert_true(get_page(*state, "http://h.test/", &page) && page.has_content);
    take_down(*state, "h.test:81", true);
    for (size_t i = 0; i < 3; i++)
        assert_true(get_page(*state, barred[i], &page) && !(page.flags & WB_PAGE_BARRED));
}

static void test_unknown_names(void **state)
{
    struct wb_update_options options = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct wb_webdb_page page = known_page("http://h.test/");
    struct wb_expunge_stat stat;

    add_pages(*state, &page, 1);
    const char *unknown[] = {"http://h.test/never", "never.test", "h.test:81"};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_int_equal(wb_expunge(&options, unknown[i], true, NULL, NULL, NULL, &stat), WB_E_NOTFOUND);
        assert_non_null(strstr(wb_error_message(), unknown[i]));
    }
    assert_int_equal(wb_expunge(&options, "http://h.test/", true, NULL, NULL, NULL, &stat), WB_E_NOTFOUND);
    const char *nonsense[] = {"a b", "h/x", "", "ftp://h.test/x"};
    for (size_t i = 0; i < COUNT(nonsense); i++)
        assert_int_equal(wb_expunge(&options, nonsense[i], false, NULL, NULL, NULL, &stat), WB_E_INVALID);
    assert_true(get_page(*state, "http://h.test/", &page) && !(page.flags & WB_PAGE_BARRED));
}

/* Nothing was ever merged. */
static void test_without_webdb(void **state)
{
    struct wb_webdb_page page;

    store_page(*state, "http://h.test/a", 1000, 90);
    struct wb_expunge_stat stat = take_down(*state, "http://h.test/a", false);
    assert_int_equal(stat.pages, 1);
    assert_true(get_page(*state, "http://h.test/a", &page) && page.flags & WB_PAGE_BARRED);
    merge_all(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_REPOSITORY(test_what_leaves),
                                       IN_REPOSITORY(test_history_stays),
                                       IN_REPOSITORY(test_snapshots_lose_what_is_taken_down),
                                       IN_REPOSITORY(test_taken_up),
                                       IN_REPOSITORY(test_nothing_known),
                                       IN_REPOSITORY(test_page_is_taken_down),
                                       IN_REPOSITORY(test_barred_page_comes_back),
                                       IN_REPOSITORY(test_site_is_taken_down),
                                       IN_REPOSITORY(test_unknown_names),
                                       IN_REPOSITORY(test_without_webdb),
                                       IN_REPOSITORY(test_takedown_is_finished),
                                       IN_REPOSITORY(test_taken_down_in_advance)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
