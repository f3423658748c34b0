/*
 * impacts.c - chooses the pairs (weight, length) that bound the scores of a set of postings.
 */
#include "postings/impacts.h"
#include "base/check.h"

#include <string.h>

void wb_impact_table_add_all(struct wb_impact_table *table, const uint8_t impacts[IMPACTS_BYTES])
{
    for (int i = 0; i < IMPACTS_PAIRS; i++)
        wb_impact_table_add(table, impacts[i], impacts[IMPACTS_PAIRS + i]);
}

/*
 * Replaces two neighbours (w1, l1), (w2, l2) by (w1, l2): the greater weight with the lesser length bounds both. The
 * two that are closest to each other are chosen; of several, the first. n is the number of pairs.
 */
static void merge_closest(uint8_t *weight, uint8_t *length, unsigned n)
{
    unsigned at = 0, least = UINT32_MAX;

    WB_CHECK(n >= 2);
    for (unsigned i = 0; i + 1 < n; i++) {
        unsigned apart = (unsigned)(weight[i] - weight[i + 1]) + (unsigned)(length[i] - length[i + 1]);
        if (apart < least) {
            least = apart;
            at = i;
        }
    }
    length[at] = length[at + 1];
    memmove(weight + at + 1, weight + at + 2, n - at - 2);
    memmove(length + at + 1, length + at + 2, n - at - 2);
}

void wb_impact_table_put(const struct wb_impact_table *table, uint8_t impacts_out[IMPACTS_BYTES])
{
    uint8_t weight[256], length[256];
    unsigned n = 0, least = 255;

    /* From the greatest weight down: a pair counts only if it is shorter than all pairs of a greater weight. */
    for (unsigned end = 256; end > 0; end -= 8) {
        uint64_t eight;
        memcpy(&eight, table->least + end - 8, 8);
        for (unsigned code = end; eight != UINT64_MAX && code-- > end - 8;)
            if (table->least[code] < least) {
                least = table->least[code];
                weight[n] = (uint8_t)code;
                length[n++] = (uint8_t)least;
            }
    }
    for (; n > IMPACTS_PAIRS; n--)
        merge_closest(weight, length, n);
    memset(impacts_out, 0, IMPACTS_BYTES);
    for (unsigned i = 0; i < IMPACTS_PAIRS && n; i++) {
        impacts_out[i] = weight[i < n ? i : n - 1];
        impacts_out[IMPACTS_PAIRS + i] = length[i < n ? i : n - 1];
    }
}

bool wb_impacts_cover(const uint8_t impacts[IMPACTS_BYTES], uint32_t weight, uint8_t length)
{
    for (int i = 0; i < IMPACTS_PAIRS; i++)
        if (wb_weight_of_code(impacts[i]) >= weight && impacts[IMPACTS_PAIRS + i] <= length)
            return true;
    return false;
}
