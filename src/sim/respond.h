/*
 * respond.h - turns a request into a reply: finds the host and the page, and logs the request.
 *
 * struct wb_respond owns everything that the synthetic web consists of. webserver.c reads
 * requests, asks here, and sends the reply.
 */
#ifndef WB_SIM_RESPOND_H
#define WB_SIM_RESPOND_H

#include "base/vec.h"
#include "sim/webanswer.h"
#include "sim/asklog.h"
#include "sim/plan.h"

struct wb_respond_raw {
    char *name; /* owned */
    struct wb_buf bytes;
};

struct wb_respond {
    struct wb_world world;
    struct wb_asklog log;
    struct wb_answerer answerer;
    WB_VEC(struct wb_respond_raw) raw;   /* the first is on r1.localhost */
    unsigned latency_ms;
    int64_t start_ns;            /* when it started, by the monotonic clock */
    struct wb_buf body, path, scratch;
    struct wb_buf bomb, nested;  /* made when they are first asked for */
};

int wb_respond_init(const struct wb_sim_options *options, struct wb_respond *respond_out);
void wb_respond_release(struct wb_respond *respond);

/* Replies to any valid HTTP request; fails only if memory runs out. */
int wb_respond(struct wb_respond *respond, const struct wb_asked *asked, int64_t mono_ns, struct wb_reply *reply_out);

#endif
