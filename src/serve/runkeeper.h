/*
 * runkeeper.h - keeps a process that runs the cycle beside the server, for `serve --run`.
 *
 *   server process ---- fork, exec ----> webbase run          started again when it dies
 *         | SIGTERM                          |
 *         +--- SIGTERM, then SIGKILL ------->+                it also ends when the server is killed
 */
#ifndef WB_SERVE_RUNKEEPER_H
#define WB_SERVE_RUNKEEPER_H

struct wb_runkeeper;

/*
 * Starts the program that is running with these arguments (NULL ends them), and sees to it that it goes on. What it
 * prints goes to standard error. say is called in another thread, and told what happens to the process.
 */
int wb_runkeeper_new(const char *const *args, void (*say)(void *context, const char *message), void *context,
                     struct wb_runkeeper **keeper_out);

/* Ends the process cleanly, or kills it if that takes too long. NULL is allowed. */
void wb_runkeeper_free(struct wb_runkeeper *keeper);

#endif
