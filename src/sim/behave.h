/* behave.h - answers a request for a page in the way its kind prescribes: well, badly, or not at all. */
#ifndef WB_SIM_BEHAVE_H
#define WB_SIM_BEHAVE_H

#include "sim/respond.h"

/* rest: what followed the page's address in the target; empty if the page itself was asked for. */
int wb_behave(struct wb_respond *r, const struct wb_asked *asked, const struct wb_plan *plan,
              const struct wb_world_moment *now, struct wb_slice rest, struct wb_reply *reply);

/* Answers with a short error page of this status. */
int wb_behave_error(struct wb_respond *r, const struct wb_asked *asked, int status, struct wb_reply *reply);

#endif
