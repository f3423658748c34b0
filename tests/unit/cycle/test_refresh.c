/* test_refresh.c - the value of a visit and the moment it is due agree; the threshold finds its budget. */
#include "cycle/refresh.h"
#include "base/date.h"
#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../seeded.h"

#define NOW_MS 1790000000000ll

static uint64_t chance = 88172645463325252u;

static double unit(void)
{
    return chance_unit(&chance);
}

/* From low to high, every order of magnitude as likely as the others. */
static double magnitude(double low, double high)
{
    return low * pow(high / low, unit());
}

static int64_t days_ms(double days)
{
    return (int64_t)(days * WB_DAY_MS);
}

static struct wb_webdb_page seen_page(double score, double age_days)
{
    return (struct wb_webdb_page){.score = score,
                                  .has_content = true,
                                  .status = 200,
                                  .last_seen_ms = NOW_MS - days_ms(age_days),
                                  .last_tried_ms = NOW_MS - days_ms(age_days)};
}

static void assert_close(double value, double right, double part)
{
    if (!(fabs(value - right) <= part * fabs(right)))
        fail_msg("%.17g is not %.17g", value, right);
}

static void test_words(void **state)
{
    enum wb_refresh_policy policy;

    (void)state;
    for (enum wb_refresh_policy p = WB_REFRESH_OPTIMAL; p <= WB_REFRESH_AGE; p++) {
        assert_true(wb_refresh_policy_parse(wb_slice_str(wb_refresh_policy_word(p)), &policy));
        assert_int_equal(policy, p);
    }
    assert_false(wb_refresh_policy_parse(WB_SLICE_LIT("optima"), &policy));
    assert_false(wb_refresh_policy_parse(WB_SLICE_EMPTY, &policy));
}

static void test_formula(void **state)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_OPTIMAL, .theta = 1};

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        double w = magnitude(1e-6, 1e6), rate = magnitude(1e-5, 1e3), tau = magnitude(1e-2, 1e4);
        struct wb_webdb_page page = seen_page(w, tau);
        long double x = (long double)rate * (long double)(NOW_MS - page.last_seen_ms) / WB_DAY_MS;
        long double right = (long double)(w / rate) * (1 - expl(-x) * (1 + x));
        assert_close(wb_refresh_value(&refresh, &page, rate, NOW_MS), (double)right, x < 1e-4 ? 1e-3 : 1e-9);
    }
    /* Small x: the first terms of the series. */
    struct wb_webdb_page page = seen_page(1, 1);
    assert_close(wb_refresh_value(&refresh, &page, 1e-5, NOW_MS), 1e-5 / 2 * (1 - 2e-5 / 3), 1e-9);
}

static void test_other_policies(void **state)
{
    struct wb_webdb_page page = seen_page(5, 10);

    (void)state;
    page.history.visits = 5;
    page.history.changes = 3;
    assert_close(wb_refresh_value(&(struct wb_refresh){.policy = WB_REFRESH_UNIFORM}, &page, 0.2, NOW_MS), 10, 1e-9);
    assert_close(wb_refresh_value(&(struct wb_refresh){.policy = WB_REFRESH_PROPORTIONAL}, &page, 0.2, NOW_MS), 2,
                 1e-9);
    double interval = 30 * 0.8 * 0.8 * 0.8 * 1.4 * 1.4;
    assert_close(wb_refresh_value(&(struct wb_refresh){.policy = WB_REFRESH_ADAPTIVE}, &page, 0.2, NOW_MS),
                 10 / interval, 1e-9);
    page.history.visits = UINT32_MAX;
    assert_close(wb_refresh_value(&(struct wb_refresh){.policy = WB_REFRESH_ADAPTIVE}, &page, 0.2, NOW_MS), 10 / 365.0,
                 1e-9);
    page.history.changes = UINT32_MAX;
    assert_close(wb_refresh_value(&(struct wb_refresh){.policy = WB_REFRESH_ADAPTIVE}, &page, 0.2, NOW_MS), 14400,
                 1e-9);
    assert_close(
        wb_refresh_value(&(struct wb_refresh){.policy = WB_REFRESH_ADAPTIVE, .min_days = 2}, &page, 0.2, NOW_MS), 5,
        1e-9);
}

static struct wb_webdb_page random_page(void)
{
    struct wb_webdb_page page = seen_page(magnitude(1e-3, 1e3), magnitude(0.001, 1000));
    double fate = unit();

