/*
 * fetch_probe.h - test seams: numbers inside this room that only its tests and fuzzers look at: how much is under way,
 * and how much memory something takes. They are not part of the door.
 */
#ifndef WB_FETCH_FETCH_PROBE_H
#define WB_FETCH_FETCH_PROBE_H

#include "fetch/fetch.h"

struct wb_dns_stat {
    uint64_t asked, answered, failed, cached;
    unsigned waiting; /* questions that wait for their turn or their answer */
};
void wb_dns_stat(const struct wb_dns *dns, struct wb_dns_stat *stat_out);

/* Requests under way. */
unsigned wb_fetcher_busy(const struct wb_fetcher *fetcher);

/* Bytes of memory that a parsed robots.txt takes. */
size_t wb_robots_bytes(const struct wb_robots *robots);

#endif
