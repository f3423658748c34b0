/*
 * test_dispenser_model.c - random calls by several owners in several runs, with a clock that the test sets, compared
 * with a twin that does the same naively on an array. Everything that can be observed must be the same.
 *
 * A trace is a function of its seed (WEBBASE_SEED); each step is printed when WEBBASE_TRACE is set.
 */
#include "dispenser_twin.h"

/* ---- comparing -------------------------------------------------------------------------------------------- */

#define SAME(field, expected) must(row.field == (expected))

static void compare_row(struct trace *t, int site)
{
    const struct twin_site *s = &t->sites[site];
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;
    char name[32];

    name_of(site, name);
    int err = wb_dispenser_get(t->place->d, wb_slice_str(name), &mem, &row);
    must(err == (s->there ? 0 : WB_E_NOTFOUND));
    if (err == 0) {
        must(wb_slice_equal(row.name, wb_slice_str(name)));
        must(wb_slice_equal(row.address, wb_slice_str(addresses[s->address])));
        must(wb_slice_equal(row.owner, owner_slice(s->owner)));
        must(wb_slice_equal(row.probe, wb_slice_str(probes[s->probe])));
        if (row.state != s->state || row.run != s->run)
            fprintf(stderr, "%s: state %d run %lld, the twin %d %lld\n", name, row.state, (long long)row.run, s->state,
                    (long long)s->run);
        SAME(id, s->id), SAME(state, s->state), SAME(run, s->run), SAME(priority, s->priority);
        SAME(delay_ms, s->delay_ms), SAME(budget, s->budget), SAME(address_expires_ms, s->expires_ms);
        SAME(next_ms, s->next_ms), SAME(attempts, s->attempts), SAME(visit, s->visit);
        SAME(trail.log, s->trail.log), SAME(trail.offset, s->trail.offset), SAME(trail_ms, s->trail_ms);
        SAME(seeds_taken, s->seeds_taken), SAME(lease_ms, s->lease_ms), SAME(pages, s->pages);
        SAME(listed, s->listed), SAME(sitemaps_ms, s->sitemaps_ms);
        must(row.state != WB_SITE_CLAIMED || row.before == s->before);
    }
    wb_buf_release(&mem);
}

static void compare_stat(struct trace *t, int64_t run)
{
    struct wb_dispenser_stat stat;
    uint64_t counts[8] = {0};
    int64_t next_ms = 0;

    for (int i = 0; i < SITES; i++) {
        const struct twin_site *s = &t->sites[i];
        if (!s->there || (run && s->run != run))
            continue;
        counts[s->state]++;
        if (s->state == WB_SITE_WAITING) {
            int64_t ms = s->next_ms > 0 ? s->next_ms : 1;
            next_ms = next_ms == 0 || ms < next_ms ? ms : next_ms;
        }
    }
    must_ok(wb_dispenser_stat(t->place->d, run, &stat));
    must(stat.unresolved == counts[1] && stat.ready == counts[2] && stat.claimed == counts[3] &&
         stat.waiting == counts[4]);
    must(stat.done == counts[5] && stat.alias == counts[6] && stat.refused == counts[7] && stat.next_ms == next_ms);
}

static void compare_ids(const struct told *told, const int64_t *ids, unsigned count)
{
    must(told->count == count);
    for (unsigned i = 0; i < count; i++)
        must(told->ids[i] == ids[i]);
}

/* ---- the calls ----------------------------------------------------------------------------------------------- */

struct seed_ids {
    struct twin_site *site;
    int64_t after;
    unsigned count;
};

static int learn_seed(void *context, const struct wb_seed *seed)
{
    struct seed_ids *s = context;
    int i = seed->url.ptr[seed->url.len - 1] - '0';

    must(i >= 0 && i < SEEDS && seed->depth.links == i && seed->id > s->after);
    must(s->site->seeds[i] == 0 || s->site->seeds[i] == seed->id);
    s->site->seeds[i] = seed->id;
    s->after = seed->id;
    s->count++;
    return 0;
}

