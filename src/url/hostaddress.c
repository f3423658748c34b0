/*
 * hostaddress.c - IPv4 and IPv6 addresses as the URL standard reads and writes them.
 *
 * IPv4 is read in all the forms that browsers accept ("0xC0.0.2.9", "3221225993"), IPv6 with or without "::" and a
 * dotted IPv4 tail. Both are written in one form only. Nothing is resolved, and zones ("%eth0") are refused.
 */
#include "url/hostaddress.h"
#include "base/codec.h"
#include "url/escape.h"

#include <stdio.h>

/*
 * Reads a part of an IPv4 address: decimal, octal (0...) or hexadecimal (0x...). A number that is too large becomes
 * UINT64_MAX. Returns false if the text is not a number.
 */
static bool read_number(struct wb_slice text, uint64_t *value_out)
{
    unsigned radix = 10;
    uint64_t value = 0;

    *value_out = 0;
    if (text.len == 0)
        return false;
    if (text.len >= 2 && text.ptr[0] == '0') {
        radix = (text.ptr[1] | 32) == 'x' ? 16 : 8;
        size_t skip = radix == 16 ? 2 : 1;
        text = wb_slice(text.ptr + skip, text.len - skip);
    }
    for (size_t i = 0; i < text.len; i++) {
        int digit = wb_hex_digit(text.ptr[i]);
        if (digit < 0 || (unsigned)digit >= radix)
            return false;
        value = value > UINT32_MAX ? UINT64_MAX : value * radix + (unsigned)digit;
    }
    *value_out = value;
    return true;
}

static struct wb_slice without_last_dot(struct wb_slice text)
{
    if (text.len > 1 && text.ptr[text.len - 1] == '.')
        text.len--;
    return text;
}

bool wb_hostaddress_ends_in_number(struct wb_slice domain)
{
    uint64_t value = 0;

    domain = without_last_dot(domain);
    size_t from = domain.len;
    bool digits = true;
    while (from > 0 && domain.ptr[from - 1] != '.')
        digits = wb_ascii_is_digit(domain.ptr[--from]) && digits;
    struct wb_slice last = wb_slice(domain.ptr + from, domain.len - from);
    return last.len > 0 && (digits || read_number(last, &value));
}

bool wb_hostaddress_read4(struct wb_slice text, uint32_t *address_out)
{
    uint64_t parts[4] = {0}, address = 0;
    unsigned count = 0;

    *address_out = 0;
    text = without_last_dot(text);
    for (const char *p = text.ptr, *end = p + text.len;; p++) {
        const char *dot = memchr(p, '.', (size_t)(end - p));
        size_t len = (size_t)((dot ? dot : end) - p);
        if (count == 4 || !read_number(wb_slice(p, len), &parts[count++]))
            return false;
        if (!dot)
            break;
        p = dot;
    }
    for (unsigned i = 0; i + 1 < count; i++) {
        if (parts[i] > 255)
            return false;
        address |= parts[i] << (24 - 8 * i);
    }
    if (parts[count - 1] >= UINT64_C(1) << 8 * (5 - count))
        return false;
    *address_out = (uint32_t)(address | parts[count - 1]);
    return true;
}

char *wb_hostaddress_write4(char *out, uint32_t address)
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned part = address >> shift & 255;
        if (part >= 100)
            *out++ = (char)('0' + part / 100);
        if (part >= 10)
            *out++ = (char)('0' + part / 10 % 10);
        *out++ = (char)('0' + part % 10);
        if (shift)
            *out++ = '.';
    }
    return out;
}

/* Reads the dotted tail of an IPv6 address: four decimal numbers without leading zeros, up to the end of the text. */
static bool read_dotted(const char *p, const char *end, uint16_t pair_out[2])
{
    uint32_t address = 0;

    for (int part = 0; part < 4; part++) {
        unsigned value = 0;
        const char *from = p;
        if (part > 0 && (p == end || *p++ != '.'))
            return false;
        for (from = p; p < end && wb_ascii_is_digit(*p) && p - from < 3; p++)
            value = value * 10 + (unsigned)(*p - '0');
        if (p == from || value > 255 || (*from == '0' && p - from > 1))
            return false;
        address = address << 8 | value;
    }
    pair_out[0] = (uint16_t)(address >> 16);
    pair_out[1] = (uint16_t)address;
    return p == end;
}

/* Moves the pieces that were read after "::" to the end, and fills the gap with zeros. */
static bool spread_pieces(uint16_t pieces[8], int count, int gap)
{
    if (gap < 0)
        return count == 8;
    if (count == 8)
        return false;
    int moved = count - gap;
    memmove(pieces + 8 - moved, pieces + gap, (size_t)moved * sizeof *pieces);
    memset(pieces + gap, 0, (size_t)(8 - count) * sizeof *pieces);
    return true;
}

bool wb_hostaddress_read6(struct wb_slice text, uint16_t pieces_out[8])
{
    const char *p = text.ptr, *end = p + text.len;
    int count = 0, gap = -1; /* gap: the number of pieces before "::"; -1: there is no "::" */

    memset(pieces_out, 0, 8 * sizeof *pieces_out);
    if (p < end && *p == ':') {
        if (end - p < 2 || p[1] != ':')
            return false;
        p += 2;
        gap = 0;
    }
    while (p < end) {
        if (count == 8)
            return false;
        if (*p == ':') {
            if (gap >= 0)
                return false;
            p++;
            gap = count;
            continue;
        }
        unsigned value = 0;
        const char *from = p;
        for (; p < end && p - from < 4 && wb_hex_digit(*p) >= 0; p++)
            value = value << 4 | (unsigned)wb_hex_digit(*p);
        if (p < end && *p == '.') {
            if (p == from || count > 6 || !read_dotted(from, end, pieces_out + count))
                return false;
            count += 2;
            break;
        }
        if (p < end && (*p++ != ':' || p == end))
            return false;
        pieces_out[count++] = (uint16_t)value;
    }
    return spread_pieces(pieces_out, count, gap);
}

char *wb_hostaddress_write6(char *out, const uint16_t pieces[8])
{
    int zeros_at = -1, zeros = 1; /* the first of the longest runs of two zeros or more, which becomes "::" */

    for (int i = 0; i < 8; i++) {
        int n = 0;
        while (i + n < 8 && pieces[i + n] == 0)
            n++;
        if (n > zeros) {
            zeros = n;
            zeros_at = i;
        }
        i += n;
    }
    *out++ = '[';
    for (int i = 0; i < 8; i++) {
        if (i == zeros_at) {
            *out++ = ':';
            if (i == 0)
                *out++ = ':';
            i += zeros - 1;
            continue;
        }
        char text[8];
        int len = snprintf(text, sizeof text, i < 7 ? "%x:" : "%x", pieces[i]);
        memcpy(out, text, (size_t)len);
        out += len;
    }
    *out++ = ']';
    return out;
}
