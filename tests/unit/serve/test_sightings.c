/*
 * test_sightings.c - captures in the order of time and in spans of it, compared with a naive calendar that counts one
 * day after the other; and distances in words.
 */
#include "../seeded.h"
#include "base/date.h"
#include "serve/distance.h"
#include "serve/sightings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- dates ------------------------------------------------------------------------------------------------------- */

static int days_in(int64_t year, int64_t month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* Every day from 1890 to 2110, forwards from a day that is known: 1 January 1890 was 29,219 days before 1970. */
static void test_every_day(void **state)
{
    int64_t number = -29219;

    (void)state;
    for (int64_t year = 1890; year <= 2110; year++)
        for (int64_t month = 1; month <= 12; month++)
            for (int64_t day = 1; day <= days_in(year, month); day++, number++) {
                int64_t y, m, d;
                assert_int_equal(wb_date_days(year, month, day), number);
                wb_date_civil(number, &y, &m, &d);
                assert_true(y == year && m == month && d == day);
            }
    assert_int_equal(wb_date_days(1970, 1, 1), 0);
    assert_int_equal(wb_date_days(2000, 2, 29) + 1, wb_date_days(2000, 3, 1));
    assert_int_equal(wb_date_days(1900, 2, 28) + 1, wb_date_days(1900, 3, 1));
}

static void test_spans(void **state)
{
    (void)state;
    assert_int_equal(wb_sighting_span_of(0, WB_DAY_MS), 0);
    assert_int_equal(wb_sighting_span_of(WB_DAY_MS - 1, WB_DAY_MS), 0);
    assert_int_equal(wb_sighting_span_of(-1, WB_DAY_MS), -1);
    assert_int_equal(wb_sighting_span_of(-WB_DAY_MS, WB_DAY_MS), -1);
    assert_int_equal(wb_sighting_span_of(-WB_DAY_MS - 1, WB_DAY_MS), -2);
}

/* ---- captures ---------------------------------------------------------------------------------------------------- */

enum { VERSIONS = 40, TIMES = 4000 };

struct past {
    struct wb_store_version versions[VERSIONS];
    int64_t times[TIMES];
    struct wb_store_timeline timeline;
};

/* Versions with some captures each, now and then several of the same time or before those of the version before. */
static void make_past(uint64_t *chance, struct past *p)
{
    static const uint16_t statuses[] = {200, 200, 200, 204, 301, 304, 307, 308, 404, 500};
    int64_t time_ms = (int64_t)chance_below(chance, 4000000000000) - 1000000000000;
    size_t used = 0;

    *p = (struct past){.timeline = {.versions = p->versions, .times = p->times}};
    size_t count = 1 + (size_t)chance_below(chance, VERSIONS);
    for (size_t i = 0; i < count; i++) {
        struct wb_store_version *v = &p->versions[i];
        *v = (struct wb_store_version){.first = used, .status = statuses[chance_below(chance, 10)]};
        if (chance_one_in(chance, 10))
            time_ms -= (int64_t)chance_below(chance, 100000000);
        for (size_t k = 1 + (size_t)chance_below(chance, TIMES / VERSIONS); k > 0; k--) {
            p->times[used++] = time_ms;
            v->captures++;
            time_ms += chance_one_in(chance, 4) ? 0 : (int64_t)chance_below(chance, 5000000000);
        }
    }
    p->timeline.count = count;
    p->timeline.time_count = used;
}

/* How many captures of a kind a span has, by looking at all of them. */
static uint64_t naive_count(const struct past *p, int64_t unit_ms, int64_t number, enum wb_sighting_kind kind)
{
    uint64_t count = 0;

    for (size_t i = 0; i < p->timeline.count; i++)
        for (size_t k = 0; k < p->versions[i].captures; k++) {
            int64_t time_ms = p->times[p->versions[i].first + k];
            uint16_t status = p->versions[i].status;
            bool redirects = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
            enum wb_sighting_kind is = status >= 400 ? WB_SIGHTING_ERROR
                                       : redirects   ? WB_SIGHTING_REDIRECT
                                       : k == 0      ? WB_SIGHTING_NEW
                                                     : WB_SIGHTING_SAME;
            count += is == kind && time_ms >= number * unit_ms && time_ms < (number + 1) * unit_ms;
        }
    return count;
}

static void check_counts(const struct past *p, const struct wb_sightings *sightings, int64_t unit_ms)
{
    struct wb_sighting_spans spans;
    uint64_t all = 0;

    assert_int_equal(wb_sightings_count(sightings, unit_ms, &spans), 0);
    for (size_t i = 0; i < spans.count; i++) {
        uint64_t sum = 0;
        assert_true(i == 0 || spans.items[i - 1].number < spans.items[i].number);
        for (enum wb_sighting_kind kind = 0; kind < WB_SIGHTING_KINDS; kind++) {
            assert_int_equal(spans.items[i].kinds[kind], naive_count(p, unit_ms, spans.items[i].number, kind));
            sum += spans.items[i].kinds[kind];
        }
        assert_true(sum > 0 && sum == spans.items[i].count);
        all += sum;
    }
    assert_int_equal(all, p->timeline.time_count);
    wb_sighting_spans_release(&spans);
}

static void test_counts(void **state)
{
    static struct past p;
    uint64_t chance = test_seed();

    (void)state;
    for (int round = 0; round < 12; round++) {
        struct wb_sightings sightings;
        make_past(&chance, &p);
        assert_int_equal(wb_sightings_of(&p.timeline, &sightings), 0);
        assert_int_equal(sightings.count, p.timeline.time_count);
        for (size_t i = 1; i < sightings.count; i++)
            assert_true(sightings.items[i - 1].time_ms <= sightings.items[i].time_ms);
        for (int i = 0; i < 20; i++) {
            int64_t time_ms =
                p.times[chance_below(&chance, p.timeline.time_count)] + (int64_t)chance_below(&chance, 3) - 1;
            size_t from = wb_sightings_from(&sightings, time_ms);
            assert_true(from == sightings.count || sightings.items[from].time_ms >= time_ms);
            assert_true(from == 0 || sightings.items[from - 1].time_ms < time_ms);
        }
        check_counts(&p, &sightings, WB_DAY_MS);
        check_counts(&p, &sightings, 365 * WB_DAY_MS);
        wb_sightings_release(&sightings);
    }
}

/* ---- distances --------------------------------------------------------------------------------------------------- */

static void test_distances(void **state)
{
    static const struct {
        int64_t seconds;
        const char *words;
    } cases[] = {
        {0, "the same second"},       {1, "1 second later"},       {-1, "1 second earlier"},
        {119, "119 seconds later"},   {120, "2 minutes later"},    {7199, "119 minutes later"},
        {7200, "2 hours later"},      {172799, "47 hours later"},  {-172800, "2 days earlier"},
        {63113903, "730 days later"}, {63113904, "2 years later"}, {-315569520, "10 years earlier"},
    };
    char text[WB_DISTANCE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(wb_distance_words(1000000, 1000000 + cases[i].seconds * 1000, text), cases[i].words);
    assert_string_equal(wb_distance_words(0, 999, text), "the same second");
    assert_string_equal(wb_distance_words(INT64_MIN, INT64_MAX, text), "584554049 years later");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_day),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_distances),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
