/*
 * sim.h - the door of sim: a synthetic web to crawl.
 *
 * Every page, answer and misbehaviour is a function of a seed and the time; nothing is stored.
 * docs/design/0007-synthetic-web.md says what it serves, and how /_truth reports afterwards
 * what there was and what was asked for. Used by `webbase web` and by tests.
 *
 * A request passes through the files in this order:
 *
 *   webserver.c -> asked.c -> respond.c -> locate.c -> plan.c -> behave.c -> hypertext.c -> webanswer.c
 *   sockets        parses     dispatches   which       what it   its         its HTML    HTTP
 *                                          page?       is like   manners
 */
#ifndef WB_SIM_SIM_H
#define WB_SIM_SIM_H

#include "base/buf.h"

#define WB_SIM_SITES_MAX (1u << 22)
#define WB_SIM_PAGES_MAX (1u << 28)

struct wb_sim_options {
    const char *listen;    /* "127.0.0.1:0" */
    uint64_t seed;
    unsigned sites;        /* not counting the host of the front page */
    unsigned pages;        /* of all sites together, approximately */
    double speed;          /* how many seconds pass in the web per real second; 0: nothing changes */
    unsigned page_bytes;   /* the approximate length of a page */
    unsigned latency_ms;   /* added to each answer */
    bool hostile;          /* include traps, bombs and broken connections */
    const char *raw;       /* a folder of raw responses to serve byte for byte under /raw/NAME, or NULL */
};

/* Serves until wb_stop_requested(). Calls ready() with "http://ADDR:PORT/" once it listens. */
int wb_sim_serve(const struct wb_sim_options *options, void (*ready)(void *context, const char *url), void *context);

#endif
