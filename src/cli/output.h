/*
 * output.h - what goes to standard output. Functions return 0 or WB_E_IO; a
 * reader that went away (a closed pipe) counts as an error too, but one that
 * nobody needs to be told of.
 */
#ifndef WB_CLI_OUTPUT_H
#define WB_CLI_OUTPUT_H

#include "base/buf.h"
#include "base/json.h"

int wb_output_write(const void *bytes, size_t len);
int wb_output_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Foreign text in one line: control characters, which could steer a terminal, become '?'. */
int wb_output_text(struct wb_slice text);

/* Finished lines, shown at once: whoever reads them may act on each as it comes. Empties the buffer. */
int wb_output_lines(struct wb_buf *lines);

/* Ends the object and its line, and shows it. */
int wb_output_object(struct wb_json *j);

int wb_output_flush(void);

/*
 * As much as fd takes without waiting (wait_ms: for its first bytes up to so long), past everything that waits for a flush; name: for
 * messages. A closed pipe is an error here too.
 */
int wb_output_try(int fd, const char *name, struct wb_slice bytes, int wait_ms, size_t *taken_out);

/* All of it. A reader that has no room is waited for; after a signal only for a moment (WB_E_STOPPED). */
int wb_output_all(int fd, const char *name, struct wb_slice bytes);

/* True after an error that was a closed pipe. */
bool wb_output_gone(void);

/* "s" or "", after a number. */
const char *wb_plural(uint64_t count);

/* Replaces the control characters of text by '?', in place. */
void wb_text_clean(char *text, size_t len);

#endif
