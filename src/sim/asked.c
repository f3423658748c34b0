/*
 * asked.c - parses requests, and accepts whatever makes sense: it is the clients that are
 * under test, not this parser. It never answers.
 */
#include "sim/asked.h"
#include "base/error.h"

/* Removes the next word, up to a blank, from *line. */
static struct wb_slice cut_word(struct wb_slice *line)
{
    const char *blank = memchr(line->ptr, ' ', line->len);
    size_t n = blank ? (size_t)(blank - line->ptr) : line->len;
    struct wb_slice word = wb_slice(line->ptr, n);

    line->ptr += blank ? n + 1 : n;
    line->len -= blank ? n + 1 : n;
    return word;
}

/* True if the value contains the word anywhere, in any case. That is enough for the headers we look at. */
static bool has_word(struct wb_slice value, struct wb_slice word)
{
    for (size_t i = 0; i + word.len <= value.len; i++)
        if (wb_slice_starts_nocase(wb_slice(value.ptr + i, value.len - i), word))
            return true;
    return false;
}

/* The target "http://host/path" means "/path" on that host. */
static void split_absolute(struct wb_asked *asked)
{
    struct wb_slice scheme = WB_SLICE_LIT("http://");

    if (!wb_slice_starts_nocase(asked->target, scheme))
        return;
    asked->host = wb_slice(asked->target.ptr + scheme.len, asked->target.len - scheme.len);
    const char *slash = memchr(asked->host.ptr, '/', asked->host.len);
    if (!slash) {
        asked->target = WB_SLICE_LIT("/");
        return;
    }
    size_t n = (size_t)(slash - asked->host.ptr);
    asked->target = wb_slice(slash, asked->host.len - n);
    asked->host.len = n;
}

/* Notes the headers that influence the answer; all others are ignored. */
static void take_header(struct wb_asked *asked, struct wb_slice name, struct wb_slice value)
{
    if (wb_slice_equal_nocase(name, WB_SLICE_LIT("host"))) {
        if (asked->host.len == 0)
            asked->host = value;
    } else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("connection"))) {
        if (has_word(value, WB_SLICE_LIT("close")))
            asked->keep_alive = false;
        else if (has_word(value, WB_SLICE_LIT("keep-alive")))
            asked->keep_alive = true;
    } else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("accept-encoding")))
        asked->gzip = has_word(value, WB_SLICE_LIT("gzip"));
    else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("if-none-match")))
        asked->if_none_match = value;
    else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("if-modified-since")))
        asked->if_modified_since = value;
    else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("transfer-encoding")) ||
             (wb_slice_equal_nocase(name, WB_SLICE_LIT("content-length")) && !wb_slice_equal(value, WB_SLICE_LIT("0"))))
        asked->keep_alive = false; /* the request has a body, which we do not read */
}

/* Removes the next line from *bytes and returns it without its line end. */
static struct wb_slice cut_line(struct wb_slice *bytes)
{
    const char *end = memchr(bytes->ptr, '\n', bytes->len);
    size_t n = end ? (size_t)(end - bytes->ptr) : bytes->len;
    struct wb_slice line = wb_slice(bytes->ptr, n && bytes->ptr[n - 1] == '\r' ? n - 1 : n);

    bytes->ptr += end ? n + 1 : n;
    bytes->len -= end ? n + 1 : n;
    return line;
}

/* The length of the head including the empty line at its end, or 0 if it is not complete yet. */
static size_t head_bytes(struct wb_slice bytes)
{
    for (const char *p = bytes.ptr, *end = bytes.ptr + bytes.len; (p = memchr(p, '\n', (size_t)(end - p))) != NULL;) {
        p++;
        if (p < end && *p == '\n')
            return (size_t)(p + 1 - bytes.ptr);
        if (p + 1 < end && p[0] == '\r' && p[1] == '\n')
            return (size_t)(p + 2 - bytes.ptr);
    }
    return 0;
}

int wb_asked_parse(struct wb_slice bytes, struct wb_asked *asked_out, size_t *used_out)
{
    *asked_out = (struct wb_asked){
        .if_none_match = WB_SLICE_EMPTY, .if_modified_since = WB_SLICE_EMPTY, .host = WB_SLICE_EMPTY};
    *used_out = head_bytes(bytes);
    if (*used_out > WB_ASKED_BYTES_MAX || (*used_out == 0 && bytes.len > WB_ASKED_BYTES_MAX))
        return wb_fail(WB_E_LIMIT, "a request's head is longer than %u bytes", WB_ASKED_BYTES_MAX);
    if (*used_out == 0)
        return 0;
    struct wb_slice head = wb_slice(bytes.ptr, *used_out), line = cut_line(&head);
    asked_out->method = cut_word(&line);
    asked_out->target = cut_word(&line);
    if (!wb_slice_starts(line, WB_SLICE_LIT("HTTP/1.")))
        return wb_fail(WB_E_PROTO, "not an HTTP/1 request: %.*s", WB_SLICE_ARG(asked_out->method));
    asked_out->old = wb_slice_equal(line, WB_SLICE_LIT("HTTP/1.0"));
    asked_out->keep_alive = !asked_out->old;
    asked_out->head = wb_slice_equal(asked_out->method, WB_SLICE_LIT("HEAD"));
    split_absolute(asked_out);
    if (asked_out->target.len == 0 || asked_out->target.ptr[0] != '/')
        return wb_fail(WB_E_PROTO, "not a valid request target: %.*s", WB_SLICE_ARG(asked_out->target));
    while (head.len > 0) {
        line = cut_line(&head);
        const char *colon = memchr(line.ptr, ':', line.len);
        if (colon) {
            size_t n = (size_t)(colon - line.ptr);
            take_header(asked_out, wb_slice(line.ptr, n), wb_slice_trim(wb_slice(colon + 1, line.len - n - 1)));
        }
    }
    return 1;
}
