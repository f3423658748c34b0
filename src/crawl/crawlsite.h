/*
 * crawlsite.h - a site while a worker process crawls it: its queue, its robots.txt, its clock, its history.
 *
 * Lifetime:
 *   1 claimed   from the dispenser; its queue is rebuilt from the journal (visit.c, restore.c)
 *   2 rules     robots.txt is requested, unless one that is still valid is remembered (rules.c)
 *   3 probe     if its address has other names: the root page, to find aliases (names.c)
 *   4 crawl     one URL after the other (dispatch.c)
 *   5 released  it is finished, must wait for long, or the run ends (visit.c)
 *
 * A site never fetches or waits by itself: the frontier says when it is due, and the worker then makes the request.
 */
#ifndef WB_CRAWL_CRAWLSITE_H
#define WB_CRAWL_CRAWLSITE_H

#include "base/date.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "crawl/seen.h"
#include "crawl/spill.h"
#include "crawl/trap.h"
#include "dispenser/dispenser.h"
#include "fetch/fetch.h"
#include "journal/journal.h"

enum {
    WB_BACK_OFF_MAX_MS = WB_DAY_MS,     /* no site is left alone for longer */
    WB_ADDRESS_LIFE_MAX_MS = WB_DAY_MS, /* no address is believed for longer */
};

/* ---- what waits in a site's queue -------------------------------------------------------------------------------- */

enum wb_item_kind {
    WB_ITEM_PAGE = 1,
    WB_ITEM_SITEMAP, /* a sitemap or feed: its links are followed, but it is not stored as a page */
    WB_ITEM_PROBE,   /* the root page of a site whose address has other names: compared, not stored */
};

struct wb_item {
    uint8_t kind;   /* enum wb_item_kind */
    uint8_t tries;  /* requests that failed so far */
    uint8_t hops;   /* redirects that led here */
    struct wb_depth depth;
    bool https;
    struct wb_slice path; /* path and query: what follows the site's name in the URL */
};

/* Appends an item to one of a site's queues. An item with a path over WB_TRAP_URL_MAX bytes is dropped silently. */
int wb_item_push(struct wb_spill *spill, struct wb_spill_queue *queue, const struct wb_item *item);

/* ---- the site ---------------------------------------------------------------------------------------------------- */

enum wb_rules_state {
    WB_RULES_UNKNOWN, /* robots.txt must be requested before anything else */
    WB_RULES_KNOWN,
};

/* Its robots.txt. Changed by rules.c only. */
struct wb_site_rules {
    enum wb_rules_state state;
    struct wb_robots *robots;  /* NULL: everything is allowed */
    int64_t expires_ms;
    uint16_t status;
    uint64_t digest;           /* of the text; 0: there is no text */
    struct wb_buf url;         /* where a redirect within the site leads; empty: /robots.txt */
    uint8_t hops;              /* redirects followed so far */
    bool away;                 /* a redirect led to another site, which is being asked (struct wb_favour) */
};

enum wb_root_state { WB_ROOT_UNKNOWN, WB_ROOT_REACHABLE, WB_ROOT_UNREACHABLE };

/* Its root page, which tells aliases apart (names.c) and on which other seeds may depend (visit.c). */
struct wb_site_root {
    bool probing;              /* it has not been compared yet with the roots of other names of the address */
    uint64_t digest;           /* of the root page; 0: not known */
    enum wb_root_state state;  /* in this visit */
    bool awaited;              /* with root_first: other seeds wait in the dispenser for its outcome */
    int64_t seeds_after;       /* if awaited: the id of the last seed before those that wait */
};

struct wb_frontier_address;
struct wb_favour;

#define WB_SITE_MAGIC 0x57425349u

struct wb_site {
    uint32_t magic;            /* WB_SITE_MAGIC from new to free */
    struct wb_list_node node;  /* in the set of sites that the worker holds */
    int64_t id;                /* of its row in the dispenser */
    char *name;                /* "example.org:8080" */
    uint64_t key;              /* wb_edit_site(name) */
    bool https;                /* the scheme for robots.txt and the root page */

