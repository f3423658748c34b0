/*
 * store.h - the door of store: the page repository.
 *
 * A repository is a directory that holds pages. Each page is found by its page id
 * (a hash of its URL's normal form). How the pages are laid out on disk is called
 * the *organisation*: the papers describe log, hash and hashed-log, of which log
 * exists today. All organisations are used through the functions below, and keep
 * the same promises. organisation.h explains how to add one.
 *
 *   writer     put, touch, remove ...  then commit    nothing counts before the commit
 *   reader     get one page, or scan all of them      always one consistent state
 *   snapshot   wb_store_snapshot() seals the state of this moment for later scans
 *   takedown   bar (durable at once), then remove and commit; allow lifts the bar
 *
 * Durability. When wb_store_commit() has returned 0, everything put before it
 * survives kill -9 and power loss. When it fails, nothing of it was stored (but see
 * WB_E_IO there). Uncommitted work is lost when the store is closed.
 *
 * Classes A, B and C (WebBase paper, section 3.3). Sealing a snapshot ends an epoch.
 * After that,
 *   - a version that is replaced or removed stays readable in the snapshot: class A
 *   - a version that has not changed since is in the snapshot and the latest: class B
 *   - a version that arrived later is only in the latest state: class C
 * There is one snapshot at a time. Sealing the next one drops the class A versions
 * and turns class C versions into class B.
 *
 * Processes and threads. Any number of processes may write and read one repository at
 * the same time. A handle (struct wb_store) belongs to one thread, and must not be
 * used after fork(); each of its scans may run in a thread of its own.
 *
 * Errors. WB_E_NOTFOUND: no such page. WB_E_CORRUPT: bytes on disk are damaged; the
 * message names the file. WB_E_IO, WB_E_NOMEM, WB_E_LIMIT: the environment failed.
 */
#ifndef WB_STORE_STORE_H
#define WB_STORE_STORE_H

#include "base/buf.h"
#include "base/date.h"
#include "page/page.h"

/* The largest body that any organisation accepts. */
#define WB_STORE_BODY_MAX (1u << 30)

/* An open repository. */
struct wb_store;

enum wb_store_mode { WB_STORE_READ, WB_STORE_WRITE };

struct wb_store_options {
    const char *organisation; /* "log"; NULL means the default, log */
    const char *update;       /* "incremental"; NULL means the default, incremental */
};

/*
 * Creates a repository in dir, and dir itself if necessary. options may be NULL.
 * Fails with WB_E_INVALID if dir already holds a repository or any other files.
 */
int wb_store_create(const char *dir, const struct wb_store_options *options);

/* Returns true if dir holds a repository, even one of a format that this program cannot read. */
bool wb_store_exists(const char *dir);

/* The id that distinguishes this repository from all others, as 32 hexadecimal digits. */
#define WB_STORE_ID_HEX 32
int wb_store_id(const char *dir, char text_out[WB_STORE_ID_HEX + 1]);

/*
 * Opens a repository. A writer first repairs what a crash left behind. Fails with
 * WB_E_NOTFOUND if dir is not a repository, and with WB_E_NEWER if a newer program made it.
 */
int wb_store_open(const char *dir, enum wb_store_mode mode, struct wb_store **store_out);

/* Closes the store and drops everything that was not committed. store may be NULL. */
void wb_store_close(struct wb_store *store);

/* ---- writing ---------------------------------------------------------------- */

/* What wb_store_put() did with a page. This is a forecast: the commit decides again and counts. */
enum wb_store_outcome {
    WB_STORE_PUT_NEW,      /* stored: the repository had no page with this id */
    WB_STORE_PUT_REPLACED, /* stored: it replaces an older version */
    WB_STORE_PUT_OLDER,    /* not stored: the stored version is at least as new */
    WB_STORE_PUT_BARRED,   /* not stored: the page or its site was taken down */
};

