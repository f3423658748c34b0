/*
 * test_generate.c - what is listed, and in which order: announced pages, expiring ones, then by value; what is no
 * candidate; budgets of classes; the notes for pages that expire.
 */
#include "cycle/thresholds.h"
#include "cycle_support.h"
#include "os/clock.h"

/* The clock's time when the tests begin: how long a site may be away is judged by the clock. */
static int64_t now_ms;
#define NOW_MS now_ms

static struct wb_generate_options options_for(const char *dir, uint64_t budget)
{
    /* Stored waits are believed up to a day: a site that waits for a day is away for longer than this. */
    return (struct wb_generate_options){
        .dir = dir, .budget = budget, .now_ms = NOW_MS, .horizon_ms = 3 * WB_DAY_MS / 4};
}

static int add_seed(void *context, const struct wb_seed *seed)
{
    return wb_buf_printf(context, "%.*s ", WB_SLICE_ARG(seed->url));
}

/* The URLs that a site is to be asked for, in order. */
static void assert_listed(const char *dir, const char *site, const char *urls)
{
    struct wb_dispenser *dispenser = NULL;
    struct wb_buf mem = WB_BUF_INIT, text = WB_BUF_INIT;
    struct wb_site_row row;

    ok(wb_dispenser_open(dir, NULL, &dispenser));
    ok(wb_dispenser_get(dispenser, wb_slice_str(site), &mem, &row));
    ok(wb_dispenser_seeds(dispenser, row.id, 0, add_seed, &text));
    ok(wb_buf_terminate(&text));
    assert_string_equal(text.ptr, urls);
    wb_dispenser_close(dispenser);
    wb_buf_release(&mem);
    wb_buf_release(&text);
}

/* One page of each sort; h.test is known, away.test waits, other.test nobody was told of. */
static void make_pages(const char *dir)
{
    struct wb_webdb_page pages[] = {
        fetched_page("http://h.test/changed", NOW_MS - 30 * WB_DAY_MS),
        fetched_page("http://h.test/expires", NOW_MS - 89 * WB_DAY_MS),
        fetched_page("http://h.test/expired", NOW_MS - 99 * WB_DAY_MS),
        fetched_page("http://h.test/gone", NOW_MS - 5 * WB_DAY_MS),
        fetched_page("http://h.test/just", NOW_MS - 1000),
        fetched_page("http://h.test/pushed", NOW_MS - 1000),
        known_page("http://h.test/barred"),
        known_page("http://h.test/blocked"),
        known_page("http://h.test/blocked-long-ago"),
        known_page("http://h.test/fresh"),
        known_page("http://h.test/image"),
        known_page("http://away.test/x"),
        known_page("http://other.test/x"),
        known_page("http://www.h.test/x"),
    };

    pages[1].expires_ms = NOW_MS + WB_DAY_MS / 2;
    pages[2].expires_ms = NOW_MS - 9 * WB_DAY_MS;
    pages[3].flags |= WB_PAGE_GONE;
    pages[5].flags |= WB_PAGE_PUSHED;
    pages[6].flags |= WB_PAGE_BARRED;
    pages[7].flags |= WB_PAGE_BLOCKED;
    pages[7].last_tried_ms = NOW_MS - WB_DAY_MS;
    pages[8].flags |= WB_PAGE_BLOCKED;
    pages[8].last_tried_ms = NOW_MS - 8 * WB_DAY_MS;
    pages[10].flags &= ~(unsigned)WB_PAGE_WANTED;
    add_pages(dir, pages, COUNT(pages));
    make_site(dir, "h.test", WB_SITE_DONE, 0);
    bar_in_store(dir, "http://h.test/barred", WB_STORE_BAR_PAGE);
    make_site(dir, "away.test", WB_SITE_WAITING, NOW_MS + WB_DAY_MS);
}

