/* crawl_show.h - a crawl while it works, as people and programs see it: progress, events, the log of fetches. */
#ifndef WB_CLI_CRAWL_SHOW_H
#define WB_CLI_CRAWL_SHOW_H

#include "cli/options.h"
#include "cli/progress.h"
#include "crawl/crawl.h"
#include "os/file.h"

struct wb_crawl_show {
    bool json;
    struct wb_file log;
    bool log_plain;      /* a file with an end to append to, not a pipe or a device */
    uint64_t log_at;
    struct wb_buf words; /* for standard error, whose reader has no room now */
    uint64_t words_lost;
    struct wb_progress progress;
    struct wb_crawl_stat last;
    int64_t last_ns;
};

/* Opens the file of --log. Release it in any case. */
int wb_crawl_show_init(struct wb_crawl_show *show, const struct wb_options *options);
void wb_crawl_show_release(struct wb_crawl_show *show);

/* What a crawl is to be given. */
struct wb_crawl_sink wb_crawl_show_sink(struct wb_crawl_show *show);

/* Pages and MB per second since `last`, seconds ago, then the state of the whole. */
void wb_crawl_show_text(const struct wb_crawl_stat *last, const struct wb_crawl_stat *stat, double seconds, char *text_out, size_t size);

#endif
