/*
 * sql_checked.h - a layer below SQLite that keeps a checksum in every page of a database file. Used by sql_sqlite.c
 * only.
 */
#ifndef WB_SQL_SQL_CHECKED_H
#define WB_SQL_SQL_CHECKED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define WB_SQL_CHECKED_VFS "webbase-checked"
#define WB_SQL_CHECKED_BYTES 8 /* the checksum at the end of each page */

/*
 * Registers the layer with SQLite as WB_SQL_CHECKED_VFS. May be called often. Returns SQLITE_OK or an error of
 * SQLite.
 */
int wb_sql_checked_register(void);

/*
 * True if the pages of an open database have checksums; false also as long as nothing was read from it. *bad_out: the
 * offset of the last page whose checksum was wrong; 0 if there was none.
 */
bool wb_sql_checked_state(sqlite3 *db, uint64_t *bad_out);

#endif
