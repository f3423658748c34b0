/*
 * test_advice.c - advice about designs: all of them are judged, the order follows the scores, and with the costs of the
 * paper's disk the advice is what the paper concludes in sections 4.3 and 4.6.
 */
#include "../expect.h"

#include "advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* From Table S-4; the rows that the paper does not have are those of our model. */
static const struct wb_advice_costs paper = {
    .organisation =
        {
            [WB_ORGANISATION_LOG] =
                {.add = 164, .add_sorted = 164, .bring = 164, .get = 28200, .stream = 159, .compact = 323},
            [WB_ORGANISATION_HASHED_LOG] =
                {.add = 1520, .add_sorted = 164, .bring = 164, .get = 28200, .stream = 159, .compact = 323},
            [WB_ORGANISATION_HASH] = {.add = 28900, .add_sorted = 777, .get = 19800, .stream = 255, .compact = 0},
        },
    .merge = 777,
    .index = 10,
    .lookup = 14000,
    .conflict = 5,
};

static struct wb_advice all[WB_ADVICE_DESIGNS];

static const char *name_of(const struct wb_advice *advice)
{
    static char name[WB_DESIGN_TEXT_MAX];

    wb_design_format(&advice->design, name);
    return name;
}

static enum wb_organisation_kind update_organisation(const struct wb_advice *advice)
{
    return advice->design.batch ? advice->design.update.organisation : advice->design.read.organisation;
}

static void ask(const struct wb_advice_costs *costs, double add, double get, double stream, double ratio,
                unsigned nodes)
{
    struct wb_advice_load load = {add, get, stream, ratio, nodes};

    wb_advice_for(costs, &load, all);
}

static const struct wb_advice *find(const char *name)
{
    for (size_t i = 0; i < WB_ADVICE_DESIGNS; i++)
        if (strcmp(name_of(&all[i]), name) == 0)
            return &all[i];
    fail_msg("no advice about %s", name);
    return NULL;
}

static void test_every_design_once(void **state)
{
    char seen[WB_ADVICE_DESIGNS][WB_DESIGN_TEXT_MAX];
    size_t batch = 0;

    (void)state;
    ask(&paper, 100, 10, 4, 0.25, 3);
    for (size_t i = 0; i < WB_ADVICE_DESIGNS; i++) {
        snprintf(seen[i], sizeof seen[i], "%s", name_of(&all[i]));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
        assert_true(i == 0 || all[i].score <= all[i - 1].score);
        assert_true(all[i].score > 0 && all[i].add > 0 && all[i].get > 0 && all[i].stream > 0);
        assert_true(strlen(all[i].reason) > 20 && strlen(all[i].reason) < WB_ADVICE_REASON_MAX - 1);
        assert_true(all[i].design.batch == (all[i].update_nodes > 0) && all[i].update_nodes < 3);
        batch += all[i].design.batch;
    }
    assert_int_equal(batch, 36);
    find("Incr[uniform,hashed-log]");
    find("Batch[U(uniform,hash),R(hash,hashed-log)]");
}

/* Scores have two digits. */
static bool rounds_to(double exact, double score)
{
    double step = pow(10, floor(log10(exact)) - 1);

    return fabs(exact - score) <= 0.5000001 * step && fabs(score / step - round(score / step)) < 1e-6;
}

/* One design by hand: 1000 additions of 164 us and 3 copies each, and 10 gets of 28.2 ms, on 4 nodes. */
static void test_by_hand(void **state)
{
    double write = 1000 * (164 + 323 * 0.75 / 0.25) * 1e-6, read = 10 * 28200e-6;

    (void)state;
    ask(&paper, 1000, 10, 0, 0.25, 4);
    const struct wb_advice *a = find("Incr[hash,log]");
    assert_true(rounds_to(4 / (write + read + 2 * read * 5), a->score));
    assert_true(fabs(a->add * (164 + 969) * 1e-6 / 4 - 1) < 1e-9);
    assert_true(fabs(a->get * 28200e-6 / 4 - 1) < 1e-9);
    a = find("Batch[U(hash,hashed-log),R(hash,hash)]");
    double update = 1000 * (1520 + 159) * 1e-6, rest = 1000 * 777e-6 / 0.25 + 10 * 19800e-6;
    assert_int_equal(a->update_nodes, 2);
    assert_true(rounds_to(2 / fmax(update, rest), a->score));
    assert_non_null(strstr(a->reason, "2 update nodes and 2 read nodes"));
}

