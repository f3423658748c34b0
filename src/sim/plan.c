/*
 * plan.c - draws the properties of pages.
 *
 * Only the leaves of a site's tree misbehave, are closed by robots.txt or vanish, so that every
 * page below another can always be reached. It never writes HTML or answers requests.
 */
#include "sim/plan.h"
#include "base/check.h"
#include "sim/chance.h"
#include "sim/life.h"

#include <math.h>

#define CLOSED_PERCENT 6
#define OPEN_DOOR_PERCENT 5
#define MORTAL_PERCENT 10
#define LIFE_DAYS 30.0       /* mean life of a page that vanishes */
#define AGE_DAYS 100.0       /* mean age of the pages that exist from the start */
#define STEADY_PERCENT 30    /* of the pages never change */
#define RATE_MIN_A_DAY 0.01  /* the rates of the others have a Pareto distribution from here... */
#define RATE_MAX_A_DAY 50.0  /* ...to here */
#define DOWN_SECONDS 3       /* kinds that recover are down for this long, then up for this long */

static const struct {
    const char *word;
    unsigned weight;
    int status;
    bool hostile;
} kinds[] = {
#define KIND_ROW(name, word, weight, status, hostile) {word, weight, status, hostile},
    WB_PLAN_KINDS(KIND_ROW)
#undef KIND_ROW
};

const char *wb_plan_kind_word(enum wb_plan_kind kind)
{
    return kinds[kind].word;
}

void wb_plan_kinds_fill(bool hostile, uint8_t slots_out[WB_WORLD_KIND_SLOTS])
{
    unsigned at = 0;

    for (unsigned k = 0; k < WB_KIND_COUNT; k++)
        for (unsigned i = 0; i < kinds[k].weight && (hostile || !kinds[k].hostile); i++) {
            WB_CHECK(at < WB_WORLD_KIND_SLOTS);
            slots_out[at++] = (uint8_t)k;
        }
    while (at < WB_WORLD_KIND_SLOTS)
        slots_out[at++] = WB_KIND_PAGE;
}

/* Draws how often a page changes: never, or a rate from a Pareto distribution. */
static double draw_rate(const struct wb_world *w, uint32_t site, uint32_t page)
{
    uint64_t r = wb_chance(w->seed, site, page, WB_CHANCE_RATE);

    if (r % 100 < STEADY_PERCENT)
        return 0;
    double a_day = RATE_MIN_A_DAY / (1 - wb_chance_unit(r >> 7 << 7));
    return fmin(a_day, RATE_MAX_A_DAY) / WB_DAY_SECONDS;
}

/* Draws what only leaves may be: of a special kind, or closed by robots.txt. */
static void draw_leaf(const struct wb_world *w, const struct wb_world_site *s, struct wb_plan *plan)
{
    uint64_t r = wb_chance(w->seed, plan->site, plan->page, WB_CHANCE_CLOSED);

    if (wb_world_has_rules(s) && r % 100 < CLOSED_PERCENT) {
        plan->allowed = false;
        return;
    }
    if (s->rules == WB_RULES_GROUPS && r / 100 % 100 < OPEN_DOOR_PERCENT)
        plan->open_door = true;
    plan->kind =
        (enum wb_plan_kind)w->kinds[wb_chance(w->seed, plan->site, plan->page, WB_CHANCE_KIND) % WB_WORLD_KIND_SLOTS];
    /* A copy needs an original that can be copied. */
    if ((plan->kind == WB_KIND_DUPLICATE || plan->kind == WB_KIND_NEAR) && s->inner < 2)
        plan->kind = WB_KIND_PAGE;
}

/* Draws when a page vanishes, if it is mortal. */
static void draw_life(const struct wb_world *w, bool mortal, struct wb_plan *plan)
{
    uint64_t r = wb_chance(w->seed, plan->site, plan->page, WB_CHANCE_LIFE);

    if (mortal && r % 100 < MORTAL_PERCENT)
        plan->gone = LIFE_DAYS * WB_DAY_SECONDS * wb_chance_exponential(wb_chance(r, 1, 0, WB_CHANCE_LIFE));
}

/* Plans a page that exists from the start. */
static void plan_first(const struct wb_world *w, const struct wb_world_site *s, struct wb_plan *plan)
{
    uint32_t page = plan->page;

    plan->mapped = page >= s->linked && page < s->mapped;
    plan->isolated = page >= s->mapped;
    /* The only link to a foreign page is on the next site's root, and that site may be closed. */
    uint32_t next = plan->site < w->sites ? plan->site + 1 : 1;
    plan->reachable = page < s->mapped || (page < s->foreign && w->site[next].rules != WB_RULES_FAILING);
    plan->rate = draw_rate(w, plan->site, page);
    plan->born =
        -AGE_DAYS * WB_DAY_SECONDS * wb_chance_exponential(wb_chance(w->seed, plan->site, page, WB_CHANCE_BIRTH));
    bool leaf = page > 0 && page >= s->inner && page < s->linked;
    if (leaf)
        draw_leaf(w, s, plan);
    draw_life(w, leaf && plan->allowed && plan->kind == WB_KIND_PAGE, plan);
}

