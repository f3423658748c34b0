/*
 * robots_path.c - the spelling in which paths of robots.txt and of URLs are compared (RFC 9309, 2.2.2).
 *
 * It knows nothing about rules. It rewrites octets, each by itself, so the result is at most three times as long.
 */
#include "fetch/robots_path.h"

#include "base/codec.h"

enum octet_kind {
    PLAIN,  /* is left as it is */
    LETTER, /* a letter or digit: left as it is; its escape is decoded in the FOLDED spelling */
    MARK,   /* "-._~": left as it is; its escape is decoded */
    STAR,
    UNSAFE, /* not allowed in a URL, or with a meaning in a pattern */
    HIGH,   /* above 127 */
};

static enum octet_kind kind_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return LETTER;
    if (c >= 0x80)
        return HIGH;
    if (c <= ' ')
        return UNSAFE;
    switch (c) {
    case '-': case '.': case '_': case '~':
        return MARK;
    case '*':
        return STAR;
    case '$': case '"': case '<': case '>': case '\\': case '^': case '`': case '{': case '|': case '}': case 0x7f:
        return UNSAFE;
    default:
        return PLAIN;
    }
}

static size_t put_escape(char *out, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";

    out[0] = '%';
    out[1] = digits[c >> 4];
    out[2] = digits[c & 15];
    return 3;
}

/* The octet that the escape at p encodes; -1 if there is no escape. */
static int escaped_octet(const char *p, const char *end)
{
    if (*p != '%' || end - p < 3)
        return -1;
    int high = wb_hex_digit(p[1]), low = wb_hex_digit(p[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int wb_robots_path_write(struct wb_slice path, bool pattern, enum wb_robots_spelling spelling, struct wb_buf *out,
                         bool *same_out)
{
    const char *end = path.ptr + path.len;
    bool folded = spelling == WB_ROBOTS_FOLDED;

    *same_out = true;
    int err = wb_buf_reserve(out, 3 * path.len + 1);
    if (err < 0)
        return err;
    char *to = out->ptr + out->len;
    for (const char *p = path.ptr; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        int octet = escaped_octet(p, end);
        bool escape;

        if (octet >= 0) {
            enum octet_kind kind = kind_of((unsigned char)octet);
            c = (unsigned char)octet;
            p += 2;
            escape = kind != MARK && !(kind == LETTER && folded);
            *same_out = *same_out && kind != LETTER;
        } else {
            enum octet_kind kind = kind_of(c);
            escape = kind == UNSAFE || (kind == STAR && !pattern) || (kind == HIGH && (pattern || folded));
            *same_out = *same_out && (kind != HIGH || pattern);
        }
        if (escape)
            to += put_escape(to, c);
        else
            *to++ = (char)c;
    }
    out->len = (size_t)(to - out->ptr);
    return 0;
}

size_t wb_robots_path_octets(struct wb_slice pattern)
{
    const char *end = pattern.ptr + pattern.len;
    size_t octets = 0;

    for (const char *p = pattern.ptr; p < end; p++) {
        int octet = escaped_octet(p, end);
        enum octet_kind kind = kind_of((unsigned char)(octet >= 0 ? octet : *p));
        if (octet >= 0) {
            p += 2;
            octets += kind == LETTER || kind == MARK ? 1 : 3;
        } else {
            octets += kind == UNSAFE || kind == HIGH ? 3 : 1;
        }
    }
    return octets;
}

static size_t find_first_of(struct wb_slice s, size_t from, const char *any)
{
    while (from < s.len && !(s.ptr[from] && strchr(any, s.ptr[from])))
        from++;
    return from;
}

struct wb_slice wb_robots_path_of(struct wb_slice url)
{
    size_t at = 0;

    url.len = find_first_of(url, 0, "#");
    if (url.len && url.ptr[0] == '/')
        return url;
    size_t scheme = find_first_of(url, 0, ":/?;");
    if (url.len - scheme >= 3 && memcmp(url.ptr + scheme, "://", 3) == 0)
        at = scheme + 3;
    at = find_first_of(url, at, "/?;");
    return at == url.len ? WB_SLICE_LIT("/") : wb_slice(url.ptr + at, url.len - at);
}
