/* limits.h - what the system allows this process, arranged once at its start. */
#ifndef WB_OS_LIMITS_H
#define WB_OS_LIMITS_H

#include <stdint.h>

/*
 * Turns limits into errors that can be reported. Two signals that end a process without a
 * word are ignored, so that the write fails instead: SIGPIPE (the reader went away, EPIPE)
 * and SIGXFSZ (the file would become larger than `ulimit -f` allows, EFBIG). The limit of open
 * files is raised as far as it may be, but not beyond WB_LIMITS_FILES_MAX; it is never lowered.
 * Processes forked later inherit all of this.
 */
void wb_limits_prepare(void);

#define WB_LIMITS_FILES_MAX 65536u

/* The files that this process may have open at once; 0 if there is no limit. */
uint64_t wb_limits_files(void);

/* The bytes of address space that `ulimit -v` allows this process; 0 if there is no limit. */
uint64_t wb_limits_memory(void);

#endif
