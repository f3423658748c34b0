/*
 * test_frontier.c - random sites, addresses and moments against a naive list: no site is called before its time, no
 * address gets more requests than its limit, and no site is forgotten. Then whole crawls in simulated time, in which
 * sites are slow or have nothing to send.
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

/* ---- against a naive list ---------------------------------------------------------------------------------------- */

struct model {
    struct wb_frontier frontier;
    struct wb_site sites[SITES];
    bool held[SITES];            /* given out, a request is under way */
    unsigned where[SITES];
};

static struct wb_address address_of(unsigned number)
{
    return (struct wb_address){.family = 4, .bytes = {127, 0, 0, (uint8_t)number}};
}

/* Whether the frontier could call this site now, according to the model. */
static bool may_go(const struct model *m, size_t i, int64_t now)
{
    unsigned busy = 0, slow_busy = 0, others = 0;

    for (size_t k = 0; k < SITES; k++) {
        if (m->where[k] != m->where[i])
            continue;
        busy += m->held[k];
        slow_busy += m->held[k] && m->sites[k].slow;
        others += !m->sites[k].slow;
    }
    return !m->held[i] && m->sites[i].next_ms <= now && busy < PER_ADDRESS &&
           (!m->sites[i].slow || !others || slow_busy < 1);
}

static void check_pop(struct model *m, struct wb_site *site, int64_t now)
{
    if (site) {
        size_t i = (size_t)(site - m->sites);
        assert_true(may_go(m, i, now));
        m->held[i] = true;
        wb_frontier_begin(&m->frontier, site, now);
        return;
    }
    assert_true(wb_frontier_exhausted(&m->frontier));
    for (size_t i = 0; i < SITES; i++)
        assert_false(may_go(m, i, now));
}

static void end_some(struct model *m, uint64_t *random, int64_t now)
{
    for (size_t i = 0; i < SITES; i++) {
        if (!m->held[i] || (draw(random) % 3 && !wb_frontier_gives_way(&m->frontier, &m->sites[i], now)))
            continue;
        m->held[i] = false;
        wb_frontier_end(&m->frontier, &m->sites[i], now, draw(random) % 2);
        m->sites[i].next_ms = now + (int64_t)(draw(random) % 50);
        if (draw(random) % 20 == 0) {
            struct wb_address address = address_of(m->where[i] = (unsigned)(draw(random) % ADDRESSES));
            assert_int_equal(wb_frontier_move(&m->frontier, &m->sites[i], &address), 0);
        }
        assert_int_equal(wb_frontier_put(&m->frontier, &m->sites[i]), 0);
        /* The site is told to wait while it is in the heap. */
        if (draw(random) % 10 == 0)
            m->sites[i].next_ms += 30;
    }
}

static void test_model(void **state)
{
    static struct model m;
    uint64_t random = seed_of();
    int64_t now = 0;

    (void)state;
    wb_frontier_init(&m.frontier, PER_ADDRESS, SITES);
    for (size_t i = 0; i < SITES; i++) {
        struct wb_address address = address_of(m.where[i] = (unsigned)(i % ADDRESSES));
        m.sites[i].magic = WB_SITE_MAGIC;
        m.sites[i].next_ms = (int64_t)(draw(&random) % 100);
        assert_int_equal(wb_frontier_move(&m.frontier, &m.sites[i], &address), 0);
        assert_int_equal(wb_frontier_put(&m.frontier, &m.sites[i]), 0);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        struct wb_site *site = wb_frontier_pop(&m.frontier, now);
        check_pop(&m, site, now);
        if (site)
            continue;
        end_some(&m, &random, now);
        now += draw(&random) % 100 ? (int64_t)(draw(&random) % 5) : 3000;
    }
    for (size_t i = 0; i < SITES; i++)
        wb_frontier_remove(&m.frontier, &m.sites[i]);
    assert_int_equal(m.frontier.waiting.count, 0);
    assert_int_equal(m.frontier.lined_up, 0);
    assert_int_equal(wb_map_count(&m.frontier.addresses), 0);
    assert_int_equal(m.frontier.in_flight, 0);
    wb_frontier_release(&m.frontier);
}

