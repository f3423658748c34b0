/* pagerow.h - a row of pages by URL as bytes. docs/formats/webdb.md describes them. */
#ifndef WB_WEBDB_PAGEROW_H
#define WB_WEBDB_PAGEROW_H

#include "webdb/webdb.h"

/*
 * Appends the row of a page. It holds everything except surt, which is the key of the row, and number, inlinks and
 * near, which readers fill in from other files. WB_E_INVALID if a value is out of range.
 */
int wb_pagerow_encode(const struct wb_webdb_page *page, struct wb_buf *row_out);

/*
 * The page borrows from surt, row and mem; mem holds its URL, which is put together from the SURT. WB_E_CORRUPT if the
 * bytes are not a row. number and inlinks are 0.
 */
int wb_pagerow_decode(struct wb_slice surt, struct wb_slice row, struct wb_buf *mem, struct wb_webdb_page *page_out);

#endif
