/*
 * worker.h - one crawler process: an event loop over the sites that it holds. Shared by its files:
 *
 *   worker.c     begin, loop and end; claiming, committing, renewing leases
 *   dispatch.c   which request a site that is due makes
 *   visit.c      a site's visit: begun, restored from the journal, finished, released
 *   rules.c      robots.txt, its redirects and favours
 *   arrivals.c   pages that came, held for a moment to be digested together
 *   pagework.c   the outcome of a request for a page
 *   pagefacts.c  what the journal is told of its content and links
 *   links.c      which URLs enter a queue; links to other sites
 *   webknown.c   what webdb knows of them
 *   eventlog.c   lines for the log of fetches
 */
#ifndef WB_CRAWL_WORKER_H
#define WB_CRAWL_WORKER_H

#include "base/date.h"
#include "base/error.h"
#include "crawl/crawl.h"
#include "fetch/fetch.h"
#include "crawl/frontier.h"
#include "crawl/scope.h"
#include "crawl/spool.h"
#include "crawl/tally.h"
#include "os/file.h"
#include "page/page.h"
#include "store/store.h"

struct event;
struct event_base;

enum {
    WB_PATIENCE_MS = 60 * 1000,       /* a site that must wait longer is left for another run */
    WB_BACK_OFF_FIRST_MS = 2000,
    WB_RULES_LIFE_MS = WB_DAY_MS,
    WB_RULES_HOPS_MAX = 5,
    WB_PAGE_HOPS_MAX = 10,
    WB_PAGE_TRIES_MAX = 2,
    WB_REFUSED_TRIES_MAX = 3,         /* of a page that says 429 or 503 */
    WB_SITEMAPS_MAX = 500,            /* of a site in a visit */
};

/* What all processes of a run agree on. */
struct wb_crawl_plan {
    const struct wb_crawl_options *options; /* complete: defaults filled in */
    struct wb_scope scope;
    struct wb_tally *tally;
    int64_t run;
    int64_t goes_on;        /* the run that did not come to its end and is gone on with; 0: none */
    struct wb_file fetches; /* where requests of a list's run are counted; not open: nowhere */
    struct wb_slice agent;  /* the robots token */
    char home[40];          /* names the repository to others who share its dispenser */
    const char *owner;      /* of the process that is being started: its leases, spool and lines */
    struct wb_lines *lines; /* where that process puts the log of fetches; NULL: nobody wants it */
};

/* Links to other sites, on their way to the dispenser (links.c). */
struct wb_outbox {
    struct wb_buf text;          /* names and URLs, one after the other */
    struct wb_outbox_entry *entries;
    size_t count, cap;
    struct wb_seen sent;         /* URLs that this process sent before */
};

/* A site's report that waits for the next commit (visit.c). */
struct wb_worker_report;

/* A request under way. */
struct wb_errand {
    struct wb_worker *worker;
    struct wb_site *site;
    struct wb_favour *favour; /* where it is one */
    bool rules;               /* for robots.txt */
    struct wb_item item;      /* its path lies in url */
    struct wb_buf url;
    struct wb_pageid id;
    struct wb_buf key;
    bool reserved;            /* counts towards --max-pages */
    /* of the version that we have */
    bool known;
    uint8_t md5[WB_MD5_BYTES];
    /* of the body that came, where it was digested with others (arrivals.c) */
    bool digested;
    uint8_t body_md5[WB_MD5_BYTES], body_sha1[WB_SHA1_BYTES];
    struct wb_buf head;       /* of the response, while it is held */
    struct wb_errand *next_free;
};

/* A page that came and waits for others. */
struct wb_arrival {
    struct wb_errand *errand;
    struct wb_fetch_result result; /* its body is owned, its head lies in the errand */
};

#define WB_ARRIVALS_MAX 8

#define WB_RECENT_LINKS (1u << 15)

