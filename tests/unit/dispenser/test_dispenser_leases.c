/* test_dispenser_leases.c - claiming, borrowing and releasing sites, and the clock that measures leases. */
#include "dispenser_support.h"

#include "base/date.h"
#include "os/clock.h"

#include <limits.h>

/* ---- whose clock ------------------------------------------------------------------------------------- */

/* Callers whose clocks differ by two minutes agree on who holds a site: the database's clock decides, not theirs. */
static void test_skewed_callers(void **state)
{
    struct place *p = *state;
    struct wb_dispenser *other = open_place(p);
    struct told told = {0};
    int64_t now = wb_clock_wall_ms(), judge, skews[] = {-120000, 120000, 10 * 365 * WB_DAY_MS};

    add_site(p, "a.org", "10.0.0.1", 0);
    real_clock();
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("first"), now, 60000, 9, tell, &told));
    assert_int_equal(told.count, 1);
    must_ok(wb_dispenser_clock(p->d, &judge));
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_true(row.lease_ms > judge && row.lease_ms <= judge + 60000);
    for (size_t i = 0; i < COUNT(skews); i++) {
        told.count = 0;
        must_ok(wb_dispenser_claim(other, p->run, WB_SLICE_LIT("second"), now + skews[i], 60000, 9, tell, &told));
        assert_int_equal(told.count, 0);
        assert_int_equal(wb_dispenser_borrow(other, WB_SLICE_LIT("a.org"), WB_SLICE_LIT("http"), WB_SLICE_LIT("second"),
                                             60000, tell, &told), WB_E_BUSY);
        must_ok(wb_dispenser_renew(p->d, WB_SLICE_LIT("first"), 60000));
    }
    /* An expired lease has expired for everybody, by any clock. */
    must_ok(wb_dispenser_renew(p->d, WB_SLICE_LIT("first"), 0));
    must_ok(wb_dispenser_claim(other, p->run, WB_SLICE_LIT("second"), now - 120000, 60000, 9, tell, &told));
    assert_int_equal(told.count, 1);
    assert_int_equal(wb_dispenser_renew(p->d, WB_SLICE_LIT("first"), 60000), WB_E_BUSY);
    wb_dispenser_close(other);
}

/* Somebody sets the machine's clock: SQLite's leases neither end nor last longer. */
static void test_set_clock(void **state)
{
    struct place *p = *state;
    struct told told = {0};
    int64_t before, after;

    add_site(p, "a.org", "10.0.0.1", 0);
    real_clock();
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("first"), wb_clock_wall_ms(), 60000, 9, tell, &told));
    must_ok(wb_dispenser_clock(p->d, &before));
    wb_clock_shift(3600000, 0);
    must_ok(wb_dispenser_clock(p->d, &after));
    assert_true(after >= before && after < before + 3600000);
    told.count = 0;
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("second"), wb_clock_wall_ms(), 60000, 9, tell, &told));
    assert_int_equal(told.count, 0);
    wb_clock_shift(-3600000, 61000);
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("second"), wb_clock_wall_ms(), 60000, 9, tell, &told));
    assert_int_equal(told.count, 1);
    wb_clock_shift(0, 0);
}

/* ---- homes ----------------------------------------------------------------------------------------------- */

/* Claims for a repository, and returns how many sites it got; their names are in told. */
static unsigned claim_for(struct wb_dispenser *d, const struct place *p, const char *owner, int64_t now_ms,
                          struct told *told)
{
    told->count = 0;
    must_ok(claim_until(d, p->run, wb_slice_str(owner), now_ms, now_ms + 60000, 9, tell, told));
    return told->count;
}

static int note_seed(void *context, const struct wb_seed *seed)
{
    char *all = context;

    snprintf(all + strlen(all), 200 - strlen(all), "%.*s ", WB_SLICE_ARG(seed->url));
    return 0;
}

static struct wb_site_report visited(int64_t id, const char *home, int64_t time_ms)
{
    struct wb_site_report report = report_of(id, WB_SITE_READY);