    /* Courtesy. A function that learns of a reason to wait moves next_ms forward; none moves it back. */
    int64_t next_ms;           /* no request before this moment */
    int64_t asked_ms;          /* when its last request was sent... */
    int64_t heard_ms;          /* ...when the answer began, at the latest: the site had the request by then... */
    int64_t answered_ms;       /* ...and when the answer had ended; 0: not known */
    int64_t own_delay_ms;      /* between two requests: what the seeds or the options say */
    int64_t ordered_delay_ms;  /* the same, as an operator ordered; 0: nothing was ordered */
    int64_t delay_ms;          /* the longer of the two */
    int64_t not_before_ms;     /* an operator made the interval longer: no request before this moment */
    bool stopped;              /* an operator wants no more requests */
    int64_t page_delay_ms;     /* between two requests for pages: the Crawl-delay if that is longer */
    int attempts;              /* failures of the whole site in a row; each doubles the back-off */
    char wait_reason[96];      /* the last of these failures, in words */

    struct wb_site_rules rules;
    struct wb_site_root root;

    /* Its address. Changed by names.c and the frontier. */
    struct wb_frontier_address *frontier_address; /* shared by all sites of the address; NULL: address not known */
    struct wb_address address;
    int64_t address_expires_ms; /* 0: look it up before the next request */
    bool resolving;            /* a DNS answer is awaited */
    char *refusal;             /* why the site is not contacted any more; NULL: it is. Each queued URL is reported with
                                  this reason, then the site is closed */
    int refusal_error;         /* the same as a code of tally.h */

    /* Its work. Filled by links.c and visit.c, emptied by dispatch.c. */
    struct wb_spill_queue again; /* taken first: redirects, requests to repeat */
    struct wb_spill_queue queue;
    struct wb_seen seen;       /* URLs that ever entered the queue; marked: dealt with */
    struct wb_seen unread;     /* of these, HTML that was fetched because a page needs it: its links were not followed.
                                  Marked: a link has led there since, so they are to be followed */
    struct wb_trap trap;
    uint64_t budget, pages;    /* pages to store in this visit at most; stored so far */
    unsigned sitemaps;         /* requested in this visit */
    bool sitemaps_due;         /* this visit requests them */
    int64_t sitemaps_ms;       /* when they were last requested; 0: never */

    /* Favours: requests for another site's robots.txt that a redirect led here (rules.c). */
    bool guest;                /* the site was borrowed for favours only and is not crawled by us */
    enum wb_site_state guest_state; /* the state in which a guest is given back */
    bool elsewhere;            /* a guest that stays with another repository: its history is in the journal there */
    struct wb_favour *favours;

    /* Its visit and its history in the journal (visit.c, restore.c). */
    uint32_t visit;            /* number of the visit, from 1 */
    uint32_t listed_visit;     /* number of the visit that a fetch list asks for; 0: none */
    bool needed;               /* pages of other sites need files of it: these are fetched, and nothing else */
    bool listed;               /* this is that visit: only its seeds, and links that webdb has never heard of */
    struct wb_edit_place trail; /* the site's last record in the journal */
    int64_t trail_ms;          /* when that was written */
    int64_t unanswered_ms;     /* while restoring: time of a request whose outcome has not been read yet; 0: none */
    int64_t seeds_taken;       /* id of the last seed that was taken from the dispenser */
    bool tells;                /* others share the dispenser, so they get the news of this site (news.c)... */
    struct wb_buf news;        /* ...this, with the next commit */

    /* Its connections (errand.c). */
    bool unanswered;           /* the last request got no response on a kept connection: use a new one for the next */
    unsigned unanswered_count; /* how often in a row that happened */
    unsigned held;             /* responses that arrived and wait to be digested together */

    /* Its turn. Changed by frontier.c only, except gives_way. */
    unsigned in_flight;        /* requests under way */
    struct wb_heap_node turn;  /* in the heap by next_ms, or in a line of its address */
    int64_t served_ms;         /* slot time of its address that it has used */
    int64_t flight_ms;         /* when one of its requests last began or ended */
    bool slow;                 /* its requests take much longer than is usual at its address */
    bool gives_way;            /* its requests are being stopped because other sites wait for the slots */
};

/* Makes a site from its row. Times in the row that a wrong clock wrote are corrected (wb_site_trust). */
int wb_site_new(const struct wb_site_row *row, int64_t now_ms, struct wb_site **site_out);

