/*
 * statefile.c - the frame of the cycle's text files: first line, checksum, replacement. It never knows what they say.
 */
#include "cycle/statefile.h"
#include "base/check.h"
#include "base/checked_text.h"
#include "base/error.h"
#include "base/format.h"
#include "os/path.h"

#include <stdio.h>

enum { FORMAT = 1, BYTES_MAX = 4 << 20 };

int wb_statefile_write(const char *path, const char *title, struct wb_slice lines)
{
    struct wb_buf text = WB_BUF_INIT;

    WB_CHECK(lines.len == 0 || lines.ptr[lines.len - 1] == '\n');
    int err = wb_buf_printf(&text, "webbase %s %d\n", title, FORMAT);
    if (err == 0)
        err = wb_buf_append_slice(&text, lines);
    if (err == 0)
        err = wb_checked_text_end(&text);
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    return err;
}

static int fail_damaged(const char *path)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged", path);
}

/* Takes the first line off; WB_E_NEWER if it names another format. */
static int read_title(const char *path, const char *title, struct wb_slice *text)
{
    struct wb_slice name, value;
    char expected[64];
    uint64_t format;

    WB_CHECK(strlen(title) + 2 <= sizeof expected);
    snprintf(expected, sizeof expected, "%s ", title);
    if (!wb_statefile_line(text, &name, &value) || !wb_slice_equal(name, WB_SLICE_LIT("webbase")) ||
        !wb_slice_starts(value, wb_slice_str(expected)))
        return fail_damaged(path);
    if (!wb_slice_to_u64(wb_slice(value.ptr + strlen(expected), value.len - strlen(expected)), &format) || format == 0)
        return fail_damaged(path);
    if (format != FORMAT)
        return wb_fail_format(path, format, FORMAT);
    return 0;
}

int wb_statefile_read(const char *path, const char *title, struct wb_buf *mem, struct wb_slice *lines_out)
{
    struct wb_slice text, covered;

    *lines_out = WB_SLICE_EMPTY;
    wb_buf_release(mem);
    if (wb_path_kind(path) == WB_PATH_NONE)
        return wb_fail(WB_E_NOTFOUND, "there is no %s", path);
    int err = wb_path_read(path, BYTES_MAX, mem);
    if (err < 0)
        return err;
    text = wb_buf_slice(mem);
    err = read_title(path, title, &text);
    if (err < 0)
        return err;
    if (text.len < WB_CHECKED_TEXT_CHECK_BYTES)
        return fail_damaged(path);
    if (!wb_checked_text_open(wb_buf_slice(mem), &covered))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it does not match its checksum", path);
    *lines_out = wb_slice(text.ptr, text.len - WB_CHECKED_TEXT_CHECK_BYTES);
    return 0;
}

bool wb_statefile_line(struct wb_slice *lines, struct wb_slice *name_out, struct wb_slice *value_out)
{
    *value_out = WB_SLICE_EMPTY;
    if (!wb_slice_next_line(lines, name_out))
        return false;
    const char *blank = name_out->len ? memchr(name_out->ptr, ' ', name_out->len) : NULL;
    if (blank) {
        *value_out = wb_slice(blank + 1, (size_t)(name_out->ptr + name_out->len - blank - 1));
        name_out->len = (size_t)(blank - name_out->ptr);
    }
    return true;
}

bool wb_statefile_i64(struct wb_slice value, int64_t *number_out)
{
    bool negative = value.len && value.ptr[0] == '-';
    uint64_t number;

    *number_out = 0;
    if (negative)
        value = wb_slice(value.ptr + 1, value.len - 1);
    if (!wb_slice_to_u64(value, &number) || number > INT64_MAX)
        return false;
    *number_out = negative ? -(int64_t)number : (int64_t)number;
    return true;
}
