/*
 * listblock.c - docids, codes and frequencies of a block as bytes; see listblock.h.
 *
 * Everything that is read may be hostile: no function here reads beyond the end it is given, and docids that are
 * returned are always ascending and below the limit.
 */
#include "postings/listblock.h"
#include "base/bytes.h"
#include "base/check.h"

/* ---- frequencies --------------------------------------------------------------------------------- */

#define HAS(mask, field) ((mask) >> (field)&1)
#define LEFT_OUT(mask)                                                                                                 \
    (HAS(mask, WB_FIELD_OTHER)     ? WB_FIELD_OTHER                                                                    \
     : HAS(mask, WB_FIELD_MAIN)    ? WB_FIELD_MAIN                                                                     \
     : HAS(mask, WB_FIELD_HEADING) ? WB_FIELD_HEADING                                                                  \
     : HAS(mask, WB_FIELD_TITLE)   ? WB_FIELD_TITLE                                                                    \
     : HAS(mask, WB_FIELD_URL)     ? WB_FIELD_URL                                                                      \
                                   : WB_FIELDS)
#define LEFT_OUT_4(m) LEFT_OUT(m), LEFT_OUT((m) + 1), LEFT_OUT((m) + 2), LEFT_OUT((m) + 3)
#define LEFT_OUT_16(m) LEFT_OUT_4(m), LEFT_OUT_4((m) + 4), LEFT_OUT_4((m) + 8), LEFT_OUT_4((m) + 12)

/* For each mask, the field that is left out: OTHER has the smallest weight and so the largest frequencies. */
static const uint8_t left_out_of[64] = {LEFT_OUT_16(0), LEFT_OUT_16(16), LEFT_OUT_16(32), LEFT_OUT_16(48)};

/* The field whose frequency follows from the weight; WB_FIELDS if none does. */
static inline unsigned left_out(unsigned mask, uint32_t weight)
{
    return weight < WB_WEIGHT_MAX ? left_out_of[mask] : WB_FIELDS;
}

uint32_t wb_code_put(const uint32_t frequency[WB_FIELDS], uint8_t *extra, size_t *len_out)
{
    unsigned mask = 0, written = 0;
    uint32_t weight, most = 0;
    uint8_t *p = extra;

    for (unsigned f = 0; f < WB_FIELDS; f++)
        mask |= (frequency[f] != 0 ? 1u : 0u) << f;
    WB_CHECK(mask != 0);
    *len_out = 0;
    if (mask == 1u << WB_FIELD_MAIN)
        return (frequency[WB_FIELD_MAIN] - 1) * 2;
    weight = wb_posting_weight(frequency);
    unsigned without = left_out(mask, weight);
    for (unsigned f = 0; f < WB_FIELDS; f++)
        if (frequency[f] && f != without) {
            most = frequency[f] > most ? frequency[f] : most;
            written++;
        }
    *p++ = (uint8_t)(mask | (written && most == 1 ? LISTBLOCK_ALL_ONE : 0));
    if (most > 1)
        for (unsigned f = 0; f < WB_FIELDS; f++)
            if (frequency[f] && f != without)
                p += wb_put_varint(p, frequency[f] - 1);
    *len_out = (size_t)(p - extra);
    WB_CHECK(*len_out <= WB_POSTING_EXTRA_MAX);
    return weight * 2 + 1;
}

/* The frequency of the field that is not stored, so that the weight is right; 0 if there is none. */
static inline uint32_t solve_weight(unsigned without, uint64_t known, uint32_t weight)
{
    uint32_t left = known < weight ? weight - (uint32_t)known : 0, each = wb_field_weight[without];

    if (without == WB_FIELD_OTHER)
        return left;
    return left % each == 0 ? left / each : 0;
}

/* Reads the extra bytes of an odd code. frequency_out may be NULL; *sum_out is the sum of all frequencies. */
static inline __attribute__((always_inline)) const uint8_t *
read_extra(uint32_t code, const uint8_t *p, const uint8_t *end, uint32_t *frequency_out, uint64_t *sum_out)
{
    uint32_t weight = wb_code_weight(code), solved = 0;
    const uint8_t *start = p;
    uint64_t known = 0, number = 0, sum = 0; /* known: the weight of the fields that are stored */

    if (p >= end || (*p & 0x3f) == 0 || *p & 0x80)
        return NULL;
    unsigned mask = *p & 0x3f, all_one = *p & LISTBLOCK_ALL_ONE, without = left_out(mask, weight);
    p++;
    for (unsigned rest = mask & ~(1u << without); rest; rest &= rest - 1) {
        unsigned f = (unsigned)__builtin_ctz(rest);
        if (!all_one && p < end && *p < 0x80) {
            number = *p++;
        } else if (!all_one) {
            const char *at = (const char *)p;
            if (!wb_get_varint(&at, (const char *)end, &number) || number >= LISTBLOCK_FREQUENCY_MAX)
                return NULL;
            p = (const uint8_t *)at;
        }
        if (frequency_out)
            frequency_out[f] = (uint32_t)number + 1;
        sum += number + 1;
        known += f == WB_FIELD_ANCHOR ? wb_field_weight[f] * (32u - (unsigned)__builtin_clz((unsigned)number + 1))
                                      : wb_field_weight[f] * (number + 1);
    }
    if (without < WB_FIELDS && (solved = solve_weight(without, known, weight)) == 0)
        return NULL;
    if (frequency_out && without < WB_FIELDS)
        frequency_out[without] = solved;
    *sum_out = sum + solved;
    return p - start <= WB_POSTING_EXTRA_MAX ? p : NULL;
}

