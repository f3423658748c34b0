/* chance.c - draws numbers by hashing what they are for. It keeps no state. */
#include "sim/chance.h"
#include "base/hash.h"

#include <math.h>

uint64_t wb_chance(uint64_t seed, uint64_t a, uint64_t b, enum wb_chance_purpose purpose)
{
    const uint64_t words[4] = {seed, a, b, (uint64_t)purpose};

    return wb_hash64(words, sizeof words);
}

double wb_chance_unit(uint64_t number)
{
    return (double)(number >> 11) / 9007199254740992.0;
}

double wb_chance_exponential(uint64_t number)
{
    return -log1p(-wb_chance_unit(number));
}

unsigned wb_chance_poisson(uint64_t number)
{
    double left = wb_chance_unit(number), p = exp(-1.0);
    unsigned n = 0;

    while (n < 15 && left >= p) {
        left -= p;
        n++;
        p /= n;
    }
    return n;
}
