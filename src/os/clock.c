/* clock.c - the system's clocks, and what tests add to them. Safe to call from any thread. */
#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* A smaller difference between the clocks is drift and rounding: nobody has set the clock. */
#define STEP_MS_MIN 1000

static atomic_llong shift_wall_ms, shift_mono_ms;
static atomic_llong origin_ms; /* wb_clock_now_ms() minus the monotonic clock; 0: nobody has asked yet */

int64_t wb_clock_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 +
           atomic_load_explicit(&shift_wall_ms, memory_order_relaxed);
}

int64_t wb_clock_mono_ns(void)
{
    struct timespec now;

#ifdef CLOCK_BOOTTIME
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
#endif
        clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec +
           atomic_load_explicit(&shift_mono_ms, memory_order_relaxed) * 1000000;
}

int64_t wb_clock_now_ms(void)
{
    int64_t mono_ms = wb_clock_mono_ns() / 1000000;
    long long origin = atomic_load(&origin_ms);

    if (origin == 0) {
        long long wanted = wb_clock_wall_ms() - mono_ms;
        /* Two threads may be the first to ask at the same moment. They must get the same origin. */
        if (atomic_compare_exchange_strong(&origin_ms, &origin, wanted))
            origin = wanted;
    }
    return origin + mono_ms;
}

int64_t wb_clock_follow(void)
{
    int64_t moved = wb_clock_wall_ms() - wb_clock_now_ms();

    if (moved > -STEP_MS_MIN && moved < STEP_MS_MIN)
        return 0;
    atomic_fetch_add(&origin_ms, moved);
    return moved;
}

void wb_clock_shift(int64_t wall_ms, int64_t mono_ms)
{
    atomic_fetch_add(&shift_wall_ms, wall_ms);
    atomic_fetch_add(&shift_mono_ms, mono_ms);
}
