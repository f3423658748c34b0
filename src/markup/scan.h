/*
 * scan.h - finds bytes in short runs, 16 at a time if the processor can (SSE2).
 *
 * Inline, because most runs in a page are so short that a call would take longer. Never reads outside
 * [p, end). Define WB_SCAN_PLAIN to test the code for other processors.
 */
#ifndef WB_MARKUP_SCAN_H
#define WB_MARKUP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__) && !defined(WB_SCAN_PLAIN)
#include <emmintrin.h>
#define WB_SCAN_WIDE 16

static inline __m128i wb_scan_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline unsigned wb_scan_mask(__m128i v)
{
    return (unsigned)_mm_movemask_epi8(v);
}

static inline __m128i wb_scan_equal(__m128i v, char c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}
#endif

/* Finds the first a, or returns end. */
static inline const char *wb_scan_byte(const char *p, const char *end, char a)
{
#ifdef WB_SCAN_WIDE
    for (; end - p >= WB_SCAN_WIDE; p += WB_SCAN_WIDE) {
        unsigned found = wb_scan_mask(wb_scan_equal(wb_scan_load(p), a));
        if (found)
            return p + __builtin_ctz(found);
    }
#endif
    while (p < end && *p != a)
        p++;
    return p;
}

/* Finds the first a or b, or returns end. */
static inline const char *wb_scan_either(const char *p, const char *end, char a, char b)
{
#ifdef WB_SCAN_WIDE
    for (; end - p >= WB_SCAN_WIDE; p += WB_SCAN_WIDE) {
        __m128i v = wb_scan_load(p);
        unsigned found = wb_scan_mask(_mm_or_si128(wb_scan_equal(v, a), wb_scan_equal(v, b)));
        if (found)
            return p + __builtin_ctz(found);
    }
#endif
    while (p < end && *p != a && *p != b)
        p++;
    return p;
}

/* Finds the first quote, or returns end; sets *coded if there is an '&', CR or NUL before it. */
static inline const char *wb_scan_value(const char *p, const char *end, char quote, bool *coded)
{
#ifdef WB_SCAN_WIDE
    for (; end - p >= WB_SCAN_WIDE; p += WB_SCAN_WIDE) {
        __m128i v = wb_scan_load(p);
        unsigned found = wb_scan_mask(wb_scan_equal(v, quote));
        unsigned codes = wb_scan_mask(_mm_or_si128(_mm_or_si128(wb_scan_equal(v, '&'), wb_scan_equal(v, '\r')),
                                                   wb_scan_equal(v, '\0')));
        if (found) {
            *coded |= (codes & (found ^ (found - 1))) != 0;
            return p + __builtin_ctz(found);
        }
        *coded |= codes != 0;
    }
#endif
    for (; p < end && *p != quote; p++)
        *coded |= *p == '&' || *p == '\r' || *p == '\0';
    return p;
}

#endif
