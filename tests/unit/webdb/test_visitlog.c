/*
 * test_visitlog.c - what a history keeps of visits (bins, sums, and the counts of the server's times), compared with a
 * list of all visits.
 */
#include "page_support.h"

#include <math.h>

#define MINUTE_MS INT64_C(60000)

static unsigned only_bin(int64_t gap_ms)
{
    struct wb_visitlog history = {0};
    unsigned found = WB_VISITLOG_BINS;

    wb_visitlog_add(&history, gap_ms, true, 0, BASE_MS);
    for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
        if (history.changed[i]) {
            assert_int_equal(found, WB_VISITLOG_BINS);
            assert_int_equal(history.changed[i], 1);
            found = i;
        }
    assert_true(found < WB_VISITLOG_BINS);
    return found;
}

static void test_bins(void **state)
{
    (void)state;
    assert_int_equal(only_bin(1), 0);
    assert_int_equal(only_bin(MINUTE_MS), 0);
    assert_int_equal(only_bin(84852), 0); /* the square root of 2 minutes is 84852.8 ms */
    assert_int_equal(only_bin(84853), 1);
    assert_int_equal(only_bin(2 * MINUTE_MS - 1), 1);
    assert_int_equal(only_bin(2 * MINUTE_MS), 2);
    assert_int_equal(only_bin(WB_DAY_MS), 20);    /* 1440 minutes: between 2^10 and 2^10.5 */
    assert_int_equal(only_bin(1024 * MINUTE_MS), 20);
    assert_int_equal(only_bin(1024 * MINUTE_MS - 1), 19);
    assert_int_equal(only_bin(10000 * WB_DAY_MS), WB_VISITLOG_BINS - 1);
    assert_int_equal(only_bin(INT64_MAX), WB_VISITLOG_BINS - 1);
    for (unsigned i = 0; i < WB_VISITLOG_BINS; i++) {
        double days = wb_visitlog_bin_days(i);
        assert_int_equal(only_bin((int64_t)(days * (double)WB_DAY_MS)), i);
        assert_true(fabs(days * 1440 - sqrt(pow(2, i / 2.0) * pow(2, (i + 1) / 2.0))) < 1e-6 * days * 1440);
    }
}

struct told {
    int64_t time_ms, gap_ms, modified_ms;
    bool changed;
};

/* Computes the same from the whole list, by the definitions. */
static void assert_history(const struct wb_visitlog *history, const struct told *told, size_t count)
{
    double unchanged = 0, days = 0;
    uint32_t changes = 0, visits = 0, n = 0, x = 0, in_bins = 0;
    bool lies = false;

    for (size_t i = 0; i < count; i++) {
        const struct told *t = &told[i];
        visits++;
        changes += t->changed;
        unchanged += t->changed ? 0 : (double)t->gap_ms / WB_DAY_MS;
        if (t->modified_ms == 0 || lies)
            continue;
        int64_t age = t->time_ms - t->modified_ms;
        if (age < 0 || (t->changed && t->modified_ms <= t->time_ms - t->gap_ms - 1000)) {
            lies = true;
            continue;
        }
        n++;
        x += t->changed || age < t->gap_ms;
        days += (double)(age < t->gap_ms ? age : t->gap_ms) / WB_DAY_MS;
    }
    for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
        in_bins += history->changed[i];
    assert_int_equal(history->visits, visits);
    assert_int_equal(history->changes, changes);
    assert_int_equal(in_bins, changes);
    assert_true(fabs(history->unchanged_days - unchanged) < 1e-9 * (1 + unchanged));
    assert_int_equal(history->modified_lies, lies);
    assert_int_equal(history->modified_visits, n);
    assert_int_equal(history->modified_changes, x);
    assert_true(fabs(history->modified_days - days) < 1e-9 * (1 + days));
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    struct told told[64];
    unsigned liars = 0;

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        struct wb_visitlog history = {0};
        int64_t time_ms = BASE_MS;
        bool honest = chance_below(&chance, 2);
        for (size_t i = 0; i < COUNT(told); i++) {
            struct told *t = &told[i];
            t->gap_ms = 1 + (int64_t)chance_below(&chance, (uint64_t)(30 * WB_DAY_MS));
            t->time_ms = time_ms += t->gap_ms;
            t->changed = chance_below(&chance, 2);
            t->modified_ms =
                chance_below(&chance, 4)
                    ? time_ms - (int64_t)chance_below(&chance, (uint64_t)(t->changed ? t->gap_ms : 60 * WB_DAY_MS))
                    : 0;
            if (!honest && chance_below(&chance, 40) == 0)
                t->modified_ms = chance_below(&chance, 2) ? time_ms + 1 : time_ms - t->gap_ms;
            wb_visitlog_add(&history, t->gap_ms, t->changed, t->modified_ms, t->time_ms);
            assert_history(&history, told, i + 1);
        }
        liars += history.modified_lies;
    }
    assert_in_range(liars, 100, 1500);
}

static void test_ends(void **state)
{
    struct wb_visitlog history = {
        .visits = UINT32_MAX, .changes = UINT32_MAX, .modified_visits = UINT32_MAX, .modified_changes = UINT32_MAX};
    struct wb_visitlog before = {0}, same = {0};

    (void)state;
    history.changed[20] = UINT16_MAX;
    wb_visitlog_add(&history, WB_DAY_MS, true, BASE_MS - 1, BASE_MS);
    assert_true(history.visits == UINT32_MAX && history.changes == UINT32_MAX && history.changed[20] == UINT16_MAX);
    assert_true(history.modified_visits == UINT32_MAX && history.modified_changes == UINT32_MAX &&
                !history.modified_lies);
    /* A gap of 0 teaches nothing. */
    wb_visitlog_add(&same, 0, true, 0, BASE_MS);
    wb_visitlog_add(&same, -5, false, 0, BASE_MS);
    assert_memory_equal(&before, &same, sizeof same);
    /* Any time that a server may send is handled without overflow. */
    wb_visitlog_add(&same, 1, false, INT64_MIN, INT64_MAX);
    assert_int_equal(same.modified_visits, 1);
    wb_visitlog_add(&same, INT64_MAX, false, INT64_MAX, INT64_MIN);
    assert_true(same.modified_lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bins), cmocka_unit_test(test_model),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
