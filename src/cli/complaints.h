/* complaints.h - bad lines of a file: counted, the first few told on standard error with file and line. */
#ifndef WB_CLI_COMPLAINTS_H
#define WB_CLI_COMPLAINTS_H

#include "cli/linefile.h"

struct wb_complaints {
    uint64_t count;
    uint64_t unfinished; /* files that could not be read to their end */
};

void wb_complain(struct wb_complaints *complaints, const struct wb_linereader *reader, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Calls take() for each line until it fails; a line that it calls bad (WB_E_PROTO, with a message) is complained of, as is a line
 * that is too long. Where the file is damaged the rest is not read, which is told and counted. WB_E_STOPPED after a signal.
 */
typedef int (*wb_line_take)(void *context, struct wb_slice line);
int wb_lines_each(const char *path, struct wb_complaints *complaints, wb_line_take take, void *context);

#endif
