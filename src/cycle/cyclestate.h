/*
 * cyclestate.h - the state file of the loop (DIR/cycle, docs/formats/cycle.md) and its lock (DIR/cycle.lock).
 */
#ifndef WB_CYCLE_CYCLESTATE_H
#define WB_CYCLE_CYCLESTATE_H

#include "cycle/cycle.h"
#include "os/file.h"

struct wb_cyclestate {
    struct wb_cycle_status status; /* `running` is not in the file */
    uint64_t seeded;               /* the part of status.fetched that the crawl of new seeds made */
};

/* WB_E_NOTFOUND: there is none; WB_E_CORRUPT; WB_E_NEWER. */
int wb_cyclestate_read(const char *dir, struct wb_cyclestate *state_out);
int wb_cyclestate_write(const char *dir, const struct wb_cyclestate *state);

/*
 * WB_E_BUSY if another run holds the lock. The crawlers of a run that was just killed hold it a little longer, and are
 * waited for. A run asks for it once and never opens the file again: closing that would look as if the run had ended.
 */
int wb_cyclestate_lock(const char *dir, struct wb_file *lock_out);

/* A test seam. Whether a run holds the lock. */
bool wb_cyclestate_locked(const char *dir);

#endif
