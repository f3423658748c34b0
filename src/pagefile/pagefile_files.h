/*
 * pagefile_files.h - the files of an open repository: the handle, the records of a writer, rows in a transaction, and
 * the table that each organisation fills in (pagefile.h tells the whole).
 */
#ifndef WB_PAGEFILE_PAGEFILE_FILES_H
#define WB_PAGEFILE_PAGEFILE_FILES_H

#include "base/error.h"
#include "base/pool.h"
#include "base/vec.h"
#include "block/block.h"
#include "catalog/catalog.h"
#include "pagefile/append_run.h"
#include "pagefile/segment.h"
#include "place/place.h"

enum {
    WB_PAGEFILE_MAGIC = 0x57425046,
    WB_PAGEFILE_WRITER_MAGIC = 0x57425057,
    WB_PAGEFILE_OPEN_MAX = 64,  /* segment files that a handle keeps open */
    WB_PAGEFILE_WORTHWHILE = 4, /* compaction that is thrifty wants this part of a file to be dead */
    WB_PAGEFILE_SEALED_MAX = 8, /* the seals of fewer than this many newest segments are read or written */
};

/*
 * The sizes by which a writer works. They are constant in the program. They are variables
 * as a test seam only: with small sizes, a few small pages fill blocks, groups and segments.
 */
struct wb_pagefile_sizes {
    uint64_t segment_bytes; /* a segment that has reached this is full, and the writer takes another */
    uint64_t hashed_bytes;  /* hashed-log: the same, and the range of ids is divided then */
    size_t block_bytes;     /* a block is closed when its records reach this */
    size_t group_bytes;     /* a group is compressed when it has reached this; pages are sorted by site within it */
    size_t giant_bytes;     /* a page this large is appended at once, so that memory holds only one such page */
    size_t spare_bytes;     /* so much is kept of pages whose content is stored already, in case others give it up */
    size_t bucket_bytes;    /* of a bucket, in the organisation hash; there, ... */
    size_t large_bytes;     /* ... a page this large is stored apart from its bucket, ... */
    size_t pending_bytes;   /* ... and so many bytes of records stay in memory until the commit; others go to a file */
};
extern struct wb_pagefile_sizes wb_pagefile_sizes;

/*
 * A file for records of a writer that memory has no room for, in the repository's directory. It has its name only for a
 * moment.
 */
#define WB_PAGEFILE_STAGING_NAME "staging.tmp"

struct wb_pagefile_kind;
struct wb_pagefile_writer;
struct wb_flight;
struct wb_block_spread;
struct wb_builders;
struct wb_hash;
struct wb_hash_edit;

/* The files of an open repository. What is borrowed belongs to the handle of the repository. */
struct wb_pagefile {
    uint32_t magic;
    const struct wb_pagefile_kind *kind;
    const char *dir; /* of the repository; borrowed ... */
    const struct wb_superblock *superblock;
    struct wb_catalog *catalog;        /* ... is another one when it was opened again */
    struct wb_catalog_txn *reader;     /* for single reads; parked between calls */
    struct wb_nodes *nodes;            /* as of the last read ... */
    struct wb_busy *busy;              /* ... up to here. NULL: single reads are not counted */
    bool write;                        /* the repository was opened for writing */
    bool thrifty;                      /* compaction leaves what is not worthwhile */
    struct wb_parts parts;             /* which segment has a place, after segments were split */
    struct wb_pagefile_writer *writer; /* NULL if it was opened for reading */
    bool replaced;                     /* a commit has replaced a file, which can be deleted soon */
    size_t failed_nodes;               /* in this commit: how often a node could not be written */
    uint64_t to_come;                  /* of images, as a conversion expects them: new files have room for them */

    /* Segments that are open, replaced in turn (segment_open.c), and their blocks. */
    struct wb_segment_reader source;
    struct wb_segment open[WB_PAGEFILE_OPEN_MAX];
    unsigned open_next, open_misses;
    uint64_t pressed; /* for wb_kept_pressed() */

    struct wb_hash *hash; /* of the kind with buckets (hash_store.h); otherwise NULL */
};

/* ---- writing ------------------------------------------------------------------------------------------- */

/* A record that a writer is to store. */
struct wb_put {
    struct wb_pageid id;
    uint64_t site_hash;
    uint32_t site; /* its number among the sites of the writer, in the order in which they came */
    uint32_t body_bytes;
    struct wb_buf record;          /* until it is in a file */
    struct wb_catalog_place place; /* known when it is placed ... */
    uint32_t stored_bytes;         /* ... and so is this, at the latest */
    bool placed;
    bool digested;                                  /* the record has its digests, and sha1 is known */
    uint8_t sha1[WB_SHA1_BYTES];                    /* of the body, at the latest when it is placed */
    uint64_t staged_at, staged_bytes, staged_check; /* the record is in a file, and not in `record` (hash_stage.c) */
};

