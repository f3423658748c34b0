/*
 * test_fetchlist.c - fetch lists in the dispenser: what a commit does to rows in every state, classes, scopes, and
 * tables that the previous version of the program made.
 */
#include "../dispenser/dispenser_support.h"
#include "crawl/crawl.h"
#include "os/clock.h"
#include "os/fault.h"
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

enum { HOUR_MS = 3600 * 1000 };

/* A place (dispenser_support.h) whose folder is a repository. */
static int set_up_repository(void **state)
{
    int err = set_up_place(state);
    struct place *p = *state;

    if (err)
        return err;
    snprintf(p->dir + strlen(p->dir), 8, "/repo");
    must_ok(wb_store_create(p->dir, NULL));
    reopen_place(p);
    if (!p->postgres)
        must_ok(begin_run(p->d, &p->run));
    return 0;
}

static int tear_down_repository(void **state)
{
    struct place *p = *state;

    p->dir[strlen(p->dir) - (strstr(p->dir, "/repo") ? strlen("/repo") : 0)] = '\0';
    return tear_down_place(state); /* removes the whole folder */
}

#define REPOSITORY(test)                                                                              \
    {#test " (sqlite)", test, set_up_repository, tear_down_repository, (void *)"sqlite"},             \
        {#test " (postgres)", test, set_up_repository, tear_down_repository, (void *)"postgres"}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

struct warnings {
    unsigned count;
    char last[256];
};

static void take_warning(void *context, const char *message)
{
    struct warnings *w = context;

    w->count++;
    snprintf(w->last, sizeof w->last, "%s", message);
}

static struct wb_fetchlist *open_list(const struct place *p, const char *seeds)
{
    struct wb_fetchlist *list = NULL;
    struct warnings warnings = {0};
    char path[160];

    snprintf(path, sizeof path, "%s/seeds.txt", p->dir);
    if (seeds) {
        FILE *f = fopen(path, "w");
        must(f && fputs(seeds, f) >= 0 && fclose(f) == 0);
    }
    must_ok(wb_fetchlist_open(p->dir, p->postgres ? p->url : NULL, seeds ? path : NULL, take_warning, &warnings,
                              &list));
    must(warnings.count == 0);
    return list;
}

/* Makes a list of URLs that are separated by blanks, and returns its run. */
static int64_t commit_list(const struct place *p, const char *urls, struct wb_dispenser_list_stat *stat_out)
{
    struct wb_fetchlist *list = open_list(p, NULL);
    struct wb_dispenser_list_stat stat;
    char copy[1024];
    int64_t run;
    uint16_t depth = 0;

    snprintf(copy, sizeof copy, "%s", urls);
    for (char *url = strtok(copy, " "); url; url = strtok(NULL, " "))
        must_ok(wb_fetchlist_add(list, wb_slice_str(url), depth++));
    set_clock(wb_clock_wall_ms());
    must_ok(wb_fetchlist_commit(list, &run, stat_out ? stat_out : &stat));
    wb_fetchlist_close(list);
    check_tables(p);
    return run;
}

struct seed_text {
    char text[1024];
    int64_t last;
};

static int join_seed(void *context, const struct wb_seed *seed)
{
    struct seed_text *s = context;
    size_t len = strlen(s->text);

    must(seed->id > s->last);
    s->last = seed->id;
    snprintf(s->text + len, sizeof s->text - len, "%s%.*s@%u", len ? " " : "", WB_SLICE_ARG(seed->url),
             seed->depth.links);
    return 0;
}

/* The seeds of a site with their depths, in order. */
static const char *seeds_of(const struct place *p, const char *name)
{
    static struct seed_text s;

    s = (struct seed_text){.last = 0};
    must_ok(wb_dispenser_seeds(p->d, row_of(p->d, name).id, 0, join_seed, &s));
    return s.text;
}

static void test_commit(void **state)
{
    PLACE(p);
    struct wb_dispenser_list_stat stat;

    add_site(p, "a.org", "10.0.0.1", 0);
    add_seed(p->d, p->run, "a.org", "http://a.org/old", false);
    int64_t run = commit_list(p,
                              "http://a.org/z http://a.org/y#part http://a.org/x http://a.org/z "
                              "https://new.org:8443/1",
                              &stat);
    assert_int_equal(run, p->run + 1);
    assert_true(stat.sites == 2 && stat.urls == 5 && stat.busy == 0);
    /* The site has these seeds and no others, in the order of the list, each once. */
    assert_string_equal(seeds_of(p, "a.org"), "http://a.org/z@0 http://a.org/y@1 http://a.org/x@2");
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_true(row.run == run && row.state == WB_SITE_READY && row.seeds_taken == 0 && row.listed > row.visit);
    row = row_of(p->d, "new.org:8443");
    assert_true(row.run == run && row.state == WB_SITE_UNRESOLVED && row.listed > 0 &&
                wb_slice_equal(row.scheme, WB_SLICE_LIT("https")));
    assert_string_equal(seeds_of(p, "new.org:8443"), "https://new.org:8443/1@4");
    /* The same list once more gives another run, and changes nothing else. */
    int64_t again = commit_list(p, "http://a.org/z http://a.org/y http://a.org/x", &stat);
    assert_true(again > run && stat.sites == 1 && stat.urls == 3);
    assert_string_equal(seeds_of(p, "a.org"), "http://a.org/z@0 http://a.org/y@1 http://a.org/x@2");
    assert_true(row_of(p->d, "a.org").run == again && row_of(p->d, "a.org").state == WB_SITE_READY &&
                row_of(p->d, "new.org:8443").run == run);
    /* An empty list makes no run. */
    assert_int_equal(commit_list(p, "", &stat), 0);
    assert_int_equal(stat.sites, 0);
}

/* The URLs of one site are in two places of a list. */
static void test_scattered(void **state)
{
    PLACE(p);
    struct wb_dispenser_list_stat stat;

    add_site(p, "a.org", "10.0.0.1", 0);
    commit_list(p, "http://a.org/1 http://b.org/1 http://a.org/2 http://b.org/2 http://a.org/1", &stat);
    assert_true(stat.sites == 2 && stat.urls == 5);
    assert_string_equal(seeds_of(p, "a.org"), "http://a.org/1@0 http://a.org/2@2");
    assert_string_equal(seeds_of(p, "b.org"), "http://b.org/1@1 http://b.org/2@3");
}

static void report_state(const struct place *p, const char *name, enum wb_site_state site_state, int64_t next_ms)
{
    struct told told = {0};
    struct wb_site_report report = report_of(row_of(p->d, name).id, site_state);

    report.next_ms = next_ms;
    report.seeds_taken = 1000;
    must_ok(borrow_until(p->d, wb_slice_str(name), WB_SLICE_LIT("http"), WB_SLICE_LIT("me"), 0, HOUR_MS, tell, &told));
    must_ok(report_one(p->d, "me", report));
}

static void test_states(void **state)
{
    PLACE(p);
    int64_t now = wb_clock_wall_ms();
    struct wb_dispenser_list_stat stat;
    struct told told = {0};

    static const char *const names[] = {"done.org", "alias.org", "refused.org", "waits.org", "live.org", "dead.org",
                                        "guest.org"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.0.%zu", i + 1);
        add_site(p, names[i], address, 0);
    }
    report_state(p, "done.org", WB_SITE_DONE, 0);
    report_state(p, "alias.org", WB_SITE_ALIAS, 0);
    report_state(p, "refused.org", WB_SITE_REFUSED, 0);
    report_state(p, "waits.org", WB_SITE_WAITING, now + HOUR_MS);
    must_ok(borrow_until(p->d, WB_SLICE_LIT("live.org"), WB_SLICE_LIT("http"), WB_SLICE_LIT("alive"), now,
                         now + HOUR_MS, tell, &told));
    must_ok(borrow_until(p->d, WB_SLICE_LIT("dead.org"), WB_SLICE_LIT("http"), WB_SLICE_LIT("slow"), 0, now - 1, tell,
                         &told));
    int64_t run = commit_list(p,
                              "http://done.org/1 http://alias.org/1 http://refused.org/1 http://waits.org/1 "
                              "http://live.org/1 http://dead.org/1",
                              &stat);
    assert_true(stat.sites == 5 && stat.busy == 1 && stat.urls == 5);
    static const char *const anew[] = {"done.org", "alias.org", "refused.org"};
    for (size_t i = 0; i < COUNT(anew); i++) {
        struct wb_site_row row = row_of(p->d, anew[i]);
        /* The address of a finished site is still valid; the names of the others are looked up again. */
        assert_true(row.state == (i == 0 ? WB_SITE_READY : WB_SITE_UNRESOLVED) && row.run == run);
        assert_true(row.seeds_taken == 0 && row.listed > row.visit && row.reason.len == 0);
    }
    struct wb_site_row waits = row_of(p->d, "waits.org");
    assert_true(waits.state == WB_SITE_WAITING && waits.next_ms == now + HOUR_MS && waits.run == run &&
                waits.listed > waits.visit);
    /* A process that holds a site keeps it, with everything that the site has. */
    struct wb_site_row live = row_of(p->d, "live.org");
    assert_true(live.state == WB_SITE_CLAIMED && live.run == p->run && live.listed == 0);
    assert_string_equal(seeds_of(p, "live.org"), "http://live.org/@0");
    /* A process whose lease has ended has lost the site. */
    assert_true(row_of(p->d, "dead.org").state == WB_SITE_READY && row_of(p->d, "dead.org").listed > 0);
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("slow"), now + HOUR_MS), WB_E_BUSY);
    assert_int_equal(row_of(p->d, "guest.org").run, p->run);
    /* Its report comes too late, and changes nothing but the trail. */
    struct wb_site_report late = report_of(row_of(p->d, "dead.org").id, WB_SITE_DONE);
    late.trail = (struct wb_site_trail){3, 64};
    late.trail_ms = now;
    must_ok(report_one(p->d, "slow", late));
    assert_true(row_of(p->d, "dead.org").state == WB_SITE_READY && row_of(p->d, "dead.org").trail.log == 3);
    /* A claim for the run gets only sites of the run. */
    must(claim(p->d, run, "worker", now, now + HOUR_MS, 10, &told) == 2);
    assert_string_equal(told.last_name, "dead.org");
    assert_true(told.last.listed > told.last.visit);
    check_tables(p);
}

