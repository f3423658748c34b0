/* test_plan.c - worlds and pages: sizes, shares, one address per page, and rules that close what they should. */
#include "simtest.h"

#include "fetch/fetch.h"
#include "sim/locate.h"
#include "sim/sitefile.h"

#include <math.h>

static void test_worlds_are_functions_of_the_seed(void **state)
{
    struct wb_sim_options options = some_options(5, true);
    struct wb_world a, b, c;
    uint64_t total = 0;
    unsigned differ = 0;

    (void)state;
    open_world(&options, &a);
    open_world(&options, &b);
    options.seed = 6;
    open_world(&options, &c);
    for (uint32_t i = 0; i <= options.sites; i++) {
        assert_memory_equal(&a.site[i], &b.site[i], sizeof a.site[i]);
        differ += a.site[i].pages != c.site[i].pages;
        total += a.site[i].pages;
        assert_true(a.site[i].linked >= 1 && a.site[i].linked <= a.site[i].mapped);
        assert_true(a.site[i].mapped <= a.site[i].foreign && a.site[i].foreign <= a.site[i].pages);
    }
    assert_true(differ > options.sites / 2);
    assert_true(total > 2900 && total < 3200);
    wb_world_release(&a);
    wb_world_release(&b);
    wb_world_release(&c);
}

static void test_bounds(void **state)
{
    struct wb_sim_options options = some_options(5, true);
    struct wb_world world;

    (void)state;
    options.sites = 0;
    assert_int_equal(wb_world_init(&options, &world), WB_E_INVALID);
    options.sites = WB_SIM_SITES_MAX + 1;
    assert_int_equal(wb_world_init(&options, &world), WB_E_INVALID);
    options.sites = 1;
    options.pages = 0;
    assert_int_equal(wb_world_init(&options, &world), WB_E_INVALID);
    options.pages = 1;
    open_world(&options, &world);
    assert_int_equal(world.site[1].pages, 1);
    struct wb_plan plan;
    assert_true(wb_plan_make(&world, 1, 0, &plan));
    assert_false(wb_plan_make(&world, 1, 1, &plan));
    assert_false(wb_plan_make(&world, 2, 0, &plan));
    assert_false(wb_plan_make(&world, 1, WB_PLAN_NEW, &plan));
    assert_false(wb_plan_make(&world, 1, WB_PLAN_LATEST, &plan));
    assert_false(wb_plan_make(&world, 0, WB_PLAN_SITES + 1, &plan));
    wb_world_release(&world);
}

static void check_address(const struct wb_world *world, const struct wb_plan *plan, struct wb_buf *path,
                          struct wb_buf *scratch)
{
    struct wb_pen pen = wb_pen(path);
    struct wb_plan found;
    struct wb_slice rest;

    wb_buf_clear(path);
    wb_locate_path(world, plan, &pen);
    assert_int_equal(pen.err, 0);
    struct wb_slice target = wb_buf_slice(path);
    assert_int_equal(wb_locate_find(world, plan->site, target, scratch, &found, &rest), WB_LOCATE_PAGE);
    assert_int_equal(found.page, plan->page);
    assert_int_equal(rest.len, 0);
    wb_pen_str(&pen, "?x=1");
    target = wb_buf_slice(path);
    assert_int_equal(wb_locate_find(world, plan->site, target, scratch, &found, &rest), WB_LOCATE_BELOW);
    assert_true(wb_slice_equal(rest, WB_SLICE_LIT("?x=1")));
    if (plan->page == 0)
        return;
    path->ptr[1] ^= 1; /* another section */
    assert_int_not_equal(wb_locate_find(world, plan->site, target, scratch, &found, &rest), WB_LOCATE_PAGE);
    if (target.ptr[target.len - 5] == '/') {
        path->ptr[1] ^= 1;
        target.len -= 5;
        assert_int_equal(wb_locate_find(world, plan->site, target, scratch, &found, &rest), WB_LOCATE_SLASH);
    }
}

