/*
 * webdb_load.h - rows of webdb, as `webdb pages` and `webdb links` print them with --json or --tsv, read back: so that
 * what one repository knows can be moved to another.
 */
#ifndef WB_CLI_WEBDB_LOAD_H
#define WB_CLI_WEBDB_LOAD_H

#include "webdb/webdb.h"

struct wb_webdb_load {
    const char *dir;
    const char *pages, *links;  /* files; NULL: none */
    size_t memory_bytes;
    /* what came of it */
    uint64_t page_count, link_count;
    uint64_t bad_lines;         /* the first of them were told on standard error */
    uint64_t unfinished;        /* files that could not be read to their end */
    struct wb_webdb_merge merge;
};

/* WB_E_PROTO where nothing in the files could be read. */
int wb_webdb_load(struct wb_webdb_load *load);

#endif
