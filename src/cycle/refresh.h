/*
 * refresh.h - the part of cycle's door that says when a page is worth another visit.
 *
 *   history of visits -> rate of change (its site's pages are the prior) -> value of a visit now
 *                                                                        -> due when the value reaches a threshold
 *
 * Suppose a page of weight w changes lambda times a day, and was last visited tau days ago. A visit is then worth
 *
 *   V = (w / lambda) (1 - exp(-lambda tau) (1 + lambda tau))
 *
 * for the policy optimal, and for the policy age
 *
 *   V = w (tau^2 / 2 - (1 - exp(-lambda tau) (1 + lambda tau)) / lambda^2)
 *
 * Visiting the pages of the highest value maximises the weighted freshness of the collection, or minimises its
 * age, for any budget
 * (docs/design/0011-freshness.md). Times are wall-clock milliseconds; rates and intervals are in days. All functions
 * here are pure: they read no file and no clock.
 */
#ifndef WB_CYCLE_REFRESH_H
#define WB_CYCLE_REFRESH_H

#include "webdb/webdb.h"

enum wb_refresh_policy {
    WB_REFRESH_OPTIMAL,      /* visit when V reaches the threshold */
    WB_REFRESH_UNIFORM,      /* visit all pages equally often */
    WB_REFRESH_PROPORTIONAL, /* visit a page as often as it changes */
    WB_REFRESH_ADAPTIVE,     /* each page has an interval, which shrinks after a change and grows otherwise */
    WB_REFRESH_AGE,          /* visit so that the mean age is least: no page is given up */
};

/* Reads "optimal" and so on; false if the word names no policy. */
bool wb_refresh_policy_parse(struct wb_slice word, enum wb_refresh_policy *policy_out);
const char *wb_refresh_policy_word(enum wb_refresh_policy policy);

struct wb_refresh {
    enum wb_refresh_policy policy;
    double theta;              /* the threshold that a page's value must reach, in the policy's own units */
    double min_days, max_days; /* shortest and longest interval between two visits to a page; 0: no bound */
};

/*
 * Estimates how often a page changes per day. Uses the improved Last-Modified estimator if the server's times can be
 * trusted, otherwise the maximum likelihood over the intervals between visits. The site (NULL: nothing is known about
 * it) is the prior, which matters less the more the page's own history says. The result is finite and positive.
 */
double wb_changerate(const struct wb_visitlog *history, const struct wb_webdb_site *site);

/*
 * The value of a visit at now_ms, comparable between pages under one policy. Hints from sitemaps and feeds since the
 * last visit make the page count as older than it is. A page that was never fetched counts as one that has not been
 * visited for a very long time.
 */
double wb_refresh_value(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate,
                        int64_t now_ms);

/* When the page's value reaches theta, within the bounds; INT64_MAX: never. */
int64_t wb_refresh_due(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate);

/*
 * The threshold for the next cycle, if `due` pages reached it in this one and `budget` of them could be visited.
 * Repeated, it settles where the two are equal.
 */
double wb_refresh_move_theta(double theta, double due, double budget);

/*
 * The days between two visits to a page of weight 1 at this threshold; INFINITY: it is never visited again. The policy
 * must be optimal, uniform or age.
 */
double wb_refresh_interval(enum wb_refresh_policy policy, double theta, double rate);

/* A first threshold, before anything is known: a page with an average rate is due after this many days. */
double wb_refresh_first_theta(enum wb_refresh_policy policy, double days);

#endif
