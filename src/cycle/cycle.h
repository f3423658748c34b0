/*
 * cycle.h - the door of cycle: the steps of the loop, and the loop itself.
 *
 *   generate -> crawl -> update -> expunge -> index -> compact        one cycle
 *
 *   generate   picks the pages that are worth a fetch now, and fills the seed dispenser with them
 *   crawl      fetches them (crawl/crawl.h)
 *   update     merges the journal into the next edition of webdb, and decides when each page is due again
 *   expunge    ends pages that have expired or are gone; their history stays
 *   index      builds the next generation of the index and swaps it in (index/index.h)
 *   compact    gives the space of versions that nobody keeps back
 *
 * A state file (DIR/cycle, docs/formats/cycle.md) names the current step, so that a run that was killed continues with
 * that step. Each step is also a function of its own. This room never fetches, merges or stores anything itself: it
 * decides what is done next, and when a page is due (cycle/refresh.h).
 */
#ifndef WB_CYCLE_CYCLE_H
#define WB_CYCLE_CYCLE_H

#include "crawl/crawl.h"
#include "cycle/pushlist.h"
#include "cycle/refresh.h"
#include "extract/extract.h"
#include "index/index.h"
#include "move/move.h"
#include "webdb/webdb.h"

/* Called during a step: `done` of `total` (0: unknown) of what `step` names. Return false to stop cleanly. */
typedef bool (*wb_cycle_progress)(void *context, const char *step, uint64_t done, uint64_t total);
typedef void (*wb_cycle_warn)(void *context, const char *message);

/* What a step reports while it works. Either function may be NULL. */
struct wb_cycle_sink {
    wb_cycle_progress progress;
    wb_cycle_warn warn;
    void *context;
};

/* ---- update ---------------------------------------------------------------------------------- */

struct wb_update_options {
    const char *dir;
    const char *dispenser; /* its URL; NULL: the one that the repository remembers */
    size_t memory_bytes;   /* 0: the default */
    unsigned threads;      /* 0: one for each processor */
    bool rebuild;          /* for a damaged webdb: build a new one from readable rows, stored pages and the journal */
};

/*
 * Merges the journal into the next edition of webdb, and removes the logs that are no longer needed. Then it adopts
 * stored pages that no journal mentions, and corrects rows of pages that are not stored after all. The edition records
 * which epoch of the store it has seen in full (wb_webdb_count.store_epoch).
 * *freed_out (may be NULL) is the number of bytes removed.
 */
int wb_update(const struct wb_update_options *options, const struct wb_cycle_sink *sink,
              struct wb_webdb_merge *merge_out, uint64_t *freed_out);

/* ---- generate -------------------------------------------------------------------------------- */

struct wb_generate_options {
    const char *dir;
    const char *dispenser;
    const char *seeds_file;    /* its sites and classes are added to the dispenser first; NULL: none */
    uint64_t budget;           /* the largest number of URLs to pick; 0: no limit */
    enum wb_refresh_policy policy;
    double min_days, max_days; /* shortest and longest interval, for sites without a class; 0: no bound */
    enum wb_scope_kind scope;  /* the sites that a crawl was given, their whole domains, or any site */
    int64_t horizon_ms;        /* time until the next generate: pages that expire before are must-visit; 0: a day */
    uint32_t depth_limit;      /* leave out pages that are this many links away from a seed, or more; 0: no limit */
    int64_t period_ms;         /* list no more pages of a site than its interval allows in this time; 0: no limit */
    int64_t delay_ms;          /* the interval between two requests to a site whose class does not set one */
    int64_t tried_ms;          /* leave out pages fetched since then, so that no page is in a cycle twice; 0: none */
    const char *class_name;    /* only pages of the sites of this class, as in struct wb_crawl_options */
    struct wb_crawl_types types; /* leave out pages that are of no such type by their names */
    int64_t now_ms;            /* 0: read the clock */
};

