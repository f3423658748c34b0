/*
 * repo.h - the engine behind all incremental designs: its handle, its writer, and what its files share.
 *
 * The catalog (catalog.h) knows where each page is and which files count. How its bytes lie in these files is behind a
 * table of functions (pagefile.h). Batch designs, and the room `move`, use the engine from inside, too.
 *
 *   repo.c           creating, opening and closing
 *   repo_get.c       reading single pages; repo_batch.c: many at once
 *   repo_stat.c      statistics; repo_nodes.c: the table of nodes
 *   repo_write.c     collects what a writer puts, touches and removes, until it commits
 *   repo_ops.c       ... as a list of ops; repo_order.c sorts them
 *   repo_commit.c    makes it all durable: one transaction of the catalog
 *   repo_edit.c      ... what it changes: pages, the rows of files, counters
 *   repo_adopt.c     takes over records and pages of another repository; repo_block.c: whole blocks
 *   repo_snapshot.c  seals and drops snapshots, sets the history policy
 *   repo_history.c   the past of a page for readers; forgetting what nobody keeps
 *   repo_revisit.c   revisits that wait for their original
 *   repo_base.c      the update nodes of a batch design go on from the read nodes
 *   repo_bar.c       bars: what was taken down and must not come back
 *   repo_recover.c   what a crash left behind
 *   repo_verify.c    reads and checks everything
 *   scan/            all pages, in the order of the disk or of their ids
 *
 * Threads: everything here runs in the thread that owns the handle. The workers of a writer belong to its files. Scans
 * have their own catalog handle, because they may run in another thread.
 */
#ifndef WB_STORE_REPO_H
#define WB_STORE_REPO_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "catalog/catalog.h"
#include "pagefile/pagefile.h"
#include "place/place.h"
#include "store/organisation.h"
#include "store/site_names.h"

enum {
    WB_REPO_MAGIC = 0x57424c4f,
    WB_REPO_WRITER_MAGIC = 0x57424c57,
};

struct wb_repo_writer;

/* An open repository. */
struct wb_repo {
    struct wb_store store; /* must be the first member */
    uint32_t magic;
    char *dir;
    struct wb_superblock superblock;
    struct wb_catalog *catalog;
    struct wb_catalog_txn reader; /* for single reads; parked between calls */
    struct wb_nodes nodes;        /* as of the last read */
    struct wb_busy busy;          /* tells other processes what is under way on the nodes */
    uint64_t number;              /* of this handle, among all of the process */
    uint64_t commit_at_open;      /* the catalog's last commit when the store was opened */
    uint64_t content_seed;        /* for wb_history_content() */
    uint64_t bars_txn;            /* cached: in the catalog's state with this number ... */
    uint64_t bars;                /* ... there were this many bars */
    struct wb_pagefile files;     /* how the bytes of pages lie in files */
    struct wb_repo_writer *writer; /* NULL if the store was opened for reading */
    struct wb_repo *base;         /* of update nodes: the read nodes, whose pages these go on from; otherwise NULL */
    struct wb_site_names sites;   /* of update nodes: known sites, here and there (repo_base.c) */
};

/* Whether a store is one, and not a batch design, which has two of them. */
bool wb_repo_is(const struct wb_store *store);
struct wb_repo *wb_repo_of(struct wb_store *store);

/* The same for a store that was opened for writing. */
struct wb_repo *wb_repo_of_writer(struct wb_store *store);

/* ---- writing (repo_write.c) ------------------------------------------------------------- */

enum wb_op_kind {
    WB_OP_PUT,
    WB_OP_CAPTURE, /* of a content that is stored already, or that is too old to be stored */
    WB_OP_TOUCH,
    WB_OP_REMOVE,
    WB_OP_REMOVE_EVERYWHERE,
    WB_OP_REVISIT, /* waits for its original */
    WB_OP_ADOPT,   /* its page is decided like that of copies, but nothing is copied */
    WB_OP_COPY,    /* bytes that get a place; which page has them is decided later (repo_adopt.h) */
};

/* Whether the op brings bytes that are to be stored. */
static inline bool wb_op_has_bytes(enum wb_op_kind kind)
{
    return kind == WB_OP_PUT || kind == WB_OP_COPY;
}

