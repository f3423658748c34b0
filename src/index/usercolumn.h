/*
 * usercolumn.h - columns that users bring: values for URLs, from a file of lines "URL, tab, value"; or personal ranks,
 * from a file of seeds.
 *
 *   column-NAME.wbu   the values by page id, those of unknown URLs too, or the seeds: what the next generation makes
 * its column of column-NAME.wbc   by docid: a double, NaN if there is none; or the rank of a word, from 1, 0 if there
 * is none column-NAME.wbt   of a column of words: the words, in order
 *
 * A rank is computed in each build, from the seeds that are known then and the graph of that generation. If none is
 * known any more, no URL has a value.
 *
 * A column lasts from one generation to the next until it is given again or removed. If the first value of a file is a
 * number, all must be; otherwise all are words.
 */
#ifndef WB_INDEX_USERCOLUMN_H
#define WB_INDEX_USERCOLUMN_H

#include "index/generation.h"

struct wb_build;

/* Reads the files of the columns that are given, and takes over the values of those that the last generation has. */
int wb_usercolumns_read(struct wb_build *build);

/* Whether the columns that were read are those that the last generation has already. */
int wb_usercolumns_same(struct wb_build *build, bool *same_out);

/*
 * Looks for the seeds of the ranks that are given, as soon as there is a roster: some that are unknown are worth a
 * warning; if all are, that is an error which names the file.
 */
int wb_usercolumns_check(struct wb_build *build);

/* Writes the columns, when the docids are known and the graph is complete. */
int wb_usercolumns_write(struct wb_build *build);

/* Where the values of a column are, by page id, in the directory of a generation; from the heap. */
char *wb_usercolumn_path(const char *dir, const char *column);

/* Prepares the columns of an open generation, and closes them. */
int wb_usercolumns_open(struct wb_index *index);
void wb_usercolumns_close(struct wb_index *index);

#endif
