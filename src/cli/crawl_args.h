/*
 * crawl_args.h - reads the options that steer crawling: those of crawl and generate, and those of run, which has both.
 * Texts stay those of the command line.
 */
#ifndef WB_CLI_CRAWL_ARGS_H
#define WB_CLI_CRAWL_ARGS_H

#include "cli/options.h"
#include "cycle/cycle.h"

/* For crawl and run. The arguments of the command are seeds. WB_USAGE with a message that names a wrong word. */
int wb_crawl_args_fill(const struct wb_options *options, struct wb_crawl_options *crawl_out);

/* Checks what the table of commands cannot express: WB_USAGE with a message that names the option. */
int wb_crawl_args_check(const struct wb_crawl_options *crawl);

/* For generate and run: budget, policy, intervals, seeds, scope, dispenser. WB_USAGE as above. */
int wb_crawl_args_fill_generate(const struct wb_options *options, struct wb_generate_options *generate_out);

#endif
