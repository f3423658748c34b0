/*
 * changerate.c - estimates how often a page changes, from what visits saw.
 *
 * We model the changes of a page as a Poisson process with rate L. A visit shows only whether the page changed since
 * the visit before (the "gap"), not how often. The likelihood of a history is highest where
 *
 *   sum over changed gaps of t / (exp(L t) - 1)  =  sum of unchanged gaps
 *
 * Three terms are added to this equation, multiplied by L so that their unit is events:
 *
 *   half an unchanged visit   as in Cho and Garcia-Molina's improved estimator, which removes the bias
 *   the prior                 a - (a + b) L / (m + L): pulls pages that seem to change less than their site up by at
 *                             most a events, and the others down by at most b, however far apart page and site are
 *   Last-Modified             if the server says when changes happened, they are exact: events - L days
 *
 * All terms decrease with L, so there is exactly one root. This file never looks at a page's weight or at the time.
 */
#include "base/check.h"
#include "cycle/refresh.h"

#include <math.h>

#define DEFAULT_RATE (1.0 / 30)  /* changes per day of a page about which nothing is known */
#define RATE_MIN 1e-6            /* a change in 2700 years... */
#define RATE_MAX 1e4             /* ...and one every nine seconds: visits cannot distinguish rates beyond these */
#define PRIOR_UP 0.15 /* how far the prior pulls a page that seems to change less than its site, in events... */
#define PRIOR_DOWN 0.3           /* ...and one that seems to change more */
#define MODIFIED_VISITS_MIN 3    /* with fewer, the gaps say more */
#define STEPS_MAX 60
#define PRECISION 1e-4           /* relative error of the root; a rate is never known better than to a few per cent */

/* The gaps, prepared for the equation. */
struct gaps {
    double changes;        /* number of changed gaps */
    double changed_days;   /* sum of these gaps */
    double unchanged_days; /* sum of the other gaps, plus half a visit */
    unsigned first, last;  /* bins with changes */
    double days[2];        /* lengths of the first bin and the next; every second bin is twice as long */
};

static double bounded(double rate)
{
    return rate > RATE_MIN ? fmin(rate, RATE_MAX) : RATE_MIN;
}

static double sane_days(double days)
{
    return days > 0 && days < 1e9 ? days : 0;
}

/* The rate of a site: all visits count as visits to one page with equal gaps, pulled to the default by one more change.
 */
static double site_rate(const struct wb_webdb_site *site)
{
    double visits = (double)site->visits, days = sane_days(site->days);
    double changes = fmin((double)site->changes, visits);

    if (!(days > 0) || !(visits > 0))
        return DEFAULT_RATE;
    double events = visits * -log((visits - changes + 0.5) / (visits + 0.5));
    return bounded((1 + events) / (1 / DEFAULT_RATE + days));
}

/* The prior's m, chosen so that the two pulls cancel out at the site's rate. */
static double prior_middle(const struct wb_webdb_site *site)
{
    return (site ? site_rate(site) : DEFAULT_RATE) * PRIOR_DOWN / PRIOR_UP;
}

/* If all changes in these days are known: events - L days + prior = 0, a quadratic equation. */
static double rate_of_events(double events, double days, double middle)
{
    WB_CHECK(days >= 0 && middle > 0);
    double half = (days * middle + PRIOR_DOWN - events) / 2, last = (events + PRIOR_UP) * middle;
    double root = sqrt(half * half + days * last);

    /* Two forms of the same root; each avoids subtracting nearly equal numbers. */
    if (half > 0)
        return last / (half + root);
    return days > 0 ? (root - half) / days : RATE_MAX;
}

/*
 * Cho and Garcia-Molina: (X - 1) - X / (N ln(1 - X / N)) changes in T days is an estimate without bias. If
 * Last-Modified changes more often than the content (some servers send the current time), the page would look hopeless:
 * then we ignore these times.
 */
static bool rate_of_modified(const struct wb_visitlog *h, double middle, double *rate_out)
{
    double visits = h->modified_visits, changes = h->modified_changes, days = sane_days(h->modified_days);

    if (h->modified_lies || h->modified_visits < MODIFIED_VISITS_MIN || visits * 2 < h->visits || !(days > 0))
        return false;
    if (changes > fmin(visits, h->changes))
        return false;
    double events = 0;
    if (changes >= visits)
        events = changes - 1;
    else if (changes > 0)
        events = changes - 1 - changes / (visits * log1p(-changes / visits));
    *rate_out = rate_of_events(fmax(events, 0), days, middle);
    return true;
}

