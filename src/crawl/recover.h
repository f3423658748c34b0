/* recover.h - what processes that died left behind: pages in spools, places in journals, leases. */
#ifndef WB_CRAWL_RECOVER_H
#define WB_CRAWL_RECOVER_H

#include "dispenser/dispenser.h"
#include "journal/journal.h"

/*
 * Puts it all right. Safe while other crawls run. first: nothing was recovered since the machine or the crawl started, so the power may
 * have failed: where a process had died, sites that were finished in the last minutes and whose last page the store does not
 * have go on. (Visits are compared with the store page by page when they are resumed.)
 */
int wb_crawl_recover(const char *dir, const char *home, struct wb_dispenser *dispenser, bool first);

#endif