/* A listed visit has a higher number than every visit that may have begun, reported or not. */
static void test_numbers(void **state)
{
    PLACE(p);
    struct told told = {0};

    int64_t id = add_site(p, "a.org", "10.0.0.1", 0);
    commit_list(p, "http://a.org/1", NULL);
    uint32_t first = row_of(p->d, "a.org").listed;
    assert_true(first > 1); /* visit 1 may have begun, and its process died before it could tell */
    commit_list(p, "http://a.org/2", NULL);
    uint32_t second = row_of(p->d, "a.org").listed;
    assert_true(second > first); /* so may this one */
    int64_t run = commit_list(p, "http://a.org/3", NULL);
    uint32_t third = row_of(p->d, "a.org").listed;
    must(claim(p->d, run, "w", 0, HOUR_MS, 1, &told) == 1);
    struct wb_site_report report = report_of(id, WB_SITE_DONE);
    report.visit = third;
    must_ok(report_one(p->d, "w", report));
    assert_true(row_of(p->d, "a.org").state == WB_SITE_DONE && row_of(p->d, "a.org").visit == third);
    commit_list(p, "http://a.org/4", NULL);
    assert_true(row_of(p->d, "a.org").listed > third);
}

static void test_newest(void **state)
{
    PLACE(p);
    struct told told = {0};
    int64_t newest;

    must_ok(wb_dispenser_newest_list(p->d, &newest));
    assert_int_equal(newest, 0);
    add_site(p, "a.org", "10.0.0.1", 0);
    add_site(p, "b.org", "10.0.0.2", 0);
    int64_t first = commit_list(p, "http://a.org/1 http://b.org/1", NULL);
    int64_t second = commit_list(p, "http://a.org/1", NULL);
    must_ok(wb_dispenser_newest_list(p->d, &newest));
    assert_int_equal(newest, second);
    must(claim(p->d, second, "w", 0, HOUR_MS, 1, &told) == 1);
    must_ok(report_one(p->d, "w", report_of(told.ids[0], WB_SITE_DONE)));
    must_ok(wb_dispenser_newest_list(p->d, &newest));
    assert_int_equal(newest, first);
}