    report.home = wb_slice_str(home);
    report.trail = (struct wb_site_trail){7, 64};
    report.trail_ms = time_ms;
    return report;
}

/* A site stays with the repository that visits it, for as long as somebody works for that one; then it moves. */
static void test_home(void **state)
{
    struct place *p = *state;
    struct wb_dispenser *other = open_place(p);
    struct told told = {0};
    int64_t t = 1000000;
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.1", 0);

    must_ok(wb_dispenser_serve(p->d, p->run, WB_SLICE_LIT("one")));
    must_ok(wb_dispenser_serve(other, p->run, WB_SLICE_LIT("two")));
    assert_int_equal(claim_for(p->d, p, "one-1", t, &told), 2);
    assert_true(wb_slice_equal(row_of(p->d, "a.org").home, wb_slice_str("one")));
    must_ok(report_one(p->d, "one-1", visited(a, "one", t)));
    must_ok(report_one(p->d, "one-1", visited(b, "one", t)));
    /* One stranger is ready besides. It is all that the other repository gets. */
    add_site(p, "c.org", "10.0.0.2", 0);
    assert_int_equal(claim_for(other, p, "two-1", t + 1000, &told), 1);
    assert_true(wb_slice_equal(row_of(p->d, "c.org").home, wb_slice_str("two")));
    /* The home keeps its sites and their history, in whatever process. */
    assert_int_equal(claim_for(p->d, p, "one-2", t + 2000, &told), 2);
    assert_int_equal(row_of(p->d, "b.org").trail.log, 7);
    must_ok(report_one(p->d, "one-2", visited(a, "one", t + 2000)));
    must_ok(report_one(p->d, "one-2", visited(b, "one", t + 2000)));
    /* Renewing keeps a home alive, too: its process may have enough sites and claim none. */
    set_clock(t + 50000);
    must_ok(wb_dispenser_renew(p->d, WB_SLICE_LIT("one-2"), 60000));
    assert_int_equal(claim_for(other, p, "two-1", t + 70000, &told), 0);
    /* Nobody works for it any more: its sites move, without a trail that only its journal could follow. */
    assert_int_equal(claim_for(other, p, "two-1", t + 50000 + 60000, &told), 2);
    assert_true(wb_slice_equal(row_of(p->d, "a.org").home, wb_slice_str("two")));
    assert_true(row_of(p->d, "a.org").trail.log == 0 && row_of(p->d, "a.org").trail.offset == 0);
    /* When it comes back, a late report about its old history changes nothing, and the sites stay where they are. */
    must_ok(report_one(p->d, "one-2", visited(a, "one", t + 200000)));
    assert_true(wb_slice_equal(row_of(p->d, "a.org").home, wb_slice_str("two")));
    assert_int_equal(row_of(p->d, "a.org").trail.log, 0);
    must_ok(report_one(other, "two-1", visited(a, "two", t + 110000)));
    assert_int_equal(claim_for(p->d, p, "one-3", t + 111000, &told), 0);
    /* An owner that leaves gives them up at once. */
    must_ok(wb_dispenser_leave(other, p->run, WB_SLICE_LIT("two")));
    assert_int_equal(claim_for(p->d, p, "one-3", t + 112000, &told), 1);
    check_tables(p);
    wb_dispenser_close(other);
}

static int note_news(void *context, struct wb_slice text)
{
    char *all = context;

    snprintf(all + strlen(all), 100 - strlen(all), "%.*s|", WB_SLICE_ARG(text));
    return 0;
}

