/*
 * hash_store.h - the organisation hash: pages in buckets, in the order of their ids.
 *
 * Everything that the catalog knows, and so what a commit decides, is the same as in a log. Only the bytes are
 * elsewhere, in bucket files (bucket.h), one for each node. The row of such a file in table segments uses the columns
 * of segments, some of them in another meaning:
 *
 *   revision, bytes   which file it is, and where its extents end
 *   map_count         the number of its buckets
 *   map_at            bytes of all images together, from which follows how full the buckets are
 *   logical_end       the stamp of the last sweep that was committed
 *   sealed            always set
 *
 * and the other members as in a log. The place of a version has the number of the file that it was first stored in;
 * its `logical` is made from the stamp of the commit that stored it, and its slot counts the versions of a page in that
 * commit. So a place never changes, however often buckets are rewritten.
 *
 * A commit writes the buckets inside the transaction of the catalog, when everything has been decided:
 *
 *   sweep   buckets are changed in place; versions that the state before still has stay in them, flagged as
 *           dead, so that the images serve both states (hash_sweep.c)
 *   merge   the file is rewritten, with a fitting number of buckets, as its next revision (hash_merge.c)
 *
 *   hash_store.c  opening, rows and files, recovery; the table of the organisation
 *   hash_get.c    reading single pages
 *   sorted_hash.c reading for scans
 *   hash_records.c  all records of a state
 *   hash_stage.c  keeps records until the commit
 *   hash_edit.c   collects what a transaction changes, and decides how to write it
 *   hash_sweep.c  changes buckets in place
 *   hash_merge.c  rewrites a file
 *   hash_press.c  its buckets, which threads compress
 *   hash_lost.c   goes on past a bucket that is damaged
 *   hash_verify.c checks bucket files
 */
#ifndef WB_PAGEFILE_HASH_STORE_H
#define WB_PAGEFILE_HASH_STORE_H

#include "base/arena.h"
#include "pagefile/bucket.h"
#include "pagefile/pagefile_files.h"

/* The bucket files of one state of the catalog. */
struct wb_hash_files {
    struct wb_nodes *nodes;     /* where they are */
    const uint8_t *repository;  /* its id */
    bool write;                 /* they are opened for writing, too */
    bool known;
    uint64_t version; /* of table segments */
    struct wb_catalog_rows rows;
    WB_VEC(struct wb_bucket_file) open; /* closed ones, too; found by number and revision */
};
void wb_hash_files_release(struct wb_hash_files *files);

/* What the files of this organisation have beside the rest of a wb_pagefile. */
struct wb_hash {
    struct wb_hash_files files;
    struct wb_bucket bucket; /* of the last get, or the one that is being changed */
    struct wb_bucket_reader reader;
    struct wb_bucket_draft draft; /* of a writer */
    struct wb_file staging;       /* records of a writer that memory has no room for; without a name */
    uint64_t staged_bytes;
    uint64_t pending_bytes;        /* of records in memory, without the current group */
    struct wb_hash_flight *flight; /* a group that the workers have (hash_stage.c); NULL if there is none */
};

/* ---- files (hash_store.c) ------------------------------------------------------------------------------- */

/* Brings the rows up to date with a transaction that is awake or held. Reads no page of the catalog if nothing has
 * changed. */
int wb_hash_files_refresh(struct wb_hash_files *files, struct wb_catalog_txn *txn);

/* The row of the file that has, or would have, the version of a page at a place. NULL if there is none. */
const struct wb_catalog_segment *wb_hash_row_of(const struct wb_catalog_rows *rows, struct wb_pageid id,
                                                const struct wb_catalog_place *place);

/* The row of the only file that can have versions of the page. NULL if there are none, or several. */
const struct wb_catalog_segment *wb_hash_row_of_id(const struct wb_catalog_rows *rows, struct wb_pageid id);

/* Opens the file of a row, or returns the one that is open. Good until the next refresh. */
int wb_hash_file(struct wb_hash_files *files, const struct wb_catalog_segment *row, struct wb_bucket_file **file_out);

