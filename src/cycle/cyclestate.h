/*
 * cyclestate.h - the state file of the loop (DIR/cycle) and its lock (DIR/cycle.lock). docs/formats/cycle.md has the lines.
 */
#ifndef WB_CYCLE_CYCLESTATE_H
#define WB_CYCLE_CYCLESTATE_H

#include "cycle/cycle.h"
#include "os/file.h"

struct wb_cyclestate {
    struct wb_cycle_status status; /* running is not in the file */
    uint64_t seeded;               /* of status.fetched: in the crawl of new seeds that went before */
};

/* WB_E_NOTFOUND: there is none; WB_E_CORRUPT; WB_E_NEWER. */
int wb_cyclestate_read(const char *dir, struct wb_cyclestate *state_out);
int wb_cyclestate_write(const char *dir, const struct wb_cyclestate *state);

/* WB_E_BUSY where another run has it for longer than the crawlers of a killed one need to end. */
int wb_cyclestate_lock(const char *dir, struct wb_file *lock_out);
bool wb_cyclestate_locked(const char *dir);

#endif
