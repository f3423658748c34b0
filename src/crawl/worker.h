/*
 * worker.h - one worker process of a crawl: an event loop over the sites that it holds. Private to the worker's files.
 *
 * A page on its way through a worker:
 *
 *   1 claim     worker.c claims sites from the dispenser. visit.c begins or resumes the visit of each; restore.c
 *               rebuilds its queue from the journal.
 *   2 turn      frontier.c says which site is due. dispatch.c decides what that site asks for: its address (names.c),
 *               its robots.txt (rules.c), or the next URL of its queue that is allowed.
 *   3 wire      errand.c notes the request in the journal and hands it to the fetch room. The answer comes back
 *               through the event loop. errand.c may hold it for 3 ms, to digest several pages together.
 *   4 outcome   pagework.c decides what the answer means: a page, a redirect, an error, a sitemap, a reason to wait.
 *   5 content   pagekeep.c extracts links and facts, gives the page to the store (in memory), gives the page and its
 *               line of the log (eventlog.c) to the spool (spool.h), and then its facts and links to the journal.
 *   6 links     links.c puts each new URL into a queue of this worker, or sends it to the dispenser for other sites.
 *   7 commit    worker.c, every few seconds: links to the dispenser, store committed, journal synced, lines of the
 *               log released (lines.h), spool emptied, finished sites reported to the dispenser (visit.c).
 *
 * From step 5 on kill -9 loses nothing: the spool has the page, the journal has its facts, and recover.c brings both
 * together. From step 7 on power loss loses nothing either.
 *
 * A function that needs most of a worker takes struct wb_worker; one that needs a part takes that part. The comment on
 * each part says which file changes it.
 */
#ifndef WB_CRAWL_WORKER_H
#define WB_CRAWL_WORKER_H

#include "base/error.h"
#include "base/vec.h"
#include "crawl/crawl.h"
#include "crawl/frontier.h"
#include "crawl/recent.h"
#include "crawl/scope.h"
#include "crawl/spool.h"
#include "crawl/tally.h"
#include "extract/extract.h"
#include "fetch/fetch.h"
#include "os/clock.h"
#include "os/file.h"
#include "page/page.h"
#include "store/store.h"

struct event;
struct event_base;
struct wb_lines;

enum {
    WB_PATIENCE_MS = WB_MINUTE_MS,    /* a site that must wait longer is left for a later crawl */
    WB_RULES_LIFE_MS = WB_DAY_MS,     /* how long a robots.txt is valid at most */
    WB_PAGE_HOPS_MAX = 10,            /* redirects in a row from page to page */
    WB_PAGE_TRIES_MAX = 2,            /* requests for a page that fail on the network */
    WB_SITEMAPS_MAX = 500,            /* of a site, in a visit */
};

/* ---- the worker and its parts ------------------------------------------------------------------------------------ */

/* What all processes of a run agree on. Made by the parent before it forks; a worker never changes it. */
struct wb_crawl_plan {
    const struct wb_crawl_options *options; /* with all defaults filled in */
    struct wb_scope scope;
    struct wb_tally *tally;
    int64_t run;
    int64_t goes_on;        /* the unfinished run that this one continues; 0: none */
    struct wb_file fetches; /* counts the requests of a fetch list's run (tally.h); not open otherwise */
    struct wb_slice agent;  /* our name in robots.txt */
    char home[40];          /* names the repository to others who share its dispenser */
    int parent;             /* its process id. A worker cannot ask for it: by then, the parent may have died */
    const char *owner;      /* the worker that is being started: names its leases, its spool and its lines */
    struct wb_lines *lines; /* where that worker puts the log of fetches; NULL: nobody wants it */
};

/* News of a site for the dispenser (news.c). */
struct wb_news {
    int64_t site;
    struct wb_buf text;
};

struct wb_news_list WB_VEC_OF(struct wb_news);