/* What generate did. */
struct wb_generate {
    int64_t run;                               /* the dispenser's run that was made; 0: nothing was picked */
    uint64_t known;                            /* pages in webdb */
    uint64_t urls, sites;                      /* picked */
    uint64_t pushed, expiring, fresh, due;     /* of these: announced, about to expire, never fetched, due again */
    uint64_t blocked, barred, trapped;         /* left out: by robots.txt, taken down, in a crawler trap */
    uint64_t outside, early;                   /* left out: out of scope or too deep, too soon after the last visit */
    double theta;                              /* the threshold that was learnt for the next cycle */
};

/* Fills the dispenser. WB_E_NOTFOUND if the repository has no webdb yet. */
int wb_generate(const struct wb_generate_options *options, const struct wb_cycle_sink *sink,
                struct wb_generate *generate_out);

/* ---- push ------------------------------------------------------------------------------------- */

struct wb_push_stat {
    uint64_t changed, gone;             /* announced */
    uint64_t refused;                   /* announcements that are not URLs; the first ones cause warnings */
    uint64_t pages;                     /* whole pages; of these... */
    uint64_t stored, unchanged, barred; /* ...new contents, known ones, and pages that were taken down */
};

/*
 * Does what lists say (cycle/pushlist.h): stores their pages, then journals their announcements, and makes both
 * durable. Several threads may apply lists at the same time. Finish before closing, so that the journal is complete.
 */
struct wb_pusher;
int wb_pusher_open(const char *dir, struct wb_pusher **pusher_out);
int wb_pusher_apply(struct wb_pusher *pusher, const struct wb_push_list *list, struct wb_push_stat *stat_out);
int wb_pusher_finish(struct wb_pusher *pusher);
void wb_pusher_close(struct wb_pusher *pusher); /* NULL is allowed */

/* Reads a file as a list, leaving out invalid announcements, and applies it. "-" is standard input. */
int wb_push(const char *dir, const char *file, const struct wb_cycle_sink *sink, struct wb_push_stat *stat_out);

/* ---- expunge ------------------------------------------------------------------------------------ */

struct wb_expunge_stat {
    uint64_t pages;     /* removed from the store */
    uint64_t known;     /* removed from webdb; they were never stored */
    uint64_t bytes;     /* of the bodies of the removed pages */
    uint64_t reprieved; /* expired, but the site could not be asked: they are kept for a while */
    uint64_t left;      /* could not be removed; there is a warning for each */
};

/* Called for each removed page. url is the page id if its URL is unknown. */
typedef void (*wb_expunge_each)(void *context, struct wb_slice url, const char *reason);

/*
 * Removes the pages that have expired or are gone from the web: from the store at once, and from webdb in the merge
 * with which this ends.
 */
int wb_expunge_expired(const struct wb_update_options *options, const struct wb_cycle_sink *sink, wb_expunge_each each,
                       void *context, struct wb_expunge_stat *stat_out);

/*
 * Takes down a URL or a site (HOST or HOST:PORT): removes it everywhere at once, and bars it from coming back, whether
 * or not anything about it is known. With allow, lifts the bar instead; WB_E_NOTFOUND if there was none.
 */
int wb_expunge(const struct wb_update_options *options, const char *what, bool allow, const struct wb_cycle_sink *sink,
               wb_expunge_each each, void *context, struct wb_expunge_stat *stat_out);

/*
 * Deletes one page: all its versions leave the store, and its row webdb. It is not barred, so a crawl or import that
 * comes across it brings it back; links to it stay. WB_E_NOTFOUND if neither webdb nor the store knows the URL.
 * *bytes_out: of its body; 0 if nothing was stored.
 */
int wb_delete(const struct wb_update_options *options, const char *url, const struct wb_cycle_sink *sink,
              uint64_t *bytes_out);

/* ---- index --------------------------------------------------------------------------------------- */

/*
 * Merges the journal, as wb_update() does, and builds the next generation; with if_changed, only if there is anything
 * new. Of the options of the index, only these, index_dir, from_scratch, serial and the columns need to be set.
 */
int wb_cycle_index(const struct wb_update_options *update, const struct wb_index_options *options,
                   const struct wb_cycle_sink *sink, struct wb_index_result *result_out);