    page.history.visits = (uint32_t)(unit() * 12);
    page.history.changes = (uint32_t)(unit() * (page.history.visits + 1));
    if (fate < 0.1)
        page.signals = (uint16_t)(1 + unit() * 3);
    else if (fate < 0.2)
        page.failures = (uint16_t)(1 + unit() * 10);
    else if (fate < 0.3)
        page.flags = WB_PAGE_GONE;
    else if (fate < 0.35)
        page.flags = WB_PAGE_PUSHED;
    else if (fate < 0.4)
        page.last_seen_ms = page.last_tried_ms = 0;
    if (page.failures > 0)
        page.last_tried_ms += (NOW_MS - page.last_tried_ms) / 2;
    if (fate < 0.12)
        page.last_seen_ms = 0;
    return page;
}

/* At its due time a page is worth theta, and was not a moment before; where it never is, a thousand years do not help.
 */
static void test_value_and_due_agree(void **state)
{
    unsigned never = 0, at_once = 0, later = 0;

    (void)state;
    for (unsigned i = 0; i < 400000; i++) {
        struct wb_webdb_page page = random_page();
        struct wb_refresh refresh = {.policy = (enum wb_refresh_policy)(i % 4), .theta = magnitude(1e-3, 1e3)};
        double rate = magnitude(1e-4, 1e2);
        if (unit() < 0.3)
            refresh.min_days = magnitude(0.01, 10);
        if (unit() < 0.3)
            refresh.max_days = fmax(refresh.min_days, 0.01) * magnitude(1, 1000);
        int64_t due_ms = wb_refresh_due(&refresh, &page, rate);
        int64_t origin_ms = page.failures > 0 || page.flags == WB_PAGE_GONE ? page.last_tried_ms : page.last_seen_ms;
        if (due_ms == INT64_MAX) {
            assert_true(wb_refresh_value(&refresh, &page, rate, NOW_MS + days_ms(300000)) <= refresh.theta);
            never++;
            continue;
        }
        double value = wb_refresh_value(&refresh, &page, rate, due_ms);
        if (!(value >= refresh.theta))
            fail_msg("page %u, %s: worth %g when due, not %g", i, wb_refresh_policy_word(refresh.policy), value,
                     refresh.theta);
        if (due_ms <= origin_ms) {
            at_once++;
            continue;
        }
        later++;
        int64_t before_ms = due_ms - (due_ms - origin_ms) / 100 - 2;
        value = wb_refresh_value(&refresh, &page, rate, before_ms);
        if (before_ms > origin_ms && !(value < refresh.theta))
            fail_msg("page %u, %s: worth %g of %g before it is due", i, wb_refresh_policy_word(refresh.policy), value,
                     refresh.theta);
    }
    assert_true(never > 10000 && at_once > 10000 && later > 10000);
}

static void test_never(void **state)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_OPTIMAL, .theta = 2};
    struct wb_webdb_page page = seen_page(1, 1);

    (void)state;
    assert_true(wb_refresh_due(&refresh, &page, 0.49) < INT64_MAX);
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.5), INT64_MAX);
    assert_int_equal(wb_refresh_due(&refresh, &page, 20), INT64_MAX);
    /* But for a bound. */
    refresh.max_days = 7;
    assert_int_equal(wb_refresh_due(&refresh, &page, 20), page.last_seen_ms + days_ms(7));
    page.score = 0;
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), page.last_seen_ms + days_ms(7));
    page.score = 1;
    page.flags = WB_PAGE_BARRED;
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), INT64_MAX);
    assert_true(wb_refresh_value(&refresh, &page, 0.1, NOW_MS + days_ms(1000)) == 0);
}

static void test_bounds(void **state)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_OPTIMAL, .theta = 1e-9, .min_days = 3, .max_days = 9};
    struct wb_webdb_page page = seen_page(1, 1);

    (void)state;
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), page.last_seen_ms + days_ms(3));
    assert_true(wb_refresh_value(&refresh, &page, 0.1, page.last_seen_ms + days_ms(2.99)) == 0);
    refresh.theta = 9.9;
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), page.last_seen_ms + days_ms(9));
    /* The longer it waits past its bound, the more it is worth. */
    assert_true(wb_refresh_value(&refresh, &page, 0.1, page.last_seen_ms + days_ms(18)) >= 2 * 9.9);
}

