/* parent.h - the parent process of a crawl: shared by crawl.c, crew.c and resolve.c. */
#ifndef WB_CRAWL_PARENT_H
#define WB_CRAWL_PARENT_H

#include "crawl/teller.h"
#include "crawl/worker.h"

enum { WB_SOON_MS = 45 * 1000 }; /* the run does not end while a site may be contacted so soon */

struct wb_parent;

struct wb_parent_worker {
    struct wb_parent *parent;
    unsigned number;
    int pid;               /* 0: not running */
    int fd;                /* its warnings */
    bool eof;
    struct event *reader;
    struct wb_buf text;    /* a line that is not whole yet */
    char owner[64];        /* of its leases, spool and lines */
    int64_t start_ms;      /* when it is to be started again; 0: it runs, or is not to be */
    char last_words[WB_ERROR_MESSAGE_MAX];
};

#define WB_SUSPECTS_MAX 32

/* What a process was doing when it died. */
struct wb_suspect {
    uint64_t subject;
    unsigned deaths;
};

struct wb_parent {
    struct wb_crawl_plan plan;
    const struct wb_crawl_sink *sink;
    struct wb_dispenser *dispenser;
    struct wb_teller *teller;
    struct wb_lines *lines;    /* the parent's own; NULL: nobody wants any */
    char own_name[64];         /* of that file */
    uint64_t lines_left;       /* that were not read when the crawl ended */
    struct event_base *base;
    struct event *tick;
    struct wb_dns *dns;
    unsigned resolving;        /* names asked for and not answered */
    struct wb_seen asked;      /* rows whose name is being asked for */
    int64_t resolved_ms;       /* when rows were last looked for */
    bool resolve_more;         /* there were some */
    struct wb_buf unresolvable; /* int64_t: rows whose names could not be resolved and are left for another run */
    unsigned refused_told;     /* seeds whose refusal was put into words */
    struct wb_parent_worker workers[WB_TALLY_WORKERS_MAX];
    unsigned worker_count, alive; /* alive: running, or about to be started again */
    unsigned started;          /* processes, those that died included */
    unsigned deaths_in_vain;   /* in a row, with nothing done in between */
    unsigned recoveries;       /* since the crawl began */
    unsigned careful_lives;    /* processes to come that ask for one page at a time */
    uint64_t commits_before, requests_before; /* when the last one died */
    struct wb_suspect suspects[WB_SUSPECTS_MAX];
    unsigned quiet_ticks;      /* nothing may be asked for any more, and nothing is under way */
    int64_t began_ms, counted_ms, shown_ms, stopping_ms;
    struct wb_dispenser_stat sites;
    bool stopping;
    bool reader_failed;        /* standard output or the file of --log */
    struct wb_error_copy failed;
};

int64_t wb_parent_now(const struct wb_parent *parent);
void wb_parent_warn(struct wb_parent *parent, const char *message);
void wb_parent_fail(struct wb_parent *parent, int err);
void wb_parent_stat(const struct wb_parent *parent, struct wb_crawl_stat *stat_out);

/* Whether the repository has a dispenser.db. */
int wb_crawl_has_own(const char *dir, bool *has_out);

/* A line of the parent's own. */
int wb_parent_line(struct wb_parent *parent, struct wb_slice line);

/* ---- crew.c: the worker processes ---------------------------------------------------------- */

/* Starts all of them. */
int wb_crew_start(struct wb_parent *parent);

/* Looks after those that ended, and starts those again whose time has come. */
void wb_crew_watch(struct wb_parent *parent);

/* Ends those that are still running, at once. */
void wb_crew_kill(struct wb_parent *parent);

/* ---- resolve.c: names of sites, before a worker needs them ------------------------------------ */

int wb_resolve_open(struct wb_parent *parent);
void wb_resolve_close(struct wb_parent *parent);

/* Asks for the names of sites that have no address yet, some at a time. */
int wb_resolve_ahead(struct wb_parent *parent);

#endif
