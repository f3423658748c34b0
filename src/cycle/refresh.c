/*
 * refresh.c - the value of a visit to a page, when the page is due, and the threshold that separates the two.
 *
 * The value of a page is a curve over the time since its last visit: it starts at 0 and grows. The due time is the
 * inverse of that curve. So that the two cannot disagree, struct curve holds everything that a page's state does to it:
 *
 *   never fetched      the end of the curve, as if the page had not been visited for a very long time
 *   failed attempts    the curve restarts at the last attempt, and each failure halves it: the page is tried again
 * after 2, 4, 8 times as long gone (404, 410)    no value for 30 days, then one more try; a page found gone twice, 30
 * days apart, is never tried again near duplicate     an eighth of the value, and none within a week: we already have
 * the text from another page announced          the end of the curve, at once hints              the page counts as
 * older: see HINT_AGE bounds             no value before the shortest interval, at least the threshold after the
 * longest
 *
 * It knows neither the clock nor other pages. The caller, which compares the values, decides which page is fetched.
 */
#include "cycle/refresh.h"
#include "base/check.h"
#include "base/date.h"

#include <math.h>

#define FOREVER_DAYS 36500.0   /* the age of a page that was never fetched */
#define GONE_DAYS 30.0
#define NEAR_DAYS 7.0
#define NEAR_HALVINGS 3        /* a near duplicate has an eighth of the value */
#define AVERAGE_RATE (1.0 / 30)

/*
 * We assume that four of five sitemap dates or feed entries that announce a change are right, and that the absence of
 * such hints says nothing, because a site's sitemaps may not cover the page (recall 0 in the model of Busa-Fekete et
 * al.). With n hints, the page is unchanged with probability exp(-rate tau) (1 - 0.8)^n, as if it were n ln 5 / rate
 * days older.
 */
#define HINT_AGE 1.6094379124341003

/* Nutch's adaptive schedule, with its default settings. */
#define ADAPTIVE_DAYS 30.0
#define ADAPTIVE_SHRINK 0.2
#define ADAPTIVE_GROW 0.4
#define ADAPTIVE_MIN_DAYS (1.0 / 1440)
#define ADAPTIVE_MAX_DAYS 365.0

#define STEP 0.05              /* change of ln(theta) for each further budget of pages that are due */
#define STEP_MAX 0.35
#define THETA_MIN 1e-30
#define THETA_MAX 1e30

static const char *const words[] = {"optimal", "uniform", "proportional", "adaptive", "age"};

_Static_assert(sizeof words / sizeof *words == WB_REFRESH_AGE + 1, "each policy has a word");

bool wb_refresh_policy_parse(struct wb_slice word, enum wb_refresh_policy *policy_out)
{
    *policy_out = WB_REFRESH_OPTIMAL;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (wb_slice_equal(word, wb_slice_str(words[i]))) {
            *policy_out = (enum wb_refresh_policy)i;
            return true;
        }
    return false;
}

const char *wb_refresh_policy_word(enum wb_refresh_policy policy)
{
    WB_CHECK((size_t)policy < sizeof words / sizeof *words);
    return words[policy];
}

/* ---- the shape of V ---------------------------------------------------------------------------- */

/* 1 - exp(-x) (1 + x), which grows from 0 to 1. */
static double gain(double x)
{
    WB_CHECK(x >= 0);
    if (x > 700)
        return 1;
    if (x > 0.3)
        return 1 - exp(-x) * (1 + x);
    /* For small x the difference above loses all digits, so use the series: the sum of (-1)^k (k-1)/k! x^k from k = 2.
     */
    double rest = 1 / 144.0 - x * (1 / 840.0 - x * (1 / 5760.0 - x / 45360));
    return x * x * (1 / 2.0 - x * (1 / 3.0 - x * (1 / 8.0 - x * (1 / 30.0 - x * rest))));
}

