/* stream_workers.h - several processes that each handle a part of a stream. */
#ifndef WB_CLI_STREAM_WORKERS_H
#define WB_CLI_STREAM_WORKERS_H

#include <stdbool.h>

/* Does the work of one worker, and returns what a command returns. */
typedef int (*wb_stream_worker)(void *context, unsigned worker, unsigned workers);

/*
 * Starts the workers, and waits for all of them: one that fails does not end the others. 0 if all went well, 1 if all
 * came to their end but one of them returned 1. A signal is passed on to them. With in_turn, what they print on
 * standard output comes worker by worker when all have ended, so that their lines are not mixed.
 */
int wb_stream_workers(unsigned workers, bool in_turn, wb_stream_worker run, void *context);

#endif
