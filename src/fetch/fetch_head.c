/*
 * fetch_head.c - collects the head of a response within limits, as its lines arrive.
 *
 * It keeps the lines of the final response as they were received. It knows where a head starts and ends, and what a
 * header line looks like. What headers mean is decided elsewhere, except for codings and lengths.
 */
#include "fetch/fetch_head.h"

#include "base/error.h"
#include "page/page.h"

void wb_fetch_head_begin(struct wb_fetch_head *head, size_t max)
{
    wb_buf_clear(&head->text);
    head->seen = 0;
    head->lines = 0;
    head->max = max;
    head->status = 0;
    head->ended = false;
}

/* "HTTP/1.1 200 OK" gives 200; 0 if this is not a status line. */
static uint16_t status_of(struct wb_slice line)
{
    const char *blank = memchr(line.ptr, ' ', line.len);

    if (!wb_slice_starts(line, WB_SLICE_LIT("HTTP/")) || !blank)
        return 0;
    size_t at = (size_t)(blank - line.ptr);
    while (at < line.len && line.ptr[at] == ' ')
        at++;
    if (line.len - at < 3 || !wb_ascii_is_digit(line.ptr[at]) || !wb_ascii_is_digit(line.ptr[at + 1]) ||
        !wb_ascii_is_digit(line.ptr[at + 2]))
        return 0;
    int status = (line.ptr[at] - '0') * 100 + (line.ptr[at + 1] - '0') * 10 + (line.ptr[at + 2] - '0');
    return (uint16_t)(status >= 100 ? status : 0);
}

static int add_status_line(struct wb_fetch_head *head, struct wb_slice line)
{
    static const struct wb_slice http2 = {"HTTP/2 ", 7};

    head->status = status_of(line);
    if (head->status == 0)
        return wb_fail(WB_E_PROTO, "not a status line");
    if (head->status == 101)
        return wb_fail(WB_E_PROTO, "the server switches to another protocol that we did not ask for");
    /*
     * HTTP/2 has no status line; libcurl makes one up. Write it as that of HTTP/1.1, which every reader of archives
     * knows.
     */
    if (wb_slice_starts(line, http2)) {
        int err = wb_buf_append_str(&head->text, "HTTP/1.1 ");
        if (err < 0)
            return err;
        line = wb_slice(line.ptr + http2.len, line.len - http2.len);
    }
    return wb_buf_append_slice(&head->text, line);
}

int wb_fetch_head_line(struct wb_fetch_head *head, struct wb_slice line)
{
    if (line.len > head->max - head->seen)
        return wb_fail(WB_E_LIMIT, "more than %zu bytes of header lines", head->max);
    if (++head->lines > WB_FETCH_LINES_MAX)
        return wb_fail(WB_E_LIMIT, "more than %u header lines", WB_FETCH_LINES_MAX);
    head->seen += line.len;
    if (head->ended)
        return 0;
    if (head->text.len == 0)
        return add_status_line(head, line);
    if (wb_slice_trim(line).len == 0 && line.len <= 2) {
        if (head->status < 200) {
            wb_buf_clear(&head->text);
            head->status = 0;
        } else {
            head->ended = true;
        }
        return 0;
    }
    bool folded = line.ptr[0] == ' ' || line.ptr[0] == '\t';
    if (!folded && !memchr(line.ptr, ':', line.len))
        return wb_fail(WB_E_PROTO, "a header line without a colon");
    return wb_buf_append_slice(&head->text, line);
}

/* Takes the next word of a list that is separated by commas. False at its end. */
static bool next_word(struct wb_slice *list, struct wb_slice *word_out)
{
    if (list->len == 0)
        return false;
    const char *comma = memchr(list->ptr, ',', list->len);
    size_t len = comma ? (size_t)(comma - list->ptr) : list->len, past = comma ? len + 1 : len;
    *word_out = wb_slice_trim(wb_slice(list->ptr, len));
    *list = wb_slice(list->ptr + past, list->len - past);
    return true;
}

static bool is_one_of(struct wb_slice word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wb_slice_equal_nocase(word, wb_slice_str(words[i])))
            return true;
    return false;
}

static int add_coding(struct wb_buf *lines, const char *name, struct wb_slice coding, bool *any)
{
    const char *before = *any ? "" : "HTTP/1.1 200\r\n";

    *any = true;
    return wb_buf_printf(lines, "%s%s: %.*s\r\n", before, name, WB_SLICE_ARG(coding));
}

/* *chunked: "chunked" was seen, after which no other coding may come. */
static int add_transfer_codings(struct wb_slice list, struct wb_buf *lines, bool *chunked, bool *any)
{
    static const char *const none[] = {"", "identity"}, *const known[] = {"gzip", "x-gzip", "deflate", "br", "zstd"};
    struct wb_slice word;
    int err = 0;

    while (err == 0 && next_word(&list, &word)) {
        if (is_one_of(word, none, sizeof none / sizeof *none))
            continue;
        if (*chunked)
            return wb_fail(WB_E_PROTO, "a transfer coding after chunked");
        *chunked = wb_slice_equal_nocase(word, WB_SLICE_LIT("chunked"));
        if (*chunked)
            continue;
        if (!is_one_of(word, known, sizeof known / sizeof *known))
            return wb_fail(WB_E_PROTO, "an unknown transfer coding");
        err = add_coding(lines, "Transfer-Encoding", word, any);
    }
    return err;
}

int wb_fetch_head_codings(const struct wb_fetch_head *head, struct wb_buf *lines_out, bool *any_out)
{
    struct wb_slice name, value;
    bool chunked = false;
    size_t at = 0;
    int err = 0;

    *any_out = false;
    while (err == 0 && wb_http_header_next(wb_buf_slice(&head->text), &at, &name, &value)) {
        value = wb_slice_trim(value);
        if (wb_slice_equal_nocase(name, WB_SLICE_LIT("Transfer-Encoding")))
            err = add_transfer_codings(value, lines_out, &chunked, any_out);
        else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("Content-Encoding")) && value.len > 0 &&
                 !wb_slice_equal_nocase(value, WB_SLICE_LIT("identity")))
            err = add_coding(lines_out, "Content-Encoding", value, any_out);
    }
    return err;
}

bool wb_fetch_head_contradicts(const struct wb_fetch_head *head)
{
    struct wb_slice name, value;
    uint64_t first = UINT64_MAX, length;
    size_t at = 0;

    while (wb_http_header_next(wb_buf_slice(&head->text), &at, &name, &value)) {
        if (!wb_slice_equal_nocase(name, WB_SLICE_LIT("content-length")))
            continue;
        /* "6, 6" means the same as two lines with 6. */
        while (value.len) {
            const char *comma = memchr(value.ptr, ',', value.len);
            size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
            if (wb_slice_to_u64(wb_slice_trim(wb_slice(value.ptr, len)), &length)) {
                if (first != UINT64_MAX && first != length)
                    return true;
                first = length;
            }
            value = wb_slice(value.ptr + len + (comma != NULL), value.len - len - (comma != NULL));
        }
    }
    return false;
}
