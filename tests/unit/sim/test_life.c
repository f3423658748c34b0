/* test_life.c - draws and Poisson processes: always the same, and distributed as they should be. */
#include "simtest.h"

#include "sim/chance.h"
#include "sim/life.h"

#include <math.h>

static void assert_near(double got, double expected, double slack)
{
    if (!(fabs(got - expected) <= slack))
        fail_msg("%g, not %g +- %g", got, expected, slack);
}

static void test_draws(void **state)
{
    enum { N = 200000 };
    double units = 0, exponentials = 0, poissons = 0, squares = 0;

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        uint64_t r = wb_chance(7, i, 0, WB_CHANCE_TEXT);
        assert_true(r == wb_chance(7, i, 0, WB_CHANCE_TEXT));
        double u = wb_chance_unit(r), n = wb_chance_poisson(r);
        assert_true(u >= 0 && u < 1);
        units += u;
        exponentials += wb_chance_exponential(r);
        poissons += n;
        squares += n * n;
    }
    assert_near(units / N, 0.5, 0.005);
    assert_near(exponentials / N, 1, 0.02);
    assert_near(poissons / N, 1, 0.015);
    assert_near(squares / N - poissons / N * poissons / N, 1, 0.03);
    assert_int_equal(wb_chance_poisson(UINT64_MAX), 15);
    assert_true(isfinite(wb_chance_exponential(UINT64_MAX)));
    assert_true(wb_chance(1, 2, 3, WB_CHANCE_TEXT) != wb_chance(1, 3, 2, WB_CHANCE_TEXT));
    assert_true(wb_chance(1, 2, 3, WB_CHANCE_TEXT) != wb_chance(1, 2, 3, WB_CHANCE_LINKS));
}

static void test_dice(void **state)
{
    struct wb_chance_dice dice = {42};
    unsigned faces[6] = {0};

    (void)state;
    for (unsigned i = 0; i < 60000; i++) {
        uint32_t face = wb_chance_dice_below(&dice, 6);
        assert_true(face < 6);
        faces[face]++;
    }
    for (unsigned i = 0; i < 6; i++)
        assert_near(faces[i], 10000, 500);
}

/* Walking in small steps meets each event once, in order, and as many events as the rate predicts. */
static void test_events_in_order(void **state)
{
    struct wb_life_event last = {0, -1e9}, event;
    double rate = 0.37, start = -500, seconds = 20000;
    unsigned changes = 0;

    (void)state;
    assert_true(wb_life_last(99, rate, start, &last));
    assert_true(last.time <= start);
    for (double t = start; t < start + seconds; t += 0.05) {
        assert_true(wb_life_last(99, rate, t, &event));
        assert_true(event.time <= t);
        assert_true(event.number >= last.number);
        assert_true((event.number == last.number) == (event.time == last.time));
        changes += event.number != last.number;
        last = event;
    }
    /* Two events within a step are seen as one change. */
    double seen = (1 - exp(-rate * 0.05)) * seconds / 0.05;
    assert_near(changes, seen, 5 * sqrt(seen));
}

static void test_many_processes(void **state)
{
    enum { N = 20000 };
    double rate = 1 / 3.0;
    unsigned changed = 0;
    double ages = 0;

    (void)state;
    for (uint64_t name = 0; name < N; name++) {
        struct wb_life_event a, b;
        assert_true(wb_life_last(name, rate, 10, &a));
        assert_true(wb_life_last(name, rate, 12, &b));
        changed += a.number != b.number;
        ages += 12 - b.time;
    }
    double p = 1 - exp(-2 * rate);
    assert_near(changed, N * p, 5 * sqrt(N * p * (1 - p)));
    assert_near(ages / N, 3, 5 * 3 / sqrt(N)); /* the time since the last event is exponential */
}

static void test_nothing_without_a_rate(void **state)
{
    struct wb_life_event event;

    (void)state;
    assert_false(wb_life_last(1, 0, 5, &event));
    assert_false(wb_life_last(1, NAN, 5, &event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_dice),
        cmocka_unit_test(test_events_in_order),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_nothing_without_a_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
