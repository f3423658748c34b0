/*
 * tally.h - numbers that the processes of a crawl share, in memory that they all map: what was
 * done, what is under way, and the flag that ends the run. Every field is atomic by itself; no
 * two of them are promised to agree at any moment but the end.
 */
#ifndef WB_CRAWL_TALLY_H
#define WB_CRAWL_TALLY_H

#include "fetch/fetch.h"

#include <stdatomic.h>

#define WB_TALLY_WORKERS_MAX 64

/* Beside fetch errors: the other reasons that end a request without a page. */
#define WB_CRAWL_ERRORS(X)            \
    X(WB_CRAWL_STATUS, "status")      \
    X(WB_CRAWL_REDIRECTS, "redirects") \
    X(WB_CRAWL_LOCATION, "location")  \
    X(WB_CRAWL_DNS, "dns")            \
    X(WB_CRAWL_PRIVATE, "private")    \
    X(WB_CRAWL_STORE, "store")

enum wb_crawl_error {
    WB_CRAWL_FIRST = WB_FETCH_OTHER,
#define WB_CRAWL_ERROR_ENUM(name, word) name,
    WB_CRAWL_ERRORS(WB_CRAWL_ERROR_ENUM)
#undef WB_CRAWL_ERROR_ENUM
    WB_CRAWL_ERROR_COUNT,
};

const char *wb_crawl_error_word(int error);

struct wb_tally_worker {
    atomic_uint sites;      /* held */
    atomic_uint waiting;    /* of these, for a clock */
    atomic_uint in_flight;
    atomic_uint reserved;   /* pages being fetched that count towards a limit: given back when it dies */
    atomic_bool idle;       /* it holds nothing, has nothing to commit and found nothing to claim */
    /* What it is doing, so that its parent knows what to blame when it dies. */
    atomic_uint stage;      /* enum wb_tally_stage */
    atomic_bool careful;    /* one request at a time */
    atomic_ullong subject;  /* wb_tally_subject() of a URL; of WB_STAGE_OPENING the id of the site */
};

enum wb_tally_stage {
    WB_STAGE_NONE,
    WB_STAGE_SENT,    /* the only request under way */
    WB_STAGE_READING, /* what came is read and stored */
    WB_STAGE_OPENING, /* the history of a site is restored */
};

#define WB_TALLY_BAD_MAX 256

struct wb_tally {
    atomic_bool stop;           /* the run is over: end cleanly */
    atomic_bool files_told;     /* a process said that file descriptors are short */
    atomic_uint claimable;      /* moves whenever somebody made a site claimable */
    atomic_ullong sites_open;   /* of the run, as last counted by the parent */
    atomic_ullong reserved;     /* pages stored or being fetched, where their number is limited */
    atomic_ullong fetches;      /* requests for pages, of the whole run where it is a list's; never taken back */
    atomic_ullong pages, bytes, wire_bytes, requests, unchanged, redirects, duplicates, gone, robots, skipped, known;
    atomic_ullong errors[WB_CRAWL_ERROR_COUNT];
    atomic_ullong commits;                  /* that made something durable */
    atomic_uint bad_count;
    atomic_ullong bad[WB_TALLY_BAD_MAX];    /* URLs whose answers ended processes: they are not read again */
    struct wb_tally_worker workers[WB_TALLY_WORKERS_MAX];
};

/* Shared with the processes that are forked from now on. NULL: out of memory. */
struct wb_tally *wb_tally_new(void);
void wb_tally_free(struct wb_tally *tally);

uint64_t wb_tally_subject(struct wb_slice url);
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

#endif
