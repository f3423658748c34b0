/*
 * log.h - the log organisation's own struct, shared by its files.
 *
 *   log.c          opening, closing, getting a page, statistics
 *   log_write.c    what a writer has taken and not yet committed
 *   log_flush.c    from pages taken to blocks in a segment
 *   log_commit.c   from blocks in a segment to a new state of the catalog
 *   log_recover.c  what a crash left, and files that no reader needs any more
 *   log_bar.c      what was taken down and must not come back
 *   log_live.c     which pages of a segment are live
 *   log_scan.c, log_compact.c, log_verify.c
 *
 * Lifetime of a page in a writer:
 *   1 taken     encoded into memory of its own (an op), in the current group
 *   2 in flight the group is full: workers digest and compress it, block by block
 *   3 appended  its block is in the segment file; its place is known
 *   4 committed file synced, catalog changed: readers see it
 * A crash before 4 loses it whole; the file's tail is cut off by the next writer.
 */
#ifndef WB_STORE_LOG_H
#define WB_STORE_LOG_H

#include "base/error.h"
#include "base/pool.h"
#include "store/catalog.h"
#include "store/idmap.h"
#include "store/organisation.h"
#include "store/segment.h"
#include "store/superblock.h"

enum {
    WB_LOG_FILES_MAX = 64,
    WB_LOG_SEALED_MAX = 8, /* fewer than this of the newest segments are looked at for a seal when a store is opened */
};

/* Sizes that a writer works by. Variables only so that tests can make them small. */
struct wb_log_sizes {
    uint64_t segment_bytes; /* a writer goes on to a new segment past this */
    size_t block_bytes;     /* a block is closed when its records reach this */
    size_t group_bytes;     /* a group is compressed when it has this much; site neighbours are gathered within it */
    size_t giant_bytes;     /* a page of this size is not left in flight, so that memory holds one such page at a time */
};
extern struct wb_log_sizes wb_log_sizes;

struct wb_log_writer;

struct wb_log {
    struct wb_store store;
    char *dir;
    struct wb_superblock superblock;
    struct wb_catalog *catalog;
    struct wb_catalog_txn reader;  /* of single reads; parked between calls */
    uint64_t commit_at_open;
    uint64_t bars_txn;     /* the state of the catalog, as seen through reader, in which ... */
    uint64_t bars;         /* ... there were so many bars */
    struct wb_segment_reader source;
    struct wb_segment files[WB_LOG_FILES_MAX]; /* open segments, replaced round robin */
    unsigned file_next;
    struct wb_log_writer *writer; /* NULL in a reader */
};

static inline struct wb_log *wb_log_of(struct wb_store *store)
{
    return (struct wb_log *)store;
}

/* ---- writing (log_write.c) ------------------------------------------------------------- */

enum wb_log_op_kind {
    WB_LOG_OP_PUT,
    WB_LOG_OP_TOUCH,
    WB_LOG_OP_REMOVE,
    WB_LOG_OP_REMOVE_EVERYWHERE,
    WB_LOG_OP_REMOVE_OLD, /* from the snapshot only: the latest state does not have it */
    WB_LOG_OP_REVISIT,
};

struct wb_log_op {
    enum wb_log_op_kind kind;
    struct wb_pageid id;
    uint32_t site;      /* index into the writer's sites */
    int64_t time_ms;
    struct wb_buf record; /* of a put that is not yet appended */
    struct wb_catalog_entry entry; /* of a put: complete but for the place until it is appended */
    bool appended;
    struct wb_store_revisit revisit;
};

/* What is true of a page after the ops so far. */
struct wb_log_pending {
    bool exists;
    int64_t time_ms;
    int64_t put_op; /* which op holds its content; -1: the catalog's version */
    bool touched;   /* its lifetime is whole again */
    bool taken_down; /* the snapshot does not have it any more either */
    uint32_t site;
};

struct wb_log_site {
    char *name;
    size_t len;
    uint64_t hash;
    int64_t delta; /* pages more or fewer, used while committing */
};

/* A segment that this writer appended to since the last commit; the last is the current one. */
struct wb_log_tail {
    struct wb_segment segment;
    uint64_t bytes;           /* of the file, as far as blocks were appended */
    uint64_t bytes_committed;
    uint64_t pages_appended;  /* since the last commit */
};

