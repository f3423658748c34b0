/*
 * crawl.h - the door of crawl: copies sites into a repository, politely.
 *
 *   seeds -> seed dispenser (one row per site) -> N worker processes, each an event loop over many sites
 *   a site:     robots.txt first, then the URLs in its queue, one request at a time, at the site's interval
 *   a response: the page goes to the spool and the store, its facts and links go to the journal
 *
 * A crawl can be killed at any moment. The next crawl of the same seeds continues where it was.
 *
 * Where to read on: worker.h follows one page through a worker process; parent.h has the process that starts the
 * workers and ends the crawl; docs/design/0009-crawler.md has the reasons.
 */
#ifndef WB_CRAWL_CRAWL_H
#define WB_CRAWL_CRAWL_H

#include "base/buf.h"
#include "crawl/trap.h" /* the guards against endless sites: cycle asks them too when it chooses pages */
#include "dispenser/dispenser.h"
#include "journal/journal.h"

/* ---- crawling ---------------------------------------------------------------------------------------------------- */

#define WB_CRAWL_DELAY_MS 5000 /* the paper's interval for ordinary sites */

/* Which links may be followed to other sites: none, those within a seed's registrable domain, or all. */
enum wb_scope_kind { WB_SCOPE_SITE, WB_SCOPE_DOMAIN, WB_SCOPE_ANY };

/*
 * Media types, such as "image/png" and "image/" with an asterisk for all of its subtypes, several of them in one item
 * separated by commas. No items: all types.
 */
struct wb_crawl_types {
    const char *const *items;
    size_t count;
};

/* Whether this is a media type as in struct wb_crawl_types. */
bool wb_crawl_type_is_sound(struct wb_slice type);

bool wb_crawl_types_have(const struct wb_crawl_types *types, struct wb_slice type);

/*
 * Whether a page is worth a request. One that says by the ending of its path that it is of another type is not, unless
 * that type is read for its links.
 */
bool wb_crawl_types_promise(const struct wb_crawl_types *types, struct wb_slice path);

struct wb_crawl_orders; /* orders to a running crawl, below */

/* What a caller wants. A member that is 0 or NULL takes its default unless its comment says otherwise. */
struct wb_crawl_options {
    const char *dir;              /* the repository; created if it does not exist */
    const char *const *urls;      /* seeds */
    size_t url_count;
    const char *seeds_file;       /* more seeds, with delays and classes; "-": standard input; NULL: no file */
    enum wb_scope_kind scope;
    int64_t run;                  /* crawl only the sites of this run (from wb_fetchlist_commit); 0: the seeds decide */
    uint64_t max_pages;           /* end after storing this many pages; 0: no limit */
    uint64_t max_fetches;         /* end after this many requests for pages, whatever comes of them; 0: no limit */
    uint32_t max_depth;           /* links away from a seed; UINT32_MAX: no limit */
    int64_t max_time_ms;          /* 0: no limit */
    int64_t delay_ms;             /* interval between two requests to a site; -1: WB_CRAWL_DELAY_MS */
    int64_t crawl_delay_max_ms;   /* the longest Crawl-delay of a robots.txt that we honour */
    unsigned processes;           /* workers; 0: one per processor, up to 8 */
    unsigned sites;               /* sites that one worker holds at a time */
    unsigned connections;         /* requests at a time to one site */
    unsigned per_address;         /* requests at a time to one IP address */
    const char *user_agent;       /* NULL: WB_HTTP_AGENT */
    bool allow_private;           /* contact private and loopback addresses too */
    const char *const *resolve;   /* fixed addresses, each HOST:PORT:ADDR */
    size_t resolve_count;
    const char *dns_servers;      /* NULL: the system's */
    unsigned dns_rate;            /* names per second */
    const char *dispenser;        /* postgres://... or "sqlite"; later crawls remember it. NULL: the remembered one */
    int64_t fresh_ms;             /* do not ask for pages that were fetched within this time; 0: ask for all */
    int64_t timeout_ms;           /* of one request */
    uint64_t max_bytes;           /* of one page; the rest is cut off */
    uint64_t max_rate;            /* bytes per second that all workers together receive; 0: no limit */
    uint64_t site_budget;         /* pages stored per site and visit */
    uint32_t lifetime_days;       /* how long a page may go unseen before it expires */
    bool root_first;              /* use seeds below a site's root page only if the root cannot be fetched */
    bool ignore_sitemaps;
    unsigned with;                /* enum wb_extract_need: what stored pages need is fetched too, wherever it is */
    const char *class_name;       /* work only for sites of this class; "default": those without one; NULL: for all */
    struct wb_crawl_types types;  /* store only pages of these media types */
    size_t max_links;             /* follow and record at most the first links of a page; 0: no limit */
    struct wb_crawl_orders *orders; /* what operators have told earlier crawls of this program; NULL: nothing */
    const char *ca_file;          /* certificates to trust; NULL: the system's */
};

