/*
 * webdb.h - the door of webdb: what is known of every page and link (the paper's WebDB).
 *
 *   journal/  edits as they happen (journal/journal.h)
 *   webdb/00000003/   an edition: four sorted tables, written by a merge, never changed
 *
 *     pages by URL     SURT -> facts; a page's number is its rank here
 *     pages by MD5     (MD5, page number); a content's number is the rank of its first entry
 *     links by MD5     content number -> (page number, anchor, tag)...
 *     links by URL     page number -> (content number, anchor, tag)...
 *
 * Beside them: numbers of links to each page, sums over sites, near duplicates, and robots.txt of sites while it holds.
 *
 * A link comes from a content, named by its MD5, and leads to a URL. Numbers make it a few bytes; they hold within a
 * edition only. A writer collects edits and changes nothing until it is closed; then they are sorted and merged, table after
 * table in the order above, and the new edition appears by one rename. Readers keep the one that they opened.
 */
#ifndef WB_WEBDB_WEBDB_H
#define WB_WEBDB_WEBDB_H

#include "journal/journal.h"

/* ---- pages ------------------------------------------------------------------------------------ */

#define WB_HISTORY_BINS 40
#define WB_HISTORY_FETCHES 8

/* What visits told of a page's changes, small enough to be kept for every page. */
struct wb_history {
    uint32_t visits;               /* successful ones after the first: gaps seen */
    uint32_t changes;              /* gaps at whose end the content was another */
    double unchanged_days;         /* sum of the gaps that saw no change */
    uint16_t changed[WB_HISTORY_BINS]; /* the other gaps by length: bin i holds 2^(i/2) to 2^((i+1)/2) minutes, shorter ones bin 0 */
    /* Where the server tells when a page was last modified, and that was never contradicted: Cho and Garcia-Molina's N, X and T. */
    bool modified_lies;            /* the content changed and the time did not, or it lies in the future */
    uint32_t modified_visits, modified_changes;
    double modified_days;
    struct wb_history_fetch {
        int64_t time_ms;
        uint8_t outcome;           /* enum wb_edit_outcome */
        uint16_t status;
    } fetches[WB_HISTORY_FETCHES]; /* the last ones, oldest first */
    uint8_t fetch_count;
};

/* The middle of a bin, in days. */
double wb_history_bin_days(unsigned bin);

/* A successful visit gap_ms after the one before. modified_ms: what the server says, 0: nothing. */
void wb_history_visit(struct wb_history *history, int64_t gap_ms, bool changed, int64_t modified_ms, int64_t time_ms);

enum wb_webdb_flags {
    WB_PAGE_WANTED = 1 << 0,     /* a seed, a hint, a push or a link of a kind that is followed leads there */
    WB_PAGE_GONE = 1 << 1,       /* the last answer was 404 or 410 */
    WB_PAGE_PUSHED = 1 << 2,     /* announced and not fetched since */
    WB_PAGE_PUSHED_GONE = 1 << 3, /* announced as gone, to be verified */
    WB_PAGE_BARRED = 1 << 4,     /* taken down: never to be fetched */
    WB_PAGE_BLOCKED = 1 << 5,    /* robots.txt forbade the last attempt */
    WB_PAGE_SCORED = 1 << 6,     /* the score was set; otherwise it follows from the number of links here */
    WB_PAGE_LOADED = 1 << 7,     /* its content is the name of a vertex of a loaded graph: nothing was fetched */
    WB_PAGE_TARGET = 1 << 8,     /* no page, only what links lead to (deleted, or never added); readers do not see it */
};

struct wb_webdb_page {
    struct wb_slice url;         /* with its scheme, as fetched or first heard of */
    struct wb_slice surt;        /* its place in the order of URLs */
    uint64_t number;             /* in this edition */
    unsigned flags;              /* enum wb_webdb_flags */
    bool has_content;            /* there is a stored page: md5, simhash and title_hash are of it */
    uint8_t md5[WB_EDIT_MD5_BYTES];
    uint64_t simhash, title_hash;
    uint64_t bytes;
    uint16_t status;             /* of the last answer; 0: none yet */
    uint8_t outcome;             /* of the last attempt, 0: none yet */
    uint16_t depth;              /* links away from a seed, the fewest known */
    uint16_t failures;           /* attempts in a row that told nothing */
    uint16_t signals;            /* sitemaps and feeds that told of a change since the last fetch */
    int64_t first_seen_ms;       /* heard of */
    int64_t last_seen_ms;        /* fetched, or seen to be unchanged; 0: never */
    int64_t last_tried_ms;       /* asked for, whatever came; 0: never */
    int64_t last_changed_ms;     /* 0: never fetched */
    int64_t hint_ms;             /* the latest time of change that a sitemap or feed told */
    int64_t next_due_ms;         /* 0: as soon as possible */
    int64_t expires_ms;          /* when its lifetime ends; 0: never, or no content */
    int64_t asked_ms;            /* handed to the crawler because of that, and not visited since; 0: not */
    uint32_t lifetime;           /* days; 0: for ever */
    double score;
    uint64_t inlinks;            /* contents that link here; filled in by readers */
    bool near;                   /* it is a near duplicate of another page, that of near_number; filled in by readers */
    uint64_t near_number;
    struct wb_slice etag, modified, type; /* of the content */
    struct wb_slice location;    /* where it redirects */
    struct wb_history history;
};

