/*
 * fields.h - writes and reads the fields of packed records: numbers, times, texts, doubles.
 *
 *   varint   LEB128: seven bits a byte, low ones first; the high bit says that another byte follows
 *   time     zigzag varint of its distance in ms from another time
 *   text     varint length, then the bytes
 *   double   eight bytes, little-endian; or short: a length, then the bytes from the highest on without trailing zeros
 *
 * Writing: wb_fields_put_*() write at p and return the address behind what they wrote. The caller reserved enough room
 * before (WB_VARINT_MAX bytes for a number). Reading: a cursor that never goes past the end of the record.
 * After the first failure it gives zeros and empty texts and stays failed, so that a record is read in
 * one go and `ok` is looked at once:
 *
 *   struct wb_fields fields = wb_fields_of(record);
 *   uint16_t status = (uint16_t)wb_fields_take(&fields, UINT16_MAX);
 *   struct wb_slice url = wb_fields_take_text(&fields);
 *   if (!fields.ok || fields.at != fields.end)
 *       return wb_fail(WB_E_CORRUPT, ...);
 */
#ifndef WB_BASE_FIELDS_H
#define WB_BASE_FIELDS_H

#include "base/bytes.h"
#include "base/slice.h"

/* ---- writing --------------------------------------------------------------------------------------------------- */

static inline char *wb_fields_put(char *p, uint64_t v)
{
    return p + wb_put_varint(p, v);
}

/* A signed number; short if it is close to zero. */
static inline char *wb_fields_put_signed(char *p, int64_t v)
{
    return wb_fields_put(p, wb_zigzag((uint64_t)v));
}

/* A time as its distance from another. The difference is taken modulo 2^64, so any two times will do. */
static inline char *wb_fields_put_time(char *p, int64_t time_ms, int64_t from_ms)
{
    return wb_fields_put(p, wb_zigzag((uint64_t)time_ms - (uint64_t)from_ms));
}

static inline char *wb_fields_put_text(char *p, struct wb_slice s)
{
    p = wb_fields_put(p, s.len);
    if (s.len)
        memcpy(p, s.ptr, s.len);
    return p + s.len;
}

static inline char *wb_fields_put_double(char *p, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    wb_put64(p, bits);
    return p + 8;
}

/* Round numbers take few bytes: 1.0 takes three. At most nine. */
static inline char *wb_fields_put_short_double(char *p, double v)
{
    uint64_t bits;
    char *count = p++;

    memcpy(&bits, &v, sizeof bits);
    for (; bits; bits <<= 8)
        *p++ = (char)(bits >> 56);
    *count = (char)(p - count - 1);
    return p;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* What is left of a record. */
struct wb_fields {
    const char *at, *end;
    bool ok; /* false after the first field that was not there or not valid */
};

static inline struct wb_fields wb_fields_of(struct wb_slice record)
{
    return (struct wb_fields){record.ptr, record.ptr + record.len, true};
}

/* A number of at most max. */
static inline uint64_t wb_fields_take(struct wb_fields *f, uint64_t max)
{
    uint64_t v = 0;

    if (f->at < f->end && (uint8_t)*f->at < 0x80)
        v = (uint8_t)*f->at++;
    else
        f->ok = wb_get_varint(&f->at, f->end, &v) && f->ok;
    f->ok = f->ok && v <= max;
    return f->ok ? v : 0;
}

static inline int64_t wb_fields_take_signed(struct wb_fields *f)
{
    return (int64_t)wb_unzigzag(wb_fields_take(f, UINT64_MAX));
}

static inline int64_t wb_fields_take_time(struct wb_fields *f, int64_t from_ms)
{
    return (int64_t)((uint64_t)from_ms + wb_unzigzag(wb_fields_take(f, UINT64_MAX)));
}

/* The next len bytes; NULL if there are fewer. */
static inline const char *wb_fields_take_bytes(struct wb_fields *f, uint64_t len)
{
    const char *p = f->at;

    f->ok = f->ok && len <= (uint64_t)(f->end - f->at);
    if (!f->ok)
        return NULL;
    f->at += len;
    return p;
}

static inline uint8_t wb_fields_take_byte(struct wb_fields *f)
{
    const char *p = wb_fields_take_bytes(f, 1);

    return p ? (uint8_t)*p : 0;
}

/* The next len bytes as a slice of the record; empty if there are fewer. */
static inline struct wb_slice wb_fields_take_slice(struct wb_fields *f, uint64_t len)
{
    const char *p = wb_fields_take_bytes(f, len);

    return p ? wb_slice(p, (size_t)len) : WB_SLICE_EMPTY;
}

static inline struct wb_slice wb_fields_take_text(struct wb_fields *f)
{
    return wb_fields_take_slice(f, wb_fields_take(f, UINT64_MAX));
}

static inline double wb_fields_take_double(struct wb_fields *f)
{
    const char *p = wb_fields_take_bytes(f, 8);
    uint64_t bits = p ? wb_get64(p) : 0;
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline double wb_fields_take_short_double(struct wb_fields *f)
{
    uint64_t count = wb_fields_take(f, 8), bits = 0;
    const char *p = wb_fields_take_bytes(f, count);
    double v;

    for (uint64_t i = 0; p && i < count; i++)
        bits |= (uint64_t)(uint8_t)p[i] << (56 - 8 * i);
    memcpy(&v, &bits, sizeof v);
    return v;
}

#endif