struct wb_log_writer {
    struct wb_log_op *ops;
    size_t op_count, op_cap;
    size_t group_at;          /* ops from here on form the current group */
    uint64_t group_bytes;
    uint32_t group_site;      /* of its first page */
    bool group_mixed;         /* there are others in it */
    struct wb_log_site *sites;
    size_t site_count, site_cap;
    struct wb_idmap site_map, pending_map;
    struct wb_idmap revisit_map; /* the newest revisit of a page among the ops */
    struct wb_log_pending *pending;
    size_t pending_count, pending_cap;
    struct wb_pool *pool;
    struct wb_log_flight *flight; /* groups that workers compress, the oldest first; NULL: none */
    struct wb_log_builders *builders;
    struct wb_log_tail *tails;
    size_t tail_count;
    uint64_t commit;          /* the catalog's last commit that we know of */
    uint64_t older, barred;   /* pages left out since the last commit */
    struct wb_error_copy failed; /* code < 0: the ops cannot be committed any more */
};

int wb_log_writer_new(struct wb_log *log);
void wb_log_writer_free(struct wb_log *log);
int wb_log_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);
int wb_log_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);
int wb_log_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);
int wb_log_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere);
int wb_log_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site, const struct wb_store_revisit *revisit);

/* The writer's own view of a page: 1 and *pending_out, or 0 where no op concerns it. */
int wb_log_pending(struct wb_log *log, struct wb_pageid id, struct wb_log_pending *pending_out);

/* The page of a pending put. */
int wb_log_get_pending(struct wb_log *log, const struct wb_log_pending *pending, struct wb_page *page_out, struct wb_buf *mem_out);

/* Lets go of the segments appended to: cuts off what is not committed, seals, unlocks. */
void wb_log_tails_release(struct wb_log *log);

/* Forgets all ops, after a commit or a failure. */
void wb_log_ops_clear(struct wb_log_writer *writer);

/* ---- flushing (log_flush.c) ---------------------------------------------------------------- */

/* Hands the current group to the workers, having appended the one before. */
int wb_log_flush_start(struct wb_log *log);

/* Until nothing is in flight and everything taken is appended. */
int wb_log_flush_all(struct wb_log *log);

/* Waits for the workers; afterwards records of ops in flight may be read. */
void wb_log_flush_wait(struct wb_log *log);

/* Drops what is in flight. */
void wb_log_flush_drop(struct wb_log *log);
int wb_log_builders_new(unsigned count, struct wb_log_builders **builders_out);
void wb_log_builders_free(struct wb_log_builders *builders);

/* ---- committing (log_commit.c) --------------------------------------------------------------- */

int wb_log_commit(struct wb_store *store, struct wb_store_commit_counts *commit_inout);
int wb_log_snapshot(struct wb_store *store, uint32_t *snapshot_out);

/* ---- bars (log_bar.c) --------------------------------------------------------------------------- */

int wb_log_bar(struct wb_store *store, const struct wb_store_bar *bar);
int wb_log_allow(struct wb_store *store, const struct wb_store_bar *bar);
int wb_log_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site);
int wb_log_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context);
int wb_log_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max, size_t *count_out);

/* Whether a page is barred, in this transaction. */
int wb_log_bar_holds(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_slice site, bool *barred_out);

/* The same in log->reader, which must be awake; quick where there are no bars at all. */
int wb_log_bar_look(struct wb_log *log, struct wb_pageid id, struct wb_slice site, bool *barred_out);

/*
 * After a commit of the catalog whose outcome is not known: lets go of the segments
 * as they are, because what was appended may be committed, forgets the ops and opens
 * the catalog again, which decides. Does nothing after any other error.
 */
void wb_log_decide(struct wb_log *log);

/* ---- reading (log.c) ------------------------------------------------------------------------- */

/* The latest entry of a page in the catalog as it is now. */
int wb_log_entry(struct wb_log *log, struct wb_pageid id, struct wb_catalog_entry *entry_out);

