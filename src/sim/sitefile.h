/* sitefile.h - what a site tells crawlers about itself: robots.txt and sitemaps. */
#ifndef WB_SIM_SITEFILE_H
#define WB_SIM_SITEFILE_H

#include "sim/plan.h"

/* Writes robots.txt. The site must have one. */
void wb_sitefile_robots(const struct wb_world *world, uint32_t site, struct wb_pen *pen);

/*
 * If the path is that of one of the site's sitemaps, writes it and returns true. *gzip_out says
 * that it must be sent compressed (its name ends in .gz).
 */
bool wb_sitefile_map(const struct wb_world *world, uint32_t site, struct wb_slice path, struct wb_pen *pen,
                     bool *gzip_out);

#endif