/* A segment that the writer has locked to append to. */
struct wb_tail {
    struct wb_bin bin; /* of all its pages */
    struct wb_segment segment;
    uint64_t bytes;           /* end of the blocks that were appended */
    uint64_t bytes_committed; /* end of the blocks that were committed */
    uint64_t pages_appended;  /* since the last commit */
};

/*
 * The part of a writer that has to do with bytes. Its puts are in one of these states, and every commit or failed
 * commit leads back to the first one:
 *
 *   empty      puts.count == 0
 *   collecting puts before group_at were handed to the workers, the others are in the current group
 *   flushed    flight == NULL and group_at == puts.count: every record has been taken care of
 *   failed     failed.code < 0: a block was lost, so the puts can only be dropped
 */
struct wb_pagefile_writer {
    uint32_t magic;
    WB_VEC(struct wb_put) puts;
    size_t group_at;              /* the puts from here on are the current group */
    uint64_t group_bytes;         /* of their records */
    uint32_t group_site;          /* the site of the last one */
    bool group_mixed;             /* it contains pages of several sites */
    struct wb_pool *pool;         /* the workers */
    struct wb_builders *builders; /* their compression contexts */
    struct wb_pool *sync_pool;    /* syncs the files of several nodes at once; NULL until that is needed */
    struct wb_flight *flight;     /* groups that they are compressing, the oldest first; NULL if there is none */
    WB_VEC(struct wb_tail) tails;
    struct wb_append_run run;       /* blocks for one of them that were put as they are ... */
    struct wb_append_run written;   /* ... and those that a thread is writing */
    struct wb_block_spread *spread; /* how these are divided among nodes and ranges (append_block.c); or NULL */
    uint64_t commit;                /* the catalog's last commit, as far as this writer knows */
    uint64_t commit_at_open;        /* ... and when the repository was opened */
    struct wb_error_copy failed;    /* code < 0: see above */
};

int wb_pagefile_writer_init(struct wb_pagefile *files, struct wb_pagefile_writer *writer);

/* Leaves the files: cuts off what is not committed, writes seals, gives up locks. */
void wb_pagefile_writer_release(struct wb_pagefile *files);

/* Adds a put, whose record belongs to the writer from now on. Hands the current group to the workers if it is full. */
int wb_pagefile_put(struct wb_pagefile *files, struct wb_put *put);

/* Takes care of all records. Afterwards nothing is in flight. */
int wb_pagefile_flush(struct wb_pagefile *files);

/* Reads the record of a put that is not committed, with its digests. */
int wb_pagefile_pending(struct wb_pagefile *files, size_t put, struct wb_buf *record_out);

/* Drops what is in flight, and what was appended since the last commit. Then the puts can be forgotten. */
void wb_pagefile_drop(struct wb_pagefile *files);

/* Forgets all puts: they were committed, or dropped. */
void wb_pagefile_forget(struct wb_pagefile *files);

/*
 * It is not known whether the last commit is on disk: what was appended may be committed, so it must not be cut off.
 * Leaves the files as they are.
 */
void wb_pagefile_abandon(struct wb_pagefile *files);

/* After a failed flush nothing more can be added: returns the error of the flush. */
int wb_pagefile_check_usable(const struct wb_pagefile_writer *writer);

/* After a failure some blocks are lost, so the puts can only be dropped. Returns the error. */
int wb_writer_remember_failure(struct wb_pagefile_writer *writer, int err);

/* ---- reading ------------------------------------------------------------------------------------------- */

/*
 * Runs a function through files->reader: wakes it, takes note of changed nodes, calls read(context), parks it again. If
 * the state of the catalog disappears during that, it all happens once more (see wb_catalog_call), so read() must be
 * repeatable.
 */
int wb_pagefile_read(struct wb_pagefile *files, int (*read)(void *context), void *context);

/* The summary and all segment rows, as of one moment. On error the rows are empty. */
struct wb_overview {
    struct wb_catalog_summary summary;
    struct wb_catalog_rows rows;
};
int wb_pagefile_overview(struct wb_pagefile *files, struct wb_overview *overview_out);

/* Takes up the newest table of nodes. */
int wb_pagefile_renew_nodes(struct wb_pagefile *files);

/* The catalog's last commit, by any process; if the catalog cannot be read, the last one that this writer knows of. */
uint64_t wb_pagefile_newest_commit(struct wb_pagefile *files);

/* Checks that a decoded page has the expected id. With an entry, adds what only the catalog knows about the page. */
int wb_pagefile_identify(struct wb_page *page, struct wb_pageid id, const struct wb_catalog_entry *entry);

