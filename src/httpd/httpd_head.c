/*
 * httpd_head.c - finds and parses the head of a request. It reads bytes and nothing else: what a request means for the
 * connection is decided in httpd_conn.c.
 */
#include "httpd/httpd_head.h"

#define KEPT_ITEMS 64u
#define KEPT_BYTES 4096u

bool wb_httpd_is_token(char c)
{
    return wb_ascii_is_letter(c) || wb_ascii_is_digit(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* Anything that may be in the value of a field: no control characters except the tab. */
static bool is_text(char c)
{
    return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

/* ---- finding the end ------------------------------------------------------------------------- */

static unsigned too_long(const struct wb_httpd_scan *scan, const char **why_out)
{
    *why_out = scan->lines == 0 ? "the request line is too long" : "the fields of the request are too long";
    return scan->lines == 0 ? 414 : 431;
}

/* A line ends at scan->at. WB_HTTPD_COMPLETE if it is the one that ends the head. */
static unsigned end_line(struct wb_httpd_scan *scan, struct wb_slice bytes, const struct wb_httpd_limits *limits,
                         const char **why_out)
{
    size_t len = scan->at - scan->line; /* with LF */

    if (len < 2 || bytes.ptr[scan->at - 2] != '\r') {
        *why_out = "a line of the request does not end with CR LF";
        return 400;
    }
    scan->line = scan->at;
    if (len == 2 && scan->lines > 0)
        return WB_HTTPD_COMPLETE;
    if (len == 2) {
        if (scan->start > 0) {
            *why_out = "the request begins with empty lines";
            return 400;
        }
        scan->start = scan->at;
        return WB_HTTPD_INCOMPLETE;
    }
    scan->lines++;
    if (scan->lines > limits->fields + 1) {
        *why_out = "the request has too many fields";
        return 431;
    }
    return WB_HTTPD_INCOMPLETE;
}

unsigned wb_httpd_head_find(struct wb_httpd_scan *scan, struct wb_slice bytes, const struct wb_httpd_limits *limits,
                            const char **why_out)
{
    unsigned status = WB_HTTPD_INCOMPLETE;

    WB_CHECK(scan->start <= scan->line && scan->line <= scan->at && scan->at <= bytes.len);
    while (status == WB_HTTPD_INCOMPLETE && scan->at < bytes.len) {
        /* Bytes that cannot begin a request, such as a TLS handshake, are refused without waiting for a line. */
        if (scan->at == scan->start && bytes.ptr[scan->at] != '\r' && bytes.ptr[scan->at] != '\n' &&
            !wb_httpd_is_token(bytes.ptr[scan->at])) {
            *why_out = "this is not an HTTP request";
            return 400;
        }
        const char *end = memchr(bytes.ptr + scan->at, '\n', bytes.len - scan->at);
        scan->at = end ? (size_t)(end - bytes.ptr) + 1 : bytes.len;
        if (scan->at - scan->start > limits->head_bytes)
            return too_long(scan, why_out);
        if (end)
            status = end_line(scan, bytes, limits, why_out);
    }
    return status;
}

/* ---- the request line ------------------------------------------------------------------------ */

static enum wb_http_method method_of(struct wb_slice text)
{
    if (wb_slice_equal(text, WB_SLICE_LIT("GET")))
        return WB_HTTP_GET;
    if (wb_slice_equal(text, WB_SLICE_LIT("HEAD")))
        return WB_HTTP_HEAD;
    return wb_slice_equal(text, WB_SLICE_LIT("POST")) ? WB_HTTP_POST : WB_HTTP_OTHER;
}

/* "HTTP/1.1" and "HTTP/1.0"; a later 1.x means what 1.1 means. */
static unsigned parse_version(struct wb_httpd_head *head, struct wb_slice text, const char **why_out)
{
    if (text.len != 8 || memcmp(text.ptr, "HTTP/", 5) != 0 || !wb_ascii_is_digit(text.ptr[5]) || text.ptr[6] != '.' ||
        !wb_ascii_is_digit(text.ptr[7])) {
        *why_out = "the request line is not METHOD TARGET HTTP/1.1";
        return 400;
    }
    if (text.ptr[5] != '1') {
        *why_out = "this server speaks HTTP/1.1 and HTTP/1.0";
        return 505;
    }
    head->old = text.ptr[7] == '0';
    head->keep_alive = !head->old;
    return 0;
}

/* Removes scheme and authority: proxies send "http://host/path" where others send "/path". */
static bool cut_origin(struct wb_slice *target, struct wb_slice *authority_out)
{
    struct wb_slice http = WB_SLICE_LIT("http://"), https = WB_SLICE_LIT("https://");
    size_t n = wb_slice_starts_nocase(*target, http)    ? http.len
               : wb_slice_starts_nocase(*target, https) ? https.len
                                                        : 0;

    if (n == 0)
        return target->len > 0 && target->ptr[0] == '/';
    const char *slash = memchr(target->ptr + n, '/', target->len - n);
    size_t end = slash ? (size_t)(slash - target->ptr) : target->len;
    if (end == n || memchr(target->ptr + n, '?', end - n))
        return false;
    *authority_out = wb_slice(target->ptr + n, end - n);
    *target = slash ? wb_slice(slash, target->len - end) : WB_SLICE_LIT("/");
    return true;
}

static unsigned parse_target(struct wb_httpd_head *head, const char **why_out)
{
    struct wb_http_request *request = &head->request;

    if (wb_slice_equal(request->method_text, WB_SLICE_LIT("CONNECT"))) {
        *why_out = "this server is not a proxy";
        return 405;
    }
    *why_out = "the target of the request is not valid";
    /* Bytes beyond ASCII are accepted: people type them, and nobody can mistake them for the end of a line. */
    for (size_t i = 0; i < request->target.len; i++)
        if ((unsigned char)request->target.ptr[i] <= 0x20 || request->target.ptr[i] == 0x7f ||
            request->target.ptr[i] == '#')
            return 400;
    if (!cut_origin(&request->target, &request->authority))
        return 400;
    const char *mark = memchr(request->target.ptr, '?', request->target.len);
    request->path = request->target;
    if (mark) {
        request->path.len = (size_t)(mark - request->target.ptr);
        request->query = wb_slice(mark + 1, request->target.len - request->path.len - 1);
    }
    return 0;
}

static unsigned parse_request_line(struct wb_httpd_head *head, struct wb_slice line, const char **why_out)
{
    const char *first = memchr(line.ptr, ' ', line.len), *last = memrchr(line.ptr, ' ', line.len);

    *why_out = "the request line is not METHOD TARGET HTTP/1.1";
    if (!first || first == last || first == line.ptr)
        return 400;
    head->request.method_text = wb_slice(line.ptr, (size_t)(first - line.ptr));
    head->request.target = wb_slice(first + 1, (size_t)(last - first - 1));
    for (const char *p = line.ptr; p < first; p++)
        if (!wb_httpd_is_token(*p))
            return 400;
    unsigned status = parse_version(head, wb_slice(last + 1, (size_t)(line.ptr + line.len - last - 1)), why_out);
    if (status)
        return status;
    head->request.method = method_of(head->request.method_text);
    return parse_target(head, why_out);
}

/* ---- fields ------------------------------------------------------------------------------------ */

static struct wb_slice trim_blanks(struct wb_slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = wb_slice(s.ptr + 1, s.len - 1);
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static unsigned parse_field(struct wb_httpd_head *head, struct wb_slice line, const char **why_out)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    size_t n = colon ? (size_t)(colon - line.ptr) : 0;

    *why_out = "a field of the request is not NAME: VALUE";
    if (n == 0)
        return 400;
    for (size_t i = 0; i < n; i++)
        if (!wb_httpd_is_token(line.ptr[i]))
            return 400;
    for (size_t i = n + 1; i < line.len; i++)
        if (!is_text(line.ptr[i]))
            return 400;
    struct wb_http_field field = {wb_slice(line.ptr, n), trim_blanks(wb_slice(colon + 1, line.len - n - 1))};
    if (wb_vec_push(&head->fields, field) < 0) {
        *why_out = "out of memory";
        return 503;
    }
    return 0;
}

/* Takes the next word off a list such as "keep-alive, Upgrade". False if there are no more. */
static bool next_word(struct wb_slice *list, struct wb_slice *word_out)
{
    if (list->len == 0)
        return false;
    const char *comma = memchr(list->ptr, ',', list->len);
    size_t n = comma ? (size_t)(comma - list->ptr) : list->len;
    *word_out = trim_blanks(wb_slice(list->ptr, n));
    *list = comma ? wb_slice(comma + 1, list->len - n - 1) : WB_SLICE_EMPTY;
    return true;
}

static void take_connection(struct wb_httpd_head *head, struct wb_slice value, bool *close)
{
    struct wb_slice word;

    while (next_word(&value, &word)) {
        *close = *close || wb_slice_equal_nocase(word, WB_SLICE_LIT("close"));
        if (wb_slice_equal_nocase(word, WB_SLICE_LIT("keep-alive")))
            head->keep_alive = true;
    }
}

/* Digits only: no sign, no blank, no list of lengths. */
static unsigned take_length(struct wb_httpd_head *head, struct wb_slice value, const char **why_out)
{
    *why_out = "Content-Length must be given once, as a decimal number";
    if (head->has_length || value.len == 0)
        return 400;
    for (size_t i = 0; i < value.len; i++)
        if (!wb_ascii_is_digit(value.ptr[i]))
            return 400;
    head->has_length = true;
    if (!wb_slice_to_u64(value, &head->length)) {
        *why_out = "the body of the request is too large";
        return 413;
    }
    return 0;
}

static unsigned take_coding(struct wb_httpd_head *head, struct wb_slice value, const char **why_out)
{
    if (head->chunked || head->old) {
        *why_out = "Transfer-Encoding must be given once, in HTTP/1.1";
        return 400;
    }
    if (!wb_slice_equal_nocase(value, WB_SLICE_LIT("chunked"))) {
        *why_out = "the only Transfer-Encoding that is understood is chunked";
        return 501;
    }
    head->chunked = true;
    return 0;
}

/* A name or an address with or without a port. What cannot be part of one is refused. */
static bool is_host(struct wb_slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] <= 0x20 || value.ptr[i] == 0x7f || strchr("/\\?#@,<>\"", value.ptr[i]))
            return false;
    return true;
}

/* The fields that say how the request is framed, and what becomes of the connection. */
static unsigned interpret_fields(struct wb_httpd_head *head, const char **why_out)
{
    unsigned status = 0, hosts = 0;
    bool close = false;

    for (size_t i = 0; i < head->fields.count && status == 0; i++) {
        struct wb_slice name = head->fields.items[i].name, value = head->fields.items[i].value;
        if (wb_slice_equal_nocase(name, WB_SLICE_LIT("content-length")))
            status = take_length(head, value, why_out);
        else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("transfer-encoding")))
            status = take_coding(head, value, why_out);
        else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("connection")))
            take_connection(head, value, &close);
        else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("expect")) && !head->old) {
            head->expect_continue = wb_slice_equal_nocase(value, WB_SLICE_LIT("100-continue"));
            *why_out = "the only expectation that is understood is 100-continue";
            status = head->expect_continue ? 0 : 417;
        } else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("host"))) {
            hosts++;
            *why_out = "Host must be given once, as a name or an address";
            status = hosts == 1 && is_host(value) ? 0 : 400;
        }
    }
    if (status == 0 && !is_host(head->request.authority)) {
        *why_out = "the target of the request is not valid";
        status = 400;
    }
    head->keep_alive = head->keep_alive && !close;
    if (status)
        return status;
    if (head->has_length && head->chunked) {
        *why_out = "a request has either Content-Length or Transfer-Encoding";
        return 400;
    }
    if (hosts == 0 && !head->old) {
        *why_out = "the request has no Host";
        return 400;
    }
    return 0;
}