static void twin_add(int64_t run, const struct wb_site_plan *plan, struct twin_site *s)
{
    int64_t was_run = s->run;
    bool found = s->there && plan->by_link && run > s->run;

    if (!s->there) {
        *s = (struct twin_site){.there = true, .state = WB_SITE_UNRESOLVED, .before = WB_SITE_UNRESOLVED, .run = run,
                                .delay_ms = -1, .budget = -1};
        if (plan->by_link && plan->listed)
            twin_listed(s);
        was_run = run;
    }
    if (run > s->run || over(s->state))
        s->run = run;
    s->priority = plan->priority == INT_MIN ? s->priority : plan->priority;
    s->delay_ms = plan->delay_ms == -2 ? s->delay_ms : plan->delay_ms;
    s->budget = plan->budget == -2 ? s->budget : plan->budget;
    bool new = s->id == 0, anew = (plan->revisit || (plan->by_link && run > was_run)) && !new;
    if (found && plan->listed) {
        if (over(s->state)) {
            twin_listed(s);
            s->state = WB_SITE_UNRESOLVED;
            s->seeds_taken = seed_last(s);
        }
    } else if (anew && s->state == WB_SITE_CLAIMED) {
        s->anew = s->anew || over(s->before);
    } else if (anew && (over(s->state) || s->listed)) {
        twin_plain(s);
        s->pages = s->seeds_taken = 0;
        if (over(s->state)) {
            s->state = WB_SITE_UNRESOLVED;
            s->attempts = s->probe = 0;
        }
    }
}

static void do_add(struct trace *t)
{
    struct wb_site_plan plans[PLANS];
    struct wb_seed seeds[PLANS][3];
    char names[PLANS][32], urls[PLANS][3][64];
    int sites[PLANS], count = 1 + pick(t, PLANS);
    int64_t run = pick_run(t);
    uint64_t added, expected = 0;

    for (int i = 0; i < count; i++) {
        sites[i] = pick_other(t, sites, i);
        say(t, "add", sites[i], (int)run);
        name_of(sites[i], names[i]);
        plans[i] = (struct wb_site_plan){.name = wb_slice_str(names[i]), .scheme = WB_SLICE_LIT("http"),
                                         .priority = pick(t, 2) ? INT_MIN : pick(t, 5) - 2,
                                         .delay_ms = pick(t, 4) - 2, .budget = pick(t, 4) - 2, .seeds = seeds[i],
                                         .seed_count = (size_t)pick(t, 4), .revisit = pick(t, 2) == 0};
        plans[i].by_link = !plans[i].revisit && pick(t, 2);
        plans[i].listed = plans[i].by_link && pick(t, 2);
        for (size_t k = 0; k < plans[i].seed_count; k++) {
            int number = pick(t, SEEDS);
            snprintf(urls[i][k], sizeof urls[i][k], "http://%s/%d", names[i], number);
            seeds[i][k] = (struct wb_seed){.url = wb_slice_str(urls[i][k]), .depth.links = (uint16_t)number};
        }
        expected += !t->sites[sites[i]].there;
        twin_add(run, &plans[i], &t->sites[sites[i]]);
    }
    must_ok(wb_dispenser_add(t->place->d, run, plans, (size_t)count, &added));
    must(added == expected);
    for (int i = 0; i < count; i++) {
        struct twin_site *s = &t->sites[sites[i]];
        struct seed_ids learned = {.site = s};
        unsigned there = 0;
        s->id = row_of(t->place->d, names[i]).id;
        must_ok(wb_dispenser_seeds(t->place->d, s->id, 0, learn_seed, &learned));
        for (int k = 0; k < SEEDS; k++)
            there += s->seeds[k] != 0;
        must(there == learned.count);
    }
}