static void test_never_fetched(void **state)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_OPTIMAL, .theta = 10};
    struct wb_webdb_page fresh = {.score = 2}, old = seen_page(2, 10000);

    (void)state;
    assert_close(wb_refresh_value(&refresh, &fresh, 0.1, NOW_MS), 20, 1e-9);
    assert_close(wb_refresh_value(&refresh, &fresh, 0.1, NOW_MS), wb_refresh_value(&refresh, &old, 0.1, NOW_MS), 1e-9);
    assert_int_equal(wb_refresh_due(&refresh, &fresh, 0.1), 0);
    for (enum wb_refresh_policy p = WB_REFRESH_OPTIMAL; p <= WB_REFRESH_AGE; p++) {
        struct wb_webdb_page page = seen_page(2, 300);
        refresh.policy = p;
        assert_true(wb_refresh_value(&refresh, &fresh, 0.01, NOW_MS) > wb_refresh_value(&refresh, &page, 0.01, NOW_MS));
    }
}

/* Each attempt in vain doubles the time to the next, where V still grows with the square of time by somewhat less. */
/* An eighth of the value, under every policy, and not within a week; what was announced is worth what it is. */
static void test_near_duplicates(void **state)
{
    (void)state;
    for (enum wb_refresh_policy policy = WB_REFRESH_OPTIMAL; policy <= WB_REFRESH_AGE; policy++) {
        struct wb_refresh refresh = {.policy = policy, .theta = wb_refresh_first_theta(policy, 10)};
        struct wb_webdb_page page = seen_page(1, 20), near = page;
        near.near = true;
        assert_close(8 * wb_refresh_value(&refresh, &near, 1.0 / 30, NOW_MS),
                     wb_refresh_value(&refresh, &page, 1.0 / 30, NOW_MS), 1e-9);
        assert_true(wb_refresh_due(&refresh, &near, 1.0 / 30) > wb_refresh_due(&refresh, &page, 1.0 / 30));
        assert_true(wb_refresh_value(&refresh, &near, 1.0 / 30, near.last_seen_ms + days_ms(6.9)) == 0);
        assert_true(wb_refresh_value(&refresh, &near, 1.0 / 30, near.last_seen_ms + days_ms(7.1)) > 0);
        near.flags = page.flags = WB_PAGE_PUSHED;
        assert_close(wb_refresh_value(&refresh, &near, 1.0 / 30, NOW_MS),
                     wb_refresh_value(&refresh, &page, 1.0 / 30, NOW_MS), 1e-9);
        /* A class that wants every page within two days has it. */
        near.flags = 0;
        refresh.max_days = 2;
        assert_true(wb_refresh_due(&refresh, &near, 1.0 / 30) <= near.last_seen_ms + days_ms(2));
    }
}

static void test_failures(void **state)
{
    struct wb_refresh uniform = {.policy = WB_REFRESH_UNIFORM, .theta = 3},
                      optimal = {.policy = WB_REFRESH_OPTIMAL, .theta = 0.001};
    struct wb_webdb_page page = seen_page(1, 100);
    double last = 0;

    (void)state;
    page.last_tried_ms = NOW_MS;
    for (page.failures = 1; page.failures < 8; page.failures++) {
        assert_int_equal(wb_refresh_due(&uniform, &page, 0.1), NOW_MS + days_ms(3) * (1 << page.failures));
        double wait = (double)(wb_refresh_due(&optimal, &page, 0.1) - NOW_MS);
        assert_true(wait > 1.4 * last && wait < 1e12);
        last = wait;
    }
    page.failures = UINT16_MAX;
    assert_int_equal(wb_refresh_due(&uniform, &page, 0.1), INT64_MAX);
    /* The same for one that was never there. */
    page.failures = 3;
    page.last_seen_ms = 0;
    assert_int_equal(wb_refresh_due(&uniform, &page, 0.1), NOW_MS + days_ms(24));
}

static void test_gone(void **state)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_UNIFORM, .theta = 1, .max_days = 2};
    struct wb_webdb_page page = seen_page(1, 20);

    (void)state;
    page.flags = WB_PAGE_GONE;
    page.last_tried_ms = NOW_MS;
    page.history.fetch_count = 2;
    page.history.fetches[0] = (struct wb_visitlog_fetch){NOW_MS - days_ms(20), WB_OUTCOME_STORED, 200};
    page.history.fetches[1] = (struct wb_visitlog_fetch){NOW_MS, WB_OUTCOME_GONE, 404};
    assert_true(wb_refresh_value(&refresh, &page, 0.1, NOW_MS + days_ms(29)) == 0);
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), NOW_MS + days_ms(30));
    assert_true(wb_refresh_value(&refresh, &page, 0.1, NOW_MS + days_ms(30)) > 1);
    /* The second look, 30 days later, is the last one... */
    page.last_tried_ms = NOW_MS + days_ms(31);
    page.history.fetches[page.history.fetch_count++] =
        (struct wb_visitlog_fetch){page.last_tried_ms, WB_OUTCOME_GONE, 404};
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), INT64_MAX);
    assert_true(wb_refresh_value(&refresh, &page, 0.1, NOW_MS + days_ms(3000)) == 0);
    /* ...unless somebody says that there is something. */
    page.flags |= WB_PAGE_PUSHED;
    assert_true(wb_refresh_value(&refresh, &page, 0.1, NOW_MS + days_ms(32)) > 1);
    /* Seen again in between: it went again. */
    page.flags = WB_PAGE_GONE;
    page.history.fetches[1].outcome = WB_OUTCOME_UNCHANGED;
    assert_int_equal(wb_refresh_due(&refresh, &page, 0.1), page.last_tried_ms + days_ms(30));
}