/* ---- beside crawls of seeds -------------------------------------------------------------------------------------- */

static int64_t enter(struct place *p, const char *name, bool all, int64_t *goes_on_out)
{
    char url[64];
    struct wb_seed seed;
    struct wb_site_plan plan = {.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"),
                                .class_name = WB_SLICE_EMPTY, .priority = INT_MIN,
                                .delay_ms = -2, .budget = -2, .seeds = &seed, .seed_count = 1, .revisit = true};
    struct wb_run_plan wish = {.plans = &plan, .count = name[0] != '\0', .all = all};
    int64_t run;

    snprintf(url, sizeof url, "http://%s/", name);
    seed = (struct wb_seed){.url = wb_slice_str(url)};
    must_ok(wb_dispenser_enter_run(p->d, &wish, &run, goes_on_out));
    check_tables(p);
    return run;
}

/* A crawl of seeds never joins the run of a list; visits of its sites become plain ones. */
static void test_plain_again(void **state)
{
    PLACE(p);
    int64_t goes_on;

    add_site(p, "a.org", "10.0.0.1", 0);
    add_site(p, "b.org", "10.0.0.2", 0);
    int64_t list = commit_list(p, "http://a.org/1 http://a.org/2 http://b.org/1", NULL);
    uint32_t listed = row_of(p->d, "a.org").listed;
    int64_t run = enter(p, "a.org", false, &goes_on);
    assert_true(run > list && goes_on == 0);
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_true(row.run == run && row.listed == 0 && row.visit > listed && row.state == WB_SITE_READY &&
                row.seeds_taken == 0);
    assert_string_equal(seeds_of(p, "a.org"), "http://a.org/1@0 http://a.org/2@1 http://a.org/@0");
    assert_true(row_of(p->d, "b.org").run == list && row_of(p->d, "b.org").listed > 0);
    /* A crawl of everything continues the newest run of seeds, not that of the list. */
    assert_true(commit_list(p, "http://b.org/1", NULL) > run);
    assert_int_equal(enter(p, "a.org", true, &goes_on), run);
    assert_int_equal(goes_on, run);
    /* Unfinished sites of a list join, and their visits stay listed. */
    must_ok(wb_dispenser_join_run(p->d, run, true, WB_SLICE_EMPTY));
    assert_true(row_of(p->d, "b.org").run == run && row_of(p->d, "b.org").listed > 0);
}