static void do_unresolved(struct trace *t)
{
    int64_t run = 1 + pick(t, RUNS), ids[SITES];
    unsigned count = 0, max = 1 + (unsigned)pick(t, SITES);
    struct told told = {0};

    /* By id, then the expired ones by the time of expiry. Those with the same time may come in any order. */
    must_ok(wb_dispenser_unresolved(t->place->d, run, t->now_ms, max, tell, &told));
    for (int64_t id = 1; id <= SITES * 2; id++) {
        struct twin_site *s = by_id(t, id);
        if (s && s->run == run && s->state == WB_SITE_UNRESOLVED && count < max)
            ids[count++] = id;
    }
    must(told.count >= count && memcmp(told.ids, ids, count * sizeof *ids) == 0);
    unsigned stale = 0;
    for (int i = 0; i < SITES; i++) {
        const struct twin_site *s = &t->sites[i];
        stale += s->there && s->run == run && s->expires_ms <= t->now_ms &&
                 (s->state == WB_SITE_READY || s->state == WB_SITE_WAITING);
    }
    must(told.count == (count + stale < max ? count + stale : max));
    for (unsigned i = count; i < told.count; i++) {
        const struct twin_site *s = by_id(t, told.ids[i]), *before = i > count ? by_id(t, told.ids[i - 1]) : NULL;
        must(s && s->expires_ms <= t->now_ms && (s->state == WB_SITE_READY || s->state == WB_SITE_WAITING));
        must(!before || before->expires_ms <= s->expires_ms);
    }
    say(t, "unresolved", (int)told.count, (int)run);
}

static void do_resolved(struct trace *t)
{
    struct twin_site *s = &t->sites[pick(t, SITES)];
    bool refused = pick(t, 6) == 0;
    int address = 1 + pick(t, ADDRESSES);
    int64_t expires_ms = t->now_ms + pick(t, 400);

    say(t, "resolved", (int)(s - t->sites), address);
    int err = wb_dispenser_resolved(t->place->d, s->there ? s->id : 100000,
                                    refused ? WB_SLICE_EMPTY : wb_slice_str(addresses[address]), expires_ms,
                                    refused ? WB_SLICE_LIT("none") : WB_SLICE_EMPTY);
    must(err == (s->there ? 0 : WB_E_NOTFOUND));
    if (!s->there)
        return;
    if (refused) {
        if (s->state == WB_SITE_UNRESOLVED || s->state == WB_SITE_READY || s->state == WB_SITE_WAITING)
            s->state = WB_SITE_REFUSED;
        return;
    }
    /* The failures to resolve it no longer count. */
    if (s->address == 0 && (s->state == WB_SITE_UNRESOLVED || s->state == WB_SITE_READY || s->state == WB_SITE_WAITING))
        s->attempts = 0;
    s->address = address;
    s->expires_ms = expires_ms;
    if (s->state == WB_SITE_UNRESOLVED)
        s->state = WB_SITE_READY;
}

static void do_claim(struct trace *t)
{
    int64_t run = pick_run(t), lease_ms = t->now_ms + 50 + pick(t, 200), ids[SITES];
    int owner = 1 + pick(t, OWNERS);
    unsigned max = 1 + (unsigned)pick(t, 4);
    struct told told;

    unsigned expected = twin_claim(t, run, owner, lease_ms, max, ids);
    say(t, "claim", owner, (int)expected);
    claim(t->place->d, run, owners[owner], t->now_ms, lease_ms, max, &told);
    compare_ids(&told, ids, expected);
}

