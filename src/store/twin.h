/*
 * twin.h - a test seam: a store in plain memory.
 *
 * It has the same interface and makes the same promises as a repository on disk, but is
 * written so simply that it can be seen to be right: arrays, and linear search. The model
 * tests run one random trace of calls through the twin and through each organisation,
 * and compare everything that comes back. Tests of other rooms use it as a store that
 * needs no directory. The program itself never does.
 */
#ifndef WB_STORE_TWIN_H
#define WB_STORE_TWIN_H

#include "store/store.h"

/* An empty store, opened for writing. wb_store_close() frees it. */
int wb_twin_open(struct wb_store **store_out);

/* Does what closing and reopening does to a store on disk: drops everything that was not committed. */
void wb_twin_reopen(struct wb_store *store);

#endif
