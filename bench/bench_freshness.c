/*
 * bench_freshness.c - measures how fresh each refresh policy keeps a repository of the synthetic web.
 *
 *   bench_freshness run|speed [PAGES [SEED]]
 *
 * There are no sockets and no waiting: a fetch asks the model for the version of a page at a moment of web time. Cycles
 * work as in `webbase run`: the value of every page is computed, and the budget goes to the most valuable pages, each
 * at most once. What is known about a page is a row of webdb, built visit by visit; rates come from wb_changerate(),
 * with the pages of the site as a prior. For every budget, twenty cycles pass in the time in which the budget is enough
 * to visit every page once.
 *
 * Prints one JSON line for each budget, kind of weights and policy, and one for the theoretical optimum, which is fixed
 * intervals as the true rates demand. Everything is weighted the way the policy weighs pages, and time averages are
 * exact: between two visits, a copy is fresh until the first change.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/refresh.h"
#include "sim/chance.h"
#include "sim/life.h"
#include "sim/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SITES 100
#define CYCLES_A_ROUND 20    /* a round is the time in which the budget is enough to visit every page once */
#define BURN_IN_ROUNDS 20
#define ROUNDS 40
#define RATES_EVERY 5        /* cycles after which the rates of all pages are computed, not only of those visited */
#define WEIGHT_MAX 100.0
#define START_MS 1767225600000ll

/* Where rates come from. GAPS_ONLY: as if no server sent Last-Modified. */
enum knowledge { TOLD, ESTIMATED, GAPS_ONLY };

static const struct contender {
    const char *name;
    enum wb_refresh_policy policy;
    enum knowledge knowledge;
    double min_rounds, max_rounds; /* bounds of the interval; 0: none */
} contenders[] = {
    {"optimal, true rates", WB_REFRESH_OPTIMAL, TOLD, 0, 0},
    {"optimal", WB_REFRESH_OPTIMAL, ESTIMATED, 0, 0},
    {"optimal, no Last-Modified", WB_REFRESH_OPTIMAL, GAPS_ONLY, 0, 0},
    {"optimal, nothing left alone", WB_REFRESH_OPTIMAL, ESTIMATED, 0, 4},
    {"uniform", WB_REFRESH_UNIFORM, ESTIMATED, 0, 0},
    {"proportional", WB_REFRESH_PROPORTIONAL, ESTIMATED, 0, 0},
    /* No page is visited twice in a cycle, so an interval shorter than that would only put the page first. */
    {"adaptive", WB_REFRESH_ADAPTIVE, ESTIMATED, 1.0 / CYCLES_A_ROUND, 0},
    {"adaptive, minimum tuned", WB_REFRESH_ADAPTIVE, ESTIMATED, 0.5, 0},
};

static const double budgets_days[] = {5, 10, 20, 50}; /* mean days between two visits to a page */

/* Integrals over time: of the weight that is fresh, or current as of a day or a week ago; and of weight times days. */
struct sums {
    double fresh, age, day, week;
};

struct place {
    struct wb_plan plan;
    double weight;
    struct wb_webdb_page page;
    double rate;         /* what the policy believes it to be */
    uint64_t version;
    double visited;      /* in seconds of web time; negative: never */
    double next_change;  /* the first change after the visit */
};

struct ranked {
    double value;
    uint32_t at;
};

struct bench {
    struct wb_world world;
    struct place *places;
    size_t count;
    double weights;      /* the sum of all weights */
    struct wb_webdb_site sites[SITES + 1];
    struct ranked *ranked;
    struct sums sums;    /* of the current round */
};

/* ---- the web ------------------------------------------------------------------------------------ */

/* Chooses the pages that answer with text and never vanish. */
static bool take_page(const struct wb_world *world, uint32_t site, uint32_t page, struct wb_plan *plan_out)
{
    const struct wb_world_moment start = {0, 0};

    if (!wb_plan_make(world, site, page, plan_out) || !plan_out->allowed || isfinite(plan_out->gone))
        return false;
    return wb_plan_status(world, plan_out, &start) == 200 && plan_out->kind != WB_KIND_DUPLICATE;
}

static int make_places(struct bench *b, unsigned pages, uint64_t seed)
{
    struct wb_sim_options options = {.seed = seed, .sites = SITES, .pages = pages, .speed = 1, .page_bytes = 1000};
    int err = wb_world_init(&options, &b->world);

    if (err < 0)
        return err;
    size_t room = 0;
    for (uint32_t s = 1; s <= SITES; s++)
        room += b->world.site[s].pages;
    b->places = wb_alloc_zero(room, sizeof *b->places);
    b->ranked = wb_alloc_zero(room, sizeof *b->ranked);
    if (!b->places || !b->ranked)
        return WB_E_NOMEM;
    for (uint32_t s = 1; s <= SITES; s++)
        for (uint32_t p = 0; p < b->world.site[s].pages; p++)
            b->count += take_page(&b->world, s, p, &b->places[b->count].plan);
    return 0;
}

