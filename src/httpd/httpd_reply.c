/* httpd_reply.c - what a handler answers, and how that becomes a status line and fields. */
#include "httpd/httpd_reply.h"
#include "base/date.h"
#include "base/json.h"

#include <stdio.h>

/* The words have no meaning for programs; these are those of the statuses that we or handlers use. */
static const struct {
    unsigned status;
    const char *words;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(unsigned status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].words;
    return "";
}

struct wb_http_reply wb_httpd_reply_new(void)
{
    return (struct wb_http_reply){.status = 200, .fields = WB_BUF_INIT, .body = WB_BUF_INIT};
}

void wb_httpd_reply_release(struct wb_http_reply *reply)
{
    wb_buf_release(&reply->fields);
    wb_buf_release(&reply->body);
    *reply = wb_httpd_reply_new();
}

int wb_http_reply_field(struct wb_http_reply *reply, const char *name, struct wb_slice value)
{
    struct wb_buf *out = &reply->fields;
    size_t name_len = strlen(name);

    if (wb_buf_reserve(out, name_len + value.len + 4) < 0)
        return WB_E_NOMEM;
    wb_buf_append(out, name, name_len);
    wb_buf_append(out, ": ", 2);
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] != '\r' && value.ptr[i] != '\n' && value.ptr[i] != '\0')
            out->ptr[out->len++] = value.ptr[i];
    return wb_buf_append(out, "\r\n", 2);
}

void wb_http_reply_error(struct wb_http_reply *reply, unsigned status, const char *format, ...)
{
    char message[WB_ERROR_MESSAGE_MAX];
    struct wb_json json;
    va_list args;

    va_start(args, format); /* first: the arguments may point into what is cleared below */
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (reply->source)
        reply->source->close(reply->source_context);
    reply->source = NULL;
    reply->source_context = NULL;
    reply->status = status;
    wb_buf_clear(&reply->fields);
    wb_buf_clear(&reply->body);
    wb_json_init(&json, &reply->body);
    wb_json_object(&json);
    wb_json_field_str(&json, "error", message);
    wb_json_object_end(&json);
    if (wb_json_line(&json) < 0 || wb_http_reply_field(reply, "Content-Type", WB_SLICE_LIT("application/json")) < 0)
        wb_buf_clear(&reply->body); /* without memory, the status has to be enough */
}

enum wb_httpd_framing wb_httpd_reply_framing(const struct wb_http_reply *reply, const struct wb_httpd_head *head)
{
    if (head->request.method == WB_HTTP_HEAD || reply->status == 204 || reply->status == 304)
        return WB_FRAMING_NONE;
    if (!reply->source)
        return WB_FRAMING_LENGTH;
    return head->old ? WB_FRAMING_CLOSE : WB_FRAMING_CHUNKED;
}

int wb_httpd_reply_head(const struct wb_http_reply *reply, const struct wb_httpd_head *head, const char *date,
                        bool keep_alive, struct wb_buf *out)
{
    size_t before = out->len;
    int err =
        wb_buf_printf(out, "HTTP/1.1 %u %s\r\nDate: %.*s\r\nServer: webbase\r\nX-Content-Type-Options: nosniff\r\n",
                      reply->status, reason_of(reply->status), WB_DATE_HTTP_BYTES, date);

    if (err == 0)
        err = wb_buf_append_slice(out, wb_buf_slice(&reply->fields));
    if (err == 0 && reply->source && !head->old)
        err = wb_buf_append_str(out, "Transfer-Encoding: chunked\r\n");
    else if (err == 0 && !reply->source && reply->status != 204 && reply->status != 304)
        err = wb_buf_printf(out, "Content-Length: %zu\r\n", reply->body.len);
    if (err == 0 && keep_alive && head->old)
        err = wb_buf_append_str(out, "Connection: keep-alive\r\n");
    else if (err == 0 && !keep_alive)
        err = wb_buf_append_str(out, "Connection: close\r\n");
    if (err == 0)
        err = wb_buf_append_str(out, "\r\n");
    if (err < 0)
        out->len = before;
    return err;
}
