/*
 * cost.h - processor time, for tests that a piece of work does not grow out of proportion. Unlike elapsed time it
 * is the same on a busy machine. Limits are a thousand times what the work takes, and what a mistake would take is a
 * thousand times the limit.
 */
#ifndef WB_TESTS_COST_H
#define WB_TESTS_COST_H

#include <stdint.h>
#include <time.h>

static inline int64_t test_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