/* What is open of the repository. worker.c opens it before the loop and closes it after. */
struct wb_worker_repository {
    struct wb_dispenser *dispenser;
    struct wb_store *store;
    struct wb_webdb *webdb;               /* the newest edition when the worker started; NULL: there is none */
    struct wb_journal_writer *journal;
    struct wb_journal_reader *history;    /* reads the chains of sites that are claimed */
    struct wb_spool *spool;
    struct wb_spill *spill;               /* queues that are larger than memory */
};

/* The event loop and its timers (worker.c, dispatch.c). */
struct wb_worker_loop {
    struct event_base *base;
    struct event *tick;         /* 20 times per second */
    struct event *due;          /* when the frontier's next site is due */
    bool dispatching;           /* wb_dispatch() is at work; it must not call itself */
    bool stopping;              /* no new requests: the process is about to end */
    int64_t stopping_ms;        /* since when */
    int64_t queues_ms;          /* when the URLs in queues were last counted */
};

/* Claiming sites (worker.c). The tally's counter `claimable` moves whenever anybody makes a site claimable. */
struct wb_worker_claims {
    int64_t made_ms;            /* when we last asked the dispenser for sites */
    unsigned made_at;           /* the counter at that time */
    unsigned seen;              /* the counter when we last looked */
    int64_t news_ms;            /* when we last saw it move */
    bool again;                 /* the last claim got as many sites as it asked for: there may be more */
};

/* The leases on our sites (worker.c). */
struct wb_worker_leases {
    int64_t renewed_ms;
    int64_t ticked_ms;          /* when the loop last looked: shows whether the process was suspended */
    bool lost;                  /* they ended while the process slept; its sites belong to others now */
};

/* What the next commit makes durable (worker.c; added to by pagekeep.c, eventlog.c and visit.c). */
struct wb_worker_uncommitted {
    int64_t since_ms;           /* since when there is something to commit; 0: there is nothing */
    uint64_t pages, bytes;
    struct wb_buf lines;        /* of the log of fetches; the spool has them too */
    bool journal_unflushed;     /* the journal has records that the kernel must have before a request is sent */
};

/* What was done about the orders of an operator (dispatch.c). */
struct wb_worker_obeyed {
    unsigned changes;           /* the orders' counter when we last looked */
    bool stopped;               /* a site that is held may have been stopped */
};

/* Requests for other sites' robots.txt whose site another process holds now; tried again later (rules.c). */
struct wb_worker_favours {
    struct wb_favour *stuck;
    int64_t retried_ms;
};

/* Memory that is reused from page to page. A function's comment says if it leaves something here for its caller. */
struct wb_worker_scratch {
    struct wb_url url;          /* the URL that wb_worker_parse() read, with its key */
    struct wb_buf key;
    struct wb_url target;       /* a link or redirect that is being followed */
    struct wb_url base;         /* what it is relative to */
    struct wb_buf url_text;
    struct wb_buf item;         /* the item that a site's queue gave */
    struct wb_buf link;         /* a link that is being restored from the journal */
    struct wb_buf old_page;     /* the stored version of a page that is asked for again */
    struct wb_buf known_page;   /* a page of which only its existence matters */
    struct wb_buf media_type;
};

/* Requests and their answers (errand.c). */
struct wb_errand;

/* An answer that waits for others, to be digested together. */
struct wb_arrival {
    struct wb_errand *errand;
    struct wb_fetch_result result; /* its body is owned; its head is in the errand */
};

#define WB_ARRIVALS_MAX 8

struct wb_errands {
    struct wb_errand *free;     /* for reuse, with their buffers */
    struct wb_arrival arrivals[WB_ARRIVALS_MAX];
    unsigned arrival_count;
    struct event *arrivals_due; /* when those that are held must be looked at */
    bool taking;                /* they are being looked at now */
    bool few_files;             /* file descriptors limit the number of connections */
};

