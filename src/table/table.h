/*
 * table.h - the door of table: sorted files on disk, and the sorting and merging that produce them.
 *
 *   table    records (key, value) in key order, in compressed blocks; records are numbered from 0
 *   cursor   a position in a table: seek to a key or a number, then read on from there
 *   column   records of one fixed size, uncompressed, read by number through a mapping
 *   blob     bytes of any kind, uncompressed, read by offset through a mapping
 *   sorter   puts any number of records into key order, in bounded memory
 *   merge    walks an old table and sorted edits together, key by key
 *
 * webdb keeps its tables here, and the graph import sorts with it. This room does not know what a key or a value means.
 *
 * Keys are byte strings. They compare as memcmp() does (wb_slice_compare()); if one key is a prefix of the other, the
 * shorter one comes first. A file is written once, from front to back, and never changed afterwards; to replace one,
 * write a new file and rename it. Every block has a checksum. docs/formats/table.md describes the bytes.
 *
 * Functions return 0 or a negative error code, unless their comment says that they return 1 for a record and 0 at the
 * end.
 */
#ifndef WB_TABLE_TABLE_H
#define WB_TABLE_TABLE_H

#include "base/buf.h"

#include <stdatomic.h>

#define WB_TABLE_KEY_MAX (128u << 10)
#define WB_TABLE_VALUE_MAX (64u << 20)

/* A record that a cursor, a sorter or a merge returns. The bytes belong to whatever returned it. */
struct wb_table_record {
    struct wb_slice key, value;
    uint64_t number; /* from a table: its rank in key order, counted from 0; from a sorter: 0 */
};

/* ---- writing a table ------------------------------------------------------------------------- */

/*
 * Life of a writer:
 *   wb_table_create() -> wb_table_add() ... -> wb_table_finish()    the file is a table
 *                                           -> wb_table_abandon()   the file is not a table; delete it
 */
struct wb_table_writer;

struct wb_table_options {
    char kind[5];        /* four letters naming the contents; wb_table_open() compares them */
    size_t block_bytes;  /* target size of a block before compression; 0 means 16 KiB */
    int level;           /* zstd level; 0 means the default */
    unsigned threads;    /* threads that compress while the caller adds records; 0 means that the caller compresses */
};

/* Creates the file. An existing file of that name is unlinked first, so that its readers can go on reading it. */
int wb_table_create(const char *path, const struct wb_table_options *options, struct wb_table_writer **writer_out);

/*
 * Keys must be strictly ascending: WB_E_INVALID otherwise. A record larger than a block gets a block to itself. After
 * an error, every further call returns that first error.
 */
int wb_table_add(struct wb_table_writer *writer, struct wb_slice key, struct wb_slice value);

struct wb_table_stat {
    uint64_t records, blocks;
    uint64_t bytes;     /* size of the file */
    uint64_t raw_bytes; /* keys and values as they were added */
};

/* Writes the index and the foot, syncs and closes. Frees the writer even if it fails. stat_out may be NULL. */
int wb_table_finish(struct wb_table_writer *writer, struct wb_table_stat *stat_out);

/* Closes the unfinished file and frees the writer. NULL is allowed. */
void wb_table_abandon(struct wb_table_writer *writer);

/* ---- reading a table ---------------------------------------------------------------------------- */

/* An open table. Any number of threads may share it, as long as each uses its own cursor. */
struct wb_table;

/*
 * Checks head and foot and reads the index, which stays in memory (about 1/1000 of the table). The table stays readable
 * if its file is unlinked while it is open. WB_E_NOTFOUND; WB_E_CORRUPT, also if the file is of another kind;
 * WB_E_NEWER.
 */
int wb_table_open(const char *path, const char *kind, struct wb_table **table_out);
void wb_table_close(struct wb_table *table);
void wb_table_stat(const struct wb_table *table, struct wb_table_stat *stat_out);

/* A position in a table: between two records, before the first one, or at the end. */
struct wb_cursor;

/* The new cursor is positioned before the first record. It caches the last few blocks that it read, decompressed. */
int wb_cursor_open(struct wb_table *table, struct wb_cursor **cursor_out);
void wb_cursor_close(struct wb_cursor *cursor);

