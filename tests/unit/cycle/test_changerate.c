/* test_changerate.c - estimates of how often pages change, against pages whose rate is known. */
#include "cycle/refresh.h"
#include "base/date.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "../seeded.h"

#define START_MS 1790000000000ll

static uint64_t chance = 88172645463325252u;

static double unit(void)
{
    return chance_unit(&chance);
}

static int64_t days_ms(double days)
{
    return (int64_t)(days * WB_DAY_MS + 0.5);
}

/* A visit after a gap to a page that changes with a rate; *since is how long before the visit it last changed. */
static void visit(struct wb_visitlog *h, double rate, double gap, bool told, int64_t *now_ms, double *since)
{
    double before = -log(unit()) / rate;  /* backwards from the visit: memoryless */
    bool changed = before < gap;

    *now_ms += days_ms(gap);
    *since = changed ? before : *since + gap;
    wb_visitlog_add(h, days_ms(gap), changed, told ? *now_ms - days_ms(*since) : 0, *now_ms);
}

/*
 * The mean of estimates of a rate that is r changes a gap, over its truth. Gaps are unequal by a factor of up to
 * spread, and lie anywhere in their bins, whose middle stands for all of them: what that costs averages out over pages.
 */
static double mean_ratio(double r, unsigned visits, double gap, double spread, bool told,
                         const struct wb_webdb_site *site)
{
    double sum = 0;
    unsigned rounds = 20000;

    for (unsigned i = 0; i < rounds; i++) {
        struct wb_visitlog h = {0};
        int64_t now_ms = START_MS;
        double own = gap * pow(2, (unit() - 0.5) / 2), rate = r / own, since = -log(unit()) / rate;
        for (unsigned k = 0; k < visits; k++)
            visit(&h, rate, own * pow(spread, 2 * unit() - 1), told, &now_ms, &since);
        sum += wb_changerate(&h, site) / rate;
    }
    return sum / rounds;
}

static void assert_near(const char *what, double value, double low, double high)
{
    if (!(value >= low && value <= high))
        fail_msg("%s: %g is not within %g and %g", what, value, low, high);
}

/* The improved estimator's own bias is 1.00, 1.00, 0.97, 0.85 for these; a prior right at the truth, or far from it,
 * moves it little. */
static void test_bias(void **state)
{
    static const double r[] = {0.5, 1, 2, 3}, low[] = {0.93, 0.95, 0.91, 0.80}, high[] = {1.06, 1.04, 1.00, 0.88};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        char what[64];
        for (double gap = 0.5; gap < 100; gap *= 5) {
            snprintf(what, sizeof what, "10 visits, %g changes a gap of %g days", r[i], gap);
            assert_near(what, mean_ratio(r[i], 10, gap, 1, false, NULL), low[i], high[i]);
        }
    }
}

static void test_many_visits(void **state)
{
    (void)state;
    for (double gap = 0.1; gap < 200; gap *= 10) {
        assert_near("200 visits", mean_ratio(0.7, 200, gap, 1, false, NULL), 0.97, 1.03);
        assert_near("200 visits at irregular times", mean_ratio(0.7, 200, gap, 8, false, NULL), 0.97, 1.03);
    }
}

static void test_irregular(void **state)
{
    (void)state;
    assert_near("irregular, r = 0.5", mean_ratio(0.5, 10, 10, 4, false, NULL), 0.98, 1.10);
    assert_near("irregular, r = 1", mean_ratio(1, 10, 10, 4, false, NULL), 0.98, 1.10);
    assert_near("irregular, r = 2", mean_ratio(2, 10, 10, 4, false, NULL), 0.90, 1.02);
}

/* Last-Modified tells far more where a page changes several times between visits. */
static void test_modified(void **state)
{
    (void)state;
    assert_near("told, r = 0.5", mean_ratio(0.5, 10, 10, 1, true, NULL), 0.93, 1.05);
    assert_near("told, r = 2", mean_ratio(2, 10, 10, 1, true, NULL), 0.93, 1.05);
    assert_near("told, r = 8", mean_ratio(8, 10, 10, 1, true, NULL), 0.90, 1.05);
    assert_near("not told, r = 8", mean_ratio(8, 10, 10, 1, false, NULL), 0.2, 0.6);
}

static void test_lies_are_not_believed(void **state)
{
    struct wb_visitlog h = {
        .visits = 40, .changes = 20, .unchanged_days = 200, .modified_visits = 40, .modified_days = 400};

    (void)state;
    h.changed[27] = 20;
    double believed = wb_changerate(&h, NULL);
    h.modified_lies = true;
    double seen = wb_changerate(&h, NULL);
    assert_near("believed", believed, 0, 0.01);
    assert_near("seen", seen, 0.05, 0.1);
}

/* A server that says "modified just now" each time: what was seen of the content counts. */
static void test_always_now(void **state)
{
    struct wb_visitlog now = {0}, silent = {0};
    int64_t time_ms = START_MS;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        time_ms += days_ms(3);
        wb_visitlog_add(&now, days_ms(3), i % 4 == 0, time_ms - 500, time_ms);
        wb_visitlog_add(&silent, days_ms(3), i % 4 == 0, 0, time_ms);
    }
    assert_int_equal(now.modified_changes, 20);
    assert_near("as if nothing was told", wb_changerate(&now, NULL) / wb_changerate(&silent, NULL), 0.999, 1.001);
}