struct wb_worker {
    const struct wb_crawl_plan *plan;
    struct wb_tally *tally;
    struct wb_tally_worker *mine;
    unsigned number;
    char owner[64];
    int events_fd;
    int parent;                 /* its process id */
    struct event_base *base;
    struct event *tick, *due;
    struct wb_dispenser *dispenser;
    struct wb_store *store;
    struct wb_webdb *webdb;     /* NULL: there is none */
    struct wb_journal_writer *journal;
    struct wb_journal_reader *history;
    struct wb_spool *spool;
    struct wb_spill *spill;
    struct wb_fetcher *fetcher;
    struct wb_dns *dns;
    struct wb_pagefacts facts;
    struct wb_frontier frontier;
    struct wb_seen contents;    /* digests of bodies, to know copies */
    struct wb_outbox outbox;
    struct wb_site *sites;      /* all that are held */
    unsigned site_count;
    struct wb_site **by_name;   /* the same, by hash */
    size_t by_name_cap;
    struct wb_worker_report *reports;
    size_t report_count, report_cap;
    struct wb_favour *stuck;    /* favours of sites that other processes hold */
    struct wb_errand *free_errands;
    struct wb_arrival arrivals[WB_ARRIVALS_MAX];
    unsigned arrival_count;
    struct event *arrivals_due;
    bool taking;                /* they are being looked at */
    bool unflushed;             /* the journal has records that must be in the kernel's hands before a request goes out */
    int64_t uncommitted_ms;     /* since when there is something to commit; 0: nothing */
    uint64_t uncommitted_pages, uncommitted_bytes;
    int64_t renewed_ms, claimed_ms, stuck_ms, ticked_ms, told_ms, stopping_ms;
    int64_t news_ms;            /* when the tally's claimable last moved, as far as we saw */
    unsigned claimable_seen;
    unsigned claimable;         /* the tally's, when we last claimed */
    bool claim_again;           /* the last claim was given all it asked for */
    bool dispatching, stopping;
    bool few_files;             /* there are file descriptors for fewer connections than were wanted */
    bool lost;                  /* its leases ended while it slept */
    struct wb_error_copy failed; /* code < 0: what ended the work */
    struct wb_buf lines;         /* of the log, until the commit; also in the spool */
    struct wb_buf key, url_text, item_mem, link_mem, old_mem, known_mem, media_mem;
    struct wb_url url, base_url, target;
    uint64_t recent[WB_RECENT_LINKS]; /* links that were decided a moment ago (links.c) */
};

/* Runs until the run is over. Returns the process's exit status: 0, 1 or WB_WORKER_LOST, after which another one should be started. */
#define WB_WORKER_LOST 3
int wb_worker_run(const struct wb_crawl_plan *plan, unsigned number, int events_fd);

/* The process's clock (os/clock.h): everything that waits goes by it. */
int64_t wb_worker_now(const struct wb_worker *w);

/* It was stopped for so long that its leases may be over: nothing may be sent before the next tick has looked. */
bool wb_worker_slept(const struct wb_worker *w);

/* Something that ends the work of this process: a full disk, a lost dispenser. */
void wb_worker_fail(struct wb_worker *w, int err);

/* There is something to commit. */
void wb_worker_dirty(struct wb_worker *w);

struct wb_site *wb_worker_site(const struct wb_worker *w, struct wb_slice name);
int wb_worker_hold(struct wb_worker *w, struct wb_site *site);
void wb_worker_drop(struct wb_worker *w, struct wb_site *site);

/* Why an address is not contacted, or NULL. */
const char *wb_worker_refuses(const struct wb_worker *w, const struct wb_address *address);

/* ---- dispatch.c ------------------------------------------------------------------------------ */

/* Starts what is due. */
void wb_dispatch(struct wb_worker *w);

/* Stops requests that hold the slots of an address for long while others wait for them. */
void wb_dispatch_make_way(struct wb_worker *w);

/* The site has something to do (or is over), at its next_ms. */
void wb_dispatch_later(struct wb_worker *w, struct wb_site *site);

struct wb_errand *wb_errand_new(struct wb_worker *w, struct wb_site *site);
void wb_errand_free(struct wb_errand *errand);

/* Sends it: the clock is in the journal before the request is on the wire. */
void wb_errand_send(struct wb_errand *errand, const struct wb_fetch_request *request);

/* ---- visit.c ----------------------------------------------------------------------------------- */

/* A site was claimed: restores or begins its visit and puts it into the frontier. */
int wb_visit_open(struct wb_worker *w, struct wb_site *site);

/* Seeds that the dispenser has and the visit has not taken yet; how many. */
int wb_visit_seeds(struct wb_worker *w, struct wb_site *site, uint64_t *count_out);

/* What came of the root page: seeds below it that wait are entered only where it cannot be had. */
int wb_visit_root(struct wb_worker *w, struct wb_site *site, bool reachable);

/* It is over (DONE, ALIAS, REFUSED), must wait (WAITING) or goes on in another run (READY). Frees the site. */
void wb_visit_close(struct wb_worker *w, struct wb_site *site, enum wb_site_state state, const char *reason, const char *alias_of);

/* The whole site is left alone, longer each time or until told (0: not told). May close it. */
void wb_visit_back_off(struct wb_worker *w, struct wb_site *site, int64_t until_ms, const char *reason);

