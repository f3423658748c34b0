/* sitefile.h - what a site says of itself to crawlers: robots.txt and sitemaps. */
#ifndef WB_SIM_SITEFILE_H
#define WB_SIM_SITEFILE_H

#include "sim/plan.h"

/* The text of robots.txt; not for sites that have none. */
void wb_sitefile_robots(const struct wb_world *world, uint32_t site, struct wb_pen *pen);

/* The address of the sitemap that robots.txt names. */
const char *wb_sitefile_map_path(enum wb_mapkind map);

/*
 * Whether a path is that of one of the site's sitemaps, and then its text. gzip_out: it
 * is to be compressed (its name ends in .gz).
 */
bool wb_sitefile_map(const struct wb_world *world, uint32_t site, struct wb_slice path, struct wb_pen *pen, bool *gzip_out);

#endif