static bool gather_gaps(const struct wb_visitlog *h, struct gaps *gaps_out)
{
    struct gaps g = {.unchanged_days = sane_days(h->unchanged_days)};
    double days[2] = {0, 0};

    for (unsigned i = 0; i < WB_VISITLOG_BINS; i++) {
        if (h->changed[i] == 0 && g.changes == 0)
            continue;
        if (g.changes == 0) {
            g.first = i;
            g.days[0] = wb_visitlog_bin_days(i);
            g.days[1] = wb_visitlog_bin_days(i + 1);
        }
        double *length = &days[(i - g.first) & 1];
        *length = i < g.first + 2 ? g.days[i - g.first] : 2 * *length;
        if (h->changed[i] == 0)
            continue;
        g.last = i;
        g.changes += h->changed[i];
        g.changed_days += h->changed[i] * *length;
    }
    if (g.changes > 0) {
        double gap = g.changed_days / g.changes;
        /* If the gaps differ in length, those without a change are the shorter ones. */
        if (h->visits > g.changes && g.unchanged_days > 0)
            gap = fmin(gap, g.unchanged_days / (h->visits - g.changes));
        g.unchanged_days += gap / 2;
    }
    *gaps_out = g;
    return g.changes > 0;
}

/*
 * The sum over changed gaps of x / (exp(x) - 1), where x = L t, and its slope along ln L. From each bin to the next but
 * one, x doubles, and expm1(2x) = e (e + 2) where e = expm1(x). So two exponentials are enough for all bins.
 */
static double changed_events(const struct wb_visitlog *h, const struct gaps *g, double rate, double *slope_out)
{
    double x[2] = {0, 0}, e[2] = {0, 0}, sum = 0, slope = 0;

    WB_CHECK(g->last < WB_VISITLOG_BINS);
    for (unsigned i = g->first; i <= g->last; i++) {
        unsigned odd = (i - g->first) & 1;
        if (i < g->first + 2) {
            x[odd] = rate * g->days[odd];
            e[odd] = expm1(x[odd]);
        } else {
            x[odd] *= 2;
            e[odd] *= e[odd] + 2;
        }
        if (h->changed[i] == 0 || !(e[odd] < 1e30))
            continue;
        double share = x[odd] / e[odd];
        sum += h->changed[i] * share;
        slope += h->changed[i] * share * (1 - x[odd] - share);
    }
    *slope_out = slope;
    return sum;
}

/* Newton's method along ln L. A step that leaves the interval of the root is replaced by its geometric middle. */
static double rate_of_gaps(const struct wb_visitlog *h, const struct gaps *g, double middle)
{
    double u = g->unchanged_days;
    WB_CHECK(g->changes > 0 && u > 0);
    /* From 1 - x/2 <= x / (exp(x) - 1) <= 1. */
    double low = (g->changes + PRIOR_UP) / (u + g->changed_days / 2 + (PRIOR_UP + PRIOR_DOWN) / middle);
    double high = (g->changes + PRIOR_UP) / u;
    double gap = g->changed_days / g->changes, rate = log1p(gap * g->changes / u) / gap;

    for (int step = 0; step < STEPS_MAX; step++) {
        if (!(rate > low && rate < high))
            rate = sqrt(low * high);
        double slope, pull = rate / (middle + rate);
        double excess = changed_events(h, g, rate, &slope) + PRIOR_UP - (PRIOR_UP + PRIOR_DOWN) * pull - rate * u;
        slope -= (PRIOR_UP + PRIOR_DOWN) * pull * (1 - pull) + rate * u;
        if (excess > 0)
            low = rate;
        else
            high = rate;
        double move = -excess / slope;
        rate *= fabs(move) < 1 ? 1 + move + move * move / 2 : exp(fmax(fmin(move, 20), -20));
        if (fabs(move) < PRECISION || high - low < PRECISION * low)
            break;
    }
    return rate;
}

double wb_changerate(const struct wb_visitlog *history, const struct wb_webdb_site *site)
{
    double middle = prior_middle(site);
    struct gaps gaps;
    double rate;

    if (rate_of_modified(history, middle, &rate))
        return bounded(rate);
    if (gather_gaps(history, &gaps))
        return bounded(rate_of_gaps(history, &gaps, middle));
    return bounded(rate_of_events(0, sane_days(history->unchanged_days), middle));
}
