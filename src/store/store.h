/*
 * store.h - the door of store: the page repository.
 *
 * A repository is a directory that holds pages. Each page is found by its page id
 * (a hash of its URL's normal form). How pages are distributed over nodes and laid out on disk
 * is called the *design* (design.h). All designs are used through the functions below, and
 * keep the same promises.
 *
 *   writer     put, touch, remove ...  then commit    nothing counts before the commit
 *   reader     get one page, many pages, or scan all  always one consistent state
 *   snapshot   seal() freezes the state of this moment; drop() gives it up again
 *   history    which versions are kept although no snapshot holds them
 *   takedown   bar (durable at once), then remove and commit; allow lifts the bar
 *
 * Durability. When wb_store_commit() has returned 0, everything put before it
 * survives kill -9 and power loss. When it fails, nothing of it was stored (but see
 * WB_E_IO there). Uncommitted work is lost when the store is closed.
 *
 * Versions and captures. A *capture* is a page, the time at which it was seen, and its content then. A
 * *version* is one combination of status, media type and body, seen by one or more captures
 * in a row. The set of captures alone determines the versions, in whatever order they
 * arrive: an older capture takes its place in the past and never becomes the latest.
 * Putting a capture twice changes nothing. A content that returns after another one is a
 * version of its own, although its bytes are stored only once.
 *
 * Captures of equal times are in the order in which they arrived, so the last one is the page. A body that was cut
 * short comes before those of its time that are whole; and if one of these, or a longer one, begins with it, it is
 * the same capture, of which only the longer record counts.
 *
 * Epochs. Every commit that changes a page begins an epoch. A version has the epoch in
 * which it arrived and the one in which it ceased to be the latest. These two numbers say
 * where it is visible: in the state of epoch e if it had arrived by e and had not ceased by
 * then. A state shows the captures that had arrived by then: those that come later change
 * neither the time that it gives for a page nor the number of captures. A snapshot is an epoch
 * that is held. So sealing and dropping take constant time, and
 * any number of snapshots can exist. In the words of the WebBase paper (section 3.3), seen from a
 * snapshot: class A versions are in it but no longer the latest, class B versions
 * are in it and the latest, class C versions arrived later.
 *
 * A version lives as long as it is the latest, or a snapshot or a running scan can see it,
 * or the history policy keeps it. compact() frees the bytes of the others.
 *
 * Processes and threads. Any number of processes may write and read one repository at
 * the same time. A handle (struct wb_store) belongs to one thread, and must not be
 * used after fork(); each of its scans may run in a thread of its own.
 *
 * Errors. WB_E_NOTFOUND: no such page. WB_E_CORRUPT: bytes on disk are damaged; the
 * message names the file. WB_E_BROKEN: the same, where work that usually passes over damage cannot.
 * WB_E_IO, WB_E_NOMEM, WB_E_LIMIT: the environment failed.
 */
#ifndef WB_STORE_STORE_H
#define WB_STORE_STORE_H

#include "base/buf.h"
#include "base/date.h"
#include "catalog/terms.h"
#include "place/init_options.h"
#include "page/page.h"

/* The largest body that any organisation accepts. */
#define WB_STORE_BODY_MAX (1u << 30)

/* An open repository. */
struct wb_store;

enum wb_store_mode { WB_STORE_READ, WB_STORE_WRITE };

/* The policy in words: "newest", "all", "3", "30d". Durations: s, m, h, d, w, y. WB_E_INVALID names the text. */
#define WB_STORE_HISTORY_TEXT_MAX 32
int wb_store_history_parse(struct wb_slice text, struct wb_store_history *history_out);
void wb_store_history_format(const struct wb_store_history *history, char text_out[WB_STORE_HISTORY_TEXT_MAX]);

/*
 * Creates a repository in dir, and dir itself if necessary. options may be NULL.
 * Fails with WB_E_INVALID if dir already holds a repository or any other files.
 */
int wb_store_create(const char *dir, const struct wb_store_options *options);

/* Returns true if dir holds a repository, even one of a format that this program cannot read. */
bool wb_store_exists(const char *dir);

/* 0 if dir holds a repository. Otherwise an error says so, or that it is a copy which was not finished. */
int wb_store_require(const char *dir);

/* The id that distinguishes this repository from all others, as 32 hexadecimal digits. */
#define WB_STORE_ID_HEX 32
int wb_store_id(const char *dir, char text_out[WB_STORE_ID_HEX + 1]);

/*
 * Opens a repository. A writer first repairs what a crash left behind. Fails with
 * WB_E_NOTFOUND if dir is not a repository, and with WB_E_NEWER if it has another format.
 */
