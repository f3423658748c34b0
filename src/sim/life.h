/*
 * life.h - Poisson processes as functions of time.
 *
 * Time is in seconds of the web, 0 where the server started. It is cut into cells
 * of one expected event each; how many events a cell has and where they lie is
 * drawn from the process's name and the cell's number. So the last event before
 * any moment is found without walking through the past.
 */
#ifndef WB_SIM_LIFE_H
#define WB_SIM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* A cell has at most this many events, numbered from 0. */
#define WB_LIFE_CELL_EVENTS 16

struct wb_life_event {
    uint64_t number; /* grows with time; no two events of a process have the same */
    double time;
};

/* The last event at or before t; false where there was none for very long (or the rate is 0). rate: events a second. */
bool wb_life_last(uint64_t name, double rate, double t, struct wb_life_event *event_out);

/* How many events cell number `cell` has; their times, in no order. */
unsigned wb_life_cell(uint64_t name, double rate, int64_t cell, double times_out[WB_LIFE_CELL_EVENTS]);

/* The cell that a moment lies in. */
int64_t wb_life_cell_at(double rate, double t);

#endif
