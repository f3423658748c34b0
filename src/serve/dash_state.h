/* dash_state.h - private to serve: what is going on, as a sentence for people. */
#ifndef WB_SERVE_DASH_STATE_H
#define WB_SERVE_DASH_STATE_H

#include "serve/dash.h"

struct wb_dash_state {
    struct wb_buf text;    /* ends with a full stop, unless until_ms follows it */
    int64_t until_ms;      /* the time with which the sentence ends; 0: it ends without one */
    struct wb_buf problem; /* what somebody should do something about; empty: nothing */
    bool empty;            /* nothing is stored, and nobody has begun anything */
};

int wb_dash_state_read(struct wb_server *server, const struct wb_answer_stat *stat, struct wb_dash_state *state_out);
void wb_dash_state_release(struct wb_dash_state *state);

#endif
