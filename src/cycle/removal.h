/*
 * removal.h - removes pages: from the store in batches, and from webdb through records in the journal. Expired pages
 * and taken-down pages need these two in a different order, so they are separate calls.
 */
#ifndef WB_CYCLE_REMOVAL_H
#define WB_CYCLE_REMOVAL_H

#include "cycle/cycle.h"
#include "store/store.h"

#define WB_REMOVAL_MAGIC 0x5742524du

struct wb_removal {
    uint32_t magic;  /* WB_REMOVAL_MAGIC from open to close */
    const char *dir;
    struct wb_store *store;
    struct wb_journal_writer *log; /* NULL: nothing was recorded yet */
    int64_t now_ms;
    bool everywhere; /* remove all versions, from all snapshots too, in the same commit */
    uint64_t uncommitted;
    enum wb_expunge reason; /* what is recorded of them: WB_EXPUNGE_EXPIRED, or another one that was set after open */
    struct wb_buf expired; /* URLs, one per line, to be recorded after the store has committed */
    struct wb_url url;
    struct wb_buf key, mem;
};

/* Opens the store. Close the removal even after an error. */
int wb_removal_open(const char *dir, bool everywhere, struct wb_removal *removal_out);

/* The page id of a URL. Afterwards removal->key is its normal form. */
int wb_removal_id(struct wb_removal *removal, struct wb_slice url, struct wb_pageid *id_out);

/*
 * Ends a page, which has been gone since gone_ms; or, with everywhere, removes all its versions. 1: it was there; the
 * next commit, which happens by itself now and then, does it. 0: it was not there.
 */
int wb_removal_store(struct wb_removal *removal, struct wb_pageid id, struct wb_slice site, int64_t gone_ms);

/* Reads some version of a page, the latest if it has one, into removal->mem. WB_E_NOTFOUND, WB_E_CORRUPT. */
int wb_removal_read(struct wb_removal *removal, struct wb_pageid id, struct wb_page *page_out);

/* Records an expired page, but only after the store has removed it: until then webdb must still list it, so that it is
 * found again after a crash. */
int wb_removal_expired(struct wb_removal *removal, struct wb_slice url);
int wb_removal_commit(struct wb_removal *removal);

/*
 * Calls each with the id of every page of a site that has any version, and commits. It repeats
 * this until a pass removes nothing, because a site may have more pages than one list holds and a crawl may add some
 * meanwhile. each returns 1 if it removed the page, 0 if not, or an error.
 */
int wb_removal_each_of_site(struct wb_removal *removal, struct wb_slice site,
                            int (*each)(void *context, struct wb_pageid id), void *context);

/* Appends a record to the journal. It is durable after wb_removal_noted(). */
int wb_removal_note(struct wb_removal *removal, struct wb_slice url, enum wb_expunge what);
int wb_removal_noted(struct wb_removal *removal);
void wb_removal_close(struct wb_removal *removal);

#endif