/* News of a site are kept in order for the others of its run, until the next run. */
static void test_news(void **state)
{
    struct place *p = *state;
    struct wb_dispenser *other = open_place(p);
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.1", 0);
    struct wb_site_news first[] = {{a, WB_SLICE_LIT("one")}, {b, WB_SLICE_LIT("else")}, {a, WB_SLICE_LIT("two")}};
    struct wb_site_news third = {a, WB_SLICE_LIT("three")}, bad = {a, WB_SLICE_LIT("\xff")};
    char own[100] = "", foreign[100] = "", later[100] = "";

    must_ok(wb_dispenser_serve(p->d, p->run, WB_SLICE_LIT("here")));
    must_ok(wb_dispenser_serve(other, p->run, WB_SLICE_LIT("there")));
    must_ok(wb_dispenser_tell(p->d, p->run, first, COUNT(first)));
    must_ok(wb_dispenser_tell(other, p->run, &third, 1));
    assert_int_equal(wb_dispenser_tell(other, p->run, &bad, 1), WB_E_INVALID);
    must_ok(wb_dispenser_news(other, p->run, a, true, note_news, own));
    must_ok(wb_dispenser_news(other, p->run, a, false, note_news, foreign));
    assert_string_equal(own, "one|two|three|");
    assert_string_equal(foreign, "one|two|");
    must_ok(wb_dispenser_tell(p->d, p->run + 1, &third, 1));
    must_ok(wb_dispenser_news(other, p->run, a, true, note_news, later));
    assert_string_equal(later, "");
    assert_true(wb_dispenser_is_shared(p->d) == p->postgres);
    wb_dispenser_close(other);
}

/* Seeds of an alias go to the site that is crawled instead: those that it has, and those that come later. */
static void test_seeds_of_an_alias(void **state)
{
    struct place *p = *state;
    struct told told = {0};
    char urls[200] = "";
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.1", 0);
    struct wb_site_report report = report_of(b, WB_SITE_ALIAS);
    struct wb_seed seed = {.url = WB_SLICE_LIT("http://b.org/later"), .depth.links = 3};
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("b.org"), .scheme = WB_SLICE_LIT("http"), .priority = INT_MIN,
                                .delay_ms = -2, .budget = -2, .seeds = &seed, .seed_count = 1, .by_link = true};
    uint64_t added;

    add_seed(p->d, p->run, "b.org", "http://b.org/deep", false);
    must_ok(claim_until(p->d, p->run, WB_SLICE_LIT("me"), 0, 60000, 9, tell, &told));
    must_ok(report_one(p->d, "me", report_of(a, WB_SITE_DONE)));
    report.alias_of = WB_SLICE_LIT("a.org");
    must_ok(report_one(p->d, "me", report));
    must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    must_ok(wb_dispenser_seeds(p->d, a, 0, note_seed, urls));
    assert_string_equal(urls, "http://a.org/ http://b.org/ http://b.org/deep http://b.org/later ");
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_ALIAS);
    /* In the next run the alias is compared again, so it gets the seed itself. */
    seed.url = WB_SLICE_LIT("http://b.org/new");
    must_ok(wb_dispenser_add(p->d, p->run + 1, &plan, 1, &added));
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_UNRESOLVED);
    check_tables(p);
}

/* A process that works in another run keeps no site from this one. */
static void test_home_of_another_run(void **state)
{
    struct place *p = *state;
    struct wb_dispenser *other = open_place(p);
    struct told told = {0};
    int64_t t = 1000000, a = add_site(p, "a.org", "10.0.0.1", 0);

    must_ok(wb_dispenser_serve(p->d, p->run, WB_SLICE_LIT("one")));
    must_ok(wb_dispenser_serve(other, p->run + 1, WB_SLICE_LIT("two")));
    assert_int_equal(claim_for(p->d, p, "one-1", t, &told), 1);
    must_ok(report_one(p->d, "one-1", visited(a, "two", t)));
    told.count = 0;
    must_ok(claim_until(other, p->run + 1, WB_SLICE_LIT("two-1"), t + 100, t + 60100, 9, tell, &told));
    assert_int_equal(told.count, 0);
    assert_int_equal(claim_for(p->d, p, "one-1", t + 200, &told), 1);
    assert_int_equal(wb_dispenser_serve(p->d, 1, WB_SLICE_EMPTY), WB_E_INVALID);
    wb_dispenser_close(other);
}

