/*
 * truth.h - what the web is really like, as JSON, a piece at a time:
 *
 *   {"web":{...},"sites":[{...}],"pages":[{...}],"requests":[{...}],"dropped":N}
 *
 * of one moment: that of the question.
 */
#ifndef WB_SIM_TRUTH_H
#define WB_SIM_TRUTH_H

#include "sim/respond.h"

/* Fills a reply that streams the truth. query: what follows '?': since, site, sites, pages, requests. */
int wb_truth_reply(struct wb_respond *respond, const struct wb_asked *asked, struct wb_slice query, const struct wb_moment *now,
                   struct wb_reply *reply);

#endif