/* ---- convert -------------------------------------------------------------------------------------- */

/*
 * Copies a repository into a new one of another design: all that the store has (wb_move_convert), the newest edition
 * of webdb, and the journal. Indexes, streams and the state of crawls are not copied. lost() is called for each version
 * that cannot be read, with the URL of its page as webdb knows it; empty if it does not. lost may be NULL.
 */
typedef void (*wb_convert_lost)(void *context, struct wb_slice url, const struct wb_move_lost *lost);
int wb_convert(const char *from, const char *to, const struct wb_store_options *options,
               const struct wb_cycle_sink *sink, wb_convert_lost lost, struct wb_move_convert_counts *counts_out);

/* ---- run ------------------------------------------------------------------------------------------ */

enum wb_cycle_step {
    WB_CYCLE_REST, /* between two cycles */
    WB_CYCLE_GENERATE,
    WB_CYCLE_CRAWL,
    WB_CYCLE_UPDATE,
    WB_CYCLE_EXPUNGE,
    WB_CYCLE_INDEX,
    WB_CYCLE_COMPACT,
};
const char *wb_cycle_step_word(enum wb_cycle_step step);

struct wb_cycle_options {
    struct wb_crawl_options crawl;
    struct wb_generate_options generate; /* dir, dispenser, seeds_file and scope are taken from crawl */
    uint64_t cycles;                     /* how many; 0: run forever */
    int64_t every_ms;                    /* from the start of one cycle to the start of the next */
    size_t memory_bytes;
};

/* The current cycle, or the last one if the loop rests, as the state file describes it. */
struct wb_cycle_status {
    bool running;              /* a process is running the loop now */
    uint64_t cycle;            /* its number, from 1; 0: there has been none */
    enum wb_cycle_step step;
    int64_t began_ms, step_ms; /* when the cycle and the step started */
    int64_t next_ms;           /* REST: when the next cycle starts */
    int64_t run;               /* of the dispenser */
    uint64_t budget;
    uint64_t listed;           /* URLs that generate picked */
    uint64_t fetched;          /* requests for pages so far */
    uint64_t stored, unchanged, gone, errors, expunged;
    double theta;
    char last_error[256];      /* why the last run ended, if it was an error */
};

/* WB_E_NOTFOUND if no cycle was ever started in this repository. */
int wb_cycle_status(const char *dir, struct wb_cycle_status *status_out);

/* Called at the end of each cycle. */
typedef void (*wb_cycle_each)(void *context, const struct wb_cycle_status *status);

/*
 * Runs the loop, starting with the unfinished step of an earlier run if there is one. WB_E_BUSY if another process runs
 * the loop in this repository; WB_E_STOPPED after a signal, with nothing lost.
 */
int wb_cycle_run(const struct wb_cycle_options *options, const struct wb_crawl_sink *crawl_sink,
                 const struct wb_cycle_sink *sink, wb_cycle_each each, void *context);

/* ---- modules that a repository remembers (modulefile.c) ------------------------------------------ */

#define WB_MODULE_TIME_MAX_S 3600u
#define WB_MODULE_MEMORY_MIN ((uint64_t)16000000)
#define WB_MODULE_LIMITS {10, (uint64_t)512 << 20} /* unless given */

struct wb_module_entry {
    struct wb_extract_module module;
    uint64_t pages, errors;             /* that crawls and imports gave it, and those that ended in an error */
    uint64_t index_pages, index_errors; /* the same for the index */
};

struct wb_modules {
    struct wb_extract_limits limits;
    WB_VEC(struct wb_module_entry) items;
};

/* A repository without the file remembers none. Release the set even if this fails. */
int wb_modules_read(const char *dir, struct wb_modules *set_out);
int wb_modules_write(const char *dir, const struct wb_modules *set);
void wb_modules_release(struct wb_modules *set);

/* Adds a module, or takes its file, argument and types if there is one of this name. */
int wb_modules_set(struct wb_modules *set, const struct wb_extract_module *module);

#endif
