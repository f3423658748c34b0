/*
 * fuzz_urls.c - reads a hostile file of URLs, without checksums.
 *
 *   input   flags (1: bit 0: make the foot fit the rest), and then the data of the blob
 *
 * Nothing may be read outside of these bytes, and no URL is much longer than they are.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "index/urlfile.h"

#include <stdlib.h>

enum { FOOT_BYTES = 16, URLS_MAX = 500 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_urlfile file = {.count = 0};
    struct wb_buf url = WB_BUF_INIT;

    if (size < 1 + FOOT_BYTES)
        return 0;
    size_t len = size - 1;
    char *copy = malloc(len);
    atomic_uchar *checked = malloc(len / 65536 + 1);
    WB_CHECK(copy && checked);
    memcpy(copy, data + 1, len);
    memset(checked, 1, len / 65536 + 1);
    if (data[0] & 1) {
        uint64_t count = wb_get64(copy + len - FOOT_BYTES) % 100, offsets = (count + 15) / 16 * 8;
        wb_put64(copy + len - FOOT_BYTES, count);
        wb_put64(copy + len - 8, offsets + FOOT_BYTES <= len ? len - FOOT_BYTES - offsets : 0);
    }
    file.blob = (struct wb_blob){.data = copy, .bytes = len, .map = copy, .path = (char *)"fuzz", .checked = checked};
    if (wb_urlfile_check(&file) == 0)
        for (uint64_t number = 0; number < file.count && number < URLS_MAX; number++)
            if (wb_urlfile_get(&file, number, &url) == 0)
                WB_CHECK(url.len <= 16 * len);
    wb_buf_release(&url);
    free(checked);
    free(copy);
    return 0;
}
