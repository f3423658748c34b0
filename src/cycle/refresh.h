/*
 * refresh.h - the part of cycle's door that says when a page is worth another look.
 *
 *   histories -> rate of change (with the site's as a prior) -> value of a visit now -> due when it passes a threshold
 *
 * The value of a visit tau days after the last one, of a page of weight w that changes lambda times a day, is
 * V = (w / lambda) (1 - exp(-lambda tau) (1 + lambda tau)): visiting whatever has the highest value maximises weighted
 * freshness for any budget. Time is wall clock in ms, rates and gaps are in days. Pure functions: no files, no clock.
 */
#ifndef WB_CYCLE_REFRESH_H
#define WB_CYCLE_REFRESH_H

#include "webdb/webdb.h"

enum wb_policy {
    WB_POLICY_OPTIMAL,      /* V against a threshold */
    WB_POLICY_UNIFORM,      /* every page equally often */
    WB_POLICY_PROPORTIONAL, /* as often as it changes */
    WB_POLICY_ADAPTIVE,     /* an interval a page: shorter after a change, longer after none */
};

/* "optimal", ...; false: none of them. */
bool wb_policy_parse(struct wb_slice word, enum wb_policy *policy_out);
const char *wb_policy_word(enum wb_policy policy);

struct wb_refresh {
    enum wb_policy policy;
    double theta;              /* the threshold that a page's value must reach, in the policy's own units */
    double min_days, max_days; /* no page sooner, and every page after, this; 0: no bound */
};

/*
 * Changes a day. The improved Last-Modified estimator where the server's times can be trusted, otherwise maximum
 * likelihood over the gaps; with the site's pages (NULL: nothing known) as a prior that weighs little once a page has a history of its own.
 * Always finite and positive.
 */
double wb_change_rate(const struct wb_history *history, const struct wb_webdb_site *site);

/*
 * What a visit at now_ms is worth, comparable between pages under one policy. Signals (sitemaps, feeds) since the last
 * visit make the page older than it is. A page that was never fetched is worth what one would be that has been left alone for ever.
 */
double wb_refresh_value(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate, int64_t now_ms);

/* When its value reaches theta, within the bounds; INT64_MAX: never. */
int64_t wb_refresh_due(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate);

/* The threshold for the next round: due pages had reached it in this one, budget of them could be visited. Settles where both are equal. */
double wb_threshold_move(double theta, double due, double budget);

/* A threshold to begin with, where nothing is known: pages of an average rate are due after so many days. */
double wb_threshold_begin(enum wb_policy policy, double days);

#endif
