/*
 * dispenser.h - the door of dispenser: which crawler process works on which site (WebBase Components, section 2.1.1).
 *
 * The seed dispenser is a database with one row per site. Crawler processes, possibly on several machines, *claim*
 * sites from it. A claim is a *lease*: it ends at a given time unless its owner renews it. So a process that dies
 * loses its sites, and nobody has to notice that it died. The database is SQLite in the repository's directory, or a
 * PostgreSQL server.
 *
 *                    resolved                 claimed                   visit over
 *   UNRESOLVED ----------------> READY ----------------> CLAIMED ----------------> DONE
 *                                  ^                      |   |  \---------------> ALIAS, REFUSED
 *                                  |    lease expired,    |   |
 *                                  +----------------------+   |  leave it alone until next_ms
 *                                  ^    released              v
 *                                  +----------------------- WAITING
 *
 * A *run* is one crawl, from its seeds to its end. A site takes part in one run at a time. A *visit* is one pass
 * through a site.
 *
 * How to use it: a crawl opens the dispenser, enters a run with the sites of its seeds, resolves their names and
 * reports the results. Each of its worker processes then claims sites, renews its leases, and reports what became of
 * the sites.
 *
 * Every call is one transaction, or several if it may change very many rows. Callbacks are called after the
 * transaction. A handle belongs to the process that opened it (it does not survive fork) and to one thread at a time.
 * Names and URLs are printable ASCII (WB_E_INVALID otherwise); other text is UTF-8 without NUL.
 */
#ifndef WB_DISPENSER_DISPENSER_H
#define WB_DISPENSER_DISPENSER_H

#include "base/buf.h"
#include "url/url.h"

#define WB_SITE_NAME_MAX 1024      /* wb_dispenser_add() leaves out longer names: nobody could resolve them */
#define WB_SITE_NEIGHBOURS_MAX 256 /* the most sites that wb_dispenser_neighbours() and wb_dispenser_twins() return */

/* ---- a site ---------------------------------------------------------------------------------------------------- */

/* The numbers are stored in the database. */
enum wb_site_state {
    WB_SITE_UNRESOLVED = 1, /* its name has not been resolved yet */
    WB_SITE_READY,          /* it can be claimed */
    WB_SITE_CLAIMED,        /* a crawler process works on it */
    WB_SITE_WAITING,        /* it must not be contacted until next_ms; then it can be claimed */
    WB_SITE_DONE,           /* its visit is over */
    WB_SITE_ALIAS,          /* it is another name of the site alias_of, and is not crawled */
    WB_SITE_REFUSED,        /* it has no address, or one that we do not contact; reason says which */
};

/* The place of a site's last record in the journal. The dispenser only stores it. Log 0: there is none. */
struct wb_site_trail {
    uint32_t log;
    uint64_t offset;
};

/* Whether a site takes part in its run only because pages of other sites need files of it (crawl --with). */
enum wb_site_needed {
    WB_NEEDED_NOT,  /* no: it is crawled */
    WB_NEEDED_ONLY, /* yes, and no crawl was ever told to crawl it */
    WB_NEEDED_HERE, /* yes, but earlier runs crawled it */
};

