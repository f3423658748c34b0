/*
 * rowmerge.h - the rows of a state out of a base and the differences behind it: sorted by table and key, in bounded
 * memory.
 *
 * A *run* is the rows of one object, in ascending order of tables and keys. Runs wait in a temporary file without a
 * name. A later run (one with a higher age) says what a row is now, or that it is gone. Runs of one age do not have the
 * same rows.
 *
 *   new -> begin, add ..., end          for each run; by any number of threads, each with a run of its own
 *       -> each                         for each part, by one thread, when all its runs have ended
 *       -> free
 */
#ifndef WB_VAULT_ROWMERGE_H
#define WB_VAULT_ROWMERGE_H

#include "base/buf.h"
#include "base/vec.h"

struct wb_rowmerge;

/* The temporary file is in dir. */
int wb_rowmerge_new(const char *dir, struct wb_rowmerge **merge_out);
void wb_rowmerge_free(struct wb_rowmerge *merge);

/* Rows that are written and read together. */
struct wb_rowchunk {
    uint64_t offset;
    uint32_t len;
};

/* A run. All bytes zero: none is under way, and releasing it is safe. */
struct wb_rowrun {
    struct wb_rowmerge *merge;
    size_t part;
    uint64_t age;
    uint64_t order;        /* in which the runs of one age have ended */
    struct wb_buf waiting; /* rows that are not written yet */
    struct wb_buf last;    /* the key of the last row */
    unsigned last_table;
    bool any;
    WB_VEC(struct wb_rowchunk) chunks;
};

void wb_rowrun_begin(struct wb_rowrun *run, struct wb_rowmerge *merge, size_t part, uint64_t age);

/* A row; value.ptr is NULL if it is gone. WB_E_CORRUPT, with a message that names no object, if it is not ascending. */
int wb_rowrun_add(struct wb_rowrun *run, unsigned table, struct wb_slice key, struct wb_slice value);

/* The run is complete: from now on it belongs to the merge. */
int wb_rowrun_end(struct wb_rowrun *run);
void wb_rowrun_release(struct wb_rowrun *run);

/* Calls each() for every row that is there in the end, in ascending order. Its return ends the walk if it is not 0. */
typedef int (*wb_rowmerge_each_row)(void *context, unsigned table, struct wb_slice key, struct wb_slice value);
int wb_rowmerge_each(struct wb_rowmerge *merge, size_t part, wb_rowmerge_each_row each, void *context);

#endif
