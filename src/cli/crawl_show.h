/* crawl_show.h - shows a crawl while it works: progress for people, events for programs, and the log of fetches. */
#ifndef WB_CLI_CRAWL_SHOW_H
#define WB_CLI_CRAWL_SHOW_H

#include "cli/options.h"
#include "cli/progress.h"
#include "crawl/crawl.h"
#include "os/file.h"

struct wb_crawl_show {
    bool json;
    struct wb_file log;         /* --log; not open if there is none */
    bool log_plain;             /* a file that we append to, not a pipe or a device */
    uint64_t log_at;            /* where the next line goes */
    struct wb_buf words;        /* warnings that wait until standard error has room */
    uint64_t words_lost;        /* warnings that were dropped because too many were waiting */
    struct wb_progress progress;
    struct wb_crawl_stat last;  /* what the last progress line showed... */
    int64_t last_ns;            /* ...and when */
};

/* Opens the file of --log. Must be released even if this fails. */
int wb_crawl_show_init(struct wb_crawl_show *show, const struct wb_options *options);
void wb_crawl_show_release(struct wb_crawl_show *show);

/* The sink for wb_crawl(). It is valid as long as show is. */
struct wb_crawl_sink wb_crawl_show_sink(struct wb_crawl_show *show);

/*
 * A test seam, so that the words can be looked at. Composes the progress line: pages and MB a second since last, which
 * is `seconds` ago, then the state of the crawl.
 */
void wb_crawl_show_text(const struct wb_crawl_stat *last, const struct wb_crawl_stat *stat, double seconds,
                        char *text_out, size_t size);

#endif
