/*
 * currency.c - how fresh, how old and how current the copies are, and what a currency costs.
 *
 * A page that changes lambda times a day and was last seen tau days ago
 *
 *   is still the same         with probability exp(-lambda tau)
 *   has been another for      tau - (1 - exp(-lambda tau)) / lambda days, on average (Cho and Garcia-Molina's age)
 *   was right beta days ago   with probability exp(-lambda (tau - beta)), or surely, if tau is less than beta
 *
 * If it is visited every T days, a copy was right beta days ago for the share
 *
 *   C(T) = (beta + (1 - exp(-lambda (T - beta))) / lambda) / T        1 for T up to beta
 *
 * of the time. C is concave in the frequency 1/T, so the fewest fetches are those at which another fetch gains the same
 * everywhere: beta + (1 - e) / lambda - e T, where e = exp(-lambda (T - beta)). One number, that gain, gives all
 * intervals; it is found by bisection, as the threshold of any other policy is. Nothing here fetches or writes.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/vec.h"
#include "cycle/cycle.h"
#include "os/clock.h"
#include "os/random.h"

#include <math.h>

enum { WHOLE = 5000, CHOSEN = 4000, TRIES = 20000, STEPS = 60 };

#define INTERVAL_MAX 1e7 /* days: longer ones are never */

const unsigned wb_currency_betas[WB_CURRENCY_BETAS] = {1, 7, 30};

struct sampled_page {
    double rate, age_days;
};

struct sample {
    WB_VEC(struct sampled_page) pages;
    uint64_t all; /* pages with content in webdb */
};

static bool counts(const struct wb_webdb_page *page)
{
    return page->has_content && page->last_seen_ms && !(page->flags & WB_PAGE_LOADED);
}

/* The rate is that of `webdb page`: the page's own history, with its site as the prior. */
static int take_page(struct sample *sample, struct wb_webdb *webdb, const struct wb_webdb_page *page, int64_t now_ms)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    struct wb_webdb_site site;
    int err = wb_url_parse(page->url, NULL, &url);

    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_webdb_get_site(webdb, wb_key_site(wb_buf_slice(&key)), &site);
    bool known = err == 0;
    wb_url_release(&url);
    wb_buf_release(&key);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    double age_days = fmax((double)now_ms - (double)page->last_seen_ms, 0) / WB_DAY_MS;
    struct sampled_page taken = {wb_changerate(&page->history, known ? &site : NULL), age_days};
    return wb_vec_push(&sample->pages, taken);
}

static int take_all(struct sample *sample, struct wb_webdb *webdb, int64_t now_ms)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    int got = 0, err = wb_webdb_pages(webdb, &pages);

    while (err == 0 && (got = wb_webdb_pages_next(pages, &page)) > 0)
        if (counts(&page))
            err = take_page(sample, webdb, &page, now_ms);
    wb_webdb_pages_close(pages);
    sample->all = sample->pages.count;
    return err < 0 ? err : got;
}

static int take_some(struct sample *sample, struct wb_webdb *webdb, uint64_t urls, int64_t now_ms)
{
    struct wb_webdb_page page;
    uint64_t random;
    int err = 0;

    for (unsigned i = 0; err == 0 && i < TRIES && sample->pages.count < CHOSEN; i++) {
        wb_random_bytes(&random, sizeof random);
        err = wb_webdb_get_number(webdb, random % urls, &page);
        if (err == 0 && counts(&page))
            err = take_page(sample, webdb, &page, now_ms);
    }
    return err;
}

static int read_sample(const char *dir, int64_t now_ms, struct sample *sample_out)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count;

    *sample_out = (struct sample){.all = 0};
    int err = wb_webdb_open(dir, &webdb);
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    wb_webdb_count(webdb, &count);
    sample_out->all = count.fetched;
    if (count.urls <= WHOLE)
        err = take_all(sample_out, webdb, now_ms);
    else
        err = take_some(sample_out, webdb, count.urls, now_ms);
    if (sample_out->pages.count == 0)
        sample_out->all = 0;
    wb_webdb_close(webdb);
    return err;
}

