/*
 * bitpack.c - packs numbers into few bits; see bitpack.h for the bytes.
 *
 * The loops over 128 numbers are expanded once for each width, so that all shifts are constants. Vectors of four words
 * are what every x86-64 (SSE2) and most other processors have.
 */
#include "postings/bitpack.h"
#include "base/bytes.h"
#include "base/check.h"

#define INLINE static inline __attribute__((always_inline))

/* Files are little-endian. */
INLINE wb_vec4 file_order(wb_vec4 v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int i = 0; i < 4; i++)
        v[i] = __builtin_bswap32(v[i]);
#endif
    return v;
}

/* ---- 128 numbers, vertical --------------------------------------------------------------------- */

INLINE void unpack_vertical(const uint8_t *bytes, uint32_t *numbers, const unsigned width)
{
    const wb_vec4_any *in = (const wb_vec4_any *)bytes;
    wb_vec4_any *out = (wb_vec4_any *)numbers;
    const uint32_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    wb_vec4 word = width ? file_order(in[0]) : (wb_vec4){0};

#pragma GCC unroll 32
    for (unsigned i = 0; i < 32; i++) {
        const unsigned bit = i * width % 32;
        wb_vec4 v = word >> bit;
        if (bit + width >= 32 && i < 31) {
            word = file_order(in[i * width / 32 + 1]);
            if (bit + width > 32)
                v |= word << (32 - bit);
        }
        out[i] = v & mask;
    }
}

INLINE void pack_vertical(const uint32_t *numbers, uint8_t *bytes, const unsigned width)
{
    const wb_vec4_any *in = (const wb_vec4_any *)numbers;
    wb_vec4_any *out = (wb_vec4_any *)bytes;
    const uint32_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    wb_vec4 word = {0};

#pragma GCC unroll 32
    for (unsigned i = 0; i < 32; i++) {
        const unsigned bit = i * width % 32;
        wb_vec4 v = in[i] & mask;
        word = bit ? word | v << bit : v;
        if (bit + width >= 32) {
            out[i * width / 32] = file_order(word);
            word = bit + width > 32 ? v >> (32 - bit) : (wb_vec4){0};
        }
    }
}

/* WIDTHS(X) is X(0) X(1) ... X(32) */
#define WIDTHS_8(X, n) X(n) X(n + 1) X(n + 2) X(n + 3) X(n + 4) X(n + 5) X(n + 6) X(n + 7)
#define WIDTHS(X) WIDTHS_8(X, 0) WIDTHS_8(X, 8) WIDTHS_8(X, 16) WIDTHS_8(X, 24) X(32)

static void unpack_128(const uint8_t *bytes, uint32_t *numbers, unsigned width)
{
    switch (width) {
#define UNPACK_CASE(w)                                                                                                 \
    case w:                                                                                                            \
        unpack_vertical(bytes, numbers, w);                                                                            \
        break;
        WIDTHS(UNPACK_CASE)
#undef UNPACK_CASE
    default:
        WB_CHECK(width <= 32);
    }
}

static void pack_128(const uint32_t *numbers, uint8_t *bytes, unsigned width)
{
    switch (width) {
#define PACK_CASE(w)                                                                                                   \
    case w:                                                                                                            \
        pack_vertical(numbers, bytes, w);                                                                              \
        break;
        WIDTHS(PACK_CASE)
#undef PACK_CASE
    default:
        WB_CHECK(width <= 32);
    }
}

/* ---- fewer numbers, horizontal ------------------------------------------------------------------- */

static size_t bytes_of_bits(size_t bits)
{
    return (bits + 7) / 8;
}

/* Writes the low `width` bits of n numbers and returns the number of bytes. */
static size_t pack_horizontal(const uint32_t *numbers, unsigned n, unsigned width, uint8_t *bytes)
{
    const uint64_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    uint64_t pending = 0;
    unsigned bits = 0;
    uint8_t *out = bytes;

    for (unsigned i = 0; i < n; i++) {
        pending |= (numbers[i] & mask) << bits;
        bits += width;
        if (bits >= 32) {
            wb_put32(out, (uint32_t)pending);
            out += 4;
            pending >>= 32;
            bits -= 32;
        }
    }
    for (; bits > 0; bits = bits > 8 ? bits - 8 : 0) {
        *out++ = (uint8_t)pending;
        pending >>= 8;
    }
    WB_CHECK((size_t)(out - bytes) == bytes_of_bits((size_t)n * width));
    return (size_t)(out - bytes);
}

