/*
 * tally.h - numbers that the processes of a crawl share, in memory that they all map: what was
 * done, what is under way, and the flag that ends the run. Every field is atomic by itself; no
 * two of them are promised to agree at any moment but the end.
 */
#ifndef WB_CRAWL_TALLY_H
#define WB_CRAWL_TALLY_H

#include "crawl/fetch.h"

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
};

struct wb_tally {
    atomic_bool stop;           /* the run is over: end cleanly */
    atomic_bool files_told;     /* a process said that file descriptors are short */
    atomic_uint claimable;      /* moves whenever somebody made a site claimable */
    atomic_ullong sites_open;   /* of the run, as last counted by the parent */
    atomic_ullong reserved;     /* pages stored or being fetched, where their number is limited */
    atomic_ullong fetches;      /* requests for pages, of the whole run where it is a list's; never taken back */
    atomic_ullong pages, bytes, wire_bytes, requests, unchanged, redirects, duplicates, gone, robots, skipped, known;
    atomic_ullong errors[WB_CRAWL_ERROR_COUNT];
    struct wb_tally_worker workers[WB_TALLY_WORKERS_MAX];
};

/* Shared with the processes that are forked from now on. NULL: out of memory. */
struct wb_tally *wb_tally_new(void);
void wb_tally_free(struct wb_tally *tally);

static inline void wb_tally_add(atomic_ullong *count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

#endif