const uint8_t *wb_code_get(uint32_t code, const uint8_t *p, const uint8_t *end, uint32_t frequency_out[WB_FIELDS])
{
    uint64_t sum;

    memset(frequency_out, 0, WB_FIELDS * sizeof *frequency_out);
    return read_extra(code, p, end, frequency_out, &sum);
}

const uint8_t *wb_code_occurrences(uint32_t code, const uint8_t *p, const uint8_t *end, uint64_t *sum_out)
{
    return read_extra(code, p, end, NULL, sum_out);
}

/* ---- docids -------------------------------------------------------------------------------------- */

/* Writes the docids as bits and returns the number of bytes. */
static size_t put_bits(const uint32_t *docids, unsigned n, uint32_t lowest, size_t bits_bytes, uint8_t *bytes)
{
    WB_CHECK(bits_bytes <= LISTBLOCK_BITS_MAX);
    bytes[0] = LISTBLOCK_BITS;
    bytes[1] = (uint8_t)bits_bytes;
    memset(bytes + 2, 0, bits_bytes);
    for (unsigned i = 0; i < n; i++)
        bytes[2 + (docids[i] - lowest) / 8] |= (uint8_t)(1u << (docids[i] - lowest) % 8);
    return 2 + bits_bytes;
}

size_t wb_docids_put(const uint32_t *docids, unsigned n, uint32_t lowest, uint8_t *bytes)
{
    uint32_t gaps[WB_BLOCK_POSTINGS];
    size_t bits_bytes = ((size_t)docids[n - 1] - lowest) / 8 + 1, len;

    WB_CHECK(n >= 1 && n <= WB_BLOCK_POSTINGS);
    WB_CHECK(docids[0] >= lowest);
    gaps[0] = docids[0] - lowest;
    for (unsigned i = 1; i < n; i++)
        gaps[i] = docids[i] - docids[i - 1] - 1;
    len = wb_bitpack(gaps, n, bytes);
    if (n == WB_BLOCK_POSTINGS && 2 + bits_bytes < len)
        len = put_bits(docids, n, lowest, bits_bytes, bytes);
    return len;
}

static const uint8_t *get_bits(const uint8_t *p, const uint8_t *end, unsigned n, uint32_t lowest, uint32_t docs,
                               uint32_t *docids)
{
    size_t bits_bytes;
    unsigned found = 0;

    if (n != WB_BLOCK_POSTINGS || end - p < 2 || end - p - 2 < p[1])
        return NULL;
    bits_bytes = p[1];
    p += 2;
    for (size_t at = 0; at < bits_bytes; at += 8) {
        uint8_t word[8] = {0};
        if (bits_bytes - at >= 8)
            memcpy(word, p + at, 8);
        else
            memcpy(word, p + at, bits_bytes - at);
        uint64_t bits = wb_get64(word);
        for (; bits && found < n; bits &= bits - 1)
            docids[found++] = lowest + 8 * (uint32_t)at + (uint32_t)__builtin_ctzll(bits);
        if (bits)
            return NULL;
    }
    if (found != n || (uint64_t)lowest + (docids[n - 1] - lowest) >= docs)
        return NULL;
    return p + bits_bytes;
}

/* Adds up gaps so large that a sum might not fit into 32 bits. */
static bool add_up_slowly(uint32_t *docids, unsigned n, uint32_t lowest, uint32_t docs)
{
    uint64_t next = lowest;

    for (unsigned i = 0; i < n; i++) {
        next += docids[i];
        if (next >= docs)
            return false;
        docids[i] = (uint32_t)next++;
    }
    return true;
}

/* Turns gaps into docids in place. Four at a time: each vector is summed up by two shifted additions. */
static bool add_up(uint32_t *docids, unsigned n, uint32_t lowest, uint32_t docs)
{
    wb_vec4_any *at = (wb_vec4_any *)docids;
    wb_vec4 all = {0}, carry = {lowest - 1, lowest - 1, lowest - 1, lowest - 1};
    const wb_vec4 zero = {0};

    for (unsigned i = n; i % 4; i++)
        docids[i] = 0;
    for (unsigned i = 0; i < (n + 3) / 4; i++)
        all |= at[i];
    if ((all[0] | all[1] | all[2] | all[3]) >> 24)
        return add_up_slowly(docids, n, lowest, docs);
    for (unsigned i = 0; i < (n + 3) / 4; i++) {
        wb_vec4 v = at[i] + 1;
        v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
        v += __builtin_shufflevector(zero, v, 0, 1, 4, 5);
        v += carry;
        carry = __builtin_shufflevector(v, v, 3, 3, 3, 3);
        at[i] = v;
    }
    /* Gaps were below 2^24, so their sum is below 2^32, and this difference is the sum. */
    return (uint64_t)lowest + (docids[n - 1] - lowest) < docs;
}

const uint8_t *wb_docids_get(const uint8_t *p, const uint8_t *end, unsigned n, uint32_t lowest, uint32_t docs,
                             uint32_t *docids)
{
    WB_CHECK(n >= 1 && n <= WB_BLOCK_POSTINGS);
    if (n > BITPACK_PLAIN && p < end && *p == LISTBLOCK_BITS)
        return get_bits(p, end, n, lowest, docs, docids);
    p = wb_bitunpack(p, end, n, docids);
    return p && add_up(docids, n, lowest, docs) ? p : NULL;
}