/* The machine was restarted: its clock started at 0 again, and no owner of a lease is alive. */
static void test_restarted_machine(void **state)
{
    struct place *p = *state;
    struct told told = {0};

    add_site(p, "a.org", "10.0.0.1", 0);
    real_clock();
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("dead"), wb_clock_wall_ms(), 10 * WB_DAY_MS, 9, tell, &told));
    change(p, "UPDATE webbase_meta SET value = 5 WHERE name = 'clock'");
    reopen_place(p);
    told.count = 0;
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("alive"), wb_clock_wall_ms(), 60000, 9, tell, &told));
    assert_int_equal(told.count, 1);
    reopen_place(p);
    told.count = 0;
    must_ok(wb_dispenser_claim(p->d, p->run, WB_SLICE_LIT("third"), wb_clock_wall_ms(), 60000, 9, tell, &told));
    assert_int_equal(told.count, 0);
}

/* ---- owners, and sites that are put aside ------------------------------------------------------------- */

static int note_owner(void *context, struct wb_slice owner)
{
    char *names = context;

    strncat(names, owner.ptr, owner.len);
    strcat(names, " ");
    return 0;
}

static void test_owners(void **state)
{
    struct place *p = *state;
    struct told told;
    char names[200] = "";

    for (unsigned i = 0; i < 6; i++) {
        static const char *const owners[] = {"home1-1", "home1-2", "home1-2", "home2-1", "home1-10", ""};
        char name[32], address[32];
        snprintf(name, sizeof name, "s%u.org", i);
        snprintf(address, sizeof address, "10.0.0.%u", i + 1);
        add_site(p, name, address, 0);
        if (owners[i][0])
            assert_int_equal(claim(p->d, p->run, owners[i], 0, LEASE, 1, &told), 1);
    }
    must_ok(wb_dispenser_owners(p->d, WB_SLICE_LIT("home1-"), note_owner, names));
    assert_true(strstr(names, "home1-1 ") && strstr(names, "home1-2 ") && strstr(names, "home1-10 ") &&
                strlen(names) == 25);
    names[0] = '\0';
    must_ok(wb_dispenser_owners(p->d, WB_SLICE_LIT("home3-"), note_owner, names));
    assert_string_equal(names, "");
}

/* Sites that wait for one reason can be claimed again; those that wait for another go on waiting. */
static void test_end_waits(void **state)
{
    struct place *p = *state;
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.2", 0);
    struct told told;

    must_ok(wb_dispenser_put_aside(p->d, a, 100000, WB_SLICE_LIT("stopped")));
    must_ok(wb_dispenser_put_aside(p->d, b, 100000, WB_SLICE_LIT("stopped by itself")));
    must_ok(wb_dispenser_end_waits(p->d, WB_SLICE_LIT("stopped"), 500));
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_true(row.state == WB_SITE_READY && row.next_ms == 500 && row.reason.len == 0);
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_WAITING);
    assert_int_equal(claim(p->d, p->run, "me", 600, LEASE, 9, &told), 1);
    must_ok(wb_dispenser_end_waits(p->d, WB_SLICE_LIT("stopped"), 700)); /* there are none: nothing happens */
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_CLAIMED);
    check_tables(p);
}

static void test_put_aside(void **state)
{
    struct place *p = *state;
    struct told told;
    int64_t id = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.2", 0);

    must_ok(wb_dispenser_put_aside(p->d, id, 1000, WB_SLICE_LIT("it ends processes")));
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_true(row.state == WB_SITE_WAITING && row.next_ms == 1000 &&
                wb_slice_equal(row.reason, WB_SLICE_LIT("it ends processes")));
    assert_int_equal(claim(p->d, p->run, "me", 999, LEASE, 9, &told), 1);
    /* A site that somebody holds is left to its owner. */
    must_ok(wb_dispenser_put_aside(p->d, b, 5000, WB_SLICE_LIT("no")));
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_CLAIMED);
    assert_int_equal(claim(p->d, p->run, "me", 1000, LEASE, 9, &told), 1);
    assert_int_equal(wb_dispenser_put_aside(p->d, 999, 0, WB_SLICE_EMPTY), WB_E_NOTFOUND);
    /* A visit that was finished is resumed. */
    must_ok(report_one(p->d, "me", report_of(b, WB_SITE_DONE)));
    must_ok(wb_dispenser_resume(p->d, b));
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_READY);
    check_tables(p);
}

