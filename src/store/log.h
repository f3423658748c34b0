/*
 * log.h - the log organisation: its handle, its writer, and what its files share.
 *
 * Pages are appended to segment files (segment.h) in blocks (block.h), in the order in
 * which they arrive. The catalog (catalog.h) knows where each page is and which files
 * count. Nothing but the files below includes this header.
 *
 *   log.c          opening and closing, reading single pages
 *   log_stat.c     statistics; reading all segment rows at once
 *   log_write.c    collects what a writer puts, touches and removes, until it commits
 *   log_flush.c    compresses collected pages into blocks and appends them to a segment
 *   log_commit.c   makes it all durable: one transaction of the catalog
 *   log_bar.c      bars: what was taken down and must not come back
 *   log_recover.c  repairs what a crash left behind; chooses the segment to append to
 *   log_scan.c     all pages, in the order of the disk
 *   log_live.c     finds out which pages of a segment are alive
 *   log_compact.c  replaces segments by copies without their dead pages
 *   log_copy.c     makes the copy, block by block
 *   log_verify.c   reads and checks everything
 *
 * The life of a page in a writer:
 *   1 taken      encoded in memory, as an op of the current group
 *   2 in flight  the group is full, and worker threads compute digests and compress it
 *   3 appended   its block is in the segment file, and its place is known
 *   4 committed  the file is synced and the catalog changed: readers see the page
 * A crash before 4 loses the page completely. The next writer cuts off the file's tail.
 *
 * Threads: everything here runs in the thread that owns the handle, except for the
 * workers of log_flush.c and the one that writes for log_compact.c. Scans have their own
 * catalog handle, because they may run in another thread.
 */
#ifndef WB_STORE_LOG_H
#define WB_STORE_LOG_H

#include "base/error.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/vec.h"
#include "store/catalog.h"
#include "store/organisation.h"
#include "store/segment.h"
#include "store/superblock.h"

enum {
    WB_LOG_MAGIC = 0x57424c4f,
    WB_LOG_WRITER_MAGIC = 0x57424c57,
    WB_LOG_FILES_MAX = 64, /* segment files that a handle keeps open */
    WB_LOG_SEALED_MAX = 8, /* when a store is opened, the seals of fewer than this many newest segments are read */
};

/*
 * The sizes by which a writer works. They are constant in the program. They are variables
 * as a test seam only: with small sizes, a few small pages fill blocks, groups and segments.
 */
struct wb_log_sizes {
    uint64_t segment_bytes; /* a segment that has reached this is full, and the writer takes another */
    size_t block_bytes;     /* a block is closed when its records reach this */
    size_t group_bytes;     /* a group is compressed when it has reached this; pages are sorted by site within it */
    size_t giant_bytes;     /* a page this large is appended at once, so that memory holds only one such page */
};
extern struct wb_log_sizes wb_log_sizes;

struct wb_log_writer;

/* An open repository of this organisation. */
struct wb_log {
    struct wb_store store; /* must be the first member */
    uint32_t magic;
    char *dir;
    struct wb_superblock superblock;
    struct wb_catalog *catalog;
    struct wb_catalog_txn reader; /* for single reads; parked between calls */
    uint64_t commit_at_open;      /* the catalog's last commit when the store was opened */
    uint64_t bars_txn;            /* cached: in the catalog's state with this number ... */
    uint64_t bars;                /* ... there were this many bars */
    struct wb_segment_reader source;
    struct wb_segment files[WB_LOG_FILES_MAX]; /* open segments, replaced in turn */
    unsigned file_next;
    struct wb_log_writer *writer; /* NULL if the store was opened for reading */
};

struct wb_log *wb_log_of(struct wb_store *store);

/* The same for a store that was opened for writing. */
struct wb_log *wb_log_of_writer(struct wb_store *store);

/* ---- writing (log_write.c) ------------------------------------------------------------- */

