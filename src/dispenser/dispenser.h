/*
 * dispenser.h - the seed dispenser: one row a site, handed out to crawler processes by lease
 * (WebBase Components, section 2.1.1). SQLite in the repository's directory, or PostgreSQL.
 *
 *   unresolved -> ready -> claimed -> done
 *                   ^         |  \-> waiting (until next_ms; claimable then)
 *                   +---------+      alias, refused: not to be crawled
 *   A lease that nobody renews in time ends: the site is ready again.
 *
 * The same SQL above a small interface (sql.h); every call is one transaction, and the callbacks come after it.
 * A handle belongs to the process that opened it (not across fork) and to one thread at a time.
 * Names and URLs are printable ASCII (WB_E_INVALID otherwise); other text is UTF-8 without NUL.
 */
#ifndef WB_DISPENSER_DISPENSER_H
#define WB_DISPENSER_DISPENSER_H

#include "base/buf.h"
#include "url/url.h"

#define WB_SITE_NAME_MAX 1024      /* a longer name is left out by wb_dispenser_add: nobody could resolve it */
#define WB_SITE_NEIGHBOURS_MAX 256 /* that one call tells of */

enum wb_site_state {
    WB_SITE_UNRESOLVED = 1, /* its name has not been resolved yet */
    WB_SITE_READY,
    WB_SITE_CLAIMED,
    WB_SITE_WAITING,        /* to be left alone until next_ms */
    WB_SITE_DONE,           /* its visit is over */
    WB_SITE_ALIAS,          /* another name of alias_of */
    WB_SITE_REFUSED,        /* no address, or one that we do not contact: reason says */
};

/* Where the last journal record of a site is. The dispenser only keeps it; log 0: nowhere. */
struct wb_site_trail {
    uint32_t log;
    uint64_t offset;
};

/* A row. Text borrows from the mem that came with the call. */
struct wb_site_row {
    int64_t id;
    struct wb_slice name;       /* "example.org", "example.org:8080" */
    struct wb_slice scheme;     /* "http" or "https": of its first seed */
    enum wb_site_state state;
    enum wb_site_state before;  /* of a claimed or borrowed one: the state that it goes back to when its owner dies */
    int64_t run;                /* the run that it takes part in */
    int priority;               /* higher ones first; small sites are given a low one */
    int64_t delay_ms;           /* -1: the run's */
    int64_t budget;             /* pages a visit, -1: the run's */
    struct wb_slice class_name; /* empty: none */
    struct wb_slice address;    /* text; several blank-separated */
    int64_t address_expires_ms;
    int64_t next_ms;            /* not to be contacted before, wall clock; 0: at once */
    int attempts;               /* failures in a row */
    struct wb_slice reason;     /* why it waits, is refused, or was finished */
    struct wb_slice alias_of;   /* name of the site that it is an alias of */
    struct wb_slice probe;      /* digest of robots.txt and root page, where known */
    uint32_t visit;             /* its number, from 1; 0: never visited */
    uint32_t listed;            /* the number of the visit that a fetch list asks for; 0: none does */
    int64_t sitemaps_ms;        /* when its sitemaps were last asked for; 0: never */
    struct wb_site_trail trail; /* its last journal record */
    int64_t trail_ms;           /* the time of that record; 0: not known */
    struct wb_slice home;       /* the repository whose journal that is in */
    int64_t seeds_taken;        /* seeds up to this id were taken into the frontier */
    struct wb_slice owner;      /* of the lease */
    int64_t lease_ms;           /* until when, by wb_dispenser_clock() */
    int64_t pages;              /* stored in this visit */
};

/* Sites with wishes of their own, by name; from the lines "class news fetches=100 delay=2 min=10m max=1d" of seed files. */
struct wb_site_class {
    struct wb_slice name;
    int64_t fetches;         /* of a cycle, for the class; -1: takes part in the common budget */
    int64_t delay_ms;        /* -1: the run's */
    int64_t min_ms, max_ms;  /* between two visits to a page; 0: no bound */
};

struct wb_seed {
    int64_t id;
    struct wb_slice url;
    uint16_t depth;
};

struct wb_dispenser;

/* Instead of a URL: SQLite in dir/dispenser.db. */
#define WB_DISPENSER_OWN "sqlite"

/*
 * url: "postgres://...", "postgresql://..." or WB_DISPENSER_OWN; NULL: the one that dir remembers, which is its own unless
 * another one was given. Creates the tables if they are missing.
 */
int wb_dispenser_open(const char *dir, const char *url, struct wb_dispenser **dispenser_out);
void wb_dispenser_close(struct wb_dispenser *dispenser);

/* ---- which one (dispenser_url.c) ---------------------------------------------------------------- */

