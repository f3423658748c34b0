/*
 * rowbytes.h - writing and reading the parts of rows and edits: varints, zigzag, texts with their length.
 *
 * A writer has reserved enough bytes before. A reader goes on after a failure and gives zeros and empty texts; who reads looks at
 * ok in the end.
 */
#ifndef WB_WEBDB_ROWBYTES_H
#define WB_WEBDB_ROWBYTES_H

#include "base/bytes.h"
#include "base/slice.h"

/* Numbers around zero become small ones: 0, -1, 1, -2... Differences of times are taken modulo 2^64, so that all of them have one. */
static inline uint64_t wb_rowbytes_zigzag(uint64_t v)
{
    return v << 1 ^ (~(v >> 63) + 1);
}

static inline uint64_t wb_rowbytes_unzigzag(uint64_t v)
{
    return v >> 1 ^ (~(v & 1) + 1);
}

static inline char *wb_rowbytes_put(char *p, uint64_t v)
{
    return p + wb_put_varint(p, v);
}

/* A time as its distance from another. */
static inline char *wb_rowbytes_put_time(char *p, int64_t time_ms, int64_t from_ms)
{
    return wb_rowbytes_put(p, wb_rowbytes_zigzag((uint64_t)time_ms - (uint64_t)from_ms));
}

static inline char *wb_rowbytes_put_text(char *p, struct wb_slice s)
{
    p = wb_rowbytes_put(p, s.len);
    if (s.len)
        memcpy(p, s.ptr, s.len);
    return p + s.len;
}

static inline char *wb_rowbytes_put_double(char *p, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    wb_put64(p, bits);
    return p + 8;
}

/* How many bytes, then its bytes from the highest on, without the zeros at the end: 1.0 takes three. */
static inline char *wb_rowbytes_put_short_double(char *p, double v)
{
    uint64_t bits;
    char *count = p++;

    memcpy(&bits, &v, sizeof bits);
    for (; bits; bits <<= 8)
        *p++ = (char)(bits >> 56);
    *count = (char)(p - count - 1);
    return p;
}

struct wb_rowbytes {
    const char *at, *end;
    bool ok;
};

static inline uint64_t wb_rowbytes_take(struct wb_rowbytes *r, uint64_t max)
{
    uint64_t v = 0;

    if (r->at < r->end && (uint8_t)*r->at < 0x80)
        v = (uint8_t)*r->at++;
    else
        r->ok = wb_get_varint(&r->at, r->end, &v) && r->ok;
    r->ok = r->ok && v <= max;
    return r->ok ? v : 0;
}

static inline int64_t wb_rowbytes_take_time(struct wb_rowbytes *r, int64_t from_ms)
{
    return (int64_t)((uint64_t)from_ms + wb_rowbytes_unzigzag(wb_rowbytes_take(r, UINT64_MAX)));
}

/* NULL where there are fewer. */
static inline const char *wb_rowbytes_take_bytes(struct wb_rowbytes *r, uint64_t len)
{
    const char *p = r->at;

    r->ok = r->ok && len <= (uint64_t)(r->end - r->at);
    if (!r->ok)
        return NULL;
    r->at += len;
    return p;
}

static inline struct wb_slice wb_rowbytes_take_text(struct wb_rowbytes *r)
{
    uint64_t len = wb_rowbytes_take(r, UINT64_MAX);
    const char *p = wb_rowbytes_take_bytes(r, len);

    return p ? wb_slice(p, (size_t)len) : WB_SLICE_EMPTY;
}

static inline double wb_rowbytes_take_double(struct wb_rowbytes *r)
{
    const char *p = wb_rowbytes_take_bytes(r, 8);
    uint64_t bits = p ? wb_get64(p) : 0;
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline double wb_rowbytes_take_short_double(struct wb_rowbytes *r)
{
    uint64_t count = wb_rowbytes_take(r, 8), bits = 0;
    const char *p = wb_rowbytes_take_bytes(r, count);
    double v;

    for (uint64_t i = 0; p && i < count; i++)
        bits |= (uint64_t)(uint8_t)p[i] << (56 - 8 * i);
    memcpy(&v, &bits, sizeof v);
    return v;
}

#endif