enum wb_log_op_kind {
    WB_LOG_OP_PUT,
    WB_LOG_OP_TOUCH,
    WB_LOG_OP_REMOVE,
    WB_LOG_OP_REMOVE_EVERYWHERE,
    WB_LOG_OP_REMOVE_OLD, /* from the snapshot only, because the latest state does not have the page */
    WB_LOG_OP_REVISIT,
};

/* One thing that the writer was told to do. */
struct wb_log_op {
    enum wb_log_op_kind kind;
    struct wb_pageid id;
    uint32_t site;                   /* index into the writer's sites */
    int64_t time_ms;                 /* of a put or a touch */
    struct wb_buf record;            /* of a put that has not been appended yet */
    struct wb_catalog_entry entry;   /* of a put; place and stored_bytes are set when it is appended */
    bool appended;
    struct wb_store_revisit revisit; /* of a revisit */
};

/* The state of a page after the ops so far. */
struct wb_log_pending {
    bool exists;
    int64_t time_ms;
    int64_t put_op;  /* the op that has its content; -1 if that is still the version in the catalog */
    bool touched;    /* its lifetime was renewed */
    bool taken_down; /* it was removed from the snapshot too */
    uint32_t site;   /* index into the writer's sites */
};

/* A site that occurs in the ops. */
struct wb_log_site {
    char *name;
    size_t len;
    uint64_t hash;
    int64_t delta; /* by how much its number of pages changes; counted during the commit */
};

/* A segment that the writer has locked to append to. The last one is the current one. */
struct wb_log_tail {
    struct wb_segment segment;
    uint64_t bytes;           /* end of the blocks that were appended */
    uint64_t bytes_committed; /* end of the blocks that were committed */
    uint64_t pages_appended;  /* since the last commit */
};

/* Finds a page, or a site, by its 128-bit hash: leads to an index in one of the writer's vectors. */
struct wb_log_index_entry {
    uint64_t hash; /* id.lo */
    struct wb_pageid id;
    uint32_t index;
};
union wb_log_index WB_MAP_OF(struct wb_log_index_entry);

struct wb_log_flight;
struct wb_log_builders;

/*
 * A writer. Its ops are in one of these states, and every commit or failed commit leads
 * back to the first one:
 *
 *   empty      ops.count == 0
 *   collecting ops before group_at were handed to the workers, the others are in the current group
 *   flushed    flight == NULL and group_at == ops.count: every put is appended
 *   failed     failed.code < 0: a block was lost, so the ops can only be dropped
 */
struct wb_log_writer {
    uint32_t magic;
    WB_VEC(struct wb_log_op) ops;
    size_t group_at;             /* the ops from here on are the current group */
    uint64_t group_bytes;        /* of its records */
    uint32_t group_site;         /* the site of its last page */
    bool group_mixed;            /* it contains pages of several sites */
    WB_VEC(struct wb_log_site) sites;
    WB_VEC(struct wb_log_pending) pending;
    union wb_log_index site_index;    /* hash of a site -> its index in sites */
    union wb_log_index pending_index; /* page id -> its index in pending */
    union wb_log_index revisit_index; /* page id -> the op with its newest revisit */
    struct wb_pool *pool;             /* the workers */
    struct wb_log_builders *builders; /* their compression contexts */
    struct wb_log_flight *flight;     /* groups that they are compressing, the oldest first; NULL if there is none */
    WB_VEC(struct wb_log_tail) tails;
    uint64_t commit;             /* the catalog's last commit, as far as this writer knows */
    uint64_t older, barred;      /* pages that were refused since the last commit */
    struct wb_error_copy failed; /* code < 0: see above */
};

int wb_log_writer_new(struct wb_log *log);
void wb_log_writer_free(struct wb_log *log);
int wb_log_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);
int wb_log_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);
int wb_log_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere);
int wb_log_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site,
                       const struct wb_store_revisit *revisit);

