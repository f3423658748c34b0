/*
 * watch.h - private to serve: what people watch while a repository works: its sites, its latest fetches. Read here
 * once, for the pages and for the calls of programs.
 */
#ifndef WB_SERVE_WATCH_H
#define WB_SERVE_WATCH_H

#include "base/arena.h"
#include "serve/server.h"

/* ---- sites (watch_sites.c) --------------------------------------------------------------------------------------- */

enum { WB_WATCH_ROWS = 50, WB_WATCH_ROWS_MAX = 500, WB_WATCH_RECENT_MS = 5 * 60 * 1000 };

/* A site that a crawl was told of. */
struct wb_watch_site {
    struct wb_site_row row;    /* of the dispenser; its texts belong to the list */
    bool is_known;             /* to webdb */
    uint64_t known, fetched;   /* URLs */
    uint64_t requests, errors; /* in the last five minutes */
    uint32_t queued;           /* URLs in its queue when it was last asked for something; WB_RECENT_UNKNOWN */
    int64_t asked_ms;          /* when that was; 0: not in the last fetches */
    struct wb_slice why;       /* why nothing is requested from it now, in words */
};

struct wb_watch_sites {
    struct wb_watch_site *items;
    size_t count, room;                   /* there is memory for so many */
    uint64_t total;                       /* that the search finds */
    bool known;                           /* false: no crawl was ever told of a site */
    uint64_t states[WB_SITE_REFUSED + 1]; /* how many sites of the repository are in each state */
    struct wb_arena texts;
};

/* What to look for: the parameters q, state, sort, order, limit, offset. */
struct wb_watch_search {
    struct wb_site_search search;
    struct wb_slice sort, state; /* as they were given; never empty */
};
int wb_watch_search_read(struct wb_call *call, struct wb_watch_search *search_out);

int wb_watch_sites_read(const struct wb_server *server, const struct wb_watch_search *search,
                        struct wb_watch_sites *sites_out);
void wb_watch_sites_release(struct wb_watch_sites *sites);

/* How many sites of the repository are in each state; *known_out false: no crawl was ever told of one. */
int wb_watch_counts(const struct wb_server *server, struct wb_dispenser_stat *stat_out, bool *known_out);

const char *wb_watch_state_word(enum wb_site_state state); /* "crawled", "waiting"... */

/* ---- fetches (watch_fetches.c) ----------------------------------------------------------------------------------- */

/* Which fetches are wanted: the parameters q, site, status, error, after, limit. */
struct wb_watch_filter {
    struct wb_slice text, site, status, error; /* empty: all */
    unsigned class;                            /* 1 to 5: statuses that begin like this; 0: any */
    bool failed;                               /* only errors, of any kind */
    uint64_t after;
    size_t max;
};
int wb_watch_filter_read(struct wb_call *call, struct wb_watch_filter *filter_out);

/* Calls each() for the newest fetches that pass, newest first. *newest_out: the number to ask after the next time. */
int wb_watch_fetches_read(const struct wb_server *server, const struct wb_watch_filter *filter, wb_recent_each each,
                          void *context, uint64_t *newest_out);

#endif