static void test_order(void **state)
{
    struct wb_generate_options options = options_for(*state, 0);
    struct wb_buf asked = WB_BUF_INIT;
    struct wb_generate g;

    make_pages(*state);
    ok(wb_generate(&options, NULL, &g));
    assert_listed(*state, "h.test",
                  "http://h.test/pushed http://h.test/expired http://h.test/expires http://h.test/blocked-long-ago "
                  "http://h.test/fresh "
                  "http://h.test/changed http://h.test/just ");
    assert_int_equal(g.known, 14);
    assert_int_equal(g.urls, 7);
    assert_int_equal(g.sites, 1);
    assert_int_equal(g.pushed, 1);
    assert_int_equal(g.expiring, 2);
    assert_int_equal(g.fresh, 2);
    assert_int_equal(g.due, 2);
    assert_int_equal(g.barred, 1);
    assert_int_equal(g.blocked, 1);
    assert_int_equal(g.outside, 2);
    assert_int_equal(g.early, 1);
    assert_true(g.run > 0);
    read_journal(*state, WB_EDIT_ASK, &asked);
    assert_string_equal(asked.ptr, "http://h.test/expired http://h.test/expires \n");
    wb_buf_release(&asked);
}

/* Webdb has no mark of what was barred before it was found; the store decides, and its exceptions count. */
static void test_barred_site(void **state)
{
    struct wb_generate_options options = options_for(*state, 0);
    struct wb_generate g;
    struct wb_webdb_page pages[] = {known_page("http://h.test/a"), known_page("http://s.test/a"),
                                    known_page("http://s.test/b")};
    struct wb_update_options update = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct wb_expunge_stat stat;

    bar_in_store(*state, "http://s.test/", WB_STORE_BAR_SITE);
    ok(wb_expunge(&update, "http://s.test/b", true, NULL, NULL, NULL, &stat));
    add_pages(*state, pages, COUNT(pages));
    make_site(*state, "h.test", WB_SITE_DONE, 0);
    make_site(*state, "s.test", WB_SITE_DONE, 0);
    ok(wb_generate(&options, NULL, &g));
    assert_listed(*state, "h.test", "http://h.test/a ");
    assert_listed(*state, "s.test", "http://s.test/b ");
    assert_int_equal(g.barred, 1);
}

static void test_budget(void **state)
{
    struct wb_generate_options options = options_for(*state, 4);
    struct wb_buf asked = WB_BUF_INIT;
    struct wb_generate g;

    make_pages(*state);
    ok(wb_generate(&options, NULL, &g));
    assert_listed(*state, "h.test",
                  "http://h.test/pushed http://h.test/expired http://h.test/expires http://h.test/blocked-long-ago ");
    assert_int_equal(g.urls, 4);
    options.budget = 2;
    ok(wb_generate(&options, NULL, &g));
    assert_listed(*state, "h.test", "http://h.test/pushed http://h.test/expired ");
    /* Only what was listed is asked for. */
    read_journal(*state, WB_EDIT_ASK, &asked);
    assert_string_equal(asked.ptr, "http://h.test/expired http://h.test/expires \nhttp://h.test/expired \n");
    wb_buf_release(&asked);
}

static int any_row(void *context, const struct wb_site_row *row)
{
    (void)context, (void)row;
    return 0;
}

/* A site that a crawl holds joins no list, so nobody is asked to fetch its page before it expires. */
static void test_held_site(void **state)
{
    struct wb_generate_options options = options_for(*state, 0);
    struct wb_webdb_page pages[] = {fetched_page("http://free.test/expired", NOW_MS - 99 * WB_DAY_MS),
                                    fetched_page("http://held.test/expired", NOW_MS - 99 * WB_DAY_MS)};
    struct wb_dispenser *dispenser = NULL;
    struct wb_buf asked = WB_BUF_INIT;
    struct wb_generate g;

    pages[0].expires_ms = pages[1].expires_ms = NOW_MS - 9 * WB_DAY_MS;
    add_pages(*state, pages, COUNT(pages));
    make_site(*state, "free.test", WB_SITE_DONE, 0);
    make_site(*state, "held.test", WB_SITE_DONE, 0);
    ok(wb_dispenser_open(*state, NULL, &dispenser));
    ok(wb_dispenser_borrow(dispenser, WB_SLICE_LIT("held.test"), WB_SLICE_LIT("http"), WB_SLICE_LIT("another crawl"),
                           WB_DAY_MS, any_row, NULL));
    ok(wb_generate(&options, NULL, &g));
    assert_listed(*state, "free.test", "http://free.test/expired ");
    read_journal(*state, WB_EDIT_ASK, &asked);
    assert_string_equal(asked.ptr, "http://free.test/expired \n");
    /* Nothing is left that can be listed. */
    ok(wb_dispenser_borrow(dispenser, WB_SLICE_LIT("free.test"), WB_SLICE_LIT("http"), WB_SLICE_LIT("another crawl"),
                           WB_DAY_MS, any_row, NULL));
    wb_buf_clear(&asked);
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.run, 0);
    read_journal(*state, WB_EDIT_ASK, &asked);
    assert_string_equal(asked.ptr, "http://free.test/expired \n");
    wb_dispenser_close(dispenser);
    wb_buf_release(&asked);
}

