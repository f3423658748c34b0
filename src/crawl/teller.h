/*
 * teller.h - passes the log of fetches on to its readers, as fast as they read and no faster. A reader that stops
 * reading keeps nobody else waiting. Belongs to the parent of a crawl.
 */
#ifndef WB_CRAWL_TELLER_H
#define WB_CRAWL_TELLER_H

#include "crawl/crawl.h"
#include "crawl/lines.h"

struct wb_teller;

/*
 * Starts with the lines that earlier crawls left. Lines go to sink->take for each output in sink->outputs; if there are
 * none, the teller does nothing.
 */
int wb_teller_open(const char *dir, const struct wb_crawl_sink *sink, struct wb_teller **teller_out);

/* Deletes files whose lines were all read; the others stay for the next crawl. */
void wb_teller_close(struct wb_teller *teller);

/* Looks again for files that earlier crawls left: a killed process keeps its file locked until it is really gone. */
int wb_teller_adopt(struct wb_teller *teller);

/*
 * Creates the file for a process that is about to be forked, or for the parent itself. The teller owns *lines_out;
 * it is NULL if nobody reads the log.
 */
int wb_teller_add(struct wb_teller *teller, const char *name, struct wb_lines **lines_out);

/* The process of that name has ended, and its spool was recovered: nobody appends to its file any more. */
void wb_teller_ended(struct wb_teller *teller, const char *name);

/*
 * Passes on what the readers take without waiting. *moved_out: something was passed on. A reader's error is
 * returned.
 */
int wb_teller_tell(struct wb_teller *teller, bool *moved_out);

/* How many lines have not been read yet, by the reader that is further behind. */
int wb_teller_left(struct wb_teller *teller, uint64_t *left_out);

#endif