/* The root of the likelihood's equation by plain bisection, for histories so long that the prior hardly counts. */
static void test_maximum_of_likelihood(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 500; round++) {
        struct wb_visitlog h = {.unchanged_days = 300 + 3000 * unit()};
        unsigned bins = 1 + (unsigned)(unit() * 6), first = 12 + (unsigned)(unit() * 16);
        for (unsigned i = 0; i < bins; i++)
            h.changed[first + (unsigned)(unit() * 10)] = (uint16_t)(100 + 1000 * unit());
        for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
            h.visits += h.changed[i];
        h.changes = h.visits;
        h.visits += 1000;
        double low = 1e-7, high = 1e5;
        while (high > low * 1.00001) {
            double rate = sqrt(low * high), sum = 0;
            for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
                sum += h.changed[i] * wb_visitlog_bin_days(i) / expm1(rate * wb_visitlog_bin_days(i));
            if (sum > h.unchanged_days)
                low = rate;
            else
                high = rate;
        }
        assert_near("root", wb_changerate(&h, NULL) / low, 0.98, 1.005);
    }
}

static void test_all_and_none(void **state)
{
    struct wb_visitlog none = {0}, all = {0};
    double last_none = 1e9, last_all = 0;

    (void)state;
    assert_near("nothing known", wb_changerate(&none, NULL), 1 / 30.5, 1 / 29.5);
    for (unsigned i = 0; i < 1000; i++) {
        wb_visitlog_add(&none, days_ms(5), false, 0, START_MS);
        wb_visitlog_add(&all, days_ms(5), true, 0, START_MS);
        double rate_none = wb_changerate(&none, NULL), rate_all = wb_changerate(&all, NULL);
        assert_true(rate_none < last_none && rate_none > 0);
        assert_true(rate_all > last_all && rate_all < 10);
        last_none = rate_none;
        last_all = rate_all;
    }
    assert_near("never changed in 5000 days", last_none, 1e-6, 1e-3);
    assert_near("always changed", last_all, 0.8, 3);
}

static void test_site(void **state)
{
    struct wb_webdb_site news = {.pages = 100, .fetched = 100, .visits = 1000, .changes = 630, .days = 1000};
    struct wb_webdb_site archive = {.pages = 100, .fetched = 100, .visits = 1000, .changes = 10, .days = 20000};
    struct wb_webdb_site young = {.pages = 1, .fetched = 1, .visits = 1, .changes = 1, .days = 0.01};
    struct wb_visitlog h = {0};

    (void)state;
    assert_near("as the site", wb_changerate(&h, &news), 0.8, 1.2);
    assert_near("as the site", wb_changerate(&h, &archive), 0.0003, 0.001);
    assert_near("one visit to a site says little", wb_changerate(&h, &young), 0.02, 0.2);
    /* Its own history soon says more. */
    for (unsigned i = 0; i < 30; i++)
        wb_visitlog_add(&h, days_ms(2), i % 5 == 0, 0, START_MS);
    assert_near("own history", wb_changerate(&h, &news) / wb_changerate(&h, &archive), 1.0, 1.6);
    assert_near("own history", wb_changerate(&h, &news), 0.08, 0.16);
    assert_near("between", wb_changerate(&h, NULL), wb_changerate(&h, &archive), wb_changerate(&h, &news));
}

static double absurd_number(void)
{
    static const double numbers[] = {0, -1, 1e-300, 1e-9, 1, 1e6, 1e300, INFINITY, -INFINITY, NAN};

    return numbers[(unsigned)(unit() * 10)];
}

static uint32_t absurd_count(void)
{
    static const uint32_t numbers[] = {0, 0, 1, 2, 3, 1000, UINT32_MAX};

    return numbers[(unsigned)(unit() * 7)];
}

static void test_absurd(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        struct wb_visitlog h = {.visits = absurd_count(), .changes = absurd_count(), .unchanged_days = absurd_number(),
                               .modified_lies = unit() < 0.3, .modified_visits = absurd_count(),
                               .modified_changes = absurd_count(), .modified_days = absurd_number()};
        struct wb_webdb_site site = {.visits = absurd_count(), .changes = absurd_count(), .days = absurd_number()};
        for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
            h.changed[i] = unit() < 0.1 ? (uint16_t)absurd_count() : 0;
        double rate = wb_changerate(&h, unit() < 0.5 ? &site : NULL);
        if (!(rate > 0 && rate < 1e6))
            fail_msg("an absurd history gives %g", rate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_many_visits),
        cmocka_unit_test(test_irregular),
        cmocka_unit_test(test_modified),
        cmocka_unit_test(test_lies_are_not_believed),
        cmocka_unit_test(test_always_now),
        cmocka_unit_test(test_maximum_of_likelihood),
        cmocka_unit_test(test_all_and_none),
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_absurd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
