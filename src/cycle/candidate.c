/*
 * candidate.c - judges pages. What is known about a site (its state in the dispenser, its class, how often its pages
 * change) is looked up once for all of its pages. It never decides how many pages are picked.
 */
#include "cycle/candidate.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"

#include <math.h>

#define BLOCKED_MS (7 * WB_DAY_MS) /* after this time a page that robots.txt forbade is tried again */
#define AWAY_PAGES 10 /* limit for a site that did not answer last time, so that it takes no places from others */

/* ---- the current site -------------------------------------------------------------------------------- */

static bool out_of_scope(const struct wb_candidate_judge *judge, struct wb_slice site)
{
    enum wb_listed_state state = judge->listed.state;

    if (judge->listed.needed && state != WB_LISTED_ALIAS)
        state = WB_LISTED_UNKNOWN;
    switch (state) {
    case WB_LISTED_ALIAS:
        return true;
    case WB_LISTED_UNKNOWN:
        if (judge->scope == WB_SCOPE_DOMAIN)
            return !wb_fetchlist_domain(judge->list, wb_site_domain(site));
        return judge->scope != WB_SCOPE_ANY;
    case WB_LISTED_OPEN:
    case WB_LISTED_DONE:
    case WB_LISTED_AWAY:
        break;
    }
    return false;
}

