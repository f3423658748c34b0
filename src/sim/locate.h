/* locate.h - from pages to their addresses, and back. */
#ifndef WB_SIM_LOCATE_H
#define WB_SIM_LOCATE_H

#include "sim/plan.h"

/* Path and query. */
void wb_locate_path(const struct wb_world *world, const struct wb_plan *plan, struct wb_pen *pen);

/* The whole URL. */
void wb_locate_url(const struct wb_world *world, const struct wb_plan *plan, struct wb_pen *pen);

enum wb_located {
    WB_LOCATED_NOTHING,
    WB_LOCATED_PAGE,
    WB_LOCATED_BELOW, /* what follows a page's address: a query or more path, in rest */
    WB_LOCATED_SLASH, /* the address of a folder without its slash */
};

/* What a target (path and query) names; target: as sent by the client. scratch: for comparing. */
enum wb_located wb_locate_find(const struct wb_world *world, uint32_t site, struct wb_slice target, struct wb_buf *scratch,
                               struct wb_plan *plan_out, struct wb_slice *rest_out);

/* Which host a Host header names: a site by its name or alias, 0 for all others. raw_out: the number of r3.localhost, else 0. */
uint32_t wb_locate_host(const struct wb_world *world, struct wb_slice host, bool *alias_out, uint32_t *raw_out);

#endif