/* Moves the cursor to just before the first record whose key is not less than key. */
int wb_cursor_seek(struct wb_cursor *cursor, struct wb_slice key);

/*
 * Returns 1 and the next record, or 0 at the end. The record is valid until the next call with this cursor.
 * WB_E_CORRUPT names the file and the offset of the damaged block; the next call then continues with the block after
 * it.
 */
int wb_cursor_next(struct wb_cursor *cursor, struct wb_table_record *record_out);

/* Finds the record with exactly this key, or this number: WB_E_NOTFOUND otherwise. The cursor is then just after it. */
int wb_cursor_get(struct wb_cursor *cursor, struct wb_slice key, struct wb_table_record *record_out);
int wb_cursor_get_number(struct wb_cursor *cursor, uint64_t number, struct wb_table_record *record_out);

/* Called once for each problem that a verification finds. */
typedef void (*wb_table_found)(void *context, const char *file, uint64_t offset, const char *message);

/*
 * Reads the whole file and checks everything: checksums, key order, counts, index. Returns 0 even if it found problems;
 * an error means that it could not go on. *records_out is the number of intact records.
 */
int wb_table_verify(const char *path, const char *kind, wb_table_found found, void *context, uint64_t *records_out);

/* ---- columns --------------------------------------------------------------------------------- */

/* Written as a table is: create, add records in order, then finish or abandon. */
struct wb_column_writer;

int wb_column_create(const char *path, const char *kind, size_t record_bytes, struct wb_column_writer **writer_out);
int wb_column_add(struct wb_column_writer *writer, const void *record);
int wb_column_finish(struct wb_column_writer *writer, uint64_t *bytes_out); /* size of the file; may be NULL */
void wb_column_abandon(struct wb_column_writer *writer);

/* An open column. Any number of threads may share it. */
struct wb_column {
    const char *records; /* the first of count records, inside the mapping */
    uint64_t count;
    size_t record_bytes;
    void *map;
    size_t map_bytes;
    char *path;
    atomic_uchar *checked; /* one byte per 64 KiB piece: 1 once the piece has matched its checksum */
};

#define WB_COLUMN_INIT ((struct wb_column){.records = NULL})

int wb_column_open(const char *path, const char *kind, size_t record_bytes, struct wb_column *column_out);
void wb_column_close(struct wb_column *column);

/* As wb_table_verify(). */
int wb_column_verify(const char *path, const char *kind, size_t record_bytes, wb_table_found found, void *context,
                     uint64_t *records_out);

/*
 * Compares the pieces that hold these records with their checksums, each piece only once while the column is open. Call
 * it before the first wb_column_at() of a record. WB_E_CORRUPT names the file.
 */
int wb_column_check(const struct wb_column *column, uint64_t first, uint64_t count);

/* The record in the mapping, unchecked: see wb_column_check(). number must be less than count. */
static inline const void *wb_column_at(const struct wb_column *column, uint64_t number)
{
    return column->records + number * column->record_bytes;
}

/* ---- blobs ----------------------------------------------------------------------------------- */

/* Written from front to back: create, append, then finish or abandon. docs/formats/blob.md describes the bytes. */
struct wb_blob_writer;

/* kind: four letters naming the contents. An existing file of that name is unlinked first. */
int wb_blob_create(const char *path, const char *kind, struct wb_blob_writer **writer_out);

/* After an error, every further call returns that first error. Small appends are gathered. */
int wb_blob_append(struct wb_blob_writer *writer, const void *bytes, size_t len);

/* How many bytes have been appended: the offset that the next byte will have. */
uint64_t wb_blob_tell(const struct wb_blob_writer *writer);

/* Writes the rest, syncs and closes. Frees the writer even if it fails. bytes_out: size of the file; may be NULL. */
int wb_blob_finish(struct wb_blob_writer *writer, uint64_t *bytes_out);

/* Closes the unfinished file and frees the writer. NULL is allowed. */
void wb_blob_abandon(struct wb_blob_writer *writer);

/* So many bytes behind the last one can be read without harm. They are not part of the data. */
#define WB_BLOB_SLACK 64