/* What the dispenser knows about a site. Its texts belong to the dispenser, or to the `mem` that was passed in. */
struct wb_site_row {
    int64_t id;
    struct wb_slice name;       /* "example.org", "example.org:8080" */
    struct wb_slice scheme;     /* "http" or "https": that of its first seed */
    enum wb_site_state state;
    enum wb_site_state before;  /* of a claimed or borrowed site: the state to which it returns if its owner dies */
    int64_t run;                /* the run that it takes part in; 0: none, it was only borrowed */
    int priority;               /* sites with a higher one are claimed first; small sites have a low one */
    int64_t delay_ms;           /* between two requests; -1: that of the run */
    int64_t budget;             /* pages per visit; -1: that of the run */
    struct wb_slice class_name; /* empty: it is in no class */
    struct wb_slice address;    /* as text; several are separated by blanks */
    int64_t address_expires_ms;
    int64_t next_ms;            /* it must not be contacted before this time (wall clock); 0: it may be at once */
    int attempts;               /* failures in a row */
    struct wb_slice reason;     /* why it waits, is refused, or was finished */
    struct wb_slice alias_of;   /* of an alias: the name of the site that is crawled instead */
    struct wb_slice probe;      /* digest of robots.txt and root page; empty: not known */
    uint32_t visit;             /* number of its last visit, from 1; 0: it was never visited */
    uint32_t listed;            /* number of the visit that a fetch list asks for; 0: there is none */
    int64_t sitemaps_ms;        /* when its sitemaps were last requested; 0: never */
    enum wb_site_needed needed; /* whether only files that other sites need are fetched */
    struct wb_site_trail trail; /* its last record in the journal */
    int64_t trail_ms;           /* the time of that record; 0: not known */
    struct wb_slice home;       /* the repository in whose journal the record is, and with which the site stays */
    int64_t seeds_taken;        /* seeds up to this id were moved to the frontier */
    struct wb_slice owner;      /* who holds the lease; empty: nobody */
    int64_t lease_ms;           /* when the lease ends, by wb_dispenser_clock() */
    int64_t pages;              /* pages stored in this visit */
};

/* Called for each site. If it returns non-zero, no more are reported and the call returns that value. */
typedef int (*wb_site_each)(void *context, const struct wb_site_row *row);

/* A class: sites that share settings. Seed files define them: "class news fetches=100 delay=2 min=10m max=1d". */
struct wb_site_class {
    struct wb_slice name;
    int64_t fetches;         /* URLs per cycle, for all its sites together; -1: they share the common budget */
    int64_t delay_ms;        /* -1: that of the run */
    int64_t min_ms, max_ms;  /* least and most time between two visits to a page; 0: no bound */
};

/* A URL that a visit starts from. */
struct wb_seed {
    int64_t id;
    struct wb_slice url;
    struct wb_depth depth;
};

/* ---- opening (dispenser.c, dispenser_url.c) -------------------------------------------------------------------- */

struct wb_dispenser;

/* Given instead of a URL, this means: SQLite in dir/dispenser.db. */
#define WB_DISPENSER_OWN "sqlite"

/*
 * Opens the dispenser, and creates its tables if they are missing. url is "postgres://...", "postgresql://..." or
 * WB_DISPENSER_OWN. NULL means the URL that dir remembers, or WB_DISPENSER_OWN if it remembers none.
 */
int wb_dispenser_open(const char *dir, const char *url, struct wb_dispenser **dispenser_out);
void wb_dispenser_close(struct wb_dispenser *dispenser);

/* True if this is the URL of a dispenser. */
bool wb_dispenser_is_url(struct wb_slice url);

/* Reads the URL that dir remembers, followed by a NUL; empty: dir uses its own. WB_E_CORRUPT. */
int wb_dispenser_recall_url(const char *dir, struct wb_buf *url_out);

/* Makes dir remember a URL, so that later commands need not be told. */
int wb_dispenser_remember_url(const char *dir, const char *url);

/* Appends a URL without its password and parameters, for people to read. */
int wb_dispenser_redact_url(struct wb_slice url, struct wb_buf *text_out);

/*
 * Checks dir/dispenser.db, if it exists; a PostgreSQL server checks its own files. Calls found for damage (problem is
 * true) and for what is only worth a note. Damage is not an error.
 */
typedef void (*wb_dispenser_found)(void *context, bool problem, uint64_t offset, const char *message);
int wb_dispenser_verify(const char *dir, wb_dispenser_found found, void *context);

/* ---- sites and runs (dispenser_add.c, dispenser_runs.c) -------------------------------------------------------- */

/* What is wanted of a site. */
struct wb_site_plan {
    struct wb_slice name, scheme;
    struct wb_slice class_name;  /* empty: leave it as it is */
    int priority;                /* INT_MIN: leave it as it is */
    int64_t delay_ms, budget;    /* -2: leave it as it is; -1: that of the run */
    const struct wb_seed *seeds; /* URLs to add; those that the site already has are left out */
    size_t seed_count;
    bool revisit;                /* if the site's visit is over, another one starts; false: it only gets the seeds */
    bool by_link;                /* a link led here: another visit starts only if the last one was in an earlier run */
    bool listed;                 /* with by_link: that visit fetches only this plan's seeds, no older ones */
    bool needed;                 /* with by_link: pages of other sites need the seeds. They are fetched, even if they
                                    were fetched in earlier runs, but nothing else if the run does not crawl the site */
    int64_t continues;           /* the run that this one continues: what it finished is not started again; 0: none */
};