static void test_one_address_a_page(void **state)
{
    struct wb_sim_options options = some_options(8, true);
    struct wb_buf path = WB_BUF_INIT, scratch = WB_BUF_INIT;
    struct wb_world world;
    struct wb_plan plan;

    (void)state;
    options.speed = 1000;
    open_world(&options, &world);
    for (uint32_t site = 0; site <= world.sites; site++) {
        for (uint32_t page = 0; page < world.site[site].pages; page++) {
            assert_true(wb_plan_make(&world, site, page, &plan));
            check_address(&world, &plan, &path, &scratch);
        }
        for (uint32_t page = WB_PLAN_NEW; page < WB_PLAN_NEW + 1600; page++)
            if (wb_plan_make(&world, site, page, &plan))
                check_address(&world, &plan, &path, &scratch);
        for (uint32_t page = WB_PLAN_LATEST; page < WB_PLAN_LATEST + 3; page++) {
            assert_true(wb_plan_make(&world, site, page, &plan));
            check_address(&world, &plan, &path, &scratch);
        }
    }
    wb_buf_release(&path);
    wb_buf_release(&scratch);
    wb_world_release(&world);
}

static void test_hosts(void **state)
{
    struct wb_sim_options options = some_options(8, true);
    struct wb_world world;
    bool alias;
    uint32_t raw;
    static const struct {
        const char *host;
        uint32_t site, raw;
    } cases[] = {{"s1.localhost:8080", 1, 0},
                 {"S30.LocalHost", 30, 0},
                 {"s31.localhost", 0, 0},
                 {"s0.localhost", 0, 0},
                 {"s1.localhostx", 0, 0},
                 {"s1.localhost.example", 0, 0},
                 {"s1x.localhost", 0, 0},
                 {"r7.localhost:1", 0, 7},
                 {"s9999999999999.localhost", 0, 0},
                 {"", 0, 0},
                 {"s", 0, 0},
                 {"127.0.0.1:8080", 0, 0},
                 {"s1", 0, 0}};

    (void)state;
    open_world(&options, &world);
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (wb_locate_host(&world, wb_slice_str(cases[i].host), &alias, &raw) != cases[i].site || raw != cases[i].raw ||
            alias)
            fail_msg("%s", cases[i].host);
    }
    unsigned aliases = 0;
    for (uint32_t i = 1; i <= world.sites; i++) {
        char host[32];
        snprintf(host, sizeof host, "a%u.localhost", i);
        world.site[i].alias = i % 2 == 0;
        assert_int_equal(wb_locate_host(&world, wb_slice_str(host), &alias, &raw), world.site[i].alias ? i : 0);
        assert_true(alias == world.site[i].alias);
        aliases += alias;
    }
    assert_int_equal(aliases, 15);
    wb_world_release(&world);
}

/* The crawler's own reader of robots.txt agrees with what the world says is allowed. */
static void check_rules(const struct wb_world *world, uint32_t site, unsigned *closed)
{
    struct wb_buf text = WB_BUF_INIT, path = WB_BUF_INIT;
    struct wb_pen pen = wb_pen(&text);
    struct wb_robots *robots = NULL;
    struct wb_robots_verdict verdict;
    struct wb_plan plan;

    wb_sitefile_robots(world, site, &pen);
    assert_int_equal(wb_robots_parse(wb_buf_slice(&text), WB_SLICE_LIT("webbase"), &robots), 0);
    assert_int_equal(wb_robots_delay_ms(robots), wb_world_delay(&world->site[site]) ? 1000 : -1);
    for (uint32_t page = 0; page < world->site[site].pages; page++) {
        struct wb_pen out = wb_pen(&path);
        wb_buf_clear(&path);
        assert_true(wb_plan_make(world, site, page, &plan));
        wb_locate_path(world, &plan, &out);
        wb_robots_check(robots, wb_buf_slice(&path), &verdict);
        if (verdict.allowed != plan.allowed)
            fail_msg("site %u: %.*s", site, WB_SLICE_ARG(wb_buf_slice(&path)));
        *closed += !plan.allowed;
    }
    wb_robots_free(robots);
    wb_buf_release(&text);
    wb_buf_release(&path);
}

