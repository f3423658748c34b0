/*
 * seeded.h - random numbers for tests. A test that uses them prints its seed; WEBBASE_SEED=number repeats the run.
 */
#ifndef WB_TEST_SEEDED_H
#define WB_TEST_SEEDED_H

#include "os/random.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The next number of a sequence (splitmix64). Begin with any number as *chance, such as test_seed(). */
static inline uint64_t chance_next(uint64_t *chance)
{
    uint64_t z = *chance += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline uint64_t chance_below(uint64_t *chance, uint64_t n)
{
    return chance_next(chance) % n;
}

static inline bool chance_one_in(uint64_t *chance, uint64_t n)
{
    return chance_below(chance, n) == 0;
}

/* A number between 0 and 1, never one of them. */
static inline double chance_unit(uint64_t *chance)
{
    return ((double)(chance_next(chance) >> 11) + 0.5) / 9007199254740992.0;
}

/* WEBBASE_SEED if it is set, else a new one. It is printed, so that a failure can be repeated. */
static inline uint64_t test_seed(void)
{
    const char *given = getenv("WEBBASE_SEED");
    uint64_t seed = 0;

    wb_random_bytes(&seed, sizeof seed);
    seed = given ? strtoull(given, NULL, 10) : seed >> 16;
    printf("# WEBBASE_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

#endif