bool wb_dispenser_is_url(struct wb_slice url);

/* The URL that dir remembers, with a NUL behind it; empty: its own. WB_E_CORRUPT. */
int wb_dispenser_remembered(const char *dir, struct wb_buf *url_out);
int wb_dispenser_remember(const char *dir, const char *url);

/* A URL without its password and parameters, appended. */
int wb_dispenser_shown(struct wb_slice url, struct wb_buf *text_out);

/* Checks dir/dispenser.db, if it is there; PostgreSQL has checksums of its own. Reports damage (problem) and what is only worth a note. */
typedef void (*wb_dispenser_found)(void *context, bool problem, uint64_t offset, const char *message);
int wb_dispenser_verify(const char *dir, wb_dispenser_found found, void *context);

/* A number for a new run, greater than all before. */
int wb_dispenser_begin_run(struct wb_dispenser *dispenser, int64_t *run_out);

struct wb_site_plan {
    struct wb_slice name, scheme;
    struct wb_slice class_name;     /* empty: leave */
    int priority;                   /* INT_MIN: leave */
    int64_t delay_ms, budget;       /* -2: leave; -1: the run's */
    const struct wb_seed *seeds;    /* URLs; those that the row has already are left out */
    size_t seed_count;
    bool anew;                      /* a site whose visit is over begins another one; false: only gets the seeds */
    bool found;                     /* a link led there: it begins another visit where the one that is over was of an earlier run */
    bool listed;                    /* with found: that visit asks for this plan's seeds and not for what the site had before */
    int64_t goes_on;                /* the run that this one goes on with: what was finished in it is not begun anew; 0: none */
};

/*
 * Adds sites and seeds to a run, in one transaction. A site that is there keeps its state, clocks and trail; one that is over
 * (DONE, ALIAS, REFUSED) goes back to UNRESOLVED where plan.anew says so, with no page and no seed taken. A site that a
 * newer run has not finished stays in that one. A visit that a fetch list asked for and nobody holds becomes a plain one where
 * plan.anew says so. added_out: how many sites are new to the dispenser.
 */
int wb_dispenser_add(struct wb_dispenser *dispenser, int64_t run, const struct wb_site_plan *plans, size_t count, uint64_t *added_out);

/* What a crawl wants to do. */
struct wb_run_wish {
    struct wb_site_plan *plans;       /* sites of its seeds; goes_on is filled in */
    size_t count;
    char *const *domains;             /* registrable domains of its scope */
    size_t domain_count;
    bool all;                         /* its scope is everything */
};

/*
 * Adds the plans, in one transaction, to the run that the crawl is: a new one, or the newest one that has not come to its end
 * where that consists of the same, so that crawls of the same seeds share the work. goes_on_out: that newest one, also where
 * this is a new run, which then goes on with a part of it; 0: none. Unfinished is a run that has an UNRESOLVED, READY or
 * CLAIMED site among those wished; fetch lists are no such runs.
 */
int wb_dispenser_enter(struct wb_dispenser *dispenser, const struct wb_run_wish *wish, int64_t *run_out, int64_t *goes_on_out);

/* Puts unfinished sites into a run: all of them, or those of a registrable domain. */
int wb_dispenser_join(struct wb_dispenser *dispenser, int64_t run, bool all, struct wb_slice domain);

/* At most max rows of the run that are UNRESOLVED (by id), then READY/WAITING with an address that has expired (longest ago first). */
typedef int (*wb_site_each)(void *context, const struct wb_site_row *row);
int wb_dispenser_unresolved(struct wb_dispenser *dispenser, int64_t run, int64_t now_ms, unsigned max, wb_site_each each, void *context);

/*
 * The outcome of resolving: READY with addresses, or REFUSED with a reason; a WAITING one with addresses goes on waiting.
 * A site that is claimed or over only gets its addresses. WB_E_NOTFOUND.
 */
int wb_dispenser_resolved(struct wb_dispenser *dispenser, int64_t id, struct wb_slice address, int64_t expires_ms, struct wb_slice refused);

/*
 * A name that could not be resolved now, which says nothing of whether there is one. A site without an address is WAITING until
 * next_ms, then to be resolved again; one with an address that has expired keeps it until then. WB_E_NOTFOUND.
 */
int wb_dispenser_unresolvable(struct wb_dispenser *dispenser, int64_t id, int64_t next_ms, int attempts, struct wb_slice reason);

/* The same sites, where they still have no address and wait, need not wait any longer: the next run asks for their names at once. */
int wb_dispenser_resolve_again(struct wb_dispenser *dispenser, const int64_t *ids, size_t count, int64_t now_ms);

/*
 * The clock that leases are judged by: the database's, so that callers whose clocks differ agree on who holds a site (sql.h). It has no
 * begin that means anything; lease_ms of a row is to be compared with it.
 */
