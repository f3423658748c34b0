/* sql_checked.h - a layer below SQLite that keeps a checksum in every page of a database file. */
#ifndef WB_DISPENSER_SQL_CHECKED_H
#define WB_DISPENSER_SQL_CHECKED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define WB_CHECKED_VFS "webbase-checked"
#define WB_CHECKED_BYTES 8 /* at the end of each page */

/* Makes it known to SQLite under WB_CHECKED_VFS; may be called often. SQLITE_OK or an error of SQLite. */
int wb_checked_register(void);

/*
 * Whether the pages of an open database have checksums, as far as its head was read (false before). *bad_out: the offset of the last
 * page that did not match; 0 also where there was none.
 */
bool wb_checked_state(sqlite3 *db, uint64_t *bad_out);

#endif