/* ---- reading (hash_get.c; wb_pagefile_kind.read and read_latest) ------------------------------------------- */

int wb_hash_read(struct wb_pagefile *files, struct wb_pageid id, const struct wb_catalog_place *place,
                 struct wb_buf *record_out);
int wb_hash_read_latest(struct wb_pagefile *files, struct wb_pageid id, struct wb_catalog_entry *entry_out,
                        struct wb_buf *record_out);

/* All records of a state (hash_records.c; wb_pagefile_kind.each_record). */
int wb_hash_each_record(struct wb_pagefile *files, wb_pagefile_each_record each, void *context);

/* ---- records before the commit (hash_stage.c) ------------------------------------------------------------ */

/*
 * Take the place of a flush (repo.h). The first hands the records of the current group to the workers, which compute
 * their digests, and write them to the disk if there are too many; the second does so and waits. Dropping waits, too.
 */
int wb_hash_stage(struct wb_pagefile *files);
int wb_hash_stage_all(struct wb_pagefile *files);
void wb_hash_stage_drop(struct wb_pagefile *files);

/* The record of a put that was moved to the disk; the first needs room for put->staged_bytes. */
int wb_hash_staged_read(struct wb_pagefile *files, const struct wb_put *put, char *bytes_out);
int wb_hash_staged(struct wb_pagefile *files, const struct wb_put *put, struct wb_buf *record_out);

/* Forgets all records. */
void wb_hash_stage_clear(struct wb_pagefile *files);

/* ---- changes (hash_edit.c) --------------------------------------------------------------------------------- */

enum wb_hash_note_kind {
    WB_HASH_NOTE_DEAD, /* a version that nobody needs any more */
    WB_HASH_NOTE_PUT,  /* a new one */
    WB_HASH_NOTE_COPY, /* the entry of the page is now this one */
    WB_HASH_NOTE_GONE, /* the page has no entry any more, or its latest version is in another file */
};

/* Something that a transaction changes in a bucket. */
struct wb_hash_note {
    struct wb_pageid id;
    uint32_t file; /* the number of its row */
    enum wb_hash_note_kind kind;
    struct wb_catalog_place place; /* of a version */
    uint32_t stored_bytes;         /* of a new one */
    uint32_t index;                /* of a put: its number; of a copy: of the entry */
};

/* A file in a transaction. */
struct wb_hash_target {
    uint32_t number; /* of its row */
    uint64_t stamp;  /* of this transaction's images */
    uint64_t end;    /* where the next extent goes */
    bool exists;
    bool judge;          /* it must be merged, and the catalog asked about each version */
    bool is_merged;      /* the next revision was written */
    uint64_t placed;     /* new versions that were given a place */
    uint64_t put_bytes;  /* of new records */
    size_t first, count; /* its notes */
};

/* A bucket that a transaction could not read, or of which it could not read all versions. */
struct wb_hash_damage {
    uint32_t file, revision;
    uint64_t bucket, at; /* its number, and where it is in the file */
    uint64_t lost;       /* versions that cannot be read any more; 0: nobody needs what is damaged */
    char why[WB_ERROR_MESSAGE_MAX];
};

/* What a transaction changes. */
struct wb_hash_edit {
    WB_VEC(struct wb_hash_note) notes;
    WB_VEC(struct wb_catalog_entry) entries;
    WB_VEC(struct wb_hash_target) targets;
    /* Files that it has written, which are claimed until the commit: so nobody takes them for leftovers. */
    WB_VEC(struct wb_bucket_file) made;
    const uint32_t *placed; /* the puts of the page that were given places last ... */
    size_t placed_count;    /* ... and how many */
    struct wb_pageview view;
    WB_VEC(bool) drop;
    struct wb_buf record;
    struct wb_arena arena; /* records of the bucket that is being changed */
    WB_VEC(struct wb_hash_damage) damages;
    struct wb_buf damaged; /* bytes of the bucket that was damaged last */
};

