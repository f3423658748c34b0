/*
 * fuzz_payload.c - HTTP responses of arbitrary bytes: split, decoded, and rewritten for export.
 *
 * The first two bytes are the limit, the rest is the message.
 */
#include "base/check.h"
#include "base/error.h"
#include "page/page.h"
#include "warc/xcrawl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_decoding(const struct wb_http_head *http, size_t limit)
{
    struct wb_buf body = WB_BUF_INIT, again = WB_BUF_INIT;
    struct wb_payload_result decoded, more;

    WB_CHECK(wb_payload_decode(http->raw, http->body, limit, &body, &decoded) == 0);
    WB_CHECK(body.len <= limit);
    WB_CHECK(decoded.changed || body.len == 0);
    /*
     * Where all of it fits, more room changes nothing; unless it is damaged, which
     * libzstd notices or not by the room it has (a frame that ends in an empty block
     * before the length it promised).
     */
    WB_CHECK(wb_payload_decode(http->raw, http->body, limit + 100, &again, &more) == 0);
    if (!decoded.cut && !more.cut && !decoded.damaged && !more.damaged)
        WB_CHECK(decoded.changed == more.changed && wb_slice_equal(wb_buf_slice(&body), wb_buf_slice(&again)));
    wb_buf_release(&body);
    wb_buf_release(&again);
}

/* Export followed by import restores a head, if its lines end in CRLF and it has no X-Crawl- names already. */
static void check_rewriting(const struct wb_http_head *http)
{
    struct wb_buf written = WB_BUF_INIT, undone = WB_BUF_INIT, twice = WB_BUF_INIT;
    struct wb_http_head back;

    WB_CHECK(wb_xcrawl_write(http->raw, http->body.len, &written) == 0);
    size_t head_len = written.len;
    WB_CHECK(wb_buf_append_str(&written, "\r\n") == 0);
    WB_CHECK(wb_http_split(wb_buf_slice(&written), &back) == 0 || written.len > http->raw.len);
    if (back.raw.len > 0) {
        WB_CHECK(back.raw.len == head_len && back.status == http->status);
        if (!wb_xcrawl_has(http->raw)) {
            WB_CHECK(wb_xcrawl_undo(back.raw, &undone) == 0);
            WB_CHECK(wb_xcrawl_write(wb_buf_slice(&undone), http->body.len, &twice) == 0);
            WB_CHECK(wb_slice_equal(wb_buf_slice(&twice), back.raw));
        }
    }
    wb_buf_release(&written);
    wb_buf_release(&undone);
    wb_buf_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_http_head http;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_slice value, type, charset;

    if (size < 2)
        return 0;
    size_t limit = (size_t)data[0] << 8 | data[1];
    if (wb_http_split(wb_slice((const char *)data + 2, size - 2), &http) < 0)
        return 0;
    WB_CHECK(http.raw.len + http.body.len <= size - 2 && http.status >= 100);
    check_decoding(&http, limit);
    check_rewriting(&http);
    wb_http_header(http.raw, "Content-Type", &value);
    WB_CHECK(wb_media_type_parse(value, &text, &type, &charset) == 0);
    WB_CHECK(type.len <= value.len && charset.len <= value.len);
    wb_buf_release(&text);
    return 0;
}