/* ---- claiming ------------------------------------------------------------------------------------------------ */

static void test_priority_order(void **state)
{
    PLACE(p);
    struct told told;
    /* Some of them share addresses, which must not change the order. */
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.1", 5),
            c = add_site(p, "c.org", "10.0.0.2", -5);
    int64_t d = add_site(p, "d.org", "10.0.0.1", 0), e = add_site(p, "e.org", "10.0.0.3", 0),
            f = add_site(p, "f.org", "10.0.0.3", INT_MAX);
    const int64_t order[] = {f, b, a, d, e, c};

    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 4, &told), 4);
    assert_memory_equal(told.ids, order, 4 * sizeof *order);
    assert_string_equal(told.last_owner, "me");
    assert_int_equal(told.last.state, WB_SITE_CLAIMED);
    assert_int_equal(told.last.before, WB_SITE_READY);
    assert_int_equal(told.last.lease_ms, LEASE);
    check_tables(p);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 4, &told), 2);
    assert_memory_equal(told.ids, order + 4, 2 * sizeof *order);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 4, &told), 0);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 0, &told), 0);
    check_tables(p);
}

static void test_address_affinity(void **state)
{
    PLACE(p);
    struct told told;
    int64_t a = add_site(p, "a.org", "10.0.0.1 10.0.0.2", 0);
    int64_t b = add_site(p, "b.org", "10.0.0.1", 0), c = add_site(p, "c.org", "10.0.0.2 10.0.0.1", 0),
            d = add_site(p, "d.org", "10.0.0.1", 0);

    assert_int_equal(claim(p->d, p->run, "m", 0, LEASE, 1, &told), 1);
    assert_int_equal(told.ids[0], a);
    /* Owners whose names come before and after that of the holder: both halves of the comparison. */
    assert_int_equal(claim(p->d, p->run, "z", 0, LEASE * 2, 10, &told), 1);
    assert_int_equal(told.ids[0], c);
    assert_int_equal(claim(p->d, p->run, "a", 0, LEASE, 10, &told), 0);
    /* The holder itself may claim more sites of the address. */
    assert_int_equal(claim(p->d, p->run, "m", 0, LEASE, 1, &told), 1);
    assert_int_equal(told.ids[0], b);
    must_ok(report_one(p->d, "m", report_of(a, WB_SITE_DONE)));
    assert_int_equal(claim(p->d, p->run, "a", 0, LEASE, 10, &told), 0);
    must_ok(report_one(p->d, "m", report_of(b, WB_SITE_DONE)));
    assert_int_equal(claim(p->d, p->run, "a", 0, LEASE, 10, &told), 1);
    assert_int_equal(told.ids[0], d);
    check_tables(p);
}

