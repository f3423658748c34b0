/*
 * chance.h - random numbers as a function: the same seed, thing and purpose always give the
 * same number, so that nothing about the synthetic web needs to be stored.
 */
#ifndef WB_SIM_CHANCE_H
#define WB_SIM_CHANCE_H

#include <stdint.h>

/* What a number is drawn for. Draws for different purposes are independent of each other. */
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

/* The number that belongs to (seed, a, b) and a purpose. */
uint64_t wb_chance(uint64_t seed, uint64_t a, uint64_t b, enum wb_chance_purpose purpose);

/* Converts a number into one from [0, 1), or from the exponential distribution with mean 1. */
double wb_chance_unit(uint64_t number);
double wb_chance_exponential(uint64_t number);

/* Converts a number into one from the Poisson distribution with mean 1, at most 15. */
unsigned wb_chance_poisson(uint64_t number);

/* A sequence of numbers, for things that need many of them. */
struct wb_chance_dice {
    uint64_t state;
};

static inline uint32_t wb_chance_dice_next(struct wb_chance_dice *dice)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice->state >> 32);
}

/* A number from [0, bound); bound must not be 0. */
static inline uint32_t wb_chance_dice_below(struct wb_chance_dice *dice, uint32_t bound)
{
    return (uint32_t)((uint64_t)wb_chance_dice_next(dice) * bound >> 32);
}

static inline double wb_chance_dice_unit(struct wb_chance_dice *dice)
{
    return (double)wb_chance_dice_next(dice) / 4294967296.0;
}

#endif
