/* checked_text.c - the last line of small files of text, and taking lines off them. It reads and writes no files. */
#include "base/checked_text.h"
#include "base/check.h"
#include "base/hash.h"

#include <stdio.h>

#define CHECK_FORMAT "check %016llx\n"

int wb_checked_text_end(struct wb_buf *text)
{
    WB_CHECK(text->len > 0);
    WB_CHECK(text->ptr[text->len - 1] == '\n');
    return wb_buf_printf(text, CHECK_FORMAT, (unsigned long long)wb_hash64(text->ptr, text->len));
}

bool wb_checked_text_open(struct wb_slice bytes, struct wb_slice *lines_out)
{
    char check[WB_CHECKED_TEXT_CHECK_BYTES + 1];

    *lines_out = WB_SLICE_EMPTY;
    if (bytes.len <= WB_CHECKED_TEXT_CHECK_BYTES || memchr(bytes.ptr, '\0', bytes.len))
        return false;
    struct wb_slice lines = wb_slice(bytes.ptr, bytes.len - WB_CHECKED_TEXT_CHECK_BYTES);
    snprintf(check, sizeof check, CHECK_FORMAT, (unsigned long long)wb_hash64(lines.ptr, lines.len));
    if (lines.ptr[lines.len - 1] != '\n' || !wb_slice_ends(bytes, wb_slice_str(check)))
        return false;
    *lines_out = lines;
    return true;
}

bool wb_checked_text_take(struct wb_slice *lines, const char *name, struct wb_slice *value_out)
{
    size_t len = strlen(name);
    const char *end = lines->len ? memchr(lines->ptr, '\n', lines->len) : NULL;

    WB_CHECK(len > 0);
    *value_out = WB_SLICE_EMPTY;
    if (!end)
        return false;
    size_t line = (size_t)(end - lines->ptr);
    if (line <= len || memcmp(lines->ptr, name, len) != 0 || lines->ptr[len] != ' ')
        return false;
    *value_out = wb_slice(lines->ptr + len + 1, line - len - 1);
    *lines = wb_slice(end + 1, lines->len - line - 1);
    return true;
}
