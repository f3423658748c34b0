/*
 * test_dispenser_runs.c - which run a crawl takes part in: a new one, an unfinished one that it continues, or a new one
 * that takes over a part of an unfinished one.
 */
#include "dispenser_support.h"

#include <limits.h>

enum { SEEDS_MAX = 8 };

struct entered {
    int64_t run, goes_on;
};

/* Starts a crawl with these seeds. names: sites, separated by blanks. */
static struct entered enter(struct wb_dispenser *d, const char *names, const char *domain, bool all)
{
    struct wb_site_plan plans[SEEDS_MAX];
    struct wb_seed seeds[SEEDS_MAX];
    char text[SEEDS_MAX][64], copy[256], *domains[1] = {(char *)(uintptr_t)domain};
    struct wb_run_plan wish = {.plans = plans, .domains = domains, .domain_count = domain != NULL, .all = all};
    struct entered e;

    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
        size_t i = wish.count++;
        snprintf(text[i], sizeof text[i], "http://%s/", name);
        seeds[i] = (struct wb_seed){.url = wb_slice_str(text[i])};
        plans[i] = (struct wb_site_plan){.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"),
                                         .class_name = WB_SLICE_EMPTY, .priority = INT_MIN,
                                         .delay_ms = -2, .budget = -2, .seeds = &seeds[i], .seed_count = 1,
                                         .revisit = true};
    }
    must_ok(wb_dispenser_enter_run(d, &wish, &e.run, &e.goes_on));
    for (size_t i = 0; i < wish.count; i++)
        must(plans[i].continues == e.goes_on);
    return e;
}

/* Ends the visit of a site. */
static void finish(struct place *p, const char *name, int64_t run, enum wb_site_state state)
{
    struct told told = {0};
    struct wb_site_row row = row_of(p->d, name);
    struct wb_site_report report = {.id = row.id, .state = state, .reason = WB_SLICE_EMPTY, .alias_of = WB_SLICE_EMPTY,
                                    .probe = WB_SLICE_EMPTY,
                                    .home = WB_SLICE_EMPTY, .visit = 1, .seeds_taken = INT64_MAX, .pages = 3};

    must_ok(borrow_until(p->d, wb_slice_str(name), WB_SLICE_LIT("http"), WB_SLICE_LIT("me"), 0, LEASE, tell, &told));
    must_ok(wb_dispenser_report(p->d, WB_SLICE_LIT("me"), &report, 1));
    must(row_of(p->d, name).state == state && row_of(p->d, name).run == run);
}

static int state_of(struct place *p, const char *name)
{
    return (int)row_of(p->d, name).state;
}

static void test_same_seeds(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "a.org b.org b.org", NULL, false);

    assert_int_equal(first.goes_on, 0);
    assert_int_equal(first.run, p->run + 1);
    finish(p, "a.org", first.run, WB_SITE_DONE);
    /* It was interrupted or is still under way: it is the same run, and what is finished stays finished. */
    struct entered second = enter(p->d, "b.org a.org", NULL, false);
    assert_int_equal(second.run, first.run);
    assert_int_equal(second.goes_on, first.run);
    assert_int_equal(state_of(p, "a.org"), WB_SITE_DONE);
    finish(p, "b.org", first.run, WB_SITE_DONE);
    /* It is finished: the next crawl gets a new run. */
    struct entered third = enter(p->d, "a.org b.org", NULL, false);
    assert_int_equal(third.run, first.run + 1);
    assert_int_equal(third.goes_on, 0);
    assert_true(state_of(p, "a.org") == WB_SITE_UNRESOLVED && state_of(p, "b.org") == WB_SITE_UNRESOLVED);
    check_tables(p);
}

static void test_part(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "a.org b.org c.org", NULL, false);

    finish(p, "a.org", first.run, WB_SITE_DONE);
    /* A crawl of only the finished sites continues nothing: they are visited again, and the others are left alone. */
    struct entered alone = enter(p->d, "a.org", NULL, false);
    assert_true(alone.run > first.run && alone.goes_on == 0);
    assert_int_equal(state_of(p, "a.org"), WB_SITE_UNRESOLVED);
    assert_int_equal(row_of(p->d, "b.org").run, first.run);
    /* A new run takes over a part that is not finished. */
    struct entered part = enter(p->d, "b.org", NULL, false);
    assert_true(part.run > alone.run && part.goes_on == first.run);
    assert_int_equal(row_of(p->d, "b.org").run, part.run);
    assert_int_equal(row_of(p->d, "c.org").run, first.run);
    check_tables(p);
}