/* ---- crawls in simulated time ------------------------------------------------------------------------------------ */

enum { ACTORS = 100, TICK_MS = 50, SLOTS = 8 };

struct actor {
    struct wb_site site;
    unsigned left;               /* pages to ask for; then it is called once more, and has nothing to send */
    int64_t latency_ms, interval_ms;
    int64_t sent_ms, ends_ms;    /* of the request under way; 0: none */
    int64_t over_ms;             /* when its last page came */
    unsigned stopped;
};

struct crawl {
    struct wb_frontier frontier;
    struct actor actors[ACTORS];
    unsigned count, open;
    int64_t now;
};

static void add_actor(struct crawl *c, unsigned address, unsigned pages, int64_t latency_ms, int64_t interval_ms)
{
    struct actor *actor = &c->actors[c->count++];
    struct wb_address where = address_of(address);

    assert_true(c->count <= ACTORS);
    *actor = (struct actor){
        .site.magic = WB_SITE_MAGIC, .left = pages, .latency_ms = latency_ms, .interval_ms = interval_ms};
    assert_int_equal(wb_frontier_move(&c->frontier, &actor->site, &where), 0);
    assert_int_equal(wb_frontier_put(&c->frontier, &actor->site), 0);
    c->open++;
}

static void end_request(struct crawl *c, struct actor *actor, bool answered)
{
    actor->ends_ms = 0;
    actor->left -= answered;
    actor->stopped += !answered;
    actor->over_ms = answered ? c->now : actor->over_ms;
    wb_frontier_end(&c->frontier, &actor->site, c->now, answered);
    actor->site.next_ms = wb_site_rest(actor->sent_ms, actor->sent_ms, c->now, actor->interval_ms);
    assert_int_equal(wb_frontier_put(&c->frontier, &actor->site), 0);
}

static void call_sites(struct crawl *c)
{
    struct wb_site *site;

    while ((site = wb_frontier_pop(&c->frontier, c->now))) {
        struct actor *actor = (struct actor *)(void *)((char *)site - offsetof(struct actor, site));
        assert_true(site->next_ms <= c->now && actor->ends_ms == 0);
        if (actor->left == 0) {
            wb_frontier_remove(&c->frontier, site);
            c->open--;
            continue;
        }
        actor->sent_ms = c->now;
        actor->ends_ms = c->now + actor->latency_ms;
        wb_frontier_begin(&c->frontier, site, c->now);
        assert_true(site->frontier_address->in_flight <= SLOTS);
    }
    assert_true(wb_frontier_exhausted(&c->frontier));
}

/* Runs until all sites are finished, and checks that there is always something to wait for. */
static void run_crawl(struct crawl *c)
{
    while (c->open) {
        for (unsigned i = 0; i < c->count; i++) {
            struct actor *actor = &c->actors[i];
            if (actor->ends_ms && actor->ends_ms <= c->now)
                end_request(c, actor, true);
            else if (actor->ends_ms && c->now % TICK_MS == 0 &&
                     wb_frontier_gives_way(&c->frontier, &actor->site, c->now))
                end_request(c, actor, false);
        }
        call_sites(c);
        int64_t next = wb_frontier_next_ms(&c->frontier);
        for (unsigned i = 0; i < c->count; i++)
            if (c->actors[i].ends_ms && c->actors[i].ends_ms < next)
                next = c->actors[i].ends_ms;
        if (!c->open)
            break;
        /* If there were nothing to wait for, the sites that are left would never be called. */
        assert_true(next != INT64_MAX);
        int64_t tick = c->now + TICK_MS - c->now % TICK_MS;
        next = c->frontier.lined_up && tick < next ? tick : next;
        c->now = next > c->now ? next : c->now;
    }
    assert_int_equal(c->frontier.lined_up, 0);
    assert_int_equal(wb_map_count(&c->frontier.addresses), 0);
    wb_frontier_release(&c->frontier);
}

static void begin_crawl(struct crawl *c, unsigned in_flight_max)
{
    *c = (struct crawl){.now = 1000}; /* 0 means never */
    wb_frontier_init(&c->frontier, SLOTS, in_flight_max);
}

