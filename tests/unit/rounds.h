/*
 * rounds.h - how often a test repeats what it does. Programs say how many rounds are thorough. `make check` does the
 * share of them that a few seconds allow (WEBBASE_TEST_SHARE, set in tests/meson.build), with other seeds in each run;
 * `make soak` does them all (WEBBASE_TEST_ROUNDS). A sanitizer does a third of that: it is there for what happens
 * in a round, not for how rare a round is.
 */
#ifndef WB_TESTS_ROUNDS_H
#define WB_TESTS_ROUNDS_H

#include "seeded.h"

#include <stdlib.h>

/* WB_TEST_SANITIZED is defined in a build with a sanitizer. */
#ifdef WB_TEST_SANITIZED
enum { TEST_PERCENT_MOST = 35 };
#else
enum { TEST_PERCENT_MOST = 100 };
#endif

/* The percentage of the rounds that this run does. */
static inline unsigned test_percent(void)
{
    const char *given = getenv("WEBBASE_TEST_ROUNDS");

    if (!given)
        given = getenv("WEBBASE_TEST_SHARE");
    unsigned long percent = given ? strtoul(given, NULL, 10) : 100;
    return (unsigned)(percent * TEST_PERCENT_MOST / 100);
}

/* The share of n that this run does, at least 1. */
static inline unsigned test_rounds(unsigned n)
{
    unsigned rounds = (unsigned)((unsigned long)n * test_percent() / 100);

    return rounds ? rounds : 1;
}

/*
 * For loops over all places where something may go wrong: the distance to the next one. It is 1 if all rounds are done;
 * otherwise it is random, so that the share of the places is tried, and other ones in each run.
 */
static inline unsigned test_stride(uint64_t *chance)
{
    unsigned percent = test_percent();

    if (percent >= 100)
        return 1;
    return 1 + (unsigned)chance_below(chance, percent ? 200 / percent - 1 : 200);
}

/* The same where there are so many places in all: at least four of them are tried, however small the share is. */
static inline uint64_t test_stride_of(uint64_t *chance, uint64_t places)
{
    uint64_t stride = test_stride(chance), most = places > 4 ? places / 4 : 1;

    return stride < most ? stride : most;
}

#endif
