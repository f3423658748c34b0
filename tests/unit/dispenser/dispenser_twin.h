/*
 * dispenser_twin.h - the naive twin of the dispenser that the model test compares it with: sites in an array, and
 * every rule written in the simplest way. Header only.
 */
#ifndef WB_TESTS_DISPENSER_TWIN_H
#define WB_TESTS_DISPENSER_TWIN_H

#include "dispenser_support.h"

#include <limits.h>

enum { SITES = 24, OWNERS = 4, ADDRESSES = 5, SEEDS = 6, RUNS = 3, PLANS = 3 };

struct twin_site {
    bool there;
    int64_t id;
    enum wb_site_state state, before;
    int64_t run, delay_ms, budget, expires_ms, next_ms, trail_ms, seeds_taken, lease_ms, pages;
    int priority, attempts, address, probe; /* address 0: none */
    uint32_t visit, listed;
    int64_t sitemaps_ms;
    struct wb_site_trail trail;
    int owner;              /* 0: none */
    bool anew;
    bool lost[OWNERS + 1];  /* owners from whom it was taken */
    int64_t seeds[SEEDS];   /* ids; 0: not there */
};

struct trace {
    struct place *place;
    uint64_t chance;
    struct twin_site sites[SITES];
    int64_t now_ms;
    int64_t list_run;       /* the last run made from a list; 0: none yet */
    unsigned step;
    bool print;
};

static const char *const owners[OWNERS + 1] = {"", "alpha", "beta", "gamma", "delta"};
static const char *const addresses[ADDRESSES + 1] = {"", "10.0.0.1", "10.0.0.2 10.0.0.1", "10.0.0.3", "10.0.0.4",
                                                     "10.0.0.5 10.0.0.3"};
