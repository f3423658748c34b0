/* json.c - writes JSON. It does not read any: jansson does. */
#include "base/json.h"
#include "base/date.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>

static void put(struct wb_json *j, const char *bytes, size_t len)
{
    if (j->err == 0)
        j->err = wb_buf_append(j->buf, bytes, len);
}

static void put_str(struct wb_json *j, const char *text)
{
    put(j, text, strlen(text));
}

static void before_value(struct wb_json *j)
{
    if (j->comma)
        put(j, ",", 1);
    j->comma = true;
}

void wb_json_init(struct wb_json *j, struct wb_buf *buf)
{
    *j = (struct wb_json){.buf = buf};
}

void wb_json_object(struct wb_json *j)
{
    before_value(j);
    put(j, "{", 1);
    j->comma = false;
}

void wb_json_object_end(struct wb_json *j)
{
    put(j, "}", 1);
    j->comma = true;
}

void wb_json_array(struct wb_json *j)
{
    before_value(j);
    put(j, "[", 1);
    j->comma = false;
}

void wb_json_array_end(struct wb_json *j)
{
    put(j, "]", 1);
    j->comma = true;
}

static void put_escaped(struct wb_json *j, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char u[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};

    switch (c) {
    case '"':
        put_str(j, "\\\"");
        break;
    case '\\':
        put_str(j, "\\\\");
        break;
    case '\n':
        put_str(j, "\\n");
        break;
    case '\r':
        put_str(j, "\\r");
        break;
    case '\t':
        put_str(j, "\\t");
        break;
    default:
        put(j, u, sizeof u);
    }
}

static void put_text(struct wb_json *j, struct wb_slice s)
{
    size_t done = 0, i = 0;

    put(j, "\"", 1);
    while (i < s.len) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            i++;
            continue;
        }
        size_t n = c >= 0x80 ? wb_utf8_length(s.ptr + i, s.len - i) : 0;
        if (n) {
            i += n;
            continue;
        }
        put(j, s.ptr + done, i - done);
        if (c >= 0x80)
            put_str(j, "\xef\xbf\xbd");
        else
            put_escaped(j, c);
        done = ++i;
    }
    if (i > done)
        put(j, s.ptr + done, i - done);
    put(j, "\"", 1);
}

void wb_json_key(struct wb_json *j, const char *key)
{
    before_value(j);
    put_text(j, wb_slice_str(key));
    put(j, ":", 1);
    j->comma = false;
}

void wb_json_slice(struct wb_json *j, struct wb_slice s)
{
    before_value(j);
    put_text(j, s);
}

void wb_json_str(struct wb_json *j, const char *text)
{
    wb_json_slice(j, wb_slice_str(text));
}

void wb_json_u64(struct wb_json *j, uint64_t v)
{
    before_value(j);
    if (j->err == 0)
        j->err = wb_buf_printf(j->buf, "%" PRIu64, v);
}

void wb_json_i64(struct wb_json *j, int64_t v)
{
    before_value(j);
    if (j->err == 0)
        j->err = wb_buf_printf(j->buf, "%" PRId64, v);
}

void wb_json_double(struct wb_json *j, double v)
{
    before_value(j);
    if (!isfinite(v))
        put_str(j, "null");
    else if (j->err == 0)
        j->err = wb_buf_printf(j->buf, "%.6g", v);
}

void wb_json_double_exact(struct wb_json *j, double v)
{
    before_value(j);
    if (!isfinite(v))
        put_str(j, "null");
    else if (j->err == 0)
        j->err = wb_buf_append_double(j->buf, v);
}

void wb_json_bool(struct wb_json *j, bool v)
{
    before_value(j);
    put_str(j, v ? "true" : "false");
}

void wb_json_null(struct wb_json *j)
{
    before_value(j);
    put_str(j, "null");
}

void wb_json_field_str(struct wb_json *j, const char *key, const char *text)
{
    wb_json_key(j, key);
    wb_json_str(j, text);
}

void wb_json_field_slice(struct wb_json *j, const char *key, struct wb_slice s)
{
    wb_json_key(j, key);
    wb_json_slice(j, s);
}

void wb_json_field_u64(struct wb_json *j, const char *key, uint64_t v)
{
    wb_json_key(j, key);
    wb_json_u64(j, v);
}

void wb_json_field_i64(struct wb_json *j, const char *key, int64_t v)
{
    wb_json_key(j, key);
    wb_json_i64(j, v);
}

void wb_json_field_double(struct wb_json *j, const char *key, double v)
{
    wb_json_key(j, key);
    wb_json_double(j, v);
}

void wb_json_field_bool(struct wb_json *j, const char *key, bool v)
{
    wb_json_key(j, key);
    wb_json_bool(j, v);
}

void wb_json_field_time(struct wb_json *j, const char *key, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX] = "";

    if (time_ms)
        wb_date_format(time_ms, text);
    wb_json_field_text(j, key, wb_slice_str(text));
}

void wb_json_field_text(struct wb_json *j, const char *key, struct wb_slice text)
{
    wb_json_key(j, key);
    if (text.len)
        wb_json_slice(j, text);
    else
        wb_json_null(j);
}

int wb_json_line(struct wb_json *j)
{
    put(j, "\n", 1);
    j->comma = false;
    return j->err;
}