/* What a crawl has done so far. All counts are of this crawl. */
struct wb_crawl_stat {
    uint64_t pages;        /* stored */
    uint64_t bytes;        /* of their bodies */
    uint64_t requests, unchanged, redirects, duplicates, gone, robots, skipped, errors, module_errors;
    uint64_t fetches;      /* requests for pages; for a fetch list also those of earlier crawls of the same run */
    uint64_t wire_bytes;   /* of bodies as received, before codings are undone */
    uint64_t known;        /* URLs that entered a queue */
    unsigned sites_active, sites_waiting; /* held by a worker; of these, waiting for their interval or a back-off */
    unsigned in_flight, processes;
    uint64_t sites_open, sites_done, sites_left; /* not finished yet; finished; left for a later crawl */
    uint64_t cpu_ms;       /* of all processes */
    char error_kinds[256]; /* "timeout 3, dns 1": the most frequent first */
    uint64_t lines_left;   /* lines of the log that a reader had not read at the end; the next crawl passes them on */
    double seconds;
};

/* The readers of the log of fetches: standard output (--json) and the file of --log. */
enum wb_crawl_output { WB_CRAWL_OUTPUT_JSON, WB_CRAWL_OUTPUT_LOG, WB_CRAWL_OUTPUTS };

/*
 * Where a crawl reports to while it runs. Any function may be NULL (take only if outputs is 0).
 *
 * take: gets lines of the log of fetches (JSON, one event per line) once the pages they are about are durable. It
 * writes as many bytes to the output as it can without waiting, sets *taken_out to their number, and is given the
 * rest again later. If it returns an error, the crawl ends; the lines that were not taken are kept for the next one.
 */
struct wb_crawl_sink {
    int (*take)(void *context, unsigned output, struct wb_slice bytes, size_t *taken_out);
    void (*progress)(void *context, const struct wb_crawl_stat *stat); /* several times per second */
    void (*warn)(void *context, const char *message);
    void *context;
    unsigned outputs; /* a set of bits: 1 << enum wb_crawl_output for each output that is wanted */
};

/*
 * Crawls until everything that can be done now is done, a limit is reached, or a signal arrives (WB_E_STOPPED, after
 * a clean end). stat_out is filled in all cases, errors included.
 */
int wb_crawl(const struct wb_crawl_options *options, const struct wb_crawl_sink *sink, struct wb_crawl_stat *stat_out);

/*
 * Tells where the dispenser of a repository is. Appends its URL, without the password, to text_out; appends nothing
 * if it is the repository's own SQLite file. *known_out is false if the repository has no dispenser yet.
 */
int wb_crawl_dispenser(const char *dir, struct wb_buf *text_out, bool *known_out);

/*
 * WB_E_NOTFOUND if options name a class that neither the seeds file nor the dispenser defines. Reads the seeds file, so
 * that must not be standard input. Changes nothing.
 */
int wb_crawl_check_class(const struct wb_crawl_options *options);

/* Checks the dispenser of the repository. found is called for each problem, as in wb_journal_verify(). */
int wb_crawl_verify(const char *dir, wb_journal_found found, void *context);

/*
 * Lists the logs of the journal that unfinished visits need to continue, so that nobody deletes them. The numbers are
 * sorted, each occurs once; the caller frees needs_out->logs. Recovers what dead crawls left first (recover.h).
 */
int wb_crawl_logs(const char *dir, const char *dispenser, struct wb_journal_needs *needs_out);

/* ---- orders to a running crawl (control.c) ----------------------------------------------------------------------- */

