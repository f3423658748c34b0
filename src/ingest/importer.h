/*
 * importer.h - the writing half of an import: takes items, puts pages into the
 * repository, resolves revisits, commits, and counts.
 */
#ifndef WB_INGEST_IMPORTER_H
#define WB_INGEST_IMPORTER_H

#include "ingest/import_journal.h"
#include "store/store.h"

struct wb_importer {
    struct wb_store *store;
    struct wb_import_journal *journal; /* NULL: nothing is journaled */
    uint64_t files, records, revisits, errors;
    uint64_t barred;          /* pages and revisits that were taken down, kept out before the store was asked to take them */
    uint64_t unreadable;      /* files that could not be read, or not to their end */
    struct wb_commit commit;  /* what is durable */
    uint64_t uncommitted;     /* pages and revisits taken since the last commit */
    struct wb_buf body;       /* of an original */
};

#define WB_IMPORTER_INIT ((struct wb_importer){.store = NULL})

/* Marks what was taken down in a list, before the journal sees it. What is taken down later is left out by the store's commit. */
int wb_importer_sift(struct wb_importer *importer, struct wb_import_item *list);

/*
 * Errors are of the repository and end the import; what is wrong with the input was told in items. Pages of items are in the
 * journal before they are taken here (wb_import_journal_begin, take); revisits, which only the store can tell what they mean, go there now.
 */
int wb_importer_take(struct wb_importer *importer, const struct wb_import_item *item);

/* The journal first: killed between the two, it knows more than the store, which the next import of the same puts right. */
int wb_importer_commit(struct wb_importer *importer);

/* After the last commit: the journal ended well. */
int wb_importer_finish(struct wb_importer *importer);

/* Pages stored durably, replaced ones included. */
uint64_t wb_importer_pages(const struct wb_importer *importer);

/* Pages and revisits that were kept out because they were taken down. */
uint64_t wb_importer_barred(const struct wb_importer *importer);
void wb_importer_release(struct wb_importer *importer);

#endif
