/*
 * webdb.h - the door of webdb: what is known about every page and link (the paper's WebDB).
 *
 *   journal/          edits, as they happen (journal/journal.h)
 *   webdb/00000003/   an edition: four sorted tables, written by a merge and never changed afterwards
 *
 *     pages by URL     SURT -> facts. The number of a page is its rank here
 *     pages by MD5     (MD5, page number). The number of a content is the rank of its first entry
 *     links by MD5     content number -> (page number, anchor, tag)...
 *     links by URL     page number -> (content number, anchor, tag)...
 *
 *   and beside them: the number of links to each page, sums over sites, near duplicates, the robots.txt of sites, the
 *   kind of each URL, and pages by id
 *
 * A link comes from a content, named by its MD5, and leads to a URL. Stored as a pair of numbers it takes a few bytes;
 * the numbers are valid within one edition only.
 *
 * A writer collects edits and changes nothing until it is closed. Then the edits are sorted and merged, table after
 * table in the order above, and the new edition appears with a single rename. Readers keep the edition that they have
 * opened.
 *
 * Crawls, imports and `cycle` use this door. It never decides what is fetched, or when.
 */
#ifndef WB_WEBDB_WEBDB_H
#define WB_WEBDB_WEBDB_H

#include "journal/journal.h"
#include "os/series.h"

/* ---- pages ------------------------------------------------------------------------------------ */

#define WB_VISITLOG_BINS 40
#define WB_VISITLOG_FETCHES 8

/*
 * What visits have shown about the changes of a page, in a form small enough to keep for every page. A gap is the time
 * between two visits that both saw a content.
 */
struct wb_visitlog {
    uint32_t visits;               /* successful visits after the first one, which is the number of gaps */
    uint32_t changes;              /* gaps after which the content was another */
    double unchanged_days;         /* sum of the gaps without a change */
    /* The other gaps by length: bin i counts those of 2^(i/2) to 2^((i+1)/2) minutes; bin 0 also shorter ones. */
    uint16_t changed[WB_VISITLOG_BINS];
    /*
     * If the server says when the page was last modified, and that has never been contradicted: N, X and T of the
     * estimator by Cho and Garcia-Molina.
     */
    bool modified_lies;            /* the content changed but the time did not, or the time was in the future */
    uint32_t modified_visits, modified_changes;
    double modified_days;
    struct wb_visitlog_fetch {
        int64_t time_ms;
        uint8_t outcome;           /* enum wb_edit_outcome */
        uint16_t status;
    } fetches[WB_VISITLOG_FETCHES]; /* the last fetches, oldest first */
    uint8_t fetch_count;
};

/* The geometric middle of a bin, in days. */
double wb_visitlog_bin_days(unsigned bin);

/*
 * Adds a successful visit, gap_ms after the previous one. modified_ms: the server's Last-Modified; 0 if it sent none.
 */
void wb_visitlog_add(struct wb_visitlog *history, int64_t gap_ms, bool changed, int64_t modified_ms, int64_t time_ms);

enum wb_webdb_flags {
    WB_PAGE_WANTED = 1 << 0,     /* a seed, a sitemap, a feed, a push or a link that is followed leads there */
    WB_PAGE_GONE = 1 << 1,       /* the last answer was 404 or 410 */
    WB_PAGE_PUSHED = 1 << 2,     /* announced, and not fetched since */
    WB_PAGE_PUSHED_GONE = 1 << 3, /* announced as gone, which must be verified */
    WB_PAGE_BARRED = 1 << 4,     /* taken down: never fetch it. With WB_PAGE_TARGET: deleted, searches hide it */
    WB_PAGE_BLOCKED = 1 << 5,    /* robots.txt forbade the last attempt */
    WB_PAGE_SCORED = 1 << 6,     /* the score was set; otherwise it is computed from the number of links */
    WB_PAGE_LOADED = 1 << 7,     /* a vertex of a loaded graph: nothing was fetched, its MD5 is that of its name */
    WB_PAGE_TARGET = 1 << 8,     /* not a page, only something that links lead to; hidden from readers */
};