static void test_lease_expiry(void **state)
{
    PLACE(p);
    struct told told;
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.1", 0);

    assert_int_equal(claim(p->d, p->run, "slow", 0, LEASE, 1, &told), 1);
    assert_int_equal(claim(p->d, p->run, "quick", LEASE - 1, 2 * LEASE, 9, &told), 0);
    /* Its own claims do not take a slow owner's sites away. */
    assert_int_equal(claim(p->d, p->run, "slow", LEASE + 1, LEASE, 0, &told), 0);
    set_clock(LEASE - 1);
    must_ok(renew_until(p->d, WB_SLICE_LIT("slow"), LEASE));
    assert_int_equal(claim(p->d, p->run, "quick", LEASE, 2 * LEASE, 9, &told), 2);
    assert_int_equal(told.ids[0], a);
    assert_int_equal(told.ids[1], b);
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("slow"), 9 * LEASE), WB_E_BUSY);
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("slow"), 9 * LEASE), WB_E_BUSY);
    assert_int_equal(row_of(p->d, "a.org").lease_ms, 2 * LEASE);
    assert_true(wb_slice_equal(row_of(p->d, "a.org").owner, WB_SLICE_LIT("quick")));
    /* After a release the owner may renew again. */
    must_ok(wb_dispenser_release(p->d, WB_SLICE_LIT("slow")));
    must_ok(renew_until(p->d, WB_SLICE_LIT("slow"), 9 * LEASE));
    must_ok(renew_until(p->d, WB_SLICE_LIT("quick"), 3 * LEASE));
    assert_int_equal(row_of(p->d, "b.org").lease_ms, 3 * LEASE);
    /* If a site is taken twice, each of its former owners learns of it. */
    assert_int_equal(claim(p->d, p->run, "third", 3 * LEASE, 4 * LEASE, 9, &told), 2);
    assert_int_equal(claim(p->d, p->run, "slow", 4 * LEASE, 5 * LEASE, 9, &told), 2);
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("quick"), 9 * LEASE), WB_E_BUSY);
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("third"), 9 * LEASE), WB_E_BUSY);
    must_ok(renew_until(p->d, WB_SLICE_LIT("slow"), 9 * LEASE));
    check_tables(p);
}

static void test_waiting(void **state)
{
    PLACE(p);
    struct wb_dispenser_stat stat;
    struct told told;
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.2", 0);

    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 9, &told), 2);
    struct wb_site_report report = report_of(a, WB_SITE_WAITING);
    report.next_ms = 5000;
    report.attempts = 3;
    report.reason = WB_SLICE_LIT("503");
    must_ok(report_one(p->d, "me", report));
    report.id = b;
    report.next_ms = 4000;
    must_ok(report_one(p->d, "me", report));
    must_ok(wb_dispenser_stat(p->d, p->run, &stat));
    assert_int_equal(stat.waiting, 2);
    assert_int_equal(stat.next_ms, 4000);
    assert_int_equal(claim(p->d, p->run, "me", 3999, 9000, 9, &told), 0);
    assert_int_equal(claim(p->d, p->run, "me", 4000, 9000, 9, &told), 1);
    assert_int_equal(told.ids[0], b);
    assert_int_equal(told.last.attempts, 3);
    assert_int_equal(told.last.next_ms, 4000);
    must_ok(wb_dispenser_stat(p->d, 0, &stat));
    assert_int_equal(stat.next_ms, 5000);
    assert_int_equal(claim(p->d, p->run, "me", 5000, 9000, 9, &told), 1);
    must_ok(wb_dispenser_stat(p->d, p->run, &stat));
    assert_int_equal(stat.next_ms, 0);
    assert_int_equal(stat.claimed, 2);
    check_tables(p);
}

static int refuse(void *context, const struct wb_site_row *row)
{
    (void)row;
    ++*(unsigned *)context;
    return 7;
}

static void test_callback_refuses(void **state)
{
    PLACE(p);
    unsigned calls = 0;

    add_site(p, "a.org", "10.0.0.1", 0);
    add_site(p, "b.org", "10.0.0.2", 0);
    assert_int_equal(claim_until(p->d, p->run, WB_SLICE_LIT("me"), 0, LEASE, 9, refuse, &calls), 7);
    assert_int_equal(calls, 1);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_CLAIMED);
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_CLAIMED);
}

/* ---- leaving --------------------------------------------------------------------------------------------------- */

static void test_release(void **state)
{
    PLACE(p);
    struct told told;
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0), b = add_site(p, "b.org", "10.0.0.2", 0),
            c = add_site(p, "c.org", "10.0.0.3", 0);

    claim(p->d, p->run, "dead", 0, LEASE, 2, &told);
    claim(p->d, p->run, "alive", 0, LEASE, 1, &told);
    struct wb_site_report report = report_of(b, WB_SITE_CLAIMED);
    report.next_ms = 700;
    must_ok(report_one(p->d, "dead", report));
    must_ok(wb_dispenser_release(p->d, WB_SLICE_LIT("dead")));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_READY);
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_READY);
    assert_int_equal(row_of(p->d, "c.org").state, WB_SITE_CLAIMED);
    assert_int_equal(claim(p->d, p->run, "next", 0, LEASE, 9, &told), 2);
    assert_int_equal(told.ids[0], a);
    assert_int_equal(told.ids[1], b);
    assert_int_equal(told.last.next_ms, 700);
    must_ok(wb_dispenser_release(p->d, WB_SLICE_LIT("nobody")));
    assert_true(c > 0);
    check_tables(p);
}

