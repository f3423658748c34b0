/*
 * error.h - error codes and the one message that goes with them.
 *
 * A function that can fail returns 0 or a negative code. The function that finds the error calls wb_fail(), which
 * writes the sentence that a person will read into a buffer of this thread and returns the code. The sentence names
 * the file, URL or option concerned. Callers pass the code up and never change the sentence:
 *
 *   if (size > max)
 *       return wb_fail(WB_E_LIMIT, "%s is larger than %zu bytes", path, max);
 *
 * The message belongs to the thread. If a worker fails, it stores code and message with wb_error_save(), and the thread
 * that waits for it brings them back with wb_error_restore(). The same two keep a message while a cleanup runs
 * that might fail itself.
 */
#ifndef WB_BASE_ERROR_H
#define WB_BASE_ERROR_H

#include <stddef.h>

/* The table of codes: name, number, and the words that are shown if there is no message. */
#define WB_ERRORS(X)                                        \
    X(WB_E_IO, -1, "input/output error")                    \
    X(WB_E_NOMEM, -2, "out of memory")                      \
    X(WB_E_LIMIT, -3, "limit exceeded")                     \
    X(WB_E_CORRUPT, -4, "damaged data")                     \
    X(WB_E_PROTO, -5, "malformed input")                    \
    X(WB_E_NOTFOUND, -6, "not found")                       \
    X(WB_E_INVALID, -7, "invalid argument")                 \
    X(WB_E_BUSY, -8, "in use by another process")           \
    X(WB_E_NEWER, -9, "made by a newer version")            \
    X(WB_E_STOPPED, -10, "stopped")                         \
    X(WB_E_DOWN, -11, "a node is down")                     \
    X(WB_E_BROKEN, -12, "damaged, and there is no way on")  \
    X(WB_E_DENIED, -13, "not permitted")                    \
    X(WB_E_CROWDED, -14, "too many at once")

enum wb_error {
    WB_OK = 0,
#define WB_ERROR_ENUM(name, number, words) name = number,
    WB_ERRORS(WB_ERROR_ENUM)
#undef WB_ERROR_ENUM
};

#define WB_ERROR_MESSAGE_MAX 1024

struct wb_error_copy {
    int code;
    char message[WB_ERROR_MESSAGE_MAX];
};

/* Sets the message of this thread and returns the code. */
int wb_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like wb_fail(WB_E_IO, ...), and appends what errno means. WB_E_NOMEM if errno is ENOMEM. */
int wb_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like wb_fail(WB_E_NOMEM, "out of memory"), but works without formatting anything. */
int wb_fail_nomem(void);

/* The last message of this thread. Never NULL; empty if nothing has failed yet. */
const char *wb_error_message(void);

/* The words of the table for a code, such as "damaged data". */
const char *wb_error_words(int code);

/*
 * Callers that walk over a structure continue after WB_E_CORRUPT. So a function that cannot go on behind damage, and
 * would find it again at every call, returns wb_error_break(err): WB_E_CORRUPT becomes WB_E_BROKEN, which ends the
 * walk. Other codes, and the message, stay as they are.
 */
int wb_error_break(int code);

/* Copies the message of this thread; puts it back and returns the code. */
void wb_error_save(int code, struct wb_error_copy *copy_out);
int wb_error_restore(const struct wb_error_copy *copy);

#endif
