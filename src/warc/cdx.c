/*
 * cdx.c - writes lines of CDX indexes. It reads no archive and no index.
 */
#include "warc/cdx.h"

#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

#define FIRST_MS INT64_C(-62167219200000) /* 0000-01-01 */
#define LAST_MS INT64_C(253402300799999)  /* 9999-12-31, its last millisecond */

void wb_cdx_time(int64_t time_ms, char text_out[WB_CDX_TIME_MAX])
{
    char date[WB_DATE_TEXT_MAX];
    size_t n = 0;

    wb_date_format(time_ms < FIRST_MS ? FIRST_MS : time_ms > LAST_MS ? LAST_MS : time_ms, date);
    for (const char *c = date; *c && n < WB_CDX_TIME_MAX - 1; c++)
        if (wb_ascii_is_digit(*c))
            text_out[n++] = *c;
    WB_CHECK(n == WB_CDX_TIME_MAX - 1);
    text_out[n] = '\0';
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Appends a field that contains no blank and no control character, and is not empty. */
static int append_field(struct wb_buf *out, struct wb_slice value)
{
    static const char digits[] = "0123456789ABCDEF";
    int err = value.len ? wb_buf_reserve(out, 3 * value.len) : wb_buf_append_char(out, '-');

    for (size_t i = 0; err == 0 && i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c > 0x20 && c != 0x7f) {
            out->ptr[out->len++] = (char)c;
        } else {
            out->ptr[out->len++] = '%';
            out->ptr[out->len++] = digits[c >> 4];
            out->ptr[out->len++] = digits[c & 15];
        }
    }
    return err;
}

static int append_start(const struct wb_cdx *cdx, struct wb_buf *out)
{
    char time[WB_CDX_TIME_MAX];
    int err = append_field(out, cdx->urlkey);

    wb_cdx_time(cdx->time_ms, time);
    return err < 0 ? err : wb_buf_printf(out, " %s ", time);
}

/* Numbers are strings in CDXJ. */
static void number_field(struct wb_json *j, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    wb_json_field_str(j, key, text);
}

static void text_field(struct wb_json *j, const char *key, struct wb_slice value)
{
    if (value.len)
        wb_json_field_slice(j, key, value);
}

int wb_cdx_append_json(const struct wb_cdx *cdx, struct wb_buf *lines_out)
{
    struct wb_json j;
    int err = append_start(cdx, lines_out);

    if (err < 0)
        return err;
    wb_json_init(&j, lines_out);
    wb_json_object(&j);
    text_field(&j, "url", cdx->url);
    text_field(&j, "mime", cdx->mime);
    if (cdx->status)
        number_field(&j, "status", cdx->status);
    text_field(&j, "digest", cdx->digest);
    if (cdx->length)
        number_field(&j, "length", cdx->length);
    if (cdx->filename.len) {
        number_field(&j, "offset", cdx->offset);
        wb_json_field_slice(&j, "filename", cdx->filename);
    }
    text_field(&j, "redirect", cdx->redirect);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}
