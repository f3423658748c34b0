/* update.h - what update shares with the other steps. */
#ifndef WB_CYCLE_UPDATE_H
#define WB_CYCLE_UPDATE_H

#include "cycle/cycle.h"
#include "store/store.h"

/* True if there is a dispenser: one was named, or the repository has its own. Never creates one. */
bool wb_update_dispenser_known(const struct wb_update_options *options);

/* rebuild.c: adds every stored page and its links to a writer that rebuilds webdb. */
int wb_rebuild_links(const char *dir, struct wb_webdb_writer *writer, const struct wb_cycle_sink *sink);

/* rebuild.c: adds these stored pages and their links. */
int wb_rebuild_pages(struct wb_store *store, struct wb_webdb_writer *writer, const struct wb_cycle_sink *sink,
                     const struct wb_pageid *ids, size_t count);

#endif
