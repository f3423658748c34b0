/*
 * fuzz_entity.c - arbitrary bytes as HTML character references.
 *   - a reference is inside the input and begins with '&'
 *   - it gives one or two characters of UTF-8, within the bound by which buffers are sized
 *   - a reference that ends in ';' means the same whatever follows it
 *   - whatever is a reference in an attribute is one in text too
 */
#include "base/check.h"
#include "base/utf8.h"
#include "markup/entity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reference(const char *p, const char *end)
{
    char text[WB_ENTITY_UTF8_MAX], attribute[WB_ENTITY_UTF8_MAX], alone[WB_ENTITY_UTF8_MAX];
    size_t text_len, attribute_len, alone_len;
    size_t taken = wb_entity_read(p, end, false, text, &text_len);
    size_t in_attribute = wb_entity_read(p, end, true, attribute, &attribute_len);

    WB_CHECK(taken <= (size_t)(end - p));
    WB_CHECK(in_attribute == 0 || in_attribute == taken);
    WB_CHECK(taken > 0 ? text_len > 0 : text_len == 0);
    if (taken == 0)
        return;
    WB_CHECK(text_len <= taken + taken / 5 && text_len <= WB_ENTITY_UTF8_MAX);
    WB_CHECK(wb_utf8_valid(wb_slice(text, text_len)));
    if (in_attribute)
        WB_CHECK(wb_slice_equal(wb_slice(text, text_len), wb_slice(attribute, attribute_len)));
    size_t again = wb_entity_read(p, p + taken, false, alone, &alone_len);
    WB_CHECK(again == taken && wb_slice_equal(wb_slice(text, text_len), wb_slice(alone, alone_len)));
    if (p[taken - 1] == ';')
        WB_CHECK(in_attribute == taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *start = (const char *)data, *end = start + size;

    for (const char *p = start; p < end; p++)
        if (*p == '&')
            check_reference(p, end);
    return 0;
}
