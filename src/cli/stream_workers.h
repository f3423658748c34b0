/* stream_workers.h - several processes that each handle a part of a stream. */
#ifndef WB_CLI_STREAM_WORKERS_H
#define WB_CLI_STREAM_WORKERS_H

#include "cli/options.h"

#define WB_STREAM_WORKERS_MAX 256

/* Does the work of one worker, and returns what a command returns. */
typedef int (*wb_stream_worker)(const struct wb_options *options, const char *where, unsigned worker, unsigned workers);

/*
 * Starts the workers, and waits for all of them: one that fails does not end the others. 0 if all went well. A signal
 * is passed on to them.
 */
int wb_stream_workers(const struct wb_options *options, const char *where, unsigned workers, wb_stream_worker run);

#endif