/*
 * Adds sites and seeds to a run, in one transaction. A site that exists keeps its state, times and trail. With
 * plan.revisit, one that is over (DONE, ALIAS, REFUSED) returns to UNRESOLVED with no pages and no seeds taken, and a
 * listed visit that nobody has started becomes a plain one. A site that a newer run has not finished stays in that
 * run. *added_out: how many sites are new.
 */
int wb_dispenser_add(struct wb_dispenser *dispenser, int64_t run, const struct wb_site_plan *plans, size_t count,
                     uint64_t *added_out);

/* What a crawl wants to do. */
struct wb_run_plan {
    struct wb_site_plan *plans;       /* the sites of its seeds; wb_dispenser_enter_run() sets `continues` */
    size_t count;
    char *const *domains;             /* registrable domains that its scope covers */
    size_t domain_count;
    bool all;                         /* its scope is everything */
};

/*
 * Determines the run that a crawl takes part in, and adds its plans to that run, in one transaction. Crawls of the
 * same seeds share one run, at the same time or one after another: if the newest unfinished run consists of exactly
 * the sites that this crawl wants, that is its run. Otherwise it gets a new run. *continues_out is the newest
 * unfinished run, of which a new run continues a part; 0: there is none. A run is unfinished if some of the wanted
 * sites in it are UNRESOLVED, READY or CLAIMED. Runs of fetch lists do not count.
 */
int wb_dispenser_enter_run(struct wb_dispenser *dispenser, const struct wb_run_plan *plan, int64_t *run_out,
                           int64_t *continues_out);

/* Moves unfinished sites into a run: all of them, or those of a registrable domain. */
int wb_dispenser_join_run(struct wb_dispenser *dispenser, int64_t run, bool all, struct wb_slice domain);

/* Sites of a run that are DONE but have seeds that nobody took become READY again. *count_out: how many. */
int wb_dispenser_reopen(struct wb_dispenser *dispenser, int64_t run, uint64_t *count_out);

/* ---- resolving names (dispenser_read.c, dispenser_report.c) ---------------------------------------------------- */

/*
 * Reports at most max sites of the run whose names need resolving: UNRESOLVED ones by id, then READY and WAITING ones
 * whose address has expired, the longest expired first.
 */
int wb_dispenser_unresolved(struct wb_dispenser *dispenser, int64_t run, int64_t now_ms, unsigned max,
                            wb_site_each each, void *context);

/*
 * Records that a name was resolved: the site becomes READY with these addresses, or REFUSED if a reason is given. A
 * WAITING site with addresses keeps waiting. A site that is claimed or over only gets its addresses. WB_E_NOTFOUND.
 */
int wb_dispenser_resolved(struct wb_dispenser *dispenser, int64_t id, struct wb_slice address, int64_t expires_ms,
                          struct wb_slice refused);

/*
 * Records that resolving failed for now, which says nothing about whether the name exists. A site without an address
 * becomes WAITING until next_ms and is then resolved again. A site whose address has expired keeps it until then.
 * WB_E_NOTFOUND.
 */
int wb_dispenser_unresolvable(struct wb_dispenser *dispenser, int64_t id, int64_t next_ms, int attempts,
                              struct wb_slice reason);

/* Ends the wait of those sites that still have no address, so that the next run resolves them at once. */
int wb_dispenser_resolve_again(struct wb_dispenser *dispenser, const int64_t *ids, size_t count, int64_t now_ms);

/* ---- leases (dispenser_claim.c) -------------------------------------------------------------------------------- */

/*
 * The clock by which leases are measured. It is the database's clock, so that processes whose own clocks differ agree
 * on who holds a site (sql.h). Compare lease_ms of a row with it; it has no meaning otherwise.
 */
int wb_dispenser_clock(struct wb_dispenser *dispenser, int64_t *now_ms_out);

