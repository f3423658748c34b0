/*
 * candidate.h - decides whether a page may be fetched in the next cycle, and how urgent that is.
 *
 *   tier 0  pages that somebody announced (push)
 *   tier 1  pages whose lifetime ends, or whose class sets a longest interval that has passed; the earliest first
 *   tier 2  everything else, by the value of a visit; new pages and repeated visits compete with each other
 */
#ifndef WB_CYCLE_CANDIDATE_H
#define WB_CYCLE_CANDIDATE_H

#include "cycle/cycle.h"
#include "cycle/pick.h"
#include "store/store.h"

/* Whether a page is a candidate, and if not, why. */
enum wb_candidate_verdict {
    WB_CANDIDATE_YES,
    WB_CANDIDATE_BARRED,   /* taken down */
    WB_CANDIDATE_BLOCKED,  /* robots.txt forbade it recently */
    WB_CANDIDATE_TRAPPED,  /* part of an endless family of URLs (crawl/trap.h) */
    WB_CANDIDATE_OUTSIDE,  /* its site is out of scope or an alias of another one, or the page is too deep */
    WB_CANDIDATE_EARLY,    /* visited too recently, or its site must be left alone for longer */
    WB_CANDIDATE_UNWANTED, /* no link that is followed leads to it, or it has been gone for long */
};

#define WB_CANDIDATE_JUDGE_MAGIC 0x57424a55u

/* Judges pages, which must come in the order of their URLs, so that the pages of a site come together. */
struct wb_candidate_judge {
    uint32_t magic;                 /* WB_CANDIDATE_JUDGE_MAGIC until it is released */
    struct wb_webdb *webdb;
    struct wb_store *store;         /* NULL: nothing is barred */
    const struct wb_fetchlist *list;
    const struct wb_site_class *classes;
    size_t class_count;
    struct wb_refresh refresh;      /* of pages without a class */
    const double *thetas;           /* by class, for classes with their own fetches; the others use refresh.theta */
    enum wb_scope_kind scope;
    const char *class_name;         /* NULL: sites of any class */
    struct wb_crawl_types types;
    int64_t now_ms, horizon_ms;     /* horizon_ms: the time of the next generate */
    int64_t tried_ms;               /* pages tried since then are left out; 0: none are */
    uint32_t depth_limit;           /* pages at this depth or deeper are left out; 0: none are */
    int64_t period_ms, delay_ms;    /* a site allows period_ms / delay_ms requests */

    /* The current site. */
    struct wb_url url;
    struct wb_buf key, prefix;      /* prefix: what the SURTs of its pages begin with */
    struct wb_listed_site listed;
    bool outside, away;
    uint64_t sites;                 /* number of sites seen so far */
    struct wb_webdb_site site;
    bool site_known;
    struct wb_trap trap;
};

/* Sets *verdict_out, and fills *item_out if the page is a candidate. */
int wb_candidate_judge(struct wb_candidate_judge *judge, const struct wb_webdb_page *page,
                       enum wb_candidate_verdict *verdict_out, struct wb_pick_item *item_out);

/* The index of the current site's class; SIZE_MAX: none. */
size_t wb_candidate_class(const struct wb_candidate_judge *judge);

/* How many pages of the current site may be listed: what the period allows; few if the site did not answer last time.
 */
uint64_t wb_candidate_site_max(const struct wb_candidate_judge *judge);

void wb_candidate_release(struct wb_candidate_judge *judge);

#endif
