/*
 * spool.h - pages that were fetched and are not yet committed to the store, so that kill -9 loses none.
 *
 * One file a process. A page is appended (handed to the kernel, not synced) before the journal says that
 * it was fetched; after the store's commit the file is begun anew from its start, which is why it stays small
 * and mostly never reaches the disk. Stale records of an earlier round are told by the round's number.
 */
#ifndef WB_CRAWL_SPOOL_H
#define WB_CRAWL_SPOOL_H

#include "page/page.h"

struct wb_spool;

/* dir/spool/NAME, locked for as long as it is open. */
int wb_spool_create(const char *dir, const char *name, struct wb_spool **spool_out);

int wb_spool_add(struct wb_spool *spool, const struct wb_page *page);

/* The store has committed everything added so far. */
int wb_spool_reset(struct wb_spool *spool);
uint64_t wb_spool_bytes(const struct wb_spool *spool); /* added since the last reset */

/* Ends; remove: the file is of no more use. */
void wb_spool_close(struct wb_spool *spool, bool remove);

/*
 * Calls back with each page of each spool in dir that nobody holds (its process died), then with NULL once
 * all pages of a spool (there may be none) were given: the callee commits and returns 0, and the file is removed. Damage ends a file quietly.
 */
typedef int (*wb_spool_each)(void *context, const char *name, const struct wb_page *page);
int wb_spool_recover(const char *dir, wb_spool_each each, void *context, uint64_t *pages_out);

#endif