/* Returns false if the id is not in the index. */
bool wb_log_index_get(const union wb_log_index *map, struct wb_pageid id, uint32_t *index_out);

/* What this writer has done to a page but not committed. Returns false if that is nothing. */
bool wb_log_pending(struct wb_log *log, struct wb_pageid id, struct wb_log_pending *pending_out);

/* Reads a page that was put but not committed. */
int wb_log_get_pending(struct wb_log *log, const struct wb_log_pending *pending, struct wb_page *page_out,
                       struct wb_buf *mem_out);

/* Forgets all ops, after a commit or a failure. */
void wb_log_ops_clear(struct wb_log_writer *writer);

/* Leaves the segments that were appended to: cuts off uncommitted bytes, writes seals, gives up the locks. */
void wb_log_tails_release(struct wb_log *log);

/* ---- flushing (log_flush.c) ---------------------------------------------------------------- */

/* Hands the current group to the workers, then waits for the previous group and appends it. */
int wb_log_flush_start(struct wb_log *log);

/* Appends everything. Afterwards nothing is in flight. */
int wb_log_flush_all(struct wb_log *log);

/* Waits for the workers. Afterwards the records of ops in flight may be read. */
void wb_log_flush_wait(struct wb_log *log);

/* Drops what is in flight. */
void wb_log_flush_drop(struct wb_log *log);
int wb_log_builders_new(unsigned count, struct wb_log_builders **builders_out);
void wb_log_builders_free(struct wb_log_builders *builders);

/* ---- committing (log_commit.c) --------------------------------------------------------------- */

int wb_log_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout);
int wb_log_snapshot(struct wb_store *store, uint32_t *snapshot_out);

/*
 * To be called after every failed commit of the catalog. If it is not known whether the
 * commit is on disk, the appended blocks may be committed, so they must not be cut off:
 * leaves the segments as they are, forgets the ops, and reopens the catalog, which
 * decides by what is there. Does nothing if the outcome is known.
 */
void wb_log_decide(struct wb_log *log);

/* ---- bars (log_bar.c) --------------------------------------------------------------------------- */

int wb_log_bar(struct wb_store *store, const struct wb_store_bar *bar);
int wb_log_allow(struct wb_store *store, const struct wb_store_bar *bar);
int wb_log_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site);
int wb_log_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context);
int wb_log_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                     size_t *count_out);

/* Looks up, in a transaction, whether a page is barred. */
int wb_log_bar_holds(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_slice site, bool *barred_out);

/* The same through log->reader, which must be awake. Takes no time if there are no bars. */
int wb_log_bar_look(struct wb_log *log, struct wb_pageid id, struct wb_slice site, bool *barred_out);

/* ---- reading (log.c) ------------------------------------------------------------------------- */

int wb_log_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out);
int wb_log_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);

/* The entry of the latest committed version of a page. */
int wb_log_entry(struct wb_log *log, struct wb_pageid id, struct wb_catalog_entry *entry_out);

/* The same for a page that is about to be put, and whether it is barred. The entry of a barred page is not read. */
int wb_log_entry_or_bar(struct wb_log *log, struct wb_pageid id, struct wb_slice site,
                        struct wb_catalog_entry *entry_out, bool *barred_out);

/* Whether the snapshot has a version of this page that a takedown would have to remove. */
int wb_log_in_snapshot(struct wb_log *log, struct wb_pageid id, bool *in_out);

/* Opens the catalog, or opens it again. If that fails, the old handle stays. */
int wb_log_open_catalog(struct wb_log *log);

/* Checks that a decoded page has the expected id. With an entry, adds what only the catalog knows about the page. */
int wb_log_page_identify(struct wb_page *page, struct wb_pageid id, const struct wb_catalog_entry *entry);

/* Decodes a record and identifies the page. The page borrows from the record. */
int wb_log_page(struct wb_slice record, struct wb_pageid id, const struct wb_catalog_entry *entry,
                struct wb_page *page_out);

