/* locate.h - maps pages to their addresses, and addresses back to pages. */
#ifndef WB_SIM_LOCATE_H
#define WB_SIM_LOCATE_H

#include "sim/plan.h"

/* Writes the path and query of a page. */
void wb_locate_path(const struct wb_world *world, const struct wb_plan *plan, struct wb_pen *pen);

/* Writes the complete URL of a page. */
void wb_locate_url(const struct wb_world *world, const struct wb_plan *plan, struct wb_pen *pen);

enum wb_locate_result {
    WB_LOCATE_NOTHING,
    WB_LOCATE_PAGE,
    WB_LOCATE_BELOW, /* a page's address followed by a query or more path, which is in *rest_out */
    WB_LOCATE_SLASH, /* the address of a folder, but without its final slash */
};

/* Finds what a target (path and query, as sent by the client) refers to. scratch is used for comparing. */
enum wb_locate_result wb_locate_find(const struct wb_world *world, uint32_t site, struct wb_slice target,
                                     struct wb_buf *scratch, struct wb_plan *plan_out, struct wb_slice *rest_out);

/*
 * Returns the site that a Host header names, by its name or its alias, or 0 (the front) for any
 * other host. *raw_out is N for a host of raw responses, rN.localhost, and otherwise 0.
 */
uint32_t wb_locate_host(const struct wb_world *world, struct wb_slice host, bool *alias_out, uint32_t *raw_out);

#endif