/* The caller has checked that the bytes are there; end is where reading must stop. */
static void unpack_horizontal(const uint8_t *bytes, const uint8_t *end, unsigned n, unsigned width, uint32_t *numbers)
{
    const uint64_t mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    uint8_t copy[4 * BITPACK_MAX + 8];
    size_t len = bytes_of_bits((size_t)n * width);

    WB_CHECK(len <= 4 * BITPACK_MAX);
    if ((size_t)(end - bytes) < len + 8) { /* each number is read with eight bytes */
        memcpy(copy, bytes, len);
        memset(copy + len, 0, 8);
        bytes = copy;
    }
    for (unsigned i = 0, bit = 0; i < n; i++, bit += width)
        numbers[i] = (uint32_t)(wb_get64(bytes + bit / 8) >> bit % 8 & mask);
}

/* ---- packing ------------------------------------------------------------------------------------- */

struct pack_plan {
    unsigned width;
    unsigned exceptions; /* how many numbers need more bits */
    unsigned high;       /* how many more */
};

/*
 * How many bits each number needs. Converted to a float, a number shows its length in the exponent; clearing every bit
 * below a set one first keeps the conversion from rounding up to the next power of two.
 */
static void count_bits(const uint32_t *numbers, unsigned n, uint32_t *bits)
{
    for (unsigned i = 0; i < n; i += 4) {
        typedef int32_t signed4 __attribute__((vector_size(16)));
        typedef float float4 __attribute__((vector_size(16)));
        wb_vec4 v = *(const wb_vec4_any *)(numbers + i);
        v &= ~(v >> 1);
        wb_vec4 top = -(v >> 31); /* the conversion is of signed numbers */
        wb_vec4 length = ((wb_vec4) __builtin_convertvector((signed4)(v & 0x7fffffff), float4) >> 23) - 126;
        length &= (wb_vec4)((signed4)length > 0);
        *(wb_vec4_any *)(bits + i) = (length & ~top) | (32 & top);
    }
}

/* Eight counters for each number of bits: one number must not wait for the counter of the one before it. */
static struct pack_plan plan_pack(const uint32_t *numbers, unsigned n)
{
    typedef uint8_t bytes16 __attribute__((vector_size(16), may_alias));
    uint8_t counts[8][48] __attribute__((aligned(16)));
    uint32_t bits[BITPACK_MAX];
    struct pack_plan best;
    unsigned width = 32, above = 0, i;

    for (i = 0; i < sizeof counts / 16; i++)
        ((bytes16 *)counts)[i] = (bytes16){0};
    count_bits(numbers, n & ~3u, bits);
    for (i = n & ~3u; i < n; i++)
        bits[i] = numbers[i] ? 32 - (unsigned)__builtin_clz(numbers[i]) : 0;
    for (i = 0; i + 8 <= n; i += 8)
#pragma GCC unroll 8
        for (unsigned k = 0; k < 8; k++)
            counts[k][bits[i + k]]++;
    for (; i < n; i++)
        counts[0][bits[i]]++;
    for (unsigned b = 0; b <= 32; b += 16) /* no sum is above 128 */
#pragma GCC unroll 8
        for (unsigned k = 1; k < 8; k++)
            *(bytes16 *)&counts[0][b] += *(const bytes16 *)&counts[k][b];
    while (width > 0 && counts[0][width] == 0)
        width--;
    const unsigned most = width;
    size_t least = bytes_of_bits((size_t)n * most);
    best = (struct pack_plan){most, 0, 0};
    while (width > 0 && above + 2 < least) {
        above += counts[0][width--];
        size_t bytes = bytes_of_bits((size_t)n * width) + 2 + above + bytes_of_bits((size_t)above * (most - width));
        if (bytes < least) {
            least = bytes;
            best = (struct pack_plan){width, above, most - width};
        }
    }
    return best;
}

static size_t pack_exceptions(const uint32_t *numbers, unsigned n, const struct pack_plan *plan, uint8_t *bytes)
{
    uint32_t high[BITPACK_MAX];
    unsigned e = 0;

    for (unsigned i = 0; i < n && e < plan->exceptions; i++) { /* without branches: nobody can guess which they are */
        bytes[e] = (uint8_t)i;
        high[e] = numbers[i] >> plan->width;
        e += high[e] != 0;
    }
    WB_CHECK(e == plan->exceptions);
    return e + pack_horizontal(high, e, plan->high, bytes + e);
}