/* Skewed weights: a Pareto distribution, independent of the rates. */
static void weigh_places(struct bench *b, bool skewed)
{
    b->weights = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct place *p = &b->places[i];
        uint64_t r = wb_chance(b->world.seed, p->plan.site, p->plan.page, WB_CHANCE_SIZE);
        p->weight = skewed ? fmin(1 / (1 - wb_chance_unit(r)), WEIGHT_MAX) : 1;
        b->weights += p->weight;
    }
}

/* Returns the first change after a moment, INFINITY if there is none. */
static double change_after(const struct bench *b, const struct wb_plan *plan, double t)
{
    uint64_t name = wb_chance(b->world.seed, plan->site, plan->page, WB_CHANCE_CHANGE);
    double times[WB_LIFE_CELL_EVENTS], first = INFINITY;

    if (!(plan->rate > 0))
        return INFINITY;
    for (int64_t cell = wb_life_cell_at(plan->rate, t); !isfinite(first); cell++) {
        unsigned count = wb_life_cell(name, plan->rate, cell, times);
        for (unsigned i = 0; i < count; i++)
            if (times[i] > t && times[i] < first)
                first = times[i];
    }
    return first;
}

/* ---- measuring ------------------------------------------------------------------------------------ */

/* Returns the seconds of [from, to) in which the copy was what the page had been so many seconds before. */
static double current_seconds(const struct place *p, double from, double to, double grace)
{
    double end = p->visited < 0 ? from : fmin(p->next_change + grace, to);

    return fmax(end - from, 0);
}

static void account(struct bench *b, const struct place *p, double from, double to)
{
    double stale = p->visited < 0 ? 0 : p->next_change, late = fmax(to - stale, 0), early = fmax(from - stale, 0);

    if (!(to > from))
        return;
    b->sums.fresh += p->weight * current_seconds(p, from, to, 0);
    b->sums.day += p->weight * current_seconds(p, from, to, WB_DAY_SECONDS);
    b->sums.week += p->weight * current_seconds(p, from, to, 7 * WB_DAY_SECONDS);
    b->sums.age += p->weight * (late * late - early * early) / 2 / WB_DAY_SECONDS;
}

/* ---- visiting ------------------------------------------------------------------------------------- */

static int64_t web_ms(double t)
{
    return START_MS + (int64_t)floor(t * 1000);
}

static double place_rate(const struct bench *b, const struct contender *c, const struct place *p)
{
    if (c->knowledge == TOLD)
        return p->plan.rate * WB_DAY_SECONDS;
    return wb_changerate(&p->page.history, &b->sites[p->plan.site]);
}

static void learn(struct bench *b, const struct contender *c, struct place *p, double t, bool changed,
                  double changed_at)
{
    struct wb_webdb_site *site = &b->sites[p->plan.site];
    bool tells = c->knowledge == ESTIMATED && b->world.site[p->plan.site].modified;
    int64_t gap_ms = web_ms(t) - web_ms(p->visited);

    /* HTTP dates are in whole seconds. */
    wb_visitlog_add(&p->page.history, gap_ms, changed, tells ? web_ms(floor(changed_at)) : 0, web_ms(t));
    site->visits++;
    site->changes += changed;
    site->days += (double)gap_ms / (WB_DAY_SECONDS * 1000);
}

static void visit(struct bench *b, const struct contender *c, struct place *p, double t, double round_start)
{
    double changed_at;
    uint64_t version = wb_plan_version(&b->world, &p->plan, &(struct wb_world_moment){t, t}, &changed_at);

    account(b, p, fmax(p->visited, round_start), t);
    if (p->visited >= 0) {
        WB_CHECK((version != p->version) == (p->next_change <= t));
        learn(b, c, p, t, version != p->version, changed_at);
    }
    p->version = version;
    p->visited = t;
    p->next_change = change_after(b, &p->plan, t);
    p->page.last_seen_ms = p->page.last_tried_ms = web_ms(t);
    p->page.has_content = true;
    p->rate = place_rate(b, c, p);
}

static bool before(const struct ranked *a, const struct ranked *b)
{
    return a->value > b->value || (a->value == b->value && a->at < b->at);
}

/* Moves the best `want` pages to the front (Hoare's FIND). */
static void select_best(struct ranked *r, size_t count, size_t want)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)count - 1, k = (ptrdiff_t)want - 1;

    while (low < high) {
        struct ranked pivot = r[k];
        ptrdiff_t i = low, j = high;
        do {
            while (before(&r[i], &pivot))
                i++;
            while (before(&pivot, &r[j]))
                j--;
            if (i <= j) {
                struct ranked t = r[i];
                r[i++] = r[j];
                r[j--] = t;
            }
        } while (i <= j);
        if (j < k)
            low = i;
        if (k < i)
            high = j;
    }
}

