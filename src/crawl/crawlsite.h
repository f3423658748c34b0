/*
 * crawlsite.h - a site while a process crawls it: its queue, what is known of it, its rules and its clock.
 *
 * Lifetime:
 *   1 claimed   from the dispenser, its frontier rebuilt from the journal (visit.c)
 *   2 rules     robots.txt is asked for, unless a recent one is remembered (rules.c)
 *   3 probe     where its address has other names: the root page, to find aliases (pagework.c)
 *   4 crawl     one URL after another
 *   5 released  finished, to be left alone for long, or the run ended (visit.c)
 *
 * It never fetches or waits: the frontier says when, the worker does it.
 */
#ifndef WB_CRAWL_CRAWLSITE_H
#define WB_CRAWL_CRAWLSITE_H

#include "dispenser/dispenser.h"
#include "fetch/fetch.h"
#include "crawl/recover.h"
#include "base/date.h"
#include "crawl/seen.h"
#include "crawl/spill.h"
#include "crawl/trap.h"

enum wb_item_kind {
    WB_ITEM_PAGE = 1,
    WB_ITEM_SITEMAP, /* a sitemap or feed: gives hints, is no page */
    WB_ITEM_PROBE,   /* the root page of a site whose address has other names: only looked at */
};

/* What waits in a site's queue. */
struct wb_item {
    uint8_t kind;
    uint8_t tries;  /* failures so far */
    uint8_t hops;   /* redirects on the way */
    uint16_t depth;
    bool https;
    struct wb_slice path; /* with the query: what follows the site's name in the URL */
};

enum wb_rules_state {
    WB_RULES_UNKNOWN, /* to be asked for */
    WB_RULES_KNOWN,
};

enum {
    WB_BACK_OFF_MAX_MS = WB_DAY_MS,     /* no site is left alone for longer */
    WB_ADDRESS_LIFE_MAX_MS = WB_DAY_MS, /* no address is believed for longer */
};

enum wb_root_state { WB_ROOT_UNKNOWN, WB_ROOT_REACHABLE, WB_ROOT_UNREACHABLE };

struct wb_place;
struct wb_site_heap;
struct wb_favour;

struct wb_site {
    int64_t id;                /* of its row */
    char *name;                /* "example.org:8080" */
    uint64_t key;              /* wb_edit_site(name) */
    bool https;                /* how robots.txt and the root are asked for */
    /* clocks */
    int64_t next_ms;           /* no request before */
    int64_t delay_ms;          /* between requests */
    int64_t page_delay_ms;     /* between requests for pages: crawl-delay where it is longer */
    int attempts;              /* failures of the whole site in a row */
    char wait_reason[96];      /* the last of them, in words */
    /* rules */
    enum wb_rules_state rules_state;
    struct wb_robots *robots;  /* NULL: everything is allowed */
    int64_t rules_expires_ms;
    uint16_t rules_status;
    uint64_t rules_digest;     /* of the text; 0: none */
    struct wb_buf rules_url;   /* where a redirect of robots.txt leads within the site; empty: /robots.txt */
    uint8_t rules_hops;
    /* where it is */
    struct wb_place *place;    /* its address, with all its sites; NULL: not known (frontier.c) */
    struct wb_address address;
    int64_t address_expires_ms;
    bool resolving;            /* an answer of DNS is awaited */
    bool away;                 /* its robots.txt is being asked for elsewhere */
    char *refusal;             /* why it is not contacted any more; NULL: it is. What waits in its queue is told so, then it is closed */
    int refusal_error;         /* of the table of tally.h */
    /* what to do */
    struct wb_spill_queue again, queue; /* again comes first: what was refused for the moment, redirects */
    struct wb_seen seen;       /* URLs that entered the queue; marked: done with */
    struct wb_trap trap;
    uint64_t budget, pages;    /* stored in this visit */
    unsigned sitemaps;         /* asked for in this visit */
    bool sitemaps_due;         /* they are asked for in this visit */
    int64_t sitemaps_ms;       /* when they last were; 0: never */
    /* names */
    bool probing;              /* its root has not been compared with those of its neighbours yet */
    uint64_t root_digest;      /* of the root page; 0: not known */
    enum wb_root_state root_state; /* in this visit */
    bool root_waited;          /* seeds other than the root wait for its outcome in the dispenser, from this one on: */
    int64_t held_after;
    /* on behalf of others */
    bool guest;                /* borrowed for favours only: not to be crawled by us */
    enum wb_site_state guest_state; /* what it goes back to */
    struct wb_favour *favours; /* requests for other sites' robots.txt that are led here */
    /* history */
    uint32_t visit;
    uint32_t listed_visit;     /* the visit that a fetch list asks for; 0: none does */
    bool listed;               /* this is it: only its seeds, and what webdb has never heard of */
    struct wb_edit_place trail;
    int64_t trail_ms;          /* when that was written */
    int64_t unanswered_ms;     /* while it is restored: a request of which no outcome is known yet; 0: none */
    int64_t seeds_taken;
    /* connections */
    bool unanswered;           /* its last request got no response on a kept connection: the next one goes over a new one */
    unsigned unanswered_count; /* such requests in a row, as far as kept connections go */
    /* frontier */
    unsigned in_flight;
    unsigned held;             /* pages that came and were not looked at yet (arrivals.c) */
    struct wb_site_heap *heap; /* which of the frontier's heaps it is in */
    size_t heap_at;            /* from 1; 0: in none */
    int64_t heap_key;
    int64_t served_ms;         /* slot time of its address that it has used */
    int64_t flight_ms;         /* when a request of it last began or ended */
    bool slow;                 /* its requests take much longer than others' at its address */
    bool gives_way;            /* its requests are being stopped, because others wait for the slots */
    struct wb_site *hash_next;
    struct wb_site *list_prev, *list_next; /* all sites of the process */
};

