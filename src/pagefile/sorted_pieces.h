/*
 * sorted_pieces.h - how the pages of a chunk are read from segments (sorted_log.c): pieces, and the threads that read
 * them. sorted_log.c divides a chunk into pieces, and sorted_pieces.c reads them.
 */
#ifndef WB_PAGEFILE_SORTED_PIECES_H
#define WB_PAGEFILE_SORTED_PIECES_H

#include "base/pool.h"
#include "pagefile/sorted_source.h"

#include <pthread.h>

enum {
    WB_SORTED_WORKERS = WB_SORTED_TEXTS, /* at most */
    WB_SORTED_SHARE = 2, /* pieces for each worker, if there are several: those that are done sooner do more */
};

/* An item, and the segment that has it. */
struct wb_sorted_place {
    struct wb_sorted_item *item;
    size_t row;    /* the index of its row */
    uint32_t node; /* of that segment */
    bool sparse;   /* few of the segment's pages are wanted */
};

/* Damage that was found in a piece. */
struct wb_sorted_found {
    struct wb_error_copy error;
    uint32_t segment;
    uint64_t at;
};

/* A part of a chunk: neighbours on the disk. It is read by one thread. */
struct wb_sorted_piece {
    const struct wb_sorted_place *places;
    size_t count;
    WB_VEC(struct wb_sorted_found) found;
    struct wb_error_copy error; /* any other error, which has ended the work on it */
};

/* A thread that reads pieces, one after the other, into a text of its own. */
struct wb_sorted_worker {
    struct wb_sorted_pieces *source;
    uint32_t number; /* that of its text */
    struct wb_buf *text;
    struct wb_sorted_piece *piece; /* the current one */
    struct wb_segment_reader reader;
    struct wb_buf record;
    struct wb_buf window;     /* of the last walk, for the next one */
    WB_VEC(uint64_t) entries; /* of a block: its entry << 32 | its item, in the order of the directory */
};

struct wb_sorted_pieces {
    const struct wb_pagefile *files;
    struct wb_nodes nodes;
    pthread_mutex_t lock; /* of the nodes, while workers look for one, and of next_piece */
    struct wb_parts parts;
    WB_VEC(uint32_t) wide; /* segments of which chunks need a small part, and which were read as a whole once */
    WB_VEC(struct wb_sorted_place) order; /* the items of the chunk in the order of the disk */
    const struct wb_sorted_chunk *chunk;  /* that is being read; workers change nothing but items and texts */
    struct wb_sorted_piece pieces[WB_SORTED_SHARE * WB_SORTED_WORKERS];
    size_t piece_count, next_piece; /* next: in the order in which they are taken (work) */
    size_t worker_count, share;     /* share: pieces for each worker */
    struct wb_pool *pool;           /* for all workers but the first; NULL until needed */
    struct wb_sorted_worker workers[WB_SORTED_WORKERS];
};

/* Reads pieces of the source's chunk until there are no more. context is a worker; runs in any thread. */
void wb_sorted_work(void *context);

#endif