/*
 * From now on, this handle claims and renews for the repository `home`, in this run. A site that is claimed for a
 * repository stays with it, because its history is in the journal there: no other repository can claim it in the run
 * before the last claim or renewal for its home is as long ago as leases last. Without this call, a handle claims the
 * sites of all. WB_E_INVALID if the name is empty or too long.
 */
int wb_dispenser_serve(struct wb_dispenser *dispenser, int64_t run, struct wb_slice home);

/*
 * Nobody works for the repository in this run any more, so others need not wait until it is gone. If somebody still
 * does, the next claim or renewal for it says so.
 */
int wb_dispenser_leave(struct wb_dispenser *dispenser, int64_t run, struct wb_slice home);

/* For tests, which run a week of leases in a second: if set, this clock is used instead. */
extern int64_t (*wb_dispenser_test_clock)(void);

/*
 * Claims up to max sites of the run for owner, for lease_ms milliseconds. Candidates are READY sites, WAITING ones
 * whose next_ms is not after now_ms, and CLAIMED ones whose lease has expired (but not owner's own), by priority,
 * then id. A site whose first address is also that of a site that another live owner holds is left to that owner: one
 * address, one process. A site of another repository is left to that one, too (wb_dispenser_serve); one that moves here
 * from a repository that is gone has no trail. Calls each with every row as claimed; if that fails, the sites stay
 * claimed.
 */
int wb_dispenser_claim(struct wb_dispenser *dispenser, int64_t run, struct wb_slice owner, int64_t now_ms,
                       int64_t lease_ms, unsigned max, wb_site_each each, void *context);

/*
 * Claims one site by name, in any run and state, no matter who holds its address. WB_E_BUSY if another live owner holds
 * the site itself. Adds the site if it does not exist (with `before` UNRESOLVED, in run 0). To return it unchanged,
 * report row->before as its state.
 */
int wb_dispenser_borrow(struct wb_dispenser *dispenser, struct wb_slice name, struct wb_slice scheme,
                        struct wb_slice owner, int64_t lease_ms, wb_site_each each, void *context);

/*
 * Extends all leases of owner to lease_ms milliseconds from now. WB_E_BUSY if one had expired and another process
 * took the site: then owner must stop contacting its sites and call wb_dispenser_release(), after which it may claim
 * again.
 */
int wb_dispenser_renew(struct wb_dispenser *dispenser, struct wb_slice owner, int64_t lease_ms);

/*
 * Takes back everything that a dead process held. A site that nobody finished becomes READY and keeps its next_ms,
 * which the next owner must respect. A borrowed site returns to its state before.
 */
int wb_dispenser_release(struct wb_dispenser *dispenser, struct wb_slice owner);

/* Reports every owner of a lease whose name starts with prefix. */
typedef int (*wb_owner_each)(void *context, struct wb_slice owner);
int wb_dispenser_owners(struct wb_dispenser *dispenser, struct wb_slice prefix, wb_owner_each each, void *context);

/* ---- what became of a site (dispenser_report.c) ---------------------------------------------------------------- */

/* What a crawler reports about a site that it holds. */
struct wb_site_report {
    int64_t id;
    enum wb_site_state state;   /* CLAIMED: the crawler keeps it; any other state ends the lease */
    int64_t next_ms;
    int attempts;
    struct wb_slice reason, alias_of;
    struct wb_slice probe, home; /* empty: leave it as it is */
    uint32_t visit;
    int64_t sitemaps_ms;        /* 0: leave it as it is */
    struct wb_site_trail trail; /* log 0: leave it as it is */
    int64_t trail_ms;           /* the time of that record */
    int64_t seeds_taken, pages;
};

/*
 * Records reports, in one transaction. DONE becomes READY if the site has received seeds beyond seeds_taken
 * meanwhile; READY without an address becomes UNRESOLVED. For a site that owner does not hold (any more), only trail
 * and home are recorded, and only if the reported record is newer: its trail_ms is later, or equal with a later
 * place, and if the site has not moved to another repository. The numbers of logs alone say nothing about time,
 * because a process that started long ago still writes to its old log.
 */
int wb_dispenser_report(struct wb_dispenser *dispenser, struct wb_slice owner, const struct wb_site_report *reports,
                        size_t count);

