/* httpd_query.c - looking things up in a request: fields, and the parameters of the query. */
#include "base/codec.h"
#include "base/mem.h"
#include "httpd/httpd_head.h"

/* The byte that an escape at the beginning of text stands for; -1: it is not an escape. */
static int escape_at(const char *text, size_t len)
{
    if (len < 3 || text[0] != '%' || wb_hex_digit(text[1]) < 0 || wb_hex_digit(text[2]) < 0)
        return -1;
    return wb_hex_digit(text[1]) * 16 + wb_hex_digit(text[2]);
}

/* Appends the text decoded; the buffer has room for it. True if all escapes were valid; others stay as they are. */
static bool unescape(struct wb_slice text, bool plus, struct wb_buf *out)
{
    bool valid = true;

    WB_CHECK(text.len <= out->cap - out->len);
    for (size_t i = 0; i < text.len; i++) {
        int byte = escape_at(text.ptr + i, text.len - i);
        if (byte >= 0) {
            out->ptr[out->len++] = (char)byte;
            i += 2;
            continue;
        }
        valid = valid && text.ptr[i] != '%';
        out->ptr[out->len++] = plus && text.ptr[i] == '+' ? ' ' : text.ptr[i];
    }
    return valid;
}

int wb_http_unescape(struct wb_slice text, bool plus, struct wb_buf *out)
{
    size_t before = out->len;

    if (wb_buf_reserve(out, text.len) < 0)
        return WB_E_NOMEM;
    if (text.len == 0 || unescape(text, plus, out))
        return 0;
    out->len = before;
    return wb_fail(WB_E_INVALID, "'%.*s' has an invalid percent-escape", WB_SLICE_ARG(text));
}

static struct wb_slice decode(struct wb_slice text, struct wb_buf *out)
{
    size_t from = out->len;

    unescape(text, true, out);
    return wb_slice(out->ptr + from, out->len - from);
}

unsigned wb_httpd_params_parse(struct wb_httpd_head *head, const char **why_out)
{
    struct wb_slice rest = head->request.query;

    *why_out = "out of memory";
    if (wb_buf_reserve(&head->text, rest.len) < 0) /* decoding makes nothing longer, so the slices stay valid */
        return 503;
    while (rest.len > 0) {
        const char *end = memchr(rest.ptr, '&', rest.len);
        struct wb_slice pair = wb_slice(rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len);
        rest = end ? wb_slice(end + 1, rest.len - pair.len - 1) : WB_SLICE_EMPTY;
        if (pair.len == 0)
            continue;
        if (head->params.count == WB_HTTPD_PARAMS_MAX) {
            *why_out = "the query has too many parameters";
            return 400;
        }
        const char *equals = memchr(pair.ptr, '=', pair.len);
        size_t n = equals ? (size_t)(equals - pair.ptr) : pair.len;
        struct wb_http_field param = {.name = decode(wb_slice(pair.ptr, n), &head->text), .value = WB_SLICE_EMPTY};
        if (equals)
            param.value = decode(wb_slice(equals + 1, pair.len - n - 1), &head->text);
        if (wb_vec_push(&head->params, param) < 0)
            return 503;
    }
    return 0;
}

struct wb_slice wb_http_field(const struct wb_http_request *request, const char *name)
{
    struct wb_slice wanted = wb_slice_str(name);

    for (size_t i = 0; i < request->field_count; i++)
        if (wb_slice_equal_nocase(request->fields[i].name, wanted))
            return request->fields[i].value;
    return (struct wb_slice){NULL, 0};
}

struct wb_slice wb_http_param(const struct wb_http_request *request, const char *name)
{
    struct wb_slice wanted = wb_slice_str(name);

    for (size_t i = 0; i < request->param_count; i++)
        if (wb_slice_equal(request->params[i].name, wanted))
            return request->params[i].value;
    return (struct wb_slice){NULL, 0};
}

/* ---- forms --------------------------------------------------------------------------------------- */

struct wb_http_form {
    struct wb_httpd_head head; /* that of a request whose query is the form */
};

int wb_http_form_read(struct wb_slice body, struct wb_http_form **form_out)
{
    struct wb_http_form *form = wb_alloc_zero(1, sizeof *form);
    const char *why = "";

    *form_out = NULL;
    if (!form)
        return WB_E_NOMEM;
    form->head.request.query = body;
    unsigned status = wb_httpd_params_parse(&form->head, &why);
    if (status) {
        wb_http_form_free(form);
        return status == 503 ? WB_E_NOMEM : wb_fail(WB_E_INVALID, "the form has too many parameters");
    }
    form->head.request.params = form->head.params.items;
    form->head.request.param_count = form->head.params.count;
    *form_out = form;
    return 0;
}

struct wb_slice wb_http_form_value(const struct wb_http_form *form, const char *name)
{
    return wb_http_param(&form->head.request, name);
}

void wb_http_form_free(struct wb_http_form *form)
{
    if (form)
        wb_httpd_head_release(&form->head);
    wb_free(form);
}