/*
 * Runs a function through log->reader: wakes it, calls read(context), parks it again. If
 * the state of the catalog disappears during that, it all happens once more (see
 * wb_catalog_call), so read() must be repeatable.
 */
int wb_log_read(struct wb_log *log, int (*read)(void *context), void *context);

/* ---- the catalog at a glance (log_stat.c) ---------------------------------------------------- */

int wb_log_stat(struct wb_store *store, struct wb_store_stat *stat_out);

/* All segment rows of one transaction, in order of their numbers. */
struct wb_log_rows WB_VEC_OF(struct wb_catalog_segment);
int wb_log_rows_read(struct wb_catalog_txn *txn, struct wb_log_rows *rows_out);
void wb_log_rows_release(struct wb_log_rows *rows);

/* The summary and all segment rows, as of one moment. On error the rows are empty. */
struct wb_log_overview {
    struct wb_catalog_summary summary;
    struct wb_log_rows rows;
};
int wb_log_overview(struct wb_log *log, struct wb_log_overview *overview_out);

/* The end of the blocks in a segment's file: in a compacted file the map follows, otherwise uncommitted bytes. */
static inline uint64_t wb_log_blocks_end(const struct wb_catalog_segment *row)
{
    return row->revision ? row->map_at : row->bytes;
}

/* ---- recovery (log_recover.c) ---------------------------------------------------------------- */

/* When a writer opens: cuts off the tails of segments and removes the files that a crash left. */
int wb_log_recover(struct wb_log *log);

/* Deletes files that compaction has replaced and that no reader needs any more. */
int wb_log_purge(struct wb_log *log);

/* The catalog's last commit, by any process; if the catalog cannot be read, the last one that this writer knows of. */
uint64_t wb_log_newest_commit(struct wb_log *log);

/*
 * Writes a seal into the newest segment that no other process has locked. For a writer
 * that committed without appending anything, and so has no segment of its own to seal.
 */
void wb_log_seal_any(struct wb_log *log, uint64_t commit);

/* Adds a segment to append to: an unfinished one that nobody has locked, or a new one. */
int wb_log_tail_open(struct wb_log *log);

/* ---- scanning (log_scan.c) -------------------------------------------------------------------- */

int wb_log_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                     struct wb_store_scan **scan_out);
int wb_log_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);
void wb_log_scan_close(struct wb_store_scan *scan);

/* ---- compacting and verifying (log_live.c, log_compact.c, log_verify.c) ------------------------- */

/* A damaged part of a segment file: from a block that cannot be read to the next one that can. */
struct wb_log_damage {
    uint64_t at, end;
    size_t first, count; /* the blocks in it that have live pages: a range of wb_log_live.blocks */
    uint64_t pages;      /* the number of live pages in those blocks */
    char why[160];
};

/*
 * Which pages of a segment are dead, in the order of the entries in the file; and which
 * parts of the file are damaged. Only the catalog knows which pages are in a damaged part.
 */
struct wb_log_live {
    bool *dead;
    size_t count;                               /* entries in the directories of all readable blocks */
    WB_VEC(struct wb_log_damage) damages;       /* in the order of the file */
    WB_VEC(struct wb_segment_map_entry) blocks; /* those in damaged parts with live pages, in file order */
    uint64_t nowhere;                           /* live pages whose block the file does not have at all */
};
int wb_log_live_read(struct wb_catalog_txn *txn, const struct wb_segment *segment,
                     const struct wb_catalog_segment *row, struct wb_log_live *live_out);
void wb_log_live_release(struct wb_log_live *live);

int wb_log_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                   void *found_context, struct wb_store_compact_counts *counts_out);
int wb_log_verify(const char *dir, const struct wb_superblock *superblock, wb_store_found found, void *found_context,
                  wb_store_progress progress, void *progress_context, struct wb_store_verify_counts *counts_out);

#endif
