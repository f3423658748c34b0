/*
 * hypertext.c - writes pages as HTML.
 *
 * A page links to its parent, its children, some popular pages of the site and a few other
 * sites; a new version rewrites one paragraph. It never decides anything about a page: plan.c
 * does.
 */
#include "sim/hypertext.h"
#include "base/hash.h"
#include "sim/chance.h"
#include "sim/life.h"
#include "sim/locate.h"
#include "sim/prose.h"

#include <inttypes.h>
#include <math.h>

#define EXTRA_LINKS_MAX 8u
#define CROSS_LINKS_MAX 3u
#define CHANGING_PARAGRAPHS 3
#define MANY_LINKS 5000
#define DEEP_ELEMENTS 100000

struct painter {
    const struct wb_world *world;
    const struct wb_world_site *site;
    const struct wb_plan *plan;
    const struct wb_world_moment *now;
    struct wb_pen *pen;
    uint64_t name; /* the seed of its text */
};

/* Writes a link to a page, with the title of that page as its anchor. */
static void put_link(struct painter *p, const struct wb_plan *target)
{
    wb_pen_str(p->pen, "<a href=\"");
    if (target->site != p->plan->site)
        wb_locate_url(p->world, target, p->pen);
    else
        wb_locate_path(p->world, target, p->pen);
    wb_pen_str(p->pen, "\">");
    wb_prose_title(p->pen, wb_chance(p->world->seed, target->site, target->page, WB_CHANCE_TEXT));
    wb_pen_str(p->pen, "</a>");
}

/* Writes a link to a page of the same site, if there ever is such a page; `item`: as a list item. */
static void put_page_link(struct painter *p, uint32_t page, bool item)
{
    struct wb_plan target;

    if (!wb_plan_make(p->world, p->plan->site, page, &target))
        return;
    if (item)
        wb_pen_str(p->pen, "<li>");
    put_link(p, &target);
    if (item)
        wb_pen_str(p->pen, "</li>\n");
}

/* Links to the root of a site, now and then under the site's second name. */
static void put_root_link(struct painter *p, uint32_t site, bool alias)
{
    wb_pen_str(p->pen, "<li><a href=\"http://");
    wb_world_host(p->world, site, alias && p->world->site[site].alias, p->pen);
    wb_pen_str(p->pen, "/\">");
    wb_prose_title(p->pen, wb_chance(p->world->seed, site, 0, WB_CHANCE_TEXT));
    wb_pen_str(p->pen, "</a></li>\n");
}

