/*
 * fuzz_credentials.c - arbitrary bytes as ~/.aws/credentials.
 *
 *   input   how many bytes (1) the name of the profile has; these bytes; the file
 *
 * What is found are parts of lines of the file, without blanks around them.
 */
#include "base/check.h"
#include "object/s3_keys.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice found[WB_S3_KEY_COUNT];
    size_t len = size ? data[0] : 0;

    if (len + 1 > size)
        return 0;
    struct wb_slice profile = wb_slice((const char *)data + 1, len);
    struct wb_slice text = wb_slice(profile.ptr + len, size - 1 - len);
    bool any = wb_s3_credentials_find(text, profile, found);
    for (int i = 0; i < WB_S3_KEY_COUNT; i++) {
        WB_CHECK(any || found[i].len == 0);
        if (found[i].len == 0)
            continue;
        WB_CHECK(found[i].ptr >= text.ptr && found[i].ptr + found[i].len <= text.ptr + text.len);
        WB_CHECK(wb_slice_trim(found[i]).len == found[i].len);
        WB_CHECK(!memchr(found[i].ptr, '\n', found[i].len) && !memchr(found[i].ptr, '\r', found[i].len));
    }
    return 0;
}
