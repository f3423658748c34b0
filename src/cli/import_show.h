/*
 * import_show.h - shows what an import does, and its result: for import and emulate.
 *
 *   2 pages of 3 records in 1 file; 1 error
 *   {"event":"error","file":"a.warc","offset":712,"message":"..."}     for each error
 *   {"event":"commit","pages":2}                                       what is durable so far
 *   {"event":"done","files":1,"records":3,"pages":2,...}
 */
#ifndef WB_CLI_IMPORT_SHOW_H
#define WB_CLI_IMPORT_SHOW_H

#include "cli/progress.h"
#include "ingest/ingest.h"

struct wb_import_show {
    bool json;
    struct wb_progress progress;
};

/* verb names the work in the line of progress. */
struct wb_ingest_sink wb_import_show_init(struct wb_import_show *show, bool json, const char *verb);

/* Shows the result. */
int wb_import_show_end(struct wb_import_show *show, const struct wb_import *import);

#endif
