/* crawl_args.h - options of the command line that steer crawling: those of crawl, of generate, and of run, which has both. */
#ifndef WB_CLI_CRAWL_ARGS_H
#define WB_CLI_CRAWL_ARGS_H

#include "cli/options.h"
#include "cycle/cycle.h"

/* args are seeds. The text stays the command line's. */
void wb_crawl_args_fill(const struct wb_options *options, struct wb_crawl_options *crawl_out);

/* What the table of commands cannot tell: WB_USAGE naming the option. */
int wb_crawl_args_check(const struct wb_crawl_options *crawl);

/* Of generate and run: budget, policy, intervals, seeds, scope, dispenser. WB_USAGE. */
int wb_generate_args_fill(const struct wb_options *options, struct wb_generate_options *generate_out);

#endif
