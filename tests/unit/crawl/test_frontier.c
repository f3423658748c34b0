/*
 * test_frontier.c - a model test: random sites, addresses and moments against a naive list. No site is
 * given out before its time, no address beyond its limit, and none is forgotten.
 */
#include "crawl/frontier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { SITES = 60, ADDRESSES = 7, STEPS = 20000, PER_ADDRESS = 3 };

static uint64_t seed_of(void)
{
    const char *text = getenv("WEBBASE_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 1;

    printf("# seed %llu\n", (unsigned long long)seed);
    return seed * 2654435761u + 1;
}

static uint64_t draw(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

struct model {
    struct wb_frontier frontier;
    struct wb_site sites[SITES];
    bool held[SITES];            /* given out, a request is under way */
    unsigned busy[ADDRESSES];
    unsigned where[SITES];
};

/* Whether the model has a site that could be given out now. */
static bool any_due(const struct model *m, int64_t now)
{
    for (size_t i = 0; i < SITES; i++)
        if (!m->held[i] && m->sites[i].next_ms <= now && m->busy[m->where[i]] < PER_ADDRESS)
            return true;
    return false;
}

static void test_model(void **state)
{
    static struct model m;
    uint64_t random = seed_of();
    int64_t now = 0;

    (void)state;
    wb_frontier_init(&m.frontier, PER_ADDRESS);
    for (size_t i = 0; i < SITES; i++) {
        struct wb_address address = {.family = 4, .bytes = {127, 0, 0, (uint8_t)(i % ADDRESSES)}};
        m.where[i] = (unsigned)(i % ADDRESSES);
        m.sites[i].next_ms = (int64_t)(draw(&random) % 100);
        assert_int_equal(wb_frontier_move(&m.frontier, &m.sites[i], &address), 0);
        assert_int_equal(wb_frontier_put(&m.frontier, &m.sites[i]), 0);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        struct wb_site *site = wb_frontier_pop(&m.frontier, now);
        if (site) {
            size_t i = (size_t)(site - m.sites);
            assert_true(site->next_ms <= now);
            assert_false(m.held[i]);
            assert_true(m.busy[m.where[i]] < PER_ADDRESS);
            m.held[i] = true;
            m.busy[m.where[i]]++;
            wb_frontier_begin(&m.frontier, site);
            continue;
        }
        assert_false(any_due(&m, now));
        /* Some requests end, time goes on. */
        for (size_t i = 0; i < SITES; i++) {
            if (!m.held[i] || draw(&random) % 3)
                continue;
            m.held[i] = false;
            m.busy[m.where[i]]--;
            wb_frontier_end(&m.frontier, &m.sites[i]);
            m.sites[i].next_ms = now + (int64_t)(draw(&random) % 50);
            assert_int_equal(wb_frontier_put(&m.frontier, &m.sites[i]), 0);
        }
        now += (int64_t)(draw(&random) % 5);
    }
    for (size_t i = 0; i < SITES; i++) {
        if (m.held[i])
            wb_frontier_end(&m.frontier, &m.sites[i]);
        wb_frontier_remove(&m.frontier, &m.sites[i]);
    }
    assert_int_equal(m.frontier.heap_count, 0);
    assert_int_equal(m.frontier.lined_up, 0);
    assert_int_equal(m.frontier.place_count, 0);
    wb_frontier_release(&m.frontier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