/* Begins: reads the rows, and repairs what an interrupted sweep left. The transaction has not changed anything yet. */
int wb_hash_edit_begin(struct wb_pagefile_edit *edit);

/* Gives places to the puts of a page. */
int wb_hash_edit_place(struct wb_pagefile_edit *edit, const uint32_t *puts, size_t count);

/* A page was saved: before and after are the places of its versions. */
int wb_hash_edit_note(struct wb_pagefile_edit *edit, struct wb_pageview *view, const struct wb_places_used *before,
                      const struct wb_places_used *after);

/* Writes all buckets, and changes the rows of their files. The transaction is to be committed then. */
int wb_hash_edit_write(struct wb_pagefile_edit *edit);

/* It was committed, or not: err is what the commit returned. */
void wb_hash_edit_done(struct wb_pagefile_edit *edit, int err);
void wb_hash_edit_release(struct wb_pagefile_edit *edit);

/* The target with the number of a row, or NULL. */
struct wb_hash_target *wb_hash_target(struct wb_hash_edit *hash, uint32_t number);

/* The file of a target, open for writing if its node can be written. */
int wb_hash_target_file(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                        struct wb_bucket_file **file_out);

/* The index of the first note whose id is not before this one, or count. The notes are those of one target, sorted. */
size_t wb_hash_note_seek(const struct wb_hash_note *notes, size_t count, struct wb_pageid id);

/* Adds the record of a put to a draft. If it was not in memory, it is in the arena then. */
int wb_hash_add_put(struct wb_pagefile_edit *edit, const struct wb_hash_note *note, bool old,
                    struct wb_bucket_draft *draft, struct wb_arena *arena);

/* The entry of the page, if its latest version is in this file; loads the page into hash->view. */
int wb_hash_judge(struct wb_pagefile_edit *edit, uint32_t number, struct wb_pageid id,
                  struct wb_catalog_entry *entry_out, bool *there_out);

/* Changes the buckets that the target's notes concern (hash_sweep.c). */
int wb_hash_sweep(struct wb_pagefile_edit *edit, struct wb_hash_target *target);

/* Brings the buckets that an interrupted sweep has changed back to what the catalog says. */
int wb_hash_repair(struct wb_pagefile_edit *edit, struct wb_hash_target *target, const struct wb_bucket_swept *swept);

/* ---- damaged buckets (hash_lost.c) ------------------------------------------------------------------------ */

/*
 * A bucket that cannot be read: the current error says why. Fills the bucket in memory with the versions and copies
 * that the catalog says are in it, as if it had been read, but without a block: none of its versions can be read. The
 * bytes that are in its place go to hash->damaged.
 */
int wb_hash_lost_read(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                      const struct wb_bucket_file *file, uint64_t number);

/* A bucket was read: adds the versions to the bucket in memory that should be in it, but are not. */
int wb_hash_lost_add(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                     const struct wb_bucket_file *file);

/* The same as the first, and keeps the bytes in an extent at *end, which moves on. The versions point to it. */
int wb_hash_set_aside(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                      const struct wb_bucket_file *file, uint64_t number, uint64_t *end);

/* Remembers that so many more versions of a bucket are lost; the first call also why: the current error. */
int wb_hash_damage_note(struct wb_hash_edit *hash, const struct wb_bucket_file *file, uint64_t number, uint64_t lost);

/* Reports what was remembered, to found() if that is not NULL. Returns how many places stay damaged. */
uint64_t wb_hash_damage_tell(const struct wb_hash_edit *hash, wb_store_found found, void *context);

/*
 * Writes a file for each bin from the file of a target and its notes (hash_merge.c). The first one takes the number of
 * the file, with the next revision; the others become new files whose origin it is. If there are several, the target
 * has no notes, and each has as many buckets as it needs; otherwise so many.
 */
int wb_hash_merge(struct wb_pagefile_edit *edit, struct wb_hash_target *target, const struct wb_bin *bins, size_t count,
                  uint64_t buckets);

/* The number of buckets in which so many bytes of images should be. */
uint64_t wb_hash_buckets_for(uint64_t bytes);

#endif