/* Whether the op says to which site its page belongs. */
static inline bool wb_op_knows_site(enum wb_op_kind kind)
{
    return kind != WB_OP_TOUCH;
}

/* One thing that the writer was told to do. */
struct wb_op {
    enum wb_op_kind kind;
    struct wb_pageid id;
    uint32_t site;                   /* index into the writer's sites */
    uint32_t put; /* of a put or copy: the number of its record (wb_pagefile_writer.puts), plus one */
    int64_t previous;                /* the op before this one that concerns the same page; -1: there is none */
    int64_t time_ms;                 /* of a capture: when; of a removal: since when the page has been gone */
    uint64_t content;                /* of a put or capture (wb_history_content); of a touch: 0, or what was seen */
    uint64_t replaces;               /* of a put: a content of its time that it replaces, because it is longer; or 0 */
    struct wb_buf record;            /* of a capture: see below */
    struct wb_catalog_entry entry;   /* of a put; its place and stored_bytes are those of its record, in the commit */
    bool has_lifetime;               /* entry.lifetime and lifetime_count are set: it comes from a put */
    bool differs;                    /* of a put: what its record says about time and lifetime may not be true */
    bool has_payload_sha1;
    uint8_t payload_sha1[WB_SHA1_BYTES];
    struct wb_store_revisit *revisit; /* a copy of it with its URL, without its site; see below. Otherwise NULL */
};

/*
 * A capture is of a content that is stored already. Until the commit, another process may give that content
 * up, because it has a newer version. So the op of a capture has what is needed in that case. If it was put, that is
 * its record, which is then stored after all. If it is a revisit that has found its original, it is the revisit, which
 * then waits.
 */

/*
 * In a view that includes ops that are not committed, bytes that have no place yet: the
 * place's logical offset is the number of the op, plus one (WB_PAGEVIEW_PENDING_SEGMENT).
 */

/* Views of pages that the ops concern, so that many ops for one page need not be applied again and again. */
enum { WB_REPO_VIEWS = 64 };
struct wb_repo_cached_view {
    struct wb_pageview view;
    int64_t last_op; /* the view includes the page's ops up to this one; -1: not in use */
};

/* A site that occurs in the ops. */
struct wb_repo_site {
    char *name;
    size_t len;
    uint64_t hash;
    int64_t delta; /* by how much its number of pages changes; counted during the commit */
};

/* Finds a page, or a site, by its 128-bit hash: leads to an index in one of the writer's vectors. */
struct wb_op_index_entry {
    uint64_t hash; /* id.lo */
    struct wb_pageid id;
    uint32_t index;
};
union wb_op_index WB_MAP_OF(struct wb_op_index_entry);

struct wb_repo_edit;

/*
 * A writer: what it was told to do, in the order in which it came. The records are in files.puts. Every commit or
 * failed commit leaves it empty.
 */
struct wb_repo_writer {
    uint32_t magic;
    WB_VEC(struct wb_op) ops;
    uint64_t spare_bytes;        /* of the records of all captures */
    WB_VEC(struct wb_repo_site) sites;
    union wb_op_index site_index; /* hash of a site -> its index in sites */
    union wb_op_index page_index; /* page id -> the last op that concerns it ... */
    size_t indexed;               /* ... among the first so many; (repo_ops.h) */
    struct wb_repo_cached_view views[WB_REPO_VIEWS];
    struct wb_pageview spare;         /* of a page that no op concerns */
    WB_VEC(size_t) chain;             /* ops to be applied to a view */
    struct wb_epochs held;            /* what moment.rule.held points to */
    size_t waiting_ops;               /* revisits among the ops whose original is another page */
    struct wb_moment moment;          /* what the next commit will go by, as far as is known now */
    bool moment_known;                /* ... it was read since the last commit */
    bool any_gone, any_waiting;       /* ... and whether a page is gone, and a revisit waits */
    struct wb_busy_mark busy;    /* set while there are ops */
    int (*adopt)(void *context, struct wb_repo_edit *edit, const uint32_t *order, size_t count);
    void *adopt_context;         /* adopt makes the page of copies in the same commit; NULL: it is made later */
    size_t attempt;              /* of the commit under way: it is repeated, and adopt called again, if a node fails */
    uint64_t older, barred;      /* pages that were refused since the last commit */
    bool thorough;               /* compaction must leave nothing of what is replaced: set during a transfer */
    struct wb_pagefile_writer files; /* the records of puts and copies */
};