struct wb_webdb_page {
    struct wb_slice url;         /* with its scheme, as it was fetched or first seen in a link */
    struct wb_slice surt;        /* the key that orders URLs */
    uint64_t number;             /* in this edition */
    unsigned flags;              /* enum wb_webdb_flags */
    bool has_content;            /* there is a stored page, to which md5, simhash and title_hash belong */
    uint8_t md5[WB_MD5_BYTES];
    uint64_t simhash, title_hash;
    uint64_t bytes;
    uint16_t status;             /* of the last answer; 0 if there was none yet */
    uint8_t outcome;             /* enum wb_edit_outcome of the last attempt; 0 if there was none yet */
    uint16_t depth;              /* links from a seed, along the shortest known path */
    uint16_t failures;           /* consecutive attempts that gave no answer about the page */
    uint16_t signals;            /* pushes, sitemaps and feeds that reported a change since the last fetch */
    int64_t first_seen_ms;       /* when its URL was first mentioned */
    int64_t last_seen_ms;        /* when it was last fetched or found unchanged; 0 if never */
    int64_t last_tried_ms;       /* when it was last requested, whatever the outcome; 0 if never */
    int64_t last_changed_ms;     /* 0 if it was never fetched */
    int64_t hint_ms;             /* the latest change that a sitemap or feed reported */
    int64_t next_due_ms;         /* 0: as soon as possible */
    int64_t expires_ms;          /* when its lifetime ends; 0 if never, or if there is no content */
    int64_t asked_ms;            /* given to a crawler because its lifetime ends, and not visited since; 0 if not */
    uint32_t lifetime;           /* in days; 0 means forever */
    double score;
    uint64_t inlinks;            /* how many contents link to it; filled in by readers */
    bool near;                   /* it is a near duplicate of page near_number; filled in by readers */
    uint64_t near_number;
    struct wb_slice etag, modified, type; /* of the content */
    struct wb_slice location;    /* where it redirects to */
    struct wb_visitlog history;
};

/* Sums over the pages of a site. They serve as priors for pages with little history. */
struct wb_webdb_site {
    struct wb_slice name;        /* "example.org:8080" */
    uint64_t pages, fetched;
    uint64_t visits, changes;    /* sums over its pages' histories */
    double days;                 /* sum of all gaps */
};

struct wb_webdb_link {
    uint8_t from_md5[WB_MD5_BYTES];
    struct wb_slice to;          /* a URL with its scheme */
    struct wb_slice anchor;
    uint8_t tag, flags;          /* as in the journal: struct wb_pagelink */
};

/* ---- reading ------------------------------------------------------------------------------------- */

struct wb_webdb;

/* Called now and then during long work. If it returns false, the work stops with WB_E_STOPPED. */
typedef bool (*wb_webdb_progress)(void *context, const char *step, uint64_t done, uint64_t total);

/*
 * Opens the newest edition, or the one with this number. WB_E_NOTFOUND if there is none yet, or if that one is gone.
 * Each thread needs its own handle. As long as an edition is open, in any process, no update removes it; once it is
 * neither open nor held by a name nor the newest, the next update does.
 */
int wb_webdb_open(const char *dir, struct wb_webdb **webdb_out);
int wb_webdb_open_edition(const char *dir, uint32_t edition, struct wb_webdb **webdb_out);
void wb_webdb_close(struct wb_webdb *webdb);

/*
 * Holds an edition under a name, such as "generation-7", until it is released: durable, and whatever happens to the
 * process. A name may hold several editions; holding one twice is the same as once. WB_E_NOTFOUND if the edition is
 * gone; WB_E_INVALID if the name is empty, too long, or has anything but letters, digits, '.', '_' and '-'.
 */
int wb_webdb_hold(const char *dir, uint32_t edition, const char *holder);

/* Durable too. The edition stays until the next update. WB_E_NOTFOUND if this name does not hold it. */
int wb_webdb_release(const char *dir, uint32_t edition, const char *holder);

/* Called for each hold, by edition and name, with the time at which it began. Anything but 0 ends the listing. */
typedef int (*wb_webdb_held)(void *context, uint32_t edition, const char *holder, int64_t since_ms);
int wb_webdb_holds(const char *dir, wb_webdb_held each, void *context);

/*
 * The texts of the page are valid until the next call with this handle. WB_E_NOTFOUND; WB_E_INVALID if url is not a
 * URL.
 */
int wb_webdb_get_page(struct wb_webdb *webdb, struct wb_slice url, struct wb_webdb_page *page_out);

/* The URL of a page by its number in this edition, such as near_number. WB_E_NOTFOUND. */
int wb_webdb_page_url(struct wb_webdb *webdb, uint64_t number, struct wb_buf *url_out);

/* Whether any page has the content with this MD5. */
int wb_webdb_page_exists(struct wb_webdb *webdb, const uint8_t md5[WB_MD5_BYTES], bool *exists_out);

struct wb_webdb_pages;  /* a walk over pages */

/*
 * Opens a walk: over all pages by URL; over all pages with content, by MD5; over the pages with one content; over the
 * pages of one site ("example.org:8080").
 */
