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
 * ("edges"), so that chunks end there, and each of its blocks is read once. Chunks may end anywhere else, too: that
 * costs time, but changes nothing. So it does not matter which files a page has been in, or is moved to, while a scan
 * runs.
 *
 *   sorted_scan.c   the scan itself: options, pages, parcels, positions
 *   sorted_pick.c   takes the items of a chunk from the catalog
 *   sorted_log.c    the source that reads segments, for hashed-log ...
 *   sorted_pieces.c ... with several threads
 */
#ifndef WB_STORE_SORTED_SCAN_H
#define WB_STORE_SORTED_SCAN_H

#include "store/repo.h"
#include "store/scan/scan_pack.h"

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
    struct wb_catalog_txn *txn;     /* the newest state, held while a source loads the chunk */
    const struct wb_catalog_rows *rows; /* all rows of segments in it */
    bool facts;                     /* wanted of each record: only its digests and its head (wb_block_read_head) */
    bool alone;                     /* no other scan passes over other parts at the same time, in another thread */
    WB_VEC(struct wb_sorted_item) items;   /* in ascending order of ids */
    uint64_t bytes;                        /* of their records, about */
    struct wb_buf texts[WB_SORTED_TEXTS];  /* the records, in any order; all empty when a source begins to load */
    WB_VEC(struct wb_error_copy) errors;   /* damage that was found, to be returned by the scan */
    WB_VEC(struct wb_sorted_damage) known; /* damage that was reported by this scan before */
};

/*
 * What a source must implement. Its functions are called by the thread that runs the scan, and so is
 * wb_sorted_damaged(), but they may use other threads; of the wb_repo only what
 * never changes may be used: dir, superblock, content_seed, and functions that say so.
 */
struct wb_sorted_source {
    size_t chunk_bytes; /* so many bytes of records are a good amount to load at once */
    int (*open)(struct wb_repo *repo, void **context_out);
    void (*close)(void *context);

    /*
     * The files were listed anew. Returns through *edge_out the greatest value of id.hi such that ids from `hi` to
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
extern const struct wb_sorted_source wb_sorted_hash; /* hash_source.c */

/*
 * Remembers the current error, WB_E_CORRUPT, for the scan to return, unless this part of a file was reported by this
 * scan before. Returns 0, or WB_E_NOMEM.
 */
int wb_sorted_damaged(struct wb_sorted_chunk *chunk, uint32_t segment, uint64_t at);

/* The same for a place of the catalog, which the message names. */
int wb_sorted_catalog_damaged(struct wb_sorted_chunk *chunk);

/* A scan of a repository whose scans are sorted; wb_disk_scan_open() calls it. The scan has its own table of functions.
 */
int wb_sorted_scan_open(struct wb_repo *repo, const struct wb_sorted_source *source,
                        const struct wb_store_scan_options *options, struct wb_store_scan **scan_out);

/* Whether a scan is of this kind. */
bool wb_sorted_scan_is(const struct wb_store_scan *scan);

/*
 * Whether a scan of which nothing was read yet needs one of these nodes: the first one that it comes to, or 0. Then it
 * can only be closed.
 */
int wb_sorted_scan_needs(struct wb_store_scan *scan, const uint32_t *nodes, size_t count, uint32_t *node_out);

/* ---- a scan in progress ----------------------------------------------------------------------------------- */

struct wb_sorted_scan {
    struct wb_store_scan scan; /* must be the first member */
    struct wb_repo *repo;      /* only what does not change is used */
    const struct wb_sorted_source *source;
    void *context;              /* of the source */
    struct wb_catalog *catalog; /* a handle of its own, because the scan may run in another thread than the store */
    struct wb_busy_mark busy;   /* on all nodes */
    uint64_t epoch;             /* the state that it shows */
    uint64_t first, last;       /* values of id.hi: those of its part of the repository */
    struct wb_pageid until;     /* no page behind this one is wanted */
    char *site;                 /* NULL if all sites are wanted */
    uint64_t site_hash;
    uint64_t since;
    bool facts, gone;
    const uint32_t *without; /* nodes whose pages are left out; borrowed */
    size_t without_count;
    struct wb_parts parts; /* to find the nodes of pages */

    /* ---- the newest state of the catalog ---- */
    struct wb_catalog_txn txn;
    uint64_t state; /* its number */
    int64_t renewed_ms;
    struct wb_catalog_summary summary;
    struct wb_catalog_rows rows; /* all segments */
    struct wb_pageview view;

    /* ---- where the scan is ---- */
    struct wb_pageid told; /* the page that was returned last, or the position from which it went on */
    bool has_told;
    struct wb_pageid reached; /* all ids up to this one were passed, or are in the chunk */
    bool has_reached;
    bool ended; /* there are no more chunks */
    struct wb_sorted_chunk chunk;
    size_t index;         /* the next item of the chunk */
    size_t judged;        /* items before this one were looked up again */
    uint64_t chunk_state; /* the state in which the chunk was loaded */
    struct wb_scan_pack pack;
};

/*
 * Takes the next items from the catalog: those after scan->reached that the state shows. The transaction is held, and
 * rows and summary are those of its state. *reached_out is how far they go. Returns 1, or 0 if these are the last ones.
 * Damaged places of the catalog are passed over, and remembered for the scan to return.
 */
int wb_sorted_pick(struct wb_sorted_scan *scan, struct wb_pageid *reached_out);

/* Whether the version of an item can still be read: a page may have been taken down since the chunk was loaded. */
int wb_sorted_is_there(struct wb_sorted_scan *scan, const struct wb_sorted_item *item, bool *there_out);

/* Whether it is a position of a sorted scan; and the order of two of these. */
bool wb_sorted_position_is(const struct wb_store_position *position);
int wb_sorted_position_compare(const struct wb_store_position *a, const struct wb_store_position *b);

#endif