int wb_store_open(const char *dir, enum wb_store_mode mode, struct wb_store **store_out);

/* Closes the store and drops everything that was not committed. store may be NULL. */
void wb_store_close(struct wb_store *store);

/* ---- writing ---------------------------------------------------------------- */

/*
 * Adds a copy of the page to what the next commit stores. If the page has no digests,
 * they are computed. outcome_out may be NULL.
 *
 * One exception to "the newest capture is the latest": a stored time that is more than
 * WB_STORE_AHEAD_MS in the future can only come from a wrong clock. It gives way to any page
 * whose time is plausible; otherwise one bad clock would lock out all later versions for
 * years.
 */
int wb_store_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);

/* The latest version was seen again at time_ms: a capture without bytes. Renews its lifetime. WB_E_NOTFOUND. */
int wb_store_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);

/*
 * Ends a page: from now on there is no latest version; WB_E_NOTFOUND if there is none already.
 * Snapshots and the history policy keep what they keep; time_ms is since when the page has been gone.
 * With everywhere, all its versions go at the same commit, out of all snapshots (takedown).
 * The caller names the page's site, so that the page itself need not be read: a damaged
 * page can be removed too.
 */
int wb_store_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms,
                    bool everywhere);

struct wb_store_commit_counts {
    uint64_t added;    /* pages that were not there before */
    uint64_t replaced; /* new versions that became the latest */
    uint64_t past;     /* new versions that did not */
    uint64_t captures; /* further captures of stored contents */
    uint64_t older;    /* captures not kept: known already, or too old for the history policy */
    uint64_t barred;   /* pages and revisits not stored, because they were taken down */
    uint64_t removed;
    uint64_t damaged; /* places that could not be read and had to be rewritten: pages in them are lost (verify) */
};

/*
 * Makes everything since the last commit durable, and adds to the counts. On error
 * nothing of it was stored, and the store is ready for new work. The one exception is
 * a disk that fails while the commit is being published: then the message of WB_E_IO
 * says that it is not known whether the commit is on disk.
 */
int wb_store_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout);

/* ---- revisits (struct wb_store_revisit in terms.h) ------------------------------------------------------- */

/* The outcome is CAPTURE, KNOWN, OLDER, BARRED, or NEW: it waits for its original. outcome_out may be NULL. */
int wb_store_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                         enum wb_store_outcome *outcome_out);

/* The newest revisit of a page that waits for its original. WB_E_NOTFOUND. Site and URL are not filled in. */
int wb_store_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);

/*
 * Calls each() for the revisits of other pages that wait for a content of the page `original`, of this
 * writer and committed ones. A caller that puts that content under their URLs and times turns them into
 * captures. The site is not filled in; the URL is, for the time of the call. each() must not call the store.
 */
int wb_store_waiting_each(struct wb_store *store, struct wb_pageid original,
                          int (*each)(void *context, const struct wb_store_revisit *revisit), void *context);

/* ---- bars -------------------------------------------------------------------------- */

/*
 * A bar keeps something that was taken down from coming back. It names a page or a
 * site. A bar on a site covers all its URLs, including those found later, except pages
 * that were allowed individually. Every commit consults the bars inside its own
 * transaction. So nothing that is barred gets in, no matter when or by which process it
 * was put.
 */
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
 * A number that changes whenever a bar or an exception is added or lifted, by whichever process. Much cheaper than
 * reading the bars: ask for it first, and if it is another one than before, read them. Bars that come in between are
 * read then, and once more when the number is asked for next.
 */
int wb_store_bar_version(struct wb_store *store, uint64_t *version_out);

/*
 * Lists up to max ids of committed pages of a site that have any version, the latest or
 * an older one. Reads no page, so that damaged pages are listed too.
 */
int wb_store_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                       size_t *count_out);

/* ---- snapshots and history --------------------------------------------------------------- */

/* 1 to 64 letters, digits, '.', '_' or '-', and not a number. WB_E_INVALID says what is wrong. */
int wb_store_name_check(struct wb_slice name);

/*
 * Commits, then seals a snapshot of the committed state, held by `holder`. name may be empty; WB_E_INVALID if
 * it is in use. wb_store_snapshot_release() frees what *snapshot_out owns.
 */
int wb_store_seal(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                  struct wb_store_snapshot *snapshot_out);

/*
 * Gives up the person's hold. If a generation or a stream holds the snapshot, it is refused with WB_E_BUSY, and
 * the message names the holder. A reader that is under way can finish. WB_E_NOTFOUND.
 */
