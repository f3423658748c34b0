/*
 * listblock.h - the bytes of one block of a list: 128 postings, or fewer in the last block.
 *
 *   block     docids | codes | extra
 *
 *   docids    a pack (bitpack.h) of gaps: docid - lowest possible docid, where the lowest possible docid is 0 for the
 *             first posting of the list, and the docid before plus 1 for all others.
 *             Or, if that is smaller and there are 128: 0x80, number of bytes n (1), n bytes: a bit for each document
 *             from the lowest possible one on
 *   codes     a pack: for a posting that has only MAIN, (frequency - 1) * 2; for others weight * 2 + 1
 *   extra     for each posting with an odd code, in order: mask (1): bit f is set if the frequency in field f is not 0;
 *             bit 6 is set if all frequencies that would follow are 1, so that none of them is there. Then varints:
 *             frequency - 1 of the fields of the mask, except for the one that follows from the weight. That is, if the
 *             weight is less than 65535, the first of OTHER, MAIN, HEADING, TITLE and URL that is in the mask.
 *
 * So scoring reads docids and codes only.
 */
#ifndef WB_POSTINGS_LISTBLOCK_H
#define WB_POSTINGS_LISTBLOCK_H

#include "postings/bitpack.h"
#include "postings/postings.h"

enum {
    LISTBLOCK_BITS = 0x80,    /* first byte of docids: they are a bit for each document */
    LISTBLOCK_BITS_MAX = 255, /* bytes */
    LISTBLOCK_ALL_ONE = 0x40, /* of a mask */
};
#define LISTBLOCK_FREQUENCY_MAX ((uint32_t)1 << 30)

_Static_assert(WB_BLOCK_POSTINGS == BITPACK_MAX, "a block is one pack");
_Static_assert(WB_FIELDS <= 6, "fields and a flag fit into a mask");

/* The weight of a posting with this code. */
static inline uint32_t wb_code_weight(uint32_t code)
{
    uint32_t weight = code & 1 ? code >> 1 : code < 2 * WB_WEIGHT_MAX ? 2 * code + 4 : WB_WEIGHT_MAX;

    return weight < WB_WEIGHT_MAX ? weight : WB_WEIGHT_MAX;
}

/* The same for four codes, as floats, which hold all weights exactly. */
static inline wb_float4 wb_code_weight4(wb_vec4 code)
{
    typedef int32_t signed4 __attribute__((vector_size(16)));
    const wb_float4 most = {WB_WEIGHT_MAX, WB_WEIGHT_MAX, WB_WEIGHT_MAX, WB_WEIGHT_MAX};
    wb_float4 half = __builtin_convertvector((signed4)(code >> 1), wb_float4), even = half * 4.0f + 4.0f;
    wb_vec4 odd = -(code & 1), weight = ((wb_vec4)half & odd) | ((wb_vec4)even & ~odd);
    wb_vec4 far = (wb_vec4)((wb_float4)weight > most);

    return (wb_float4)((weight & ~far) | ((wb_vec4)most & far));
}

/* Returns the code of these frequencies, and writes *len_out extra bytes: at most WB_POSTING_EXTRA_MAX, 0 if even. */
uint32_t wb_code_put(const uint32_t frequency[WB_FIELDS], uint8_t *extra, size_t *len_out);

/* Reads the frequencies of an odd code; returns the address behind its extra bytes, or NULL. */
const uint8_t *wb_code_get(uint32_t code, const uint8_t *p, const uint8_t *end, uint32_t frequency_out[WB_FIELDS]);

/* The same, but only the sum of the frequencies is wanted. */
const uint8_t *wb_code_occurrences(uint32_t code, const uint8_t *p, const uint8_t *end, uint64_t *sum_out);

/* As wb_code_get(), for any code. */
static inline const uint8_t *wb_code_frequencies(uint32_t code, const uint8_t *p, const uint8_t *end,
                                                 uint32_t frequency_out[WB_FIELDS])
{
    if (code & 1)
        return wb_code_get(code, p, end, frequency_out);
    memset(frequency_out, 0, WB_FIELDS * sizeof *frequency_out);
    frequency_out[WB_FIELD_MAIN] = code / 2 + 1;
    return p;
}

/* The sum of the frequencies. */
static inline uint64_t wb_occurrences(const uint32_t frequency[WB_FIELDS])
{
    uint64_t sum = 0;

    for (int f = 0; f < WB_FIELDS; f++)
        sum += frequency[f];
    return sum;
}

/* Packs n docids, none of them below lowest. Returns the number of bytes, at most BITPACK_BYTES. */
size_t wb_docids_put(const uint32_t *docids, unsigned n, uint32_t lowest, uint8_t *bytes);

/*
 * Unpacks n docids, which all are at least lowest and less than docs, and ascend. Returns the address behind them, or
 * NULL if they are not like that. docids has room for WB_BLOCK_POSTINGS.
 */
const uint8_t *wb_docids_get(const uint8_t *p, const uint8_t *end, unsigned n, uint32_t lowest, uint32_t docs,
                             uint32_t *docids);

#endif