/* The pages of a site together; priors for those with little history of their own. */
struct wb_webdb_site {
    struct wb_slice name;        /* "example.org:8080" */
    uint64_t pages, fetched;
    uint64_t visits, changes;    /* sums over its pages' histories */
    double days;                 /* sum of all gaps */
};

struct wb_webdb_link {
    uint8_t from_md5[WB_EDIT_MD5_BYTES];
    struct wb_slice to;          /* a URL with its scheme */
    struct wb_slice anchor;
    uint8_t tag, flags;          /* as in the edit log */
};

/* ---- reading ------------------------------------------------------------------------------------- */

struct wb_webdb;

/* The newest edition. WB_E_NOTFOUND: there is none yet. One handle a thread. */
int wb_webdb_open(const char *dir, struct wb_webdb **webdb_out);
void wb_webdb_close(struct wb_webdb *webdb);

/* What page_out's text borrows from is valid until the next call with this handle. WB_E_NOTFOUND; WB_E_INVALID: no URL. */
int wb_webdb_get_page(struct wb_webdb *webdb, struct wb_slice url, struct wb_webdb_page *page_out);

/* The URL of a page by its number in this edition, such as near_number. WB_E_NOTFOUND. */
int wb_webdb_page_url(struct wb_webdb *webdb, uint64_t number, struct wb_buf *url_out);

int wb_webdb_page_exists(struct wb_webdb *webdb, const uint8_t md5[WB_EDIT_MD5_BYTES], bool *exists_out);

struct wb_webdb_pages;  /* a walk over pages */

/* All pages by URL, all by MD5 (only those with content), those of one content, those of one site ("example.org:8080"). */
int wb_webdb_pages(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out);
int wb_webdb_pages_by_md5(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out);
int wb_webdb_get_pages(struct wb_webdb *webdb, const uint8_t md5[WB_EDIT_MD5_BYTES], struct wb_webdb_pages **pages_out);
int wb_webdb_pages_of_site(struct wb_webdb *webdb, struct wb_slice site, struct wb_webdb_pages **pages_out);

/* 1 with a page, valid until the next call with the walk; 0 at the end. */
int wb_webdb_pages_next(struct wb_webdb_pages *pages, struct wb_webdb_page *page_out);
void wb_webdb_pages_close(struct wb_webdb_pages *pages);

struct wb_webdb_links;  /* a walk over links */

/* All links, by target; those to a URL, however many; those from a content. Unknown ones have none. */
int wb_webdb_links(struct wb_webdb *webdb, struct wb_webdb_links **links_out);
int wb_webdb_links_to(struct wb_webdb *webdb, struct wb_slice url, struct wb_webdb_links **links_out);
int wb_webdb_links_from(struct wb_webdb *webdb, const uint8_t md5[WB_EDIT_MD5_BYTES], struct wb_webdb_links **links_out);
int wb_webdb_links_next(struct wb_webdb_links *links, struct wb_webdb_link *link_out);
void wb_webdb_links_close(struct wb_webdb_links *links);

/* One site; WB_E_NOTFOUND. */
int wb_webdb_get_site(struct wb_webdb *webdb, struct wb_slice name, struct wb_webdb_site *site_out);

/* The robots.txt of a site, as it was last read. */
struct wb_webdb_rules {
    int64_t time_ms, expires_ms;
    uint16_t status;             /* 2xx: text are its rules; 3xx, 4xx: there are none */
    struct wb_slice text;
};

/* Borrows until the next call with this handle. WB_E_NOTFOUND: none, or none that still held when the edition was made. */
int wb_webdb_get_rules(struct wb_webdb *webdb, struct wb_slice site, struct wb_webdb_rules *rules_out);

struct wb_webdb_count {
    uint32_t edition;
    uint64_t pages, fetched, links, contents, sites;
    uint64_t bytes, link_bytes; /* on disk: everything; both tables of links */
    int64_t time_ms;            /* when it was made */
};
void wb_webdb_count(const struct wb_webdb *webdb, struct wb_webdb_count *count_out);

