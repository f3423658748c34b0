/*
 * linewalk.h - hands the lines of a file to a function and reports the bad ones: they are counted, and the sink is told
 * about the first few with file and line. Used by graph_import.c and rows_import.c.
 */
#ifndef WB_INGEST_LINEWALK_H
#define WB_INGEST_LINEWALK_H

#include "ingest/ingest.h"

/* One walk may go through several files; its counts are of all of them. */
struct wb_linewalk {
    const struct wb_ingest_sink *sink;
    uint64_t bad_lines;
    uint64_t unfinished; /* files that could not be read to their end */
};

/* Takes one line. WB_E_PROTO, with a message, means that the line is bad; any other error ends the walk. */
typedef int (*wb_linewalk_take)(void *context, struct wb_slice line);

/*
 * Calls take() for each line of the file. Lines that are bad or too long are reported and skipped. If the file is
 * damaged, the rest of it is not read; that is reported and counted, but is not an error. WB_E_STOPPED after a signal.
 */
int wb_linewalk_file(struct wb_linewalk *walk, const char *path, wb_linewalk_take take, void *context);

#endif