/* A page with a signal is as stale as one that is ln 5 changes older. */
static void test_signals(void **state)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_OPTIMAL, .theta = 1};
    struct wb_webdb_page page = seen_page(1, 3), older = seen_page(1, 3 + log(5) / 0.1);

    (void)state;
    page.signals = 1;
    assert_close(wb_refresh_value(&refresh, &page, 0.1, NOW_MS), wb_refresh_value(&refresh, &older, 0.1, NOW_MS), 1e-6);
    page.signals = UINT16_MAX;
    assert_close(wb_refresh_value(&refresh, &page, 0.1, NOW_MS), 10, 1e-9);
}

static void test_absurd(void **state)
{
    static const double numbers[] = {0, -1, 1e-300, 1, 1e300, INFINITY, -INFINITY, NAN};
    static const int64_t times[] = {0, 1, -1, NOW_MS, INT64_MAX, INT64_MIN};

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        struct wb_refresh refresh = {(enum wb_refresh_policy)(i % 4), numbers[(int)(unit() * 8)],
                                     numbers[(int)(unit() * 8)], numbers[(int)(unit() * 8)]};
        struct wb_webdb_page page = {.score = numbers[(int)(unit() * 8)],
                                     .flags = (unsigned)(unit() * 64),
                                     .failures = (uint16_t)(unit() * 65536),
                                     .signals = (uint16_t)(unit() * 65536),
                                     .last_seen_ms = times[(int)(unit() * 6)],
                                     .last_tried_ms = times[(int)(unit() * 6)]};
        page.history.fetch_count = (uint8_t)(unit() * 9);
        double rate = numbers[(int)(unit() * 8)];
        double value = wb_refresh_value(&refresh, &page, rate, times[(int)(unit() * 6)]);
        assert_true(value >= 0);
        wb_refresh_due(&refresh, &page, rate);
    }
}

/* ---- the threshold --------------------------------------------------------------------------- */

#define PAGES 2000

struct population {
    struct wb_webdb_page page[PAGES];
    double rate[PAGES];
};

static struct population *new_population(void)
{
    struct population *p = wb_alloc_zero(1, sizeof *p);

    assert_non_null(p);
    for (unsigned i = 0; i < PAGES; i++) {
        p->page[i] = seen_page(magnitude(0.1, 10), 100 * unit());
        p->rate[i] = magnitude(0.001, 10);
    }
    return p;
}

static int by_value(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left < *right) - (*left > *right);
}

/* A day as a cycle has it: visits those that are worth most. How many had reached theta, and the least value that was
 * enough. */
static unsigned live_a_day(struct population *p, const struct wb_refresh *refresh, unsigned budget, int64_t now_ms,
                           double *least_out)
{
    static double value[PAGES], sorted[PAGES];
    unsigned due = 0;

    for (unsigned i = 0; i < PAGES; i++) {
        value[i] = sorted[i] = wb_refresh_value(refresh, &p->page[i], p->rate[i], now_ms);
        due += value[i] >= refresh->theta;
    }
    qsort(sorted, PAGES, sizeof *sorted, by_value);
    *least_out = sorted[budget - 1];
    for (unsigned i = 0; i < PAGES; i++)
        if (value[i] >= *least_out)
            p->page[i].last_seen_ms = now_ms;
    return due;
}

/* From wherever it begins, and after the budget was changed, it comes near to what the last page was worth, and stays.
 */
static void settle(enum wb_refresh_policy policy, double far, unsigned budget, unsigned later_budget)
{
    struct population *p = new_population();
    struct wb_refresh refresh = {.policy = policy, .theta = far * wb_refresh_first_theta(policy, PAGES / budget)};
    int64_t now_ms = NOW_MS;

    for (unsigned change = 0; change < 2; change++) {
        unsigned wanted = change ? later_budget : budget, near = 0;
        double least;
        for (unsigned day = 0; day < 160; day++, now_ms += days_ms(1)) {
            unsigned due = live_a_day(p, &refresh, wanted, now_ms, &least);
            near += day >= 60 && refresh.theta > 0.6 * least && refresh.theta < 1.6 * least;
            refresh.theta = wb_refresh_move_theta(refresh.theta, due, wanted);
        }
        if (near < 95)
            fail_msg("%s, %u of %u pages a day, begun at %g: near on %u of 100 days, at last %g, not %g",
                     wb_refresh_policy_word(policy), wanted, PAGES, far, near, refresh.theta, least);
    }
    wb_free(p);
}

