/* webanswer.c - writes HTTP answers that follow the standard. It never sends them, and never decides what they say. */
#include "sim/webanswer.h"
#include "base/error.h"
#include "base/hash.h"
#include "os/clock.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <time.h>

#define GZIP_LEVEL 1

int wb_answerer_init(struct wb_answerer *answerer)
{
    *answerer = (struct wb_answerer){.packed = WB_BUF_INIT, .date_s = -1};
    answerer->compressor = libdeflate_alloc_compressor(GZIP_LEVEL);
    return answerer->compressor ? 0 : wb_fail_nomem();
}

void wb_answerer_release(struct wb_answerer *answerer)
{
    if (answerer->compressor)
        libdeflate_free_compressor(answerer->compressor);
    wb_buf_release(&answerer->packed);
    *answerer = (struct wb_answerer){0};
}

const char *wb_answer_reason(int status)
{
    static const struct {
        int status;
        const char *words;
    } table[] = {{200, "OK"},
                 {301, "Moved Permanently"},
                 {302, "Found"},
                 {304, "Not Modified"},
                 {307, "Temporary Redirect"},
                 {308, "Permanent Redirect"},
                 {400, "Bad Request"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {410, "Gone"},
                 {429, "Too Many Requests"},
                 {500, "Internal Server Error"},
                 {503, "Service Unavailable"}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].status == status)
            return table[i].words;
    return "Unknown";
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static void write_date(int64_t time_ms, char text_out[32])
{
    time_t seconds = (time_t)(time_ms / 1000 - (time_ms % 1000 < 0));
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(text_out, 32, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

int wb_answer_gzip(struct wb_answerer *answerer, struct wb_slice bytes, struct wb_slice *packed_out)
{
    size_t bound = libdeflate_gzip_compress_bound(answerer->compressor, bytes.len);

    *packed_out = WB_SLICE_EMPTY;
    wb_buf_clear(&answerer->packed);
    int err = wb_buf_reserve(&answerer->packed, bound);
    if (err < 0)
        return err;
    answerer->packed.len =
        libdeflate_gzip_compress(answerer->compressor, bytes.ptr, bytes.len, answerer->packed.ptr, bound);
    *packed_out = wb_buf_slice(&answerer->packed);
    return 0;
}

/* The Date header for now. It is formatted once per second, because every answer needs it. */
static const char *date_now(struct wb_answerer *answerer)
{
    int64_t now_ms = wb_clock_wall_ms();

    if (now_ms / 1000 != answerer->date_s) {
        answerer->date_s = now_ms / 1000;
        write_date(now_ms, answerer->date);
    }
    return answerer->date;
}

/* True if the client has this version already. If-None-Match may list several tags; "*" matches any. */
static bool client_has(const struct wb_asked *asked, const char *etag, const char *modified)
{
    struct wb_slice list = asked->if_none_match;

    if (list.len > 0) {
        if (wb_slice_equal(list, WB_SLICE_LIT("*")))
            return true;
        return *etag && memmem(list.ptr, list.len, etag, strlen(etag)) != NULL;
    }
    return *modified && wb_slice_equal(asked->if_modified_since, wb_slice_str(modified));
}

static void put_validators(struct wb_pen *pen, const char *etag, const char *modified)
{
    if (*etag) {
        wb_pen_str(pen, "ETag: ");
        wb_pen_str(pen, etag);
        wb_pen_str(pen, "\r\n");
    }
    if (*modified) {
        wb_pen_str(pen, "Last-Modified: ");
        wb_pen_str(pen, modified);
        wb_pen_str(pen, "\r\n");
    }
}

static void put_status(struct wb_pen *pen, int status, const char *date)
{
    wb_pen_str(pen, "HTTP/1.1 ");
    wb_pen_u64(pen, (uint64_t)status);
    wb_pen_char(pen, ' ');
    wb_pen_str(pen, wb_answer_reason(status));
    wb_pen_str(pen, "\r\nDate: ");
    wb_pen_str(pen, date);
    wb_pen_str(pen, "\r\n");
}

/* Writes the headers that describe the body; `length` is that of the bytes sent, which may be compressed. */
static void put_fields(struct wb_pen *pen, const struct wb_answer *answer, size_t length, bool packed)
{
    if (answer->type) {
        wb_pen_str(pen, "Content-Type: ");
        wb_pen_str(pen, answer->type);
        wb_pen_str(pen, "\r\n");
    }
    if (answer->location)
        wb_pen_printf(pen, "Location: %s\r\n", answer->location);
    if (answer->retry_after_s)
        wb_pen_printf(pen, "Retry-After: %u\r\n", answer->retry_after_s);
    if (packed)
        wb_pen_str(pen, "Content-Encoding: gzip\r\n");
    if (answer->gzip)
        wb_pen_str(pen, "Vary: Accept-Encoding\r\n");
    if (answer->extra)
        wb_pen_str(pen, answer->extra);
    wb_pen_str(pen, "Content-Length: ");
    wb_pen_u64(pen, length);
    wb_pen_str(pen, "\r\n");
}

int wb_answer(struct wb_answerer *answerer, const struct wb_asked *asked, const struct wb_answer *answer,
              struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&reply->bytes);
    struct wb_slice body = answer->body;
    char etag[24] = "", modified[32] = "";
    bool pack = answer->gzip && asked->gzip && answer->status == 200;
    int err;

    if (answer->etag)
        snprintf(etag, sizeof etag, "\"%016" PRIx64 "\"", wb_hash64(body.ptr, body.len));
    if (answer->modified_ms)
        write_date(answer->modified_ms, modified);
    bool same = answer->status == 200 && client_has(asked, etag, modified);
    if (pack && !same && (err = wb_answer_gzip(answerer, body, &body)) < 0)
        return err;
    wb_buf_clear(&reply->bytes);
    reply->status = same ? 304 : answer->status;
    reply->end = asked->keep_alive ? WB_REPLY_KEEP : WB_REPLY_CLOSE;
    put_status(&pen, reply->status, date_now(answerer));
    put_validators(&pen, etag, modified);
    if (!same)
        put_fields(&pen, answer, body.len, pack);
    if (!asked->keep_alive)
        wb_pen_str(&pen, "Connection: close\r\n");
    else if (asked->old)
        wb_pen_str(&pen, "Connection: keep-alive\r\n");
    wb_pen_str(&pen, "\r\n");
    if (!asked->head && !same)
        wb_pen_slice(&pen, body);
    return pen.err;
}
