/*
 * chance.h - randomness that is a function: the same seed, thing and purpose give
 * the same number for ever, so that nothing about the synthetic web need be stored.
 */
#ifndef WB_SIM_CHANCE_H
#define WB_SIM_CHANCE_H

#include <stdint.h>

/* What a number is drawn for: draws for different purposes are independent. */
enum wb_chance_purpose {
    WB_CHANCE_SITE_RANK = 1,
    WB_CHANCE_SITE_FACTS,
    WB_CHANCE_KIND,
    WB_CHANCE_CLOSED,
    WB_CHANCE_PATH,
    WB_CHANCE_RATE,
    WB_CHANCE_CHANGE,
    WB_CHANCE_LIFE,
    WB_CHANCE_BIRTH,
    WB_CHANCE_LINKS,
    WB_CHANCE_TEXT,
    WB_CHANCE_SIZE,
    WB_CHANCE_BEHAVIOUR,
    WB_CHANCE_DERIVED,
};

/* The number of (seed, a, b) for a purpose. */
uint64_t wb_chance(uint64_t seed, uint64_t a, uint64_t b, enum wb_chance_purpose purpose);

/* From [0, 1), and from the exponential distribution of mean 1. */
double wb_chance_unit(uint64_t number);
double wb_chance_exponential(uint64_t number);

/* From the Poisson distribution of mean 1; at most 15. */
unsigned wb_chance_poisson(uint64_t number);

/* A sequence of numbers, for what needs many. */
struct wb_dice {
    uint64_t state;
};

static inline uint32_t wb_dice_next(struct wb_dice *dice)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice->state >> 32);
}

/* From [0, bound); bound is not 0. */
static inline uint32_t wb_dice_below(struct wb_dice *dice, uint32_t bound)
{
    return (uint32_t)((uint64_t)wb_dice_next(dice) * bound >> 32);
}

static inline double wb_dice_unit(struct wb_dice *dice)
{
    return (double)wb_dice_next(dice) / 4294967296.0;
}

#endif