/* The row's times are taken as far as they can be true now. */
int wb_site_new(const struct wb_site_row *row, int64_t now_ms, struct wb_site **site_out);

/*
 * A moment to wait for that was stored, perhaps by a clock that was wrong: written_ms is when. The wait is never longer than it
 * was meant to be then, nor than longest_ms. Moments that are over are returned as they are.
 */
int64_t wb_site_trust(int64_t stored_ms, int64_t written_ms, int64_t now_ms, int64_t longest_ms);

/* A site that was left alone by a report: until when that holds. */
int64_t wb_site_wait(const struct wb_site_row *row, int64_t now_ms);

/* All its moments, after the clock was moved. */
void wb_site_shift(struct wb_site *site, int64_t by_ms);

/* Why the site is left alone; cut off where it is too long. */
void wb_site_set_reason(struct wb_site *site, struct wb_slice reason);

/* spill: of its queues. */
void wb_site_free(struct wb_site *site, struct wb_spill *spill);

/*
 * When a site may be asked again: the interval after the last request was sent, and at least as long after its response ended as
 * that took (the interval at most), so that a server that is slower than the interval gets a rest too.
 */
int64_t wb_site_rest(int64_t sent_ms, int64_t ended_ms, int64_t interval_ms);

/* "http://example.org/path" of an item, appended to url_out after clearing it. */
int wb_site_url(const struct wb_site *site, bool https, struct wb_slice path, struct wb_buf *url_out);

/* Splits a parsed URL of this site into what an item holds. */
struct wb_slice wb_site_path(const struct wb_url *url);

/* Host without brackets and port of a URL, as a resolver wants them. */
void wb_site_endpoint(const struct wb_url *url, struct wb_slice *host_out, uint16_t *port_out);

int wb_item_push(struct wb_spill *spill, struct wb_spill_queue *queue, const struct wb_item *item);

/* From `again` first. 1, 0: nothing left, or an error. path borrows until the next call. */
int wb_site_pop(struct wb_site *site, struct wb_spill *spill, struct wb_buf *mem, struct wb_item *item_out);

#define WB_PROBE_TEXT_MAX 33

/* What tells aliases: digests of robots.txt and the root page; empty where they are not known. */
void wb_site_probe(const struct wb_site *site, char text_out[WB_PROBE_TEXT_MAX]);

#endif
