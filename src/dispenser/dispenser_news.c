/*
 * dispenser_news.c - what the crawler of a site has learned in a run, for the process that goes on with the site
 * elsewhere.
 *
 * The history of a visit is in the journal of the site's home. If that repository is gone and another one takes the
 * site over, it needs to know which URLs were found and which were dealt with; otherwise it would fetch them again. So
 * with each commit a crawler that shares its dispenser tells this news here. What the texts say is the crawler's
 * business (src/crawl/news.c). They are kept until the site gets news of another run.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"

struct telling {
    int64_t run;
    const struct wb_site_news *news;
    size_t count;
};

bool wb_dispenser_is_shared(const struct wb_dispenser *d)
{
    WB_CHECK(d->magic == WB_DISPENSER_MAGIC);
    return d->shared;
}

static int add_news(struct wb_dispenser *d, void *context)
{
    const struct telling *t = context;
    int err = 0;

    for (size_t i = 0; i < t->count && err == 0; i++) {
        const struct wb_site_news *news = &t->news[i];
        err = WB_SQL_RUN(d->sql, S_NEWS_DROP, wb_sql_int(news->site), wb_sql_int(t->run));
        if (err == 0)
            err = WB_SQL_RUN(d->sql, S_NEWS_LAST, wb_sql_int(news->site), wb_sql_int(t->run));
        int64_t last = err > 0 ? wb_sql_number(d->sql, S_NEWS_LAST, 0) : 0;
        wb_sql_end(d->sql, S_NEWS_LAST);
        if (err >= 0)
            err = WB_SQL_RUN(d->sql, S_NEWS_ADD, wb_sql_int(news->site), wb_sql_int(t->run), wb_sql_int(last + 1),
                             wb_sql_str(wb_slice_str(d->home)), wb_sql_str(news->text));
    }
    return err;
}

int wb_dispenser_tell(struct wb_dispenser *d, int64_t run, const struct wb_site_news *news, size_t count)
{
    struct telling t = {run, news, count};
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_dispenser_check_text("news", news[i].text);
    return err < 0 || count == 0 ? err : wb_dispenser_transact(d, true, add_news, &t);
}

/* Reads the next text of a site, after the one with this number. */
struct listening {
    int64_t site, run, after;
    struct wb_slice but;  /* not what this home has told */
    struct wb_buf text;
    bool found;
};

static int read_next(struct wb_dispenser *d, void *context)
{
    struct listening *l = context;
    int err = WB_SQL_RUN(d->sql, S_NEWS_NEXT, wb_sql_int(l->site), wb_sql_int(l->run), wb_sql_int(l->after),
                         wb_sql_str(l->but));

    wb_buf_clear(&l->text);
    l->found = err > 0;
    if (err <= 0)
        return err;
    int64_t number = wb_sql_number(d->sql, S_NEWS_NEXT, 0);
    err = wb_buf_append_slice(&l->text, wb_sql_text(d->sql, S_NEWS_NEXT, 1));
    wb_sql_end(d->sql, S_NEWS_NEXT);
    if (err == 0 && number <= l->after)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: the news of the site with id %lld", wb_sql_where(d->sql),
                      (long long)l->site);
    l->after = number;
    return err;
}

int wb_dispenser_news(struct wb_dispenser *d, int64_t run, int64_t site, bool own, wb_news_each each, void *context)
{
    struct listening l = {.site = site, .run = run, .text = WB_BUF_INIT,
                          .but = own ? WB_SLICE_EMPTY : wb_slice_str(d->home)};
    int err;

    do {
        int64_t after = l.after;
        err = wb_dispenser_transact(d, false, read_next, &l);
        WB_CHECK(err < 0 || !l.found || l.after > after);
        if (err == 0 && l.found)
            err = each(context, wb_buf_slice(&l.text));
    } while (err == 0 && l.found);
    wb_buf_release(&l.text);
    return err;
}
