/*
 * listmerge.h - merges runs, and the lists of the last generation, into the lists of the next one.
 */
#ifndef WB_INDEX_LISTMERGE_H
#define WB_INDEX_LISTMERGE_H

#include "index/build.h"

/* Writes dictionary, lists and positions. The lengths of all documents must be known. */
int wb_listmerge(struct wb_build *build);

#endif
