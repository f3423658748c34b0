/*
 * impacts.h - upper bounds for scores that do not depend on the scorer.
 *
 * A score grows with the weight of a posting and shrinks with the length of the page. The impacts of some postings are
 * pairs (weight, length byte) such that for each posting some pair has at least its weight and at most its length. The
 * best score of the pairs is then a bound for all of the postings.
 *
 *   impacts, 16 bytes   8 weight codes, descending; 8 length bytes, descending. The last pair is repeated as filling.
 *
 * A weight code is a weight rounded up: exact up to 32, then 16 steps per doubling.
 */
#ifndef WB_POSTINGS_IMPACTS_H
#define WB_POSTINGS_IMPACTS_H

#include "postings/bitpack.h"
#include "postings/postings.h"

enum { IMPACTS_PAIRS = 8, IMPACTS_BYTES = 2 * IMPACTS_PAIRS };

/* A test seam: wb_weight_code4() is compared with it. The code of the least weight that is at least this one. */
static inline uint8_t wb_weight_code(uint32_t weight)
{
    if (weight <= 32)
        return (uint8_t)weight;
    unsigned e = 31 - (unsigned)__builtin_clz(weight), low = e - 4;
    return (uint8_t)(16 * low + (weight >> low) + ((weight & ((1u << low) - 1)) != 0));
}

/*
 * The same for four weights, given as floats. From 16 on, a code is the exponent and four bits of the mantissa of the
 * float, less a constant; rounding up is adding just less than the lowest of these bits.
 */
static inline wb_vec4 wb_weight_code4(wb_float4 weight)
{
    typedef int32_t signed4 __attribute__((vector_size(16)));
    wb_vec4 small = (wb_vec4)(weight < 16.0f), whole = (wb_vec4) __builtin_convertvector(weight, signed4);
    wb_vec4 codes = (((wb_vec4)weight + 0x7ffff) >> 19) - (127 * 16 + 48);

    return (whole & small) | (codes & ~small);
}

/* The weight that a code stands for. Codes that nobody writes give some number, too. */
static inline uint32_t wb_weight_of_code(uint8_t code)
{
    if (code <= 32)
        return code;
    return (16u + code % 16u) << (code / 16 - 1);
}

/* Gathers postings: for each weight code, the least length of its postings; 255 if there are none. */
struct wb_impact_table {
    uint8_t least[256];
};

static inline void wb_impact_table_clear(struct wb_impact_table *table)
{
    memset(table->least, 255, sizeof table->least);
}

/* A length of 255 counts as 254: that is a bound as well. */
static inline void wb_impact_table_add(struct wb_impact_table *table, uint8_t code, uint8_t length)
{
    uint8_t least = table->least[code];

    length = length < 254 ? length : 254;
    table->least[code] = length < least ? length : least;
}

/* Adds all pairs of other impacts. */
void wb_impact_table_add_all(struct wb_impact_table *table, const uint8_t impacts[IMPACTS_BYTES]);

/* The impacts of what was gathered; all zero if nothing was. */
void wb_impact_table_put(const struct wb_impact_table *table, uint8_t impacts_out[IMPACTS_BYTES]);

/* Whether the impacts bound a posting of this weight and length. */
bool wb_impacts_cover(const uint8_t impacts[IMPACTS_BYTES], uint32_t weight, uint8_t length);

/* wb_weight_of_code() of four codes, as floats; the reverse of wb_weight_code4(). */
static inline wb_float4 wb_weight_of_code4(wb_vec4 code)
{
    typedef int32_t signed4 __attribute__((vector_size(16)));
    wb_vec4 small = (wb_vec4)((signed4)code < 16), big = (code + (127 * 16 + 48)) << 19;
    wb_vec4 tiny = (wb_vec4) __builtin_convertvector((signed4)code, wb_float4);

    return (wb_float4)((tiny & small) | (big & ~small));
}

/* The best score of the pairs. The same steps as wb_score(), four pairs at a time. */
static inline uint32_t wb_impacts_bound(const uint8_t impacts[IMPACTS_BYTES], const struct wb_scorer *scorer)
{
    const wb_float4 unit = {scorer->unit, scorer->unit, scorer->unit, scorer->unit};
    const uint8_t *w = impacts, *l = impacts + IMPACTS_PAIRS;
    float best = 0;

    for (int i = 0; i < IMPACTS_PAIRS; i += 4) {
        wb_float4 weight = wb_weight_of_code4((wb_vec4){w[i], w[i + 1], w[i + 2], w[i + 3]});
        wb_float4 inverse = {scorer->inverse[l[i]], scorer->inverse[l[i + 1]], scorer->inverse[l[i + 2]],
                             scorer->inverse[l[i + 3]]};
        wb_float4 score = unit - unit / (1.0f + weight * inverse);
        for (int k = 0; k < 4; k++)
            best = score[k] > best ? score[k] : best;
    }
    return (uint32_t)(int32_t)(best + 0.5f);
}

#endif