/* If a listed visit finds a link to a finished site, that site is asked for this link only. */
static void test_found(void **state)
{
    PLACE(p);
    struct wb_seed seed = {.url = WB_SLICE_LIT("http://b.org/found"), .depth.links = 3};
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("b.org"), .scheme = WB_SLICE_LIT("http"),
                                .class_name = WB_SLICE_EMPTY, .priority = INT_MIN, .delay_ms = -2, .budget = -2,
                                .seeds = &seed, .seed_count = 1, .by_link = true, .listed = true};
    uint64_t added;

    add_site(p, "a.org", "10.0.0.1", 0);
    add_site(p, "b.org", "10.0.0.2", 0);
    report_state(p, "b.org", WB_SITE_DONE, 0);
    int64_t before = row_of(p->d, "b.org").id, run = commit_list(p, "http://a.org/1", NULL);
    must_ok(wb_dispenser_add(p->d, run, &plan, 1, &added));
    struct wb_site_row row = row_of(p->d, "b.org");
    assert_true(added == 0 && row.id == before && row.run == run && row.state == WB_SITE_UNRESOLVED &&
                row.listed > row.visit);
    struct seed_text s = {.last = 0};
    must_ok(wb_dispenser_seeds(p->d, row.id, row.seeds_taken, join_seed, &s));
    assert_string_equal(s.text, "http://b.org/found@3");
    plan.name = WB_SLICE_LIT("c.org");
    seed.url = WB_SLICE_LIT("http://c.org/found");
    must_ok(wb_dispenser_add(p->d, run, &plan, 1, &added));
    assert_true(added == 1 && row_of(p->d, "c.org").listed > 0 && row_of(p->d, "c.org").run == run);
    check_tables(p);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

static struct wb_listed_site site_of(const struct wb_fetchlist *list, const char *name)
{
    struct wb_listed_site site;

    wb_fetchlist_site(list, wb_slice_str(name), &site);
    return site;
}

