/*
 * twin.h - a store in plain memory, for tests only.
 *
 * It is an organisation like those on disk (store/organisation.h) and makes the same
 * promises, but it is so simple that it can be seen to be right: vectors, searched from
 * front to back. The model test runs one random trace of calls through the twin and through
 * an organisation, and compares everything that comes back. Tests of other rooms use it as
 * a store that needs no directory.
 */
#ifndef WB_TESTS_STORE_TWIN_H
#define WB_TESTS_STORE_TWIN_H

#include "store/store.h"

/* An empty store, opened for writing. wb_store_close() frees it. */
int wb_twin_open(struct wb_store **store_out);

/* Does what closing and reopening does to a store on disk: drops everything that was not committed. */
void wb_twin_reopen(struct wb_store *store);

/* The repository was copied: which contents were forgotten is not known any more. */
void wb_twin_converted(struct wb_store *store);

/* What wb_move_compact() does to a store on disk, as far as readers see it: commits, and gives up what nobody keeps. */
void wb_twin_compact(struct wb_store *store);

#endif
