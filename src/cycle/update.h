/* update.h - what update and other steps ask alike. */
#ifndef WB_CYCLE_UPDATE_H
#define WB_CYCLE_UPDATE_H

#include "cycle/cycle.h"

/* Whether there is a dispenser to ask: one was named, or the repository has its own. It is not made by asking. */
bool wb_update_dispenser_known(const struct wb_update_options *options);

/* rebuild.c: tells a writer that makes webdb anew of every page in the store, with its links. */
int wb_rebuild_links(const char *dir, struct wb_webdb_writer *writer, const struct wb_cycle_sink *sink);

#endif
