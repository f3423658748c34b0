/*
 * error.c - the message of the last failure, one per thread.
 *
 * The buffer is static memory of the thread, so that a message can always be set, also when memory has run out. A
 * message that is too long is cut.
 */
#include "base/error.h"
#include "base/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[WB_ERROR_MESSAGE_MAX];

int wb_fail(int code, const char *format, ...)
{
    va_list args;

    WB_CHECK(code < 0);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

/* Says how to raise the limits that an administrator has set, because the words for errno do not. */
static const char *advice(int number)
{
    switch (number) {
    case EMFILE:
        return " (raise the limit with ulimit -n)";
    case EFBIG:
        return " (see ulimit -f)";
    default:
        return "";
    }
}

int wb_fail_errno(const char *format, ...)
{
    int number = errno;
    char words[128];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    size_t used = strlen(message);
    /* The GNU form of strerror_r: it returns the words, which are in our buffer or in static memory. */
    snprintf(message + used, sizeof message - used, ": %s%s", strerror_r(number, words, sizeof words), advice(number));
    return number == ENOMEM ? WB_E_NOMEM : WB_E_IO;
}

int wb_fail_nomem(void)
{
    memcpy(message, "out of memory", sizeof "out of memory");
    return WB_E_NOMEM;
}

const char *wb_error_message(void)
{
    return message;
}

const char *wb_error_words(int code)
{
    switch (code) {
#define WB_ERROR_CASE(name, number, words) \
    case name:                             \
        return words;
        WB_ERRORS(WB_ERROR_CASE)
#undef WB_ERROR_CASE
    default:
        return "no error";
    }
}

void wb_error_save(int code, struct wb_error_copy *copy_out)
{
    copy_out->code = code;
    memcpy(copy_out->message, message, sizeof message);
}

int wb_error_restore(const struct wb_error_copy *copy)
{
    WB_CHECK(copy->code <= 0);
    memcpy(message, copy->message, sizeof message);
    return copy->code;
}

int wb_error_break(int code)
{
    return code == WB_E_CORRUPT ? WB_E_BROKEN : code;
}
