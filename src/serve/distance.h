/* distance.h - private to serve: how far two moments are apart, in words: "3 days later", "the same second". */
#ifndef WB_SERVE_DISTANCE_H
#define WB_SERVE_DISTANCE_H

#include <stdint.h>

#define WB_DISTANCE_MAX 48

/* From one moment to another, in whole seconds, minutes, hours, days or years; the unit in which it is at least 2. */
const char *wb_distance_words(int64_t from_ms, int64_t to_ms, char text_out[WB_DISTANCE_MAX]);

#endif