/* Plans a page that is born later; half of these vanish again. */
static bool plan_newborn(const struct wb_world *w, const struct wb_world_site *s, struct wb_plan *plan)
{
    uint32_t id = plan->page - WB_PLAN_NEW, event = id % WB_LIFE_CELL_EVENTS;
    uint64_t name = wb_chance(w->seed, plan->site, 0, WB_CHANCE_BIRTH);
    double times[WB_LIFE_CELL_EVENTS];

    if (!(s->births > 0) || event >= wb_life_cell(name, s->births, id / WB_LIFE_CELL_EVENTS, times))
        return false;
    plan->born = times[event];
    uint64_t r = wb_chance(w->seed, plan->site, plan->page, WB_CHANCE_LIFE);
    if (r & 1)
        plan->gone =
            plan->born + LIFE_DAYS * WB_DAY_SECONDS * wb_chance_exponential(wb_chance(r, 1, 0, WB_CHANCE_LIFE));
    plan->rate = draw_rate(w, plan->site, plan->page);
    return true;
}

bool wb_plan_make(const struct wb_world *world, uint32_t site, uint32_t page, struct wb_plan *plan_out)
{
    _Static_assert(WB_PLAN_NEW < WB_PLAN_LATEST && WB_PLAN_LATEST < WB_PLAN_SITES && WB_PLAN_SITES < WB_PLAN_NONE,
                   "the kinds of page numbers are told apart by size");
    _Static_assert(WB_SIM_PAGES_MAX <= WB_PLAN_NEW, "pages of the start never look like later ones");
    *plan_out = (struct wb_plan){.site = site, .page = page, .allowed = true, .reachable = true, .gone = INFINITY};
    if (site > world->sites)
        return false;
    const struct wb_world_site *s = &world->site[site];
    bool known;
    if (page >= WB_PLAN_SITES)
        known = site == 0 && page - WB_PLAN_SITES >= 1 &&
                page - WB_PLAN_SITES <= (world->sites - 1) / WB_PLAN_SITES_PER_PAGE;
    else if (page >= WB_PLAN_LATEST)
        known = s->births > 0;
    else if (page >= WB_PLAN_NEW)
        known = plan_newborn(world, s, plan_out);
    else {
        known = page < s->pages;
        if (known)
            plan_first(world, s, plan_out);
    }
    if (s->rules == WB_RULES_FAILING)
        plan_out->allowed = false;
    return known;
}

uint32_t wb_plan_group(const struct wb_world_site *site, const struct wb_world_moment *now)
{
    if (!(site->births > 0))
        return 0;
    int64_t group = wb_life_cell_at(site->births, now->web) / WB_PLAN_LATEST_CELLS;
    int64_t last = (WB_PLAN_SITES - WB_PLAN_LATEST) - 2;
    return (uint32_t)(group < last ? group : last);
}

bool wb_plan_alive(const struct wb_plan *plan, const struct wb_world_moment *now)
{
    return plan->born <= now->web && now->web < plan->gone;
}

uint64_t wb_plan_version(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now,
                         double *changed_out)
{
    struct wb_life_event event;
    uint64_t name = wb_chance(world->seed, plan->site, plan->page, WB_CHANCE_CHANGE);

    *changed_out = plan->born;
    if (!wb_life_last(name, plan->rate, now->web, &event) || event.time < plan->born)
        return 0;
    *changed_out = event.time;
    return event.number;
}

unsigned wb_plan_wait(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now)
{
    if (plan->kind != WB_KIND_UNAVAILABLE && plan->kind != WB_KIND_TOO_MANY)
        return 0;
    uint64_t phase = wb_chance(world->seed, plan->site, plan->page, WB_CHANCE_BEHAVIOUR) % (2 * DOWN_SECONDS);
    uint64_t at = ((uint64_t)now->real + phase) % (2 * DOWN_SECONDS);
    return at < DOWN_SECONDS ? DOWN_SECONDS - (unsigned)at : 0;
}

int wb_plan_status(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now)
{
    static const int moved[] = {301, 302, 307, 308};
    uint64_t r = wb_chance(world->seed, plan->site, plan->page, WB_CHANCE_BEHAVIOUR);

    if (!wb_plan_alive(plan, now))
        return r & 1 ? 404 : 410;
    if (plan->kind == WB_KIND_REDIRECT || plan->kind == WB_KIND_OUT)
        return moved[r % 4];
    if (plan->kind == WB_KIND_UNAVAILABLE || plan->kind == WB_KIND_TOO_MANY)
        return wb_plan_wait(world, plan, now) ? kinds[plan->kind].status : 200;
    return kinds[plan->kind].status;
}

/* Chooses a page with children, because those never misbehave. */
uint32_t wb_plan_twin(const struct wb_world *world, const struct wb_plan *plan)
{
    const struct wb_world_site *s = &world->site[plan->site];
    uint64_t r = wb_chance(world->seed, plan->site, plan->page, WB_CHANCE_DERIVED);

    return s->inner < 2 ? 0 : 1 + (uint32_t)(r % (s->inner - 1));
}
