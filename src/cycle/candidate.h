/*
 * candidate.h - whether a page may be asked for in the next cycle, and how urgent that is.
 *
 *   tier 0  somebody announced it
 *   tier 1  its lifetime ends, or its class wants it: the earliest first
 *   tier 2  everything else, by what a visit is worth; pages that were never fetched and refreshes in one order
 */
#ifndef WB_CYCLE_CANDIDATE_H
#define WB_CYCLE_CANDIDATE_H

#include "cycle/cycle.h"
#include "cycle/pick.h"
#include "store/store.h"

/* What a page is not a candidate for. */
enum wb_candidate_verdict {
    WB_CANDIDATE_YES,
    WB_CANDIDATE_BARRED,   /* taken down */
    WB_CANDIDATE_BLOCKED,  /* robots.txt forbade it lately */
    WB_CANDIDATE_TRAPPED,  /* a guard against sites without end keeps it out (crawl/trap.h) */
    WB_CANDIDATE_OUTSIDE,  /* of a site that is out of scope, or another name of one; or too deep */
    WB_CANDIDATE_EARLY,    /* within the least interval, or its site is to be left alone for longer */
    WB_CANDIDATE_UNWANTED, /* nothing that is followed leads there; gone for long */
};

/* Judges pages in the order of URLs, a site after the other. */
struct wb_candidate_judge {
    struct wb_webdb *webdb;
    struct wb_store *store;         /* NULL: nothing is barred */
    const struct wb_fetchlist *list;
    const struct wb_site_class *classes;
    struct wb_refresh refresh;      /* of pages without a class */
    const double *thetas;           /* of the classes with fetches of their own, by class; the others have refresh.theta */
    enum wb_scope_kind scope;
    int64_t now_ms, horizon_ms;     /* horizon_ms: the moment of the next chance */
    int64_t tried_ms;               /* what was tried since is left alone; 0: nothing is */
    uint32_t depth_limit;           /* what is as deep or deeper is left out; 0: nothing is */
    int64_t period_ms, delay_ms;    /* how often a site can be asked */

    /* The site at hand. */
    struct wb_url url;
    struct wb_buf key, prefix;      /* prefix: of its pages' SURTs */
    struct wb_listed_site listed;
    bool outside, away;
    uint64_t sites;                 /* that were entered */
    struct wb_webdb_site site;
    bool site_known;
    struct wb_trap trap;
};

/* Fills item_out (number, tier, value, kind) where the page is a candidate. verdict_out in any case. */
int wb_candidate_judge(struct wb_candidate_judge *judge, const struct wb_webdb_page *page, enum wb_candidate_verdict *verdict_out,
                       struct wb_picked *item_out);

/* The class of the site at hand; SIZE_MAX: none. */
size_t wb_candidate_class(const struct wb_candidate_judge *judge);

/* How many of its pages may be listed: what it can be asked for in the period; a few where nobody knows whether it is there. */
uint64_t wb_candidate_site_max(const struct wb_candidate_judge *judge);

void wb_candidate_release(struct wb_candidate_judge *judge);

#endif
