/*
 * life.h - Poisson processes as functions of time.
 *
 * Pages change and are born at random moments, and we must be able to say what happened at any
 * moment without remembering it. Time is in seconds of the web; 0 is when the server started.
 * It is divided into cells with one expected event each. How many events a cell has, and
 * when, is drawn from the name of the process and the number of the cell. The last event
 * before a given moment is therefore found without walking through the past.
 */
#ifndef WB_SIM_LIFE_H
#define WB_SIM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* A cell has at most this many events, numbered from 0. */
#define WB_LIFE_CELL_EVENTS 16

struct wb_life_event {
    uint64_t number; /* unique within its process, and increases with time */
    double time;
};

/* Finds the last event at or before t; false if there was none for very long or the rate (events per second) is 0. */
bool wb_life_last(uint64_t name, double rate, double t, struct wb_life_event *event_out);

/* Returns how many events a cell has, and their times in no particular order. */
unsigned wb_life_cell(uint64_t name, double rate, int64_t cell, double times_out[WB_LIFE_CELL_EVENTS]);

/* The cell that contains the moment t. */
int64_t wb_life_cell_at(double rate, double t);

#endif
