/*
 * clock.h - the time of day, and time that only goes forward.
 *
 *   wb_clock_wall_ms()  what the time of day is: for records that others read. An administrator or NTP may set it at any moment
 *   wb_clock_now_ms()   the process's own clock, for everything that waits: it was the time of day when the process first asked,
 *                       and has gone forward at its own pace since, also while the machine was suspended
 *
 * When the time of day is set while the process runs, the two differ. wb_clock_follow() moves the process's clock to the time
 * of day again; the caller moves every moment that it holds by the same amount, so that all waits stay as long as they were.
 */
#ifndef WB_OS_CLOCK_H
#define WB_OS_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970 UTC. */
int64_t wb_clock_wall_ms(void);

/* Nanoseconds since some moment; never goes back, and goes on while the machine is suspended (CLOCK_BOOTTIME) where the system can do that. */
int64_t wb_clock_mono_ns(void);

/* The process's own clock, in milliseconds since 1970 UTC. Children of fork() share its origin. */
int64_t wb_clock_now_ms(void);

/*
 * How far the time of day was moved since the process's clock last followed it: positive if it is ahead now, 0 for less than a
 * second, which is the drift of every clock. The process's clock follows.
 */
int64_t wb_clock_follow(void);

/* For tests: what a set or slow clock looks like. Both are added to the real clocks from now on. */
void wb_clock_shift(int64_t wall_ms, int64_t mono_ms);

#endif
