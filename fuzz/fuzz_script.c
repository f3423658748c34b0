/*
 * fuzz_script.c - arbitrary bytes as a script.
 *
 *   - strings are parts of the script, in order, do not overlap, and have quotes of the same kind on both sides
 *   - no string contains its quote, a backslash or a line end
 */
#include "base/check.h"
#include "markup/script.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice text = wb_slice((const char *)data, size);
    const char *before = text.ptr, *end = text.ptr + size;
    struct wb_script_item item;
    struct wb_script script;

    wb_script_init(&script, text);
    while (wb_script_next(&script, &item)) {
        const char *s = item.text.ptr;
        WB_CHECK(s > before && s + item.text.len < end);
        WB_CHECK(s[-1] == s[item.text.len] && strchr("'\"`", s[-1]));
        for (size_t i = 0; i < item.text.len; i++)
            WB_CHECK(s[i] != s[-1] && s[i] != '\\' && s[i] != '\n');
        WB_CHECK(item.kind == WB_SCRIPT_STRING || item.kind == WB_SCRIPT_IMPORT);
        before = s + item.text.len;
    }
    WB_CHECK(script.at == script.end);
    return 0;
}