int wb_repo_writer_new(struct wb_repo *repo);
void wb_repo_writer_free(struct wb_repo *repo);
int wb_repo_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);
int wb_repo_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);
int wb_repo_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms, bool everywhere);

/* Returns false if the id is not in the index. */
bool wb_op_index_get(const union wb_op_index *map, struct wb_pageid id, uint32_t *index_out);

/* Whether this writer has ops for the page that are not committed. */
bool wb_repo_has_ops(const struct wb_repo *repo, struct wb_pageid id);

/* The page as it will be after the ops so far. The view is good until the next call. */
int wb_repo_view(struct wb_repo *repo, struct wb_pageid id, struct wb_pageview **view_out);

/* Whether the page can be changed (WB_E_DOWN): some organisations must write the files of all its versions then. */
int wb_repo_can_change(struct wb_repo *repo, const struct wb_pageview *view);

/* Adds an op; from now on it is part of the views of its page. Its record and its revisit belong to the writer then. */
int wb_op_add(struct wb_repo *repo, const struct wb_op *op);

/* Finds a site among those of the ops, or adds it. */
int wb_repo_site_index(struct wb_repo_writer *writer, struct wb_slice site, uint32_t *index_out);

/* Reads a version of a writer's view, committed or not. Its time and lifetime are those of the record. */
int wb_repo_read_version(struct wb_repo *repo, struct wb_pageid id, const struct wb_history_version *version,
                         struct wb_page *page_out, struct wb_buf *mem_out);

/*
 * Compares a page that is to be put with the captures of its time (repo_rival.c). 1: one of them begins with this page,
 * which was cut short, and has more of it or is whole: there is nothing to be put. 0: *replaces_out is the content of
 * one that was cut short and with which this page begins, or 0. read(context) reads the bytes of a version.
 */
typedef int (*wb_repo_read_rival)(void *context, struct wb_pageid id, const struct wb_history_version *version,
                                  struct wb_page *page_out, struct wb_buf *mem_out);
int wb_repo_rival(const struct wb_history *history, const struct wb_page *page, wb_repo_read_rival read, void *context,
                  uint64_t *replaces_out);

/* Reads a page that was put by this op but not committed. */
int wb_repo_get_pending(struct wb_repo *repo, size_t op, struct wb_page *page_out, struct wb_buf *mem_out);

/* Hands the record of an op that was just added to the files. It is empty then. */
int wb_repo_store_record(struct wb_repo *repo, const struct wb_op *op, struct wb_buf *record);

/* A capture whose content was given up becomes a put: its record goes to the files. */
int wb_repo_put_captured(struct wb_repo *repo, struct wb_op *op);

/* Forgets all ops, after a commit or a failure. */
void wb_ops_clear(struct wb_repo *repo);

/* ---- committing (repo_commit.c) --------------------------------------------------------------- */

int wb_repo_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout);
/*
 * To be called after every failed commit of the catalog. If it is not known whether the
 * commit is on disk, the appended blocks may be committed, so they must not be cut off:
 * leaves the segments as they are, forgets the ops, and reopens the catalog, which
 * decides by what is there. Does nothing if the outcome is known.
 */
void wb_repo_decide(struct wb_repo *repo);

/* A transaction that changes something other than pages: bars, snapshots, the history policy. */
struct wb_repo_change {
    struct wb_repo *repo;
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary; /* written at the end */
    int64_t now_ms;                    /* when it began */
};

/* Commits what was put before; then runs make(context), which changes `change`, and commits that. */
int wb_repo_change(struct wb_store *store, struct wb_repo_change *change, int (*make)(void *context), void *context);

/* ---- bars (repo_bar.c) --------------------------------------------------------------------------- */