int wb_store_drop(struct wb_store *store, uint32_t number);

/* Adds a holder, or changes when it expires. WB_E_NOTFOUND if the snapshot is gone. */
int wb_store_hold(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder);

/* Takes a holder away; the snapshot goes with the last one. WB_E_NOTFOUND if there is no such holder. */
int wb_store_let_go(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder);

/* Finds a snapshot by its number or name. WB_E_NOTFOUND, also if it has expired; the message names it. */
int wb_store_snapshot_find(struct wb_store *store, struct wb_slice which, struct wb_store_snapshot *snapshot_out);
void wb_store_snapshot_release(struct wb_store_snapshot *snapshot);

/* Calls each() for all snapshots that can be read, in the order of their numbers. each() must not call the store. */
int wb_store_snapshot_each(struct wb_store *store,
                           int (*each)(void *context, const struct wb_store_snapshot *snapshot), void *context);

/* The history policy. Setting it is durable at once; what it no longer keeps goes with the next commits and compact. */
int wb_store_history(struct wb_store *store, struct wb_store_history *history_out);
int wb_store_set_history(struct wb_store *store, const struct wb_store_history *history);

/* Where a handle has seen the bytes of a version. Good for that handle alone, until something is committed. */
struct wb_store_spot {
    uint64_t handle, state; /* numbers of the handle, and of the state of its catalog; handle 0: not known */
    uint64_t logical;
    uint32_t segment;
    uint16_t slot;
};

/*
 * A version of a page that can be read: kept by the policy, or visible in a snapshot, or the latest. What only a
 * snapshot shows because it was replaced by a longer record of the same capture is not among them.
 */
struct wb_store_version {
    int64_t time_ms;          /* of its first capture */
    int64_t last_ms;          /* of its last capture */
    size_t first, captures;   /* its captures: a range of wb_store_timeline.times */
    uint64_t arrived, ceased; /* epochs; ceased is 0 in the latest version */
    uint64_t body_bytes;
    uint16_t status;
    size_t same;              /* the first version that has the same content; its own index if that is itself */
    uint64_t content;         /* names its content among those of the page; of no other meaning */
    struct wb_store_spot spot; /* so that reading many versions of a page does not read its history for each */
};

/*
 * Everything that is known about the past of a page. The first captures of its versions ascend; further ones of a
 * version that only a snapshot keeps may come after some of the versions behind it.
 */
struct wb_store_timeline {
    struct wb_store_version *versions; /* oldest first */
    size_t count;
    int64_t *times;                    /* of all captures, version by version; those of each version ascend */
    size_t time_count;
    int64_t gone_ms;                   /* since when the page has been gone; 0 if it has a latest version */
};

/* The committed versions of a page. WB_E_NOTFOUND if there is none. */
int wb_store_timeline(struct wb_store *store, struct wb_pageid id, struct wb_store_timeline *timeline_out);

/*
 * The same as of an epoch: the captures that had arrived by then, as far as they are still known. Nothing that a
 * snapshot or a running scan of that epoch sees is missing.
 */
int wb_store_timeline_in(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                         struct wb_store_timeline *timeline_out);
void wb_store_timeline_release(struct wb_store_timeline *timeline);

/* ---- reading ------------------------------------------------------------------ */

/*
 * Reads the latest version of a page. A writer sees its own uncommitted changes. The
 * page borrows its strings from mem_out, which the caller releases. Its time is that of the
 * version's newest capture.
 */
int wb_store_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out);

/* Which version of a page is meant. */
struct wb_store_when {
    enum wb_store_when_kind {
        WB_STORE_WHEN_LATEST,
        WB_STORE_WHEN_TIME,     /* the version that has the newest capture at or before time_ms, or else the oldest */
        WB_STORE_WHEN_SNAPSHOT, /* the version in that snapshot */
        WB_STORE_WHEN_CAPTURE,  /* the version of that content, preferably the one that has a capture at time_ms */
    } kind;
    int64_t time_ms;
    uint32_t snapshot;
    uint64_t content; /* as a timeline names it */
    const struct wb_store_version *version; /* with CAPTURE: the one that a timeline lists; may be NULL */
};

/* The same for any committed version. WB_E_NOTFOUND, also if the snapshot is gone: the message says which. */
int wb_store_get_when(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when,
                      struct wb_page *page_out, struct wb_buf *mem_out);

/*
 * Reads a version that a timeline lists. Returns 1; 0 if it is not there any more, so that the timeline must be
 * read again; or an error. The page borrows from mem_out, whose earlier content is dropped. Its time is that of the
 * timeline.
 */