static int borrow(struct place *p, const char *name, const char *owner, int64_t now_ms, int64_t lease_ms,
                  struct told *told)
{
    told->count = 0;
    return borrow_until(p->d, wb_slice_str(name), WB_SLICE_LIT("https"), wb_slice_str(owner), now_ms, lease_ms, tell,
                        told);
}

static void test_borrow(void **state)
{
    PLACE(p);
    struct told told;
    int64_t a = add_site(p, "a.org", "10.0.0.1", 0);

    must_ok(borrow(p, "new.org", "me", 0, LEASE, &told));
    assert_int_equal(told.last.before, WB_SITE_UNRESOLVED);
    assert_int_equal(told.last.state, WB_SITE_CLAIMED);
    assert_int_equal(told.last.run, 0);
    assert_int_equal(borrow(p, "new.org", "you", 0, LEASE, &told), WB_E_BUSY);
    assert_int_equal(told.count, 0);
    assert_non_null(strstr(wb_error_message(), "new.org"));
    must_ok(borrow(p, "new.org", "me", 0, LEASE, &told));
    must_ok(borrow(p, "new.org", "you", LEASE, 2 * LEASE, &told));
    assert_int_equal(told.last.before, WB_SITE_UNRESOLVED);
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("me"), LEASE), WB_E_BUSY);
    must_ok(wb_dispenser_release(p->d, WB_SLICE_LIT("you")));
    assert_int_equal(row_of(p->d, "new.org").state, WB_SITE_UNRESOLVED);
    /* A site whose address another owner holds is borrowed and returned. */
    claim(p->d, p->run, "me", 0, LEASE, 9, &told);
    must_ok(report_one(p->d, "me", report_of(a, WB_SITE_DONE)));
    int64_t b = add_site(p, "b.org", "10.0.0.1", 0);
    must_ok(borrow(p, "a.org", "me", 0, LEASE, &told));
    assert_int_equal(told.last.before, WB_SITE_DONE);
    assert_int_equal(claim(p->d, p->run, "you", 0, LEASE, 9, &told), 0);
    must_ok(borrow(p, "b.org", "you", 0, LEASE, &told));
    assert_int_equal(told.last.before, WB_SITE_READY);
    must_ok(report_one(p->d, "me", report_of(a, WB_SITE_DONE)));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    /* A dead borrower leaves a finished site finished. */
    must_ok(borrow(p, "a.org", "me", 0, LEASE, &told));
    must_ok(wb_dispenser_release(p->d, WB_SLICE_LIT("me")));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    /* A new visit that is asked for in the meantime is not forgotten. */
    must_ok(borrow(p, "a.org", "me", 0, LEASE, &told));
    add_seed(p->d, p->run, "a.org", NULL, true);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_CLAIMED);
    must_ok(report_one(p->d, "me", report_of(a, told.last.before)));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_UNRESOLVED);
    assert_true(b > 0);
    check_tables(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_priority_order),
        BOTH(test_address_affinity),
        BOTH(test_lease_expiry),
        BOTH(test_waiting),
        BOTH(test_callback_refuses),
        BOTH(test_release),
        BOTH(test_borrow),
        BOTH(test_skewed_callers), SQLITE(test_set_clock), SQLITE(test_restarted_machine), BOTH(test_owners),
        BOTH(test_put_aside), BOTH(test_end_waits), BOTH(test_home), BOTH(test_home_of_another_run),
        BOTH(test_news), BOTH(test_seeds_of_an_alias),
    };

    return cmocka_run_group_tests(tests, NULL, end_server);
}