/* The same for a page about to be put, and whether it is barred; no entry where it is. */
int wb_log_entry_or_bar(struct wb_log *log, struct wb_pageid id, struct wb_slice site, struct wb_catalog_entry *entry_out, bool *barred_out);

/* Whether the snapshot has a page that the latest state, the ops included, does not have. */
int wb_log_in_snapshot(struct wb_log *log, struct wb_pageid id, bool *in_out);

/* The page at an entry's place, from the catalog's newest state. */
int wb_log_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out);

/* Opens the catalog, or opens it again; the old one stays if that fails. */
int wb_log_open_catalog(struct wb_log *log);

/* Checks that a decoded page is the one of that id, and adds what only the catalog knows (where entry is not NULL). */
int wb_log_page_identify(struct wb_page *page, struct wb_pageid id, const struct wb_catalog_entry *entry);

/* Decodes a record and identifies the page. */
int wb_log_page(struct wb_slice record, struct wb_pageid id, const struct wb_catalog_entry *entry, struct wb_page *page_out);

/* ---- the rest ------------------------------------------------------------------------------------ */

/* Cuts off tails and removes files that a crash left; called when a writer opens. */
int wb_log_recover(struct wb_log *log);

/* Deletes files that compaction replaced, as far as no reader needs them. */
int wb_log_purge(struct wb_log *log);

/* The catalog's last commit, of whatever process; what this writer knows of where that cannot be read. */
uint64_t wb_log_newest_commit(struct wb_log *log);

/* Seals the newest segment that nobody holds: a writer that appended nothing has no other to leave its last commit in. */
void wb_log_seal_any(struct wb_log *log, uint64_t commit);

/* Takes a segment to append to: one that nobody writes to, or a new one. */
int wb_log_tail_open(struct wb_log *log);

int wb_log_scan_open(struct wb_store *store, const struct wb_store_scan_options *options, struct wb_store_scan **scan_out);
int wb_log_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);
void wb_log_scan_close(struct wb_store_scan *scan);

/* A damaged part of a segment's file: from a block that cannot be read to the next one that can. */
struct wb_log_damage {
    uint64_t at, end;
    size_t first, count; /* the blocks in it that have live pages: a range of wb_log_live.blocks */
    uint64_t pages;      /* the live pages of those */
    char why[160];
};

/*
 * Which pages of a segment are dead, for each entry of its blocks' directories in the order of the file; and what is damaged
 * in it. What lies in a damaged part only the catalog knows.
 */
struct wb_log_live {
    bool *dead;
    size_t count;
    struct wb_log_damage *damages; /* in the order of the file */
    size_t damage_count;
    struct wb_segment_map_entry *blocks; /* of damaged parts, with live pages; in the order of the file */
    size_t block_count;
    uint64_t nowhere;              /* live pages whose block the file does not have */
};
int wb_log_live_read(struct wb_catalog_txn *txn, const struct wb_segment *segment, const struct wb_catalog_segment *row,
                     struct wb_log_live *live_out);
void wb_log_live_release(struct wb_log_live *live);

int wb_log_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found, void *found_context,
                   struct wb_store_compact_counts *compact_out);
int wb_log_verify(const char *dir, const struct wb_superblock *superblock, wb_store_found found, void *found_context,
                  wb_store_progress progress, void *progress_context, struct wb_store_verify_counts *verify_out);

/* All segment rows of a transaction, in memory from the heap. */
struct wb_log_rows {
    struct wb_catalog_segment *rows;
    size_t count, cap;
};
int wb_log_rows_read(struct wb_catalog_txn *txn, struct wb_log_rows *rows_out);
void wb_log_rows_release(struct wb_log_rows *rows);

/* State and segment rows as they are now, in one transaction. The rows are empty where it fails. */
struct wb_log_overview {
    struct wb_catalog_summary state;
    struct wb_log_rows rows;
};
int wb_log_overview(struct wb_log *log, struct wb_log_overview *now_out);

/* Whether place is where the entry lies. */
static inline bool wb_catalog_place_equal(const struct wb_catalog_place *a, const struct wb_catalog_place *b)
{
    return a->segment == b->segment && a->logical == b->logical && a->slot == b->slot;
}

#endif