/* The inverse for 0 <= y < 1, by Newton's method, from a first guess that is right to a few per cent. */
static double gain_inverse(double y)
{
    WB_CHECK(y >= 0 && y < 1);
    double s = sqrt(2 * y), x = s + s * s / 3 + s * s * s * 11 / 72;

    if (y > 0.7) {
        double tail = -log1p(-y);
        x = tail + log1p(tail + log1p(tail));
    }
    for (int step = 0; step < 20 && x > 0; step++) {
        double move = (y - gain(x)) * exp(x) / x;
        move = fmax(fmin(move, 1), -x / 2);
        x += move;
        if (fabs(move) <= 1e-13 * x)
            break;
    }
    return x;
}

/*
 * x^2/2 - gain(x): how much age a visit removes. It grows from 0 without end, as x^3/3 at first, then as x^2/2. The
 * value of a page that changes all the time is that of its age, so it is never given up.
 */
static double relief(double x)
{
    WB_CHECK(x >= 0);
    if (x > 0.3)
        return x * x / 2 - gain(x);
    double rest = 1 / 840.0 - x * (1 / 5760.0 - x / 45360);
    return x * x * x * (1 / 3.0 - x * (1 / 8.0 - x * (1 / 30.0 - x * (1 / 144.0 - x * rest))));
}

