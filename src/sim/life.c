/* life.c - draws the events of Poisson processes, one cell at a time. It never reads a clock. */
#include "sim/life.h"
#include "sim/chance.h"

#include <math.h>

/* How many cells to look back. The probability of a longer silence is e^-CELLS_BACK. */
#define CELLS_BACK 64

/* Added to cell numbers, which are negative before the start, so that event numbers never are. */
#define CELL_BASE ((int64_t)1 << 40)

int64_t wb_life_cell_at(double rate, double t)
{
    return (int64_t)floor(t * rate);
}

unsigned wb_life_cell(uint64_t name, double rate, int64_t cell, double times_out[WB_LIFE_CELL_EVENTS])
{
    unsigned count = wb_chance_poisson(wb_chance(name, (uint64_t)cell, 0, WB_CHANCE_CHANGE));

    for (unsigned i = 0; i < count; i++)
        times_out[i] = ((double)cell + wb_chance_unit(wb_chance(name, (uint64_t)cell, i + 1, WB_CHANCE_CHANGE))) / rate;
    return count;
}

bool wb_life_last(uint64_t name, double rate, double t, struct wb_life_event *event_out)
{
    double times[WB_LIFE_CELL_EVENTS];

    *event_out = (struct wb_life_event){0, 0};
    if (!(rate > 0))
        return false;
    int64_t cell = wb_life_cell_at(rate, t);
    for (int back = 0; back < CELLS_BACK; back++, cell--) {
        unsigned count = wb_life_cell(name, rate, cell, times), before = 0;
        for (unsigned i = 0; i < count; i++) {
            if (times[i] > t)
                continue;
            if (before++ == 0 || times[i] > event_out->time)
                event_out->time = times[i];
        }
        if (before > 0) {
            event_out->number = (uint64_t)(cell + CELL_BASE) * WB_LIFE_CELL_EVENTS + before;
            return true;
        }
    }
    return false;
}