/* Decodes a record and identifies the page. The page borrows from the record. */
int wb_pagefile_page(struct wb_slice record, struct wb_pageid id, const struct wb_catalog_entry *entry,
                     struct wb_page *page_out);

/* Computes the digests of a page again. WB_E_CORRUPT if they are not those of its record. */
int wb_pagefile_check_digests(const struct wb_page *page);

/* Whether the catalog knows a file: as one that counts, as an earlier revision of one, or as one that was retired. */
struct wb_pagefile_file {
    struct wb_pagefile *files;
    uint32_t node, number, revision;
    bool known; /* output */
};
int wb_pagefile_look_up(struct wb_pagefile_file *file);

/* For a writer: deletes files that were replaced and that no reader needs any more (pagefile_purge.c). */
int wb_pagefile_purge(struct wb_pagefile *files);

/* ---- changing rows in a transaction (pagefile_edit.c) -------------------------------------------------------- */

/* Where a version is, or was. */
struct wb_place_used {
    struct wb_catalog_place place;
    uint32_t stored_bytes;
    uint64_t arrived;
    bool latest;
};
struct wb_places_used WB_VEC_OF(struct wb_place_used);

/* The files in a transaction of the catalog. Changed rows are kept here, and written at the end. */
struct wb_pagefile_edit {
    struct wb_pagefile *files;
    struct wb_catalog_txn *txn;         /* borrowed ... */
    struct wb_catalog_summary *summary; /* ... and so is this; written by the owner of both */
    struct wb_catalog_segment *rows;    /* by segment number; a row with number 0 has not been read yet */
    bool *dirty;                        /* by segment number: the row must be written */
    size_t row_count;
    struct wb_hash_edit *hash; /* of the kind with buckets; otherwise NULL */
};

/* The transaction has begun, and its summary was read. Release it even if this fails. */
int wb_pagefile_edit_begin(struct wb_pagefile *files, struct wb_catalog_txn *txn, struct wb_catalog_summary *summary,
                           struct wb_pagefile_edit *edit);

/* Writes files and rows. The transaction is to be committed then. */
int wb_pagefile_edit_write(struct wb_pagefile_edit *edit);

/* It was committed, or not: err is what the commit returned. */
void wb_pagefile_edit_done(struct wb_pagefile_edit *edit, int err);
void wb_pagefile_edit_release(struct wb_pagefile_edit *edit);

/* Returns the row of a segment, to be changed by the caller. */
int wb_pagefile_edit_row(struct wb_pagefile_edit *edit, uint32_t number, struct wb_catalog_segment **row_out);

/* Returns the row of the segment that has a place of this page. */
int wb_pagefile_edit_row_of(struct wb_pagefile_edit *edit, const struct wb_catalog_place *place, struct wb_pageid id,
                            struct wb_catalog_segment **row_out);

/* A record of a version. */
struct wb_pagefile_record {
    struct wb_pageid id;
    struct wb_catalog_place place;
    struct wb_page page;   /* borrows from the record */
    struct wb_buf *record; /* the function may take it */
};
typedef int (*wb_pagefile_each_record)(void *context, const struct wb_pagefile_record *record);

/* Said of a file that is to be divided: into these bins. */
typedef int (*wb_pagefile_each_split)(void *context, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                                      size_t count);

/* A transaction that changes only files: the rows say where the same pages are now. */
struct wb_pagefile_change {
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    struct wb_pagefile_edit edit;
};

/* End it even if this fails. */
int wb_pagefile_change_begin(struct wb_pagefile *files, struct wb_pagefile_change *change_out);

/* Commits, unless err is an error; returns that, or the one of the commit. */
int wb_pagefile_change_end(struct wb_pagefile_change *change, int err);
void wb_pagefile_change_release(struct wb_pagefile_change *change);

/* ---- the table of an organisation ------------------------------------------------------------------------ */

struct wb_sorted_source;
struct wb_hash_check;

/*
 * An organisation. A new one is a file with such a table, and a row in pagefile.c. Functions may be NULL where that is
 * said; files->writer is there when a writer calls.
 */
struct wb_pagefile_kind {
    bool in_place;         /* files change in place: a read that fails is repeated as long as the catalog changes */
    bool places_at_commit; /* records get their places in the commit, and only those that are needed are written */
    bool divided;          /* ranges of ids have files of their own (hashed_log.h): a writer appends to many */
    bool whole_blocks;     /* blocks of other repositories can be appended as they are (append_block.h) */
    uint32_t new_files;    /* so many files a commit can begin, at most */
    uint64_t (*file_limit)(const struct wb_pagefile *files); /* a file this large takes no more pages; NULL: none */
    size_t (*group_limit)(const struct wb_pagefile *files);  /* a group of records this large is full */