/* Section 4.6: "configurations that perform poorly on page addition ... are not suitable". */
static void test_a_fast_crawler_gets_logs(void **state)
{
    (void)state;
    for (unsigned nodes = 1; nodes <= 8; nodes *= 2)
        for (double ratio = 0; ratio <= 1; ratio += 0.25) {
            ask(&paper, 5000, 0, 0, ratio, nodes);
            assert_int_not_equal(update_organisation(&all[0]), WB_ORGANISATION_HASH);
            ask(&wb_advice_measured, 5000, 0, 0, ratio, nodes);
            assert_int_not_equal(update_organisation(&all[0]), WB_ORGANISATION_HASH);
        }
}

/* Table 3: random access in buckets is 46 % faster, because no index is read. */
static void test_gets_alone_get_buckets(void **state)
{
    (void)state;
    ask(&paper, 0, 200, 0, 0.5, 1);
    assert_int_equal(all[0].design.read.organisation, WB_ORGANISATION_HASH);
    assert_string_equal(name_of(&all[0]), "Incr[hash,hash]");
    assert_true(find("Incr[hash,hash]")->get > 1.4 * find("Incr[hash,log]")->get);
    assert_true(find("Incr[hash,log]")->get > find("Incr[uniform,log]")->get);
}

/* Section 4.3.2: hashed-log on the update nodes "provides the best balance". */
static void test_gets_and_additions_get_hashed_logs(void **state)
{
    (void)state;
    ask(&paper, 200, 300, 0, 0.25, 10);
    assert_string_equal(name_of(&all[0]), "Batch[U(hash,hashed-log),R(hash,hash)]");
    assert_true(find("Batch[U(hash,log),R(hash,hash)]")->score < all[0].score / 1.5);
    assert_true(find("Batch[U(hash,hash),R(hash,hash)]")->score < all[0].score / 1.5);
}

static void test_more_nodes_carry_more(void **state)
{
    double before = 0;

    (void)state;
    for (unsigned nodes = 1; nodes <= 64; nodes *= 2) {
        ask(&wb_advice_measured, 1000, 1000, 1000, 0.25, nodes);
        assert_true(all[0].score > 1.5 * before);
        before = all[0].score;
    }
}

/* The measured costs are sane: none is missing, and an addition to a bucket costs more than one to a log. */
static void test_measured_costs(void **state)
{
    const struct wb_advice_organisation_costs *o = wb_advice_measured.organisation;

    (void)state;
    for (size_t i = 0; i < WB_ADVICE_ORGANISATIONS; i++) {
        assert_true(o[i].add > 0 && o[i].add_sorted > 0 && o[i].get > 0 && o[i].stream > 0);
        assert_true((o[i].compact > 0) == (i != WB_ORGANISATION_HASH));
    }
    assert_true(o[WB_ORGANISATION_HASH].add > o[WB_ORGANISATION_LOG].add);
    assert_true(wb_advice_measured.merge > 0 && wb_advice_measured.index > 0 && wb_advice_measured.conflict >= 0);
    assert_true(strlen(wb_advice_measured_where()) > 10);
}

/* Nothing to do, and no time for it: no score is infinite. */
static void test_loads_at_the_edge(void **state)
{
    (void)state;
    ask(&paper, 0, 0, 0, 0, 1);
    assert_true(all[0].score == WB_ADVICE_SCORE_MAX);
    assert_string_equal(name_of(&all[0]), "Incr[hash,log]");
    ask(&paper, 1e18, 1e18, 1e18, 1, 100000);
    assert_true(all[0].score > 0 && isfinite(all[0].score));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_design_once),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_a_fast_crawler_gets_logs),
        cmocka_unit_test(test_gets_alone_get_buckets),
        cmocka_unit_test(test_gets_and_additions_get_hashed_logs),
        cmocka_unit_test(test_more_nodes_carry_more),
        cmocka_unit_test(test_measured_costs),
        cmocka_unit_test(test_loads_at_the_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