static void do_borrow(struct trace *t)
{
    int site = pick(t, SITES), owner = 1 + pick(t, OWNERS);
    struct twin_site *s = &t->sites[site];
    int64_t lease_ms = t->now_ms + 50;
    struct told told = {0};
    char name[32];

    name_of(site, name);
    say(t, "borrow", site, owner);
    bool held = s->there && s->state == WB_SITE_CLAIMED, busy = held && s->owner != owner && s->lease_ms > t->now_ms;
    int err = borrow_until(t->place->d, wb_slice_str(name), WB_SLICE_LIT("http"), owner_slice(owner), t->now_ms,
                           lease_ms, tell, &told);
    must(err == (busy ? WB_E_BUSY : 0));
    if (busy)
        return;
    if (!s->there)
        *s = (struct twin_site){.there = true, .state = WB_SITE_UNRESOLVED, .id = told.ids[0], .delay_ms = -1,
                                .budget = -1};
    if (held && s->owner != owner)
        s->lost[s->owner] = true;
    s->before = held ? s->before : s->state;
    s->state = WB_SITE_CLAIMED;
    s->owner = owner;
    s->lease_ms = lease_ms;
    s->lost[owner] = false;
    must(told.count == 1 && told.last.before == s->before && told.last.lease_ms == lease_ms);
}

static void do_renew(struct trace *t)
{
    int owner = 1 + pick(t, OWNERS);
    int64_t lease_ms = t->now_ms + 100 + pick(t, 100);
    int lost = 0;

    for (int i = 0; i < SITES; i++) {
        struct twin_site *s = &t->sites[i];
        if (s->there && s->owner == owner)
            s->lease_ms = lease_ms;
    }
    for (int i = 0; i < SITES; i++)
        lost += t->sites[i].there && t->sites[i].lost[owner];
    say(t, "renew", owner, lost);
    must(renew_until(t->place->d, owner_slice(owner), lease_ms) == (lost ? WB_E_BUSY : 0));
}

static void do_report(struct trace *t)
{
    static const enum wb_site_state states[] = {WB_SITE_CLAIMED, WB_SITE_CLAIMED, WB_SITE_DONE, WB_SITE_DONE,
                                                WB_SITE_WAITING,
                                                WB_SITE_READY, WB_SITE_ALIAS, WB_SITE_REFUSED, WB_SITE_UNRESOLVED};
    struct wb_site_report reports[3];
    int owner = 1 + pick(t, OWNERS), count = 1 + pick(t, 3);

    for (int i = 0; i < count; i++) {
        struct twin_site *s = &t->sites[pick(t, SITES)];
        for (int k = 0; k < 6 && s->owner != owner; k++) /* mostly about a site that it holds */
            s = &t->sites[pick(t, SITES)];
        reports[i] = report_of(s->there ? s->id : 100000, states[pick(t, (int)COUNT(states))]);
        reports[i].next_ms = pick(t, 2) ? t->now_ms + pick(t, 300) : 0;
        reports[i].attempts = pick(t, 5);
        reports[i].visit = (uint32_t)pick(t, 9);
        reports[i].sitemaps_ms = pick(t, 3);
        reports[i].probe = wb_slice_str(probes[pick(t, 3)]);
        reports[i].trail = (struct wb_site_trail){(uint32_t)pick(t, 4), (uint64_t)pick(t, 1000)};
        reports[i].trail_ms = pick(t, 50);
        reports[i].seeds_taken = pick(t, 2) ? seed_last(s) : 0;
        reports[i].pages = pick(t, 100);
        say(t, "report", (int)(s - t->sites), (int)reports[i].state);
        twin_report(t, owner, &reports[i]);
    }
    must_ok(wb_dispenser_report(t->place->d, owner_slice(owner), reports, (size_t)count));
}

static void do_release(struct trace *t)
{
    int owner = 1 + pick(t, OWNERS);

    say(t, "release", owner, 0);
    must_ok(wb_dispenser_release(t->place->d, owner_slice(owner)));
    for (int i = 0; i < SITES; i++) {
        if (t->sites[i].there && t->sites[i].owner == owner)
            twin_end_lease(&t->sites[i]);
        t->sites[i].lost[owner] = false;
    }
}