static void test_more(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "a.org b.org c.org d.org", NULL, false);

    finish(p, "a.org", first.run, WB_SITE_DONE);
    finish(p, "c.org", first.run, WB_SITE_ALIAS);
    finish(p, "d.org", first.run, WB_SITE_REFUSED);
    /*
     * With a seed more it is another run that goes on with the first: what was finished stays so, what was refused is
     * tried again.
     */
    struct entered more = enter(p->d, "a.org b.org c.org d.org e.org", NULL, false);
    assert_true(more.run > first.run && more.goes_on == first.run);
    assert_true(state_of(p, "a.org") == WB_SITE_DONE && state_of(p, "c.org") == WB_SITE_ALIAS);
    assert_true(state_of(p, "b.org") == WB_SITE_UNRESOLVED && state_of(p, "d.org") == WB_SITE_UNRESOLVED);
    assert_true(row_of(p->d, "a.org").run == more.run && row_of(p->d, "b.org").run == more.run);
    check_tables(p);
}

static void test_waiting_is_no_going_on(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "a.org b.org", NULL, false);

    finish(p, "a.org", first.run, WB_SITE_DONE);
    finish(p, "b.org", first.run, WB_SITE_WAITING);
    /* A run in which a site only waits is finished. */
    struct entered second = enter(p->d, "a.org b.org", NULL, false);
    assert_true(second.run > first.run && second.goes_on == 0);
    assert_true(state_of(p, "a.org") == WB_SITE_UNRESOLVED && state_of(p, "b.org") == WB_SITE_WAITING);
    check_tables(p);
}

static void test_scopes(void **state)
{
    PLACE(p);
    uint64_t added;
    struct entered first = enter(p->d, "www.a.org", "a.org", false);
    struct wb_seed seed = {.url = WB_SLICE_LIT("http://docs.a.org/")};
    struct wb_site_plan found = {.name = WB_SLICE_LIT("docs.a.org"), .scheme = WB_SLICE_LIT("http"),
                                 .class_name = WB_SLICE_EMPTY, .priority = INT_MIN,
                                 .delay_ms = -2, .budget = -2, .seeds = &seed, .seed_count = 1};

    must_ok(wb_dispenser_add(p->d, first.run, &found, 1, &added));
    finish(p, "www.a.org", first.run, WB_SITE_DONE);
    /* A site that links led to is unfinished, for a crawl of the domain and for one of everything. */
    struct entered domain = enter(p->d, "www.a.org", "a.org", false);
    assert_true(domain.run == first.run && domain.goes_on == first.run && state_of(p, "www.a.org") == WB_SITE_DONE);
    struct entered all = enter(p->d, "www.a.org", NULL, true);
    assert_true(all.run == first.run && state_of(p, "www.a.org") == WB_SITE_DONE);
    struct entered none = enter(p->d, "", NULL, true);
    assert_true(none.run == first.run && none.goes_on == first.run);
    /* A crawl of the site alone is finished. */
    struct entered site = enter(p->d, "www.a.org", NULL, false);
    assert_true(site.run > first.run && site.goes_on == 0 && state_of(p, "www.a.org") == WB_SITE_UNRESOLVED);
    assert_int_equal(row_of(p->d, "docs.a.org").run, first.run);
    check_tables(p);
}

/* A page needs a file of another site. */
static void need(struct place *p, int64_t run, const char *name, const char *url)
{
    struct wb_seed seed = {.url = wb_slice_str(url), .depth.need = 1};
    struct wb_site_plan plan = {.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"),
                                .class_name = WB_SLICE_EMPTY, .priority = INT_MIN, .delay_ms = -2, .budget = -2,
                                .seeds = &seed, .seed_count = 1, .by_link = true, .needed = true};
    uint64_t added;

    must_ok(wb_dispenser_add(p->d, run, &plan, 1, &added));
}

static int note_seed(void *context, const struct wb_seed *seed)
{
    char *text = context;

    must(seed->depth.need == 1 && seed->depth.links == 0);
    snprintf(text + strlen(text), 256 - strlen(text), " %.*s", WB_SLICE_ARG(seed->url));
    return 0;
}

/* The seeds of a site that it has not taken yet. */
static const char *untaken(struct place *p, const char *name, int64_t taken)
{
    static char text[256];

    text[0] = '\0';
    must_ok(wb_dispenser_seeds(p->d, row_of(p->d, name).id, taken, note_seed, text));
    return text;
}

