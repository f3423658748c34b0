/*
 * parent.h - the parent process of a crawl. Private to crawl.c, classes.c, parent.c, crew.c, resolve.c and controldoor.c.
 *
 *   crawl.c     the door: options, seeds, the repository; opens and closes the parent
 *   classes.c   which sites are those of the class that --class names
 *   parent.c    the event loop: a tick 25 times per second, progress, the end of the run
 *   crew.c      the worker processes: started, listened to, replaced when they die
 *   resolve.c   the names of sites, looked up before a worker needs them
 *   controldoor.c  commands of `webbase control`, answered here and passed on to the workers (tally.h)
 *   teller.h    lines of the log of fetches, passed on to their readers
 *
 * The parent never fetches a page and never waits for a reader or a worker.
 */
#ifndef WB_CRAWL_PARENT_H
#define WB_CRAWL_PARENT_H

#include "base/arena.h"
#include "crawl/teller.h"
#include "crawl/worker.h"

enum { WB_SOON_MS = 45 * 1000 }; /* the run does not end while a site may be contacted this soon */

struct wb_parent;

/* ---- the worker processes (crew.c) ------------------------------------------------------------------------------- */

/* One worker. Its number stays the same when another process takes its place. */
struct wb_crew_member {
    struct wb_parent *parent;
    unsigned number;
    int pid;               /* 0: not running */
    int fd;                /* its warnings come through this pipe */
    bool eof;
    struct event *reader;
    struct wb_buf text;    /* a warning whose end has not come yet */
    char owner[64];        /* names its leases, its spool and its lines */
    int64_t start_ms;      /* when it is to be started again; 0: it runs, or will not be started again */
    char last_words[WB_ERROR_MESSAGE_MAX]; /* its last warning: the reason if it ends with an error */
};

#define WB_SUSPECTS_MAX 32

/* What a worker was doing when it died: a URL or a site (tally.h). */
struct wb_suspect {
    uint64_t subject;
    unsigned deaths;
};

struct wb_crew {
    struct wb_crew_member members[WB_TALLY_WORKERS_MAX];
    unsigned count;
    unsigned alive;            /* running, or about to be started again */
    unsigned started;          /* processes, those that died included */
    unsigned deaths_in_vain;   /* in a row, with nothing done in between */
    unsigned careful_lives;    /* so many of the next processes make one request at a time */
    uint64_t commits_before, requests_before; /* the tally's, when a worker last died */
    struct wb_suspect suspects[WB_SUSPECTS_MAX];
};

/* Starts all workers. */
int wb_crew_start(struct wb_parent *parent);

/* Looks after workers that have ended, and starts those whose time has come again. */
void wb_crew_watch(struct wb_parent *parent);

/* Sends a signal to all that are running. */
void wb_crew_signal(const struct wb_crew *crew, int signal_number);

/* Kills those that are still running and waits for their end. */
void wb_crew_kill(struct wb_crew *crew);

/* ---- names in advance (resolve.c) -------------------------------------------------------------------------------- */

struct wb_resolver {
    struct wb_dns *dns;
    unsigned asking;           /* names asked for and not answered */
    struct wb_seen asked;      /* ids of their rows; marked: being asked for */
    int64_t looked_ms;         /* when rows without an address were last looked for */
    bool more;                 /* there were some */
    WB_VEC(int64_t) unresolvable; /* ids of rows whose names could not be resolved and are left for a later crawl */
    unsigned refused_told;     /* seeds of which a warning said why they are refused */
};

int wb_resolve_open(struct wb_parent *parent);
void wb_resolve_close(struct wb_parent *parent);

/* Asks for the names of sites that have no address yet, some at a time. */
int wb_resolve_ahead(struct wb_parent *parent);

/* ---- orders of an operator (controldoor.c) ----------------------------------------------------------------------- */

#define WB_DOOR_GUESTS_MAX 16
#define WB_DOOR_SAMPLES 11 /* one per second: rates are those of the last ten seconds */

/* Somebody who has come to the door and has not been answered yet. */
struct wb_door_guest {
    struct wb_parent *parent;
    int fd;               /* -1: nobody */
    struct event *reader;
};

/* What the crawl had done at some moment. */
struct wb_door_sample {
    int64_t ms;
    uint64_t pages, requests, wire_bytes;
};