static void test_facts(void **state)
{
    PLACE(p);
    int64_t now = wb_clock_wall_ms();
    struct told told = {0};

    add_site(p, "www.open.co.uk", "10.0.0.1", 0);
    add_site(p, "done.org", "10.0.0.2", 0);
    add_site(p, "waits.org", "10.0.0.3", 0);
    add_site(p, "due.org", "10.0.0.4", 0);
    add_site(p, "refused.org", "10.0.0.5", 0);
    add_site(p, "alias.org", "10.0.0.6", 0);
    report_state(p, "done.org", WB_SITE_DONE, 0);
    report_state(p, "waits.org", WB_SITE_WAITING, now + HOUR_MS);
    report_state(p, "due.org", WB_SITE_WAITING, now - HOUR_MS);
    report_state(p, "refused.org", WB_SITE_REFUSED, 0);
    report_state(p, "alias.org", WB_SITE_ALIAS, 0);
    /* A finished site that is borrowed, and a site that was only ever borrowed. */
    must_ok(borrow_until(p->d, WB_SLICE_LIT("done.org"), WB_SLICE_LIT("http"), WB_SLICE_LIT("g"), now, now + HOUR_MS,
                         tell, &told));
    must_ok(borrow_until(p->d, WB_SLICE_LIT("lent.net"), WB_SLICE_LIT("http"), WB_SLICE_LIT("g"), now, now + HOUR_MS,
                         tell, &told));
    struct wb_fetchlist *list = open_list(p, NULL);
    assert_int_equal(site_of(list, "www.open.co.uk").state, WB_LISTED_OPEN);
    assert_int_equal(site_of(list, "done.org").state, WB_LISTED_DONE);
    assert_int_equal(site_of(list, "waits.org").state, WB_LISTED_AWAY);
    assert_int_equal(site_of(list, "waits.org").next_ms, now + HOUR_MS);
    assert_int_equal(site_of(list, "due.org").state, WB_LISTED_OPEN);
    assert_int_equal(site_of(list, "refused.org").state, WB_LISTED_AWAY);
    assert_int_equal(site_of(list, "alias.org").state, WB_LISTED_ALIAS);
    assert_int_equal(site_of(list, "lent.net").state, WB_LISTED_UNKNOWN);
    assert_int_equal(site_of(list, "open.co.uk").state, WB_LISTED_UNKNOWN);
    assert_int_equal(site_of(list, "").state, WB_LISTED_UNKNOWN);
    assert_true(site_of(list, "done.org").class_at == SIZE_MAX);
    assert_true(wb_fetchlist_domain(list, WB_SLICE_LIT("open.co.uk")));
    assert_true(wb_fetchlist_domain(list, WB_SLICE_LIT("done.org")));
    assert_false(wb_fetchlist_domain(list, WB_SLICE_LIT("lent.net")));
    assert_false(wb_fetchlist_domain(list, WB_SLICE_LIT("co.uk")));
    assert_int_equal(wb_fetchlist_add(list, WB_SLICE_LIT("ftp://done.org/"), 0), WB_E_INVALID);
    assert_int_equal(wb_fetchlist_add(list, WB_SLICE_LIT("nonsense"), 0), WB_E_INVALID);
    wb_fetchlist_close(list);
}