int wb_currency_read(const char *dir, struct wb_currency *currency_out)
{
    struct wb_currency sum = {.pages = 0};
    struct sample sample;
    int err = read_sample(dir, wb_clock_wall_ms(), &sample);
    double n = (double)sample.pages.count;

    *currency_out = sum;
    for (size_t i = 0; err == 0 && i < sample.pages.count; i++) {
        const struct sampled_page *p = &sample.pages.items[i];
        sum.freshness += exp(-p->rate * p->age_days) / n;
        sum.age_days += (p->age_days + expm1(-p->rate * p->age_days) / p->rate) / n;
        for (unsigned b = 0; b < WB_CURRENCY_BETAS; b++)
            sum.alpha[b] += exp(-p->rate * fmax(p->age_days - wb_currency_betas[b], 0)) / n;
    }
    sum.pages = sample.all;
    sum.age_days = fmax(sum.age_days, 0);
    if (err == 0)
        *currency_out = sum;
    wb_vec_release(&sample.pages);
    return err;
}

/* ---- what it costs --------------------------------------------------------------------------------------------- */

/* C(T) of the comment above. */
static double current_share(double rate, double beta, double days)
{
    if (days <= beta)
        return 1;
    return days < INTERVAL_MAX ? (beta - expm1(-rate * (days - beta)) / rate) / days : 0;
}

/* The interval at which one more fetch gains this much; INFINITY: none ever does. */
static double interval_of_gain(double rate, double beta, double gain)
{
    double low = 0, high = INTERVAL_MAX;

    if (gain >= beta + 1 / rate)
        return INFINITY;
    for (unsigned step = 0; step < STEPS; step++) {
        double u = step < 24 ? (low > 0 ? sqrt(low * high) : high / 1024) : (low + high) / 2, e = exp(-rate * u);
        if (beta + (1 - e) / rate - e * (u + beta) < gain)
            low = u;
        else
            high = u;
    }
    return beta + high;
}

static double interval_of(enum wb_refresh_policy policy, double rate, double beta, double threshold)
{
    switch (policy) {
    case WB_REFRESH_OPTIMAL:
        return interval_of_gain(rate, beta, threshold);
    case WB_REFRESH_PROPORTIONAL:
    case WB_REFRESH_ADAPTIVE: /* its intervals settle where six of ten visits find a change */
        return threshold / rate;
    case WB_REFRESH_UNIFORM:
    case WB_REFRESH_AGE:
        break;
    }
    return wb_refresh_interval(policy, threshold, rate);
}

struct cost {
    double alpha, fetches, given_up; /* of one page, on average */
};

static struct cost cost_of(const struct sample *sample, enum wb_refresh_policy policy, double beta, double threshold)
{
    struct cost sum = {0, 0, 0};
    double n = (double)sample->pages.count;

    for (size_t i = 0; i < sample->pages.count; i++) {
        double rate = sample->pages.items[i].rate, days = interval_of(policy, rate, beta, threshold);
        sum.alpha += current_share(rate, beta, days) / n;
        sum.fetches += (days < INTERVAL_MAX ? 1 / days : 0) / n;
        sum.given_up += (days < INTERVAL_MAX ? 0 : 1) / n;
    }
    return sum;
}

int wb_currency_advise(const char *dir, double alpha, double beta_days, enum wb_refresh_policy policy,
                       struct wb_currency_advice *advice_out)
{
    WB_CHECK(alpha > 0 && alpha < 1 && beta_days >= 0);
    double low = 1e-12, high = 1e20;
    struct sample sample;
    int err = read_sample(dir, 0, &sample);

    *advice_out = (struct wb_currency_advice){.pages = sample.all};
    if (err == 0 && sample.pages.count == 0)
        err = wb_fail(WB_E_NOTFOUND, "%s has no pages whose rate of change webdb knows: crawl or import, then update",
                      dir);
    /* A higher threshold means longer intervals, and less currency. */
    for (unsigned step = 0; err == 0 && step < STEPS; step++) {
        double middle = sqrt(low * high);
        if (cost_of(&sample, policy, beta_days, middle).alpha >= alpha)
            low = middle;
        else
            high = middle;
    }
    if (err == 0) {
        struct cost cost = cost_of(&sample, policy, beta_days, low);
        advice_out->fetches_per_day = cost.fetches * (double)sample.all;
        advice_out->share_given_up = cost.given_up;
    }
    wb_vec_release(&sample.pages);
    return err;
}
