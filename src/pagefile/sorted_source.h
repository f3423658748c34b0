/*
 * sorted_source.h - where a scan in the order of page ids (store/scan/sorted_scan.h) gets the bytes of pages from:
 *
 *   sorted_source.c  what sources share
 *   sorted_log.c     the source that reads segments, for hashed-log ...
 *   sorted_pieces.c  ... with several threads
 *   sorted_hash.c    the one that reads buckets
 */
#ifndef WB_PAGEFILE_SORTED_SOURCE_H
#define WB_PAGEFILE_SORTED_SOURCE_H

#include "pagefile/pagefile_files.h"

/* A page that the scan is to return. */
struct wb_sorted_item {
    struct wb_pageid id;
    struct wb_catalog_entry entry; /* of the version that the state shows; entry.place says where it is */
    size_t at;                     /* set by the source: where its record is in a text of the chunk ... */
    uint32_t text;                 /* ... which is this one ... */
    size_t bytes;                  /* ... and its length; 0: it cannot be read, and that has been reported */
};

/* A damaged part of a file that was reported once. */
struct wb_sorted_damage {
    uint32_t segment;
    uint64_t at;
};

enum { WB_SORTED_TEXTS = 4 };

/* The pages whose records are in memory, or are about to be. */
struct wb_sorted_chunk {
    struct wb_catalog_txn *txn;          /* the newest state, held while a source loads the chunk */
    const struct wb_catalog_rows *rows;  /* all rows of segments in it */
    bool facts;                          /* wanted of each record: only its digests and its head (wb_block_read_head) */
    bool alone;                          /* no other scan passes over other parts at the same time, in another thread */
    WB_VEC(struct wb_sorted_item) items; /* in ascending order of ids */
    uint64_t bytes;                      /* of their records, about */
    struct wb_buf texts[WB_SORTED_TEXTS];  /* the records, in any order; all empty when a source begins to load */
    WB_VEC(struct wb_error_copy) errors;   /* damage that was found, to be returned by the scan */
    WB_VEC(struct wb_sorted_damage) known; /* damage that was reported by this scan before */
};

/*
 * What a source must implement. Its functions are called by the thread that runs the scan, and so is
 * wb_sorted_damaged(), but they may use other threads; of the wb_pagefile only what
 * never changes may be used: dir and superblock.
 */
struct wb_sorted_source {
    size_t chunk_bytes; /* so many bytes of records are a good amount to load at once */
    int (*open)(const struct wb_pagefile *files, void **context_out);
    void (*close)(void *context);

    /*
     * The files were listed again. Returns through *edge_out the greatest value of id.hi such that ids from `hi` to
     * there are kept together: in the same files, or the same bucket.
     */
    int (*edge)(void *context, const struct wb_catalog_rows *rows, uint64_t hi, uint64_t *edge_out);

    /*
     * Appends the records of all items to chunk->texts, and sets where each is. Checks that a record belongs to its id.
     * What is damaged is passed to wb_sorted_damaged(), once for each damaged part, and the items in it keep
     * `bytes` 0. Any other error ends the work and is returned; the whole chunk is loaded again then. If items from
     * somewhere on cannot be had now, because a node is down, a source may cut them off (items.count) and load the
     * others, if there are any: so pages before them are delivered. The next chunk begins with those that were cut off.
     */
    int (*load)(void *context, struct wb_sorted_chunk *chunk);
};
extern const struct wb_sorted_source wb_sorted_log;
extern const struct wb_sorted_source wb_sorted_hash;

/*
 * Remembers the current error, WB_E_CORRUPT, for the scan to return, unless this part of a file was reported by this
 * scan before. Returns 0, or WB_E_NOMEM.
 */
int wb_sorted_damaged(struct wb_sorted_chunk *chunk, uint32_t segment, uint64_t at);

#endif
