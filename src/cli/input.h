/* input.h - lines of standard input. */
#ifndef WB_CLI_INPUT_H
#define WB_CLI_INPUT_H

#include "base/buf.h"

/*
 * The next line of standard input without its end, at most max + 1 bytes of it: what is
 * longer is passed over. False at the end, or where *err_out says what went wrong.
 */
bool wb_input_line(struct wb_buf *line, size_t max, int *err_out);

/* All of standard input, or its first max bytes. */
int wb_input_all(struct wb_buf *bytes_out, size_t max);

#endif
