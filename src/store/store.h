/*
 * store.h - the door of store: the page repository.
 *
 * One interface, several organisations of the pages on disk behind it (the
 * papers' log, hash and hashed-log; log is built). Pages are named by their id.
 *
 *   writer:  put ... put  touch  remove   -> commit (durable)  -> snapshot
 *   reader:  get, scan: always one consistent state, whatever writers do meanwhile
 *   takedown:  bar (durable at once), then remove -> commit; allow lifts a bar
 *
 * Classes (WebBase, section 3.3). snapshot() starts a snapshot: the pages of
 * that moment. From then on a page that is replaced or removed stays readable to
 * scans of the snapshot as class A; a page untouched since is class B; one that
 * arrived since is class C, which only scans of the latest state see. The next
 * snapshot drops the A pages and makes C pages B.
 *
 * A commit that returned 0 survives kill -9 and power loss. Several processes
 * may write at once, each to segments of its own. A handle belongs to one thread;
 * each of its scans may run in another.
 */
#ifndef WB_STORE_STORE_H
#define WB_STORE_STORE_H

#include "base/buf.h"
#include "base/date.h"
#include "page/page.h"

/* The largest body that any organisation takes. */
#define WB_STORE_BODY_MAX (1u << 30)

struct wb_store;

enum wb_store_mode { WB_STORE_READ, WB_STORE_WRITE };

struct wb_store_options {
    const char *organisation; /* "log"; NULL: the default */
    const char *update;       /* "incremental"; NULL: the default */
};

/* Makes a repository in dir (and dir itself); options NULL: the defaults. WB_E_INVALID naming dir where something else is there, or one is there already. */
int wb_store_create(const char *dir, const struct wb_store_options *options);

/* True where dir holds a repository, of whatever version. */
bool wb_store_exists(const char *dir);

/* The name that no other repository has: 32 hexadecimal digits. */
#define WB_STORE_ID_HEX 32
int wb_store_id(const char *dir, char text_out[WB_STORE_ID_HEX + 1]);

/* WB_E_NOTFOUND: no repository; WB_E_NEWER: made by a later version. Recovers by itself after a crash. */
int wb_store_open(const char *dir, enum wb_store_mode mode, struct wb_store **store_out);

/* The twin: the same interface over plain memory, for tests. */
int wb_store_open_memory(struct wb_store **store_out);

/* What closing and opening again does to a store on disk: drops what was not committed. */
void wb_store_reopen_memory(struct wb_store *store);

/* Drops what was not committed. */
void wb_store_close(struct wb_store *store);

/* ---- writing ---------------------------------------------------------------- */

/* What became of a page that was put, as far as can be said before the commit, which judges again. */
enum wb_store_outcome {
    WB_STORE_PUT_NEW,      /* the store has no page of that id */
    WB_STORE_PUT_REPLACED, /* it has an older one, which this replaces */
    WB_STORE_PUT_OLDER,    /* left out: the stored one is as new or newer */
    WB_STORE_PUT_BARRED,   /* left out: the page or its site was taken down */
};

/*
 * Takes a copy of the page, unless it is barred, or the stored one is as new or newer: newer
 * replaces older, never the other way round. A stored time more than WB_STORE_AHEAD_MS
 * ahead of the clock is an error of some machine's clock, and gives way to any page whose time is not.
 * Computes digests where the page has none. outcome_out may be NULL.
 */
#define WB_STORE_AHEAD_MS WB_DAY_MS
int wb_store_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);

/* The page was seen unchanged at time_ms: moves its time forward and refills its lifetime. WB_E_NOTFOUND. */
int wb_store_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);

/*
 * The page is gone. WB_E_NOTFOUND. everywhere: from the snapshot too, at once (takedown). site is the page's: with it
 * nothing of the page has to be read, so that a damaged page can be removed.
 */
int wb_store_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere);

struct wb_store_commit_counts {
    uint64_t added;    /* pages not there before */
    uint64_t replaced; /* pages newer than the stored ones */
    uint64_t older;    /* pages left out because the stored ones are as new */
    uint64_t barred;   /* pages and revisits left out because they were taken down */
    uint64_t touched;
    uint64_t removed;
};

/* Makes everything since the last commit durable; adds to the counts. On error nothing of it is. */
int wb_store_commit(struct wb_store *store, struct wb_store_commit_counts *commit_inout);

/* Commits and starts the next snapshot; returns its number through snapshot_out (from 1). */
int wb_store_snapshot(struct wb_store *store, uint32_t *snapshot_out);

/* ---- facts that are no pages ----------------------------------------------------- */

/* A revisit whose original we do not have: kept, so that get and later imports know of it. */
struct wb_store_revisit {
    int64_t time_ms;
    bool has_sha1;
    uint8_t sha1[WB_SHA1_BYTES];
};
int wb_store_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site, const struct wb_store_revisit *revisit);
int wb_store_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);

/* ---- bars -------------------------------------------------------------------------- */

/*
 * What was taken down must not come back. A bar is on a page or on a site; one on a site holds for every URL of it, also
 * for those found later, except for pages that were allowed by themselves. Each commit asks for
 * bars inside its transaction, so nothing that is barred gets in, no matter when and by which process it was put.
 */
