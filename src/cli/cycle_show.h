/* cycle_show.h - shows a step of the cycle while it works: progress and warnings. Used by update, generate, run, ... */
#ifndef WB_CLI_CYCLE_SHOW_H
#define WB_CLI_CYCLE_SHOW_H

#include "cli/progress.h"
#include "cycle/cycle.h"

struct wb_cycle_show {
    struct wb_progress progress;
};

/* verb: the name of the command. The sink is valid as long as show is. */
struct wb_cycle_sink wb_cycle_show_init(struct wb_cycle_show *show, const char *verb);
void wb_cycle_show_end(struct wb_cycle_show *show);

#endif