/*
 * The parent process of every crawl listens at a door that only exists while it lives: a Unix socket with an abstract
 * name, made from the device and inode of the repository's directory. So a crawl that was killed leaves nothing
 * behind, a copy of a repository has a door of its own, and neither the length of a path nor anybody's working
 * directory matters. The sender of a command must be root or the user who runs the crawl, and must be on the same
 * machine and in the same network namespace. docs/design/0030-control.md has the reasons, and the messages.
 *
 * Orders hold until the crawl ends. A program that crawls again and again can keep them in a struct wb_crawl_orders:
 * then a pause and the delays of sites hold for all its crawls, and a stopped site stays so until
 * wb_crawl_orders_restart().
 */
enum wb_control_verb {
    WB_CONTROL_PAUSE = 1, /* no worker begins a request; those under way end */
    WB_CONTROL_RESUME,
    WB_CONTROL_STOP,      /* nothing more is requested from `site`; what is in its queue stays for a later crawl */
    WB_CONTROL_DELAY,     /* at least delay_ms between two requests to `site`; never less than it has without this */
    WB_CONTROL_SITE,      /* says what was ordered about `site` */
    WB_CONTROL_STATUS,    /* says what the crawl has done and is doing */
    WB_CONTROL_VERBS,
};
const char *wb_control_verb_word(enum wb_control_verb verb); /* "pause", "stop", ... */

struct wb_control_command {
    enum wb_control_verb verb;
    const char *site;    /* of STOP, DELAY and SITE: "example.org", "example.org:8080", in any spelling */
    int64_t delay_ms;    /* of DELAY */
};

/*
 * Sends a command to the crawl that is running on the repository. If there are several, all of them get it, and it is
 * enough if one accepts it. Waits a few seconds at most. Appends one line of JSON to answer_out for each crawl that
 * accepted the command:
 *
 *   pause, resume  {"paused":true}
 *   stop, delay, site
 *                  {"site":"example.org","stopped":false,"delay":3,"paused":false}    delay in seconds; 0: none
 *   status         {"pid":1,"paused":false,"seconds":1.5,"pages":3,...}               see docs/design/0030-control.md
 *
 * WB_E_NOTFOUND: no crawl is running, or none has that site. WB_E_INVALID: not the name of a site. WB_E_BUSY: a crawl
 * is running, but does not answer. The message names the repository or the site.
 */
int wb_control_send(const char *dir, const struct wb_control_command *command, struct wb_buf *answer_out);

/* Orders that outlive a crawl; give them to it in struct wb_crawl_options. One crawl at a time uses them. */
int wb_crawl_orders_new(struct wb_crawl_orders **orders_out);
void wb_crawl_orders_free(struct wb_crawl_orders *orders);

/* From now on stopped sites are crawled again. */
void wb_crawl_orders_restart(struct wb_crawl_orders *orders);

/* ---- the latest fetches (recent.c) ------------------------------------------------------------------------------- */

/* A request of a crawl and what came of it. The texts may have been cut, and are whatever servers sent. */
struct wb_recent_fetch {
    uint64_t number;       /* ascends from 1 */
    int64_t time_ms;       /* when the request was sent */
    uint32_t took_ms;
    uint32_t queued;       /* URLs that were left in the queue of its site; WB_RECENT_UNKNOWN */
    uint16_t status;       /* 0: there was no answer */
    uint64_t bytes;
    struct wb_slice url;
    struct wb_slice result; /* the word of the log: "stored", "unchanged", "error:timeout" */
    struct wb_slice reason; /* more about an error; empty: nothing */
    bool cut;               /* the URL is longer */
};

#define WB_RECENT_UNKNOWN UINT32_MAX

/*
 * Calls each() for the fetches after this number, as far back as they are kept, the newest first; anything but 0 ends
 * that and is returned. *newest_out: the number of the newest one; 0: there is none. Disturbs no crawl.
 */
typedef int (*wb_recent_each)(void *context, const struct wb_recent_fetch *fetch);
int wb_recent_read(const char *dir, uint64_t after, wb_recent_each each, void *context, uint64_t *newest_out);

/* ---- why a page is or is not fetched (why.c) --------------------------------------------------------------------- */

enum wb_why_verdict { WB_WHY_UNKNOWN, WB_WHY_FETCHED, WB_WHY_WAITING, WB_WHY_BLOCKED };

