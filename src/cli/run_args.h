/*
 * run_args.h - the options of run, which `serve --run` takes too and passes on to the process that runs the cycle.
 */
#ifndef WB_CLI_RUN_ARGS_H
#define WB_CLI_RUN_ARGS_H

#include "base/arena.h"
#include "base/vec.h"
#include "cli/crawl_args.h"

/* Reads and checks them. WB_USAGE with a message that names the option. Texts stay those of the command line. */
int wb_run_args_fill(const struct wb_options *options, struct wb_cycle_options *cycle_out);

/* A command line, with NULL at its end. */
struct wb_run_line {
    WB_VEC(const char *) words;
    struct wb_arena text;
};

/* The command line of the `run` that the options of `serve --run` ask for. Release it even if this fails. */
int wb_run_line_make(const struct wb_options *options, struct wb_run_line *line_out);
void wb_run_line_release(struct wb_run_line *line);

/* The name of an option of run that was given, or "" for a seed; NULL: none was. */
const char *wb_run_args_given(const struct wb_options *options);

#endif