static void test_threshold_settles(void **state)
{
    (void)state;
    for (enum wb_refresh_policy p = WB_REFRESH_OPTIMAL; p <= WB_REFRESH_AGE; p++)
        for (double far = 1e-4; far < 2e4; far *= 100) {
            settle(p, far, 100, 300);
            settle(p, far, 200, 40);
            settle(p, far, 20, 100);
        }
}

static void test_threshold_edges(void **state)
{
    static const double numbers[] = {0, -1, 1e-300, 1, 1e300, INFINITY, -INFINITY, NAN};

    (void)state;
    assert_true(wb_refresh_move_theta(3, 100, 100) == 3);
    assert_true(wb_refresh_move_theta(3, 101, 100) > 3 && wb_refresh_move_theta(3, 99, 100) < 3);
    assert_true(wb_refresh_move_theta(3, 0, 100) > 0.1 && wb_refresh_move_theta(3, 1e9, 1) < 100);
    for (unsigned i = 0; i < 8 * 8 * 8; i++) {
        double theta = wb_refresh_move_theta(numbers[i % 8], numbers[i / 8 % 8], numbers[i / 64]);
        assert_true(theta > 0 && theta < INFINITY);
    }
}

static void test_threshold_begin(void **state)
{
    (void)state;
    for (enum wb_refresh_policy p = WB_REFRESH_OPTIMAL; p <= WB_REFRESH_AGE; p++)
        for (double days = 0.1; days < 300; days *= 3) {
            struct wb_refresh refresh = {.policy = p, .theta = wb_refresh_first_theta(p, days)};
            struct wb_webdb_page page = seen_page(1, 0);
            assert_close((double)(wb_refresh_due(&refresh, &page, 1.0 / 30) - NOW_MS), days * WB_DAY_MS, 1e-6);
        }
    assert_true(wb_refresh_first_theta(WB_REFRESH_OPTIMAL, 0) > 0 &&
                wb_refresh_first_theta(WB_REFRESH_OPTIMAL, INFINITY) < INFINITY);
}

/* The value of a visit is the integral of t dA(t), and the interval is its inverse. */
static void test_age(void **state)
{
    static const double rates[] = {1e-4, 1.0 / 30, 0.3, 2, 500};

    (void)state;
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (double days = 0.01; days < 2000; days *= 3) {
            struct wb_refresh refresh = {.policy = WB_REFRESH_AGE, .theta = 1};
            struct wb_webdb_page page = {.score = 1, .last_seen_ms = 1000000, .last_tried_ms = 1000000};
            double sum = 0;
            int steps = 20000;
            for (int i = 0; i < steps; i++) {
                double t = (i + 0.5) * days / steps;
                sum += t * -expm1(-rates[r] * t) * days / steps;
            }
            double value = wb_refresh_value(&refresh, &page, rates[r], 1000000 + (int64_t)(days * 86400000));
            assert_true(fabs(value - sum) <= 1e-3 * sum);
            assert_true(fabs(wb_refresh_interval(WB_REFRESH_AGE, sum, rates[r]) - days) <= 1e-3 * days);
        }
    /* What changes all the time is worth the most after the same time, where `optimal` gives it up. */
    struct wb_webdb_page page = {.score = 1, .last_seen_ms = 1000000, .last_tried_ms = 1000000};
    struct wb_refresh age = {.policy = WB_REFRESH_AGE}, optimal = {.policy = WB_REFRESH_OPTIMAL};
    int64_t now_ms = 1000000 + 30 * 86400000ll;
    assert_true(wb_refresh_value(&age, &page, 100, now_ms) > wb_refresh_value(&age, &page, 0.03, now_ms));
    assert_true(wb_refresh_value(&optimal, &page, 100, now_ms) < wb_refresh_value(&optimal, &page, 0.03, now_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_other_policies),
        cmocka_unit_test(test_value_and_due_agree),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_never_fetched),
        cmocka_unit_test(test_near_duplicates),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_absurd),
        cmocka_unit_test(test_threshold_settles),
        cmocka_unit_test(test_threshold_edges),
        cmocka_unit_test(test_threshold_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