/*
 * What the crawler of a site has learned in a run. The texts are the crawler's (UTF-8 without NUL); the dispenser keeps
 * them, in order, for the process that takes the site over when its home is gone, until there is news of another run.
 */
struct wb_site_news {
    int64_t site;
    struct wb_slice text;
};

/* Whether other repositories can use this dispenser, too, so that telling them makes sense. */
bool wb_dispenser_is_shared(const struct wb_dispenser *dispenser);

/* Adds news of sites, in one transaction. */
int wb_dispenser_tell(struct wb_dispenser *dispenser, int64_t run, const struct wb_site_news *news, size_t count);

/* Reports the news of a site, oldest first. own: also what this handle's home has told. */
typedef int (*wb_news_each)(void *context, struct wb_slice text);
int wb_dispenser_news(struct wb_dispenser *dispenser, int64_t run, int64_t site, bool own, wb_news_each each,
                      void *context);

/* Resumes the visit of a site that is DONE. Any other site is left as it is. */
int wb_dispenser_resume(struct wb_dispenser *dispenser, int64_t id);

/* Makes a site wait until a given time, unless somebody holds it or it is over. WB_E_NOTFOUND. */
int wb_dispenser_put_aside(struct wb_dispenser *dispenser, int64_t id, int64_t until_ms, struct wb_slice reason);

/* Sites that wait for exactly this reason can be claimed again at now_ms, in whatever run they are. */
int wb_dispenser_end_waits(struct wb_dispenser *dispenser, struct wb_slice reason, int64_t now_ms);

/* ---- fetch lists (dispenser_list.c) ---------------------------------------------------------------------------- */

/* The URLs that a fetch list asks for at one site, in order. */
struct wb_site_list {
    struct wb_slice name, scheme;
    const struct wb_seed *seeds;
    size_t seed_count;
};

struct wb_dispenser_list_stat {
    uint64_t sites, urls;
    uint64_t busy; /* sites that a crawler holds at this moment: they were left as they are */
};

/*
 * Makes a new run from fetch lists, in one transaction. A site that a live owner holds is left as it is. Any other
 * site gets exactly these seeds and starts a visit that fetches them; one that waits keeps waiting. `known` are names
 * that were given to wb_dispenser_introduce(); those that were never visited take part too, with the seeds that they
 * have. *run_out 0: there was nothing to do.
 */
int wb_dispenser_enter_lists(struct wb_dispenser *dispenser, int64_t now_ms, const struct wb_site_list *lists,
                             size_t count, const struct wb_slice *known, size_t known_count, int64_t *run_out,
                             struct wb_dispenser_list_stat *stat_out);

/* The newest run made from fetch lists that has an unfinished site; 0: there is none. */
int wb_dispenser_newest_list(struct wb_dispenser *dispenser, int64_t *run_out);

/*
 * Adds sites with their settings, and updates the settings of those that exist. Only sites that were never visited
 * get the seeds. Starts no visit and moves no site to another run.
 */
int wb_dispenser_introduce(struct wb_dispenser *dispenser, const struct wb_site_plan *plans, size_t count);

/* ---- classes (dispenser_class.c) ------------------------------------------------------------------------------- */

/* Sets classes, each found by its name. */
int wb_dispenser_set_classes(struct wb_dispenser *dispenser, const struct wb_site_class *classes, size_t count);

/* Reports all classes by name. */
typedef int (*wb_class_each)(void *context, const struct wb_site_class *class);
int wb_dispenser_classes(struct wb_dispenser *dispenser, wb_class_each each, void *context);

/* ---- reading (dispenser_read.c) -------------------------------------------------------------------------------- */

/* Reads one row by name. It borrows from mem. WB_E_NOTFOUND. */
int wb_dispenser_get(struct wb_dispenser *dispenser, struct wb_slice name, struct wb_buf *mem,
                     struct wb_site_row *row_out);

/* The same for a site of this host on some port: "example.org:8080" if host is "example.org". */
int wb_dispenser_get_host(struct wb_dispenser *dispenser, struct wb_slice host, struct wb_buf *mem,
                          struct wb_site_row *row_out);

