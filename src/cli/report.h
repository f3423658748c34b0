/* report.h - messages of one line for people, on standard error. */
#ifndef WB_CLI_REPORT_H
#define WB_CLI_REPORT_H

struct wb_ingest_error;

/*
 * Prints "webbase: ..." in one line, whatever the text contains, after removing the progress line. The message of the
 * current error (wb_error_message) survives.
 */
void wb_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The same for the current error, of a damaged place: only the first ones are shown, because one bit can damage a lot.
 * The caller counts the places, and says at the end how many there were.
 */
void wb_report_damage(void);

/* Prints what an import could not read. 0 or WB_E_NOMEM. */
int wb_report_ingest(const struct wb_ingest_error *error);

#endif
