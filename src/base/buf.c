/* buf.c - appending to owned bytes. Memory grows by half at least, and shrinks only in wb_buf_trim(). */
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int wb_buf_reserve(struct wb_buf *buf, size_t more)
{
    WB_CHECK(buf->len <= buf->cap);
    if (buf->cap - buf->len >= more)
        return 0;
    if (more > SIZE_MAX / 2 - buf->len)
        return wb_fail_nomem();
    size_t want = buf->len + more;
    size_t grown = buf->cap + buf->cap / 2;
    if (grown < want)
        grown = want;
    if (grown < 64)
        grown = 64;
    char *ptr = wb_realloc(buf->ptr, grown);
    if (!ptr)
        return WB_E_NOMEM;
    buf->ptr = ptr;
    buf->cap = grown;
    return 0;
}

int wb_buf_append_grown(struct wb_buf *buf, const void *bytes, size_t len)
{
    int err = wb_buf_reserve(buf, len);

    if (err < 0)
        return err;
    if (len)
        memcpy(buf->ptr + buf->len, bytes, len);
    buf->len += len;
    return 0;
}

int wb_buf_append_str(struct wb_buf *buf, const char *text)
{
    return wb_buf_append(buf, text, strlen(text));
}

int wb_buf_vprintf(struct wb_buf *buf, const char *format, va_list args)
{
    va_list again;
    int need, err;

    va_copy(again, args);
    need = vsnprintf(NULL, 0, format, args);
    WB_CHECK(need >= 0);
    err = wb_buf_reserve(buf, (size_t)need + 1);
    if (err == 0) {
        vsnprintf(buf->ptr + buf->len, (size_t)need + 1, format, again);
        buf->len += (size_t)need;
    }
    va_end(again);
    return err;
}

int wb_buf_append_escaped(struct wb_buf *buf, struct wb_slice text, const char *plain)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < text.len; i++) {
        char c = text.ptr[i], lower = wb_ascii_lower(c);
        if ((lower >= 'a' && lower <= 'z') || wb_ascii_is_digit(c) || (c && strchr(plain, c)))
            err = wb_buf_append_char(buf, c);
        else
            err = wb_buf_printf(buf, "%%%02X", (unsigned)(unsigned char)c);
    }
    return err;
}

int wb_buf_printf(struct wb_buf *buf, const char *format, ...)
{
    va_list args;
    int err;

    va_start(args, format);
    err = wb_buf_vprintf(buf, format, args);
    va_end(args);
    return err;
}

int wb_buf_append_double(struct wb_buf *buf, double number)
{
    char text[32];

    WB_CHECK(isfinite(number));
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return wb_buf_append_str(buf, text);
}

int wb_buf_terminate(struct wb_buf *buf)
{
    int err = wb_buf_reserve(buf, 1);

    if (err == 0)
        buf->ptr[buf->len] = '\0';
    return err;
}

void wb_buf_clear(struct wb_buf *buf)
{
    WB_CHECK(buf->len <= buf->cap);
    buf->len = 0;
}

void wb_buf_trim(struct wb_buf *buf, size_t cap)
{
    WB_CHECK(buf->len <= buf->cap);
    if (cap < buf->len)
        cap = buf->len;
    if (cap == 0 || cap >= buf->cap) /* an empty buffer is given back by wb_buf_release() */
        return;
    char *smaller = wb_realloc(buf->ptr, cap);
    if (!smaller)
        return;
    buf->ptr = smaller;
    buf->cap = cap;
}

void wb_buf_release(struct wb_buf *buf)
{
    wb_free(buf->ptr);
    *buf = WB_BUF_INIT;
}

struct wb_buf wb_buf_take(struct wb_buf *buf)
{
    struct wb_buf taken = *buf;

    *buf = WB_BUF_INIT;
    return taken;
}
