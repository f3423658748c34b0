/*
 * spool.h - pages that were fetched and are not committed to the store yet, with their lines of the log of fetches, so
 * that kill -9 loses none of them. docs/formats/spool.md has the bytes.
 *
 * Each worker has one file. A page is appended before the journal says that it was fetched. It is handed to the kernel
 * and not synced: the spool protects against the death of the process, and the store's commit against power loss. After
 * that commit a new *round* starts at the beginning of the file, so the file stays small and mostly never reaches the
 * disk. Records that earlier rounds left behind are recognised by their round number.
 *
 *   create -> add ... add -> (store commits) -> reset -> add ... -> close
 */
#ifndef WB_CRAWL_SPOOL_H
#define WB_CRAWL_SPOOL_H

#include "page/page.h"

struct wb_spool;

/* Creates dir/spool/NAME, and locks it for as long as it is open. */
int wb_spool_create(const char *dir, const char *name, struct wb_spool **spool_out);

/* Closes it. remove: deletes the file, because everything in it is committed. */
void wb_spool_close(struct wb_spool *spool, bool remove);

/* Appends a page (NULL: none) and the line about it (empty: none) as one record. */
int wb_spool_add(struct wb_spool *spool, const struct wb_page *page, struct wb_slice line);

/* The store has committed everything that was added: begins the next round. */
int wb_spool_reset(struct wb_spool *spool);

/* The number of the round. It changes with each reset that had something to reset, and no other spool has the same. */
uint64_t wb_spool_round(const struct wb_spool *spool);

/* Whether there is a spool of that name, in use or not. */
bool wb_spool_exists(const char *dir, const char *name);

/* A test seam: bytes added since the last reset. */
uint64_t wb_spool_bytes(const struct wb_spool *spool);

/* ---- recovery ---------------------------------------------------------------------------------------------------- */

/* A record of a spool whose process died, or the end of that spool. */
struct wb_spool_item {
    const char *owner;          /* the spool's name */
    uint64_t round;
    const struct wb_page *page; /* NULL: none */
    struct wb_slice line;       /* empty: none */
    bool end;                   /* all records of this spool were given; there is no page and no line */
};

typedef int (*wb_spool_each)(void *context, const struct wb_spool_item *item);

/*
 * Reads all spools that nobody holds. Gives each record to each(), and then, for every spool, an item with `end`. At
 * the end each() makes the pages durable and returns 0; the file is deleted then. A spool whose rest is damaged ends
 * there without an error. *pages_out: the number of pages.
 */
int wb_spool_recover(const char *dir, wb_spool_each each, void *context, uint64_t *pages_out);

#endif