int wb_store_get_version(struct wb_store *store, struct wb_pageid id, const struct wb_store_version *version,
                         struct wb_page *page_out, struct wb_buf *mem_out);

/* Whether a page that a scan has returned is this version. */
bool wb_store_is_version(const struct wb_page *page, const struct wb_store_version *version);

/*
 * Reads many committed pages, each block of the disk once. Calls each() for every id, in an order of the
 * store's choice: err is 0 and page is valid during the call, or err is WB_E_NOTFOUND, WB_E_CORRUPT or WB_E_DOWN. A
 * non-zero return of each() ends the work and is returned. each() must not call the store.
 */
typedef int (*wb_store_each_page)(void *context, size_t index, int err, const struct wb_page *page);
int wb_store_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t count,
                      const struct wb_store_when *when, wb_store_each_page each, void *context);

/* The time of the latest version, without reading the page. */
int wb_store_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);

/* A place in a scan. It stays valid across compaction, restarts and new formats. */
#define WB_STORE_POSITION_BYTES 40
struct wb_store_position {
    char bytes[WB_STORE_POSITION_BYTES];
};

struct wb_store_scan_options {
    uint32_t snapshot;    /* the state to show; 0: the latest, as of the moment of opening */
    uint32_t part, parts; /* part 1 to parts of a division into disjoint parts; 0 of 0 and 1 of 1 mean everything */
    struct wb_slice site; /* if not empty, only pages of this site */
    uint64_t since;       /* only versions that arrived after this epoch */
    bool anytime;         /* batch designs: neither waits for a transfer, nor keeps one waiting; may see a part of it */
    bool facts;           /* pages without their bodies; none is decompressed */
    bool gone;            /* latest only: then also the newest version of each page that is gone but has a history */
    const struct wb_store_position *after; /* go on after this place; NULL: from the beginning */
    const struct wb_store_position *until; /* stop after this place; NULL: go on to the end. Not with gone */
    bool at_once;         /* batch designs: WB_E_BUSY if a transfer is under way, instead of waiting for its end */
    const uint32_t *without; /* nodes whose pages are left out; the list must stay until the scan ends */
    size_t without_count;
};

/* A walk over all pages of a state. */
struct wb_store_scan;

/*
 * Starts a scan. It returns each page exactly once, in the order of the disk; later commits
 * do not affect it, except that pages that are taken down may be missing. Several
 * scans of one store may run at once, each in its own thread. WB_E_NOTFOUND if the snapshot
 * is gone; a scan that has begun can finish, even if its snapshot is dropped.
 */
int wb_store_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                       struct wb_store_scan **scan_out);

/*
 * Whether scans should begin now: 0, or WB_E_BUSY while a transfer of a batch design is under way, or waits for scans
 * to end. (A process that has scans under way may begin more of them nevertheless.)
 */
int wb_store_scan_ready(struct wb_store *store);

/*
 * Whether a scan with these options would come to a node that is down: 0, or WB_E_DOWN with its name. Costs next to
 * nothing if all nodes are there, and otherwise at most a walk over the catalog. No page is read.
 */
int wb_store_scan_check(struct wb_store *store, const struct wb_store_scan_options *options);

/*
 * Returns 1 and a page that is valid until the next call; 0 at the end; or an error.
 * After WB_E_CORRUPT the scan may be continued: the next call skips the damaged part. So there are at most as many
 * such errors as there are damaged parts. WB_E_BROKEN: what is damaged leads to everything else, so the scan is over.
 */
int wb_store_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);

/* The place of the page that was returned last. */
void wb_store_scan_tell(const struct wb_store_scan *scan, struct wb_store_position *position_out);

/* Which of two positions of this store's scans comes first: negative, 0 or positive. */
int wb_store_position_compare(const struct wb_store *store, const struct wb_store_position *a,
                              const struct wb_store_position *b);

/* What the scan keeps from being freed: the state that it shows. */
struct wb_store_scan_holds {
    uint64_t epoch; /* versions visible in this epoch are kept */
};
int wb_store_scan_holds(struct wb_store_scan *scan, struct wb_store_scan_holds *holds_out);
void wb_store_scan_close(struct wb_store_scan *scan);

/* ---- parcels ---------------------------------------------------------------------------- */

/*
 * A parcel is a piece of the repository as it is stored: a group of neighbouring pages, compressed together and with
 * checksums, and a list of those that count. It can be copied to another process or machine and unpacked there.
 *
 * Of pages that do not count, a parcel may contain bytes, because others are compressed with them, but never of one
 * that was taken down, and never more than of those that count.
 */

