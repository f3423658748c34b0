/* pen.c - the function of pen.h that cannot be inline. */
#include "sim/pen.h"

void wb_pen_printf(struct wb_pen *pen, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (pen->err == 0)
        pen->err = wb_buf_vprintf(pen->buf, format, args);
    va_end(args);
}
