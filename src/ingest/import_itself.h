/* import_itself.h - redirects of a page to another spelling of itself. Private to the room. */
#ifndef WB_INGEST_IMPORT_ITSELF_H
#define WB_INGEST_IMPORT_ITSELF_H

#include "ingest/importer.h"

/* Whether the page is such a redirect, and the store has the page itself, as old or older: 1, 0 or an error. */
int wb_import_itself_yields(struct wb_importer *importer, const struct wb_page *page);

/*
 * The page was put, and did not become the latest version. If it is a page, and what the store has instead is only such
 * a redirect, that one goes, and the page is put again.
 */
int wb_import_itself_gives_way(struct wb_importer *importer, const struct wb_page *page);

#endif