static int enter_site(struct wb_candidate_judge *judge, const struct wb_webdb_page *page)
{
    struct wb_slice prefix = wb_surt_site(page->surt);

    if (judge->prefix.len && wb_slice_equal(prefix, wb_buf_slice(&judge->prefix)))
        return 0;
    /* Pages come in order, so a site that was left does not come back. */
    WB_CHECK(judge->prefix.len == 0 || wb_slice_compare(wb_buf_slice(&judge->prefix), prefix) < 0);
    judge->sites++;
    wb_trap_release(&judge->trap);
    wb_buf_clear(&judge->prefix);
    int err = wb_buf_append_slice(&judge->prefix, prefix);
    if (err == 0)
        err = wb_url_parse(page->url, NULL, &judge->url);
    if (err == 0)
        err = wb_url_key(&judge->url, &judge->key);
    if (err < 0)
        return err;
    struct wb_slice site = wb_key_site(wb_buf_slice(&judge->key));
    wb_fetchlist_site(judge->list, site, &judge->listed);
    WB_CHECK(judge->listed.class_at < judge->class_count || judge->listed.class_at == SIZE_MAX);
    judge->outside = out_of_scope(judge, site) ||
                     !wb_fetchlist_in_class(judge->list, &judge->listed, judge->class_name);
    judge->away = judge->listed.state == WB_LISTED_AWAY && judge->listed.next_ms > judge->horizon_ms;
    err = wb_webdb_get_site(judge->webdb, site, &judge->site);
    judge->site_known = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

size_t wb_candidate_class(const struct wb_candidate_judge *judge)
{
    WB_CHECK(judge->magic == WB_CANDIDATE_JUDGE_MAGIC && judge->sites > 0);
    return judge->listed.class_at;
}

uint64_t wb_candidate_site_max(const struct wb_candidate_judge *judge)
{
    WB_CHECK(judge->magic == WB_CANDIDATE_JUDGE_MAGIC && judge->sites > 0);
    int64_t delay_ms = judge->delay_ms;

    if (judge->listed.state == WB_LISTED_AWAY)
        return AWAY_PAGES;
    if (judge->listed.class_at != SIZE_MAX && judge->classes[judge->listed.class_at].delay_ms >= 0)
        delay_ms = judge->classes[judge->listed.class_at].delay_ms;
    if (judge->period_ms == 0 || delay_ms <= 0)
        return UINT64_MAX;
    return judge->period_ms > delay_ms ? (uint64_t)(judge->period_ms / delay_ms) : 1;
}

/* The refresh settings of the current site: those of its class, if it has one. */
static struct wb_refresh site_refresh(const struct wb_candidate_judge *judge)
{
    struct wb_refresh refresh = judge->refresh;

    if (judge->listed.class_at == SIZE_MAX)
        return refresh;
    WB_CHECK(judge->listed.class_at < judge->class_count);
    const struct wb_site_class *class = &judge->classes[judge->listed.class_at];
    refresh.min_days = (double)class->min_ms / WB_DAY_MS;
    refresh.max_days = (double)class->max_ms / WB_DAY_MS;
    if (class->fetches >= 0)
        refresh.theta = judge->thetas[judge->listed.class_at];
    return refresh;
}

/* ---- a page -------------------------------------------------------------------------------------------- */

static bool is_pushed(const struct wb_webdb_page *page)
{
    return (page->flags & (WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE)) != 0;
}

/* Path and query of a URL. */
static struct wb_slice path_of(struct wb_slice url)
{
    const char *end = url.ptr + url.len, *host = memmem(url.ptr, url.len, "://", 3);
    const char *path = host ? memchr(host + 3, '/', (size_t)(end - host - 3)) : NULL;

    return path ? wb_slice(path, (size_t)(end - path)) : WB_SLICE_EMPTY;
}

/*
 * Crawlers check links against their trap guards, but not the URLs of a list, and their guards forget everything after
 * a visit. So listed URLs are checked here, by a guard that learns from all pages of the site that webdb knows. As in a
 * crawl, pages that were already fetched, seeds and announced pages always pass.
 */
static bool is_trapped(struct wb_candidate_judge *judge, const struct wb_webdb_page *page)
{
    struct wb_slice path = path_of(page->url);
    bool caught = wb_trap_check(&judge->trap, path, judge->now_ms) != NULL;

    if (page->has_content)
        wb_trap_learn(&judge->trap, path, page->simhash);
    if (page->last_tried_ms && page->outcome != WB_OUTCOME_ROBOTS)
        wb_trap_tried(&judge->trap, path, page->has_content && page->outcome != WB_OUTCOME_DUPLICATE);
    return caught && page->last_tried_ms == 0 && page->depth > 0;
}

static enum wb_candidate_verdict judge_page(struct wb_candidate_judge *judge, const struct wb_refresh *refresh,
                                            const struct wb_webdb_page *page)
{
    /* Files that pages need are outside of every scope and at no depth. Those that were fetched are kept fresh. */
    bool needed = page->has_content && !(page->flags & WB_PAGE_WANTED);
    bool ours = wb_fetchlist_in_class(judge->list, &judge->listed, judge->class_name);
    bool outside = judge->outside && !(judge->listed.needed && page->last_tried_ms && ours);
    if (page->last_tried_ms == 0 && !wb_crawl_types_promise(&judge->types, path_of(page->url)))
        return WB_CANDIDATE_OUTSIDE;
    if (outside || (judge->depth_limit && page->depth >= judge->depth_limit && !needed))
        return WB_CANDIDATE_OUTSIDE;
    bool trapped = is_trapped(judge, page);
    if (judge->away || (judge->tried_ms && page->last_tried_ms >= judge->tried_ms))
        return WB_CANDIDATE_EARLY;
    if (is_pushed(page))
        return WB_CANDIDATE_YES;
    if (page->last_tried_ms == 0 && !(page->flags & WB_PAGE_WANTED))
        return WB_CANDIDATE_UNWANTED;
    if (trapped)
        return WB_CANDIDATE_TRAPPED;
    if ((page->flags & WB_PAGE_BLOCKED) && judge->now_ms - page->last_tried_ms < BLOCKED_MS)
        return WB_CANDIDATE_BLOCKED;
    int64_t last_ms = page->last_tried_ms > page->last_seen_ms ? page->last_tried_ms : page->last_seen_ms;
    if (last_ms && (double)(judge->now_ms - last_ms) < refresh->min_days * WB_DAY_MS)
        return WB_CANDIDATE_EARLY;
    return WB_CANDIDATE_YES;
}

/* The store decides what is taken down. webdb's flag is a copy, which URLs found after their site was barred lack. */
static int is_barred(struct wb_candidate_judge *judge, const struct wb_webdb_page *page, bool *barred_out)
{
    *barred_out = false;
    if (!judge->store)
        return 0;
    int err = wb_url_parse(page->url, NULL, &judge->url);
    if (err == 0)
        err = wb_url_key(&judge->url, &judge->key);
    if (err < 0)
        return err;
    struct wb_slice key = wb_buf_slice(&judge->key);
    err = wb_store_barred(judge->store, wb_pageid_of_key(key), wb_key_site(key));
    *barred_out = err > 0;
    return err < 0 ? err : 0;
}

/* The time by which the page must be visited, because its lifetime ends or its longest interval has passed; 0: none. */
static int64_t deadline_ms(const struct wb_candidate_judge *judge, const struct wb_refresh *refresh,
                           const struct wb_webdb_page *page)
{
    if (page->flags & WB_PAGE_GONE)
        return 0;
    if (page->has_content && page->expires_ms && page->expires_ms <= judge->horizon_ms)
        return page->expires_ms;
    if (refresh->max_days <= 0 || page->last_seen_ms == 0)
        return 0;
    /* A page that cannot be fetched is tried less and less often. */
    double days = ldexp(refresh->max_days, page->failures < 64 ? page->failures : 64);
    double latest_ms = (double)(page->failures ? page->last_tried_ms : page->last_seen_ms) + days * WB_DAY_MS;
    return latest_ms <= (double)judge->now_ms ? (int64_t)latest_ms : 0;
}

int wb_candidate_judge(struct wb_candidate_judge *judge, const struct wb_webdb_page *page,
                       enum wb_candidate_verdict *verdict_out, struct wb_pick_item *item_out)
{
    WB_CHECK(judge->magic == WB_CANDIDATE_JUDGE_MAGIC && judge->now_ms > 0 && judge->horizon_ms >= judge->now_ms);
    *verdict_out = WB_CANDIDATE_UNWANTED;
    *item_out = (struct wb_pick_item){.number = page->number};
    int err = enter_site(judge, page);
    if (err < 0)
        return err;
    struct wb_refresh refresh = site_refresh(judge);
    bool marked = (page->flags & WB_PAGE_BARRED) != 0, barred = false;
    *verdict_out = judge_page(judge, &refresh, page);
    if (marked || *verdict_out == WB_CANDIDATE_YES)
        err = is_barred(judge, page, &barred);
    if (barred)
        *verdict_out = WB_CANDIDATE_BARRED;
    if (err < 0 || *verdict_out != WB_CANDIDATE_YES)
        return err;

    double rate = wb_changerate(&page->history, judge->site_known ? &judge->site : NULL);
    double value = wb_refresh_value(&refresh, page, rate, judge->now_ms);
    int64_t deadline = deadline_ms(judge, &refresh, page);
    if (is_pushed(page)) {
        *item_out = (struct wb_pick_item){page->number, value, WB_PICK_TIER_PUSHED, WB_PICK_PUSHED};
    } else if (deadline) {
        bool expires = page->expires_ms && page->expires_ms <= judge->horizon_ms;
        *item_out = (struct wb_pick_item){page->number, -(double)deadline, WB_PICK_TIER_EXPIRING,
                                          expires ? WB_PICK_EXPIRING : WB_PICK_DUE};
    } else if ((page->flags & WB_PAGE_GONE) && value <= 0) {
        *verdict_out = WB_CANDIDATE_UNWANTED;
    } else if (page->near && value <= 0) {
        /* A near duplicate waits until it is due, however much budget is left. */
        *verdict_out = WB_CANDIDATE_EARLY;
    } else if (page->last_seen_ms) {
        *item_out = (struct wb_pick_item){page->number, value, WB_PICK_TIER_VALUE, WB_PICK_DUE};
    } else {
        /* Otherwise thousands of similar links that lead nowhere would come before all repeated visits. */
        value *= wb_trap_promise(&judge->trap, path_of(page->url));
        *item_out = (struct wb_pick_item){page->number, value, WB_PICK_TIER_VALUE, WB_PICK_FRESH};
    }
    return 0;
}

void wb_candidate_release(struct wb_candidate_judge *judge)
{
    wb_url_release(&judge->url);
    wb_buf_release(&judge->key);
    wb_buf_release(&judge->prefix);
    wb_trap_release(&judge->trap);
    judge->magic = 0;
}
