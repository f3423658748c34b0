/* buf.h - owned, growing bytes. A released or never used buffer is WB_BUF_INIT. */
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

/* Room for `more` bytes after len; grows by at least half, so appending is linear. */
int wb_buf_reserve(struct wb_buf *buf, size_t more);
int wb_buf_append(struct wb_buf *buf, const void *bytes, size_t len);
int wb_buf_append_slice(struct wb_buf *buf, struct wb_slice s);
int wb_buf_append_str(struct wb_buf *buf, const char *text);
int wb_buf_append_char(struct wb_buf *buf, char c);
int wb_buf_printf(struct wb_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int wb_buf_vprintf(struct wb_buf *buf, const char *format, va_list args);

/* A NUL after the last byte, not counted in len. */
int wb_buf_terminate(struct wb_buf *buf);

void wb_buf_clear(struct wb_buf *buf);
void wb_buf_release(struct wb_buf *buf);

/* Moves the bytes out; the source is empty afterwards. */
struct wb_buf wb_buf_take(struct wb_buf *buf);

static inline struct wb_slice wb_buf_slice(const struct wb_buf *buf)
{
    return wb_slice(buf->ptr ? buf->ptr : "", buf->len);
}

#endif