static void do_join(struct trace *t)
{
    int64_t run = 1 + pick(t, RUNS);
    bool all = pick(t, 3) == 0;
    int domain = pick(t, SITES / 3);
    char text[32];

    say(t, "join", (int)run, all ? -1 : domain);
    snprintf(text, sizeof text, "d%d.org", domain);
    must_ok(wb_dispenser_join_run(t->place->d, run, all, wb_slice_str(text)));
    for (int i = 0; i < SITES; i++) {
        if (t->sites[i].there && !over(t->sites[i].state) && (all || i / 3 == domain))
            t->sites[i].run = run;
    }
}

static void do_reopen(struct trace *t)
{
    int64_t run = 1 + pick(t, RUNS);
    uint64_t count, expected = 0;

    for (int i = 0; i < SITES; i++) {
        struct twin_site *s = &t->sites[i];
        if (s->there && s->run == run && s->state == WB_SITE_DONE && seed_last(s) > s->seeds_taken) {
            s->state = s->address ? WB_SITE_READY : WB_SITE_UNRESOLVED;
            expected++;
        }
    }
    say(t, "reopen", (int)run, (int)expected);
    must_ok(wb_dispenser_reopen(t->place->d, run, &count));
    must(count == expected);
}

/* A listed site has the seeds of the list, in its order, each once. */
struct listed_seeds {
    int numbers[2 * SEEDS];
    unsigned count, at;
};

static int compare_listed(void *context, const struct wb_seed *seed)
{
    struct listed_seeds *l = context;

    must(l->at < l->count && seed->url.ptr[seed->url.len - 1] - '0' == l->numbers[l->at]);
    l->at++;
    return 0;
}

static void twin_list(struct trace *t, int64_t run, struct twin_site *s, struct wb_dispenser_list_stat *stat)
{
    if (!s->there) {
        *s = (struct twin_site){.there = true, .state = WB_SITE_UNRESOLVED, .before = WB_SITE_UNRESOLVED, .run = run,
                                .delay_ms = -1, .budget = -1};
    } else if (s->state == WB_SITE_CLAIMED) {
        s->lost[s->owner] = true;
        s->state = s->before == WB_SITE_WAITING ? WB_SITE_WAITING : WB_SITE_READY;
        s->owner = 0;
        s->lease_ms = 0;
    }
    if (s->state == WB_SITE_DONE && s->expires_ms > t->now_ms)
        s->state = WB_SITE_READY;
    if (over(s->state) || (s->state == WB_SITE_READY && !s->address))
        s->state = WB_SITE_UNRESOLVED;
    s->anew = false;
    s->run = run;
    s->seeds_taken = 0;
    memset(s->seeds, 0, sizeof s->seeds);
    twin_listed(s);
    stat->sites++;
}

static void do_list(struct trace *t)
{
    struct wb_site_list lists[PLANS];
    struct wb_seed seeds[PLANS][SEEDS];
    char names[PLANS][32], urls[PLANS][SEEDS][64];
    struct listed_seeds expected[PLANS] = {0};
    int sites[PLANS], count = 1 + pick(t, PLANS);
    struct wb_dispenser_list_stat stat, expected_stat = {0};
    bool busy[PLANS];
    int64_t run;

    for (int i = 0; i < count; i++) {
        sites[i] = pick_other(t, sites, i);
        name_of(sites[i], names[i]);
        lists[i] = (struct wb_site_list){.name = wb_slice_str(names[i]), .scheme = WB_SLICE_LIT("http"),
                                         .seeds = seeds[i], .seed_count = (size_t)pick(t, SEEDS)};
        for (size_t k = 0; k < lists[i].seed_count; k++) {
            int number = pick(t, SEEDS);
            bool there = false;
            snprintf(urls[i][k], sizeof urls[i][k], "http://%s/%d", names[i], number);
            seeds[i][k] = (struct wb_seed){.url = wb_slice_str(urls[i][k]), .depth.links = (uint16_t)number};
            for (unsigned n = 0; n < expected[i].count; n++)
                there = there || expected[i].numbers[n] == number;
            if (!there)
                expected[i].numbers[expected[i].count++] = number;
        }
    }
    set_clock(t->now_ms);
    must_ok(wb_dispenser_enter_lists(t->place->d, t->now_ms, lists, (size_t)count, NULL, 0, &run, &stat));
    say(t, "list", count, (int)run);
    for (int i = 0; i < count; i++) {
        struct twin_site *s = &t->sites[sites[i]];
        busy[i] = s->there && s->state == WB_SITE_CLAIMED && s->lease_ms > t->now_ms;
        if (busy[i]) {
            expected_stat.busy++;
            continue;
        }
        expected_stat.urls += lists[i].seed_count;
        twin_list(t, run, s, &expected_stat);
        s->id = row_of(t->place->d, names[i]).id;
        must_ok(wb_dispenser_seeds(t->place->d, s->id, 0, compare_listed, &expected[i]));
        must(expected[i].at == expected[i].count);
        struct seed_ids learned = {.site = s};
        must_ok(wb_dispenser_seeds(t->place->d, s->id, 0, learn_seed, &learned));
    }
    must(stat.busy == expected_stat.busy && stat.sites == expected_stat.sites && stat.urls == expected_stat.urls);
    must((run != 0) == (stat.sites != 0) && (run == 0 || run > t->list_run));
    t->list_run = run ? run : t->list_run;
}

