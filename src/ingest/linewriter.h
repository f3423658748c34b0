/*
 * linewriter.h - writes a file of lines, plain or gzip'd. The file grows as NAME.tmp and gets its name when it is
 * complete, so that nobody ever reads half a file. Used by graph_export.c.
 *
 *   create -> append ... append -> finish, or abandon
 */
#ifndef WB_INGEST_LINEWRITER_H
#define WB_INGEST_LINEWRITER_H

#include "base/buf.h"

struct wb_linewriter;

/* A file whose name ends in .gz is compressed. WB_E_INVALID if the file exists and force is false. */
int wb_linewriter_create(const char *path, bool force, struct wb_linewriter **writer_out);

/* Appends bytes of lines, which include the line ends. */
int wb_linewriter_append(struct wb_linewriter *writer, const void *bytes, size_t len);

/* Makes the file durable under its name. The writer is freed even if that fails. */
int wb_linewriter_finish(struct wb_linewriter *writer);

/* Removes what was written, and frees the writer. NULL is allowed. */
void wb_linewriter_abandon(struct wb_linewriter *writer);

#endif
