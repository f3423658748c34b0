/* select_args.h - the options that select pages, as export and stream take them. */
#ifndef WB_CLI_SELECT_ARGS_H
#define WB_CLI_SELECT_ARGS_H

#include "cli/options.h"
#include "stream/stream.h"

/*
 * Reads --site, --sites, --suffix, --since, --until, --type, --lang, --status and --query. WB_USAGE with a message that
 * names the option if a value is invalid. Must be released even if this fails.
 */
int wb_select_args(const struct wb_options *options, struct wb_selection *selection_out);

/*
 * The same for a stream, with --order, --limit, --partition, --resume, --latest, --snapshot, --versions,
 * --name and --join.
 */
int wb_stream_args(const struct wb_options *options, struct wb_stream_spec *spec_out);

#endif
