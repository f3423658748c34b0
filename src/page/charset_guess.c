/*
 * charset_guess.c - the encoding of bytes that nothing is said of.
 *
 * Looks at a window that starts with the first byte that is not ASCII, so that its time does not depend on the
 * document's length beyond the search for that byte.
 */
#include "page/charset_guess.h"
#include "page/charset_table.h"

enum { WINDOW = 64 << 10, UTF16_LOOKED = 1024 };

/* Text in UTF-16 is mostly characters below U+0100, or at least its blanks and digits are: one half of its bytes has zeros. */
static const char *guess_utf16(struct wb_slice s)
{
    size_t zeros[2] = {0, 0}, len = (s.len < UTF16_LOOKED ? s.len : UTF16_LOOKED) & ~(size_t)1;

    for (size_t i = 0; i < len; i++)
        zeros[i % 2] += s.ptr[i] == 0;
    if (zeros[1] * 8 >= len && zeros[1] > 16 * zeros[0])
        return "utf-16le";
    return zeros[0] * 8 >= len && zeros[0] > 16 * zeros[1] && len ? "utf-16be" : NULL;
}

/* Whether all of it is UTF-8; what the window's end cuts off does not count against it. */
static bool looks_utf8(struct wb_slice s)
{
    size_t valid = wb_utf8_prefix(s.ptr, s.len);

    return valid == s.len || (valid > 0 && s.len - valid < 4);
}

const char *wb_charset_guess(struct wb_slice bytes, const char *ascii)
{
    const char *name = guess_utf16(bytes);

    if (name)
        return name;
    size_t at = wb_ascii_prefix(bytes.ptr, bytes.len);
    if (at == bytes.len)
        return ascii;
    struct wb_slice window = wb_slice(bytes.ptr + at, bytes.len - at < WINDOW ? bytes.len - at : WINDOW);
    if (looks_utf8(window))
        return "utf-8";
    return "windows-1252";
}
