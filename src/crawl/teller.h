/*
 * teller.h - passes lines of the log of fetches on to their readers, as fast as those read and no faster: a reader that stops
 * keeps nobody else waiting. Belongs to the parent of a crawl.
 */
#ifndef WB_CRAWL_TELLER_H
#define WB_CRAWL_TELLER_H

#include "crawl/crawl.h"
#include "crawl/lines.h"

struct wb_teller;

/* Continues with the lines that earlier crawls left. Lines go to sink->take for each output in sink->outputs; without outputs nothing is done. */
int wb_teller_open(const char *dir, const struct wb_crawl_sink *sink, struct wb_teller **teller_out);

/* The same again: a process of a crawl that was killed may take a moment to die, and keeps its lines until then. */
int wb_teller_adopt(struct wb_teller *teller);

/* A file for a process that is about to be forked, and for the parent itself; *lines_out stays the teller's. NULL where nobody wants lines. */
int wb_teller_add(struct wb_teller *teller, const char *name, struct wb_lines **lines_out);

/* The process that appended to it has ended and what it left in its spool was recovered. */
void wb_teller_ended(struct wb_teller *teller, const char *name);

/* Passes on what the readers take without waiting; *moved_out: whether anything was. An error of a reader ends the crawl. */
int wb_teller_tell(struct wb_teller *teller, bool *moved_out);

/* How many lines of standard output or the log have not been read yet, the larger of the two; 0: all were. */
int wb_teller_left(struct wb_teller *teller, uint64_t *left_out);

/* Files that nobody needs any more are removed; the others stay for the next crawl. */
void wb_teller_close(struct wb_teller *teller);

#endif
