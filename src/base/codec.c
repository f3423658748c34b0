/* codec.c - hexadecimal and base32. It never allocates: the caller provides the room. */
#include "base/codec.h"

int wb_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

void wb_hex_encode(const void *bytes, size_t len, char *text_out)
{
    const uint8_t *b = bytes;

    for (size_t i = 0; i < len; i++) {
        text_out[2 * i] = "0123456789abcdef"[b[i] >> 4];
        text_out[2 * i + 1] = "0123456789abcdef"[b[i] & 15];
    }
    text_out[2 * len] = '\0';
}

bool wb_hex_decode(struct wb_slice text, void *bytes_out, size_t len)
{
    uint8_t *b = bytes_out;

    if (text.len != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int hi = wb_hex_digit(text.ptr[2 * i]), lo = wb_hex_digit(text.ptr[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        b[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

void wb_base32_encode(const void *bytes, size_t len, char *text_out)
{
    const uint8_t *b = bytes;
    uint32_t bits = 0;
    unsigned held = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | b[i];
        held += 8;
        while (held >= 5) {
            held -= 5;
            *text_out++ = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits >> held & 31];
        }
    }
    if (held)
        *text_out++ = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits << (5 - held) & 31];
    *text_out = '\0';
}

static int base32_digit(char c)
{
    c = wb_ascii_lower(c);
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    if (c >= '2' && c <= '7')
        return c - '2' + 26;
    return -1;
}

bool wb_base32_decode(struct wb_slice text, void *bytes_out, size_t len)
{
    uint8_t *b = bytes_out;
    uint32_t bits = 0;
    unsigned held = 0;

    if (text.len != (len * 8 + 4) / 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int digit = base32_digit(text.ptr[i]);
        if (digit < 0)
            return false;
        bits = bits << 5 | (uint32_t)digit;
        held += 5;
        if (held >= 8) {
            held -= 8;
            *b++ = (uint8_t)(bits >> held);
        }
    }
    /* The bits of the last digit that are not part of a byte must be zero, so that every text has one spelling. */
    return (bits & ((1u << held) - 1)) == 0;
}

/* ---- base64 -------------------------------------------------------------------------------------- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void wb_base64url_encode(const void *bytes, size_t len, char *text_out)
{
    const uint8_t *from = bytes;

    for (; len >= 3; len -= 3, from += 3, text_out += 4) {
        uint32_t v = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        text_out[0] = base64_digits[v >> 18];
        text_out[1] = base64_digits[v >> 12 & 63];
        text_out[2] = base64_digits[v >> 6 & 63];
        text_out[3] = base64_digits[v & 63];
    }
    if (len == 0)
        return;
    uint32_t v = (uint32_t)from[0] << 16 | (len > 1 ? (uint32_t)from[1] << 8 : 0);
    text_out[0] = base64_digits[v >> 18];
    text_out[1] = base64_digits[v >> 12 & 63];
    if (len > 1)
        text_out[2] = base64_digits[v >> 6 & 63];
}

/* plus, slash: the two digits that differ between the alphabets. */
static int base64_value(char c, char plus, char slash)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (wb_ascii_is_digit(c))
        return c - '0' + 52;
    return c == plus ? 62 : c == slash ? 63 : -1;
}

/* Without padding. */
static bool base64_decode(struct wb_slice text, char plus, char slash, uint8_t *to)
{
    uint32_t bits = 0;
    unsigned count = 0;

    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.ptr[i], plus, slash);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            *to++ = (uint8_t)(bits >> count);
        }
    }
    return (bits & ((1u << count) - 1)) == 0; /* bits that stand for nothing */
}

bool wb_base64url_decode(struct wb_slice text, void *bytes_out)
{
    return base64_decode(text, '-', '_', bytes_out);
}

bool wb_base64_decode(struct wb_slice text, void *bytes_out, size_t *len_out)
{
    *len_out = 0;
    if (text.len % 4)
        return false;
    for (int i = 0; i < 2 && text.len && text.ptr[text.len - 1] == '='; i++)
        text.len--;
    *len_out = WB_BASE64_BYTES(text.len);
    return base64_decode(text, '+', '/', bytes_out);
}
