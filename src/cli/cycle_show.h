/* cycle_show.h - steps of the cycle while they work: progress on the terminal, warnings. */
#ifndef WB_CLI_CYCLE_SHOW_H
#define WB_CLI_CYCLE_SHOW_H

#include "base/json.h"
#include "cli/progress.h"
#include "cycle/cycle.h"

struct wb_cycle_show {
    struct wb_progress progress;
};

/* verb: the command. The sink lives as long as show. */
struct wb_cycle_sink wb_cycle_show_init(struct wb_cycle_show *show, const char *verb);
void wb_cycle_show_end(struct wb_cycle_show *show);

/* Fields of an object: what a cycle has come to. */
void wb_cycle_status_fields(struct wb_json *j, const struct wb_cycle_status *status);

#endif