static void test_seeds_file(void **state)
{
    PLACE(p);
    size_t count;
    struct wb_dispenser_list_stat stat;
    int64_t run;

    add_site(p, "old.org", "10.0.0.1", 0);
    report_state(p, "old.org", WB_SITE_DONE, 0);
    struct wb_fetchlist *list = open_list(p, "class news fetches=100 delay=2 min=10m max=1d # often\n"
                                             "class slow delay=20 budget=7\n"
                                             "http://old.org/seed class=news\n"
                                             "http://fresh.org/ class=slow\n"
                                             "http://fresh.org/2\n");
    const struct wb_site_class *classes = wb_fetchlist_classes(list, &count);
    assert_int_equal(count, 2);
    assert_true(wb_slice_equal(classes[0].name, WB_SLICE_LIT("news")) && classes[0].fetches == 100 &&
                classes[0].delay_ms == 2000);
    assert_true(classes[0].min_ms == 600 * 1000 && classes[0].max_ms == 24 * HOUR_MS);
    assert_true(wb_slice_equal(classes[1].name, WB_SLICE_LIT("slow")) && classes[1].fetches == -1 &&
                classes[1].delay_ms == 20000);
    assert_true(classes[1].min_ms == 0 && classes[1].max_ms == 0);
    assert_true(site_of(list, "old.org").class_at == 0 && site_of(list, "old.org").state == WB_LISTED_DONE);
    assert_true(site_of(list, "fresh.org").class_at == 1 && site_of(list, "fresh.org").state == WB_LISTED_OPEN);
    /* No visit began, and no site moved to another run. */
    assert_true(row_of(p->d, "old.org").run == p->run && row_of(p->d, "old.org").delay_ms == 2000);
    assert_string_equal(seeds_of(p, "old.org"), "http://old.org/@0");
    assert_true(row_of(p->d, "fresh.org").run > p->run && row_of(p->d, "fresh.org").budget == 7);
    /* A site that no visit has reached begins with its seeds, even if the list has no URL of it. */
    must_ok(wb_fetchlist_add(list, WB_SLICE_LIT("http://old.org/due"), 1));
    must_ok(wb_fetchlist_commit(list, &run, &stat));
    assert_true(stat.sites == 2 && stat.urls == 1);
    assert_true(row_of(p->d, "fresh.org").run == run && row_of(p->d, "fresh.org").listed > 0);
    assert_string_equal(seeds_of(p, "fresh.org"), "http://fresh.org/@0 http://fresh.org/2@0");
    assert_string_equal(seeds_of(p, "old.org"), "http://old.org/due@1");
    wb_fetchlist_close(list);
    /* The dispenser remembers classes without the file; another file can give them another meaning. */
    list = open_list(p, NULL);
    (void)wb_fetchlist_classes(list, &count);
    assert_int_equal(count, 2);
    wb_fetchlist_close(list);
    list = open_list(p, "class news fetches=5\n");
    classes = wb_fetchlist_classes(list, &count);
    assert_true(count == 2 && classes[0].fetches == 5 && classes[0].min_ms == 0 && classes[0].delay_ms == -1);
    wb_fetchlist_close(list);
    check_tables(p);
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

static int count_row(void *context, const struct wb_site_row *row)
{
    int64_t *last = context;

    must(row->id > last[1]);
    last[0]++;
    last[1] = row->id;
    return 0;
}

static void test_many(void **state)
{
    PLACE(p);
    enum { SITES = 9000 };
    struct wb_fetchlist *list = open_list(p, NULL);
    struct wb_dispenser_list_stat stat;
    int64_t run, seen[2] = {0, 0};

    for (int i = 0; i < SITES; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://s%d.org/page", i);
        must_ok(wb_fetchlist_add(list, wb_slice_str(url), 0));
    }
    must_ok(wb_fetchlist_commit(list, &run, &stat));
    assert_int_equal(stat.sites, SITES);
    wb_fetchlist_close(list);
    add_site(p, "other.org", NULL, 0);
    must_ok(wb_dispenser_each(p->d, run, count_row, seen));
    assert_int_equal(seen[0], SITES);
    seen[0] = seen[1] = 0;
    must_ok(wb_dispenser_each(p->d, 0, count_row, seen));
    assert_int_equal(seen[0], SITES + 1);
    list = open_list(p, NULL);
    for (int i = 0; i < SITES; i += 7) {
        char name[64];
        snprintf(name, sizeof name, "s%d.org", i);
        must(site_of(list, name).state == WB_LISTED_OPEN && wb_fetchlist_domain(list, wb_slice_str(name)));
    }
    wb_fetchlist_close(list);
    check_tables(p);
}

/* Every allocation fails once: the message says so, and nothing is left half done. */
static void test_memory(void **state)
{
    PLACE(p);
    bool struck = true;
    char path[160];

    add_site(p, "a.org", "10.0.0.1", 0);
    snprintf(path, sizeof path, "%s/seeds.txt", p->dir);
    FILE *f = fopen(path, "w");
    must(f && fputs("class news fetches=3 min=1h\nhttp://b.org/ class=news\n", f) >= 0 && fclose(f) == 0);
    for (uint64_t nth = 1; struck; nth++) {
        struct wb_fetchlist *list = NULL;
        struct warnings warnings = {0};
        struct wb_dispenser_list_stat stat;
        int64_t run = 0;
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = wb_fetchlist_open(p->dir, NULL, path, take_warning, &warnings, &list);
        if (err == 0)
            err = wb_fetchlist_add(list, WB_SLICE_LIT("http://a.org/1"), 0);
        if (err == 0)
            err = wb_fetchlist_commit(list, &run, &stat);
        struck = wb_fault_struck();
        wb_fault_disarm();
        must(err == (struck ? WB_E_NOMEM : 0) && (err == 0) == (run != 0));
        wb_fetchlist_close(list);
    }
    assert_string_equal(seeds_of(p, "a.org"), "http://a.org/1@0");
    check_tables(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPOSITORY(test_commit),
        REPOSITORY(test_scattered),
        REPOSITORY(test_states),
        REPOSITORY(test_numbers),
        REPOSITORY(test_newest),
        REPOSITORY(test_plain_again),
        REPOSITORY(test_found),
        REPOSITORY(test_facts),
        REPOSITORY(test_seeds_file),
        REPOSITORY(test_many),
        {"test_memory", test_memory, set_up_repository, tear_down_repository, (void *)"sqlite"},
    };

    return cmocka_run_group_tests_name("fetch lists", tests, NULL, end_server);
}
