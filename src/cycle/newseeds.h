/*
 * newseeds.h - seeds that were never fetched. They are crawled at the start of a cycle, so that generate can choose
 * among the pages that they lead to.
 */
#ifndef WB_CYCLE_NEWSEEDS_H
#define WB_CYCLE_NEWSEEDS_H

#include "crawl/crawl.h"

struct wb_newseeds {
    char **urls;
    size_t count, cap;
};

/* Finds the seeds of the options (URLs, file) that were never fetched. Release seeds_out even after an error. */
int wb_newseeds_find(const struct wb_crawl_options *options, struct wb_newseeds *seeds_out);
void wb_newseeds_release(struct wb_newseeds *seeds);

#endif
