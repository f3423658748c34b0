/*
 * store_state_own.h - what the files that implement store_state.h share.
 *
 *   store_state.c          takes a state and lets it go; what is known about it
 *   store_state_files.c    its files: their names in a copy, reading them
 *   store_state_buckets.c  files that change in place
 *   store_state_rows.c     its rows
 *   store_state_mark.c     marks, by which rows that have changed since are found
 *   store_loader.c         the way back: a repository of files and rows
 *
 * A state is a transaction that reads, for each catalog: so it costs what a scan costs, and nobody waits for it.
 */
#ifndef WB_STORE_STORE_STATE_OWN_H
#define WB_STORE_STORE_STATE_OWN_H

#include "base/vec.h"
#include "catalog/catalog.h"
#include "pagefile/pagefile.h"
#include "place/place.h"
#include "store/batch/batched.h"
#include "store/store_state.h"

#include <pthread.h>

enum {
    WB_STATE_MAGIC = 0x57425348,
    WB_STATE_PARTS_MAX = 2,
    WB_STATE_OPEN_MAX = 64,    /* files that are kept open, and not being read */
    WB_STATE_NAME_MAX = 160,   /* of a file in a copy, with the NUL */
    WB_STATE_SMALL_MAX = 4096, /* bytes of a small file */
};
#define WB_STATE_RANGE_MAX ((uint64_t)64 << 20)

/* A catalog, and the files that it knows. */
struct wb_state_part {
    const char *prefix; /* of names in a copy: "" or "update/" */
    char *dir;
    struct wb_superblock superblock; /* with the design of this part alone */
    const struct wb_pagefile_kind *kind;
    struct wb_catalog *catalog;
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    struct wb_nodes nodes;
    struct wb_catalog_rows rows;             /* of its files */
    WB_VEC(struct wb_bucket_aside *) asides; /* of files that change in place, and some that have gone */
};

/* A file of pages. */
struct wb_state_file {
    char *name; /* in a copy */
    const struct wb_state_part *part;
    struct wb_node *node;                /* that has it */
    char node_name[WB_SEGMENT_NAME_MAX]; /* what it is called there */
    uint64_t bytes;
    const struct wb_bucket_aside *aside; /* it changes in place, and was copied; otherwise NULL */
    const char *memory;                  /* this is what it has; otherwise NULL */
    struct wb_node_file file;            /* closed unless it was read lately ... */
    unsigned readers;                    /* ... or is being read */
};

struct wb_store_state {
    uint32_t magic;
    struct wb_superblock superblock;
    struct wb_state_part parts[WB_STATE_PARTS_MAX];
    size_t part_count;
    const struct wb_buf *since;         /* valid stamps, while it is taken; or NULL */
    struct wb_bucket_room room;         /* has what was copied */
    WB_VEC(struct wb_state_file) files; /* sorted by name */
    pthread_mutex_t mutex;              /* for the open files: file and readers of each, and these: */
    unsigned open;
};

/* Takes the newest state of a part, whose directory and design are known; and lets it go. */
int wb_state_part_hold(struct wb_state_part *part);
void wb_state_part_let_go(struct wb_state_part *part);

/* ---- buckets (store_state_buckets.c) ---------------------------------------------------------------------------- */

bool wb_state_stamps_valid(const struct wb_buf *stamps, const uint8_t *repository);

/*
 * Of a part whose files change in place: copies what is wanted of them while writers go on; then holds the newest state
 * and copies the rest while no writer can commit. *settled_out is false if a writer has left something half done.
 */
int wb_state_buckets_prepare(struct wb_store_state *state, struct wb_state_part *part);
int wb_state_buckets_hold(struct wb_store_state *state, struct wb_state_part *part, bool *settled_out);

/* The file of a row; NULL if it was not copied. */
struct wb_bucket_aside *wb_state_aside(const struct wb_state_part *part, const struct wb_catalog_segment *row);
void wb_state_asides_release(struct wb_state_part *part);

/* ---- files (store_state_files.c) -------------------------------------------------------------------------------- */

/* The directory of a node in a copy: "" for the one that is the repository's own directory, otherwise "nodeN". */
#define WB_STATE_NODE_MAX 16
void wb_state_node_dir(const struct wb_catalog_node *row, char dir_out[WB_STATE_NODE_MAX]);

/* Lists the files of a part; WB_E_DOWN names a node that has one and cannot be read. */
int wb_state_files_add(struct wb_store_state *state, struct wb_state_part *part);
void wb_state_files_sort(struct wb_store_state *state);
void wb_state_files_release(struct wb_store_state *state);

/* What a mark says of this repository: the number of parts that have marks; 0: nothing. */
size_t wb_state_mark_decode(struct wb_slice mark, const uint8_t *repository,
                            struct wb_tree_marked marked_out[WB_STATE_PARTS_MAX]);

#endif