/* A link to a site that this process does not hold, on its way to the dispenser. */
struct wb_link_out {
    size_t name_at, name_len;   /* the site's name and the URL: in wb_links.text */
    size_t url_at, url_len;
    struct wb_depth depth;
    bool https;
    bool listed;                /* found by a listed visit */
};

#define WB_LINKS_RECENT (1u << 15)

/* What links.c remembers: links that wait to be sent, those that were sent, and links it decided on a moment ago. */
struct wb_links {
    struct wb_buf text;
    WB_VEC(struct wb_link_out) out;
    struct wb_seen sent;
    int64_t sent_ms;            /* when the waiting ones were last sent ahead of a commit */
    uint64_t recent[WB_LINKS_RECENT];
};

/* Sites that were closed; the dispenser hears of them after the next commit (visit.c). */
struct wb_visit_report;
struct wb_visit_reports WB_VEC_OF(struct wb_visit_report);

#define WB_WORKER_MAGIC 0x57424352u

struct wb_worker {
    uint32_t magic;             /* WB_WORKER_MAGIC while wb_worker_run() is at work */
    const struct wb_crawl_plan *plan;
    struct wb_tally *tally;
    struct wb_tally_worker *mine; /* our part of the tally */
    char owner[64];
    int warnings_fd;            /* a pipe to the parent */
    struct wb_error_copy failed; /* code < 0: the error that ends this process */

    struct wb_worker_loop loop;
    struct wb_worker_repository repo;
    struct wb_fetcher *fetcher;
    struct wb_dns *dns;

    struct wb_site_set sites;   /* all that are held, guests included */
    struct wb_frontier frontier;
    struct wb_worker_claims claims;
    struct wb_worker_leases leases;
    struct wb_worker_favours favours;
    struct wb_worker_obeyed obeyed;

    struct wb_errands errands;
    struct wb_links links;
    struct wb_seen contents;    /* digests of bodies that were stored, to recognise copies */
    struct wb_visit_reports reports;
    struct wb_recent recent;    /* fetches for people who watch */
    struct wb_news_list news;   /* of sites that were closed since the last commit */
    struct wb_worker_uncommitted uncommitted;

    struct wb_factfinder finder; /* extracts what a page says */
    struct wb_worker_scratch scratch;
};

/* ---- worker.c: begin, loop and end; claiming, committing, leases ------------------------------------------------- */

#define WB_WORKER_LOST 3

/*
 * Runs in a forked process until the run is over. Returns the exit status of the process: 0, 1 after an error, or
 * WB_WORKER_LOST if its leases ended, in which case another worker should be started.
 */
int wb_worker_run(const struct wb_crawl_plan *plan, unsigned number, int warnings_fd);

/* Whether the process was suspended for so long that its leases may be over. The next tick finds out; send nothing. */
bool wb_worker_slept(const struct wb_worker *w);

/* Ends the process after an error that concerns more than one site: a full disk, a lost dispenser. */
void wb_worker_fail(struct wb_worker *w, int err);

/* Notes that there is something to commit. */
void wb_worker_dirty(struct wb_worker *w);

/*
 * Reads a URL into w->scratch.url and its key into w->scratch.key, and computes its page id. WB_E_NOMEM, or another
 * error if it is not a URL that has a key.
 */
int wb_worker_parse(struct wb_worker *w, struct wb_slice url, struct wb_pageid *id_out);

/* ---- dispatch.c: which request a site that is due makes ---------------------------------------------------------- */

/* Starts all requests that are due, then sets the timer for the next one. */
void wb_dispatch(struct wb_worker *w);

/* Stops requests that have held the slots of an address for too long while others wait for them. */
void wb_dispatch_make_way(struct wb_worker *w);

/* Puts the site into the frontier: it has something to do at its next_ms. Does nothing if it is there already. */
void wb_dispatch_later(struct wb_worker *w, struct wb_site *site);

/* Carries out what was ordered since the last call, and gives stopped sites back. */
void wb_dispatch_obey(struct wb_worker *w);

