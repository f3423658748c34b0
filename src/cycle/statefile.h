/*
 * statefile.h - small text files that are always replaced as a whole: a first line with the kind of file and its
 * version, lines of the form "name value", and a checksum.
 *
 *   webbase cycle 1
 *   ...
 *   check 0123456789abcdef
 *
 * A file is valid if and only if the first line names the format that we know, and `check` is the XXH3 hash (64 bits,
 * hexadecimal) of everything before that line. The format is read before the checksum is verified, because another
 * format may compute it differently.
 */
#ifndef WB_CYCLE_STATEFILE_H
#define WB_CYCLE_STATEFILE_H

#include "base/buf.h"

/* title: the kind of file, such as "cycle". Each line in lines ends in a newline. */
int wb_statefile_write(const char *path, const char *title, struct wb_slice lines);

/* lines_out borrows from mem. WB_E_NOTFOUND; WB_E_NEWER; WB_E_CORRUPT. */
int wb_statefile_read(const char *path, const char *title, struct wb_buf *mem, struct wb_slice *lines_out);

/* Splits the next line at its first blank; false at the end. */
bool wb_statefile_line(struct wb_slice *lines, struct wb_slice *name_out, struct wb_slice *value_out);

/* Reads a number; false if value contains anything else. wb_slice_to_u64() and wb_slice_to_double() read the others. */
bool wb_statefile_i64(struct wb_slice value, int64_t *number_out);

#endif
