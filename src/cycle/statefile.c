/*
 * statefile.c - the frame of the cycle's text files: first line, checksum, replacement. It never knows what they say.
 */
#include "cycle/statefile.h"
#include "base/error.h"
#include "base/hash.h"
#include "os/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    VERSION = 1,
    BYTES_MAX = 4 << 20,
    CHECK_BYTES = 6 + 16 + 1, /* "check ", digits, newline */
};

int wb_statefile_write(const char *path, const char *title, struct wb_slice lines)
{
    struct wb_buf text = WB_BUF_INIT;

    int err = wb_buf_printf(&text, "webbase %s %d\n", title, VERSION);
    if (err == 0)
        err = wb_buf_append_slice(&text, lines);
    if (err == 0)
        err = wb_buf_printf(&text, "check %016llx\n", (unsigned long long)wb_hash64(text.ptr, text.len));
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    return err;
}

static int fail_damaged(const char *path)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged", path);
}

/* Takes the first line off; WB_E_NEWER if it names a newer version. */
static int read_title(const char *path, const char *title, struct wb_slice *text)
{
    struct wb_slice name, value;
    char expected[64];
    uint64_t version;

    snprintf(expected, sizeof expected, "%s ", title);
    if (!wb_statefile_line(text, &name, &value) || !wb_slice_equal(name, WB_SLICE_LIT("webbase")) ||
        !wb_slice_starts(value, wb_slice_str(expected)))
        return fail_damaged(path);
    if (!wb_slice_to_u64(wb_slice(value.ptr + strlen(expected), value.len - strlen(expected)), &version) ||
        version == 0)
        return fail_damaged(path);
    if (version > VERSION)
        return wb_fail(WB_E_NEWER, "%s was made by a newer version", path);
    return 0;
}

int wb_statefile_read(const char *path, const char *title, struct wb_buf *mem, struct wb_slice *lines_out)
{
    struct wb_slice text;
    char check[CHECK_BYTES + 1];

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
    if (text.len < CHECK_BYTES)
        return fail_damaged(path);
    text.len -= CHECK_BYTES;
    snprintf(check, sizeof check, "check %016llx\n", (unsigned long long)wb_hash64(mem->ptr, mem->len - CHECK_BYTES));
    if (memcmp(text.ptr + text.len, check, CHECK_BYTES) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it does not match its checksum", path);
    *lines_out = text;
    return 0;
}

bool wb_statefile_line(struct wb_slice *lines, struct wb_slice *name_out, struct wb_slice *value_out)
{
    *name_out = *value_out = WB_SLICE_EMPTY;
    if (lines->len == 0)
        return false;
    const char *end = memchr(lines->ptr, '\n', lines->len);
    size_t len = end ? (size_t)(end - lines->ptr) : lines->len;
    const char *blank = memchr(lines->ptr, ' ', len);
    size_t name_len = blank ? (size_t)(blank - lines->ptr) : len;

    *name_out = wb_slice(lines->ptr, name_len);
    if (blank)
        *value_out = wb_slice(blank + 1, len - name_len - 1);
    len += end != NULL;
    lines->ptr += len;
    lines->len -= len;
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

bool wb_statefile_double(struct wb_slice value, double *number_out)
{
    char text[64], *end;

    *number_out = 0;
    if (value.len == 0 || value.len >= sizeof text)
        return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    double number = strtod(text, &end);
    if (*end || !isfinite(number))
        return false;
    *number_out = number;
    return true;
}