enum wb_store_bar_kind { WB_STORE_BAR_PAGE, WB_STORE_BAR_SITE };

struct wb_store_bar {
    enum wb_store_bar_kind kind;
    struct wb_pageid id;   /* of the page */
    struct wb_slice site;  /* the site; of a page: the one it belongs to */
    bool except;           /* the opposite: lifts the bar on the site for this page */
    int64_t time_ms;       /* when it was set */
};

/*
 * Sets a bar, durable on return; what was put before is committed first. A bar on a site ends the exceptions of its pages.
 * Pages that are stored stay until they are removed; revisits that are kept as facts go at once.
 */
int wb_store_bar(struct wb_store *store, const struct wb_store_bar *bar);

/*
 * Lifts bars, durable on return: of a site, also those on its pages; of a page, its own, and where its site is barred the
 * page becomes an exception. WB_E_NOTFOUND: nothing of it was barred. bar->except and time_ms are not looked at.
 */
int wb_store_allow(struct wb_store *store, const struct wb_store_bar *bar);

/* Whether a page may not be stored or fetched, by the newest committed state of any process: 1, 0 or an error. */
int wb_store_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site);

/* All bars and exceptions. A page's site is left empty. each() ends it with a non-zero return, which is returned; it must not call the store. */
int wb_store_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context);

/* Up to max ids of committed pages of a site, those that only the snapshot has included; no page is read. */
int wb_store_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max, size_t *count_out);

/* ---- reading ------------------------------------------------------------------ */

/* The latest version, a writer's own uncommitted pages included. The page borrows from mem_out. WB_E_NOTFOUND, WB_E_CORRUPT. */
int wb_store_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out);

/* The time of that version, without reading the page. WB_E_NOTFOUND. */
int wb_store_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);

enum wb_store_view {
    WB_STORE_VIEW_LATEST,     /* classes B and C: each page's latest version */
    WB_STORE_VIEW_SNAPSHOT, /* classes A and B: the pages of the last snapshot */
};

struct wb_store_scan_options {
    enum wb_store_view view;
    uint32_t part, parts;  /* 1 of 1: everything; the parts are disjoint and cover all (0 of 0: the same) */
    struct wb_slice site;  /* only this site, where not empty */
};

struct wb_store_scan;

/*
 * Pages in physical order, each exactly once, of the state at the moment of
 * opening. Several scans may run on one store in several threads. A damaged unit
 * gives WB_E_CORRUPT once, and the scan can go on.
 */
int wb_store_scan_open(struct wb_store *store, const struct wb_store_scan_options *options, struct wb_store_scan **scan_out);

/* 1 with a page that is valid until the next call, 0 at the end, or an error. */
int wb_store_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);
void wb_store_scan_close(struct wb_store_scan *scan);

/* ---- the whole -------------------------------------------------------------------- */

struct wb_store_stat {
    uint64_t pages, sites;
    uint64_t pages_old;     /* class A */
    uint64_t revisits;      /* revisits whose original is not here */
    uint64_t bars;          /* of pages and sites, and exceptions */
    uint64_t bytes_pages;   /* bodies of the latest versions */
    uint64_t bytes_stored;  /* everything on disk */
    uint64_t bytes_dead;    /* what compaction could give back, replaced files that wait for a reader included */
    uint64_t segments;
    uint32_t epoch, snapshot;
    const char *organisation, *update;
};
int wb_store_stat(struct wb_store *store, struct wb_store_stat *stat_out);

/* Called for each problem (damage) or note (a tail that a crash left, which is no damage). */
struct wb_store_finding {
    bool problem;
    const char *file;       /* relative to the repository */
    uint64_t offset;
    const char *message;
};
typedef void (*wb_store_found)(void *context, const struct wb_store_finding *report);

/* Called now and then with bytes done and to do; false stops the work cleanly (WB_E_STOPPED). May be NULL. */
typedef bool (*wb_store_progress)(void *context, uint64_t done, uint64_t total);

struct wb_store_compact_counts {
    uint64_t segments;        /* rewritten or dropped */
    uint64_t pages;           /* pages that stayed in them */
    uint64_t bytes_before, bytes_after;
    uint64_t skipped;         /* segments another process is writing to */
    uint64_t damaged;         /* places that are damaged and stay as they are, because pages of them are live */
    uint64_t dropped;         /* damaged places that are gone, because all their pages were dead */
};

/*
 * Gives back the space of dead pages. Damage does not stop it: found (may be NULL) is told of each damaged place, as a problem
 * where it stays and as a note where it is gone, and the rest is compacted. 0 even where damage stays; see compact_out.
 */
int wb_store_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                     void *found_context, struct wb_store_compact_counts *compact_out);

struct wb_store_verify_counts {
    uint64_t pages, problems, notes;
};
/* Reads and checks everything. 0 even where problems were found; see verify_out. */
int wb_store_verify(const char *dir, wb_store_found found, void *found_context, wb_store_progress progress, void *progress_context,
                    struct wb_store_verify_counts *verify_out);

#endif