/* Tells a site that was just claimed or borrowed what was ordered about it. */
void wb_dispatch_obey_site(struct wb_worker *w, struct wb_site *site);

/* ---- errand.c: a request, from its making until its answer is looked at ------------------------------------------ */

#define WB_ERRAND_MAGIC 0x57424552u

struct wb_errand {
    uint32_t magic;           /* WB_ERRAND_MAGIC from new to free; 0 while it is kept for reuse */
    struct wb_worker *worker;
    struct wb_site *site;     /* the site that is asked */
    struct wb_favour *favour; /* set if it is asked on behalf of another site */
    bool rules;               /* it asks for a robots.txt */
    struct wb_item item;      /* otherwise: what it asks for; the path is in url */
    struct wb_buf url;
    struct wb_pageid id;
    struct wb_buf key;
    bool reserved;            /* it counts towards --max-pages */
    /* The version that we have: */
    bool known;
    uint8_t md5[WB_MD5_BYTES];
    /* The body that came, if it was digested together with others: */
    bool digested;
    uint8_t body_md5[WB_MD5_BYTES], body_sha1[WB_SHA1_BYTES];
    struct wb_buf head;       /* of the response, while it is held */
    struct wb_errand *next_free;
};

struct wb_errand *wb_errand_new(struct wb_worker *w, struct wb_site *site);
void wb_errand_free(struct wb_errand *errand);

/* Frees the errands that are kept for reuse, and the answers that nobody looked at. */
void wb_errand_release_all(struct wb_errands *errands);

/*
 * Sends the request, after noting it in the journal. Takes over the errand, also after an error, which ends the
 * process. The answer goes to wb_rules_done() or wb_pagework_done().
 */
void wb_errand_send(struct wb_errand *errand, const struct wb_fetch_request *request);

/* Whether the errand's page or its site has been taken down by now: 1, 0 or an error. */
int wb_errand_barred(const struct wb_errand *errand);

/* Whether it asks for the root page of its site. */
bool wb_errand_is_root(const struct wb_errand *errand);

/* Warns, once per crawl, if more requests at a time would need more file descriptors. */
void wb_errand_warn_files(struct wb_worker *w);

/* Looks at all answers that are held. */
void wb_errand_take_arrivals(struct wb_worker *w);

/* ---- names.c: the address of a site, and its other names --------------------------------------------------------- */

/* Looks the site's name up. The site goes on when the answer comes. */
void wb_names_look_up(struct wb_worker *w, struct wb_site *site);

/* Why an address must not be contacted, in words; NULL: it may be. */
const char *wb_names_refuse_address(const struct wb_crawl_plan *plan, const struct wb_address *address);

/*
 * The first address of an answer that may be contacted; one is enough. NULL: there is none, and *private_out says what
 * kind of private addresses the others are (NULL: the answer has no address at all).
 */
const struct wb_address *wb_names_choose_address(const struct wb_crawl_plan *plan, const struct wb_dns_answer *answer,
                                                 const char **private_out);

/* For a site with a refusal: reports each URL in its queue with that reason, then closes the site. */
void wb_names_refuse_queue(struct wb_worker *w, struct wb_site *site);

/* Whether the site's address has other names, which may be names of the same site. */
int wb_names_have_neighbours(struct wb_worker *w, const struct wb_site *site, bool *have_out);

/*
 * Compares rules and root of a site with those of the other names of its address. Returns true if it is an alias of
 * one of them; the site is closed then.
 */
bool wb_names_close_alias(struct wb_worker *w, struct wb_site *site);

/* Notes the digest of the root page. The same result; compares only if the site is being probed. */
bool wb_names_root_came(struct wb_worker *w, struct wb_site *site, const uint8_t md5[WB_MD5_BYTES]);

/* ---- visit.c: a visit of a site: begun, ended, reported ---------------------------------------------------------- */

