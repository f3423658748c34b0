/* distance.c - distances in time as people say them. See distance.h. */
#include "serve/distance.h"
#include "base/check.h"
#include "base/date.h"

#include <inttypes.h>
#include <stdio.h>

const char *wb_distance_words(int64_t from_ms, int64_t to_ms, char text_out[WB_DISTANCE_MAX])
{
    static const struct {
        const char *name;
        uint64_t seconds;
    } units[] = {{"year", 31556952}, {"day", WB_DAY_SECONDS}, {"hour", 3600}, {"minute", 60}, {"second", 1}};
    bool later = to_ms >= from_ms;
    uint64_t seconds = (later ? (uint64_t)to_ms - (uint64_t)from_ms : (uint64_t)from_ms - (uint64_t)to_ms) / 1000;
    size_t unit = 0;

    while (units[unit].seconds > 1 && seconds < 2 * units[unit].seconds)
        unit++;
    uint64_t count = seconds / units[unit].seconds;
    int len = count == 0 ? snprintf(text_out, WB_DISTANCE_MAX, "the same second")
                         : snprintf(text_out, WB_DISTANCE_MAX, "%" PRIu64 " %s%s %s", count, units[unit].name,
                                    count == 1 ? "" : "s", later ? "later" : "earlier");
    WB_CHECK(len > 0 && len < WB_DISTANCE_MAX); /* it was not cut */
    return text_out;
}
