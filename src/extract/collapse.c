/*
 * collapse.c - writes text as words with one gap between them.
 *
 * The inner loop copies 16 bytes at a time: blanks of any kind become ' ', and the first byte that
 * needs a closer look (a second blank, '&', NUL, characters beyond ASCII that may be blanks) ends the
 * piece. It never looks at markup.
 */
#include "extract/collapse.h"
#include "markup/markup.h"

struct collapse_writer {
    char *out;
    bool blank; /* a gap has been written already, or none is needed */
};

/* The length of a white space character beyond ASCII at p, or 0. */
static size_t wide_blank(const char *p, const char *end)
{
    const uint8_t *b = (const uint8_t *)p;

    if (end - p >= 2 && b[0] == 0xc2)
        return b[1] == 0xa0 || b[1] == 0x85 ? 2 : 0;
    if (end - p < 3)
        return 0;
    if (b[0] == 0xe2 && b[1] == 0x80)
        return b[2] <= 0x8a || b[2] == 0xa8 || b[2] == 0xa9 || b[2] == 0xaf ? 3 : 0;
    if (b[0] == 0xe2)
        return b[1] == 0x81 && b[2] == 0x9f ? 3 : 0;
    if (b[0] == 0xe3)
        return b[1] == 0x80 && b[2] == 0x80 ? 3 : 0;
    return b[0] == 0xe1 && b[1] == 0x9a && b[2] == 0x80 ? 3 : 0;
}

static inline void put_blank(struct collapse_writer *w)
{
    if (!w->blank)
        *w->out++ = ' ';
    w->blank = true;
}

static void put_bytes(struct collapse_writer *w, const char *bytes, size_t len)
{
    if ((len == 1 && (uint8_t)*bytes <= ' ') || wide_blank(bytes, bytes + len) == len) {
        put_blank(w);
        return;
    }
    memcpy(w->out, bytes, len);
    w->out += len;
    w->blank = false;
}

/* Handles the character at p, at which the wide loop stopped; returns where to continue. */
static const char *take_one(struct collapse_writer *w, const char *p, const char *end, unsigned how)
{
    uint8_t c = (uint8_t)*p;

    if (c == 0) {
        if (how & WB_DECODE_NUL)
            put_bytes(w, "\xef\xbf\xbd", 3);
        return p + 1;
    }
    if (c <= ' ') {
        put_blank(w);
        while (p < end && (uint8_t)*p <= ' ' && *p)
            p++;
        return p;
    }
    if (c == '&' && how & WB_DECODE_ENTITIES) {
        char utf8[WB_ENTITY_UTF8_MAX];
        size_t len, taken = wb_entity_read(p, end, false, utf8, &len);
        if (taken) {
            put_bytes(w, utf8, len);
            return p + taken;
        }
    }
    size_t skip = c >= 0xc2 ? wide_blank(p, end) : 0;
    if (skip) {
        put_blank(w);
        return p + skip;
    }
    *w->out++ = (char)c;
    w->blank = false;
    return p + 1;
}

#ifdef WB_SCAN_WIDE
/* Finds the first bytes of characters that may be white space. */
static unsigned wide_suspects(__m128i v)
{
    unsigned e3 = wb_scan_mask(wb_scan_equal(v, (char)0xe3)), x80 = wb_scan_mask(wb_scan_equal(v, (char)0x80));
    __m128i others = _mm_or_si128(wb_scan_equal(v, (char)0xc2),
                                  _mm_or_si128(wb_scan_equal(v, (char)0xe1), wb_scan_equal(v, (char)0xe2)));

    return wb_scan_mask(others) | (e3 & (x80 >> 1 | 1u << 15));
}

/* Copies up to the first byte that needs a closer look, or to the end. */
static const char *copy_wide(struct collapse_writer *w, const char *p, const char *end, const char *readable,
                             bool entities, const char *limit)
{
    const __m128i spaces = _mm_set1_epi8(' ');

    while (readable - p >= WB_SCAN_WIDE && w->out < limit) {
        __m128i v = wb_scan_load(p);
        __m128i blank = _mm_cmpeq_epi8(_mm_min_epu8(v, spaces), v);
        unsigned blanks = wb_scan_mask(blank), high = wb_scan_mask(v);
        __m128i odd = _mm_or_si128(wb_scan_equal(v, '\0'), wb_scan_equal(v, entities ? '&' : '\0'));
        unsigned stop = wb_scan_mask(odd) | (blanks & (blanks << 1 | w->blank));
        if (high)
            stop |= wide_suspects(v);
        if (end - p < WB_SCAN_WIDE)
            stop |= ~0u << (end - p);
        _mm_storeu_si128((__m128i *)(void *)w->out,
                         _mm_or_si128(_mm_andnot_si128(blank, v), _mm_and_si128(blank, spaces)));
        unsigned n = stop & 0xffff ? (unsigned)__builtin_ctz(stop) : WB_SCAN_WIDE;
        if (n > 0)
            w->blank = blanks >> (n - 1) & 1;
        p += n;
        w->out += n;
        if (n < WB_SCAN_WIDE)
            break;
    }
    return p;
}
#endif

/* Drops what exceeds cap, without splitting a character. */
static void cut_words(struct wb_collapse *w)
{
    w->cut = true;
    if (w->len <= w->cap)
        return;
    w->len = w->cap;
    while (w->len > 0 && ((uint8_t)w->ptr[w->len] & 0xc0) == 0x80)
        w->len--;
    if (w->len > 0 && (w->ptr[w->len - 1] == ' ' || w->ptr[w->len - 1] == '\n'))
        w->len--;
}

void wb_collapse_append(struct wb_collapse *words, struct wb_slice raw, unsigned how, const char *readable)
{
    const char *p = raw.ptr, *end = p + raw.len;
    char *start = words->ptr + words->len, *limit = words->ptr + words->cap;
    struct collapse_writer w = {start, words->len == 0};

    if (words->cut)
        return;
    if (words->len > 0 && words->gap) {
        *w.out++ = words->gap;
        w.blank = true;
    }
    char *first = w.out;
    while (p < end && w.out <= limit) {
#ifdef WB_SCAN_WIDE
        p = copy_wide(&w, p, end, readable, how & WB_DECODE_ENTITIES, limit);
        if (p == end)
            break;
#endif
        p = take_one(&w, p, end, how);
    }
    (void)readable;
    if (w.out == first)
        return; /* no word came: a gap is still to be written */
    words->gap = w.blank ? ' ' : 0;
    w.out -= w.blank;
    words->len = (size_t)(w.out - words->ptr);
    if (p < end || words->len > words->cap)
        cut_words(words);
}
