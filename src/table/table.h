/*
 * table.h - the door of table: sorted files on disk and how they come to be.
 *
 *   table    records (key, value) in order of key, in compressed blocks; records have numbers from 0
 *   column   records of one size, uncompressed, reached by number through a mapping
 *   sorter   any number of records into order, in bounded memory
 *   merge    a walk through an old table and sorted edits at once
 *
 * Keys are bytes and compare as memcmp does, the shorter one first where one begins with the other. Files are written
 * once, front to back, and never changed; whoever replaces one renames. Every block has a
 * checksum. docs/formats/table.md has the bytes.
 */
#ifndef WB_TABLE_TABLE_H
#define WB_TABLE_TABLE_H

#include "base/buf.h"

#include <stdatomic.h>

#define WB_TABLE_KEY_MAX (128u << 10)
#define WB_TABLE_VALUE_MAX (64u << 20)

struct wb_table_record {
    struct wb_slice key, value;
    uint64_t number; /* from 0, in order of key (a table's); of a sorter: not set */
};

/* ---- writing a table ------------------------------------------------------------------------- */

struct wb_table_options {
    char kind[5];        /* four letters that say what the table holds; wb_table_open checks them */
    size_t block_bytes;  /* before compression; 0: 16 KiB */
    int level;           /* of zstd; 0: the default */
    unsigned threads;    /* that compress while the caller goes on; 0: none */
};

struct wb_table_writer;

/* Makes the file anew (replacing one that is there). */
int wb_table_create(const char *path, const struct wb_table_options *options, struct wb_table_writer **writer_out);

/* Keys strictly ascending: WB_E_INVALID where one is not. A value larger than a block gets a block of its own. */
int wb_table_add(struct wb_table_writer *writer, struct wb_slice key, struct wb_slice value);

struct wb_table_stat {
    uint64_t records, blocks, bytes; /* bytes: of the file */
    uint64_t raw_bytes;              /* keys and values as they were given */
};
/* Writes index and foot, syncs and closes; stat_out may be NULL. The writer is freed in any case; on error the file is no table. */
int wb_table_finish(struct wb_table_writer *writer, struct wb_table_stat *stat_out);

/* Closes; what was written is no table. NULL is allowed. */
void wb_table_abandon(struct wb_table_writer *writer);

/* ---- reading a table ---------------------------------------------------------------------------- */

struct wb_table;

/*
 * Reads the index, which stays in memory (some 1/1000 of the table). WB_E_NOTFOUND, WB_E_CORRUPT, WB_E_NEWER. An open table stays
 * readable when its file is removed. Any number of threads may use it, each with a cursor of its own.
 */
int wb_table_open(const char *path, const char *kind, struct wb_table **table_out);
void wb_table_close(struct wb_table *table);
void wb_table_stat(const struct wb_table *table, struct wb_table_stat *stat_out);

struct wb_cursor;

/* Stands before the first record. Keeps the last few blocks that it read, unpacked. */
int wb_cursor_open(struct wb_table *table, struct wb_cursor **cursor_out);
void wb_cursor_close(struct wb_cursor *cursor);

/* The next record is the first whose key is not less than key; or that of a number (past the end: none). */
int wb_cursor_seek(struct wb_cursor *cursor, struct wb_slice key);
int wb_cursor_seek_number(struct wb_cursor *cursor, uint64_t number);

/* 1 with a record that is valid until the next call with this cursor, 0 at the end. WB_E_CORRUPT naming file and offset; the next call goes on with the next block. */
int wb_cursor_next(struct wb_cursor *cursor, struct wb_table_record *record_out);

/* Exactly this key, or number: WB_E_NOTFOUND. The cursor stands behind it. */
int wb_cursor_get(struct wb_cursor *cursor, struct wb_slice key, struct wb_table_record *record_out);
int wb_cursor_get_number(struct wb_cursor *cursor, uint64_t number, struct wb_table_record *record_out);

/* Reads and checks everything: checksums, order, counts, index. Calls back for each problem. 0 even where there are some. */
typedef void (*wb_table_found)(void *context, const char *file, uint64_t offset, const char *message);
int wb_table_verify(const char *path, const char *kind, wb_table_found found, void *context, uint64_t *records_out);