static void do_neighbours(struct trace *t)
{
    int address = 1 + pick(t, ADDRESSES), probe = pick(t, 3);
    int64_t ids[SITES];
    unsigned count = 0;
    struct told told = {0};

    for (int64_t id = 1; id <= SITES * 2; id++) {
        const struct twin_site *s = by_id(t, id);
        if (s && s->address == address && (!probe || s->probe == probe))
            ids[count++] = id;
    }
    say(t, "neighbours", address, probe);
    if (probe)
        must_ok(wb_dispenser_twins(t->place->d, wb_slice_str(firsts[address]), wb_slice_str(probes[probe]), tell,
                                   &told));
    else
        must_ok(wb_dispenser_neighbours(t->place->d, wb_slice_str(firsts[address]), tell, &told));
    compare_ids(&told, ids, count);
}

/* ---- traces ------------------------------------------------------------------------------------------------------ */

static void step(struct trace *t)
{
    /* Frequent calls are in the list several times. */
    static void (*const calls[])(struct trace *t) = {
        do_add, do_add, do_resolved, do_resolved, do_resolved, do_resolved, do_claim, do_claim, do_claim,
        do_claim, do_claim, do_report, do_report, do_report, do_report, do_borrow, do_renew, do_renew,
        do_release, do_join, do_reopen, do_unresolved, do_neighbours, do_list, do_list,
    };

    t->now_ms += pick(t, 40);
    calls[pick(t, (int)COUNT(calls))](t);
    compare_row(t, pick(t, SITES));
    compare_stat(t, pick(t, 4) ? pick(t, RUNS + 1) : t->list_run);
    if (pick(t, 200) == 0)
        reopen_place(t->place);
    if (pick(t, t->place->postgres ? 40 : 10) == 0) {
        check_tables(t->place);
        for (int i = 0; i < SITES; i++)
            compare_row(t, i);
    }
}

static void test_traces(void **state)
{
    struct place *p = *state;
    static struct trace t;
    uint64_t seed = test_seed();
    unsigned steps = p->postgres ? 500 : 2500;

    t = (struct trace){.place = p, .chance = seed, .now_ms = 1000, .print = getenv("WEBBASE_TRACE") != NULL};
    /* The runs of lists have numbers above those that the trace uses. */
    for (int64_t run = p->run; run < RUNS;)
        must_ok(begin_run(p->d, &run));
    for (t.step = 0; t.step < steps; t.step++)
        step(&t);
    check_tables(p);
    for (int i = 0; i < SITES; i++)
        compare_row(&t, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH(test_traces)};

    return cmocka_run_group_tests_name("dispenser model", tests, NULL, end_server);
}
