/* parent.h - the parent process of a crawl: shared by crawl.c and resolve.c. */
#ifndef WB_CRAWL_PARENT_H
#define WB_CRAWL_PARENT_H

#include "crawl/worker.h"

struct wb_parent;

struct wb_parent_worker {
    struct wb_parent *parent;
    unsigned number;
    int pid;               /* 0: not running */
    int fd;                /* its lines */
    bool eof;
    struct event *reader;
    struct wb_buf text;    /* a line that is not whole yet */
    char last_words[WB_ERROR_MESSAGE_MAX];
};

struct wb_parent {
    struct wb_crawl_plan plan;
    const struct wb_crawl_sink *sink;
    struct wb_dispenser *dispenser;
    struct event_base *base;
    struct event *tick;
    struct wb_dns *dns;
    unsigned resolving;        /* names asked for and not answered */
    struct wb_seen asked;      /* rows whose name is being asked for */
    int64_t resolved_ms;       /* when rows were last looked for */
    bool resolve_more;         /* there were some */
    unsigned refused_told;     /* seeds whose refusal was put into words */
    struct wb_parent_worker workers[WB_TALLY_WORKERS_MAX];
    unsigned worker_count, alive, restarts;
    unsigned quiet_ticks;      /* nothing may be asked for any more, and nothing is under way */
    int64_t began_ms, counted_ms, shown_ms, stopping_ms;
    struct wb_dispenser_stat sites;
    bool stopping;
    struct wb_error_copy failed;
};

int64_t wb_parent_now(const struct wb_parent *parent);
void wb_parent_warn(struct wb_parent *parent, const char *message);
void wb_parent_fail(struct wb_parent *parent, int err);
void wb_parent_stat(const struct wb_parent *parent, struct wb_crawl_stat *stat_out);

/* ---- resolve.c: names of sites, before a worker needs them ------------------------------------ */

int wb_resolve_open(struct wb_parent *parent);
void wb_resolve_close(struct wb_parent *parent);

/* Asks for the names of sites that have no address yet, some at a time. */
int wb_resolve_ahead(struct wb_parent *parent);

#endif