/* spill: the file that its queues are in. The site must have left the frontier. */
void wb_site_free(struct wb_site *site, struct wb_spill *spill);

/* ---- moments that were stored ------------------------------------------------------------------------------------ */

/*
 * Corrects a moment to wait for that was stored at written_ms, perhaps by a clock that was wrong. The result is never
 * further away than the wait was when it was written, nor than longest_ms. A moment in the past is returned as it is.
 */
int64_t wb_site_trust(int64_t stored_ms, int64_t written_ms, int64_t now_ms, int64_t longest_ms);

/* Until when a site must be left alone according to its row. */
int64_t wb_site_wait(const struct wb_site_row *row, int64_t now_ms);

/* The clock was set: moves all moments of the site by the same amount. */
void wb_site_shift(struct wb_site *site, int64_t by_ms);

/*
 * A test seam. When a site may be asked again: the interval after its answer began, because until then nobody knows
 * when the request reached it; but also a rest after the answer ended that is as long as the request took (at most the
 * interval). So a server slower than the interval gets a pause too.
 */
int64_t wb_site_rest(int64_t sent_ms, int64_t heard_ms, int64_t ended_ms, int64_t interval_ms);

/*
 * Moves next_ms forward to when the site may be asked again after its last request, by the interval of pages. Call this
 * after a request, and again when a robots.txt makes the interval longer: it lies between the robots.txt and the first
 * page, too.
 */
void wb_site_rest_after(struct wb_site *site);

/* ---- parts of a site --------------------------------------------------------------------------------------------- */

/* Remembers why the site is left alone; a long reason is cut. */
void wb_site_set_reason(struct wb_site *site, struct wb_slice reason);

/* Replaces url_out by "http://example.org" + path. */
int wb_site_url(const struct wb_site *site, bool https, struct wb_slice path, struct wb_buf *url_out);

/* Path and query of a URL, as an item holds them. Borrows from the URL. */
struct wb_slice wb_site_path(const struct wb_url *url);

/* Host (without brackets) and port of a URL, as a resolver wants them. */
void wb_site_endpoint(const struct wb_url *url, struct wb_slice *host_out, uint16_t *port_out);

/*
 * Takes the next item, from `again` first. 1 with an item; 0: both queues are empty; or an error. The item's path
 * borrows from mem or the queue until the next call.
 */
int wb_site_pop(struct wb_site *site, struct wb_spill *spill, struct wb_buf *mem, struct wb_item *item_out);

#define WB_PROBE_TEXT_MAX 33

/* The digests of robots.txt and root page, in hex: equal for two names of one site. Empty if the root is not known. */
void wb_site_probe(const struct wb_site *site, char text_out[WB_PROBE_TEXT_MAX]);

/*
 * The dispenser stores the place of a site's last journal record in a type of its own, because it does not know the
 * journal. These translate.
 */
static inline struct wb_edit_place wb_site_trail_to_place(struct wb_site_trail trail)
{
    return (struct wb_edit_place){trail.log, trail.offset};
}

static inline struct wb_site_trail wb_site_trail_from_place(struct wb_edit_place place)
{
    return (struct wb_site_trail){place.log, place.offset};
}

/* ---- the sites that a worker holds ------------------------------------------------------------------------------- */

struct wb_site_name {
    uint64_t hash; /* the site's key */
    struct wb_site *site;
};

/* All of them, the newest first, and by name. All bytes zero: empty. It does not own the sites. */
struct wb_site_set {
    struct wb_list list;
    WB_MAP(struct wb_site_name) names;
    unsigned count;
};

/* The site of that name; NULL: it is not held. */
struct wb_site *wb_site_set_find(const struct wb_site_set *set, struct wb_slice name);

/* Adds a site that is not in the set. 0 or WB_E_NOMEM. */
int wb_site_set_add(struct wb_site_set *set, struct wb_site *site);
void wb_site_set_remove(struct wb_site_set *set, struct wb_site *site);

/* Frees the memory of an empty set. */
void wb_site_set_release(struct wb_site_set *set);

/* Walks through all: the first one if previous is NULL; NULL: no more. Read the next one before removing a site. */
struct wb_site *wb_site_set_next(const struct wb_site_set *set, const struct wb_site *previous);

#endif
