/*
 * vaultrows.h - private to vault: rows of a catalog as bytes.
 *
 *   row   table (1)   bytes that the key shares with that of the row before (varint)   length of the rest (varint) rest
 *         length of the value + 1, or 0 if there is no such row any more (varint)   value
 *
 * The rows of a piece follow each other; the first one shares nothing. They ascend by table and key, and so do the
 * pieces of a run.
 */
#ifndef WB_VAULT_VAULTROWS_H
#define WB_VAULT_VAULTROWS_H

#include "base/buf.h"

struct wb_vault_row {
    unsigned table;
    struct wb_slice key;
    struct wb_slice value; /* ptr is NULL: there is no such row any more */
};

/* ---- writing ------------------------------------------------------------------------------------------------- */

struct wb_vault_rows_writer {
    struct wb_buf bytes; /* the piece so far */
    struct wb_buf key;   /* of the last row */
    uint64_t count;
};

/* WB_E_LIMIT if the piece would be larger than an object. */
int wb_vault_rows_add(struct wb_vault_rows_writer *writer, const struct wb_vault_row *row);

/* Forgets the rows: a new piece begins. */
void wb_vault_rows_clear(struct wb_vault_rows_writer *writer);
void wb_vault_rows_release(struct wb_vault_rows_writer *writer);

/* ---- reading ------------------------------------------------------------------------------------------------- */

struct wb_vault_rows_reader {
    const char *name; /* of the object, for messages; borrowed */
    const char *at, *end;
    bool begun;
    struct wb_buf key;
    struct wb_vault_row row;
};

void wb_vault_rows_read(struct wb_vault_rows_reader *reader, const char *name, struct wb_slice piece);

/* 1 with a row in reader->row, which is good until the next call; 0 at the end; WB_E_CORRUPT. */
int wb_vault_rows_next(struct wb_vault_rows_reader *reader);
void wb_vault_rows_reader_release(struct wb_vault_rows_reader *reader);

/* By table and key. */
int wb_vault_rows_compare(const struct wb_vault_row *a, const struct wb_vault_row *b);

#endif