size_t wb_bitpack(const uint32_t *numbers, unsigned n, uint8_t *bytes)
{
    uint8_t *out = bytes;

    WB_CHECK(n >= 1 && n <= BITPACK_MAX);
    if (n <= BITPACK_PLAIN) {
        for (unsigned i = 0; i < n; i++)
            out += wb_put_varint(out, numbers[i]);
        return (size_t)(out - bytes);
    }
    struct pack_plan plan = plan_pack(numbers, n);
    *out++ = (uint8_t)(plan.width | (plan.exceptions ? BITPACK_EXCEPTIONS : 0));
    if (plan.exceptions) {
        *out++ = (uint8_t)plan.exceptions;
        *out++ = (uint8_t)plan.high;
    }
    if (n == BITPACK_MAX) {
        pack_128(numbers, out, plan.width);
        out += 16 * (size_t)plan.width;
    } else {
        out += pack_horizontal(numbers, n, plan.width, out);
    }
    if (plan.exceptions)
        out += pack_exceptions(numbers, n, &plan, out);
    WB_CHECK((size_t)(out - bytes) <= BITPACK_BYTES);
    return (size_t)(out - bytes);
}

/* ---- unpacking ----------------------------------------------------------------------------------- */

/* Reads the header. Returns the address behind it, or NULL; *after_out is the address behind the whole pack. */
static inline const uint8_t *read_plan(const uint8_t *p, const uint8_t *end, unsigned n, struct pack_plan *plan,
                                       const uint8_t **after_out)
{
    if (p >= end || *p & 0x80)
        return NULL;
    *plan = (struct pack_plan){.width = *p & BITPACK_WIDTH};
    if (*p++ & BITPACK_EXCEPTIONS) {
        if (end - p < 2)
            return NULL;
        plan->exceptions = p[0];
        plan->high = p[1];
        p += 2;
        if (plan->exceptions > n || plan->high > 32 || plan->width + plan->high > 32)
            return NULL;
    }
    size_t len = bytes_of_bits((size_t)n * plan->width) + plan->exceptions +
                 bytes_of_bits((size_t)plan->exceptions * plan->high);
    if (plan->width > 32 || len > (size_t)(end - p))
        return NULL;
    *after_out = p + len;
    return p;
}

/* Adds the high parts. Returns false if an index is too large. */
static bool unpack_exceptions(const uint8_t *p, const uint8_t *end, unsigned n, const struct pack_plan *plan,
                              uint32_t *numbers)
{
    uint32_t high[BITPACK_MAX];
    unsigned worst = 0;

    unpack_horizontal(p + plan->exceptions, end, plan->exceptions, plan->high, high);
    for (unsigned e = 0; e < plan->exceptions; e++)
        worst = p[e] > worst ? p[e] : worst;
    if (worst >= n)
        return false;
    for (unsigned e = 0; e < plan->exceptions; e++)
        numbers[p[e]] |= plan->width < 32 ? high[e] << plan->width : 0;
    return true;
}

static const uint8_t *read_varints(const uint8_t *p, const uint8_t *end, unsigned n, uint32_t *numbers)
{
    for (unsigned i = 0; i < n; i++) {
        const char *at = (const char *)p;
        uint64_t number;
        if (!wb_get_varint(&at, (const char *)end, &number) || number > UINT32_MAX)
            return NULL;
        numbers[i] = (uint32_t)number;
        p = (const uint8_t *)at;
    }
    return p;
}

const uint8_t *wb_bitunpack(const uint8_t *p, const uint8_t *end, unsigned n, uint32_t *numbers)
{
    struct pack_plan plan;
    const uint8_t *after;

    WB_CHECK(n >= 1 && n <= BITPACK_MAX);
    if (n <= BITPACK_PLAIN)
        return read_varints(p, end, n, numbers);
    p = read_plan(p, end, n, &plan, &after);
    if (!p)
        return NULL;
    if (n == BITPACK_MAX)
        unpack_128(p, numbers, plan.width);
    else
        unpack_horizontal(p, end, n, plan.width, numbers);
    p += bytes_of_bits((size_t)n * plan.width);
    if (plan.exceptions && !unpack_exceptions(p, end, n, &plan, numbers))
        return NULL;
    return after;
}

const uint8_t *wb_bitpack_skip(const uint8_t *p, const uint8_t *end, unsigned n)
{
    uint32_t numbers[BITPACK_PLAIN];
    struct pack_plan plan;
    const uint8_t *after;

    WB_CHECK(n >= 1 && n <= BITPACK_MAX);
    if (n <= BITPACK_PLAIN)
        return read_varints(p, end, n, numbers);
    return read_plan(p, end, n, &plan, &after) ? after : NULL;
}
