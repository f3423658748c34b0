/*
 * limits.h - what the system allows this process. The program calls wb_limits_prepare() once, before anything else.
 */
#ifndef WB_OS_LIMITS_H
#define WB_OS_LIMITS_H

#include <stdint.h>

#define WB_LIMITS_FILES_MAX 65536u

/*
 * Turns limits into errors that can be reported. Two signals would end the process without a word; they are ignored,
 * so that the write fails instead: SIGPIPE (the reader of a pipe went away: EPIPE) and SIGXFSZ (the file would
 * become larger than `ulimit -f` allows: EFBIG). The limit of open files is raised as far as we may, but not beyond
 * WB_LIMITS_FILES_MAX; it is never lowered. Processes that are forked later inherit all of this.
 */
void wb_limits_prepare(void);

/* The number of files that this process may have open at once; 0 if there is no limit. */
uint64_t wb_limits_files(void);

/* The bytes of address space that `ulimit -v` allows this process; 0 if there is no limit. */
uint64_t wb_limits_memory(void);

/* The number of processors that this process may use (taskset, cgroups); at least 1. */
unsigned wb_limits_processors(void);

#endif
