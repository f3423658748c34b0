/*
 * sitefile.c - writes robots.txt and sitemaps.
 *
 * plan.c decides which pages are closed, and locate.c gives them addresses below /private/ (but
 * not /private/open/), ending in .cgi, or of the form folder/print?. The rules written here say
 * exactly that. A sitemap lists the first pages of a site and those that no link leads to. It
 * never decides whether a page is closed.
 */
#include "sim/sitefile.h"
#include "base/date.h"
#include "sim/locate.h"

#define HUGE_LINES 8000
#define MAP_FIRST_PAGES 50u  /* how many linked pages are listed besides the unlinked ones */
#define MAP_PAGES 1000u      /* in one file of an index */

/* Writes rules with groups for other agents, wildcards, anchors and Allow. */
static void write_groups(struct wb_pen *pen)
{
    wb_pen_str(pen, "User-agent: BadBot\nUser-agent: WorseBot/2.0\nDisallow: /\n\n"
                    "User-agent: *\nDisallow: /private/\nAllow: /private/open/ # but not the rest\n\n"
                    "user-agent: *\nDisallow: /*.cgi$\nDisallow: /*/print?\n");
}

/* The path of the sitemap that robots.txt mentions. */
static const char *map_path(enum wb_world_map map)
{
    switch (map) {
    case WB_MAP_INDEX:
        return "/sitemap_index.xml";
    case WB_MAP_GZ:
        return "/sitemap.xml.gz";
    case WB_MAP_TEXT:
        return "/sitemap.txt";
    default:
        return "/sitemap.xml";
    }
}

void wb_sitefile_robots(const struct wb_world *world, uint32_t site, struct wb_pen *pen)
{
    const struct wb_world_site *s = &world->site[site];

    wb_pen_printf(pen, "# Rules of site %u\n", site);
    for (unsigned i = 0; i < HUGE_LINES && s->rules == WB_RULES_HUGE; i++)
        wb_pen_printf(pen, "# This line, number %6u, says nothing to anybody.\n", i);
    if (s->rules == WB_RULES_GROUPS)
        write_groups(pen);
    else
        wb_pen_str(pen, "User-agent: *\nDisallow: /private/\n");
    if (wb_world_delay(s))
        wb_pen_printf(pen, "Crawl-delay: %u\n", wb_world_delay(s));
    if (s->map != WB_MAP_NONE) {
        wb_pen_str(pen, "\nSitemap: http://");
        wb_world_host(world, site, false, pen);
        wb_pen_str(pen, map_path(s->map));
        wb_pen_char(pen, '\n');
    }
}

/* The i-th page that the sitemap lists: first those of the tree, then the unlinked ones. */
static uint32_t map_page(const struct wb_world_site *s, uint32_t i)
{
    uint32_t first = s->linked < MAP_FIRST_PAGES ? s->linked : MAP_FIRST_PAGES;

    return i < first ? i : s->linked + (i - first);
}

static uint32_t map_count(const struct wb_world_site *s)
{
    return (s->linked < MAP_FIRST_PAGES ? s->linked : MAP_FIRST_PAGES) + (s->mapped - s->linked);
}

static void write_place(const struct wb_world *world, const struct wb_plan *plan, bool xml, struct wb_pen *pen)
{
    char born[WB_DATE_TEXT_MAX];

    if (!xml) {
        wb_locate_url(world, plan, pen);
        wb_pen_char(pen, '\n');
        return;
    }
    wb_date_format(wb_world_stamp(world, plan->born), born);
    wb_pen_str(pen, "<url><loc>");
    wb_locate_url(world, plan, pen);
    wb_pen_printf(pen, "</loc><lastmod>%.10s</lastmod></url>\n", born);
}

static void write_pages(const struct wb_world *world, uint32_t site, uint32_t from, uint32_t to, bool xml,
                        struct wb_pen *pen)
{
    const struct wb_world_site *s = &world->site[site];
    struct wb_plan plan;

    if (xml)
        wb_pen_str(pen, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for (uint32_t i = from; i < to && i < map_count(s); i++)
        if (wb_plan_make(world, site, map_page(s, i), &plan))
            write_place(world, &plan, xml, pen);
    if (xml)
        wb_pen_str(pen, "</urlset>\n");
}

/* Writes the index: its first file is plain, the others are compressed. */
static void write_index(const struct wb_world *world, uint32_t site, struct wb_pen *pen)
{
    uint32_t files = map_count(&world->site[site]) / MAP_PAGES + 1;

    wb_pen_str(pen, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for (uint32_t i = 1; i <= files; i++) {
        wb_pen_str(pen, "<sitemap><loc>http://");
        wb_world_host(world, site, false, pen);
        wb_pen_printf(pen, "/sitemap-part%u.xml%s</loc></sitemap>\n", i, i > 1 ? ".gz" : "");
    }
    wb_pen_str(pen, "</sitemapindex>\n");
}

bool wb_sitefile_map(const struct wb_world *world, uint32_t site, struct wb_slice path, struct wb_pen *pen,
                     bool *gzip_out)
{
    const struct wb_world_site *s = &world->site[site];
    struct wb_slice part = WB_SLICE_LIT("/sitemap-part");

    *gzip_out = false;
    if (s->map == WB_MAP_NONE)
        return false;
    if (wb_slice_equal(path, wb_slice_str(map_path(s->map)))) {
        *gzip_out = s->map == WB_MAP_GZ;
        if (s->map == WB_MAP_INDEX)
            write_index(world, site, pen);
        else
            write_pages(world, site, 0, UINT32_MAX, s->map != WB_MAP_TEXT, pen);
        return true;
    }
    if (s->map != WB_MAP_INDEX || !wb_slice_starts(path, part))
        return false;
    size_t end = part.len;
    uint64_t number = 0;
    while (end < path.len && path.ptr[end] >= '0' && path.ptr[end] <= '9')
        end++;
    if (!wb_slice_to_u64(wb_slice(path.ptr + part.len, end - part.len), &number) || number < 1 ||
        number > map_count(s) / MAP_PAGES + 1)
        return false;
    *gzip_out = number > 1;
    if (!wb_slice_equal(wb_slice(path.ptr + end, path.len - end), wb_slice_str(*gzip_out ? ".xml.gz" : ".xml")))
        return false;
    uint32_t from = (uint32_t)(number - 1) * MAP_PAGES;
    write_pages(world, site, from, from + MAP_PAGES, true, pen);
    return true;
}