int wb_repo_bar(struct wb_store *store, const struct wb_store_bar *bar);
int wb_repo_allow(struct wb_store *store, const struct wb_store_bar *bar);
int wb_repo_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site);
int wb_repo_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context);
int wb_repo_bar_version(struct wb_store *store, uint64_t *version_out);
int wb_repo_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                      size_t *count_out);

/* Looks up, in a transaction, whether a page is barred. */
int wb_repo_bar_holds(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_slice site, bool *barred_out);

/* The same through the reader, which must be awake. Takes no time if there are no bars. */
int wb_repo_bar_look(struct wb_repo *repo, struct wb_pageid id, struct wb_slice site, bool *barred_out);

/* ---- reading (repo.c) ------------------------------------------------------------------------- */

int wb_repo_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when, struct wb_page *page_out,
                struct wb_buf *mem_out);
int wb_repo_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);

/* The entry of the committed version that is meant; of an old version without lifetimes. WB_E_NOTFOUND. */
int wb_repo_find(struct wb_repo *repo, struct wb_pageid id, const struct wb_store_when *when,
                 struct wb_catalog_entry *entry_out);

/* Reads the page that an entry describes. */
int wb_repo_read_entry(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_entry *entry,
                       struct wb_page *page_out, struct wb_buf *mem_out);

/* Reads the record of a version at its place. */
int wb_repo_read_record(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_place *place,
                        struct wb_buf *record_out);

/* Opens the catalog, or opens it again. If that fails, the old handle stays. */
int wb_repo_open_catalog(struct wb_repo *repo);

/* wb_pagefile_read(): runs a function through repo->reader. */
int wb_repo_read(struct wb_repo *repo, int (*read)(void *context), void *context);

/* ---- the catalog at a glance (repo_stat.c) ---------------------------------------------------- */

int wb_repo_stat(struct wb_store *store, struct wb_store_stat *stat_out);

/* The table of nodes, and what the files of a node take on its disk, by a listing: WB_E_DOWN (repo_nodes.c). */
struct wb_repo_usage {
    uint64_t bytes;
    uint64_t retired; /* ... of which those that were replaced, and that a reader may still need */
};
int wb_repo_node_usage(struct wb_repo *repo, uint32_t number, struct wb_repo_usage *usage_out);
int wb_repo_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                      void *context);

/* The newest summary. */
int wb_repo_summary(struct wb_repo *repo, struct wb_catalog_summary *summary_out);


/* ---- pages in a transaction (repo_edit.c) --------------------------------------------------------- */

/* A transaction in progress. The summary is kept here, and written at the end. */
struct wb_repo_edit {
    struct wb_repo *repo;
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    struct wb_pagefile_edit files; /* the rows of files */
    struct wb_moment moment;
    struct wb_epochs held;           /* what moment.rule.held points to */
    bool changed;                    /* a page was changed: the epoch of this commit has begun */
    bool taken_down;                 /* a page was removed on request, so its bytes must really disappear */
    bool as_is;                      /* pages come from another repository: nothing is forgotten now (repo_adopt.c) */
    bool forgetting;                 /* the bytes of versions that nobody keeps any more must disappear, too */
    struct wb_pageview view;         /* the page that is being changed */
    struct wb_places_used before, after; /* the places of its versions */
};

int wb_repo_edit_begin(struct wb_repo *repo, struct wb_repo_edit *edit);
void wb_repo_edit_release(struct wb_repo_edit *edit);

/* Loads a page into edit->view; the caller changes the view. */
int wb_repo_edit_load(struct wb_repo_edit *edit, struct wb_pageid id);

/*
 * Trims and saves edit->view, and keeps counters and segment rows up to date. touched: the time or lifetime
 * of the latest version may differ from those of its record. on_request: a takedown, so all bytes must disappear.
 * *site_pages_inout changes by the number of pages that the site has gained or lost; it may be NULL.
 */
int wb_repo_edit_save(struct wb_repo_edit *edit, bool touched, bool on_request, int64_t *site_pages_inout);

/* A page was removed from everywhere, or refused: its bytes must disappear. Saving with on_request does this. */
void wb_repo_edit_take_down(struct wb_repo_edit *edit);

