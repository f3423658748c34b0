/* respond.h - from a request to a reply: which host, which page, and the log of it. Owns everything the server knows. */
#ifndef WB_SIM_RESPOND_H
#define WB_SIM_RESPOND_H

#include "sim/answer.h"
#include "sim/asklog.h"
#include "sim/plan.h"

struct wb_raw {
    char *name; /* owned */
    struct wb_buf bytes;
};

struct wb_respond {
    struct wb_world world;
    struct wb_asklog log;
    struct wb_answerer answerer;
    struct wb_raw *raw;          /* raw[0] is on r1.localhost */
    size_t raw_count;
    unsigned latency_ms;
    int64_t start_ns;            /* of the clock that only goes forward */
    struct wb_buf body, path, scratch;
    struct wb_buf bomb, nested;  /* made when first asked for */
};

int wb_respond_init(const struct wb_sim_options *options, struct wb_respond *respond_out);
void wb_respond_release(struct wb_respond *respond);

/* The moment that a clock reading is. */
struct wb_moment wb_respond_moment(const struct wb_respond *respond, int64_t mono_ns);

/* Never refuses what is HTTP; an error is one of memory. */
int wb_respond(struct wb_respond *respond, const struct wb_asked *asked, int64_t mono_ns, struct wb_reply *reply_out);

#endif