struct wb_why {
    enum wb_why_verdict verdict;
    bool is_site;              /* the question was about a host, not about a URL */
    struct wb_buf subject;     /* the URL or the site */
    struct wb_buf reason;      /* a sentence */
    struct wb_buf robots_rule; /* the text of the robots.txt rule that decides; empty if none does */
    uint32_t robots_line;      /* the line that the rule is on */
    int64_t next_ms;           /* when it will next be asked for; 0: not known */
    int64_t fetched_ms;        /* when it was last fetched; 0: never */
    uint16_t status;           /* of the last response */
    size_t versions, captures; /* of the page that can be read; 0: none, or the question is about a host */
    int64_t since_ms;          /* when the latest version was first seen; 0: there is none */
    int64_t gone_ms;           /* since when the page has been gone, though versions of it are kept; 0: it is not */
};

/*
 * what: a URL, or a host with or without a port. dispenser and agent have the same meaning and defaults as in
 * struct wb_crawl_options. Release *why_out also after an error.
 */
int wb_why(const char *dir, const char *dispenser, const char *agent, const char *what, struct wb_why *why_out);
void wb_why_release(struct wb_why *why);

/* ---- fetch lists: others decide what is fetched next (fetchlist.c) ----------------------------------------------- */

/*
 * A fetch list becomes a run of the dispenser: sites, each with the URLs to ask for, in order. A listed site begins a
 * visit that asks for these URLs, and for new links if webdb has never heard of their targets; for nothing else.
 * Whatever an earlier visit left undone is given up, because webdb knows about it.
 *
 * open -> (site, domain: questions) -> add ... add -> commit -> close
 */
struct wb_fetchlist;

enum wb_listed_state {
    WB_LISTED_UNKNOWN,  /* no crawl was ever told of this site: it is out of scope */
    WB_LISTED_OPEN,     /* its visit is not over, or never began */
    WB_LISTED_DONE,     /* its last visit is over */
    WB_LISTED_AWAY,     /* it must wait or is refused, so its pages cannot be checked now */
    WB_LISTED_ALIAS,    /* another name of a site that is crawled */
};

struct wb_listed_site {
    enum wb_listed_state state;
    bool needed;             /* no crawl was told of it: pages of other sites need files of it (crawl --with) */
    int64_t next_ms;         /* must not be contacted before */
    size_t class_at;         /* index into wb_fetchlist_classes(); SIZE_MAX: the site has no class */
};

/*
 * Reads what the dispenser (NULL: the remembered one) knows of all sites. If seeds_file is not NULL, the file is read
 * first, and its classes and sites are added to the dispenser; warn (may be NULL) hears of lines that are wrong.
 */
int wb_fetchlist_open(const char *dir, const char *dispenser, const char *seeds_file,
                      void (*warn)(void *context, const char *message), void *context, struct wb_fetchlist **list_out);
void wb_fetchlist_close(struct wb_fetchlist *list);

const struct wb_site_class *wb_fetchlist_classes(const struct wb_fetchlist *list, size_t *count_out);

/* Whether a site is of the class of this name; NULL: any site is. "default": it has no class. */
bool wb_fetchlist_in_class(const struct wb_fetchlist *list, const struct wb_listed_site *site, const char *name);

/* Of the sites of the seeds file that were never visited, only those of this class take part in the run. */
void wb_fetchlist_limit(struct wb_fetchlist *list, const char *class_name);
void wb_fetchlist_site(const struct wb_fetchlist *list, struct wb_slice site, struct wb_listed_site *site_out);

/* Whether any site of this registrable domain is known to the dispenser. */
bool wb_fetchlist_domain(const struct wb_fetchlist *list, struct wb_slice domain);

/* Appends a URL. Add the URLs of one site one after the other, the most urgent first. */
int wb_fetchlist_add(struct wb_fetchlist *list, struct wb_slice url, uint16_t depth);

/*
 * Turns the list into a run, in one transaction. *run_out is 0 if nothing was added. Committing the same URLs again
 * before they were crawled changes nothing but the number of the run. Sites of the seeds file that no visit has
 * reached yet and that have no URL in the list join the run with their seeds from the file.
 */
int wb_fetchlist_commit(struct wb_fetchlist *list, int64_t *run_out, struct wb_dispenser_list_stat *stat_out);

/* After a commit: whether the site takes part in the run. One that another crawl holds was left out. */
int wb_fetchlist_joined(struct wb_fetchlist *list, int64_t run, struct wb_slice site, bool *joined_out);

#endif
