/*
 * world.c - draws the sites.
 *
 * Their sizes follow a power law over a shuffled order, so that sites with neighbouring numbers
 * do not have similar sizes. It never serves anything.
 */
#include "sim/world.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "sim/chance.h"
#include "sim/plan.h"

#include <math.h>
#include <stdio.h>

#define SIZE_EXPONENT 0.8
#define FRONT_PAGES_MAX 40
#define STILL_EPOCH_MS 1767225600000ll /* 2026-01-01: the web's present if time stands still */
#define DELAY_SITE_PAGES_MAX 12        /* only small sites have a Crawl-delay: tests have to wait for it */

static const struct {
    const char *word;
    bool hostile;
} rules_table[] = {
#define RULES_ROW(name, word, hostile) {word, hostile},
    WB_WORLD_RULES(RULES_ROW)
#undef RULES_ROW
};

const char *wb_world_rules_word(enum wb_world_rules rules)
{
    return rules_table[rules].word;
}

const char *wb_world_map_word(enum wb_world_map map)
{
    static const char *const names[WB_MAP_COUNT] = {"none", "xml", "index", "gz", "text"};

    return names[map];
}

unsigned wb_world_delay(const struct wb_world_site *site)
{
    return site->rules == WB_RULES_DELAY ? 1 : 0;
}

bool wb_world_has_rules(const struct wb_world_site *site)
{
    return site->rules != WB_RULES_NONE && site->rules != WB_RULES_HTML;
}

/* Draws the kind of a site's robots.txt. Only small sites have a Crawl-delay, and only hostile webs the odd kinds. */
static enum wb_world_rules draw_rules(const struct wb_world *w, uint32_t number, uint32_t pages,
                                      struct wb_chance_dice *dice)
{
    uint32_t r = wb_chance_dice_below(dice, 100);
    enum wb_world_rules odd =
        (enum wb_world_rules)(WB_RULES_FAILING + wb_chance_dice_below(dice, WB_RULES_COUNT - WB_RULES_FAILING));

    if (number == 0)
        return WB_RULES_GROUPS;
    if (w->hostile && r >= 80)
        return odd;
    if (r < 20)
        return WB_RULES_NONE;
    if (r < 30 && pages <= DELAY_SITE_PAGES_MAX)
        return WB_RULES_DELAY;
    return r < 60 ? WB_RULES_SIMPLE : WB_RULES_GROUPS;
}

/* Draws how many pages of a site cannot be reached through its own links. */
static void draw_islands(const struct wb_world *w, uint32_t number, struct wb_world_site *s)
{
    uint32_t few = s->pages >= 12 && number > 0 ? 1 + s->pages / 64 : 0;
    uint32_t foreign = w->sites < 2 ? 0 : few < 20 ? few : 20;
    uint32_t mapped = s->map == WB_MAP_NONE || s->pages < 8 ? 0 : 1 + s->pages / 20;

    s->foreign = s->pages - few;
    s->mapped = s->foreign - foreign;
    s->linked = s->mapped - mapped;
    s->inner = s->linked < 2 ? 0 : (s->linked - 2) / s->fan + 1;
}

/* Draws everything about a site except its size. */
static void draw_site(const struct wb_world *w, uint32_t number, uint32_t pages, struct wb_world_site *s)
{
    struct wb_chance_dice dice = {wb_chance(w->seed, number, 0, WB_CHANCE_SITE_FACTS)};

    s->pages = pages;
    s->fan = 3 + wb_chance_dice_below(&dice, 10);
    s->rules = draw_rules(w, number, pages, &dice);
    uint32_t map = wb_chance_dice_below(&dice, 2 * WB_MAP_COUNT);
    bool readable = number > 0 && (s->rules == WB_RULES_SIMPLE || s->rules == WB_RULES_GROUPS);
    s->map = readable && map < WB_MAP_COUNT ? (enum wb_world_map)map : WB_MAP_NONE;
    s->alias = wb_chance_dice_below(&dice, 100) < 5 && number > 0;
    s->etag = wb_chance_dice_below(&dice, 100) < 70;
    s->modified = wb_chance_dice_below(&dice, 100) < 70;
    s->gzip = wb_chance_dice_below(&dice, 100) < 50;
    s->births = w->speed > 0 ? (0.05 + 0.01 * pages) / WB_DAY_SECONDS : 0;
    draw_islands(w, number, s);
}