/* Begins or resumes the visit of a site that was just claimed. May close it. */
int wb_visit_open(struct wb_worker *w, struct wb_site *site);

/* Takes the seeds from the dispenser that the visit has not taken yet. *count_out: how many entered the queue. */
int wb_visit_seeds(struct wb_worker *w, struct wb_site *site, uint64_t *count_out);

/* The outcome of the root page is known. Seeds that waited for it enter the queue if it is not reachable. */
int wb_visit_root(struct wb_worker *w, struct wb_site *site, bool reachable);

/*
 * Ends our work on a site, and frees it. state: it is over (DONE, ALIAS, REFUSED), must wait (WAITING), or continues
 * in another process (READY).
 */
void wb_visit_close(struct wb_worker *w, struct wb_site *site, enum wb_site_state state, const char *reason,
                    const char *alias_of);

/*
 * Leaves the whole site alone: each time in a row for longer, and at least until until_ms (0: the server named no
 * time). Closes the site if that is long.
 */
void wb_visit_back_off(struct wb_worker *w, struct wb_site *site, int64_t until_ms, const char *reason);

/* The name of a closed site with the same address and probe that was not reported yet; NULL: there is none. */
const char *wb_visit_closed_twin(const struct wb_worker *w, const struct wb_site *site);

/* Reports the closed sites to the dispenser; with held, also how far the sites are that we still hold. */
int wb_visit_report(struct wb_worker *w, bool held);
void wb_visit_reports_release(struct wb_visit_reports *reports);

/* Appends a record to the site's chain in the journal. */
int wb_visit_note(struct wb_worker *w, struct wb_site *site, struct wb_edit *edit);

/* ---- restore.c: what a visit continues with: from the journal, and from webdb ------------------------------------ */

/* The first record of the chain that the site's trail ends; its kind is 0 if there is no readable chain. */
int wb_restore_first(struct wb_worker *w, struct wb_site *site, struct wb_edit *first_out);

/* Restores the visit that the site's trail belongs to: queue, seen URLs, rules, clocks. */
int wb_restore_visit(struct wb_worker *w, struct wb_site *site);

/*
 * Restores what outlives an earlier visit, whose chain ends at `last`: rules and clocks, and, unless the visit is
 * listed, its pages and those that webdb has. begins: the current visit has just begun, so valid rules are noted in it.
 */
int wb_restore_earlier(struct wb_worker *w, struct wb_site *site, struct wb_edit_place last, bool begins);

/* After everything else: the site's robots.txt as webdb has it, if the journal had none that is valid. */
int wb_restore_rules(struct wb_worker *w, struct wb_site *site);

/* After everything else: moves the clock for a request that has no outcome in the journal. */
void wb_restore_unanswered(struct wb_worker *w, struct wb_site *site);

/* ---- news.c: what another repository needs to go on with a site -------------------------------------------------- */

/* A URL has entered the queue of the site. */
int wb_news_known(struct wb_worker *w, struct wb_site *site, const struct wb_item *item);

/* Marks a URL of the site as dealt with, or takes the mark away. */
void wb_news_mark(struct wb_worker *w, struct wb_site *site, struct wb_pageid id, bool done);

/* Takes over the news of a site that is being closed. */
int wb_news_close(struct wb_worker *w, struct wb_site *site);

/* Tells the dispenser all news. */
int wb_news_tell(struct wb_worker *w);
void wb_news_release(struct wb_news_list *list);

/*
 * After everything else: takes over what was told of the site in this run, by other repositories and by us. whole: our
 * journal has the history of the site, which is all of it unless the site was elsewhere meanwhile.
 */
int wb_news_restore(struct wb_worker *w, struct wb_site *site, bool whole);

/* ---- rules.c: robots.txt, its redirects, and favours ------------------------------------------------------------- */

/*
 * Sets the intervals of a site from what its seeds or the options say, what an operator ordered, and the Crawl-delay.
 */
