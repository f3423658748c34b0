/*
 * bytelock.h - locks on single bytes of an open file, kept by the kernel.
 *
 * Only the number of a byte matters; the byte itself need not exist in the file. In the store, a reader holds
 * a shared lock on the number of the snapshot that it needs, and the writer an exclusive one that keeps others out.
 *
 * The locks belong to the open file (OFD locks), not to the process. So two struct wb_file of one process exclude each
 * other like those of two processes, and a lock ends when its file is closed, however the process ends. A shared lock
 * also works on a file that is open for reading only. Never carry a file that has locks across fork(): the
 * child would keep them.
 */
#ifndef WB_OS_BYTELOCK_H
#define WB_OS_BYTELOCK_H

#include "os/file.h"

/* Takes a shared lock; waits until nobody has an exclusive one. Where nobody takes those, it never has to wait. */
int wb_bytelock_share(const struct wb_file *file, uint64_t at);

/* Takes an exclusive lock; waits until all others have released theirs. */
int wb_bytelock_take(const struct wb_file *file, uint64_t at);

/* Takes an exclusive lock if nobody else has one of either kind: returns 1. Returns 0 if somebody has. Never waits. */
int wb_bytelock_try(const struct wb_file *file, uint64_t at);

/* The same for a shared lock: returns 0 if somebody has an exclusive one. */
int wb_bytelock_try_share(const struct wb_file *file, uint64_t at);

/*
 * Takes an exclusive lock for this process alone: processes that it forks do not have it. It ends as soon as this
 * process closes any handle of the file. Returns 1, or 0 if somebody else has a lock. wb_bytelock_first() of another
 * process sees it.
 */
int wb_bytelock_try_alone(const struct wb_file *file, uint64_t at);
void wb_bytelock_release(const struct wb_file *file, uint64_t at);

/* Finds the lowest byte in [from, to) that another open file has locked. Returns 1 and sets *at_out, or returns 0. */
int wb_bytelock_first(const struct wb_file *file, uint64_t from, uint64_t to, uint64_t *at_out);

#endif
