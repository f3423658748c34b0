/*
 * statefile.h - small text files that are replaced whole: a first line that says what it is, lines "name value", a checksum.
 *
 *   webbase cycle 1
 *   ...
 *   check 0123456789abcdef
 *
 * Valid if and only if the first line is that of a version which is known and `check` is XXH3 (64 bits,
 * hexadecimal) of everything before its line. A higher version is believed before the checksum is looked at.
 */
#ifndef WB_CYCLE_STATEFILE_H
#define WB_CYCLE_STATEFILE_H

#include "base/buf.h"

/* lines: each with its line end. title: "cycle". */
int wb_statefile_write(const char *path, const char *title, struct wb_slice lines);

/* lines_out borrows from mem. WB_E_NOTFOUND; WB_E_NEWER; WB_E_CORRUPT. */
int wb_statefile_read(const char *path, const char *title, struct wb_buf *mem, struct wb_slice *lines_out);

/* The next line, cut at its first blank; false at the end. */
bool wb_statefile_line(struct wb_slice *lines, struct wb_slice *name_out, struct wb_slice *value_out);

/* Numbers as they stand in lines; false where there is anything else. */
bool wb_statefile_i64(struct wb_slice value, int64_t *number_out);
bool wb_statefile_double(struct wb_slice value, double *number_out);

#endif