/*
 * Adds a copy of the page to what the next commit stores. A newer page replaces an
 * older version, never the other way round. If the page has no digests, they are
 * computed. outcome_out may be NULL.
 *
 * One exception to "newer wins": a stored time that is more than WB_STORE_AHEAD_MS in
 * the future can only come from a wrong clock. It gives way to any page whose time is
 * plausible; otherwise one bad clock would lock out all later versions for years.
 */
#define WB_STORE_AHEAD_MS WB_DAY_MS
int wb_store_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);

/* Records that the page was seen unchanged at time_ms: updates its time and renews its lifetime. WB_E_NOTFOUND. */
int wb_store_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);

/*
 * Removes a page; WB_E_NOTFOUND if there is none. With everywhere, the version in the
 * snapshot goes at the same commit (takedown); without it, the snapshot keeps that
 * version. The caller names the page's site, so that the page itself need not be read:
 * a damaged page can be removed too.
 */
int wb_store_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere);

struct wb_store_commit_counts {
    uint64_t added;    /* pages that were not there before */
    uint64_t replaced; /* pages that replaced an older version */
    uint64_t older;    /* pages not stored, because the stored version is at least as new */
    uint64_t barred;   /* pages and revisits not stored, because they were taken down */
    uint64_t touched;
    uint64_t removed;
};

/*
 * Makes everything since the last commit durable, and adds to the counts. On error
 * nothing of it was stored, and the store is ready for new work. The one exception is
 * a disk that fails while the commit is being published: then the message of WB_E_IO
 * says that it is not known whether the commit is on disk.
 */
int wb_store_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout);

/* Commits, then seals a snapshot of the committed state. Snapshots are numbered from 1. */
int wb_store_snapshot(struct wb_store *store, uint32_t *snapshot_out);

/* ---- revisits without an original -------------------------------------------------- */

/*
 * An archive may contain a revisit record ("the same bytes as before") whose original
 * we do not have. It is not a page, but we remember it, so that get can mention it
 * and a later import of the original can use it. The newest one of each page is kept.
 */
struct wb_store_revisit {
    int64_t time_ms;
    bool has_sha1;
    uint8_t sha1[WB_SHA1_BYTES];
};
int wb_store_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site,
                         const struct wb_store_revisit *revisit);
int wb_store_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);

/* ---- bars -------------------------------------------------------------------------- */

/*
 * A bar keeps something that was taken down from coming back. It names a page or a
 * site. A bar on a site covers all its URLs, including those found later, except pages
 * that were allowed individually. Every commit consults the bars inside its own
 * transaction. So nothing that is barred gets in, no matter when or by which process it
 * was put.
 */
enum wb_store_bar_kind { WB_STORE_BAR_PAGE, WB_STORE_BAR_SITE };

struct wb_store_bar {
    enum wb_store_bar_kind kind;
    struct wb_pageid id;  /* the page, if kind is WB_STORE_BAR_PAGE */
    struct wb_slice site; /* the site; for a page, the site it belongs to */
    bool except;          /* an exception instead of a bar: allows this page although its site is barred */
    int64_t time_ms;      /* when it was set */
};

/*
 * Sets a bar, durably. Everything that was put before is committed first. A bar on a
 * site ends the exceptions of its pages. Pages that are already stored stay until they
 * are removed; remembered revisits are deleted at once.
 */
int wb_store_bar(struct wb_store *store, const struct wb_store_bar *bar);

/*
 * Lifts bars, durably. Allowing a site also lifts the bars on its pages. Allowing a page
 * lifts its own bar, and if its site is barred, makes the page an exception. Fails with
 * WB_E_NOTFOUND if nothing was barred. bar->except and bar->time_ms are ignored.
 */
int wb_store_allow(struct wb_store *store, const struct wb_store_bar *bar);

/* Returns 1 if the page must not be stored or fetched, 0 if it may, or an error. Sees the commits of all processes. */
int wb_store_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site);

/*
 * Calls each() for all bars and exceptions; site is empty for those of pages. A non-zero
 * return from each() ends the walk and is returned. each() must not call the store.
 */
int wb_store_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar),
                      void *context);

/*
 * Lists up to max ids of committed pages of a site, including those that only the
 * snapshot still has. Reads no page, so that damaged pages are listed too.
 */