/* ---- policies --------------------------------------------------------------------------------------- */

static void forget(struct bench *b, const struct contender *c)
{
    memset(b->sites, 0, sizeof b->sites);
    for (size_t i = 0; i < b->count; i++) {
        struct place *p = &b->places[i];
        p->page = (struct wb_webdb_page){.score = p->weight};
        p->visited = -1;
        p->rate = place_rate(b, c, p);
    }
}

/* Runs one cycle. Returns how many pages had reached theta. */
static size_t go_around(struct bench *b, const struct contender *c, const struct wb_refresh *refresh, size_t budget,
                        double t, double round_start)
{
    size_t due = 0;

    for (size_t i = 0; i < b->count; i++) {
        b->ranked[i] =
            (struct ranked){wb_refresh_value(refresh, &b->places[i].page, b->places[i].rate, web_ms(t)), (uint32_t)i};
        due += b->ranked[i].value >= refresh->theta;
    }
    select_best(b->ranked, b->count, budget);
    for (size_t i = 0; i < budget; i++)
        if (b->ranked[i].value > 0)
            visit(b, c, &b->places[b->ranked[i].at], t, round_start);
    return due;
}

/* Turns the sums of a round into averages and starts the next round. */
static struct sums end_round(struct bench *b, double round_start, double t)
{
    for (size_t i = 0; i < b->count; i++)
        account(b, &b->places[i], fmax(b->places[i].visited, round_start), t);
    double all = b->weights * (t - round_start);
    struct sums s = {b->sums.fresh / all, b->sums.age / all, b->sums.day / all, b->sums.week / all};
    b->sums = (struct sums){0, 0, 0, 0};
    return s;
}

static void print_line(double days, const char *weights, const char *policy, const struct sums *s)
{
    printf("{\"bench\":\"freshness\",\"days\":%g,\"weights\":\"%s\",\"policy\":\"%s\",\"freshness\":%.5f,\"age\":%.4f,"
           "\"current_day\":%.5f,\"current_week\":%.5f", days, weights, policy, s->fresh, s->age, s->day, s->week);
}

struct report {
    struct sums sums;                   /* averages over the rounds after the burn-in */
    double fresh[ROUNDS];               /* round by round */
    double theta_lowest, theta_highest; /* the controller's threshold, divided by the value of the last page visited */
};

static void run_rounds(struct bench *b, const struct contender *c, double days, struct report *r)
{
    double cycle = floor(days * WB_DAY_SECONDS / CYCLES_A_ROUND), t = 0, part = 1.0 / (ROUNDS - BURN_IN_ROUNDS);
    struct wb_refresh refresh = {.policy = c->policy,
                                 .theta = wb_refresh_first_theta(c->policy, days),
                                 .min_days = c->min_rounds * days,
                                 .max_days = c->max_rounds * days};
    size_t budget = b->count / CYCLES_A_ROUND;

    *r = (struct report){.theta_lowest = 1e9};
    forget(b, c);
    for (unsigned round = 0; round < ROUNDS; round++) {
        double round_start = t;
        for (unsigned i = 0; i < CYCLES_A_ROUND; i++, t += cycle) {
            if (i % RATES_EVERY == 0)
                for (size_t k = 0; k < b->count; k++)
                    b->places[k].rate = place_rate(b, c, &b->places[k]);
            size_t due = go_around(b, c, &refresh, budget, t, round_start);
            double off = refresh.theta / b->ranked[budget - 1].value;
            if (round >= BURN_IN_ROUNDS) {
                r->theta_lowest = fmin(r->theta_lowest, off);
                r->theta_highest = fmax(r->theta_highest, off);
            }
            refresh.theta = wb_refresh_move_theta(refresh.theta, (double)due, (double)budget);
        }
        struct sums s = end_round(b, round_start, t);
        r->fresh[round] = s.fresh;
        if (round < BURN_IN_ROUNDS)
            continue;
        r->sums = (struct sums){r->sums.fresh + part * s.fresh, r->sums.age + part * s.age, r->sums.day + part * s.day,
                                r->sums.week + part * s.week};
    }
}

static void run_contender(struct bench *b, const struct contender *c, double days, const char *weights)
{
    struct report r;

    run_rounds(b, c, days, &r);
    print_line(days, weights, c->name, &r.sums);
    printf(",\"theta_lowest\":%.3f,\"theta_highest\":%.3f,\"rounds\":[", r.theta_lowest, r.theta_highest);
    for (unsigned round = 0; round < ROUNDS; round++)
        printf("%s%.4f", round ? "," : "", r.fresh[round]);
    printf("]}\n");
}

/* ---- the optimum ------------------------------------------------------------------------------------- */

