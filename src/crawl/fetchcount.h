/* fetchcount.h - how many pages a run of a fetch list has asked for, over all its processes and however often it is killed. */
#ifndef WB_CRAWL_FETCHCOUNT_H
#define WB_CRAWL_FETCHCOUNT_H

#include "os/file.h"

/* Opens or makes the count of a run, and removes those of others. file_out is shared with processes that are forked. WB_E_BUSY: another crawl of the run is at work. */
int wb_fetchcount_open(const char *dir, int64_t run, struct wb_file *file_out, uint64_t *count_out);

/* The request with this number (from 0) is about to be made. Every number is noted once. */
int wb_fetchcount_note(const struct wb_file *file, uint64_t number);

#endif