/* ---- the whole head ------------------------------------------------------------------------------- */

/* Removes the next line, and returns it without CR LF. A bare CR or a NUL in it is refused as a control character. */
static struct wb_slice cut_line(struct wb_slice *bytes)
{
    const char *end = memchr(bytes->ptr, '\n', bytes->len);

    WB_CHECK(end && end > bytes->ptr && end[-1] == '\r');
    size_t n = (size_t)(end - bytes->ptr);
    struct wb_slice line = wb_slice(bytes->ptr, n - 1);
    *bytes = wb_slice(end + 1, bytes->len - n - 1);
    return line;
}

unsigned wb_httpd_head_parse(struct wb_httpd_head *head, struct wb_slice bytes, const char **why_out)
{
    struct wb_http_request *request = &head->request;

    wb_httpd_head_clear(head);
    unsigned status = parse_request_line(head, cut_line(&bytes), why_out);
    while (status == 0 && bytes.len > 2)
        status = parse_field(head, cut_line(&bytes), why_out);
    if (status == 0)
        status = interpret_fields(head, why_out);
    if (status == 0 && request->query.ptr)
        status = wb_httpd_params_parse(head, why_out);
    request->fields = head->fields.items;
    request->field_count = head->fields.count;
    request->params = head->params.items;
    request->param_count = head->params.count;
    return status;
}

void wb_httpd_head_clear(struct wb_httpd_head *head)
{
    struct wb_httpd_head old = *head;

    if (old.fields.cap > KEPT_ITEMS)
        wb_vec_release(&old.fields);
    if (old.params.cap > KEPT_ITEMS)
        wb_vec_release(&old.params);
    wb_buf_clear(&old.text);
    if (old.text.cap > KEPT_BYTES)
        wb_buf_release(&old.text);
    wb_vec_clear(&old.fields);
    wb_vec_clear(&old.params);
    *head = (struct wb_httpd_head){.fields = old.fields, .params = old.params, .text = old.text};
    head->request = (struct wb_http_request){.method = WB_HTTP_OTHER,
                                             .method_text = WB_SLICE_EMPTY,
                                             .target = WB_SLICE_EMPTY,
                                             .path = WB_SLICE_EMPTY,
                                             .body = WB_SLICE_EMPTY,
                                             .peer = WB_SLICE_EMPTY};
}

void wb_httpd_head_release(struct wb_httpd_head *head)
{
    wb_vec_release(&head->fields);
    wb_vec_release(&head->params);
    wb_buf_release(&head->text);
    *head = (struct wb_httpd_head){0};
}
