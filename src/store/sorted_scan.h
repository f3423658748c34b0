/*
 * sorted_scan.h - scans in the order of page ids, for the organisations hashed-log and hash.
 *
 * The catalog has all pages in the order of their ids, and knows which version a state shows and where it is stored. So
 * the scan takes its list from there, piece by piece, and asks a *source* for the bytes:
 *
 *   catalog ---> items: ids and places, in order ---> source: reads their records into memory ---> pages, one by one
 *                (a *chunk*: a few ranges of ids)
 *
 * A source reads a chunk in whatever order suits its files. It tells where the ranges of ids end that it keeps together
 * ("edges"), so that chunks end there, and each of its blocks is read once. Chunks may end anywhere else, too: that costs
 * time, but changes nothing. So it does not matter which files a page has been in, or is moved to, while a scan runs.
 *
 *   sorted_scan.c   the scan itself: options, pages, parcels, positions
 *   sorted_pick.c   takes the items of a chunk from the catalog
 *   sorted_log.c    the source that reads segments, for hashed-log
 */
#ifndef WB_STORE_SORTED_SCAN_H
#define WB_STORE_SORTED_SCAN_H

#include "store/log.h"

/* A page that the scan is to return. */
struct wb_sorted_item {
    struct wb_pageid id;
    struct wb_catalog_entry entry; /* of the version that the state shows; entry.place says where it is */
    size_t at;                     /* set by the source: where its record is in the chunk's text ... */
    size_t bytes;                  /* ... and its length; 0: it cannot be read, and that has been reported */
};

/* A damaged part of a file that was reported once. */
struct wb_sorted_damage {
    uint32_t segment;
    uint64_t at;
};

/* The pages whose records are in memory, or are about to be. */
struct wb_sorted_chunk {
    struct wb_catalog_txn *txn;     /* the newest state, held while a source loads the chunk */
    const struct wb_log_rows *rows; /* all rows of segments in it */
    bool facts;                     /* wanted of each record: only its digests and its head (wb_block_read_head) */
    WB_VEC(struct wb_sorted_item) items; /* in ascending order of ids */
    struct wb_buf text;                  /* the records, in any order */
    WB_VEC(struct wb_error_copy) errors; /* damage that was found, to be returned by the scan */
    WB_VEC(struct wb_sorted_damage) known; /* damage that was reported by this scan before */
};

/*
 * What a source must implement. Its functions are called by the thread that runs the scan; of the wb_log only what never
 * changes may be used: dir, superblock, content_seed, and functions that say so.
 */
struct wb_sorted_source {
    size_t chunk_bytes; /* so many bytes of records are a good amount to load at once */
    int (*open)(struct wb_log *log, void **context_out);
    void (*close)(void *context);

    /*
     * The files were listed anew. Returns through *edge_out the greatest value of id.hi such that ids from `hi` to there
     * are kept together: in the same files, or the same bucket.
     */
    int (*edge)(void *context, const struct wb_log_rows *rows, uint64_t hi, uint64_t *edge_out);

    /*
     * Appends the records of all items to chunk->text, and sets `at` and `bytes` of each. Checks that a record belongs to
     * its id. What is damaged is passed to wb_sorted_damaged(), once for each damaged part, and the items in it keep
     * `bytes` 0. Any other error ends the work and is returned; the whole chunk is loaded again then.
     */
    int (*load)(void *context, struct wb_sorted_chunk *chunk);
};
extern const struct wb_sorted_source wb_sorted_log;

/*
 * Remembers the current error, WB_E_CORRUPT, for the scan to return, unless this part of a file was reported by this scan
 * before. Returns 0, or WB_E_NOMEM.
 */
int wb_sorted_damaged(struct wb_sorted_chunk *chunk, uint32_t segment, uint64_t at);

/* A scan of a repository whose scans are sorted; wb_log_scan_open() calls it. The scan has its own table of functions. */
int wb_sorted_scan_open(struct wb_log *log, const struct wb_sorted_source *source,
                        const struct wb_store_scan_options *options, struct wb_store_scan **scan_out);

/* Whether it is a position of a sorted scan; and the order of two of these. */
bool wb_sorted_position_is(const struct wb_store_position *position);
int wb_sorted_position_compare(const struct wb_store_position *a, const struct wb_store_position *b);

#endif
