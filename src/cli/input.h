/* input.h - standard input, for commands that take "-" as a file. */
#ifndef WB_CLI_INPUT_H
#define WB_CLI_INPUT_H

#include "base/buf.h"

/*
 * Reads the next line without its end. Of a line that is longer than max bytes, max + 1 bytes are kept, so that the
 * caller can tell; the rest is skipped. False at the end of the input, or if *err_out is negative.
 */
bool wb_input_line(struct wb_buf *line, size_t max, int *err_out);

/* Reads everything, but not more than max bytes. Not to be mixed with wb_input_line(). */
int wb_input_all(struct wb_buf *bytes_out, size_t max);

#endif
