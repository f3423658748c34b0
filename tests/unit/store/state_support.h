/* state_support.h - carries held states of repositories elsewhere, as a vault does, for the tests of store_state.h. */
#ifndef WB_TESTS_STATE_SUPPORT_H
#define WB_TESTS_STATE_SUPPORT_H

#include "convert_support.h"
#include "store/store_state.h"

/* Makes a repository in `to` of everything in a state. Returns the first error. */
int carry_try(struct wb_store_state *state, const char *to);
void carry(struct wb_store_state *state, const char *to);

#endif
