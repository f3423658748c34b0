/*
 * catalog_row.h - reads and writes rows of the catalog as bytes. Shared by the files that
 * know what the bytes of each table mean.
 */
#ifndef WB_STORE_CATALOG_ROW_H
#define WB_STORE_CATALOG_ROW_H

#include "store/catalog.h"

/* Reads a value of up to cap bytes. WB_E_NOTFOUND. */
int wb_catalog_row_read(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t cap,
                        char *out, size_t *len_out);

/* Reads a value that must have exactly len bytes. WB_E_NOTFOUND; WB_E_CORRUPT if it has not. */
int wb_catalog_row_get(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t len,
                       char *out);
int wb_catalog_row_put(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, const char *bytes,
                       size_t len);
int wb_catalog_row_delete(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key);

/*
 * Walks over a table in the order of its keys. Every key must have key_len bytes and every
 * value len bytes (0 means any length), otherwise WB_E_CORRUPT.
 */
int wb_catalog_row_each(struct wb_catalog_txn *txn, enum wb_catalog_table table, size_t key_len, size_t len,
                        wb_tree_each_row each, void *context);

/* The same for rows of any length, from a key on. */
int wb_catalog_row_each_from(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice from,
                             wb_tree_each_row each, void *context);

#endif