/* Sites that are called and send nothing do not keep the sites after them waiting for ever. */
static void test_one_address(void **state)
{
    static const int64_t intervals[] = {0, 100, 2000};
    static struct crawl c;

    (void)state;
    for (unsigned i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        begin_crawl(&c, ACTORS);
        for (unsigned k = 0; k < 30; k++)
            add_actor(&c, 1, 4, 300, intervals[i]);
        run_crawl(&c);
        for (unsigned k = 0; k < 30; k++)
            assert_int_equal(c.actors[k].left, 0);
    }
}

static void test_random_crawls(void **state)
{
    static struct crawl c;
    uint64_t random = seed_of();

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        begin_crawl(&c, draw(&random) % 3 ? ACTORS : (unsigned)(1 + draw(&random) % 10));
        unsigned count = (unsigned)(1 + draw(&random) % ACTORS), addresses = (unsigned)(1 + draw(&random) % 5);
        for (unsigned k = 0; k < count; k++)
            add_actor(&c, (unsigned)(draw(&random) % addresses), (unsigned)(draw(&random) % 5),
                      (int64_t)(draw(&random) % (draw(&random) % 4 ? 500 : 30000)), (int64_t)(draw(&random) % 3000));
        run_crawl(&c);
        for (unsigned k = 0; k < count; k++)
            assert_int_equal(c.actors[k].left, 0);
    }
}

/* When the last page of the good sites came. */
static int64_t good_over(const struct crawl *c)
{
    int64_t last = 0;

    for (unsigned i = 0; i < c->count; i++)
        if (c->actors[i].latency_ms < 1000 && c->actors[i].over_ms > last)
            last = c->actors[i].over_ms;
    return last;
}

/* Sites that send one byte per second do not starve the others, wherever they are in the line. */
static void test_neighbours(void **state)
{
    static struct crawl c;

    (void)state;
    for (unsigned order = 0; order < 3; order++) {
        begin_crawl(&c, ACTORS);
        for (unsigned i = 0; i < 60; i++) {
            bool good = order == 0 ? i < 20 : order == 1 ? i >= 40 : i % 3 == 0;
            add_actor(&c, 1, good ? 10 : 2, good ? 20 : 30000, 0);
        }
        run_crawl(&c);
        int64_t over = good_over(&c);
        unsigned before = 0, stopped = 0;
        for (unsigned i = 0; i < c.count; i++) {
            before += c.actors[i].latency_ms > 1000 && c.actors[i].over_ms <= over;
            stopped += c.actors[i].stopped;
            assert_int_equal(c.actors[i].left, 0);
        }
        printf("# order %u: the good sites are done after %lld ms, %u requests were stopped\n", order,
               (long long)over, stopped);
        assert_true(over < 15000);
        assert_int_equal(before, 0);
        assert_in_range(stopped, 0, 48); /* about one a slow site */
    }
}

/* If all sites are equally slow, hardly any request is stopped. */
static void test_all_slow(void **state)
{
    static struct crawl c;
    unsigned stopped = 0;

    (void)state;
    begin_crawl(&c, ACTORS);
    for (unsigned i = 0; i < 40; i++)
        add_actor(&c, 1, 5, 3000, 0);
    run_crawl(&c);
    for (unsigned i = 0; i < c.count; i++)
        stopped += c.actors[i].stopped;
    assert_in_range(stopped, 0, SLOTS);
}

/* Every site gets its share of the slots, however fast its neighbours answer. */
static void test_shares(void **state)
{
    static struct crawl c;

    (void)state;
    begin_crawl(&c, ACTORS);
    for (unsigned i = 0; i < 40; i++)
        add_actor(&c, 1, i % 2 ? 100 : 10, i % 2 ? 10 : 100, 0);
    run_crawl(&c);
    /* All sites need the same slot time, so all of them end in the last tenth. */
    for (unsigned i = 0; i < c.count; i++)
        assert_true(c.actors[i].over_ms > c.now * 8 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model), cmocka_unit_test(test_one_address), cmocka_unit_test(test_random_crawls),
        cmocka_unit_test(test_neighbours), cmocka_unit_test(test_all_slow), cmocka_unit_test(test_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
