/* sitesum.h - sums over the pages of a site, a row of sites. */
#ifndef WB_WEBDB_SITESUM_H
#define WB_WEBDB_SITESUM_H

#include "webdb/webdb.h"

void wb_sitesum_add(struct wb_webdb_site *sum, const struct wb_webdb_page *page);
int wb_sitesum_encode(const struct wb_webdb_site *sum, struct wb_buf *row_out);

/* Without its name. WB_E_CORRUPT. */
int wb_sitesum_decode(struct wb_slice row, struct wb_webdb_site *sum_out);

#endif
