/*
 * http.c - finds the parts of an HTTP response: status line, headers, body.
 *
 * It never changes a byte and never interprets a header. It tolerates LF instead of CRLF, folded lines, lines without a
 * colon (which it skips), blank lines before the status line, status lines of other protocols and without a usable
 * number, and a head without a blank line at its end.
 */
#include "page/page.h"

#include "base/error.h"

/* A longer head is not accepted. */
#define HEAD_MAX ((size_t)1 << 20)

/* A status line is not longer than this, so a long first line is text that happens to begin like one. */
#define STATUS_LINE_MAX ((size_t)8 << 10)

/* Blank lines that may precede the status line, and interim answers (100 Continue) that may precede the real one. */
enum { BLANK_MAX = 64, INTERIM_MAX = 8 };

/* What a status line without a usable number counts as. Browsers take it for this, too. */
enum { STATUS_ASSUMED = 200 };

/* The number at the beginning of text if it has three digits and is 100 or more; otherwise STATUS_ASSUMED. */
static uint16_t number_of(struct wb_slice text)
{
    unsigned status = 0;
    size_t digits = 0;

    while (digits < text.len && digits < 4 && wb_ascii_is_digit(text.ptr[digits]))
        status = status * 10 + (unsigned)(text.ptr[digits++] - '0');
    return (uint16_t)(digits == 3 && status >= 100 ? status : STATUS_ASSUMED);
}

static bool is_word(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= ' ' || (unsigned char)text.ptr[i] >= 0x7f)
            return false;
    return true;
}

/*
 * The status of a line that begins with a protocol ("HTTP/1.1", "HTTP/1.x", "HTTP/2", "ICY"), whatever number follows
 * it; 0 if this is not a status line.
 */
static uint16_t status_of(struct wb_slice line)
{
    const char *blank = line.len ? memchr(line.ptr, ' ', line.len) : NULL;
    struct wb_slice protocol = wb_slice(line.ptr, blank ? (size_t)(blank - line.ptr) : line.len);
    size_t at = protocol.len;

    if (line.len > STATUS_LINE_MAX || !is_word(protocol))
        return 0;
    while (at < line.len && line.ptr[at] == ' ')
        at++;
    struct wb_slice rest = wb_slice(line.ptr + at, line.len - at);
    if (wb_slice_starts_nocase(protocol, WB_SLICE_LIT("HTTP/")))
        return number_of(rest);
    bool icy = wb_slice_equal(protocol, WB_SLICE_LIT("ICY")) && rest.len && wb_ascii_is_digit(rest.ptr[0]);
    return icy ? number_of(rest) : 0;
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

/* Splits a message that begins with its status line. 0, or WB_E_PROTO. */
static int split_one(struct wb_slice message, struct wb_http_head *head_out)
{
    struct wb_slice text = wb_slice(message.ptr, message.len < HEAD_MAX ? message.len : HEAD_MAX);
    size_t at = 0, len = 0;
    size_t whole = text.len ? line_at(text, 0, &len) : 0;
    uint16_t status = status_of(wb_slice(text.ptr, len));

    *head_out = (struct wb_http_head){.raw = WB_SLICE_EMPTY, .body = WB_SLICE_EMPTY};
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

int wb_http_split(struct wb_slice message, struct wb_http_head *head_out)
{
    struct wb_http_head next;
    size_t blank = 0;

    while (blank < message.len && blank < BLANK_MAX && (message.ptr[blank] == '\r' || message.ptr[blank] == '\n'))
        blank++;
    int err = split_one(wb_slice(message.ptr + blank, message.len - blank), head_out);
    /* An interim answer has no body: what follows is the head of the real one. */
    for (int i = 0; err == 0 && i < INTERIM_MAX && head_out->status < 200 && head_out->status != 101; i++) {
        if (!wb_slice_starts(head_out->body, WB_SLICE_LIT("HTTP/")) || split_one(head_out->body, &next) < 0)
            break;
        *head_out = next;
    }
    return err;
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
