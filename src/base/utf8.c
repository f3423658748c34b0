/* utf8.c - checks, reads and writes UTF-8, and converts UTF-16 to it. Other encodings are extract's work (ICU). */
#include "base/utf8.h"
#include "base/check.h"

#define REPLACEMENT 0xfffdu /* U+FFFD replaces what is malformed */

size_t wb_utf8_length(const char *p, size_t len)
{
    const uint8_t *b = (const uint8_t *)p;

    if (len == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    if (b[0] < 0xc2 || b[0] > 0xf4)
        return 0;
    size_t n = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    if (n > len)
        return 0;
    /*
     * The first byte narrows what the second one may be: this rules out overlong forms, surrogates and too large
     * ones.
     */
    uint8_t low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    if (b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (b[i] < 0x80 || b[i] > 0xbf)
            return 0;
    return n;
}

uint32_t wb_utf8_decode(const char *p, size_t length)
{
    const uint8_t *b = (const uint8_t *)p;

    WB_CHECK(length >= 1 && length <= 4); /* 0 is what wb_utf8_length() returns for malformed bytes */
    switch (length) {
    case 1:
        return b[0];
    case 2:
        return (uint32_t)(b[0] & 0x1f) << 6 | (b[1] & 0x3f);
    case 3:
        return (uint32_t)(b[0] & 0x0f) << 12 | (uint32_t)(b[1] & 0x3f) << 6 | (b[2] & 0x3f);
    default:
        return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3f) << 12 | (uint32_t)(b[2] & 0x3f) << 6 |
               (b[3] & 0x3f);
    }
}

size_t wb_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

bool wb_utf8_valid(struct wb_slice s)
{
    size_t i = 0;

    while (i < s.len) {
        size_t n = wb_utf8_length(s.ptr + i, s.len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

static uint32_t utf16_unit(struct wb_slice utf16, size_t at, bool big_endian)
{
    uint8_t first = (uint8_t)utf16.ptr[at], second = (uint8_t)utf16.ptr[at + 1];

    return big_endian ? (uint32_t)(first << 8 | second) : (uint32_t)(second << 8 | first);
}

/* Reads one code point and moves *at past it. */
static uint32_t utf16_next(struct wb_slice utf16, size_t *at, bool big_endian)
{
    if (utf16.len - *at < 2) {
        *at = utf16.len;
        return REPLACEMENT;
    }
    uint32_t unit = utf16_unit(utf16, *at, big_endian);
    *at += 2;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit;
    if (unit > 0xdbff || utf16.len - *at < 2)
        return REPLACEMENT;
    uint32_t low = utf16_unit(utf16, *at, big_endian);
    if (low < 0xdc00 || low > 0xdfff)
        return REPLACEMENT; /* the second unit is read again: it begins the next code point */
    *at += 2;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

int wb_utf8_from_utf16(struct wb_slice utf16, bool big_endian, size_t limit, struct wb_buf *utf8_out)
{
    size_t start = utf8_out->len;
    bool marked = utf16.len >= 2 && utf16_unit(utf16, 0, big_endian) == 0xfeff;

    for (size_t at = marked ? 2 : 0; at < utf16.len;) {
        char bytes[4];
        size_t length = wb_utf8_encode(utf16_next(utf16, &at, big_endian), bytes);

        if (utf8_out->len - start + length > limit)
            return 0;
        int err = wb_buf_append(utf8_out, bytes, length);
        if (err < 0)
            return err;
    }
    return 0;
}