void wb_rules_set_delays(const struct wb_worker *w, struct wb_site *site);

void wb_rules_ask(struct wb_worker *w, struct wb_site *site);
void wb_rules_done(struct wb_errand *errand, struct wb_fetch_result *result);

/* Takes over remembered rules, if they are still valid. */
int wb_rules_restore(struct wb_worker *w, struct wb_site *site, const struct wb_edit_rules *rules);

/*
 * If a site has a favour to do, sends it. Closes a guest that has none left. Returns true if the site must do nothing
 * else now.
 */
bool wb_rules_next_favour(struct wb_worker *w, struct wb_site *site);

/* Tries again to place favours whose site another process held. */
void wb_rules_retry_favours(struct wb_worker *w);

/* The site is being closed: its favours wait for the next process that holds it. */
void wb_rules_pass_on_favours(struct wb_worker *w, struct wb_site *site);

/* The site has no usable address: its favours fail. */
void wb_rules_fail_favours(struct wb_worker *w, struct wb_site *site, const char *reason);

/* The process ends: forgets all favours. */
void wb_rules_drop_favours(struct wb_worker *w);

/* ---- pagework.c: what the answer to a request for a page, a sitemap or a probe means ----------------------------- */

/* What became of a page, collected on the way to the journal and the log. */
struct wb_outcome {
    struct wb_errand *errand;
    struct wb_fetch_result *result;
    struct wb_edit edit;        /* for the journal */
    const char *word;           /* for the log */
    const char *message;        /* NULL: none */
    int error;                  /* enum wb_crawl_error; 0: none */
    const struct wb_page *page; /* to be stored; NULL: none */
};

/* outcome: enum wb_edit_outcome. */
void wb_outcome_init(struct wb_outcome *o, struct wb_errand *errand, struct wb_fetch_result *result, uint8_t outcome,
                     const char *word);

/* Writes it: to the spool and the log, then to the journal. */
int wb_outcome_tell(struct wb_outcome *o);

/* The answer came. Takes nothing over. */
void wb_pagework_done(struct wb_errand *errand, struct wb_fetch_result *result);

/* The request failed, with enum wb_crawl_error. The page is tried again or given up. */
int wb_pagework_failed(struct wb_errand *errand, struct wb_fetch_result *result, int error, const char *message);

/*
 * Our version is a redirect that is fresh enough: no request is made, and it is followed all the same. Returns 1 if it
 * cannot be followed, so that the page must be requested; 0 or an error otherwise.
 */
int wb_pagework_reuse_redirect(struct wb_errand *errand, const struct wb_page *page);

/* robots.txt forbids the page. This is noted once per visit. */
int wb_pagework_forbidden(struct wb_errand *errand);

/* The page was taken down since it was asked for. Nothing is kept of it. */
int wb_pagework_barred(struct wb_errand *errand);

/* If the errand asked for the root page: its outcome decides about the seeds that wait for it. */
int wb_pagework_decide_root(struct wb_errand *errand, bool reachable);

/* ---- pagekeep.c: a page's content: extracted, stored, its links followed ----------------------------------------- */

/* A response with content came. */
int wb_pagekeep_came(struct wb_errand *errand, struct wb_fetch_result *result);

/*
 * A redirect to another page came. It is put into the store like a page: unchanged, it is a further capture. *put_out:
 * what the store does with it.
 */
int wb_pagekeep_redirect(struct wb_errand *errand, struct wb_fetch_result *result, struct wb_page *page_out,
                         enum wb_store_outcome *put_out);

/* 304: our version is still right. */
int wb_pagekeep_not_modified(struct wb_errand *errand, struct wb_fetch_result *result);

/*
 * Our version is fresh enough, so no request is made; its links are followed all the same. Returns 1 if the page shows
 * that the site is an alias: the site is closed then. 0 or an error otherwise.
 */
int wb_pagekeep_reuse(struct wb_errand *errand, const struct wb_page *page);

