/*
 * import_revisit.h - revisit records of an import: finds the pages that they are about. importer.c uses it.
 */
#ifndef WB_INGEST_IMPORT_REVISIT_H
#define WB_INGEST_IMPORT_REVISIT_H

#include "ingest/importer.h"

/* Takes the revisit of an item: it becomes a capture, a copy of its original, or waits in the store. */
int wb_import_revisit_take(struct wb_importer *importer, const struct wb_import_item *item);

/* A page was put: stores copies of it for the revisits of other URLs that waited for it. */
int wb_import_revisit_feed(struct wb_importer *importer, const struct wb_page *page);

/*
 * Everything was committed: looks once more for the originals that were not found since the commit before. Copies that
 * it puts wait for the next commit.
 */
int wb_import_revisit_retry(struct wb_importer *importer);

#endif