/* A site about which something was ordered, by name. The tally has the same by number. */
struct wb_door_order {
    char *name;
    bool stopped;
    int64_t delay_ms;
};

#define WB_CRAWL_ORDERS_MAGIC 0x57424f52u

struct wb_crawl_orders {
    uint32_t magic; /* WB_CRAWL_ORDERS_MAGIC from new to free */
    bool paused;
    WB_VEC(struct wb_door_order) sites;
};

struct wb_control_door {
    int fd;               /* -1: there is no door */
    struct event *listener;
    struct wb_door_guest guests[WB_DOOR_GUESTS_MAX];
    struct wb_crawl_orders *orders; /* those of the options, or our own */
    struct wb_door_sample samples[WB_DOOR_SAMPLES];
    unsigned sample_count; /* taken so far; they are kept in a ring */
};

/* Opens the door. A crawl that has none can still be run, so nothing but a lack of memory is an error. */
int wb_control_door_open(struct wb_parent *parent);

/* Also ends the wait of sites that were stopped, so that the next crawl can continue with them. */
void wb_control_door_close(struct wb_parent *parent);

/* In a process that was just forked: closes what belongs to the parent, so that the door vanishes with the parent. */
void wb_control_door_forget(struct wb_parent *parent);

/* Notes once per second what was done, for rates. */
void wb_control_door_sample(struct wb_parent *parent);

/* ---- one class of sites (classes.c) ------------------------------------------------------------------------------ */

struct wb_class_plans WB_VEC_OF(struct wb_site_plan);

/* WB_E_NOTFOUND if neither these seeds nor the dispenser define the class of the options. */
int wb_classes_check(const struct wb_crawl_options *o, const struct wb_seeds *seeds);

/* Tells the scope which sites are of its class, if it has one, and seals it. */
int wb_classes_seal(struct wb_dispenser *dispenser, struct wb_scope *scope);

/* The seeds that are of the class, and the unfinished sites of the class that join them. They borrow from both. */
int wb_classes_plan(struct wb_dispenser *dispenser, const struct wb_scope *scope, const struct wb_seeds *seeds,
                    struct wb_arena *names, struct wb_class_plans *plans_out);

/* ---- the parent -------------------------------------------------------------------------------------------------- */

#define WB_PARENT_MAGIC 0x57425041u

struct wb_parent {
    uint32_t magic; /* WB_PARENT_MAGIC while wb_crawl() is at work */
    struct wb_crawl_plan plan;
    const struct wb_crawl_sink *sink;
    struct wb_dispenser *dispenser; /* closed while a worker is forked */
    struct event_base *base;
    struct event *tick;
    struct wb_error_copy failed;    /* code < 0: the error that ends the crawl */

    struct wb_crew crew;
    struct wb_resolver resolver;
    struct wb_control_door door;

    /* The log of fetches. */
    struct wb_teller *teller;
    struct wb_lines *lines;    /* the parent's own lines; NULL: nobody reads the log */
    char own_name[64];         /* of that file */
    uint64_t lines_left;       /* that were not read when the crawl ended */
    bool reader_failed;        /* standard output or the file of --log */

    /* The run. */
    struct wb_dispenser_stat sites; /* as last counted */
    int64_t began_ms, counted_ms, shown_ms;
    unsigned recoveries;       /* of dead crawls, since this one began */
    unsigned quiet_ticks;      /* for so many ticks nothing may be asked for any more, and nothing was under way */
    bool idle;                 /* none of the seeds is of the class: there is nothing to do */
    bool stopping;             /* workers were told to end */
    int64_t stopping_ms;       /* since when */
};

/* Runs the event loop until all workers have ended, then passes the rest of the log on. The workers are started. */
int wb_parent_run(struct wb_parent *parent);

void wb_parent_warn(struct wb_parent *parent, const char *message);

/* Ends the crawl after an error. The first one counts. */
void wb_parent_fail(struct wb_parent *parent, int err);
void wb_parent_stat(const struct wb_parent *parent, struct wb_crawl_stat *stat_out);

/* Adds a line of the parent's own to the log. */
int wb_parent_line(struct wb_parent *parent, struct wb_slice line);

#endif
