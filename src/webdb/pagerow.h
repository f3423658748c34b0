/* pagerow.h - a row of pages by URL as bytes. docs/formats/webdb.md has the layout. */
#ifndef WB_WEBDB_PAGEROW_H
#define WB_WEBDB_PAGEROW_H

#include "webdb/webdb.h"

/* Appends the row of a page: everything but surt (the key), number and inlinks (filled in by readers). */
int wb_pagerow_encode(const struct wb_webdb_page *page, struct wb_buf *row_out);

/* The page borrows from surt, row and mem (its URL, put together from the SURT). WB_E_CORRUPT where the bytes are no row; number and inlinks are 0. */
int wb_pagerow_decode(struct wb_slice surt, struct wb_slice row, struct wb_buf *mem, struct wb_webdb_page *page_out);

/* The SURT of a URL ("http://Example.org/x/"): WB_E_INVALID where it is none, or neither http nor https. url and key are work space. */
int wb_webdb_surt(struct wb_slice text, struct wb_url *url, struct wb_buf *key, struct wb_buf *surt_out);

/* The range of a site's pages: "org,example:8080)". */
int wb_webdb_site_surt(struct wb_slice site, struct wb_buf *surt_out);

#endif
