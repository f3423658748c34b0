/*
 * pen.h - writes text into a buffer and remembers the first failure, so that code that writes a
 * hundred pieces needs to check for errors only once, at the end.
 */
#ifndef WB_SIM_PEN_H
#define WB_SIM_PEN_H

#include "base/buf.h"

struct wb_pen {
    struct wb_buf *buf;
    int err;
};

static inline struct wb_pen wb_pen(struct wb_buf *buf)
{
    return (struct wb_pen){buf, 0};
}

static inline void wb_pen_put(struct wb_pen *pen, const void *bytes, size_t len)
{
    if (pen->err == 0)
        pen->err = wb_buf_append(pen->buf, bytes, len);
}

static inline void wb_pen_slice(struct wb_pen *pen, struct wb_slice s)
{
    wb_pen_put(pen, s.ptr, s.len);
}

static inline void wb_pen_str(struct wb_pen *pen, const char *text)
{
    wb_pen_put(pen, text, strlen(text));
}

static inline void wb_pen_char(struct wb_pen *pen, char c)
{
    wb_pen_put(pen, &c, 1);
}

/* Writes decimal digits; printf would be too slow for the links of a page. */
static inline void wb_pen_u64(struct wb_pen *pen, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    wb_pen_put(pen, digits + at, sizeof digits - at);
}

void wb_pen_printf(struct wb_pen *pen, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
