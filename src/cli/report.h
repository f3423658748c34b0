/* report.h - one-line messages on standard error. */
#ifndef WB_CLI_REPORT_H
#define WB_CLI_REPORT_H

/* "webbase: ..." in one line, whatever is in it; a progress line is moved out of the way. */
void wb_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
