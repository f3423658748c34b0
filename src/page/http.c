/*
 * http.c - finds the parts of an HTTP response: status line, headers, body.
 *
 * It never changes a byte and never interprets a header. It tolerates LF instead of CRLF, folded
 * lines, lines without a colon (which it skips), and a head without a blank line at its end.
 */
#include "page/page.h"

#include "base/error.h"

/* A longer head is not accepted. */
#define HEAD_MAX ((size_t)1 << 20)

/* The status of "HTTP/1.1 200 OK" is 200; 0 if this is not a status line. */
static uint16_t status_of(struct wb_slice line)
{
    size_t at = 5;

    if (!wb_slice_starts_nocase(line, WB_SLICE_LIT("HTTP/")))
        return 0;
    while (at < line.len && (wb_ascii_is_digit(line.ptr[at]) || line.ptr[at] == '.'))
        at++;
    if (at == 5 || at == line.len || line.ptr[at] != ' ')
        return 0;
    while (at < line.len && line.ptr[at] == ' ')
        at++;
    if (line.len - at < 3 || !wb_ascii_is_digit(line.ptr[at]) || !wb_ascii_is_digit(line.ptr[at + 1]) ||
        !wb_ascii_is_digit(line.ptr[at + 2]))
        return 0;
    if (line.len - at > 3 && wb_ascii_is_digit(line.ptr[at + 3]))
        return 0;
    int status = (line.ptr[at] - '0') * 100 + (line.ptr[at + 1] - '0') * 10 + (line.ptr[at + 2] - '0');
    return (uint16_t)(status >= 100 ? status : 0);
}

/* Returns the length of the line at `at` with its line end; *len_out is its length without it. */
static size_t line_at(struct wb_slice text, size_t at, size_t *len_out)
{
    const char *lf = memchr(text.ptr + at, '\n', text.len - at);
    size_t whole = lf ? (size_t)(lf + 1 - text.ptr) - at : text.len - at;
    size_t len = whole - (lf ? 1 : 0);

    if (len > 0 && lf && text.ptr[at + len - 1] == '\r')
        len--;
    *len_out = len;
    return whole;
}

int wb_http_split(struct wb_slice message, struct wb_http_head *head_out)
{
    size_t at = 0, len = 0;
    struct wb_slice text = wb_slice(message.ptr, message.len < HEAD_MAX ? message.len : HEAD_MAX);

    *head_out = (struct wb_http_head){.raw = WB_SLICE_EMPTY, .body = WB_SLICE_EMPTY};
    size_t whole = text.len ? line_at(text, 0, &len) : 0;
    uint16_t status = status_of(wb_slice(text.ptr, len));
    if (status == 0)
        return wb_fail(WB_E_PROTO, "not an HTTP response: no status line");
    for (at = whole; at < text.len; at += whole) {
        whole = line_at(text, at, &len);
        if (len == 0)
            break;
    }
    if (at >= text.len && message.len > text.len)
        return wb_fail(WB_E_PROTO, "not an HTTP response: its headers do not end");
    head_out->status = status;
    head_out->raw = wb_slice(message.ptr, at);
    if (at < text.len)
        head_out->body = wb_slice(message.ptr + at + whole, message.len - at - whole);
    return 0;
}

bool wb_http_field_next(struct wb_slice lines, size_t *at, struct wb_slice *name_out, struct wb_slice *value_out)
{
    *name_out = *value_out = WB_SLICE_EMPTY;
    while (*at < lines.len) {
        size_t start = *at, len;
        *at += line_at(lines, start, &len);
        const char *line = lines.ptr + start;
        const char *colon = memchr(line, ':', len);
        if (!colon || line[0] == ' ' || line[0] == '\t')
            continue;
        /* A line that starts with a blank continues the value of the line before it. */
        while (*at < lines.len && (lines.ptr[*at] == ' ' || lines.ptr[*at] == '\t')) {
            size_t from = *at;
            *at += line_at(lines, from, &len);
            len += from - start;
        }
        *name_out = wb_slice_trim(wb_slice(line, (size_t)(colon - line)));
        *value_out = wb_slice_trim(wb_slice(colon + 1, len - (size_t)(colon + 1 - line)));
        return true;
    }
    return false;
}

bool wb_http_header_next(struct wb_slice head, size_t *at, struct wb_slice *name_out, struct wb_slice *value_out)
{
    size_t len;

    if (*at == 0 && head.len > 0)
        *at = line_at(head, 0, &len);
    return wb_http_field_next(head, at, name_out, value_out);
}

bool wb_http_header(struct wb_slice head, const char *name, struct wb_slice *value_out)
{
    struct wb_slice want = wb_slice_str(name), found;
    size_t at = 0;

    while (wb_http_header_next(head, &at, &found, value_out))
        if (wb_slice_equal_nocase(found, want))
            return true;
    *value_out = WB_SLICE_EMPTY;
    return false;
}

bool wb_http_status_redirects(uint16_t status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

struct wb_slice wb_http_agent_token(struct wb_slice agent)
{
    size_t len = 0;

    while (len < agent.len && agent.ptr[len] != ' ' && agent.ptr[len] != '\t' && agent.ptr[len] != '/')
        len++;
    return wb_slice(agent.ptr, len);
}