static const char *const firsts[ADDRESSES + 1] = {"", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"};
static const char *const probes[3] = {"", "aaaa", "bbbb"};

static int pick(struct trace *t, int n)
{
    return (int)chance_below(&t->chance, (uint64_t)n);
}

/* Picks a site that was not picked before. */
static int pick_other(struct trace *t, const int *picked, int count)
{
    int site = pick(t, SITES);

    for (int i = 0; i < count; i++)
        if (picked[i] == site)
            return pick_other(t, picked, count);
    return site;
}

static int64_t pick_run(struct trace *t)
{
    return t->list_run && pick(t, 3) == 0 ? t->list_run : 1 + pick(t, RUNS);
}

static void name_of(int site, char name_out[32])
{
    /* Three of each registrable domain. */
    snprintf(name_out, 32, "s%d.d%d.org", site, site / 3);
}

static struct wb_slice owner_slice(int owner)
{
    return wb_slice_str(owners[owner]);
}

static int64_t seed_last(const struct twin_site *s)
{
    int64_t last = 0;

    for (int i = 0; i < SEEDS; i++)
        last = s->seeds[i] > last ? s->seeds[i] : last;
    return last;
}

static struct twin_site *by_id(struct trace *t, int64_t id)
{
    for (int i = 0; i < SITES; i++) {
        if (t->sites[i].there && t->sites[i].id == id)
            return &t->sites[i];
    }
    return NULL;
}

static bool over(enum wb_site_state state)
{
    return state >= WB_SITE_DONE;
}

static void say(const struct trace *t, const char *what, int a, int b)
{
    if (t->print)
        fprintf(stderr, "%u at %lld: %s %d %d\n", t->step, (long long)t->now_ms, what, a, b);
}

/* ---- what the twin does ------------------------------------------------------------------------------ */

static void twin_plain(struct twin_site *s)
{
    if (s->listed)
        s->visit = (s->listed > s->visit ? s->listed : s->visit) + 1;
    s->listed = 0;
}

static void twin_listed(struct twin_site *s)
{
    uint32_t last = s->visit + 1 > s->listed ? s->visit + 1 : s->listed;

    s->listed = last + 1;
    s->attempts = 0;
    s->pages = 0;
}

static void twin_end_lease(struct twin_site *s)
{
    s->state = s->before == WB_SITE_READY && !s->address ? WB_SITE_UNRESOLVED : s->before;
    if (s->anew && over(s->state)) {
        twin_plain(s);
        s->state = WB_SITE_UNRESOLVED;
        s->seeds_taken = s->pages = s->probe = 0;
    }
    s->anew = false;
    s->owner = 0;
    s->lease_ms = 0;
}

static bool twin_blocked(const struct trace *t, const struct twin_site *s, int owner)
{
    for (int i = 0; i < SITES; i++) {
        const struct twin_site *h = &t->sites[i];
        if (h->there && h->state == WB_SITE_CLAIMED && h->address == s->address && h->owner != owner &&
            h->lease_ms > t->now_ms)
            return true;
    }
    return false;
}

static struct twin_site *twin_best(struct trace *t, int64_t run, int owner)
{
    struct twin_site *best = NULL;

    for (int i = 0; i < SITES; i++) {
        struct twin_site *s = &t->sites[i];
        if (!s->there || s->run != run || s->state != WB_SITE_READY || twin_blocked(t, s, owner))
            continue;
        if (!best || s->priority > best->priority || (s->priority == best->priority && s->id < best->id))
            best = s;
    }
    return best;
}

static unsigned twin_claim(struct trace *t, int64_t run, int owner, int64_t lease_ms, unsigned max, int64_t *ids)
{
    unsigned count = 0;

    for (int i = 0; i < SITES; i++) {
        struct twin_site *s = &t->sites[i];
        if (s->there && s->state == WB_SITE_CLAIMED && s->lease_ms <= t->now_ms && s->owner != owner) {
            s->lost[s->owner] = true;
            twin_end_lease(s);
        }
        if (s->there && s->run == run && s->state == WB_SITE_WAITING && s->next_ms <= t->now_ms)
            s->state = s->address ? WB_SITE_READY : WB_SITE_UNRESOLVED;
    }
    for (struct twin_site *s; count < max && (s = twin_best(t, run, owner)); count++) {
        s->state = WB_SITE_CLAIMED;
        s->before = WB_SITE_READY;
        s->owner = owner;
        s->lease_ms = lease_ms;
        s->lost[owner] = false;
        ids[count] = s->id;
    }
    return count;
}

static void twin_report(struct trace *t, int owner, const struct wb_site_report *r)
{
    struct twin_site *s = by_id(t, r->id);

    if (!s)
        return;
    bool held = s->state == WB_SITE_CLAIMED && s->owner == owner;
    bool newer = r->trail.log && (r->trail_ms > s->trail_ms ||
                                  (r->trail_ms == s->trail_ms &&
                                   (r->trail.log > s->trail.log ||
                                    (r->trail.log == s->trail.log && r->trail.offset > s->trail.offset))));
    if (r->trail.log && (held || newer)) {
        s->trail = r->trail;
        s->trail_ms = r->trail_ms;
    }
    if (!held)
        return;
    s->next_ms = r->next_ms;
    s->attempts = r->attempts;
    s->visit = r->visit;
    s->sitemaps_ms = r->sitemaps_ms ? r->sitemaps_ms : s->sitemaps_ms;
    s->seeds_taken = r->seeds_taken;
    s->pages = r->pages;
    for (int i = 1; i < 3; i++)
        s->probe = wb_slice_equal(r->probe, wb_slice_str(probes[i])) ? i : s->probe;
    if (r->state == WB_SITE_CLAIMED)
        return;
    s->state = r->state == WB_SITE_DONE && seed_last(s) > s->seeds_taken ? WB_SITE_READY : r->state;
    if (s->anew && over(s->state)) {
        twin_plain(s);
        s->state = WB_SITE_UNRESOLVED;
        s->seeds_taken = s->pages = s->probe = 0;
    }
    if (s->state == WB_SITE_READY && !s->address)
        s->state = WB_SITE_UNRESOLVED;
    s->anew = false;
    s->owner = 0;
    s->lease_ms = 0;
}

#endif
