/*
 * linefile.h - files of lines, plain or gzip'd, in and out. Lines are read in bounded memory, whatever is in the file; a file
 * that is written grows as NAME.tmp and gets its name when it is whole.
 */
#ifndef WB_CLI_LINEFILE_H
#define WB_CLI_LINEFILE_H

#include "base/buf.h"

/* Nothing that is longer is a line. */
#define WB_LINE_MAX ((size_t)1 << 20)

/* ---- reading ---------------------------------------------------------------------------------- */

struct wb_linereader;

/* The first bytes say whether it is gzip'd. */
int wb_linereader_open(const char *path, struct wb_linereader **reader_out);
void wb_linereader_close(struct wb_linereader *reader);

/*
 * 1 with the next line, without its end (LF or CR LF), until the next call; 0 at the end. WB_E_LIMIT: a line longer than WB_LINE_MAX, which
 * was passed over. WB_E_CORRUPT: gzip that breaks off or is damaged; other errors are of the disk.
 */
int wb_linereader_next(struct wb_linereader *reader, struct wb_slice *line_out);

/* The number of the line that was read last, from 1; the path. */
uint64_t wb_linereader_number(const struct wb_linereader *reader);
const char *wb_linereader_path(const struct wb_linereader *reader);

/* Bytes of the file as it lies on disk: read, and all. */
void wb_linereader_progress(const struct wb_linereader *reader, uint64_t *done_out, uint64_t *size_out);

/* ---- writing ----------------------------------------------------------------------------------- */

struct wb_linewriter;

/* A name that ends in .gz is written compressed. WB_E_INVALID where the file is there already and force is false. */
int wb_linewriter_create(const char *path, bool force, struct wb_linewriter **writer_out);

/* Bytes of lines, line ends included. */
int wb_linewriter_append(struct wb_linewriter *writer, const void *bytes, size_t len);

/* Makes the file durable under its name. The writer is freed in any case. */
int wb_linewriter_finish(struct wb_linewriter *writer);

/* Removes what was written. NULL is allowed. */
void wb_linewriter_abandon(struct wb_linewriter *writer);

#endif