int wb_webdb_pages(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out);
int wb_webdb_pages_by_md5(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out);
int wb_webdb_get_pages(struct wb_webdb *webdb, const uint8_t md5[WB_MD5_BYTES], struct wb_webdb_pages **pages_out);
int wb_webdb_pages_of_site(struct wb_webdb *webdb, struct wb_slice site, struct wb_webdb_pages **pages_out);

/* Returns 1 and a page, which is valid until the next call with this walk; 0 at the end. */
int wb_webdb_pages_next(struct wb_webdb_pages *pages, struct wb_webdb_page *page_out);
void wb_webdb_pages_close(struct wb_webdb_pages *pages);

struct wb_webdb_links;  /* a walk over links */

/*
 * Opens a walk: over all links, by target; over those to a URL; over those from a content. It is empty if that is
 * unknown.
 */
int wb_webdb_links(struct wb_webdb *webdb, struct wb_webdb_links **links_out);
int wb_webdb_links_to(struct wb_webdb *webdb, struct wb_slice url, struct wb_webdb_links **links_out);
int wb_webdb_links_from(struct wb_webdb *webdb, const uint8_t md5[WB_MD5_BYTES],
                        struct wb_webdb_links **links_out);
int wb_webdb_links_next(struct wb_webdb_links *links, struct wb_webdb_link *link_out);
void wb_webdb_links_close(struct wb_webdb_links *links);

/* WB_E_NOTFOUND if no page of the site is known. */
int wb_webdb_get_site(struct wb_webdb *webdb, struct wb_slice name, struct wb_webdb_site *site_out);

/* The robots.txt of a site, as it was last read. */
struct wb_webdb_rules {
    int64_t time_ms, expires_ms;
    uint16_t status;             /* 2xx: text has the rules; 3xx, 4xx: there are none */
    struct wb_slice text;
};

/*
 * The text is valid until the next call with this handle. WB_E_NOTFOUND if no robots.txt is known, or if it had already
 * expired when the edition was made.
 */
int wb_webdb_get_rules(struct wb_webdb *webdb, struct wb_slice site, struct wb_webdb_rules *rules_out);

struct wb_webdb_count {
    uint32_t edition;
    uint64_t pages, fetched, links, contents, sites;
    uint64_t bytes, link_bytes; /* on disk: of all files but the manifest; of both tables of links */
    int64_t time_ms;            /* when the edition was made */
    uint64_t urls;              /* known URLs, each with a number below this: pages, and what only links lead to */
    uint64_t store_epoch;       /* see wb_webdb_writer_saw_epoch(); 0 if nobody has said */
};
void wb_webdb_count(const struct wb_webdb *webdb, struct wb_webdb_count *count_out);

/* ---- numbers, for indexes -------------------------------------------------------------------- */

/*
 * Every URL of an edition has a number, from 0 to wb_webdb_count.urls - 1, in the order of SURTs: pages, and URLs that
 * only links lead to. Numbers are valid in one edition. From one edition to the next they move, but keep their order.
 */

/* The number of a URL. WB_E_NOTFOUND, WB_E_INVALID. */
int wb_webdb_number(struct wb_webdb *webdb, struct wb_slice url, uint64_t *number_out);

/*
 * The row of a number, be it a page or only the target of links (WB_PAGE_TARGET). Its texts are valid until the next
 * call with this handle. WB_E_NOTFOUND. See also wb_webdb_page_url().
 */
int wb_webdb_get_number(struct wb_webdb *webdb, uint64_t number, struct wb_webdb_page *page_out);

/*
 * A walk over all URLs in the order of numbers, targets included; read it with wb_webdb_pages_next(). It starts at
 * number `from`, so that threads can share the work.
 */
int wb_webdb_urls(struct wb_webdb *webdb, uint64_t from, struct wb_webdb_pages **pages_out);

/* What a URL is, without its row. */
enum wb_webdb_kind {
    WB_IS_TARGET = 0,      /* only links lead there */
    WB_IS_PAGE = 1 << 0,   /* a page: fetched, to be fetched, or loaded */
    WB_IS_STORED = 1 << 1, /* the store has a content of it */
    WB_IS_LOADED = 1 << 2, /* a vertex of a loaded graph */
};

/*
 * The kinds of the URLs [first, first + count), one byte each: enum wb_webdb_kind. They are valid as long as the
 * handle is open. WB_E_NOTFOUND if there are not so many.
 */
int wb_webdb_kinds(struct wb_webdb *webdb, uint64_t first, uint64_t count, const uint8_t **kinds_out);