int wb_store_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                       size_t *count_out);

/* ---- reading ------------------------------------------------------------------ */

/*
 * Reads the latest version of a page. A writer sees its own uncommitted changes. The
 * page borrows its strings from mem_out, which the caller releases.
 */
int wb_store_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out);

/* The time of the latest version, without reading the page. */
int wb_store_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);

enum wb_store_view {
    WB_STORE_VIEW_LATEST,   /* the latest version of each page: classes B and C */
    WB_STORE_VIEW_SNAPSHOT, /* the pages of the last snapshot: classes A and B */
};

struct wb_store_scan_options {
    enum wb_store_view view;
    uint32_t part, parts; /* part 1 to parts of a division into disjoint parts; 0 of 0 and 1 of 1 mean everything */
    struct wb_slice site; /* if not empty, only pages of this site */
};

/* A walk over all pages of a view. */
struct wb_store_scan;

/*
 * Starts a scan. It returns each page exactly once, in the order of the disk, as of the
 * moment of opening: later commits do not affect it. Several scans of one store may run
 * at once, each in its own thread.
 */
int wb_store_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                       struct wb_store_scan **scan_out);

/*
 * Returns 1 and a page that is valid until the next call; 0 at the end; or an error.
 * After WB_E_CORRUPT the scan may be continued: the next call skips the damaged part.
 */
int wb_store_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);
void wb_store_scan_close(struct wb_store_scan *scan);

/* ---- the repository as a whole ------------------------------------------------------ */

struct wb_store_stat {
    uint64_t pages, sites;
    uint64_t pages_old;    /* class A: versions that only the snapshot has */
    uint64_t revisits;     /* remembered revisits without an original */
    uint64_t bars;         /* bars on pages and sites, plus exceptions */
    uint64_t bytes_pages;  /* bodies of the latest versions, uncompressed */
    uint64_t bytes_stored; /* everything in the repository's directory */
    uint64_t bytes_dead;   /* what compaction could free, including replaced files that a reader still needs */
    uint64_t segments;
    uint32_t epoch;        /* the current one; versions committed now belong to it */
    uint32_t snapshot;     /* number of the last snapshot; 0 if there is none */
    const char *organisation, *update;
};
int wb_store_stat(struct wb_store *store, struct wb_store_stat *stat_out);

/* Something that verify or compact found. */
struct wb_store_finding {
    bool problem;        /* true: damage; false: a note, such as leftovers of a crash, which are harmless */
    const char *file;    /* relative to the repository */
    uint64_t offset;
    const char *message;
};
typedef void (*wb_store_found)(void *context, const struct wb_store_finding *finding);

/* Called now and then with the bytes done and the total. Returning false stops the work cleanly: WB_E_STOPPED. */
typedef bool (*wb_store_progress)(void *context, uint64_t done, uint64_t total);

struct wb_store_compact_counts {
    uint64_t segments; /* rewritten or deleted */
    uint64_t pages;    /* pages that remain in the rewritten segments */
    uint64_t bytes_before, bytes_after;
    uint64_t skipped;  /* segments that another process is writing to */
    uint64_t damaged;  /* damaged places that were kept as they are, because they contain live pages */
    uint64_t dropped;  /* damaged places that were removed, because all their pages were dead */
};

/*
 * Frees the space of dead pages: those that no reader of any view can see. Damage does
 * not stop it. Each damaged place is passed to found(), as a problem if it remains
 * and as a note if it is gone, and everything else is compacted. Returns 0 even if
 * damage remains; see counts_out. progress and found may be NULL.
 */
int wb_store_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                     void *found_context, struct wb_store_compact_counts *counts_out);

struct wb_store_verify_counts {
    uint64_t pages, problems, notes;
};

/* Reads and checks everything; changes nothing. Returns 0 even if there are problems; see counts_out. */
int wb_store_verify(const char *dir, wb_store_found found, void *found_context, wb_store_progress progress,
                    void *progress_context, struct wb_store_verify_counts *counts_out);

#endif
