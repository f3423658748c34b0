/*
 * crawl.h - the door of crawl: politely copies sites into a repository.
 *
 *   seeds -> dispenser (a row a site) -> N processes, each an event loop over many sites
 *   a site: robots.txt, then its queue, one request after another in its interval
 *   an answer: page to the spool and the store, facts and links to the journal
 *
 * A crawl can be killed at any moment; the next one goes on where it was.
 */
#ifndef WB_CRAWL_CRAWL_H
#define WB_CRAWL_CRAWL_H

#include "base/buf.h"
#include "crawl/fetchlist.h"
#include "crawl/trap.h"

#define WB_CRAWL_DELAY_MS 5000 /* the paper's interval for ordinary sites */

enum wb_scope_kind { WB_SCOPE_SITE, WB_SCOPE_DOMAIN, WB_SCOPE_ANY };

struct wb_crawl_options {
    const char *dir;              /* the repository; made where there is none */
    const char *const *urls;      /* seeds */
    size_t url_count;
    const char *seeds_file;       /* more of them, with delays and classes; NULL: none; "-": standard input */
    enum wb_scope_kind scope;
    int64_t run;                  /* only the sites of this run, made by wb_fetchlist_commit(); 0: by the seeds */
    uint64_t max_pages;           /* stored in this run; 0: no limit */
    uint64_t max_fetches;         /* requests for pages in this run, whatever comes of them; 0: no limit */
    uint32_t max_depth;           /* links away from a seed; UINT32_MAX: no limit */
    int64_t max_time_ms;          /* 0: no limit */
    int64_t delay_ms;             /* -1: WB_CRAWL_DELAY_MS */
    int64_t crawl_delay_max_ms;   /* a robots.txt may ask for more; it is given this much */
    unsigned processes;           /* 0: by the machine */
    unsigned sites;               /* at once in a process, 0: the default */
    unsigned connections;         /* requests at once to a site, 0: 1 */
    unsigned per_address;         /* requests at once to an address, 0: the default */
    const char *user_agent;       /* NULL: WB_HTTP_AGENT */
    bool allow_private;
    const char *const *resolve;   /* HOST:PORT:ADDR */
    size_t resolve_count;
    const char *dns_servers;      /* NULL: the system's */
    unsigned dns_rate;
    const char *dispenser;        /* postgres://... or "sqlite", which is remembered; NULL: as remembered, SQLite in the repository at first */
    int64_t fresh_ms;             /* pages fetched within this are left alone; 0: none are */
    int64_t timeout_ms;           /* of an answer; 0: the default */
    uint64_t max_bytes;           /* of a page; 0: the default */
    uint64_t site_budget;         /* pages stored of a site in a visit; 0: the default */
    uint32_t lifetime_days;       /* 0: the default */
    bool root_first;              /* no deep entry into a site that has a reachable root */
    bool ignore_sitemaps;
    const char *ca_file;          /* certificates to trust; NULL: the system's */
};

/* What a crawl has come to; all counts are of this run. */
struct wb_crawl_stat {
    uint64_t pages;        /* stored */
    uint64_t bytes;        /* of their bodies */
    uint64_t requests, unchanged, redirects, duplicates, gone, robots, skipped, errors;
    uint64_t fetches;      /* requests for pages; of a fetch list's run also those of crawls of it that were killed */
    uint64_t wire_bytes;   /* of bodies as they came */
    uint64_t known;        /* URLs that entered a queue */
    unsigned sites_active, sites_waiting; /* held by a process; of these, waiting for their interval or a back-off */
    unsigned in_flight, processes;
    uint64_t sites_open, sites_done, sites_left; /* not finished yet; finished; left for another run */
    uint64_t cpu_ms;       /* of all processes */
    char error_kinds[256]; /* "timeout 3, dns 1": the most frequent first */
    uint64_t lines_left;   /* of the log, that a reader did not take before a signal came; the next crawl passes them on */
    double seconds;
};

/* The readers of the log of fetches: standard output (--json) and the file of --log. */
enum wb_crawl_output { WB_CRAWL_OUTPUT_JSON, WB_CRAWL_OUTPUT_LOG, WB_CRAWL_OUTPUTS };

/*
 * What happened, told while the crawl runs. Any may be NULL (take only where outputs is 0).
 *
 * take: fetch events in JSON, a line each, after what they tell of is durable. It takes as many bytes as can be written to the output (enum
 * wb_crawl_output) without waiting, says how many, and is given the rest later. An error ends the crawl; what was not taken is kept for the next one.
 */
struct wb_crawl_sink {
    int (*take)(void *context, unsigned output, struct wb_slice bytes, size_t *taken_out);
    void (*progress)(void *context, const struct wb_crawl_stat *stat); /* some times a second */
    void (*warn)(void *context, const char *message);
    void *context;
    unsigned outputs; /* a bit for each that is wanted */
};

/*
 * Crawls until everything that can be done now is done, a limit is reached or a signal came
 * (WB_E_STOPPED, after a clean end). stat_out is filled in any case.
 */
int wb_crawl(const struct wb_crawl_options *options, const struct wb_crawl_sink *sink, struct wb_crawl_stat *stat_out);

/*
 * Where the dispenser of a repository is, for people: a URL without its password, appended to text_out; nothing where it is the
 * repository's own. *known_out: whether there is one at all.
 */
int wb_crawl_dispenser(const char *dir, struct wb_buf *text_out, bool *known_out);

/* Checks what crawls keep beside the store, journal and webdb: the dispenser of the repository. found: as for the journal (edit.h). */
int wb_crawl_verify(const char *dir, wb_journal_found found, void *context);

/* ---- why ------------------------------------------------------------------------------ */

enum wb_why_verdict { WB_WHY_UNKNOWN, WB_WHY_FETCHED, WB_WHY_WAITING, WB_WHY_BLOCKED };

struct wb_why {
    enum wb_why_verdict verdict;
    bool is_site;              /* asked of a host, not of a URL */
    struct wb_buf subject;     /* the URL or the site */
    struct wb_buf reason;      /* a sentence */
    struct wb_buf robots_rule; /* the text of the rule that decides; empty: none */
    uint32_t robots_line;      /* its line */
    int64_t next_ms;           /* when it will be asked for again, as far as known; 0: not known */
    int64_t fetched_ms;        /* when it was; 0: never */
    uint16_t status;           /* of the last answer */
};

/* what: a URL, or a host with or without its port. dispenser and agent (NULL: the default) as in the crawl's options. */
int wb_why(const char *dir, const char *dispenser, const char *agent, const char *what, struct wb_why *why_out);
void wb_why_release(struct wb_why *why);

#endif