static void test_scope(void **state)
{
    struct wb_generate_options options = options_for(*state, 0);
    struct wb_generate g;

    make_pages(*state);
    options.scope = WB_SCOPE_DOMAIN;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.outside, 1);
    assert_listed(*state, "www.h.test", "http://www.h.test/x ");
    options.scope = WB_SCOPE_ANY;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.outside, 0);
    assert_listed(*state, "other.test", "http://other.test/x ");
    /* The site that waits is left alone until its time is near. */
    assert_int_equal(g.early, 1);
    options.horizon_ms = 4 * WB_DAY_MS;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.early, 0);
}

static void test_intervals(void **state)
{
    struct wb_generate_options options = options_for(*state, 0);
    struct wb_generate g;

    make_pages(*state);
    options.min_days = 1.0 / 24;
    options.max_days = 29;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.early, 2);
    /* Past the greatest interval: urgent, whatever it is worth. */
    assert_listed(*state, "h.test",
                  "http://h.test/pushed http://h.test/expired http://h.test/changed http://h.test/expires "
                  "http://h.test/blocked-long-ago "
                  "http://h.test/fresh ");
    options.tried_ms = NOW_MS - 31 * WB_DAY_MS;
    ok(wb_generate(&options, NULL, &g));
    /* Of a cycle that began then, all that was tried since is left alone, announced or not. */
    assert_listed(*state, "h.test", "http://h.test/expired http://h.test/expires http://h.test/fresh ");
}

/* Classes have fetches of their own; what they leave is for the others. */
static void test_classes(void **state)
{
    struct wb_generate_options options = options_for(*state, 10);
    struct wb_webdb_page pages[60];
    struct wb_thresholds thresholds;
    char urls[60][40];
    struct wb_generate g;
    char *seeds = wb_path_join(*state, "seeds");

    for (int i = 0; i < 60; i++) {
        snprintf(urls[i], sizeof urls[i], "http://%s/%02d", i < 20 ? "news.test" : i < 40 ? "slow.test" : "h.test", i);
        pages[i] = fetched_page(urls[i], NOW_MS - 5 * WB_DAY_MS);
        pages[i].score = 1 + i % 20;
    }
    add_pages(*state, pages, 60);
    ok(wb_path_replace(seeds,
                       WB_SLICE_LIT("class news fetches=3\nclass slow min=6d\nclass rare fetches=2\n"
                                    "http://news.test/ class=news\nhttp://slow.test/ class=slow\nhttp://h.test/\n")));
    options.seeds_file = seeds;
    ok(wb_generate(&options, NULL, &g));
    assert_listed(*state, "news.test", "http://news.test/19 http://news.test/18 http://news.test/17 ");
    assert_listed(*state, "h.test",
                  "http://h.test/59 http://h.test/58 http://h.test/57 http://h.test/56 http://h.test/55 "
                  "http://h.test/54 http://h.test/53 ");
    assert_int_equal(g.early, 20);
    ok(wb_thresholds_read(*state, NULL, NULL, &thresholds));
    assert_true(wb_thresholds_get(&thresholds, WB_REFRESH_OPTIMAL, WB_SLICE_EMPTY) == g.theta);
    assert_true(wb_thresholds_get(&thresholds, WB_REFRESH_OPTIMAL, WB_SLICE_LIT("news")) != g.theta);
    wb_thresholds_release(&thresholds);
    /* More than the budget: told, and the budget holds. */
    struct wb_buf warnings = WB_BUF_INIT;
    struct wb_cycle_sink sink = {NULL, gather_warning, &warnings};
    options.budget = 2;
    ok(wb_generate(&options, &sink, &g));
    assert_int_equal(g.urls, 2);
    ok(wb_buf_terminate(&warnings));
    assert_non_null(strstr(warnings.ptr, "budget"));
    wb_buf_release(&warnings);
    free(seeds);
}

