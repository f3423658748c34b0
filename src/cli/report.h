/* report.h - one-line messages on standard error. */
#ifndef WB_CLI_REPORT_H
#define WB_CLI_REPORT_H

struct wb_ingest_error;

/* "webbase: ..." in one line, whatever is in it; a progress line is moved out of the way. */
void wb_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for something that an import could not read. 0 or WB_E_NOMEM. */
int wb_report_ingest(const struct wb_ingest_error *error);

#endif
