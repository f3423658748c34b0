/*
 * fuzz_css.c - arbitrary bytes as a style sheet.
 *
 *   - URLs are parts of the sheet, in order, and do not overlap
 *   - a sheet in which each URL is decoded and written again names the same URLs
 */
#include "base/check.h"
#include "markup/css.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wb_buf copy, url, again;
    struct wb_slice sheet = wb_slice((const char *)data, size);
    const char *copied = sheet.ptr, *end = sheet.ptr + size;
    struct wb_css_item item, twin;
    struct wb_css css;

    wb_buf_clear(&copy);
    wb_css_init(&css, sheet);
    while (wb_css_next(&css, &item)) {
        WB_CHECK(item.raw.ptr >= copied && item.raw.ptr + item.raw.len <= end);
        WB_CHECK(wb_css_decode(item.raw, &url) == 0);
        WB_CHECK(item.coded || wb_slice_equal(item.raw, wb_buf_slice(&url)));
        WB_CHECK(wb_buf_append(&copy, copied, (size_t)(item.raw.ptr - copied)) == 0);
        WB_CHECK(wb_css_encode(wb_buf_slice(&url), &copy) == 0);
        copied = item.raw.ptr + item.raw.len;
    }
    WB_CHECK(wb_buf_append(&copy, copied, (size_t)(end - copied)) == 0);

    struct wb_css first, second;
    wb_css_init(&first, sheet);
    wb_css_init(&second, wb_buf_slice(&copy));
    while (wb_css_next(&first, &item)) {
        WB_CHECK(wb_css_next(&second, &twin) && twin.kind == item.kind && twin.quote == item.quote);
        WB_CHECK(wb_css_decode(item.raw, &url) == 0 && wb_css_decode(twin.raw, &again) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&url), wb_buf_slice(&again)));
    }
    WB_CHECK(!wb_css_next(&second, &twin));
    return 0;
}