#define WB_WEBDB_NO_NUMBER UINT32_MAX

/*
 * The numbers of pages by their ids, in any order; WB_WEBDB_NO_NUMBER for an id that no page of WB_IS_STORED has.
 * (Any other URL is found by its name only.) Ascending ids, as the catalog of the store has them, are several times as
 * fast.
 */
int wb_webdb_numbers_of_ids(struct wb_webdb *webdb, const struct wb_pageid *ids, size_t count, uint32_t *numbers_out);

/*
 * A test seam. The pages of WB_IS_STORED in the order of their ids: rank 0 to wb_webdb_count.fetched - 1. WB_E_NOTFOUND
 * after.
 */
int wb_webdb_id_at(struct wb_webdb *webdb, uint64_t rank, struct wb_pageid *id_out, uint64_t *number_out);

/* The id of any URL of the edition: of a page that was read from it. */
int wb_webdb_page_id(struct wb_webdb *webdb, const struct wb_webdb_page *page, struct wb_pageid *id_out);

/*
 * Links as numbers. A link belongs to a content: if several pages have the content, each of them links to the target.
 * So an arc is a pair of numbers (a page with content, any URL), and every pair comes once.
 */
struct wb_webdb_arcs;

enum wb_webdb_direction {
    WB_ARCS_OUT, /* from pages to their targets */
    WB_ARCS_IN,  /* from targets to the pages that link there */
};

struct wb_webdb_arcs_options {
    const char *temp_dir;   /* for temporary files, which have no names; NULL means the directory of webdb */
    size_t memory_bytes;    /* 0 means 64 MiB */
    unsigned threads;       /* that sort beside the caller's own */
    bool texts;             /* with anchors, tags and flags */
    wb_webdb_progress progress; /* may be NULL */
    void *progress_context;
};

struct wb_webdb_arc_text {
    struct wb_slice anchor;
    uint8_t tag, flags;     /* as in the journal: struct wb_pagelink */
};

/* Some or all arcs of one URL. A long list comes in several portions. */
struct wb_webdb_portion {
    uint64_t number;        /* of the URL */
    size_t count;           /* at least 1 */
    const uint32_t *ends;   /* the other ends of its arcs */
    const struct wb_webdb_arc_text *texts; /* of each arc; NULL unless asked for */
};

/*
 * Opens a walk over all arcs, by the number of their sources or targets; URLs without arcs are left out. The ends of a
 * URL ascend, over all its portions; but with texts and WB_ARCS_IN they come in the order of contents. options may be
 * NULL. Opening a walk in the order of sources reads and sorts all links, since they are stored by content; it needs a
 * few bytes of temporary space for each arc, or about twenty with texts.
 *
 * Memory: the limit; by target, 4 bytes per page with content and, if some URL has very many links, one bit per URL, in
 * temporary files that the kernel can write out.
 */
int wb_webdb_arcs(struct wb_webdb *webdb, enum wb_webdb_direction direction,
                  const struct wb_webdb_arcs_options *options, struct wb_webdb_arcs **arcs_out);

/* The arcs of one URL only. It is empty if the number has none. WB_E_NOTFOUND if no URL has the number. */
int wb_webdb_arcs_of(struct wb_webdb *webdb, uint64_t number, enum wb_webdb_direction direction,
                     const struct wb_webdb_arcs_options *options, struct wb_webdb_arcs **arcs_out);

/* Returns 1 and a portion, which is valid until the next call with this walk; 0 at the end. */
int wb_webdb_arcs_next(struct wb_webdb_arcs *arcs, struct wb_webdb_portion *portion_out);
void wb_webdb_arcs_close(struct wb_webdb_arcs *arcs);

/* How many bytes of the journal have not been merged into an edition yet. */
int wb_webdb_unmerged(const char *dir, uint64_t *bytes_out);

/* Called once for each problem that is found. */
typedef void (*wb_webdb_found)(void *context, const char *file, uint64_t offset, const char *message);

/*
 * Reads all of the newest edition and checks it: the checksums and the order of each table, and that the tables agree.
 * The pages with content and the pages by MD5 must be the same, every link must have a source, both tables of links
 * must hold the same links, and the counts must be right. If there is no edition, there is nothing to check.
 */
int wb_webdb_check(const char *dir, wb_webdb_found found, void *context, struct wb_webdb_count *count_out);

/* ---- writing --------------------------------------------------------------------------------- */

struct wb_webdb_writer;

