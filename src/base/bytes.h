/*
 * bytes.h - numbers as bytes, for everything on disk: little-endian of fixed width, big-endian for keys, and varints.
 *
 *   varint (LEB128): seven bits a byte, the lowest first; the high bit of a byte says that another one follows
 *   300 = 0b10_0101100  ->  1_0101100 0_0000010  =  ac 02
 *
 * Addresses need not be aligned. fields.h reads and writes whole records with these.
 */
#ifndef WB_BASE_BYTES_H
#define WB_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WB_VARINT_MAX 10

static inline uint16_t wb_get16(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t wb_get32(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t wb_get64(const void *p)
{
    const uint8_t *b = p;
    return wb_get32(b) | (uint64_t)wb_get32(b + 4) << 32;
}

static inline void wb_put16(void *p, uint16_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

static inline void wb_put32(void *p, uint32_t v)
{
    uint8_t *b = p;
    wb_put16(b, (uint16_t)v);
    wb_put16(b + 2, (uint16_t)(v >> 16));
}

static inline void wb_put64(void *p, uint64_t v)
{
    uint8_t *b = p;
    wb_put32(b, (uint32_t)v);
    wb_put32(b + 4, (uint32_t)(v >> 32));
}

/*
 * Big-endian, for keys: memcmp() sorts the bytes in the order of the numbers. Without loops, so that compilers see one
 * instruction in them.
 */
static inline void wb_put32_be(void *p, uint32_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)(v >> 24);
    b[1] = (uint8_t)(v >> 16);
    b[2] = (uint8_t)(v >> 8);
    b[3] = (uint8_t)v;
}

static inline uint32_t wb_get32_be(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

static inline void wb_put64_be(void *p, uint64_t v)
{
    uint8_t *b = p;
    wb_put32_be(b, (uint32_t)(v >> 32));
    wb_put32_be(b + 4, (uint32_t)v);
}

static inline uint64_t wb_get64_be(const void *p)
{
    const uint8_t *b = p;
    return (uint64_t)wb_get32_be(b) << 32 | wb_get32_be(b + 4);
}

/*
 * Zigzag: signed numbers around zero, in two's complement, become small ones: 0, -1, 1, -2... become 0, 1, 2, 3...
 * so that a varint of them is short.
 */
static inline uint64_t wb_zigzag(uint64_t v)
{
    return v << 1 ^ (~(v >> 63) + 1);
}

static inline uint64_t wb_unzigzag(uint64_t v)
{
    return v >> 1 ^ (~(v & 1) + 1);
}

/* Writes at most WB_VARINT_MAX bytes and returns how many. */
static inline size_t wb_put_varint(void *p, uint64_t v)
{
    uint8_t *b = p;
    size_t n = 0;
    while (v >= 0x80) {
        b[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    b[n++] = (uint8_t)v;
    return n;
}

/*
 * Reads at *p and moves it behind what was read. Returns false if the number does not end before `end`, or is too
 * large.
 */
static inline bool wb_get_varint(const char **p, const char *end, uint64_t *v_out)
{
    const char *at = *p; /* a local, which stays in a register */
    uint64_t v = 0;
    bool ok = false;

    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
        uint8_t b = (uint8_t)*at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            ok = shift < 63 || b <= 1;
            break;
        }
    }
    *p = at;
    *v_out = ok ? v : 0;
    return ok;
}

#endif