/* Solves 1 - exp(-x) (1 + x) = y for x, by bisection, without any of the code that is measured. */
static double inverse_gain(double y)
{
    double low = 0, high = 60;

    for (int i = 0; i < 60; i++) {
        double x = (low + high) / 2;
        if (1 - exp(-x) * (1 + x) < y)
            low = x;
        else
            high = x;
    }
    return high;
}

/* Returns the visits per day to all pages if one more visit is worth mu everywhere, and the sums that result. */
static double allocate(const struct bench *b, double mu, struct sums *sums_out)
{
    double visits = 0;

    *sums_out = (struct sums){0, 0, 0, 0};
    for (size_t i = 0; i < b->count; i++) {
        const struct place *p = &b->places[i];
        double rate = p->plan.rate * WB_DAY_SECONDS, w = p->weight / b->weights;
        if (!(rate > 0)) {
            sums_out->fresh += w;
            sums_out->day += w;
            sums_out->week += w;
            continue;
        }
        if (mu * rate >= p->weight) {
            sums_out->age = INFINITY; /* the page is never visited again */
            continue;
        }
        double x = inverse_gain(mu * rate / p->weight), interval = x / rate;
        visits += 1 / interval;
        sums_out->fresh += w * (1 - exp(-x)) / x;
        sums_out->age += w * interval * (0.5 - 1 / x + (1 - exp(-x)) / (x * x));
        sums_out->day += w * (interval <= 1 ? 1 : (1 + (1 - exp(-rate * (interval - 1))) / rate) / interval);
        sums_out->week += w * (interval <= 7 ? 1 : (7 + (1 - exp(-rate * (interval - 7))) / rate) / interval);
    }
    return visits;
}

static void print_optimum(const struct bench *b, double days, const char *weights)
{
    double low = 1e-9, high = 1e9;
    struct sums s = {0, 0, 0, 0};

    for (int i = 0; i < 60; i++) {
        double mu = sqrt(low * high);
        if (allocate(b, mu, &s) > (double)b->count / days)
            low = mu;
        else
            high = mu;
    }
    if (!isfinite(s.age))
        s.age = -1;
    print_line(days, weights, "optimum", &s);
    printf(",\"mu\":%g,\"pages\":%zu}\n", high, b->count);
}

static void compare_policies(struct bench *b)
{
    for (unsigned skewed = 0; skewed < 2; skewed++) {
        const char *weights = skewed ? "skewed" : "equal";
        weigh_places(b, skewed);
        for (size_t i = 0; i < sizeof budgets_days / sizeof *budgets_days; i++) {
            print_optimum(b, budgets_days[i], weights);
            for (size_t k = 0; k < sizeof contenders / sizeof *contenders; k++)
                run_contender(b, &contenders[k], budgets_days[i], weights);
        }
    }
}

/* ---- speed --------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns calls per second over all pages, the best of several passes. what: 0 rates, 1 values, 2 due times. */
static double calls_a_second(const struct bench *b, const struct contender *c, int what)
{
    struct wb_refresh refresh = {.policy = WB_REFRESH_OPTIMAL, .theta = 1};
    double best = 0;
    volatile double sink = 0;

    for (int pass = 0; pass < 20; pass++) {
        double start = seconds(), sum = 0;
        for (size_t i = 0; i < b->count; i++) {
            const struct place *p = &b->places[i];
            sum += what == 0   ? place_rate(b, c, p)
                   : what == 1 ? wb_refresh_value(&refresh, &p->page, p->rate, p->page.last_seen_ms + WB_DAY_MS)
                               : (double)wb_refresh_due(&refresh, &p->page, p->rate);
        }
        sink = sink + sum;
        best = fmax(best, (double)b->count / (seconds() - start));
    }
    return best;
}

/* Measures on the rows that exist after some rounds, once with most sites sending Last-Modified and once with none. */
static void measure_speed(struct bench *b)
{
    struct report r;

    weigh_places(b, false);
    for (const struct contender *c = &contenders[1]; c <= &contenders[2]; c++) {
        run_rounds(b, c, 10, &r);
        printf("{\"bench\":\"freshness_speed\",\"policy\":\"%s\",\"rates_s\":%.0f,\"values_s\":%.0f,\"dues_s\":%.0f}\n",
               c->name, calls_a_second(b, c, 0), calls_a_second(b, c, 1), calls_a_second(b, c, 2));
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    unsigned pages = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;

    if (make_places(&b, pages, seed) < 0 || b.count < 1000) {
        fprintf(stderr, "bench_freshness: %s\n", b.count < 1000 ? "too few pages" : wb_error_message());
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "speed") == 0)
        measure_speed(&b);
    else
        compare_policies(&b);
    wb_free(b.places);
    wb_free(b.ranked);
    wb_world_release(&b.world);
    return 0;
}
