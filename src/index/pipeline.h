/*
 * pipeline.h - reads the new and changed pages of the snapshot and turns them into runs.
 *
 *   loader      scans the snapshot and copies pages into batches
 *   workers     extract, find words, invert                                         (docwords.h)
 *   flusher     sorts full inverters and writes them as runs
 *
 * The three stages work at the same time, as in the paper (WebBase 2001, section 3, Figures 11 and 12): while one
 * batch is loaded, others are processed and another is flushed. With options->serial they take turns in one thread, so
 * that the gain can be measured.
 */
#ifndef WB_INDEX_PIPELINE_H
#define WB_INDEX_PIPELINE_H

#include "index/build.h"

/* Fills in build->contents and build->lengths of the pages that it reads, their titles, and the runs. */
int wb_pipeline(struct wb_build *build);

#endif
