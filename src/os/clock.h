/* clock.h - the time of day, and time that only goes forward. */
#ifndef WB_OS_CLOCK_H
#define WB_OS_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970 UTC. */
int64_t wb_clock_wall_ms(void);

/* Nanoseconds since some moment; never goes back. */
int64_t wb_clock_mono_ns(void);

#endif