/* Draws the order of the sites by size: rank[i] is the position of site i + 1. */
static void draw_ranks(uint64_t seed, uint32_t count, uint32_t *rank)
{
    struct wb_chance_dice dice = {wb_chance(seed, 0, 0, WB_CHANCE_SITE_RANK)};

    for (uint32_t i = 0; i < count; i++)
        rank[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t k = wb_chance_dice_below(&dice, i + 1), t = rank[i];
        rank[i] = rank[k];
        rank[k] = t;
    }
}

/* Distributes the pages over the sites, and draws each site. */
static int draw_sites(struct wb_world *w, uint32_t pages)
{
    uint32_t *rank = wb_alloc_zero(w->sites, sizeof *rank);
    double sum = 0;

    if (!rank)
        return WB_E_NOMEM;
    draw_ranks(w->seed, w->sites, rank);
    for (uint32_t i = 1; i <= w->sites; i++)
        sum += pow(i, -SIZE_EXPONENT);
    for (uint32_t i = 1; i <= w->sites; i++) {
        double size = pages * pow(rank[i - 1] + 1.0, -SIZE_EXPONENT) / sum;
        draw_site(w, i, size < 1 ? 1 : (uint32_t)(size + 0.5), &w->site[i]);
    }
    uint32_t front = 8 + pages / 20;
    draw_site(w, 0, front < FRONT_PAGES_MAX ? front : FRONT_PAGES_MAX, &w->site[0]);
    wb_free(rank);
    return 0;
}

int wb_world_init(const struct wb_sim_options *options, struct wb_world *world_out)
{
    *world_out = (struct wb_world){.seed = options->seed, .sites = options->sites, .speed = options->speed,
                                   .page_bytes = options->page_bytes, .hostile = options->hostile};
    if (options->sites < 1 || options->sites > WB_SIM_SITES_MAX)
        return wb_fail(WB_E_INVALID, "a synthetic web has 1 to %u sites, not %u", WB_SIM_SITES_MAX, options->sites);
    if (options->pages < 1 || options->pages > WB_SIM_PAGES_MAX)
        return wb_fail(WB_E_INVALID, "a synthetic web has 1 to %u pages, not %u", WB_SIM_PAGES_MAX, options->pages);
    world_out->site = wb_alloc_zero((size_t)options->sites + 1, sizeof *world_out->site);
    if (!world_out->site)
        return WB_E_NOMEM;
    wb_plan_kinds_fill(options->hostile, world_out->kinds);
    int err = draw_sites(world_out, options->pages);
    if (err < 0)
        wb_world_release(world_out);
    return err;
}

void wb_world_release(struct wb_world *world)
{
    wb_free(world->site);
    world->site = NULL;
}

void wb_world_set_place(struct wb_world *world, const char *address, uint16_t port, int64_t start_wall_ms)
{
    snprintf(world->front, sizeof world->front, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, (unsigned)port);
    world->port = port;
    world->start_wall_ms = start_wall_ms;
}

void wb_world_host(const struct wb_world *world, uint32_t site, bool alias, struct wb_pen *pen)
{
    WB_CHECK(site <= world->sites && (!alias || world->site[site].alias));
    if (site == 0) {
        wb_pen_str(pen, world->front);
        return;
    }
    wb_pen_char(pen, alias ? 'a' : 's');
    wb_pen_u64(pen, site);
    wb_pen_str(pen, ".localhost:");
    wb_pen_u64(pen, world->port);
}

int64_t wb_world_stamp(const struct wb_world *world, double web)
{
    if (world->speed > 0)
        return world->start_wall_ms + (int64_t)floor(web / world->speed * 1000);
    return STILL_EPOCH_MS + (int64_t)floor(web * 1000);
}
