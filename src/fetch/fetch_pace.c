/*
 * fetch_pace.c - how fast bytes may be received, by all fetchers that share a pace, in any number of processes.
 *
 * due_ns is the moment at which everything received so far would have arrived at the permitted rate. Each byte moves it
 * forward by the time that one byte may take. A caller that finds it in the future waits until then. It never falls
 * further behind the clock than BURST_NS, so what was not used in a quiet time cannot be used up at once later.
 */
#include "base/check.h"
#include "fetch/fetch.h"
#include "os/clock.h"

#define SECOND_NS 1000000000LL
#define BURST_NS (SECOND_NS / 10)

int64_t wb_fetch_pace_wait_ns(const struct wb_fetch_pace *pace)
{
    int64_t wait_ns = pace->rate ? atomic_load(&pace->due_ns) - wb_clock_mono_ns() : 0;

    return wait_ns > 0 ? wait_ns : 0;
}

void wb_fetch_pace_charge(struct wb_fetch_pace *pace, size_t bytes)
{
    if (!pace->rate)
        return;
    /* Split, so that neither a large response nor a low rate overflows. */
    int64_t takes_ns = (int64_t)(bytes / pace->rate) * SECOND_NS +
                       (int64_t)((double)(bytes % pace->rate) / (double)pace->rate * (double)SECOND_NS);
    int64_t earliest_ns = wb_clock_mono_ns() - BURST_NS;
    long long due_ns = atomic_load(&pace->due_ns), next_ns;

    WB_CHECK(takes_ns >= 0);
    do
        next_ns = (due_ns > earliest_ns ? due_ns : earliest_ns) + takes_ns;
    while (!atomic_compare_exchange_weak(&pace->due_ns, &due_ns, next_ns));
}
