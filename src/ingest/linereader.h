/*
 * linereader.h - reads a file line by line, plain or gzip'd, in bounded memory whatever is in the file. Used by
 * linewalk.c.
 *
 *   open -> next ... next -> 0 at the end -> close
 */
#ifndef WB_INGEST_LINEREADER_H
#define WB_INGEST_LINEREADER_H

#include "base/buf.h"

/* The longest line that is handed out. */
#define WB_LINEREADER_LINE_MAX ((size_t)1 << 20)

struct wb_linereader;

/* The first bytes of the file decide whether it is gzip'd. */
int wb_linereader_open(const char *path, struct wb_linereader **reader_out);
void wb_linereader_close(struct wb_linereader *reader);

/*
 * Returns 1 with the next line, without its end (LF or CR LF), which is valid until the next call; 0 at the end of the
 * file. WB_E_LIMIT: the line is longer than WB_LINEREADER_LINE_MAX and was skipped; the next call goes on behind it.
 * WB_E_CORRUPT: the gzip'd data is damaged or incomplete. Other errors are the disk's.
 */
int wb_linereader_next(struct wb_linereader *reader, struct wb_slice *line_out);

/* The number of the line that was read last, from 1. */
uint64_t wb_linereader_number(const struct wb_linereader *reader);

/* Bytes of the file on disk (packed, if it is gzip'd): how many were read, and how many there are. */
void wb_linereader_progress(const struct wb_linereader *reader, uint64_t *done_out, uint64_t *size_out);

#endif
