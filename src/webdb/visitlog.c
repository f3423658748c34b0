/*
 * visitlog.c - what the visits to a page have shown about its changes, kept in few bytes.
 *
 * The maximum-likelihood estimate of the rate of change over irregular visits needs the sum of the gaps without a
 * change and the lengths of the other gaps. Those lengths are kept in bins half an octave wide. In addition, the counts
 * for Cho and Garcia-Molina's estimator are kept, for servers that say when a page was modified. Nothing is estimated
 * here: that is done in cycle.
 */
#include "webdb/webdb.h"
#include "base/check.h"
#include "base/date.h"

#include <math.h>

/* Headers have whole seconds, so a change within the second of the previous visit is not a contradiction. */
enum { HTTP_SECOND_MS = 1000 };

_Static_assert(WB_VISITLOG_BINS == 40, "rows of pages hold bins by number, so their lengths cannot change");

double wb_visitlog_bin_days(unsigned bin)
{
    WB_CHECK(bin <= WB_VISITLOG_BINS); /* the bin after the last one also has a length */
    return exp2((bin + 0.5) / 2) / 1440;
}

static unsigned bin_of(int64_t gap_ms)
{
    double minutes = (double)gap_ms / WB_MINUTE_MS;

    WB_CHECK(gap_ms > 0);
    if (minutes < 1)
        return 0;
    /* floor(2 log2(m)) is the binary exponent of m squared. */
    int bin = ilogb(minutes * minutes);
    WB_CHECK(bin >= 0);
    return bin < WB_VISITLOG_BINS ? (unsigned)bin : WB_VISITLOG_BINS - 1;
}

static void count_up(uint32_t *counter)
{
    *counter += *counter < UINT32_MAX;
}

/* Takes the server's word for when the page was modified, unless it is contradicted: then never again. */
static void learn_modified(struct wb_visitlog *history, int64_t gap_ms, bool changed, int64_t modified_ms,
                           int64_t time_ms)
{
    WB_CHECK(gap_ms > 0);
    WB_CHECK(!history->modified_lies);
    WB_CHECK(modified_ms != 0);
    /* An unsigned difference cannot overflow: modified_ms comes from the server and may be anything. */
    bool future = modified_ms > time_ms;
    uint64_t since = (uint64_t)time_ms - (uint64_t)modified_ms;

    if (future || (changed && since >= (uint64_t)gap_ms + HTTP_SECOND_MS)) {
        history->modified_lies = true;
        return;
    }
    count_up(&history->modified_visits);
    if (changed || since < (uint64_t)gap_ms)
        count_up(&history->modified_changes);
    history->modified_days += (double)(since < (uint64_t)gap_ms ? since : (uint64_t)gap_ms) / WB_DAY_MS;
}

void wb_visitlog_add(struct wb_visitlog *history, int64_t gap_ms, bool changed, int64_t modified_ms, int64_t time_ms)
{
    WB_CHECK(history != NULL);
    if (gap_ms <= 0)
        return;
    count_up(&history->visits);
    if (changed) {
        uint16_t *bin = &history->changed[bin_of(gap_ms)];
        count_up(&history->changes);
        *bin = (uint16_t)(*bin + (*bin < UINT16_MAX));
    } else {
        history->unchanged_days += (double)gap_ms / WB_DAY_MS;
    }
    if (modified_ms != 0 && !history->modified_lies)
        learn_modified(history, gap_ms, changed, modified_ms, time_ms);
    WB_CHECK(isfinite(history->unchanged_days));
}
