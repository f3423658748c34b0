/*
 * error.h - error codes and the one message that goes with them.
 *
 * A function that can fail returns 0 or a negative code. Where the fact is
 * known, wb_fail() writes the sentence a person will read (naming the file, URL
 * or option) into a buffer of this thread and returns the code; callers pass the
 * code up and never rewrite the sentence. A thread that hands work to another
 * carries the message across with wb_error_copy() and wb_error_restore().
 */
#ifndef WB_BASE_ERROR_H
#define WB_BASE_ERROR_H

#include <stddef.h>

/* The table of codes: name, number, the words used where nothing better is known. */
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
    X(WB_E_STOPPED, -10, "stopped")

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

/* Sets this thread's message and returns code, so that `return wb_fail(...)` reads well. */
int wb_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like wb_fail(WB_E_IO, ...) with ": " and the words for errno appended; WB_E_NOMEM for ENOMEM. */
int wb_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* wb_fail(WB_E_NOMEM, ...); kept apart because it must not allocate or format. */
int wb_fail_nomem(void);

/* The last message of this thread; never NULL. */
const char *wb_error_message(void);

/* The words of the table for a code. */
const char *wb_error_words(int code);

void wb_error_save(int code, struct wb_error_copy *copy_out);
int wb_error_restore(const struct wb_error_copy *copy);

#endif
