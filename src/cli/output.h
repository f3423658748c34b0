/*
 * output.h - standard output: words for people, and with --json one object per line for programs.
 *
 * What is written waits in a buffer until it is large enough, a line for a terminal ends, or somebody flushes.
 * Functions return 0 or a negative code. If the reader of a pipe has gone away, that is an error too, but main.c does
 * not report it. For one thread.
 */
#ifndef WB_CLI_OUTPUT_H
#define WB_CLI_OUTPUT_H

#include "base/buf.h"
#include "base/json.h"

/* ---- words ------------------------------------------------------------------------------------- */

int wb_output_write(const void *bytes, size_t len);
int wb_output_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes text from elsewhere in one line: control characters, which could steer a terminal, become '?'. */
int wb_output_text(struct wb_slice text);

/* Writes "KIND: FILE at OFFSET: MESSAGE", for something that a check has found. */
int wb_output_finding(const char *kind, const char *file, uint64_t offset, const char *message);

/* "s" or "", after a number. */
const char *wb_output_plural(uint64_t count);

/* Replaces the control characters of text by '?', in place. */
void wb_output_clean(char *text, size_t len);

/* ---- JSON -------------------------------------------------------------------------------------- */

/*
 * One object of the output:
 *
 *   wb_output_object_begin(&j, "done");
 *   wb_json_field_u64(&j, "pages", pages);
 *   return wb_output_object_end(&j);
 *
 * event is the value of the field "event", which comes first; NULL: the object has no such field. Only one object can
 * be under way at a time. _end() prints the object at once, because programs act on each line as it comes; _queue()
 * lets it wait in the buffer, which is cheaper if there are many.
 */
void wb_output_object_begin(struct wb_json *j, const char *event);
int wb_output_object_end(struct wb_json *j);
int wb_output_object_queue(struct wb_json *j);

/* Prints complete lines at once, and empties the buffer that they are in. */
int wb_output_lines(struct wb_buf *lines);

/* ---- below ------------------------------------------------------------------------------------- */

/* Writes everything that waits in the buffer. */
int wb_output_flush(void);

/*
 * Writes as much to fd as it takes without waiting; for its first bytes it waits up to wait_ms. Goes past everything
 * that waits in the buffer. name is for messages. A closed pipe is an error here too.
 */
int wb_output_try(int fd, const char *name, struct wb_slice bytes, int wait_ms, size_t *taken_out);

/* Writes all of it. Waits for a reader that has no room, but after a signal only for a moment (WB_E_STOPPED). */
int wb_output_all(int fd, const char *name, struct wb_slice bytes);

/* True after an error that was a closed pipe. */
bool wb_output_gone(void);

#endif
