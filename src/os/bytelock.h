/*
 * bytelock.h - locks on single bytes of an open file, kept by the kernel.
 *
 * They belong to the open file (OFD locks), not to the process: two struct wb_file
 * of one process exclude each other like those of two processes, and a lock ends
 * when its file is closed, however the process ends. The bytes need not exist. A
 * shared lock works on a file that is open for reading only. A file that has locks
 * must not be carried across fork(): the child would keep them.
 */
#ifndef WB_OS_BYTELOCK_H
#define WB_OS_BYTELOCK_H

#include "os/file.h"

/* A shared lock; never waits, because nobody locks such a byte exclusively. */
int wb_bytelock_share(const struct wb_file *file, uint64_t at);

/* An exclusive lock; waits until others have released theirs. */
int wb_bytelock_take(const struct wb_file *file, uint64_t at);
void wb_bytelock_release(const struct wb_file *file, uint64_t at);

/* The lowest byte in [from, to) that another open file has locked: 1 and *at_out, or 0 if there is none. */
int wb_bytelock_first(const struct wb_file *file, uint64_t from, uint64_t to, uint64_t *at_out);

#endif
