/*
 * dash_fresh.c - how fresh and how old the collection is, estimated from a random choice of its pages.
 *
 * A page that changes lambda times a day and was last seen tau days ago is still the same with probability
 * exp(-lambda tau) (docs/design/0011-freshness.md). A thousand pages give the average to within three percent.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/random.h"
#include "serve/dash.h"

#include <math.h>

enum { CHOSEN = 1000, TRIES = 10000 };

#define FRESH_MAGIC 0x57424466u

struct wb_dash_fresh {
    uint32_t magic;   /* FRESH_MAGIC from new to free */
    uint32_t edition; /* 0: none was read */
    size_t count;
    struct fresh_page {
        int64_t seen_ms;
        double rate; /* changes per day */
    } pages[CHOSEN];
};

int wb_dash_fresh_new(struct wb_dash_fresh **fresh_out)
{
    *fresh_out = wb_alloc_zero(1, sizeof **fresh_out);
    if (!*fresh_out)
        return WB_E_NOMEM;
    (*fresh_out)->magic = FRESH_MAGIC;
    return 0;
}

void wb_dash_fresh_free(struct wb_dash_fresh *fresh)
{
    if (!fresh)
        return;
    WB_CHECK(fresh->magic == FRESH_MAGIC);
    fresh->magic = 0;
    wb_free(fresh);
}

static int choose(struct wb_dash_fresh *fresh, struct wb_webdb *webdb, const struct wb_webdb_count *count)
{
    struct wb_webdb_page page;
    uint64_t random;
    int err = 0;

    fresh->count = 0;
    for (size_t i = 0; i < TRIES && fresh->count < CHOSEN && count->urls && err == 0; i++) {
        wb_random_bytes(&random, sizeof random);
        err = wb_webdb_get_number(webdb, random % count->urls, &page);
        if (err == 0 && page.has_content && page.last_seen_ms)
            fresh->pages[fresh->count++] =
                (struct fresh_page){.seen_ms = page.last_seen_ms, .rate = wb_changerate(&page.history, NULL)};
    }
    return err;
}

int wb_dash_fresh_read(struct wb_dash_fresh *fresh, const char *dir)
{
    WB_CHECK(fresh->magic == FRESH_MAGIC);
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count;
    int err = wb_webdb_open(dir, &webdb);

    if (err == 0) {
        wb_webdb_count(webdb, &count);
        if (count.edition != fresh->edition)
            err = choose(fresh, webdb, &count);
        fresh->edition = err == 0 ? count.edition : 0;
    }
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND ? 0 : err;
}

void wb_dash_fresh_now(const struct wb_dash_fresh *fresh, int64_t now_ms, double *freshness_out, double *age_days_out)
{
    double fresh_sum = 0, age_sum = 0;

    WB_CHECK(fresh->magic == FRESH_MAGIC);
    WB_CHECK(fresh->count <= CHOSEN);
    for (size_t i = 0; i < fresh->count; i++) {
        double days = (double)(now_ms - fresh->pages[i].seen_ms) / (double)WB_DAY_MS;
        days = days > 0 ? days : 0;
        fresh_sum += exp(-fresh->pages[i].rate * days);
        age_sum += days;
    }
    *freshness_out = fresh->count ? fresh_sum / (double)fresh->count : NAN;
    *age_days_out = fresh->count ? age_sum / (double)fresh->count : NAN;
}
