/*
 * xcrawl.c - renames HTTP headers that no longer describe their body, and restores them.
 *
 * It works on lines and keeps their order and spelling, so that undo after write gives back
 * the head byte for byte (if its lines ended in CRLF). It never looks at a body.
 */
#include "warc/xcrawl.h"

#include <inttypes.h>

static const struct wb_slice PREFIX = {"X-Crawl-", 8};
static const struct wb_slice LENGTH = {"Content-Length", 14};

static bool is_coding(struct wb_slice name)
{
    return wb_slice_equal_nocase(name, WB_SLICE_LIT("Content-Encoding")) ||
           wb_slice_equal_nocase(name, WB_SLICE_LIT("Transfer-Encoding"));
}

/* Removes the next line, including its line end, from *rest. */
static struct wb_slice next_line(struct wb_slice *rest)
{
    const char *lf = memchr(rest->ptr, '\n', rest->len);
    size_t len = lf ? (size_t)(lf + 1 - rest->ptr) : rest->len;
    struct wb_slice line = wb_slice(rest->ptr, len);

    *rest = wb_slice(rest->ptr + len, rest->len - len);
    return line;
}

static struct wb_slice without_end(struct wb_slice line)
{
    if (line.len > 0 && line.ptr[line.len - 1] == '\n')
        line.len--;
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* The name of a header line; empty if the line is not a header (a continuation, or no colon). */
static struct wb_slice name_of(struct wb_slice line)
{
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

    if (!colon || line.ptr[0] == ' ' || line.ptr[0] == '\t')
        return WB_SLICE_EMPTY;
    return wb_slice_trim(wb_slice(line.ptr, (size_t)(colon - line.ptr)));
}

static struct wb_slice value_of(struct wb_slice line)
{
    const char *colon = memchr(line.ptr, ':', line.len);

    return wb_slice_trim(wb_slice(colon + 1, line.len - (size_t)(colon + 1 - line.ptr)));
}

int wb_xcrawl_write(struct wb_slice head, uint64_t body_len, struct wb_buf *out)
{
    struct wb_slice rest = head;
    bool first = true;
    int err = 0;

    while (err == 0 && rest.len > 0) {
        struct wb_slice line = without_end(next_line(&rest));
        struct wb_slice name = first ? WB_SLICE_EMPTY : name_of(line);
        uint64_t length = 0;
        bool is_length = wb_slice_equal_nocase(name, LENGTH);
        bool wrong = is_length && (!wb_slice_to_u64(value_of(line), &length) || length != body_len);
        first = false;
        if (line.len == 0) /* an empty line would end the head */
            continue;
        if (wrong || is_coding(name))
            err = wb_buf_append_slice(out, PREFIX);
        if (err == 0)
            err = wb_buf_append_slice(out, line);
        if (err == 0)
            err = wb_buf_append_str(out, "\r\n");
        if (err == 0 && wrong)
            err = wb_buf_printf(out, "Content-Length: %" PRIu64 "\r\n", body_len);
    }
    return err;
}

/* The original name behind X-Crawl-, or empty if this is not one of the three renamed headers. */
static struct wb_slice original_name(struct wb_slice name)
{
    if (!wb_slice_starts_nocase(name, PREFIX))
        return WB_SLICE_EMPTY;
    struct wb_slice bare = wb_slice(name.ptr + PREFIX.len, name.len - PREFIX.len);
    return is_coding(bare) || wb_slice_equal_nocase(bare, LENGTH) ? bare : WB_SLICE_EMPTY;
}

bool wb_xcrawl_has(struct wb_slice head)
{
    struct wb_slice rest = head;

    while (rest.len > 0)
        if (original_name(name_of(next_line(&rest))).len > 0)
            return true;
    return false;
}

int wb_xcrawl_undo(struct wb_slice head, struct wb_buf *out)
{
    struct wb_slice rest = head;
    bool drop_length = false;
    int err = 0;

    while (err == 0 && rest.len > 0) {
        struct wb_slice line = next_line(&rest);
        struct wb_slice name = name_of(line);
        struct wb_slice bare = original_name(name);
        bool dropped = drop_length && wb_slice_equal_nocase(name, LENGTH);
        drop_length = wb_slice_equal_nocase(bare, LENGTH);
        if (dropped)
            continue;
        if (bare.len > 0)
            line = wb_slice(bare.ptr, (size_t)(line.ptr + line.len - bare.ptr));
        err = wb_buf_append_slice(out, line);
    }
    return err;
}
