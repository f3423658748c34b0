/*
 * factwork.h - writes what is known about single documents: the columns and the titles.
 */
#ifndef WB_INDEX_FACTWORK_H
#define WB_INDEX_FACTWORK_H

#include "index/build.h"

/*
 * Takes the facts of contents that have not changed from the last generation, and sets the lengths of URLs that are no
 * pages: call it after the pages were read.
 */
int wb_factwork_carry(struct wb_build *build);

/* Writes all columns. */
int wb_factwork_columns(struct wb_build *build);

/* Writes the titles: those of the pages that were read, and those of the last generation. */
int wb_factwork_titles(struct wb_build *build);

#endif
