/*
 * fuzz_httprequest.c - arbitrary bytes as what a client sends: heads and bodies of requests, one after another.
 *
 *   - how the bytes arrive changes nothing: all at once, one by one, and cut at places that the input chooses
 *   - every slice of a request lies within its head, and the parts of the target fit together
 *   - a head that was accepted has one meaning: one Host (or HTTP/1.0), one framing, no control characters
 *   - a body is never larger than allowed, and as large as Content-Length says
 *
 * The first byte of the input chooses the cuts.
 */
#include "base/check.h"
#include "httpd/httpd_body.h"

#define HEAD_MAX 2048u
#define BODY_MAX 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct wb_httpd_limits limits = {.head_bytes = HEAD_MAX, .fields = 20};

static bool is_within(struct wb_slice part, struct wb_slice whole)
{
    return part.len == 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static unsigned count_fields(const struct wb_httpd_head *head, const char *name)
{
    unsigned count = 0;

    for (size_t i = 0; i < head->fields.count; i++)
        count += wb_slice_equal_nocase(head->fields.items[i].name, wb_slice_str(name));
    return count;
}

static void check_head(const struct wb_httpd_head *head, struct wb_slice bytes)
{
    const struct wb_http_request *request = &head->request;

    for (size_t i = 0; i < request->field_count; i++) {
        struct wb_http_field field = request->fields[i];
        WB_CHECK(is_within(field.name, bytes) && is_within(field.value, bytes) && field.name.len > 0);
        for (size_t k = 0; k < field.value.len; k++)
            WB_CHECK((unsigned char)field.value.ptr[k] >= 0x20 || field.value.ptr[k] == '\t');
        WB_CHECK(wb_http_field(request, "no such field").ptr == NULL);
    }
    WB_CHECK(request->target.len > 0 && request->target.ptr[0] == '/' &&
             !memchr(request->target.ptr, ' ', request->target.len));
    WB_CHECK(request->path.ptr == request->target.ptr && !memchr(request->path.ptr, '?', request->path.len));
    WB_CHECK(request->target.len == request->path.len + (request->query.ptr ? 1 + request->query.len : 0));
    WB_CHECK(is_within(request->method_text, bytes) && request->method_text.len > 0);
    for (size_t i = 0; i < request->param_count; i++)
        WB_CHECK(is_within(request->params[i].name, wb_buf_slice(&head->text)) &&
                 is_within(request->params[i].value, wb_buf_slice(&head->text)));
    WB_CHECK(count_fields(head, "Host") == 1 || (head->old && count_fields(head, "Host") == 0));
    WB_CHECK(count_fields(head, "Content-Length") == head->has_length);
    WB_CHECK(count_fields(head, "Transfer-Encoding") == head->chunked);
    WB_CHECK(!head->chunked || !head->has_length);
}

/* What a client's bytes mean, as text: the same for all ways in which they may arrive. */
struct session {
    struct wb_buf in;
    size_t in_at;
    bool in_body;
    unsigned status; /* of the refusal that ended it; 0: it goes on */
    struct wb_httpd_scan scan;
    struct wb_httpd_head head;
    struct wb_httpd_body body;
    struct wb_buf head_bytes, said;
};

static void end_request(struct session *s)
{
    WB_CHECK(s->body.bytes.len <= BODY_MAX && (s->head.chunked || s->body.bytes.len == s->head.length));
    WB_CHECK(wb_buf_printf(&s->said, "%.*s %.*s %zu [%.*s]\n", WB_SLICE_ARG(s->head.request.method_text),
                           WB_SLICE_ARG(s->head.request.target), s->head.fields.count,
                           WB_SLICE_ARG(wb_buf_slice(&s->body.bytes))) == 0);
    wb_httpd_body_release(&s->body);
    s->in_body = false;
}

static bool take_head(struct session *s)
{
    struct wb_slice bytes = wb_slice(s->in.ptr + s->in_at, s->in.len - s->in_at);
    const char *why = NULL;
    unsigned status = wb_httpd_head_find(&s->scan, bytes, &limits, &why);

    if (status == WB_HTTPD_INCOMPLETE)
        return false;
    if (status == WB_HTTPD_COMPLETE) {
        wb_buf_clear(&s->head_bytes);
        WB_CHECK(s->scan.at - s->scan.start <= HEAD_MAX);
        WB_CHECK(wb_buf_append(&s->head_bytes, bytes.ptr + s->scan.start, s->scan.at - s->scan.start) == 0);
        s->in_at += s->scan.at;
        s->scan = (struct wb_httpd_scan){0};
        status = wb_httpd_head_parse(&s->head, wb_buf_slice(&s->head_bytes), &why);
    }
    if (status == 0) {
        check_head(&s->head, wb_buf_slice(&s->head_bytes));
        status = wb_httpd_body_begin(&s->body, &s->head, BODY_MAX, &why);
    }
    WB_CHECK(status == 0 || (status >= 400 && status < 600 && why));
    s->status = status;
    s->in_body = status == 0;
    return status == 0;
}

static bool take_body(struct session *s)
{
    const char *why = NULL;
    size_t used, given = s->in.len - s->in_at;
    unsigned status = wb_httpd_body_feed(&s->body, wb_slice(s->in.ptr + s->in_at, given), &used, &why);

    WB_CHECK(used <= given);
    s->in_at += used;
    if (status == WB_HTTPD_COMPLETE) {
        end_request(s);
        return true;
    }
    WB_CHECK(status >= 400 ? why != NULL : used == given);
    s->status = status;
    return false;
}

static void arrive(struct session *s, const uint8_t *bytes, size_t len)
{
    if (s->status)
        return;
    WB_CHECK(wb_buf_append(&s->in, bytes, len) == 0);
    while (s->in_body ? take_body(s) : s->in_at < s->in.len && take_head(s))
        ;
}

/* Lets all bytes arrive, step by step, and returns what they meant. */
static struct wb_buf hear(const uint8_t *data, size_t size, size_t step)
{
    struct session s = {0};

    for (size_t at = 0; at < size; at += step)
        arrive(&s, data + at, size - at < step ? size - at : step);
    WB_CHECK(wb_buf_printf(&s.said, "%u\n", s.status) == 0);
    wb_buf_release(&s.in);
    wb_buf_release(&s.head_bytes);
    wb_httpd_head_release(&s.head);
    wb_httpd_body_release(&s.body);
    return s.said;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct wb_buf whole = hear(data + 1, size - 1, size), bytes = hear(data + 1, size - 1, 1),
                  parts = hear(data + 1, size - 1, 1u + data[0]);
    WB_CHECK(wb_slice_equal(wb_buf_slice(&whole), wb_buf_slice(&bytes)));
    WB_CHECK(wb_slice_equal(wb_buf_slice(&whole), wb_buf_slice(&parts)));
    wb_buf_release(&whole);
    wb_buf_release(&bytes);
    wb_buf_release(&parts);
    return 0;
}
