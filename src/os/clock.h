/*
 * clock.h - the time of day, and a clock that only goes forward. The only clocks in the program.
 *
 *   wb_clock_wall_ms()  the time of day, for records that others read. An administrator or NTP may set it at any time.
 *   wb_clock_mono_ns()  for measuring how long something takes. It never goes back.
 *   wb_clock_now_ms()   for everything that waits. It is the time of day at which the process first asked,
 *                       plus what wb_clock_mono_ns() has counted since.
 *
 * If somebody sets the time of day while the process runs, wb_clock_now_ms() and the time of day differ.
 * wb_clock_follow() makes them agree again and says by how much it moved the clock. The caller then moves every
 * moment that it holds by the same amount, so that every wait stays as long as it was.
 */
#ifndef WB_OS_CLOCK_H
#define WB_OS_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970 UTC. */
int64_t wb_clock_wall_ms(void);

/* Nanoseconds since some moment, including the time that the machine was suspended (CLOCK_BOOTTIME) if possible. */
int64_t wb_clock_mono_ns(void);

/* Milliseconds since 1970 UTC by the process's own clock. Children of fork() inherit it. */
int64_t wb_clock_now_ms(void);

/*
 * Sets wb_clock_now_ms() to the time of day. Returns by how many ms that moved it: positive if forward, 0 if
 * the two differed by less than a second, which is the drift of any clock.
 */
int64_t wb_clock_follow(void);

/* A test seam: adds to the real clocks from now on, as if they had been set, or time had passed. */
void wb_clock_shift(int64_t wall_ms, int64_t mono_ms);

#endif