/* Writes everything that was changed, and commits. */
int wb_repo_edit_end(struct wb_repo_edit *edit);

/* ---- snapshots and history (repo_snapshot.c, repo_history.c) --------------------------------------- */

int wb_repo_seal(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                 struct wb_store_snapshot *snapshot_out);
int wb_repo_drop(struct wb_store *store, uint32_t number);
int wb_repo_hold(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder);
int wb_repo_let_go(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder);
int wb_repo_snapshot_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_snapshot *snapshot),
                          void *context);
int wb_repo_history(struct wb_store *store, struct wb_store_history *history_out);
int wb_repo_set_history(struct wb_store *store, const struct wb_store_history *history);
int wb_repo_timeline(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                     struct wb_store_timeline *timeline_out);

/* The epoch of a snapshot that can be read, in a transaction. WB_E_NOTFOUND names it. */
int wb_repo_snapshot_epoch(struct wb_catalog_txn *txn, uint32_t number, uint64_t *epoch_out);

/* Keeps what is visible in a snapshot, or in the newest epoch if it is 0, until the catalog is closed. */
int wb_repo_pin_epoch(struct wb_catalog *catalog, uint32_t snapshot, uint64_t *epoch_out);

/* Gives up the versions of all pages that nobody keeps any more; compact() begins with this. */
int wb_repo_forget(struct wb_repo *repo, uint64_t *versions_out);

/* What the versions that can be read now amount to. */
struct wb_repo_readable {
    uint64_t versions, captures, snapshots;
    uint64_t bytes_dead; /* of versions that nobody keeps any more, but that were not given up yet */
};
int wb_repo_count_readable(struct wb_repo *repo, struct wb_repo_readable *readable_out);

/* ---- revisits (repo_revisit.c) -------------------------------------------------------------------- */

int wb_repo_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                        enum wb_store_outcome *outcome_out);
int wb_repo_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);
int wb_repo_waiting_each(struct wb_store *store, struct wb_pageid original,
                         int (*each)(void *context, const struct wb_store_revisit *revisit), void *context);

/* Turns the waiting revisits of edit->view into captures, if the ops in `order` have brought their contents. */
int wb_repo_resolve_revisits(struct wb_repo_edit *edit, const uint32_t *order, size_t count, uint64_t *captures_inout,
                             bool *touched_inout);

/* ---- many pages (repo_batch.c) -------------------------------------------------------------------- */

int wb_repo_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t count,
                     const struct wb_store_when *when, wb_store_each_page each, void *context);

/* ---- recovery (repo_recover.c) ---------------------------------------------------------------- */

/* When a writer opens: cuts off the tails of segments and removes the files that a crash left. */
int wb_repo_recover(struct wb_repo *repo);

/* ---- scanning (disk_scan.c) -------------------------------------------------------------------- */

int wb_disk_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                      struct wb_store_scan **scan_out);

/* A scan of segments in the order of the disk, also of a hashed-log: so its parcels are blocks as they are. */
int wb_disk_scan_blocks(struct wb_store *store, const struct wb_store_scan_options *options,
                        struct wb_store_scan **scan_out);
int wb_disk_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);
int wb_disk_scan_parcel(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out);
int wb_disk_scan_position_compare(const struct wb_store_position *a, const struct wb_store_position *b);

/* The place that a position names. */
struct wb_catalog_place wb_disk_scan_place(const struct wb_store_position *position);
void wb_disk_scan_tell(const struct wb_store_scan *scan, struct wb_store_position *position_out);
int wb_disk_scan_holds(struct wb_store_scan *scan, struct wb_store_scan_holds *holds_out);
int wb_disk_scan_check(struct wb_store *store, const struct wb_store_scan_options *options); /* scan_check.c */
void wb_disk_scan_close(struct wb_store_scan *scan);

/* ---- verifying (repo_verify.c) -------------------------------------- */

int wb_repo_verify(const char *dir, const struct wb_superblock *superblock, wb_store_found found, void *found_context,
                   wb_store_progress progress, void *progress_context, struct wb_store_verify_counts *counts_out);

#endif