/* An open blob. Any number of threads may share it. */
struct wb_blob {
    const char *data; /* inside the mapping; offset 0 is at a multiple of 64 */
    uint64_t bytes;
    void *map;
    size_t map_bytes;
    char *path;
    atomic_uchar *checked; /* one byte per 64 KiB piece: 1 once the piece has matched its checksum */
};

#define WB_BLOB_INIT ((struct wb_blob){.data = NULL})

/*
 * Maps the file and checks head, foot and the table of checksums, but not the data. WB_E_NOTFOUND; WB_E_CORRUPT, also
 * if the file is of another kind; WB_E_NEWER.
 */
int wb_blob_open(const char *path, const char *kind, struct wb_blob *blob_out);
void wb_blob_close(struct wb_blob *blob);

/*
 * Compares the pieces that hold these bytes with their checksums, each piece only once while the blob is open. Call it
 * before the bytes are first read. WB_E_CORRUPT names the file, also if the range does not lie inside the blob.
 */
int wb_blob_check(const struct wb_blob *blob, uint64_t offset, uint64_t length);

/* As wb_table_verify(); *bytes_out is the number of bytes of data. */
int wb_blob_verify(const char *path, const char *kind, wb_table_found found, void *context, uint64_t *bytes_out);

/* ---- sorting --------------------------------------------------------------------------------- */

/*
 * Life of a sorter: wb_sorter_open() -> wb_sorter_add() ... -> wb_sorter_sort() -> wb_sorter_next() ... ->
 * wb_sorter_close()
 */
struct wb_sorter;

struct wb_sorter_options {
    const char *dir;      /* for temporary files; they have no name, so nothing is left however the process ends */
    size_t memory_bytes;  /* upper limit for everything the sorter allocates; raised to 4 MiB if it is less */
    unsigned threads;     /* threads that sort and write runs; 0 means that the caller does it */
};

int wb_sorter_open(const struct wb_sorter_options *options, struct wb_sorter **sorter_out);
void wb_sorter_close(struct wb_sorter *sorter);

/*
 * Copies key and value. The limits are those of a table, and WB_E_LIMIT if the record is larger than 1/8 of the memory.
 */
int wb_sorter_add(struct wb_sorter *sorter, struct wb_slice key, struct wb_slice value);

/* Ends the adding. If there are too many runs to merge at once, this merges some of them first. */
int wb_sorter_sort(struct wb_sorter *sorter);

/*
 * Returns 1 and the next record in key order, or 0 at the end. Records with equal keys come in the order in which they
 * were added. The record is valid until the next call.
 */
int wb_sorter_next(struct wb_sorter *sorter, struct wb_table_record *record_out);

struct wb_sorter_stat {
    uint64_t records, bytes; /* records added; bytes of their keys and values */
    uint64_t runs, passes;   /* runs written; how often the data was merged. Both are 0 if memory was enough */
    uint64_t run_bytes;      /* bytes written to disk for all runs */
};
void wb_sorter_stat(const struct wb_sorter *sorter, struct wb_sorter_stat *stat_out);

/* ---- merging --------------------------------------------------------------------------------- */

/*
 * A walk through an old table and the edits that are to change it. The key of an edit is the key of the record it
 * concerns, followed by a suffix of suffix_bytes that puts the edits of one record in order. The suffix must not change
 * the order of the keys: either all keys have the same length, or every suffix starts with a byte lower than any in a
 * key.
 */
struct wb_merge;

/* old: a cursor before its first record, or NULL if there is no old table. edits: sorted. The caller closes both. */
int wb_merge_open(struct wb_cursor *old, struct wb_sorter *edits, size_t suffix_bytes, struct wb_merge **merge_out);
void wb_merge_close(struct wb_merge *merge);

/*
 * Returns 1 and the next key that the old table has or an edit concerns, or 0 at the end. *old_out is the old record;
 * its key.ptr is NULL if the old table has none. Edits of the previous key that were not asked for are skipped.
 */
int wb_merge_next(struct wb_merge *merge, struct wb_slice *key_out, struct wb_table_record *old_out);

/* Returns 1 and the next edit of the current key, with its whole key including the suffix; 0 if there are no more. */
int wb_merge_edit(struct wb_merge *merge, struct wb_table_record *edit_out);

#endif
