/*
 * cycle.h - the door of cycle: once around the loop, and each of its steps.
 *
 *   generate -> crawl -> update -> (index) -> swap, drop class A -> compact
 *
 * update merges the journal into webdb; generate picks what is fetched next; expunge removes what is gone. A state
 * file (DIR/cycle) says which step is at work, so that after kill -9 the next run goes on with it.
 */
#ifndef WB_CYCLE_CYCLE_H
#define WB_CYCLE_CYCLE_H

#include "crawl/crawl.h"
#include "cycle/refresh.h"
#include "webdb/webdb.h"

/* Told while a step works: done of total (0: not known) of what step says. false: stop cleanly. May be NULL. */
typedef bool (*wb_cycle_progress)(void *context, const char *step, uint64_t done, uint64_t total);
typedef void (*wb_cycle_warn)(void *context, const char *message);

struct wb_cycle_sink {
    wb_cycle_progress progress;
    wb_cycle_warn warn;
    void *context;
};

/* ---- update ---------------------------------------------------------------------------------- */

struct wb_update_options {
    const char *dir;
    const char *dispenser;      /* NULL: the repository's own */
    size_t memory_bytes;        /* 0: the default */
    unsigned threads;           /* 0: by the machine */
    bool rebuild;               /* webdb is made anew, of its readable rows, the store's pages and the journal: for one that is damaged */
};

/* Merges the journal into webdb and removes logs that nobody needs any more. freed_out (may be NULL): bytes of logs removed. */
int wb_update(const struct wb_update_options *options, const struct wb_cycle_sink *sink, struct wb_webdb_merge *merge_out, uint64_t *freed_out);

/* ---- generate -------------------------------------------------------------------------------- */

struct wb_generate_options {
    const char *dir;
    const char *dispenser;
    const char *seeds_file;     /* sites and classes to take in first; NULL: none */
    uint64_t budget;            /* URLs at most; 0: no limit */
    enum wb_policy policy;
    double min_days, max_days;  /* bounds of intervals for sites without a class; 0: none */
    enum wb_scope_kind scope;        /* sites that a crawl was told of, their domains, or any */
    int64_t horizon_ms;         /* how long until the next chance: pages whose lifetime ends before are must-visit; 0: a day */
    uint32_t depth_limit;       /* pages so many links away from a seed, or more, are left out; 0: none are */
    int64_t period_ms;          /* a site has no more pages listed than it can be asked for in this time; 0: no limit */
    int64_t delay_ms;           /* between two requests to a site whose class says nothing */
    int64_t tried_ms;           /* pages that were asked for since are left alone, so that none is in a cycle twice; 0: none are */
    int64_t now_ms;             /* 0: the clock's */
};

struct wb_generate {
    int64_t run;                /* of the dispenser; 0: nothing was picked */
    uint64_t known, urls, sites;
    uint64_t pushed, expiring, fresh, due; /* of the urls: announced; about to expire; never fetched; worth another look */
    uint64_t blocked, barred, trapped; /* not candidates: robots.txt; taken down; of a family of URLs without end */
    uint64_t outside, early;    /* out of scope; too soon after their last visit, or while their site is left alone */
    double theta;               /* the threshold after this */
};

/* Fills the dispenser. Webdb must be there: WB_E_NOTFOUND. */
int wb_generate(const struct wb_generate_options *options, const struct wb_cycle_sink *sink, struct wb_generate *generate_out);

/* ---- push ------------------------------------------------------------------------------------- */

struct wb_push_stat {
    uint64_t changed, gone, refused; /* refused: lines that are no URL; the first ones are warned of */
};

/* A URL a line ("gone URL": it went), or IndexNow's JSON ({"urlList":[...]} or {"changed":[],"gone":[]}); "-": standard input. */
int wb_push(const char *dir, const char *file, const struct wb_cycle_sink *sink, struct wb_push_stat *stat_out);

/* ---- expunge ------------------------------------------------------------------------------------ */

struct wb_expunge_stat {
    uint64_t pages;             /* removed from the store */
    uint64_t known;             /* removed from webdb without ever having been stored */
    uint64_t bytes;             /* of their bodies */
    uint64_t reprieved;         /* could not be verified: they stay for a while */
    uint64_t left;              /* could not be removed; each was warned of */
};

/* Told of each removed page. url is the page's id where no URL is known of it. */
typedef void (*wb_expunge_each)(void *context, struct wb_slice url, const char *reason);

/* What has expired or is gone from the web: removed from the store now, from webdb with the merge that this ends with. */
int wb_expunge_expired(const struct wb_update_options *options, const struct wb_cycle_sink *sink, wb_expunge_each each, void *context,
                       struct wb_expunge_stat *stat_out);

/*
 * A URL, or a site (HOST or HOST:PORT): at once, from everything, and barred from then on, whether anything of it is known
 * or not. allow: lifts that instead (wb_store_allow); WB_E_NOTFOUND where nothing was barred.
 */
int wb_expunge(const struct wb_update_options *options, const char *what, bool allow, const struct wb_cycle_sink *sink, wb_expunge_each each,
               void *context, struct wb_expunge_stat *stat_out);

/* ---- run ------------------------------------------------------------------------------------------ */

enum wb_cycle_step {
    WB_STEP_REST,     /* between cycles */
    WB_STEP_GENERATE,
    WB_STEP_CRAWL,
    WB_STEP_UPDATE,
    WB_STEP_EXPUNGE,
    WB_STEP_SWAP,     /* the next generation of the store; class A goes */
    WB_STEP_COMPACT,
};
const char *wb_cycle_step_word(enum wb_cycle_step step);

struct wb_cycle_options {
    struct wb_crawl_options crawl;
    struct wb_generate_options generate; /* dir, dispenser, seeds_file and scope are those of crawl */
    uint64_t cycles;          /* 0: for ever */
    int64_t every_ms;         /* from the begin of one cycle to that of the next */
    size_t memory_bytes;
};

/* What the state file says: of the cycle at work, and of the last one that came to its end. */
struct wb_cycle_status {
    bool running;             /* a process is at it now */
    uint64_t cycle;           /* from 1; 0: there never was one */
    enum wb_cycle_step step;
    int64_t began_ms, step_ms, next_ms;   /* of the cycle, of the step; when the next cycle begins (REST) */
    int64_t run;              /* of the dispenser */
    uint64_t budget;
    uint64_t listed, fetched, stored, unchanged, gone, errors, expunged; /* of this cycle so far; fetched: requests for pages */
    double theta;
    char last_error[256];     /* why the last run ended, where it was an error */
};

/* WB_E_NOTFOUND: no cycle was ever begun here. */
int wb_cycle_status(const char *dir, struct wb_cycle_status *status_out);

/* Told at the end of each cycle. */
typedef void (*wb_cycle_each)(void *context, const struct wb_cycle_status *status);

/*
 * Goes around. Takes up an unfinished cycle where it was. WB_E_BUSY: another run is at work in this repository.
 * WB_E_STOPPED after a signal, with nothing lost.
 */
int wb_cycle_run(const struct wb_cycle_options *options, const struct wb_crawl_sink *crawl_sink, const struct wb_cycle_sink *sink,
                 wb_cycle_each each, void *context);

#endif