static void put_head(struct painter *p, const char *charset)
{
    wb_pen_str(p->pen, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    if (charset)
        wb_pen_printf(p->pen, "<meta charset=\"%s\">\n", charset);
    wb_pen_str(p->pen, "<title>");
    wb_prose_title(p->pen, p->name);
    wb_pen_str(p->pen, "</title>\n<meta name=\"description\" content=\"");
    struct wb_chance_dice dice = {p->name + 1};
    wb_prose_sentence(p->pen, &dice, p->name);
    wb_pen_str(p->pen, "\">\n</head>\n<body>\n");
}

static void put_navigation(struct painter *p)
{
    wb_pen_str(p->pen, "<header><a href=\"/\">");
    wb_prose_title(p->pen, wb_chance(p->world->seed, p->plan->site, 0, WB_CHANCE_TEXT));
    wb_pen_str(p->pen, "</a></header>\n<nav><ul>\n<li><a href=\"/\">Home</a></li>\n");
    if (p->plan->page == 0 && p->site->births > 0)
        wb_pen_str(p->pen, "<li><a href=\"/latest/\">Latest</a></li>\n");
    if (p->plan->page > 0 && p->plan->page < p->site->linked)
        put_page_link(p, (p->plan->page - 1) / p->site->fan, true);
    for (uint32_t i = 1; i <= 3 && i < p->site->inner; i++)
        put_page_link(p, i, true);
    wb_pen_str(p->pen, "</ul></nav>\n");
}

/* Writes a paragraph that depends on nothing but its seed. */
static void put_paragraph(struct painter *p, uint64_t seed)
{
    struct wb_chance_dice dice = {seed};
    uint32_t sentences = 2 + wb_chance_dice_below(&dice, 4);

    for (uint32_t i = 0; i < sentences; i++)
        wb_prose_sentence(p->pen, &dice, p->name);
}

/* Draws a popular page of the site: smaller numbers are more likely. */
static uint32_t popular(const struct wb_world_site *site, struct wb_chance_dice *dice)
{
    double u = wb_chance_dice_unit(dice);

    return (uint32_t)(site->linked * u * u * u);
}

/* Writes the main text, with links to popular pages. The version of the page decides one of its first paragraphs. */
static void put_text(struct painter *p)
{
    uint64_t size = wb_chance(p->world->seed, p->plan->site, p->plan->page, WB_CHANCE_SIZE);
    double factor = fmin(0.3 + 0.7 * wb_chance_exponential(size), 5);
    size_t end = p->pen->buf->len + (size_t)(factor * p->world->page_bytes);
    struct wb_chance_dice dice = {wb_chance(p->world->seed, p->plan->site, p->plan->page, WB_CHANCE_LINKS)};
    uint32_t links = p->site->linked > 1 ? wb_chance_dice_below(&dice, EXTRA_LINKS_MAX) : 0;
    double changed;
    uint64_t version = wb_plan_version(p->world, p->plan, p->now, &changed);

    for (uint64_t i = 0; p->pen->err == 0 && (i < CHANGING_PARAGRAPHS || i < links || p->pen->buf->len < end); i++) {
        bool fresh = version > 0 && i == version % CHANGING_PARAGRAPHS;
        wb_pen_str(p->pen, "<p>");
        put_paragraph(p, wb_chance(p->name, i, fresh ? version : 0, WB_CHANCE_TEXT));
        if (i < links) {
            wb_pen_str(p->pen, "See ");
            put_page_link(p, popular(p->site, &dice), false);
            wb_pen_char(p->pen, '.');
        }
        wb_pen_str(p->pen, "</p>\n");
    }
}

static void put_children(struct painter *p)
{
    uint64_t first = (uint64_t)p->plan->page * p->site->fan + 1;

    if (p->plan->page >= p->site->inner)
        return;
    wb_pen_str(p->pen, "<h2>More</h2>\n<ul>\n");
    for (uint64_t i = first; i < first + p->site->fan && i < p->site->linked; i++)
        put_page_link(p, (uint32_t)i, true);
    wb_pen_str(p->pen, "</ul>\n");
}

/* Writes one part of the front's list of sites, with links to the other parts. */
static void put_sites(struct painter *p, uint32_t part)
{
    uint32_t first = part * WB_PLAN_SITES_PER_PAGE + 1;

    wb_pen_str(p->pen, "<h2>Sites</h2>\n<ul>\n");
    for (uint32_t i = first; i < first + WB_PLAN_SITES_PER_PAGE && i <= p->world->sites; i++)
        put_root_link(p, i, false);
    wb_pen_str(p->pen, "</ul>\n");
    if (first + WB_PLAN_SITES_PER_PAGE <= p->world->sites)
        wb_pen_printf(p->pen, "<p><a href=\"/sites/%u\">More sites</a></p>\n", part + 2);
}

/* Links to the pages that were born in a group of cells and still exist. */
static void put_group(struct painter *p, uint32_t group)
{
    struct wb_plan target;

    wb_pen_str(p->pen, "<ul>\n");
    for (uint32_t i = 0; i < WB_PLAN_LATEST_CELLS * WB_LIFE_CELL_EVENTS; i++) {
        uint32_t page = WB_PLAN_NEW + group * WB_PLAN_LATEST_CELLS * WB_LIFE_CELL_EVENTS + i;
        if (wb_plan_make(p->world, p->plan->site, page, &target) && wb_plan_alive(&target, p->now)) {
            wb_pen_str(p->pen, "<li>");
            put_link(p, &target);
            wb_pen_str(p->pen, "</li>\n");
        }
    }
    wb_pen_str(p->pen, "</ul>\n");
    if (group > 0)
        wb_pen_printf(p->pen, "<p><a href=\"/latest/%u\">Older</a></p>\n", group - 1);
}

/* Links to other sites, mostly popular ones; a root also to those pages of the site before that nothing else links. */
static void put_aside(struct painter *p)
{
    struct wb_chance_dice dice = {wb_chance(p->world->seed, p->plan->site, p->plan->page, WB_CHANCE_DERIVED)};
    uint32_t count = wb_chance_dice_below(&dice, CROSS_LINKS_MAX + 1);
    uint32_t before = p->plan->site > 1 ? p->plan->site - 1 : p->world->sites;
    struct wb_plan target;

    wb_pen_str(p->pen, "<aside><h2>Elsewhere</h2>\n<ul>\n");
    for (uint32_t i = 0; i < count && p->plan->site > 0; i++) {
        double u = wb_chance_dice_unit(&dice);
        uint32_t site = 1 + (uint32_t)(p->world->sites * u * u * u);
        uint32_t page = wb_chance_dice_below(&dice, 10) < 7 ? 0 : popular(&p->world->site[site], &dice);
        if (page == 0)
            put_root_link(p, site, wb_chance_dice_below(&dice, 2) == 0);
        else if (wb_plan_make(p->world, site, page, &target)) {
            wb_pen_str(p->pen, "<li>");
            put_link(p, &target);
            wb_pen_str(p->pen, "</li>\n");
        }
    }
    if (p->plan->page == 0 && p->plan->site > 0 && before != p->plan->site)
        for (uint32_t i = p->world->site[before].mapped; i < p->world->site[before].foreign; i++)
            if (wb_plan_make(p->world, before, i, &target)) {
                wb_pen_str(p->pen, "<li>");
                put_link(p, &target);
                wb_pen_str(p->pen, "</li>\n");
            }
    wb_pen_str(p->pen, "</ul></aside>\n");
}

static void put_footer(struct painter *p)
{
    struct wb_chance_dice dice = {wb_chance(p->world->seed, p->plan->site, 1, WB_CHANCE_SITE_FACTS)};

    wb_pen_str(p->pen, "<footer><p>");
    wb_prose_sentence(p->pen, &dice, 0);
    wb_pen_str(p->pen, "</p><p>All rights reserved. Terms of use. Privacy.</p></footer>\n</body>\n</html>\n");
}

/* ---- special kinds ------------------------------------------------------ */

/* Each month links to the next and the previous one, without end. */
static void put_calendar(struct painter *p, struct wb_slice rest)
{
    struct wb_slice prefix = WB_SLICE_LIT("?month=");
    uint64_t year = 2026, month = 1;

    if (wb_slice_starts(rest, prefix) && rest.len == prefix.len + 7) {
        wb_slice_to_u64(wb_slice(rest.ptr + prefix.len, 4), &year);
        wb_slice_to_u64(wb_slice(rest.ptr + prefix.len + 5, 2), &month);
    }
    uint64_t at = (year * 12 + month + 12 * 10000 - 1) % (12 * 10000);
    for (int step = -1; step <= 1; step += 2) {
        uint64_t to = (at + 12 * 10000 + (uint64_t)step) % (12 * 10000);
        wb_pen_str(p->pen, "<p><a href=\"");
        wb_locate_path(p->world, p->plan, p->pen);
        wb_pen_printf(p->pen, "?month=%04u-%02u\">%s month</a></p>\n", (unsigned)(to / 12), (unsigned)(to % 12 + 1),
                      step > 0 ? "Next" : "Last");
    }
}

static void put_sessions(struct painter *p, struct wb_slice rest)
{
    /* The id in a link depends on the id of the page that contains it, so there are infinitely many. */
    uint64_t from = wb_hash64(rest.ptr, rest.len);

    for (unsigned i = 0; i < 3; i++) {
        uint64_t id = wb_chance(p->name, from, i, WB_CHANCE_DERIVED);
        wb_pen_str(p->pen, "<p><a href=\"");
        wb_locate_path(p->world, p->plan, p->pen);
        wb_pen_printf(p->pen, "?sid=%016" PRIx64 "\">Stay signed in</a></p>\n", id);
    }
}

/* Writes what the special kinds of pages have in addition: traps, very many links, very deep nesting. */
static void put_oddity(struct painter *p, struct wb_slice rest)
{
    switch (p->plan->kind) {
    case WB_KIND_CALENDAR:
        put_calendar(p, rest);
        break;
    case WB_KIND_REPEAT:
        wb_pen_str(p->pen, "<p><a href=\"a/\">A</a> <a href=\"b/\">B</a></p>\n");
        break;
    case WB_KIND_SESSION:
        put_sessions(p, rest);
        break;
    case WB_KIND_SOFT404:
        for (unsigned i = 0; i < 5; i++) {
            wb_pen_str(p->pen, "<p><a href=\"");
            wb_locate_path(p->world, p->plan, p->pen);
            wb_pen_printf(p->pen, "/missing-%c\">Lost</a></p>\n", 'a' + (char)i);
        }
        break;
    case WB_KIND_MANY_LINKS:
        for (unsigned i = 0; i < MANY_LINKS; i++)
            wb_pen_printf(p->pen, "<a href=\"/nothing/%u\">n</a>\n", i);
        break;
    case WB_KIND_DEEP:
        for (unsigned i = 0; i < DEEP_ELEMENTS; i++)
            wb_pen_str(p->pen, i & 1 ? "<b>" : "<div>");
        break;
    default:
        break;
    }
}

/* Writes the pages that are lists: of sites, and of pages that were born lately. */
static void put_special(struct painter *p, uint32_t page)
{
    if (page >= WB_PLAN_SITES)
        put_sites(p, page - WB_PLAN_SITES);
    else
        put_group(p, page == WB_PLAN_LATEST ? wb_plan_group(p->site, p->now) : page - WB_PLAN_LATEST - 1);
}

/* Writes the text of pages in other encodings, so that every one of their characters can be encoded. */
static void put_foreign_text(struct painter *p)
{
    struct wb_chance_dice dice = {p->name};

    for (unsigned i = 0; i < 20; i++) {
        wb_pen_str(p->pen, "<p>");
        if (p->plan->kind == WB_KIND_LATIN)
            wb_pen_str(p->pen, "Le café de la forêt — “naïve”, déjà vu. ");
        else
            for (unsigned k = 0; k < 4; k++)
                wb_prose_japanese(p->pen, &dice);
        wb_pen_str(p->pen, "</p>\n");
    }
}

void wb_hypertext_page(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now,
                    const char *charset, struct wb_slice rest, struct wb_pen *pen)
{
    struct painter p = {world, &world->site[plan->site], plan, now, pen, 0};
    enum wb_plan_kind kind = plan->kind;

    p.name = wb_chance(world->seed, plan->site, plan->page, WB_CHANCE_TEXT);
    put_head(&p, charset);
    put_navigation(&p);
    wb_pen_str(pen, "<main>\n<h1>");
    wb_prose_title(pen, p.name);
    wb_pen_str(pen, "</h1>\n");
    if (plan->page >= WB_PLAN_LATEST)
        put_special(&p, plan->page);
    else {
        if (kind == WB_KIND_LATIN || kind == WB_KIND_SJIS || kind == WB_KIND_UTF16)
            put_foreign_text(&p);
        put_text(&p);
        put_children(&p);
        put_oddity(&p, rest);
        if (plan->site == 0 && plan->page == 0)
            put_sites(&p, 0);
    }
    wb_pen_str(pen, "</main>\n");
    put_aside(&p);
    put_footer(&p);
}

void wb_hypertext_message(const char *title, const char *text, struct wb_pen *pen)
{
    wb_pen_printf(pen, "<!DOCTYPE html>\n<html lang=\"en\"><head><title>%s</title></head>\n"
                       "<body><h1>%s</h1><p>%s</p></body></html>\n", title, title, text);
}