/* Reports all sites by id (run 0), or those of a run, in several transactions. */
int wb_dispenser_each(struct wb_dispenser *dispenser, int64_t run, wb_site_each each, void *context);

/*
 * Reports the sites with this first address: the oldest WB_SITE_NEIGHBOURS_MAX of them, as 100,000 names can share an
 * address.
 */
int wb_dispenser_neighbours(struct wb_dispenser *dispenser, struct wb_slice address, wb_site_each each, void *context);

/* Reports those of them that have this probe, however many others there are. */
int wb_dispenser_twins(struct wb_dispenser *dispenser, struct wb_slice address, struct wb_slice probe,
                       wb_site_each each, void *context);

/* Reports the seeds of a site with an id above `after`, by id. */
typedef int (*wb_seed_each)(void *context, const struct wb_seed *seed);
int wb_dispenser_seeds(struct wb_dispenser *dispenser, int64_t site, int64_t after, wb_seed_each each, void *context);

/* What people look for, a page at a time. */
enum wb_site_order { WB_SITE_BY_NAME, WB_SITE_BY_STATE, WB_SITE_BY_NEXT, WB_SITE_BY_PAGES, WB_SITE_BY_ATTEMPTS };

struct wb_site_search {
    struct wb_slice text;     /* in the name; empty: all */
    enum wb_site_state state; /* 0: any */
    enum wb_site_order order; /* then by name */
    bool descending;
    uint64_t offset;
    unsigned max;
};

/* Reports the sites that are found, in order, and how many there are in all. It looks at every site once. */
int wb_dispenser_search(struct wb_dispenser *dispenser, const struct wb_site_search *search, wb_site_each each,
                        void *context, uint64_t *total_out);

/* How many sites are in each state. */
struct wb_dispenser_stat {
    uint64_t unresolved, ready, claimed, waiting, done, alias, refused;
    int64_t next_ms;  /* when the first waiting site can be claimed; 0: none waits */
};

/* Counts the sites of a run; run 0: all sites. */
int wb_dispenser_stat(struct wb_dispenser *dispenser, int64_t run, struct wb_dispenser_stat *stat_out);

/* ---- seed files (seeds.c) -------------------------------------------------------------------------------------- */

struct wb_seed_class;

/*
 * Seeds from the command line and from files, as plans for wb_dispenser_enter_run(). A file looks like this:
 *
 *   # a comment
 *   class small delay=20 priority=-10 budget=1000
 *   class news fetches=500 delay=2 min=10m max=1d
 *   https://example.org/
 *   https://tiny.example/  class=small
 *   https://other.example/  delay=2.5 budget=500 priority=5
 *
 * The settings after a URL apply to its whole site. The class `small` exists even if no file defines it: 20 seconds
 * between requests, claimed after the others (WebBase Components, sections 2.1.1.1 and 2.1.2). Only a class can have
 * `fetches`, the number of URLs per cycle for all its sites together, and `min` and `max`, the least and most time
 * between two visits to a page.
 *
 * All zero: no seeds.
 */
struct wb_seeds {
    struct wb_site_plan *plans;         /* one for each URL; their texts are in mem */
    struct wb_seed *seeds;              /* the seed of each plan */
    size_t count, plan_cap, seed_cap;
    char **mem;
    size_t mem_count, mem_cap;
    struct wb_seed_class *classes;      /* what each class means for the plan of a site */
    struct wb_site_class *site_classes; /* the same classes, for wb_dispenser_set_classes() */
    size_t class_count, class_cap, site_class_cap;
};

typedef void (*wb_seeds_warn)(void *context, const char *message);

/* Adds a URL from the command line; without a scheme, https is assumed. WB_E_INVALID with a message that names it. */
int wb_seeds_add(struct wb_seeds *seeds, struct wb_slice url);

/* Reads a file ("-": standard input). Invalid lines are left out, with a warning. WB_E_IO, WB_E_NOTFOUND. */
int wb_seeds_read(struct wb_seeds *seeds, const char *path, wb_seeds_warn warn, void *context);

/* A test seam. Reads one line of such a file. */
int wb_seeds_line(struct wb_seeds *seeds, struct wb_slice line);

void wb_seeds_release(struct wb_seeds *seeds);

#endif