    /* What the kind keeps beside the rest of the handle. May be NULL. */
    int (*open)(struct wb_pagefile *files);
    void (*close)(struct wb_pagefile *files);

    /* When a writer opens: removes what a crash left on a node; repairs what it left in files (may be NULL). */
    int (*recover)(struct wb_pagefile *files, uint32_t node);
    int (*repair)(struct wb_pagefile *files);

    /* The seal of a file, or 0; and that of the newest one is written when a writer leaves without having appended. */
    void (*sealed_at)(struct wb_pagefile *files, const struct wb_catalog_segment *row, uint64_t *commit_out);
    void (*seal)(struct wb_pagefile *files, uint64_t commit);

    /* Hands the current group to the workers; the second one waits until all records have been taken care of. */
    int (*flush_start)(struct wb_pagefile *files);
    int (*flush_all)(struct wb_pagefile *files);
    void (*flush_drop)(struct wb_pagefile *files); /* drops what is in flight */
    void (*forget)(struct wb_pagefile *files);     /* ... and what was kept for puts; may be NULL */
    int (*pending)(struct wb_pagefile *files, const struct wb_put *put, struct wb_buf *record_out);

    /* Whether a page can be changed that has these versions (WB_E_DOWN); may be NULL. */
    int (*can_change)(struct wb_pagefile *files, const struct wb_pageview *view);

    /*
     * A transaction: it begins; puts of one page get places (places_at_commit); a page was saved, whose places were
     * `before` and are `after`; files are written; it is over. All may be NULL.
     */
    int (*edit_begin)(struct wb_pagefile_edit *edit);
    int (*edit_place)(struct wb_pagefile_edit *edit, const uint32_t *puts, size_t count);
    int (*edit_note)(struct wb_pagefile_edit *edit, struct wb_pageview *view, const struct wb_places_used *before,
                     const struct wb_places_used *after);
    int (*edit_write)(struct wb_pagefile_edit *edit);
    void (*edit_done)(struct wb_pagefile_edit *edit, int err);
    void (*edit_release)(struct wb_pagefile_edit *edit);

    /* Reports places that could not be read, to found() if that is not NULL. Returns how many stay damaged. */
    uint64_t (*edit_tell)(const struct wb_pagefile_edit *edit, wb_store_found found, void *context);

    /* Reads the record of a place, while files->reader is awake. */
    int (*read)(struct wb_pagefile *files, struct wb_pageid id, const struct wb_catalog_place *place,
                struct wb_buf *record_out);

    /*
     * Calls each() for the records of all versions that the state of files->reader has, each place once, in the order
     * of the disk. What is damaged is passed over. The state must be held.
     */
    int (*each_record)(struct wb_pagefile *files, wb_pagefile_each_record each, void *context);

    /* The latest version without asking the catalog: 1 if that is not possible. May be NULL. */
    int (*read_latest)(struct wb_pagefile *files, struct wb_pageid id, struct wb_catalog_entry *entry_out,
                       struct wb_buf *record_out);

    /* Calls each() for files that compaction is to divide, with their bins. Non-zero ends it. May be NULL. */
    int (*splits)(const struct wb_catalog_rows *rows, wb_pagefile_each_split each, void *context);

    /* For those whose files are rewritten in a transaction: whether that is worth it, and the bytes in use. */
    bool (*needs_work)(const struct wb_pagefile *files, const struct wb_catalog_segment *row);
    uint64_t (*used_bytes)(const struct wb_catalog_segment *row);

    /*
     * Rewrites a file in a transaction, without what is dead, for each bin. NULL: files are copied before the
     * transaction (src/move/mover.c). WB_E_BUSY: it has another bin by now.
     */
    int (*rewrite)(struct wb_pagefile_edit *edit, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                   size_t count);

    /* Checks the file of a row. Damage is reported; other errors are returned. NULL: segments (store/repo_verify.c). */
    int (*check)(struct wb_hash_check *check, const struct wb_catalog_segment *row);

    /* The name of a file, and what it says; removes one that the catalog does not name any more. */
    void (*name)(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX]);
    bool (*parse_name)(const char *name, uint32_t *number_out, uint32_t *revision_out);
    int (*remove)(struct wb_node *node, uint32_t number, uint32_t revision);

    /* Scans are in the order of page ids, and read through this; NULL: in the order of the disk. */
    const struct wb_sorted_source *sorted;
};

/* The table of an organisation. */
const struct wb_pagefile_kind *wb_pagefile_kind(enum wb_organisation_kind organisation);

/* dir, superblock and what else is borrowed are filled in. Release it even if this fails. */
int wb_pagefile_init(struct wb_pagefile *files);
void wb_pagefile_release(struct wb_pagefile *files);

#endif