/* Makes a page of a response. It borrows from the errand, the result and w->scratch.media_type. */
int wb_pagekeep_fill(struct wb_errand *errand, struct wb_fetch_result *result, struct wb_page *page_out);

/* ---- links.c: which URLs enter a queue --------------------------------------------------------------------------- */

enum wb_links_flags {
    WB_LINKS_FRONT = 1 << 0,   /* put it before everything else in the queue */
    WB_LINKS_SEED = 1 << 1,    /* a seed, or a page that we know: no guard against traps keeps it out */
    WB_LINKS_QUIET = 1 << 2,   /* restored from the journal: already counted, logged and sent to other sites */
    WB_LINKS_RETELL = 1 << 3,  /* with QUIET: send links to other sites once more; they may not have been sent */
};

/*
 * Puts a URL of this site into its queue, unless it was there before or a guard keeps it out. 1: it entered the queue,
 * 0: it did not, or an error.
 */
int wb_links_admit(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, const struct wb_item *item,
                   unsigned flags);

/*
 * Follows a URL that was found on this site. If it belongs to this site, it is admitted; if the scope allows its site,
 * it goes to that site's queue or, through the dispenser, to the process that holds it. Uses w->scratch.target and
 * key. item says what kind of thing it is, and its depth. 1 or 0 as above, or an error.
 */
int wb_links_follow(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const struct wb_item *item,
                    unsigned flags);

/*
 * Follows a link of a page that was fetched, if the page is not too deep, and fetches its target if the page needs it
 * and --with says so. page is what the journal says about it.
 */
int wb_links_follow_edit(struct wb_worker *w, struct wb_site *site, const struct wb_edit_page *page,
                         const struct wb_pagelink *link, unsigned flags);

/*
 * The site is an alias: the pages in its queue go to the dispenser, which passes them on to the site that is crawled
 * instead. Empties the queue.
 */
int wb_links_pass_on(struct wb_worker *w, struct wb_site *site);

/* Sends the links that wait to the dispenser. */
int wb_links_flush(struct wb_links *links, struct wb_dispenser *dispenser, const struct wb_crawl_plan *plan);
void wb_links_release(struct wb_links *links);

/* ---- eventlog.c: lines for the log of fetches, and warnings ------------------------------------------------------ */

/* A line of the log. */
struct wb_eventlog_entry {
    struct wb_slice url;
    const char *result;      /* "stored"; not used if error is set: then the line says "error:" and its word */
    const char *message;     /* more about it; NULL: nothing */
    uint16_t status;
    uint32_t ms;             /* that the request took */
    uint64_t bytes;
    int64_t time_ms;
    int error;               /* enum wb_crawl_error; 0: none */
    const struct wb_site *site; /* whose queue the URL was in; NULL: none */
};

/* Appends the entry as a line of JSON. */
int wb_eventlog_format(struct wb_buf *lines, const struct wb_eventlog_entry *entry);

/* Logs a request. An error ends the process. */
void wb_eventlog_fetch(struct wb_worker *w, const struct wb_eventlog_entry *entry);

/* Logs a request together with the page that it stores (NULL: none): both go to the spool as one record. */
int wb_eventlog_page(struct wb_worker *w, const struct wb_eventlog_entry *entry, const struct wb_page *page);

/* Adds the line of a module that said nothing about a page, and why. */
void wb_eventlog_module(struct wb_worker *w, struct wb_slice url, const char *module, const char *error);

/* Logs a URL that is not asked for, and why. */
void wb_eventlog_skip(struct wb_worker *w, struct wb_slice url, const char *result);

/* What the lines are about is durable: passes them on to their readers. */
int wb_eventlog_release(struct wb_worker *w);

/* A commit left out pages that were taken down meanwhile. Corrects lines that say they were stored. */
int wb_eventlog_correct(struct wb_worker *w);

/* Sends a warning to the parent. */
void wb_eventlog_warn(struct wb_worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
