/*
 * importer.h - the writing half of an import: takes items, puts pages into the
 * repository, resolves revisits, commits, and counts.
 */
#ifndef WB_CLI_IMPORTER_H
#define WB_CLI_IMPORTER_H

#include "cli/import_queue.h"
#include "store/store.h"

struct wb_importer {
    struct wb_store *store;
    uint64_t files, records, revisits, errors;
    uint64_t unreadable;      /* files that could not be read, or not to their end */
    struct wb_commit commit;  /* what is durable */
    uint64_t uncommitted;     /* pages and revisits taken since the last commit */
    struct wb_buf body;       /* of an original */
};

#define WB_IMPORTER_INIT ((struct wb_importer){.store = NULL})

/* Errors are of the repository and end the import; what is wrong with the input was told in items. */
int wb_importer_take(struct wb_importer *importer, const struct wb_import_item *item);
int wb_importer_commit(struct wb_importer *importer);

/* Pages stored durably, replaced ones included. */
uint64_t wb_importer_pages(const struct wb_importer *importer);
void wb_importer_release(struct wb_importer *importer);

#endif