static void finish_needed(struct place *p, const char *name)
{
    struct told told = {0};
    struct wb_site_row row = row_of(p->d, name);
    struct wb_site_report report = report_of(row.id, WB_SITE_DONE);

    report.visit = row.visit;
    report.seeds_taken = ask_number(p, "SELECT MAX(id) FROM webbase_seed");
    must_ok(borrow_until(p->d, wb_slice_str(name), WB_SLICE_LIT("http"), WB_SLICE_LIT("me"), 0, LEASE, tell, &told));
    must_ok(report_one(p->d, "me", report));
    must(row_of(p->d, name).state == WB_SITE_DONE);
}

/* A site that is only needed does not decide which run is continued, but keeps a run unfinished. */
static void test_needed_run(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "a.org", NULL, false), again;

    need(p, first.run, "img.org", "http://img.org/1.png");
    assert_int_equal(row_of(p->d, "img.org").needed, WB_NEEDED_ONLY);
    again = enter(p->d, "a.org", NULL, false);
    assert_int_equal(again.run, first.run);
    finish(p, "a.org", first.run, WB_SITE_DONE);
    again = enter(p->d, "a.org", NULL, false);
    assert_int_equal(again.run, first.run);
    assert_int_equal(state_of(p, "a.org"), WB_SITE_DONE);
    finish_needed(p, "img.org");
    again = enter(p->d, "a.org", NULL, false);
    assert_true(again.run > first.run);
    /* Somebody wants to crawl it. */
    enter(p->d, "img.org", NULL, false);
    assert_int_equal(row_of(p->d, "img.org").needed, WB_NEEDED_NOT);
    check_tables(p);
}

/* In a later run, a file that is needed again becomes a seed again; other files of the host do not. */
static void test_needed_again(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "a.org", NULL, false);

    need(p, first.run, "img.org", "http://img.org/1.png");
    need(p, first.run, "img.org", "http://img.org/2.png");
    need(p, first.run, "img.org", "http://img.org/1.png");
    assert_string_equal(untaken(p, "img.org", 0), " http://img.org/1.png http://img.org/2.png");
    finish(p, "a.org", first.run, WB_SITE_DONE);
    finish_needed(p, "img.org");
    uint32_t visit = row_of(p->d, "img.org").visit;
    struct entered second = enter(p->d, "a.org", NULL, false);
    need(p, second.run, "img.org", "http://img.org/2.png");
    struct wb_site_row row = row_of(p->d, "img.org");
    assert_true(row.run == second.run && row.state == WB_SITE_UNRESOLVED && row.visit > visit &&
                row.needed == WB_NEEDED_ONLY);
    assert_string_equal(untaken(p, "img.org", row.seeds_taken), " http://img.org/2.png");
    check_tables(p);
}

/* A site that an earlier run crawled serves its file only; an unfinished crawl of it stays where it is. */
static void test_needed_of_others(void **state)
{
    PLACE(p);
    struct entered first = enter(p->d, "b.org c.org", NULL, false);

    finish(p, "b.org", first.run, WB_SITE_DONE);
    struct entered second = enter(p->d, "a.org", NULL, false);
    need(p, second.run, "b.org", "http://b.org/1.png");
    need(p, second.run, "c.org", "http://c.org/1.png");
    assert_true(row_of(p->d, "b.org").run == second.run && row_of(p->d, "b.org").needed == WB_NEEDED_HERE);
    assert_true(row_of(p->d, "c.org").run == first.run && row_of(p->d, "c.org").needed == WB_NEEDED_NOT);
    enter(p->d, "b.org", NULL, false);
    assert_int_equal(row_of(p->d, "b.org").needed, WB_NEEDED_NOT);
    check_tables(p);
}

static void test_host(void **state)
{
    PLACE(p);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;

    enter(p->d, "a.org:8080 a.orgx a.org.uk", NULL, false);
    must_ok(wb_dispenser_get_host(p->d, WB_SLICE_LIT("a.org"), &mem, &row));
    assert_true(wb_slice_equal(row.name, WB_SLICE_LIT("a.org:8080")));
    assert_int_equal(wb_dispenser_get_host(p->d, WB_SLICE_LIT("a.or"), &mem, &row), WB_E_NOTFOUND);
    assert_int_equal(wb_dispenser_get_host(p->d, WB_SLICE_LIT("a.org.uk"), &mem, &row), WB_E_NOTFOUND);
    wb_buf_release(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_same_seeds), BOTH(test_part), BOTH(test_more), BOTH(test_waiting_is_no_going_on), BOTH(test_scopes),
        BOTH(test_host), BOTH(test_needed_run), BOTH(test_needed_again), BOTH(test_needed_of_others),
    };

    return cmocka_run_group_tests_name("dispenser runs", tests, NULL, end_server);
}
