/*
 * build.h - what the steps of a build share.
 *
 *   roster    which pages and URLs there are, and their docids                             roster.h
 *   pages     scan of the new and changed pages: text -> words -> runs; facts of contents  pipeline.h, docwords.h
 *   links     both graphs, the words of links                                              linkwork.h
 *   ranks     PageRank and host rank                                                       rankwork.h
 *   lists     runs, and the lists of the last generation -> lists                          listmerge.h
 *   columns   everything that is known about single documents                              factwork.h
 *   texts     what is kept of the texts of pages, for snippets                             textwork.h
 *   publish   one rename; then older generations go                                        build.c
 */
#ifndef WB_INDEX_BUILD_H
#define WB_INDEX_BUILD_H

#include "index/carry.h"
#include "index/factcolumn.h"
#include "index/generation.h"
#include "index/roster.h"
#include "index/run.h"
#include "index/textwork.h"
#include "index/whereabouts.h"

#include <pthread.h>

/* What the contents of a page say, by docid. */
struct wb_content_fact {
    int64_t published_ms, modified_ms;
    uint32_t words; /* for its length */
    uint8_t lang;
};

struct wb_build {
    const struct wb_index_options *options;
    struct wb_index_result *result;
    size_t memory_bytes;
    unsigned threads;
    bool from_scratch;
    struct wb_whereabouts where;
    char *root;               /* of the series that gets the new generation */
    char *path;               /* the directory that is being written */
    struct wb_file lock;      /* of DIR/index */
    struct wb_file root_lock; /* of root, if that is elsewhere */
    uint32_t number;          /* of the generation */
    uint32_t last;            /* the number of the last generation; 0 if there is none */
    char *last_root;          /* where that is */
    bool lost;                /* the directory that has it is missing */
    bool held;                /* snapshot and edition are held in the name of the new generation, or one of them */
    struct wb_store *store;
    struct wb_webdb *webdb;
    struct wb_store_snapshot snapshot;
    struct wb_roster roster;
    struct wb_carry carry;
    struct wb_content_fact *contents; /* by docid of pages */
    uint8_t *lengths;                 /* by docid of URLs */
    uint32_t *inlinks, *outlinks;     /* by docid of URLs */
    uint64_t *anchors;                /* by docid of URLs: hash of the texts */
    double *ranks;                    /* by docid of URLs */
    double *site_ranks;               /* by number of the site */
    struct wb_sorter *titles;         /* docid -> title */
    struct wb_textwork texts;         /* what is kept of the texts of pages */
    struct wb_factcolumns facts;      /* what modules say about pages */
    struct wb_sorter *urlkeys;        /* URL key, zero byte, number -> nothing */
    struct wb_sorter *languages;      /* candidates of pages in several languages (alternates.h) */
    uint32_t *alternates;             /* by docid of pages */
    pthread_mutex_t mutex;            /* for runs, titles, texts and result, while threads are at work */
    WB_VEC(struct wb_run *) runs;
    struct wb_generation_manifest manifest;
};

/* "build/NAME", from the heap. */
char *wb_build_path(const struct wb_build *build, const char *name);

/* Tells how far a step is. WB_E_STOPPED if the work is to end. */
int wb_build_progress(struct wb_build *build, const char *step, uint64_t done, uint64_t total);
__attribute__((format(printf, 2, 3))) void wb_build_warn(struct wb_build *build, const char *format, ...);

/* Warns of a damaged place of the store, whose error is the current one, and counts it. */
void wb_build_damaged(struct wb_build *build);

/* A writer for a new run; any thread may ask for one. The run belongs to the build. */
int wb_build_run(struct wb_build *build, struct wb_run_writer *writer_out);

/* ---- holds: genholds.c */

/*
 * Removes generations that nobody uses: those with numbers below keep, and all in directories where the index is no
 * longer. Then gives up the holds of all generations that are gone.
 */
int wb_build_tidy(struct wb_build *build, uint32_t keep);

/*
 * Whether the last generation is what this build would make, but for columns that are given (current.c): then
 * result->info is that of the last one. If its files are damaged, the build is from scratch from now on.
 */
int wb_build_is_current(struct wb_build *build, bool *current_out);

/* Gives up what the generation that is being built holds. Messages are of no interest here. */
void wb_build_let_go(struct wb_build *build);

/* The greatest number of a generation that holds a snapshot or an edition; 0 if none does. */
int wb_build_greatest_holder(struct wb_build *build, uint32_t *number_out);

#endif
