/*
 * bitpack.h - up to 128 numbers in few bits each, with exceptions for the large ones (patched frame of reference).
 *
 *   n <= 3      n varints
 *   otherwise   header (1)   bits 0-5: width b, 0 to 32; bit 6: exceptions follow; bit 7: 0
 *               if bit 6:    number of exceptions e (1), width of their high parts h (1)
 *               the low b bits of the n numbers
 *               if bit 6:    e indexes (1 byte each), ascending; the high parts of these numbers, h bits each
 *
 *   n == 128    vertical: number i is in lane i % 4 of vectors of four 32-bit words; the lanes hold their 32 numbers
 *               one after the other, lowest bits first. 16 * b bytes.
 *   n < 128     horizontal: one number after the other, lowest bits first. ceil(n * b / 8) bytes. High parts too.
 *
 * The width is the one that makes the whole smallest; of several, the largest.
 */
#ifndef WB_POSTINGS_BITPACK_H
#define WB_POSTINGS_BITPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BITPACK_MAX = 128,                   /* numbers that are packed together */
    BITPACK_PLAIN = 3,                   /* so many numbers, or fewer, are varints */
    BITPACK_BYTES = 1 + 4 * BITPACK_MAX, /* no pack is larger */
    BITPACK_EXCEPTIONS = 0x40,           /* bit of the header */
    BITPACK_WIDTH = 0x3f,                /* bits of the header */
};

/* A vector of four numbers. The second one may be at any address, and holds bytes of a file. */
typedef uint32_t wb_vec4 __attribute__((vector_size(16)));
typedef uint32_t wb_vec4_any __attribute__((vector_size(16), aligned(1), may_alias));

typedef float wb_float4 __attribute__((vector_size(16)));

/* Packs n numbers, 1 to 128, and returns the number of bytes written: at most BITPACK_BYTES. */
size_t wb_bitpack(const uint32_t *numbers, unsigned n, uint8_t *bytes);

/*
 * Unpacks n numbers and returns the address behind the pack, or NULL if it does not end before end or makes no sense.
 * numbers has room for BITPACK_MAX. Reads nothing outside of the bytes from p to end.
 */
const uint8_t *wb_bitunpack(const uint8_t *p, const uint8_t *end, unsigned n, uint32_t *numbers);

/* Returns the address behind the pack without unpacking it; NULL as above. */
const uint8_t *wb_bitpack_skip(const uint8_t *p, const uint8_t *end, unsigned n);

#endif
