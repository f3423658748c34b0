/* sitesum.h - sums over the pages of a site, and the row of sites that keeps them. */
#ifndef WB_WEBDB_SITESUM_H
#define WB_WEBDB_SITESUM_H

#include "webdb/webdb.h"

/* Adds a page to the sums of its site; mere targets do not count. */
void wb_sitesum_add(struct wb_webdb_site *sum, const struct wb_webdb_page *page);
/* Appends the row. */
int wb_sitesum_encode(const struct wb_webdb_site *sum, struct wb_buf *row_out);

/* The name is left empty. WB_E_CORRUPT. */
int wb_sitesum_decode(struct wb_slice row, struct wb_webdb_site *sum_out);

#endif
