/*
 * usercolumn.h - columns that users bring: values for URLs, from a file.
 */
#ifndef WB_INDEX_USERCOLUMN_H
#define WB_INDEX_USERCOLUMN_H

#include "index/generation.h"

struct wb_build;

/* Writes the columns of the next generation: those of the last one, unless removed or given again, and new ones. */
int wb_usercolumns_write(struct wb_build *build);

/* Opens the columns of a generation, and closes them. */
int wb_usercolumns_open(struct wb_index *index);
void wb_usercolumns_close(struct wb_index *index);

#endif
