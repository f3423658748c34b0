/* newseeds.h - seeds that webdb has never heard of: they are crawled before a cycle, so that it can choose among their pages. */
#ifndef WB_CYCLE_NEWSEEDS_H
#define WB_CYCLE_NEWSEEDS_H

#include "crawl/crawl.h"

struct wb_newseeds {
    char **urls;
    size_t count, cap;
};

/* Those of the options (URLs, file) that were never asked for. Release it in any case. */
int wb_newseeds_find(const struct wb_crawl_options *options, struct wb_newseeds *seeds_out);
void wb_newseeds_release(struct wb_newseeds *seeds);

#endif