/* The name of a site with the same probe that was closed and not told to the dispenser yet; NULL: none. */
const char *wb_visit_closed_twin(const struct wb_worker *w, const struct wb_site *site);

/* Tells the dispenser what was closed; keep: also of the sites that are still held. */
int wb_visit_report(struct wb_worker *w, bool keep);

/* Appends to the site's chain. */
int wb_visit_note(struct wb_worker *w, struct wb_site *site, struct wb_edit *edit);

/* ---- rules.c ------------------------------------------------------------------------------------ */

void wb_rules_ask(struct wb_worker *w, struct wb_site *site);
void wb_rules_done(struct wb_errand *errand, struct wb_fetch_result *result);

/* Takes over remembered rules. */
int wb_rules_restore(struct wb_worker *w, struct wb_site *site, const struct wb_edit_rules *rules);

/* The next favour of a site, if there is one: true where a request was made (or the site closed). */
bool wb_favour_next(struct wb_worker *w, struct wb_site *site);
void wb_favours_stuck(struct wb_worker *w);
void wb_favours_drop(struct wb_worker *w);

/* Favours of a site that is being closed wait for the next who holds it. */
void wb_favours_pass_on(struct wb_worker *w, struct wb_site *site);

/* The address of a site with favours cannot be had: they fail. */
void wb_favours_fail(struct wb_worker *w, struct wb_site *site, const char *reason);

/* ---- arrivals.c --------------------------------------------------------------------------------------- */

/* Keeps a page for later, with its body, if nothing depends on it now. False: it must be looked at now. */
bool wb_arrival_hold(struct wb_errand *errand, struct wb_fetch_result *result);

/* Looks at all that are held. */
void wb_arrivals_take(struct wb_worker *w);

/* Forgets them: the process ends in an error. */
void wb_arrivals_drop(struct wb_worker *w);

/* ---- pagework.c ------------------------------------------------------------------------------------ */

void wb_page_done(struct wb_errand *errand, struct wb_fetch_result *result);

/* Compares rules and root of a site with those of other names of its address. True where it is an alias, and closed. */
bool wb_page_alias(struct wb_worker *w, struct wb_site *site);

/* A page that robots.txt forbids is noted once a visit. */
int wb_page_refused(struct wb_errand *errand);

/* A page that is fresh enough not to be asked for: its links are followed all the same. */
int wb_page_reuse(struct wb_errand *errand, const struct wb_page *page);

/* ---- links.c --------------------------------------------------------------------------------------- */

enum wb_admit_flags {
    WB_ADMIT_FRONT = 1 << 0,   /* before everything else in the queue */
    WB_ADMIT_SEED = 1 << 1,    /* no guards */
    WB_ADMIT_QUIET = 1 << 2,   /* restored from the journal: nothing is told */
    WB_ADMIT_RETELL = 1 << 3,  /* but what leads to other sites, which may not have been told before the process died */
};

/* A URL of this site that was not known enters its queue. 1: it did, 0: it was known or a guard kept it out. */
int wb_admit(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, const struct wb_item *item, unsigned flags);

/*
 * A URL that was found, of whatever site: to the queue where it is of this site, to the outbox (or the queue of the other site) where
 * the scope allows it. w->target is used.
 */
int wb_links_follow(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const struct wb_item *item, unsigned flags);

int wb_outbox_flush(struct wb_worker *w);
void wb_outbox_release(struct wb_outbox *outbox);

/* ---- eventlog.c ---------------------------------------------------------------------------------------- */

struct wb_fetch_event {
    struct wb_slice url;
    const char *result;      /* "stored", "error:" is put before a word of the tables */
    const char *message;     /* NULL: none */
    uint16_t status;
    uint32_t ms;
    uint64_t bytes;
    int64_t time_ms;
    int error;               /* of the tables; 0: result says it all */
};
/* Appends it as a line of JSON. */
int wb_event_line(struct wb_buf *lines, const struct wb_fetch_event *event);
void wb_event_fetch(struct wb_worker *w, const struct wb_fetch_event *event);

/* The same with a page that is to be stored (NULL: none), which goes to the spool together with its line. */
int wb_event_page(struct wb_worker *w, const struct wb_fetch_event *event, const struct wb_page *page);

/* A URL that is not asked for, and why. */
void wb_event_skip(struct wb_worker *w, struct wb_slice url, const char *result);

/* What the lines tell of is durable: they may be passed on. */
int wb_event_release(struct wb_worker *w);
/* After a commit that left pages out because they were taken down meanwhile: the lines that wait for it must not say that they were stored. */
int wb_event_correct(struct wb_worker *w);
void wb_event_warn(struct wb_worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