int wb_dispenser_clock(struct wb_dispenser *dispenser, int64_t *now_ms_out);

/* For tests, which run a week of leases in a second: this clock instead. */
extern int64_t (*wb_dispenser_test_clock)(void);

/*
 * Claims up to max sites of the run for owner, for lease_ms milliseconds: READY ones, WAITING ones whose next_ms has come by now_ms, CLAIMED ones
 * whose lease is over (owner's own excepted); by priority, then id. A site whose first address is held by another live owner
 * is left to that one (one address, one process). Calls each with the row as claimed; where one returns non-zero, that is
 * returned, and the sites stay claimed.
 */
int wb_dispenser_claim(struct wb_dispenser *dispenser, int64_t run, struct wb_slice owner, int64_t now_ms, int64_t lease_ms, unsigned max,
                       wb_site_each each, void *context);

/*
 * Claims one site by name, of any run and state but one that another live owner holds (WB_E_BUSY), whoever holds its address;
 * makes the row where there is none (UNRESOLVED before, in run 0). Who borrowed reports row->before to give it back as it was.
 */
int wb_dispenser_borrow(struct wb_dispenser *dispenser, struct wb_slice name, struct wb_slice scheme, struct wb_slice owner, int64_t lease_ms,
                        wb_site_each each, void *context);

/* Gives all sites of owner lease_ms milliseconds from now; then WB_E_BUSY where one was taken away meanwhile, until wb_dispenser_lost() has told which. */
int wb_dispenser_renew(struct wb_dispenser *dispenser, struct wb_slice owner, int64_t lease_ms);

/* The sites that were taken away from owner since the last call, as they are now: it must not contact them any more. */
int wb_dispenser_lost(struct wb_dispenser *dispenser, struct wb_slice owner, wb_site_each each, void *context);

/* What a crawler tells about a site that it holds. */
struct wb_site_report {
    int64_t id;
    enum wb_site_state state;   /* CLAIMED: keeps it; otherwise the lease ends */
    int64_t next_ms;
    int attempts;
    struct wb_slice reason, alias_of, probe, home;
    uint32_t visit;
    int64_t sitemaps_ms;        /* 0: as it is */
    struct wb_site_trail trail; /* log 0: as it is */
    int64_t trail_ms;           /* time of that record */
    int64_t seeds_taken, pages;
};

/*
 * In one transaction. An empty probe or home leaves what is there. A report of DONE for a site that has got seeds beyond
 * seeds_taken meanwhile becomes READY instead; READY without an address is UNRESOLVED. Reports of sites that owner does
 * not hold (any more) change nothing but trail and home, and those only where trail_ms is later (or is the same, and the place is
 * behind): numbers of logs say nothing about time, since a process that started long ago goes on writing its own.
 */
int wb_dispenser_report(struct wb_dispenser *dispenser, struct wb_slice owner, const struct wb_site_report *reports, size_t count);

/*
 * Everything that a dead process held goes back: a site that nobody finished is READY, with its next_ms for the next owner
 * to keep; a borrowed one is what it was before.
 */
int wb_dispenser_release(struct wb_dispenser *dispenser, struct wb_slice owner);

/* Everybody who holds a site and whose name begins with prefix. */
typedef int (*wb_owner_each)(void *context, struct wb_slice owner);
int wb_dispenser_owners(struct wb_dispenser *dispenser, struct wb_slice prefix, wb_owner_each each, void *context);

/* The visit of a site that is DONE goes on. Any other is left as it is. */
int wb_dispenser_again(struct wb_dispenser *dispenser, int64_t id);

/* A site that nobody holds and that is not over waits until a moment. WB_E_NOTFOUND. */
int wb_dispenser_put_aside(struct wb_dispenser *dispenser, int64_t id, int64_t until_ms, struct wb_slice reason);

/* Seeds of a site with an id above `after`, by id. */
typedef int (*wb_seed_each)(void *context, const struct wb_seed *seed);
int wb_dispenser_seeds(struct wb_dispenser *dispenser, int64_t site, int64_t after, wb_seed_each each, void *context);

/* Sites of a run that are DONE and have seeds that nobody took become READY again; how many. */
int wb_dispenser_reopen(struct wb_dispenser *dispenser, int64_t run, uint64_t *count_out);

/* ---- fetch lists (dispenser_list.c) ------------------------------------------------------------- */

/* What is to be asked for of a site, in order. */
struct wb_site_list {
    struct wb_slice name, scheme;
    const struct wb_seed *seeds;
    size_t seed_count;
};

struct wb_dispenser_list_stat {
    uint64_t sites, urls;
    uint64_t busy; /* sites that a crawler holds at this moment: left as they are */
};

