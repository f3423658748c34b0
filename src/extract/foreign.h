/*
 * foreign.h - private to extract: pages that are read by a guest (room guest): PDF, and the modules of users.
 */
#ifndef WB_EXTRACT_FOREIGN_H
#define WB_EXTRACT_FOREIGN_H

#include "extract/module.h"

/* Which guest reads pages of this type; -1: none. wb_foreign_first() asks only the modules of users. */
int wb_foreign_first(struct wb_slice type);
int wb_foreign_last(struct wb_slice type);

/* Lets the guest read x->input and puts what it says into the sink, or why it said nothing into module_error. */
int wb_foreign_run(struct wb_extractor *x, int guest, struct wb_slice type);
void wb_foreign_free(struct wb_extractor *x);

#endif
