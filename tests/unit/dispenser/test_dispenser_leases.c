/* test_dispenser_leases.c - which clock measures leases, who holds leases, and sites that are put aside. */
#include "base/date.h"
#include "dispenser_support.h"
#include "os/clock.h"

#define LEASE 1000

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_skewed_callers), SQLITE(test_set_clock), SQLITE(test_restarted_machine), BOTH(test_owners),
        BOTH(test_put_aside),
    };

    return cmocka_run_group_tests(tests, NULL, end_server);
}
