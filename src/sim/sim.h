/*
 * sim.h - the door of sim: a synthetic web to crawl, deterministic from a seed.
 * What it serves and how it tells the truth: docs/design/0007-synthetic-web.md.
 */
#ifndef WB_SIM_SIM_H
#define WB_SIM_SIM_H

#include "base/buf.h"

#define WB_SIM_SITES_MAX (1u << 22)
#define WB_SIM_PAGES_MAX (1u << 28)

struct wb_sim_options {
    const char *listen;    /* "127.0.0.1:0" */
    uint64_t seed;
    unsigned sites;        /* besides the front page's own host */
    unsigned pages;        /* of all sites together, about */
    double speed;          /* seconds of the web's life in a second; 0: nothing changes */
    unsigned page_bytes;   /* about how long a page is */
    unsigned latency_ms;   /* added to every answer */
    bool hostile;          /* with traps, bombs, dying connections */
    const char *raw;       /* a folder of raw responses to serve byte for byte under /raw/NAME; NULL: none */
};

/* Serves until wb_stop_requested(); says "http://ADDR:PORT/" through ready. */
int wb_sim_serve(const struct wb_sim_options *options, void (*ready)(void *context, const char *url), void *context);

#endif