/* The threshold settles where as many pages are due as can be visited. */
static void test_threshold_learns(void **state)
{
    struct wb_generate_options options = options_for(*state, 5);
    struct wb_webdb_page pages[100];
    char urls[100][40];
    struct wb_generate g;
    double last = 0;

    for (int i = 0; i < 100; i++) {
        snprintf(urls[i], sizeof urls[i], "http://h.test/%02d", i);
        pages[i] = fetched_page(urls[i], NOW_MS - 20 * WB_DAY_MS);
        pages[i].score = 1 + i;
    }
    add_pages(*state, pages, 100);
    make_site(*state, "h.test", WB_SITE_DONE, 0);
    for (int round = 0; round < 60; round++) {
        last = round ? g.theta : 0;
        ok(wb_generate(&options, NULL, &g));
        assert_int_equal(g.urls, 5);
    }
    assert_true(g.theta > 0 && g.theta / last < 1.2 && g.theta / last > 0.8);
    struct wb_update_options update = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct wb_webdb_merge merge;
    ok(wb_update(&update, NULL, &merge, NULL));
}

static void test_nothing_to_do(void **state)
{
    struct wb_generate_options options = options_for(*state, 5);
    struct wb_webdb_page page = known_page("http://other.test/x");
    struct wb_generate g;

    assert_int_equal(wb_generate(&options, NULL, &g), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "update"));
    add_pages(*state, &page, 1);
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.run, 0);
    assert_int_equal(g.urls, 0);
    assert_int_equal(g.known, 1);
}

/* Families of URLs without end: the guards of crawls stand here, too. */
static void test_traps(void **state)
{
    enum { SIMILAR = 120, CALENDAR = 1000, ALL = SIMILAR + CALENDAR + 4 };
    struct wb_generate_options options = options_for(*state, 0);
    struct wb_webdb_page *pages = calloc(ALL, sizeof *pages);
    char (*urls)[80] = calloc(ALL, sizeof *urls);
    struct wb_generate g;
    size_t n = 0;

    /* Sixty alike that were fetched, then sixty more of their kind. */
    for (int i = 0; i < SIMILAR; i++, n++) {
        snprintf(urls[n], sizeof urls[n], "http://h.test/similar/%04d", i);
        pages[n] = i < SIMILAR / 2 ? fetched_page(urls[n], NOW_MS - WB_DAY_MS) : known_page(urls[n]);
        pages[n].simhash = i < SIMILAR / 2 ? 0x123456789abcdef0 : 0;
        pages[n].depth = 3;
    }
    for (int i = 0; i < CALENDAR; i++, n++) {
        snprintf(urls[n], sizeof urls[n], "http://h.test/calendar/%d", 1000 + i);
        pages[n] = known_page(urls[n]);
        pages[n].depth = 3;
    }
    const char *others[] = {"http://h.test/a/a/a/a", "http://h.test/seed/seed/seed/seed",
                            "http://h.test/pushed/pushed/pushed/pushed", "http://h.test/fine"};
    for (int i = 0; i < 4; i++, n++) {
        pages[n] = known_page(others[i]);
        pages[n].depth = i == 1 ? 0 : 3;
        pages[n].flags |= i == 2 ? WB_PAGE_PUSHED : 0;
    }
    add_pages(*state, pages, ALL);
    make_site(*state, "h.test", WB_SITE_DONE, 0);
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.trapped, SIMILAR / 2 + (CALENDAR - 800) + 1);
    assert_int_equal(g.due, SIMILAR / 2);
    assert_int_equal(g.pushed, 1);
    assert_int_equal(g.urls, ALL - g.trapped);
    free(pages);
    free(urls);
}

