/*
 * spool.h - pages that were fetched and are not yet committed to the store, and lines of the log of fetches, so that kill -9 loses none.
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

/* A page (NULL: none) and the line that tells of it (empty: none), as one. */
int wb_spool_add(struct wb_spool *spool, const struct wb_page *page, struct wb_slice line);

/* The store has committed everything added so far. */
int wb_spool_reset(struct wb_spool *spool);
uint64_t wb_spool_bytes(const struct wb_spool *spool); /* added since the last reset */
uint64_t wb_spool_round(const struct wb_spool *spool); /* changes with each reset that did something, and is no other spool's */

/* Ends; remove: the file is of no more use. */
void wb_spool_close(struct wb_spool *spool, bool remove);

/* Whether there is one of that name, held or not. */
bool wb_spool_exists(const char *dir, const char *name);

/* What recovery finds in a spool. */
struct wb_spool_item {
    const char *owner;          /* the spool's name */
    uint64_t round;
    const struct wb_page *page; /* NULL: none */
    struct wb_slice line;       /* empty: none */
    bool end;                   /* no page and no line: all of this spool's were given */
};

/*
 * Calls back with each item of each spool in dir that nobody holds (its process died), then with the end, also where there was nothing
 * in it: the callee commits and returns 0, and the file is removed. Damage ends a file quietly.
 */
typedef int (*wb_spool_each)(void *context, const struct wb_spool_item *item);
int wb_spool_recover(const char *dir, wb_spool_each each, void *context, uint64_t *pages_out);

#endif
