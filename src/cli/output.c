/*
 * output.c - standard output, whose errors are reported like any other: a full
 * disk behind a redirection must not look like success.
 */
#include "cli/output.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>

static bool gone;

static int fail_output(void)
{
    gone = gone || errno == EPIPE;
    return wb_fail_errno("cannot write to standard output");
}

int wb_output_write(const void *bytes, size_t len)
{
    return len == 0 || fwrite(bytes, 1, len, stdout) == len ? 0 : fail_output();
}

int wb_output_printf(const char *format, ...)
{
    struct wb_buf text = WB_BUF_INIT;
    va_list args;

    va_start(args, format);
    int err = wb_buf_vprintf(&text, format, args);
    va_end(args);
    if (err == 0)
        err = wb_output_write(text.ptr, text.len);
    wb_buf_release(&text);
    return err;
}

void wb_text_clean(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            text[i] = '?';
        else if (c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0)
            text[i] = text[i + 1] = '?'; /* C1 controls in UTF-8 */
    }
}

const char *wb_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

int wb_output_text(struct wb_slice text)
{
    struct wb_buf copy = WB_BUF_INIT;

    int err = wb_buf_append_slice(&copy, text);
    if (err == 0) {
        wb_text_clean(copy.ptr, copy.len);
        err = wb_output_write(copy.ptr, copy.len);
    }
    wb_buf_release(&copy);
    return err;
}

int wb_output_lines(struct wb_buf *lines)
{
    int err = wb_output_write(lines->ptr, lines->len);

    wb_buf_clear(lines);
    return err < 0 ? err : wb_output_flush();
}

int wb_output_object(struct wb_json *j)
{
    wb_json_object_end(j);
    int err = wb_json_line(j);
    return err < 0 ? err : wb_output_lines(j->buf);
}

int wb_output_flush(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return fail_output();
    return 0;
}

bool wb_output_gone(void)
{
    return gone;
}