/* ---- columns --------------------------------------------------------------------------------------- */

struct wb_column_writer;
int wb_column_create(const char *path, const char *kind, size_t record_bytes, struct wb_column_writer **writer_out);
int wb_column_add(struct wb_column_writer *writer, const void *record);
int wb_column_finish(struct wb_column_writer *writer, uint64_t *bytes_out); /* as wb_table_finish */
void wb_column_abandon(struct wb_column_writer *writer);

struct wb_column {
    const char *records; /* count of them, one after the other, mapped */
    uint64_t count;
    size_t record_bytes;
    void *map;
    size_t map_bytes;
    char *path;
    atomic_uchar *checked; /* a byte per piece of records that shares a checksum: 1 once the checksum was found right; NULL: not from a file */
};

#define WB_COLUMN_INIT ((struct wb_column){.records = NULL})

int wb_column_open(const char *path, const char *kind, size_t record_bytes, struct wb_column *column_out);
void wb_column_close(struct wb_column *column);
int wb_column_verify(const char *path, const char *kind, size_t record_bytes, wb_table_found found, void *context, uint64_t *records_out);

/*
 * Compares records with their checksums before they are used; each piece of the file is compared once per open column.
 * WB_E_CORRUPT names the file.
 */
int wb_column_check(const struct wb_column *column, uint64_t first, uint64_t count);

/* The record as it is mapped; see wb_column_check(). */
static inline const void *wb_column_at(const struct wb_column *column, uint64_t number)
{
    return column->records + number * column->record_bytes;
}

/* ---- sorting ------------------------------------------------------------------------------------------ */

struct wb_sorter_options {
    const char *dir;      /* where runs are kept, in files without a name: nothing is left when the process ends, however it ends */
    size_t memory_bytes;  /* at most, for records, runs being merged and everything else; at least 4 MiB is taken */
    unsigned threads;     /* that sort and write runs; 0: the caller does */
};

struct wb_sorter;

int wb_sorter_open(const struct wb_sorter_options *options, struct wb_sorter **sorter_out);
void wb_sorter_close(struct wb_sorter *sorter);

/* Takes a copy. Key and value as in a table; WB_E_LIMIT where one record does not fit the memory. */
int wb_sorter_add(struct wb_sorter *sorter, struct wb_slice key, struct wb_slice value);

/* No more records come. Merges runs beforehand where there are more than can be merged at once. */
int wb_sorter_sort(struct wb_sorter *sorter);

/* 1 with the next record by key; equal keys in the order in which they were added. Valid until the next call. 0 at the end. */
int wb_sorter_next(struct wb_sorter *sorter, struct wb_table_record *record_out);

struct wb_sorter_stat {
    uint64_t records, bytes; /* keys and values added */
    uint64_t runs, passes;   /* runs written; times the data was merged, the last time included; 0 and 0: memory was enough */
    uint64_t run_bytes;      /* written to disk for all runs */
};
void wb_sorter_stat(const struct wb_sorter *sorter, struct wb_sorter_stat *stat_out);

/* ---- merging --------------------------------------------------------------------------------------------- */

struct wb_merge;

/*
 * old: a cursor at its begin, or NULL where there is no old table. edits: sorted; the key of an edit is that of the record it is
 * about, followed by suffix_bytes that put edits of one record in order. Neither is closed with the merge. For the order to be
 * that of the keys, a suffix begins with a byte less than any in a key, or all keys have one length.
 */
int wb_merge_open(struct wb_cursor *old, struct wb_sorter *edits, size_t suffix_bytes, struct wb_merge **merge_out);
void wb_merge_close(struct wb_merge *merge);

/* 1 with the next key that the old table or an edit has; *old_out is its record there, key NULL where it has none. 0 at the end. */
int wb_merge_next(struct wb_merge *merge, struct wb_slice *key_out, struct wb_table_record *old_out);

/* The edits of that key in order, with whole keys: 1, 0 when there are no more. Those not asked for are passed over. */
int wb_merge_edit(struct wb_merge *merge, struct wb_table_record *edit_out);

#endif
