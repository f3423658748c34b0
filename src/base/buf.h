/*
 * buf.h - owned bytes that grow. struct wb_slice borrows bytes, struct wb_buf owns them.
 *
 *   ptr -> [ len bytes | room, up to cap ]
 *
 *   struct wb_buf line = WB_BUF_INIT;
 *   int err = wb_buf_printf(&line, "%s: %d\n", name, count);
 *   if (err == 0)
 *       err = write_line(wb_buf_slice(&line));
 *   wb_buf_release(&line);
 *
 * The bytes are not NUL-terminated (but see wb_buf_terminate). Appending may move them, so pointers into a buffer are
 * good only until then. Functions that append return 0, or WB_E_NOMEM with the buffer unchanged.
 */
#ifndef WB_BASE_BUF_H
#define WB_BASE_BUF_H

#include "base/slice.h"

#include <stdarg.h>

struct wb_buf {
    char *ptr;
    size_t len;
    size_t cap;
};

#define WB_BUF_INIT ((struct wb_buf){NULL, 0, 0})

/* Makes room for `more` bytes behind len. The room grows by half at least, so that many appends cost O(n) in total. */
int wb_buf_reserve(struct wb_buf *buf, size_t more);

int wb_buf_append_grown(struct wb_buf *buf, const void *bytes, size_t len); /* when there may be no room yet */

static inline int wb_buf_append(struct wb_buf *buf, const void *bytes, size_t len)
{
    if (len > buf->cap - buf->len || len == 0)
        return wb_buf_append_grown(buf, bytes, len);
    memcpy(buf->ptr + buf->len, bytes, len);
    buf->len += len;
    return 0;
}

static inline int wb_buf_append_slice(struct wb_buf *buf, struct wb_slice s)
{
    return wb_buf_append(buf, s.ptr, s.len);
}

static inline int wb_buf_append_char(struct wb_buf *buf, char c)
{
    return wb_buf_append(buf, &c, 1);
}

int wb_buf_append_str(struct wb_buf *buf, const char *text);
int wb_buf_printf(struct wb_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int wb_buf_vprintf(struct wb_buf *buf, const char *format, va_list args);

/* Appends text for a URL: letters and digits of ASCII and the characters of `plain` stay, others become %XX. */
int wb_buf_append_escaped(struct wb_buf *buf, struct wb_slice text, const char *plain);

/* The shortest of 15 to 17 significant digits from which the same number is read again. It must be finite. */
int wb_buf_append_double(struct wb_buf *buf, double number);

/* Puts a NUL behind the last byte, for functions that want a C string. It is not counted in len. */
int wb_buf_terminate(struct wb_buf *buf);

/* Forgets the bytes and keeps the memory for the next ones. */
void wb_buf_clear(struct wb_buf *buf);

/* Gives back room beyond cap bytes, but never bytes that are in use. If that fails, the buffer stays as it is. */
void wb_buf_trim(struct wb_buf *buf, size_t cap);

/* Frees the memory. The buffer is empty (WB_BUF_INIT) and can be used again. */
void wb_buf_release(struct wb_buf *buf);

/* Moves the bytes out: the caller owns the result, and the source is empty. */
struct wb_buf wb_buf_take(struct wb_buf *buf);

static inline struct wb_slice wb_buf_slice(const struct wb_buf *buf)
{
    return wb_slice(buf->ptr ? buf->ptr : "", buf->len);
}

#endif
