/*
 * tally.h - numbers that the processes of a crawl share, in memory that all of them map: what was done, what is under
 * way, and the flag that ends the run. Also one number that outlives the crawl, in a file.
 *
 * Every field is atomic by itself. No two of them are promised to agree at any moment except the end of the crawl.
 */
#ifndef WB_CRAWL_TALLY_H
#define WB_CRAWL_TALLY_H

#include "fetch/fetch.h"
#include "os/file.h"

#include <stdatomic.h>
#include <stdbool.h>

#define WB_TALLY_WORKERS_MAX 64

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Reasons why a request ends without a page, in addition to the fetch room's errors. */
#define WB_CRAWL_ERRORS(X)            \
    X(WB_CRAWL_STATUS, "status")      \
    X(WB_CRAWL_REDIRECTS, "redirects") \
    X(WB_CRAWL_LOCATION, "location")  \
    X(WB_CRAWL_DNS, "dns")            \
    X(WB_CRAWL_PRIVATE, "private")    \
    X(WB_CRAWL_STORE, "store")

/* Continues enum wb_fetch_error, so that one int can hold either. */
enum wb_crawl_error {
    WB_CRAWL_FIRST = WB_FETCH_OTHER,
#define WB_CRAWL_ERROR_ENUM(name, word) name,
    WB_CRAWL_ERRORS(WB_CRAWL_ERROR_ENUM)
#undef WB_CRAWL_ERROR_ENUM
    WB_CRAWL_ERROR_COUNT,
};

/* The word for an error in the log: of this table or the fetch room's. */
const char *wb_crawl_error_word(int error);

/* ---- orders of an operator --------------------------------------------------------------------------------------- */

/*
 * What an operator has told the crawl to do (`webbase control`): pause, stop a site, slow a site down.
 *
 *   controldoor.c (parent)  --writes-->  struct wb_tally_orders  --reads-->  dispatch.c (every worker)
 *
 * Only the parent writes. `changes` counts up after each order, so that a worker looks at the list only if there is
 * something new in it. A worker that takes the place of a dead one finds the orders here.
 */
#define WB_TALLY_ORDERS_MAX 1024

/* Why the dispenser says that a stopped site waits. The next crawl recognises such sites by it. */
#define WB_TALLY_STOPPED "stopped by webbase control"

/* What one site was told. */
struct wb_tally_order {
    atomic_ullong site;    /* wb_edit_site() of its name */
    atomic_bool stopped;
    atomic_llong delay_ms; /* the least time between two of its requests; 0: none was given */
};

struct wb_tally_orders {
    atomic_bool paused;    /* no worker begins a request */
    atomic_uint changes;
    atomic_uint count;
    struct wb_tally_order items[WB_TALLY_ORDERS_MAX];
};

/* What a site was told; NULL: nothing. */
const struct wb_tally_order *wb_tally_order_find(const struct wb_tally_orders *orders, uint64_t site);

/* Each gives an order to a site. WB_E_LIMIT if too many other sites were told something before. */
int wb_tally_order_stop(struct wb_tally_orders *orders, uint64_t site);
int wb_tally_order_delay(struct wb_tally_orders *orders, uint64_t site, int64_t delay_ms);

/* ---- the tally --------------------------------------------------------------------------------------------------- */

/* What a worker is doing. If it dies, the parent reads here what to blame (crew.c). */
enum wb_tally_stage {
    WB_STAGE_NONE,    /* several things at once, or nothing */
    WB_STAGE_SENT,    /* one request is under way, and no other */
    WB_STAGE_READING, /* an answer is being read and stored */
    WB_STAGE_OPENING, /* the history of a site is being restored */
};

/* One worker's part: it writes, the parent reads. */
struct wb_tally_worker {
    atomic_uint sites;      /* held */
    atomic_uint waiting;    /* of these, without a request under way */
    atomic_uint in_flight;
    atomic_ullong queued;   /* URLs in the queues of its sites */
    atomic_uint reserved;   /* its requests that count towards --max-pages; given back if it dies */
    atomic_bool idle;       /* it holds no site, has nothing to commit, and found nothing to claim */
    atomic_bool careful;    /* set by the parent: make one request at a time */
    atomic_uint stage;      /* enum wb_tally_stage */
    atomic_ullong subject;  /* wb_tally_subject() of the stage's URL; for WB_STAGE_OPENING the id of the site */
};

#define WB_TALLY_BAD_MAX 256

struct wb_tally {
    atomic_bool stop;           /* the run is over: workers end cleanly */
    atomic_bool files_told;     /* a worker has warned that file descriptors are short */
    atomic_uint claimable;      /* counts up whenever somebody makes a site claimable */
    atomic_ullong sites_open;   /* sites of the run that are not finished, as last counted by the parent */
    atomic_ullong reserved;     /* pages stored or being fetched, if --max-pages limits them */
    atomic_ullong fetches;      /* requests for pages; for a fetch list, of its whole run. Never goes down */
    atomic_ullong pages, bytes, wire_bytes, requests, unchanged, redirects, duplicates, gone, robots, skipped, known;
    atomic_ullong module_errors;
    atomic_ullong errors[WB_CRAWL_ERROR_COUNT];
    atomic_ullong commits;                  /* that made something durable */
    atomic_uint bad_count;
    atomic_ullong bad[WB_TALLY_BAD_MAX];    /* URLs whose answers ended workers: they are not requested again */
    struct wb_tally_orders orders;          /* of an operator */
    struct wb_fetch_pace pace;              /* --max-rate, for all workers together */
    struct wb_tally_worker workers[WB_TALLY_WORKERS_MAX];
};

/* Maps memory that processes forked from now on share. NULL: out of memory. */
struct wb_tally *wb_tally_new(void);
void wb_tally_free(struct wb_tally *tally);

/* A number that stands for a URL. */
uint64_t wb_tally_subject(struct wb_slice url);

/* Marks a URL as bad. Only the parent does so; when the list is full, nothing more is remembered. */
void wb_tally_blame(struct wb_tally *tally, uint64_t subject);
bool wb_tally_is_bad(const struct wb_tally *tally, uint64_t subject);

static inline void wb_tally_doing(struct wb_tally_worker *worker, enum wb_tally_stage stage, uint64_t subject)
{
    atomic_store_explicit(&worker->subject, subject, memory_order_relaxed);
    atomic_store_explicit(&worker->stage, stage, memory_order_relaxed);
}

static inline void wb_tally_add(atomic_ullong *count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

/* ---- requests of a fetch list's run, which outlive kill -9 ------------------------------------------------------- */

/*
 * Opens the count of a run, or creates it, and removes the counts of other runs. Processes that are forked later share
 * the file. WB_E_BUSY: another crawl of the same run is at work.
 */
int wb_tally_open_fetches(const char *dir, int64_t run, struct wb_file *file_out, uint64_t *count_out);

/*
 * Counts one more request for a page, before it is made: in the tally, and in the file if it is open. What is counted
 * stays counted, whatever comes of the request. 1: counted, 0: max (0: no limit) is reached, or an error.
 */
int wb_tally_count_fetch(struct wb_tally *tally, uint64_t max, const struct wb_file *file);

#endif
