/*
 * truth.h - what the synthetic web is really like, as JSON. Tests compare a crawl with it.
 *
 *   {"web":{...},"sites":[{...}],"pages":[{...}],"requests":[{...}],"dropped":N}
 *
 * Everything is as of the moment of the request, and is sent piece by piece.
 */
#ifndef WB_SIM_TRUTH_H
#define WB_SIM_TRUTH_H

#include "sim/respond.h"

/* Makes a reply that streams the truth. The query may have since, site, sites, pages and requests. */
int wb_truth_reply(struct wb_respond *respond, const struct wb_asked *asked, struct wb_slice query,
                   const struct wb_world_moment *now, struct wb_reply *reply);

#endif
