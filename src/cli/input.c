/* input.c - reads standard input in bounded memory, whatever comes. */
#include "cli/input.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 10)

static int fail_input(void)
{
    return wb_fail_errno("cannot read standard input");
}

bool wb_input_line(struct wb_buf *line, size_t max, int *err_out)
{
    int c;

    wb_buf_clear(line);
    *err_out = 0;
    while ((c = getc_unlocked(stdin)) != EOF && c != '\n')
        if (line->len <= max && (*err_out = wb_buf_append_char(line, (char)c)) < 0)
            return false;
    if (c == EOF && ferror(stdin)) {
        *err_out = fail_input();
        return false;
    }
    if (line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    return c != EOF || line->len > 0;
}

int wb_input_all(struct wb_buf *bytes_out, size_t max)
{
    ssize_t got = 1;

    wb_buf_clear(bytes_out);
    while (got && bytes_out->len < max) {
        size_t room = max - bytes_out->len < CHUNK_BYTES ? max - bytes_out->len : CHUNK_BYTES;
        int err = wb_buf_reserve(bytes_out, room);
        if (err < 0)
            return err;
        do
            got = read(STDIN_FILENO, bytes_out->ptr + bytes_out->len, room);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return fail_input();
        bytes_out->len += (size_t)got;
    }
    return 0;
}