/* A page of a parcel, and what its record does not say. */
struct wb_store_parcel_page {
    struct wb_pageid id;
    struct wb_store_position position; /* its place in the scan */
    int64_t time_ms;                   /* of its newest capture ... */
    bool own_time;                     /* ... unless this is set: it is as in the record */
    bool own_lifetime;                 /* the same for the lifetime */
    uint16_t slot;                     /* its number in the parcel */
    uint32_t lifetime, lifetime_count;
    uint64_t epoch;
};

struct wb_store_parcel {
    struct wb_slice bytes;                    /* a block (docs/formats/segment.md) */
    const struct wb_store_parcel_page *pages; /* at least one, in ascending order of slots and positions */
    size_t count;
};

/*
 * The same as wb_store_scan_next() for many pages at once: returns 1 and a parcel that is valid until the next call;
 * 0 at the end; or an error. After WB_E_CORRUPT the scan may be continued. Frames are not read if that can be avoided,
 * so that damage inside them is found when the parcel is unpacked.
 *
 * A scan may return both pages and parcels: each goes on behind the page that was returned last. wb_store_scan_tell()
 * is then the place of the parcel's last page. The scan must not have been opened with `facts`.
 */
int wb_store_scan_parcel(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out);

/* Unpacks parcels, one after the other. They may come from anywhere: whatever is wrong with one is WB_E_CORRUPT. */
struct wb_store_unpacker;
int wb_store_unpacker_new(struct wb_store_unpacker **unpacker_out);
void wb_store_unpacker_free(struct wb_store_unpacker *unpacker);

/* Opens a parcel, which must stay as it is while it is being unpacked; replaces the one before. */
int wb_store_unpacker_open(struct wb_store_unpacker *unpacker, const struct wb_store_parcel *parcel);

/*
 * Page `at` of the parcel's list; valid until the next call. Pages may be read in any order; in that of the list is the
 * fastest. After WB_E_CORRUPT, other pages may still be readable.
 */
int wb_store_unpacker_page(struct wb_store_unpacker *unpacker, size_t at, struct wb_page *page_out);

/* The same without the body, which is not decompressed. */
int wb_store_unpacker_facts(struct wb_store_unpacker *unpacker, size_t at, struct wb_page *page_out);

/* Makes parcels of pages that are not stored next to each other. Compresses fast rather than well. */
struct wb_store_packer;
int wb_store_packer_new(struct wb_store_packer **packer_out);
void wb_store_packer_free(struct wb_store_packer *packer);

/* Adds a copy of a page, whose body must be there. position may be NULL. */
int wb_store_packer_add(struct wb_store_packer *packer, const struct wb_page *page,
                        const struct wb_store_position *position);

/* Whether the parcel is as large as it should get. */
bool wb_store_packer_full(const struct wb_store_packer *packer);

/* The parcel of the pages that were added, at least one; valid until the next add, which begins a new one. */
int wb_store_packer_finish(struct wb_store_packer *packer, struct wb_store_parcel *parcel_out);

/* ---- the repository as a whole ------------------------------------------------------ */

struct wb_store_stat {
    uint64_t pages, sites;
    uint64_t versions;     /* that can be read: at least one for each page */
    uint64_t captures;     /* of these versions */
    uint64_t revisits;     /* revisits that wait for their original */
    uint64_t bars;         /* bars on pages and sites, plus exceptions */
    uint64_t snapshots;    /* that can be read */
    uint64_t bytes_pages;  /* bodies of the latest versions, uncompressed */
    uint64_t bytes_stored; /* everything in the repository's directory */
    uint64_t bytes_dead;   /* what compaction could free, including replaced files that a reader still needs */
    uint64_t files;        /* that hold pages (of the log organisation: segments) */
    uint64_t epoch;        /* of the last commit */
    uint32_t snapshot;     /* number of the newest snapshot ever sealed; 0 if there was none */
    struct wb_store_history history;
    struct wb_design design;
    uint64_t nodes;
    uint64_t pages_waiting; /* in a batch design: different pages on the update nodes */
};
int wb_store_stat(struct wb_store *store, struct wb_store_stat *stat_out);

struct wb_store_verify_counts {
    uint64_t pages, problems, notes;
};

/* Reads and checks everything; changes nothing. Returns 0 even if there are problems; see counts_out. */
int wb_store_verify(const char *dir, wb_store_found found, void *found_context, wb_store_progress progress,
                    void *progress_context, struct wb_store_verify_counts *counts_out);

#include "store/store_nodes.h" /* nodes, batch updates, conversions */

#endif
