/*
 * module_args.h - the modules of a command: those of --module, and those that its repository remembers.
 */
#ifndef WB_CLI_MODULE_ARGS_H
#define WB_CLI_MODULE_ARGS_H

#include "cli/options.h"

/*
 * Checks --module, --module-time and --module-memory, starts each module once to see whether it loads, and makes
 * extractors use them. WB_USAGE, or an error that names the file.
 */
int wb_module_args_begin(const struct wb_options *options);

/* Lets the repository, if there is one by now, remember the modules, and counts what they have read. */
int wb_module_args_end(const struct wb_options *options);

#endif
