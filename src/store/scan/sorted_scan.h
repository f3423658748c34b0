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
 *   pagefile/sorted_source.h  what a source is
 */
#ifndef WB_STORE_SORTED_SCAN_H
#define WB_STORE_SORTED_SCAN_H

#include "pagefile/pagefile.h"
#include "store/repo.h"
#include "store/scan/scan_pack.h"

/* Remembers damage of a place of the catalog, which the current message names (wb_sorted_damaged()). */
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
