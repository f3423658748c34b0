/* recover.h - what processes that died left behind: pages in spools, places in journals, leases. */
#ifndef WB_CRAWL_RECOVER_H
#define WB_CRAWL_RECOVER_H

#include "crawl/dispenser.h"

/* Puts it all right; pages_out: how many pages came out of spools. Safe while other crawls run. */
int wb_crawl_recover(const char *dir, const char *home, struct wb_dispenser *dispenser, uint64_t *pages_out);

#endif
