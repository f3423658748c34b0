/*
 * recover.h - puts right what crawl processes that died left behind: pages in spools, records in journals, leases.
 * Used whenever a crawl or a fetch list opens a repository, and when a worker dies.
 */
#ifndef WB_CRAWL_RECOVER_H
#define WB_CRAWL_RECOVER_H

#include "dispenser/dispenser.h"
#include "journal/journal.h"

/*
 * home: the id of the repository (wb_store_id). Can be called while other crawls run: what belongs to living processes
 * is locked and left alone.
 *
 * first: nothing was recovered since the crawl started, so the power may have failed before. If a process had died,
 * sites that were finished in the last minutes are then checked against the store, and go on if their last page is
 * missing there. (Visits that are resumed are compared page by page anyway, in restore.c.)
 */
int wb_recover(const char *dir, const char *home, struct wb_dispenser *dispenser, bool first);

#endif