/* The inverse, by bisection between bounds that are within a small factor of it. */
static double relief_inverse(double y)
{
    WB_CHECK(y >= 0);
    double low = fmax(cbrt(3 * y), sqrt(2 * y)), high = sqrt(2 * (y + 1));

    if (y < 0.2)
        high = fmin(high, cbrt(4.81 * y)); /* below 1, relief(x) is at least (1/3 - 1/8) x^3 */
    for (int step = 0; step < 60 && high > low; step++) {
        double middle = low + (high - low) / 2;
        if (relief(middle) < y)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- a page's curve ------------------------------------------------------------------------------ */

struct curve {
    bool never;           /* no visit is ever worth anything */
    bool unvisited;       /* it was never visited */
    bool at_end;          /* the end of the curve, whatever the time */
    int64_t origin_ms;    /* the time at which its age is 0 */
    double scale;         /* value = scale * shape(age + ahead) */
    double rate;          /* the shape is gain(rate * age); 0: the shape is the age itself */
    bool relieves;        /* the shape is relief(rate * age) instead */
    double ahead_days;
    double shut_days;     /* no value before this age */
    double latest_days;   /* at least theta from this age on; INFINITY: no bound */
};

static double adaptive_interval(const struct wb_refresh *refresh, const struct wb_visitlog *history)
{
    double changed = fmin(history->changes, history->visits), unchanged = history->visits - changed;
    double days = ADAPTIVE_DAYS * exp(changed * log1p(-ADAPTIVE_SHRINK) + unchanged * log1p(ADAPTIVE_GROW));
    double least = refresh->min_days > 0 ? refresh->min_days : ADAPTIVE_MIN_DAYS;
    double most = refresh->max_days > 0 ? refresh->max_days : ADAPTIVE_MAX_DAYS;

    return fmax(fmin(days, most), least);
}

/* True if the page was tried once more long after it had gone. */
static bool gone_for_good(const struct wb_webdb_page *page)
{
    const struct wb_visitlog *h = &page->history;
    int64_t since_ms = page->last_tried_ms;

    for (unsigned i = h->fetch_count <= WB_VISITLOG_FETCHES ? h->fetch_count : 0; i > 0; i--) {
        uint8_t outcome = h->fetches[i - 1].outcome;
        if (outcome == WB_OUTCOME_GONE)
            since_ms = h->fetches[i - 1].time_ms;
        else if (outcome != WB_OUTCOME_ERROR && outcome != WB_OUTCOME_LATER && outcome != WB_OUTCOME_ROBOTS)
            break; /* the page existed at this fetch */
    }
    return (double)page->last_tried_ms - (double)since_ms >= GONE_DAYS * WB_DAY_MS;
}

static double curve_scale(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate)
{
    WB_CHECK(rate > 0);
    switch (refresh->policy) {
    case WB_REFRESH_UNIFORM:
        return 1;
    case WB_REFRESH_PROPORTIONAL:
        return rate;
    case WB_REFRESH_ADAPTIVE:
        return 1 / adaptive_interval(refresh, &page->history);
    case WB_REFRESH_OPTIMAL:
    case WB_REFRESH_AGE:
        break;
    }
    double unit = refresh->policy == WB_REFRESH_AGE ? rate * rate : rate;
    return page->score > 0 && page->score < 1e100 ? page->score / unit : 0;
}

static struct curve page_curve(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate)
{
    bool failing = page->failures > 0, announced = (page->flags & (WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE)) != 0;
    bool gone = (page->flags & WB_PAGE_GONE) != 0 && !announced, near = page->near && !announced;
    struct curve c = {
        .origin_ms = page->last_seen_ms, .shut_days = fmax(refresh->min_days, 0), .latest_days = INFINITY};

    c.scale = ldexp(curve_scale(refresh, page, rate),
                    -(page->failures < 64 ? page->failures : 64) - (near ? NEAR_HALVINGS : 0));
    if (near)
        c.shut_days = fmax(c.shut_days, refresh->max_days > 0 ? fmin(NEAR_DAYS, refresh->max_days) : NEAR_DAYS);
    c.relieves = refresh->policy == WB_REFRESH_AGE;
    c.rate = refresh->policy == WB_REFRESH_OPTIMAL || c.relieves ? rate : 0;
    c.never = (page->flags & WB_PAGE_BARRED) != 0;
    if (failing || gone)
        c.origin_ms = page->last_tried_ms;
    c.unvisited = page->last_seen_ms == 0 && !failing && !gone;
    c.at_end = c.unvisited || (announced && !failing);
    if (gone) {
        c.never = c.never || gone_for_good(page);
        c.shut_days = fmax(c.shut_days, GONE_DAYS);
    } else if (!failing) {
        c.ahead_days = page->signals * HINT_AGE / rate;
    }
    if (refresh->max_days > 0 && !gone && page->last_seen_ms != 0)
        c.latest_days = ldexp(refresh->max_days, page->failures < 64 ? page->failures : 64);
    if (c.latest_days < c.shut_days)
        c.latest_days = c.shut_days;
    return c;
}

static double curve_value(const struct curve *c, double theta, double age_days)
{
    WB_CHECK(age_days >= 0);
    if (c->never || age_days < c->shut_days)
        return 0;
    double z = c->at_end ? FOREVER_DAYS : age_days + c->ahead_days;
    double shape = c->relieves ? relief(c->rate * z) : !(c->rate > 0) ? z : c->at_end ? 1 : gain(c->rate * z);
    double value = c->scale * shape;
    /* After the longest interval, a page becomes more urgent the longer it waits. */
    return age_days >= c->latest_days ? fmax(value, theta * (age_days / c->latest_days)) : value;
}

/* The age at which the curve reaches theta; INFINITY: never. */
static double curve_age(const struct curve *c, double theta)
{
    WB_CHECK(c->shut_days >= 0 && c->shut_days <= c->latest_days);
    double need = !(theta > 0) ? 0 : c->scale > 0 ? theta / c->scale : INFINITY, z = need;

    if (c->never)
        return INFINITY;
    if (c->relieves) {
        z = need < INFINITY ? relief_inverse(need) / c->rate : INFINITY;
        if (c->at_end)
            z = z <= FOREVER_DAYS ? 0 : INFINITY;
    } else if (c->at_end)
        z = need <= (c->rate > 0 ? 1 : FOREVER_DAYS) ? 0 : INFINITY;
    else if (c->rate > 0) /* so close to its end, the curve rises by less than a double can represent */
        z = need < 1 - 1e-12 ? gain_inverse(need) / c->rate : INFINITY;
    return fmin(fmax(z - c->ahead_days, c->shut_days), c->latest_days);
}

static double sane_rate(double rate)
{
    return rate > 1e-9 ? fmin(rate, 1e9) : 1e-9;
}

double wb_refresh_value(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate, int64_t now_ms)
{
    struct curve c = page_curve(refresh, page, sane_rate(rate));
    double age_days = c.unvisited ? FOREVER_DAYS : ((double)now_ms - (double)c.origin_ms) / WB_DAY_MS;

    double value = curve_value(&c, refresh->theta, fmax(age_days, 0));

    WB_CHECK(value >= 0); /* and a number, or there would be no order */
    return value;
}

int64_t wb_refresh_due(const struct wb_refresh *refresh, const struct wb_webdb_page *page, double rate)
{
    struct curve c = page_curve(refresh, page, sane_rate(rate));
    double age_days = curve_age(&c, refresh->theta);

    if (c.unvisited)
        return age_days < INFINITY ? 0 : INT64_MAX;
    if (!(age_days < 10 * FOREVER_DAYS) || c.origin_ms > INT64_MAX / 2)
        return INT64_MAX;
    int64_t due_ms = c.origin_ms + (int64_t)ceil(age_days * WB_DAY_MS);
    /* Correct for rounding. */
    for (int64_t more = 1; more < 1 << 30; more *= 2) {
        if (curve_value(&c, refresh->theta, (double)(due_ms - c.origin_ms) / WB_DAY_MS) >= refresh->theta)
            break;
        due_ms += more;
    }
    WB_CHECK(due_ms >= c.origin_ms);
    return due_ms;
}

double wb_refresh_interval(enum wb_refresh_policy policy, double theta, double rate)
{
    struct wb_refresh refresh = {.policy = policy, .theta = theta};
    struct wb_webdb_page page = {.score = 1, .last_seen_ms = 1, .last_tried_ms = 1};

    WB_CHECK(policy == WB_REFRESH_OPTIMAL || policy == WB_REFRESH_UNIFORM || policy == WB_REFRESH_AGE);
    struct curve c = page_curve(&refresh, &page, sane_rate(rate));
    return curve_age(&c, theta);
}

/* ---- the threshold -------------------------------------------------------------------------------- */

static double sane_theta(double theta)
{
    return theta > THETA_MIN ? fmin(theta, THETA_MAX) : THETA_MIN;
}

/*
 * Suppose each page is due every n cycles. A threshold that is too low by a small fraction p makes about p n budgets of
 * pages due too early. So the number of due pages shows how far off the threshold is, and a step of 1 / n for each
 * budget corrects it exactly. We use the step for n = 20: for smaller n the threshold converges more slowly, for larger
 * n it oscillates by less than STEP_MAX. If the threshold is too high by more than 1 / n, nothing is due and nothing
 * can be measured, so we leave that state in the largest steps.
 */
double wb_refresh_move_theta(double theta, double due, double budget)
{
    double step = 0;

    if (budget > 0 && due > budget) {
        step = fmin(STEP * (due / budget - 1), STEP_MAX);
    } else if (budget > 0) {
        double missing = 1 - fmax(due, 0) / budget;
        step = -STEP * missing - (STEP_MAX - STEP) * pow(missing, 8);
    }
    return sane_theta(sane_theta(theta) * exp(step));
}

double wb_refresh_first_theta(enum wb_refresh_policy policy, double days)
{
    double age = days > 0 ? fmin(days, FOREVER_DAYS) : 1.0 / WB_DAY_MS;

    switch (policy) {
    case WB_REFRESH_UNIFORM:
        return age;
    case WB_REFRESH_PROPORTIONAL:
        return age * AVERAGE_RATE;
    case WB_REFRESH_ADAPTIVE:
        return age / ADAPTIVE_DAYS;
    case WB_REFRESH_AGE:
        return relief(AVERAGE_RATE * age) / (AVERAGE_RATE * AVERAGE_RATE);
    case WB_REFRESH_OPTIMAL:
        break;
    }
    return gain(AVERAGE_RATE * age) / AVERAGE_RATE;
}
