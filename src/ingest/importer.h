/*
 * importer.h - the writing half of an import: it takes items, puts pages into the repository, resolves revisits,
 * commits, and counts. import.c drives it:
 *
 *   begin -> sift (a list) -> take (each item) ... commit ... -> finish -> release
 */
#ifndef WB_INGEST_IMPORTER_H
#define WB_INGEST_IMPORTER_H

#include "base/arena.h"
#include "base/vec.h"
#include "ingest/import_journal.h"
#include "ingest/ingest.h"
#include "store/store.h"

struct wb_importer {
    struct wb_store *store;
    struct wb_import_journal *journal; /* NULL: nothing is journaled */
    uint64_t files, records, revisits, errors;
    uint64_t barred;          /* pages and revisits that sift() kept out; commit.barred counts the others */
    uint64_t unreadable;      /* files that could not be read, or not to their end */
    struct wb_store_commit_counts commit;  /* what is durable, since the start of the import */
    uint64_t uncommitted;     /* pages and revisits taken since the last commit */
    bool waiting;             /* revisits wait in the repository, perhaps for a page of this import */
    bool newest_only;         /* the history policy keeps one version of each page */
    struct wb_buf body;       /* holds the original of a revisit */
    /*
     * Revisits of pages elsewhere: those that the page just put is the original of, and those whose original was not
     * found since the last commit. The store shows old versions only when they are committed, so these are looked up
     * once more after the next commit.
     */
    WB_VEC(struct wb_store_revisit) matching, not_found;
    struct wb_arena matching_text, not_found_text; /* their URLs */
    struct wb_url url;        /* of a copy */
    struct wb_buf key;
};

#define WB_IMPORTER_INIT ((struct wb_importer){.store = NULL, .url = WB_URL_INIT})

/* Call this when the store is open: it looks whether revisits wait there. */
int wb_importer_begin(struct wb_importer *importer);

/*
 * Marks the items of a list whose pages were taken down, before the journal sees them. Pages that are taken down after
 * this are left out by the store's commit.
 */
int wb_importer_sift(struct wb_importer *importer, struct wb_import_item *list);

/*
 * Takes one item. Any error is the repository's and ends the import; errors of the input are items themselves. A page
 * must be in the journal before it is taken here (wb_import_journal_begin, take). A revisit goes to the journal now,
 * because only the store can tell what it refers to.
 */
int wb_importer_take(struct wb_importer *importer, const struct wb_import_item *item);

/*
 * Makes everything that was taken durable, first in the journal, then in the store. So a process that finds a page in
 * the store finds it in the journal too, as long as the journal's files live: `update` relies on this. If the process
 * is killed between the two, the journal knows pages that the store does not have; the next update finds that out, and
 * importing the same files again puts it right.
 *
 * Afterwards `uncommitted` may be above 0 again: copies for revisits whose original was found only now.
 */
int wb_importer_commit(struct wb_importer *importer);

/* Call this after the last commit: it marks the journal as complete. */
int wb_importer_finish(struct wb_importer *importer);

/* Pages that are stored durably: new ones, and new versions of stored ones. */
uint64_t wb_importer_pages(const struct wb_importer *importer);

/* Everything that was counted so far. */
void wb_importer_count(const struct wb_importer *importer, struct wb_import *import_out);
void wb_importer_release(struct wb_importer *importer);

#endif
