/* httpd_body.c - undoes the framing of request bodies. */
#include "httpd/httpd_body.h"
#include "base/codec.h"

#define DIGITS_MAX 15u
#define EXTENSION_MAX 256u
#define TRAILERS_MAX 8192u

static const char bad_chunk[] = "the chunks of the request's body are malformed";
static const char too_large[] = "the body of the request is too large";

unsigned wb_httpd_body_begin(struct wb_httpd_body *body, const struct wb_httpd_head *head, uint64_t max,
                             const char **why_out)
{
    WB_CHECK(body->bytes.len == 0);
    *body = (struct wb_httpd_body){.bytes = body->bytes, .chunked = head->chunked, .left = head->length, .max = max};
    *why_out = too_large;
    return head->length > max ? 413 : 0;
}

/* Takes as much as there is of the bytes that `left` counts. */
static unsigned take_data(struct wb_httpd_body *body, struct wb_slice bytes, size_t *used, const char **why_out)
{
    size_t n = bytes.len - *used;

    if (n > body->left)
        n = (size_t)body->left;
    if (n > 0 && wb_buf_append(&body->bytes, bytes.ptr + *used, n) < 0) {
        *why_out = "out of memory";
        return 503;
    }
    *used += n;
    body->left -= n;
    return 0;
}

/* One character of "5;extension CR". */
static bool take_size(struct wb_httpd_body *body, char c)
{
    int digit = wb_hex_digit(c);

    if (digit >= 0) {
        body->left = body->left * 16 + (unsigned)digit;
        return ++body->digits <= DIGITS_MAX;
    }
    body->place = c == '\r' ? WB_CHUNK_SIZE_LF : WB_CHUNK_EXTENSION;
    return body->digits > 0 && (c == '\r' || c == ';');
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* The size line is complete. */
static void end_size(struct wb_httpd_body *body)
{
    body->place = body->left > 0 ? WB_CHUNK_DATA : WB_CHUNK_LINE;
    body->digits = 0;
    body->extra = 0;
}

/* One character of the trailers. */
static bool take_trailer(struct wb_httpd_body *body, char c)
{
    body->extra++;
    if (body->extra > TRAILERS_MAX)
        return false;
    if (body->place == WB_CHUNK_VALUE) {
        if (c == '\r')
            body->place = WB_CHUNK_VALUE_LF;
        return c == '\r' || !is_control(c);
    }
    if (body->place == WB_CHUNK_NAME && c == ':') {
        body->place = WB_CHUNK_VALUE;
        return true;
    }
    if (body->place == WB_CHUNK_LINE && c == '\r') {
        body->place = WB_CHUNK_END_LF;
        return true;
    }
    body->place = WB_CHUNK_NAME;
    return wb_httpd_is_token(c);
}

/* One character of the framing. False if it is malformed. */
static bool take_framing(struct wb_httpd_body *body, char c)
{
    switch (body->place) {
    case WB_CHUNK_SIZE:
        return take_size(body, c);
    case WB_CHUNK_EXTENSION:
        if (c == '\r')
            body->place = WB_CHUNK_SIZE_LF;
        return c == '\r' || (++body->extra <= EXTENSION_MAX && !is_control(c));
    case WB_CHUNK_SIZE_LF:
        end_size(body);
        return c == '\n';
    case WB_CHUNK_DATA_CR:
        body->place = WB_CHUNK_DATA_LF;
        return c == '\r';
    case WB_CHUNK_DATA_LF:
        body->place = WB_CHUNK_SIZE;
        return c == '\n';
    case WB_CHUNK_LINE:
    case WB_CHUNK_NAME:
    case WB_CHUNK_VALUE:
        return take_trailer(body, c);
    case WB_CHUNK_VALUE_LF:
        body->place = WB_CHUNK_LINE;
        return c == '\n';
    case WB_CHUNK_DATA:
    case WB_CHUNK_END_LF:
        break;
    }
    return false;
}

static unsigned feed_chunks(struct wb_httpd_body *body, struct wb_slice bytes, size_t *used, const char **why_out)
{
    while (*used < bytes.len) {
        if (body->place == WB_CHUNK_DATA) {
            unsigned status = take_data(body, bytes, used, why_out);
            if (status)
                return status;
            if (body->left == 0)
                body->place = WB_CHUNK_DATA_CR;
            continue;
        }
        char c = bytes.ptr[(*used)++];
        if (body->place == WB_CHUNK_END_LF && c == '\n')
            return WB_HTTPD_COMPLETE;
        if (!take_framing(body, c)) {
            *why_out = bad_chunk;
            return 400;
        }
        if (body->left > body->max - body->bytes.len) {
            *why_out = too_large;
            return 413;
        }
    }
    return WB_HTTPD_INCOMPLETE;
}

unsigned wb_httpd_body_feed(struct wb_httpd_body *body, struct wb_slice bytes, size_t *used_out, const char **why_out)
{
    *used_out = 0;
    WB_CHECK(body->bytes.len <= body->max);
    if (body->chunked)
        return feed_chunks(body, bytes, used_out, why_out);
    unsigned status = take_data(body, bytes, used_out, why_out);
    return status ? status : body->left == 0 ? WB_HTTPD_COMPLETE : WB_HTTPD_INCOMPLETE;
}

void wb_httpd_body_release(struct wb_httpd_body *body)
{
    wb_buf_release(&body->bytes);
    *body = (struct wb_httpd_body){0};
}
