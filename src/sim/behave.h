/* behave.h - what each kind of page does when it is asked for. */
#ifndef WB_SIM_BEHAVE_H
#define WB_SIM_BEHAVE_H

#include "sim/respond.h"

/* rest: what followed the page's address, empty for the page itself. */
int wb_behave(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan, const struct wb_moment *now,
              struct wb_slice rest, struct wb_reply *reply);

/* A short page of that status. */
int wb_behave_error(struct wb_respond *r, const struct wb_asked *asked, int status, struct wb_reply *reply);

#endif