/* Bytes of the journal that no edition has yet, as far as they are there now. */
int wb_webdb_unmerged(const char *dir, uint64_t *bytes_out);

/*
 * Reads everything of the newest edition: checksums and order of the tables, and that they agree: every page with content is among
 * the pages by MD5 and the other way round, every link has its source, both tables of links hold the same ones, counts are
 * right. Calls back for each problem. No webdb: nothing to check.
 */
typedef void (*wb_webdb_found)(void *context, const char *file, uint64_t offset, const char *message);
int wb_webdb_check(const char *dir, wb_webdb_found found, void *context, struct wb_webdb_count *count_out);

/* ---- writing --------------------------------------------------------------------------------------- */

struct wb_webdb_writer;

/* Called now and then; false stops the work cleanly (WB_E_STOPPED), leaving the old edition. */
typedef bool (*wb_webdb_progress)(void *context, const char *step, uint64_t done, uint64_t total);

struct wb_webdb_options {
    size_t memory_bytes;    /* 0: 256 MiB */
    unsigned threads;       /* 0: as many as processors */
    wb_webdb_progress progress; /* may be NULL */
    void *progress_context;
    int64_t now_ms;         /* 0: the clock's */
    bool anew;              /* nothing of the old edition is merged, and the journal is read from its begin: for one that is damaged */
};

/* WB_E_BUSY where another writer is at work. options NULL: the defaults. Removes what a writer that died left. */
int wb_webdb_writer_open(const char *dir, const struct wb_webdb_options *options, struct wb_webdb_writer **writer_out);

/* Adds a page, replacing one of the same URL, whose score is kept (add_page_with_score: is not). */
int wb_webdb_add_page(struct wb_webdb_writer *writer, const struct wb_webdb_page *page);
int wb_webdb_add_page_with_score(struct wb_webdb_writer *writer, const struct wb_webdb_page *page);

/* Adds it where there is none of that URL; link (may be NULL) is added if and only if the page is. */
int wb_webdb_add_page_if_not_present(struct wb_webdb_writer *writer, const struct wb_webdb_page *page, const struct wb_webdb_link *link);

/* Removes it, and the links whose source content then no page has. Unknown: nothing happens. */
int wb_webdb_delete_page(struct wb_webdb_writer *writer, struct wb_slice url);

/* Adds a link, replacing the one from the same content to the same URL. Where no page has the content it is left out, and counted. */
int wb_webdb_add_link(struct wb_webdb_writer *writer, const struct wb_webdb_link *link);

/* Everything in the journal that no edition has yet. Damage is told through found (may be NULL), and costs the records concerned. */
int wb_webdb_add_journal(struct wb_webdb_writer *writer, wb_webdb_found found, void *context);

/* A page's record that is in no journal; its links are edit->page.links. */
int wb_webdb_add_visit(struct wb_webdb_writer *writer, const struct wb_edit *edit);

/* With anew: every row of the old edition that can be read, as what was known before anything else. What cannot be is told. */
int wb_webdb_add_rows(struct wb_webdb_writer *writer, wb_webdb_found found, void *context);

struct wb_webdb_merge {
    uint32_t edition;           /* the new one; the old one's number where there was nothing to do */
    uint64_t page_edits, link_edits, records; /* records: of the journal */
    uint64_t pages_added, pages_changed, pages_deleted;
    uint64_t links_added, links_deleted;
    uint64_t links_without_source;
    uint64_t bytes_before, bytes_after;
};

/*
 * Begins the merge, and gives the pages that edits touched one by one, in the order of their URLs, so that the caller
 * can say when each is due: 1 with a page, whose next_due_ms the caller sets before the next call; 0 when all are written;
 * or an error, after which the writer must be abandoned. *site_out is what was known about the page's site before, NULL:
 * nothing. The page has the next_due_ms of the last edition (0: none) and must not be changed otherwise. Nothing can be
 * added to the writer any more. If the caller does not ask, wb_webdb_writer_close() leaves next_due_ms as it is.
 */
int wb_webdb_writer_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out, const struct wb_webdb_site **site_out);

/* Merges and publishes. The writer is freed in any case. Where nothing was added no edition is made. merge_out may be NULL. */
int wb_webdb_writer_close(struct wb_webdb_writer *writer, struct wb_webdb_merge *merge_out);

/* Forgets the edits. NULL is allowed. */
void wb_webdb_writer_abandon(struct wb_webdb_writer *writer);

/*
 * Removes the logs that the newest edition contains in full, except those being written and those of crawlers that needs
 * names. *bytes_out: bytes removed.
 */
int wb_webdb_prune_journal(const char *dir, const struct wb_journal_needs *needs, uint64_t *bytes_out);

#endif