struct wb_webdb_options {
    size_t memory_bytes;    /* 0 means 256 MiB */
    unsigned threads;       /* 0 means one per processor */
    wb_webdb_progress progress; /* may be NULL. If it stops the merge, the old edition stays */
    void *progress_context;
    int64_t now_ms;         /* 0 means what the clock says */
    bool from_scratch;      /* start from nothing and read the whole journal, because the old edition is damaged */
    const struct wb_file *lock; /* from wb_webdb_lock(), held longer than the writer; NULL: it takes the lock itself */
};

/* Keeps other writers away until the file is closed: for several writers, one after the other. WB_E_BUSY. */
int wb_webdb_lock(const char *dir, struct wb_file *lock_out);

/* WB_E_BUSY if another writer is at work. options may be NULL. Removes what dead writers have left. */
int wb_webdb_writer_open(const char *dir, const struct wb_webdb_options *options, struct wb_webdb_writer **writer_out);

/* Adds a page, replacing one with the same URL. If the old one had a score that was set, add_page keeps that score. */
int wb_webdb_add_page(struct wb_webdb_writer *writer, const struct wb_webdb_page *page);
int wb_webdb_add_page_with_score(struct wb_webdb_writer *writer, const struct wb_webdb_page *page);

/* Adds a page if there is none with its URL. link, which may be NULL, is added if and only if the page is. */
int wb_webdb_add_page_if_not_present(struct wb_webdb_writer *writer, const struct wb_webdb_page *page,
                                     const struct wb_webdb_link *link);

/*
 * Adds a link, replacing one from the same content to the same URL. If no page has the content, the link is left out
 * and counted in links_without_source.
 */
int wb_webdb_add_link(struct wb_webdb_writer *writer, const struct wb_webdb_link *link);

/*
 * Adds everything in the journal that the old edition does not contain. A damaged record is skipped and reported
 * through found, which may be NULL.
 */
int wb_webdb_add_journal(struct wb_webdb_writer *writer, wb_webdb_found found, void *context);

/* Adds a record of a page that is not in the journal. Its links are edit->page.links. */
int wb_webdb_add_visit(struct wb_webdb_writer *writer, const struct wb_edit *edit);

/*
 * With options.from_scratch: adds every row of the old edition that can be read, as if it had been known before
 * everything else. What cannot be read is reported.
 */
int wb_webdb_add_rows(struct wb_webdb_writer *writer, wb_webdb_found found, void *context);

/*
 * Says which epoch of the store the edition has seen in full: every page that arrived in it or before is known here.
 * The edition records the number (wb_webdb_count.store_epoch) and attaches no meaning to it. If this is not called, the
 * number of the old edition stays; with options.from_scratch it becomes 0. May be called until the writer is closed. If
 * nothing else has changed, only the manifest is replaced; without any edition, nothing is recorded.
 */
void wb_webdb_writer_saw_epoch(struct wb_webdb_writer *writer, uint64_t epoch);

struct wb_webdb_merge {
    uint32_t edition;           /* the number of the new edition; of the old one if there was nothing to do */
    uint64_t page_edits, link_edits;
    uint64_t records;           /* of the journal */
    uint64_t pages_added, pages_changed, pages_deleted;
    uint64_t links_added, links_deleted;
    uint64_t links_without_source;
    uint64_t bytes_before, bytes_after;
};

/*
 * Starts the merge and returns the pages that edits have changed, one by one in the order of URLs, so that the caller
 * can say when each is due. Returns 1 and a page, whose next_due_ms the caller sets before the next call; 0 when all
 * pages are written; or an error, after which the writer must be abandoned. From the first call on, nothing can be
 * added.
 *
 * The page comes with the next_due_ms of the last edition, or 0; the caller must not change anything else. *site_out is
 * what the last edition knows about its site, or NULL. A caller that does not want to set due times need not call this:
 * wb_webdb_writer_close() then leaves them as they are.
 */
int wb_webdb_writer_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out,
                         const struct wb_webdb_site **site_out);

/*
 * Merges and publishes. Frees the writer even if it fails. If nothing was added, no edition is made. merge_out may be
 * NULL.
 */
int wb_webdb_writer_close(struct wb_webdb_writer *writer, struct wb_webdb_merge *merge_out);

/* Drops the edits and frees the writer; the old edition stays. NULL is allowed. */
void wb_webdb_writer_abandon(struct wb_webdb_writer *writer);

/*
 * Removes the logs of the journal that the newest edition contains in full, except those that are still being written
 * and those that needs says a crawler needs. *bytes_out is the number of bytes removed.
 */
int wb_webdb_prune_journal(const char *dir, const struct wb_journal_needs *needs, uint64_t *bytes_out);

#endif