/*
 * Makes them a new run, in one transaction. A site that a live owner holds is left as it is (busy); any other has these seeds and no others, and
 * begins a visit that asks for them; one that waits goes on waiting. Of the sites of `known` (names that wb_dispenser_know told of; may be
 * none) those that no visit ever reached join with the seeds that they have. run_out 0: there was nothing to do.
 */
int wb_dispenser_list(struct wb_dispenser *dispenser, int64_t now_ms, const struct wb_site_list *lists, size_t count,
                      const struct wb_slice *known, size_t known_count, int64_t *run_out, struct wb_dispenser_list_stat *stat_out);

/* The newest run of a list that has an unfinished site; 0: none has. */
int wb_dispenser_newest_list(struct wb_dispenser *dispenser, int64_t *run_out);

/* Sites that are to be known, and how they are to be treated; seeds only of those that are new. Begins no visit and moves none to another run. */
int wb_dispenser_know(struct wb_dispenser *dispenser, const struct wb_site_plan *plans, size_t count);

/* All sites by id (run 0), or those of a run; a batch a transaction. Where each returns non-zero, that is returned. */
int wb_dispenser_each(struct wb_dispenser *dispenser, int64_t run, wb_site_each each, void *context);

/* Classes: set by name, each told of by name. */
int wb_dispenser_set_classes(struct wb_dispenser *dispenser, const struct wb_site_class *classes, size_t count);
typedef int (*wb_class_each)(void *context, const struct wb_site_class *class);
int wb_dispenser_classes(struct wb_dispenser *dispenser, wb_class_each each, void *context);

/* ---- looking -------------------------------------------------------------------------------------- */

/* One row by name; WB_E_NOTFOUND. It borrows from mem. */
int wb_dispenser_get(struct wb_dispenser *dispenser, struct wb_slice name, struct wb_buf *mem, struct wb_site_row *row_out);

/* The same of a host with some port: "example.org:8080" where example.org is asked for. */
int wb_dispenser_get_host(struct wb_dispenser *dispenser, struct wb_slice host, struct wb_buf *mem, struct wb_site_row *row_out);

/* Sites that have this address first: the WB_SITE_NEIGHBOURS_MAX oldest of them. An address that 100,000 names share is no exception on the web. */
int wb_dispenser_neighbours(struct wb_dispenser *dispenser, struct wb_slice address, wb_site_each each, void *context);

/* Those of them with this probe, however many others there are. */
int wb_dispenser_twins(struct wb_dispenser *dispenser, struct wb_slice address, struct wb_slice probe, wb_site_each each, void *context);

struct wb_dispenser_stat {
    uint64_t unresolved, ready, claimed, waiting, done, alias, refused;
    int64_t next_ms;  /* the earliest moment at which a waiting site of the run may be claimed; 0: there is none */
};
/* run 0: of all. */
int wb_dispenser_stat(struct wb_dispenser *dispenser, int64_t run, struct wb_dispenser_stat *stat_out);

/* ---- seed files (seeds.c) ----------------------------------------------------------------------- */

/*
 * The seed list: URLs from the command line and from a file.
 *
 *   # a comment
 *   class small delay=20 priority=-10 budget=1000
 *   class news fetches=500 delay=2 min=10m max=1d
 *   https://example.org/
 *   https://tiny.example/  class=small
 *   https://other.example/  delay=2.5 budget=500 priority=5
 *
 * What a line says of a URL holds for its whole site. The class `small` is known without being
 * told: 20 seconds, after the others (WebBase Components, sections 2.1.1.1 and 2.1.2). What only a class
 * can have: fetches of a cycle for all its sites together, and the least and most time between two visits to a page.
 */
struct wb_seed_list {
    struct wb_site_plan *plans; /* one a URL; their text is in mem */
    struct wb_seed *seeds;
    size_t count, cap;
    char **mem;
    size_t mem_count, mem_cap;
    struct wb_seed_class *classes;      /* what they mean for the plan of a site */
    struct wb_site_class *site_classes; /* the same ones, for refreshing */
    size_t class_count;
};

typedef void (*wb_seeds_warn)(void *context, const char *message);

/* A URL of the command line; without a scheme https is meant. WB_E_INVALID naming it. */
int wb_seeds_add(struct wb_seed_list *list, struct wb_slice url);

/* A file ("-": standard input). Lines that make no sense are warned of and left out; WB_E_IO, WB_E_NOTFOUND. */
int wb_seeds_read(struct wb_seed_list *list, const char *path, wb_seeds_warn warn, void *context);

/* One line of such a file. */
int wb_seeds_line(struct wb_seed_list *list, struct wb_slice line);
void wb_seeds_release(struct wb_seed_list *list);

#endif
