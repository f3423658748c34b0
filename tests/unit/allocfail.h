/*
 * allocfail.h - makes allocations fail through the hook of base/mem.h.
 */
#ifndef WB_TESTS_ALLOCFAIL_H
#define WB_TESTS_ALLOCFAIL_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static size_t alloc_fail_left; /* allocations that succeed before one fails */

static inline bool alloc_fail_now(void)
{
    return alloc_fail_left-- == 0;
}

static inline bool alloc_fail_always(void)
{
    return true;
}

/* The n-th allocation from now on fails (0: the next one), once. */
static inline void alloc_fail_nth(size_t n)
{
    alloc_fail_left = n;
    wb_alloc_should_fail = alloc_fail_now;
}

/* Whether the allocation that alloc_fail_nth() chose has failed. Counting down wraps around when it does. */
static inline bool alloc_has_failed(void)
{
    return alloc_fail_left > SIZE_MAX / 2;
}

/* Every allocation fails from now on. */
static inline void alloc_fail_all(void)
{
    wb_alloc_should_fail = alloc_fail_always;
}

/* No allocation fails any more. */
static inline void alloc_fail_none(void)
{
    wb_alloc_should_fail = NULL;
}

#endif