/* Links of one kind that led nowhere do not come before pages that are to be looked at again. */
static void test_dead_family(void **state)
{
    struct wb_generate_options options = options_for(*state, 40);
    struct wb_webdb_page pages[140];
    char urls[140][40];
    struct wb_generate g;

    for (int i = 0; i < 140; i++) {
        snprintf(urls[i], sizeof urls[i], "http://h.test/%s/%03d", i < 100 ? "dead" : "live", i);
        pages[i] = i < 100 ? known_page(urls[i]) : fetched_page(urls[i], NOW_MS - 60 * WB_DAY_MS);
        pages[i].depth = 2;
        if (i < 60) {
            pages[i].flags |= WB_PAGE_GONE;
            pages[i].outcome = WB_OUTCOME_GONE;
            pages[i].last_tried_ms = NOW_MS - WB_DAY_MS;
        }
    }
    add_pages(*state, pages, 140);
    make_site(*state, "h.test", WB_SITE_DONE, 0);
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.due, 40);
    options.budget = 100;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.fresh, 40);
}

/* What a site cannot be asked for in the time there is, and what may never come, does not take the places of others. */
static void test_sites_have_limits(void **state)
{
    struct wb_generate_options options = options_for(*state, 40);
    struct wb_webdb_page pages[90];
    char urls[90][40];
    struct wb_generate g;

    for (int i = 0; i < 90; i++) {
        snprintf(urls[i], sizeof urls[i], "http://%s/%02d", i < 30 ? "away.test" : i < 60 ? "h.test" : "i.test", i);
        pages[i] = known_page(urls[i]);
        pages[i].score = 100 - i;
        pages[i].depth = (uint16_t)(i % 3);
    }
    add_pages(*state, pages, 90);
    make_site(*state, "away.test", WB_SITE_REFUSED, 0);
    make_site(*state, "h.test", WB_SITE_DONE, 0);
    make_site(*state, "i.test", WB_SITE_DONE, 0);
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.urls, 40);
    assert_int_equal(g.sites, 2);
    assert_listed(*state, "away.test",
                  "http://away.test/00 http://away.test/01 http://away.test/02 http://away.test/03 http://away.test/04 "
                  "http://away.test/05 "
                  "http://away.test/06 http://away.test/07 http://away.test/08 http://away.test/09 ");
    options.period_ms = 60000;
    options.delay_ms = 20000;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(
        g.urls, 3 * 3); /* the list has made the site that was away one like the others, until it is refused again */
    assert_listed(*state, "i.test", "http://i.test/60 http://i.test/61 http://i.test/62 ");
    options.depth_limit = 2;
    ok(wb_generate(&options, NULL, &g));
    assert_int_equal(g.outside, 30);
    assert_listed(*state, "i.test", "http://i.test/60 http://i.test/61 http://i.test/63 ");
}

static bool stop(void *context, const char *step, uint64_t done, uint64_t total)
{
    (void)context, (void)step, (void)done, (void)total;
    return false;
}

static void test_stopped(void **state)
{
    struct wb_generate_options options = options_for(*state, 5);
    struct wb_cycle_sink sink = {stop, NULL, NULL};
    struct wb_generate g;

    make_pages(*state);
    assert_int_equal(wb_generate(&options, &sink, &g), WB_E_STOPPED);
    assert_listed(*state, "h.test", "");
}

int main(void)
{
    now_ms = wb_clock_wall_ms();
    const struct CMUnitTest tests[] = {IN_REPOSITORY(test_order),
                                       IN_REPOSITORY(test_budget),
                                       IN_REPOSITORY(test_held_site),
                                       IN_REPOSITORY(test_scope),
                                       IN_REPOSITORY(test_intervals),
                                       IN_REPOSITORY(test_classes),
                                       IN_REPOSITORY(test_threshold_learns),
                                       IN_REPOSITORY(test_nothing_to_do),
                                       IN_REPOSITORY(test_stopped),
                                       IN_REPOSITORY(test_traps),
                                       IN_REPOSITORY(test_dead_family),
                                       IN_REPOSITORY(test_sites_have_limits),
                                       IN_REPOSITORY(test_barred_site)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