static void test_rules_close_what_they_should(void **state)
{
    struct wb_sim_options options = some_options(9, true);
    struct wb_world world;
    unsigned closed = 0, rules[WB_RULES_COUNT] = {0};

    (void)state;
    options.sites = 200;
    open_world(&options, &world);
    for (uint32_t site = 0; site <= world.sites; site++) {
        rules[world.site[site].rules]++;
        if (wb_world_has_rules(&world.site[site]) && world.site[site].rules != WB_RULES_FAILING)
            check_rules(&world, site, &closed);
    }
    assert_true(closed > 30);
    for (unsigned i = 0; i < WB_RULES_COUNT; i++)
        if (rules[i] == 0)
            fail_msg("no site with rules '%s'", wb_world_rules_word((enum wb_world_rules)i));
    wb_world_release(&world);
}

static void count_kinds(bool hostile, unsigned counts_out[WB_KIND_COUNT])
{
    struct wb_sim_options options = some_options(10, hostile);
    struct wb_world_moment now = {0, 0};
    struct wb_world world;
    struct wb_plan plan;

    memset(counts_out, 0, WB_KIND_COUNT * sizeof *counts_out);
    options.pages = 30000;
    open_world(&options, &world);
    for (uint32_t site = 0; site <= world.sites; site++)
        for (uint32_t page = 0; page < world.site[site].pages; page++) {
            assert_true(wb_plan_make(&world, site, page, &plan));
            counts_out[plan.kind]++;
            /* A page with children is an ordinary page that never vanishes. */
            assert_true(page >= world.site[site].inner || (plan.kind == WB_KIND_PAGE && isinf(plan.gone)));
            assert_true(wb_plan_alive(&plan, &now));
            if (plan.kind == WB_KIND_DUPLICATE || plan.kind == WB_KIND_REDIRECT)
                assert_true(wb_plan_twin(&world, &plan) < world.site[site].linked &&
                            wb_plan_twin(&world, &plan) != page);
        }
    wb_world_release(&world);
}

static void test_shares_of_kinds(void **state)
{
    static const unsigned weight[] = {
#define WEIGHT(name, word, share, status, only_hostile) share,
        WB_PLAN_KINDS(WEIGHT)
#undef WEIGHT
    };
    static const bool hostile_only[] = {
#define ONLY(name, word, share, status, only_hostile) only_hostile,
        WB_PLAN_KINDS(ONLY)
#undef ONLY
    };
    unsigned counts[WB_KIND_COUNT];

    (void)state;
    for (int hostile = 0; hostile < 2; hostile++) {
        count_kinds(hostile, counts);
        for (unsigned k = 1; k < WB_KIND_COUNT; k++) {
            unsigned most = 30 * weight[k] + 60; /* there are 30,000 pages, most of which are leaves */
            if (hostile_only[k] && !hostile ? counts[k] > 0 : counts[k] < 10 * weight[k] || counts[k] > most)
                fail_msg("%u pages of kind %s", counts[k], wb_plan_kind_word((enum wb_plan_kind)k));
        }
    }
}

static void test_recovery(void **state)
{
    struct wb_sim_options options = some_options(10, true);
    struct wb_world world;
    struct wb_plan plan = {.kind = WB_KIND_UNAVAILABLE, .site = 1, .page = 3, .gone = INFINITY};

    (void)state;
    open_world(&options, &world);
    for (double t = 0; t < 30; t += 0.25) {
        struct wb_world_moment now = {0, t}, then = {0, t};
        unsigned wait = wb_plan_wait(&world, &plan, &now);
        assert_int_equal(wb_plan_status(&world, &plan, &now), wait ? 503 : 200);
        then.real += wait;
        assert_int_equal(wb_plan_status(&world, &plan, &then), 200);
    }
    wb_world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds_are_functions_of_the_seed),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_one_address_a_page),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_rules_close_what_they_should),
        cmocka_unit_test(test_shares_of_kinds),
        cmocka_unit_test(test_recovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
