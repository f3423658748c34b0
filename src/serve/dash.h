/*
 * dash.h - private to serve: what the server and its repository do, one sample every second.
 *
 * One thread takes the samples, with handles of its own, so that a crawl that does not answer or a slow disk delays
 * nobody. If counting a large repository takes long, it is counted less often, and samples repeat the last counts.
 * The last hour stays in memory as it was sampled; the chronicle (chronicle.h) keeps years.
 */
#ifndef WB_SERVE_DASH_H
#define WB_SERVE_DASH_H

#include "serve/chronicle.h"
#include "serve/server.h"

enum { WB_DASH_INTERVAL_MS = 1000, WB_DASH_SAMPLES = 3600 };

/*
 * Which number of a sample, and of a record of the chronicle: there the order is part of the format, so new ones go to
 * the end. dash_numbers.c describes them.
 */
enum wb_dash_number {
    WB_DASH_PAGES,
    WB_DASH_CAPTURES,
    WB_DASH_SITES,
    WB_DASH_PAGE_BYTES,
    WB_DASH_STORED_BYTES,
    WB_DASH_DEAD_BYTES,
    WB_DASH_KNOWN,
    WB_DASH_UNMERGED,
    WB_DASH_GENERATION,
    WB_DASH_FRESHNESS, /* 0 to 1: the share of pages that are expected to be as stored */
    WB_DASH_AGE,       /* days since pages were last seen, on average */
    WB_DASH_REQUESTS,  /* answered since the start of the server */
    WB_DASH_FAILED,    /* of these, with a status from 500 */
    WB_DASH_CONNECTIONS,
    WB_DASH_STREAMS,
    WB_DASH_CRAWLS, /* running crawls; the following are sums over them */
    WB_DASH_CRAWL_PAGES,
    WB_DASH_CRAWL_REQUESTS,
    WB_DASH_CRAWL_BYTES,
    WB_DASH_CRAWL_ERRORS,
    WB_DASH_CRAWL_ACTIVE,  /* sites */
    WB_DASH_CRAWL_WAITING, /* of these, sites that wait */
    WB_DASH_CRAWL_QUEUED,  /* URLs */
    WB_DASH_CRAWL_FLYING,  /* requests under way */
    WB_DASH_CRAWL_UNCHANGED,
    WB_DASH_CRAWL_GONE,
    WB_DASH_ARRIVED,   /* captures, as something that is counted */
    WB_DASH_DISK_FREE, /* where the repository is */
    WB_DASH_NUMBERS,
};

_Static_assert((int)WB_DASH_NUMBERS <= (int)WB_CHRONICLE_NUMBERS, "a record has room for all numbers");

/* What a number is. */
struct wb_dash_about {
    const char *name, *unit; /* unit: "", "bytes", "share" (0 to 1), "days" */
    bool counted;            /* it only grows: what matters is by how much (chronicle.h) */
    const char *text;
};
extern const struct wb_dash_about wb_dash_numbers[WB_DASH_NUMBERS];

/* The number of that name; WB_DASH_NUMBERS: there is none. */
enum wb_dash_number wb_dash_number_find(struct wb_slice name);

/* NaN: unknown. */
struct wb_dash_sample {
    int64_t time_ms;
    double numbers[WB_DASH_NUMBERS];
};

struct wb_dash;
int wb_dash_start(struct wb_server *server, struct wb_dash **dash_out);

/* Waits for the thread. NULL is fine. */
void wb_dash_stop(struct wb_dash *dash);

/* Calls each() with the samples after a time, oldest first. each() must be quick: the samples are locked. */
int wb_dash_each(struct wb_dash *dash, int64_t after_ms,
                 int (*each)(void *context, const struct wb_dash_sample *sample), void *context);

/* Appends what the running crawls said last, one JSON object per line. */
int wb_dash_crawls(struct wb_dash *dash, struct wb_buf *out);

/* What was before, and where it comes from. */
struct wb_chronicle *wb_dash_chronicle(struct wb_dash *dash);

/* The newest sample, and how much counters grew in the seconds before it. False: there is none yet. */
struct wb_dash_now {
    struct wb_dash_sample sample;
    double span_s; /* 0: only one sample */
    double growth[WB_DASH_NUMBERS];
};
bool wb_dash_now(struct wb_dash *dash, struct wb_dash_now *now_out);

/* ---- freshness (dash_fresh.c) ------------------------------------------------------------------------------------ */

/* A random choice of the fetched pages of one edition, from which freshness and age are estimated. */
struct wb_dash_fresh;
int wb_dash_fresh_new(struct wb_dash_fresh **fresh_out);
void wb_dash_fresh_free(struct wb_dash_fresh *fresh);

/* Chooses again if there is a new edition. It is not an error if there is none at all. */
int wb_dash_fresh_read(struct wb_dash_fresh *fresh, const char *dir);

/* Both are NaN if nothing is known. */
void wb_dash_fresh_now(const struct wb_dash_fresh *fresh, int64_t now_ms, double *freshness_out, double *age_days_out);

#endif
