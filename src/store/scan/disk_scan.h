/*
 * disk_scan.h - a scan in progress, shared by the files that carry it out:
 *
 *   disk_scan.c    the pages of a state in the order of the disk
 *   disk_parts.c  ... from the files of a segment, which may have been split
 *   scan_ahead.c   ... which are read ahead, if there are several nodes
 *   disk_gone.c    then, if asked for, those that are gone but have a past
 *   disk_parcel.c  the same as parcels; and positions
 */
#ifndef WB_STORE_DISK_SCAN_H
#define WB_STORE_DISK_SCAN_H

#include "store/repo.h"
#include "store/scan/scan_ahead.h"
#include "store/scan/scan_pack.h"

/* An entry of the block that a scan is in. */
struct wb_disk_scan_known {
    struct wb_catalog_entry entry; /* what the catalog knows about it */
    bool visible;
};

/*
 * A segment file that a scan reads. Usually there is one at a time. If the segment was split, its parts are read
 * together: pages that were in one block are in blocks of the same name, and a scan passes them in the order of their
 * slots, so that positions mean the same before and after the split.
 */
struct wb_disk_scan_part {
    struct wb_catalog_segment row;
    struct wb_segment segment;
    struct wb_segment_ahead *ahead; /* its bytes, if they are being read ahead */
    struct wb_segment_walk walk;
    bool walking;                  /* the file is open */
    bool done;                     /* ... and all its blocks were passed */
    struct wb_block_head head;
    const char *block;             /* its next block, which may be the current one; NULL if it must be found */
    bool plain;                    /* all its pages are visible, and as their records say ... */
    uint64_t block_epoch;          /* ... and arrived in this epoch */
    uint64_t plain_commit;         /* the commit that it names */
    WB_VEC(struct wb_disk_scan_known) known; /* otherwise, what is known about each of its entries */
    struct wb_block_reader *zstd, *zstd_old; /* the second one is for the entries that are flagged as old */
};

struct wb_disk_scan {
    struct wb_store_scan scan;     /* must be the first member */
    struct wb_repo *repo;          /* only what does not change is used: dir, superblock, content_seed */
    struct wb_catalog *catalog;    /* a handle of its own, because the scan may run in another thread than the store */
    uint64_t epoch;                /* the state that it shows */
    uint32_t share, shares;        /* which of how many; 0: all */
    char *site;                    /* NULL if all sites are wanted */
    uint64_t site_hash;
    uint64_t since;
    bool facts, gone;
    const uint32_t *without;       /* nodes whose segments are left out; borrowed */
    size_t without_count;
    struct wb_catalog_place until; /* no page behind this place is wanted; segment 0: all are */

    /* ---- the newest state of the catalog, while a block is being looked for ---- */
    struct wb_catalog_txn txn;
    uint64_t state;                /* its number */
    int64_t renewed_ns; /* when it was taken up, by the clock that never jumps */
    struct wb_catalog_summary summary;
    struct wb_catalog_rows rows; /* all segments, those of one origin together */
    struct wb_parts known_parts;
    struct wb_nodes nodes;
    struct wb_scan_ahead *ahead;   /* NULL: there is one node */
    struct wb_busy_mark busy;      /* on the nodes of the current segment */
    struct wb_pageview view;

    /* ---- where the scan is ---- */
    struct wb_catalog_place told;  /* the place of the page that was returned last; segment 0: none yet */
    struct wb_pageid told_id;      /* in the second phase: its id */
    bool told_gone;
    bool gone_phase;               /* all segments were passed */
    WB_VEC(struct wb_error_copy) late; /* damage that the next calls return, before they go on */
    WB_VEC(uint64_t) reported;     /* hashes of messages about the catalog that were returned already */
    uint32_t origin;               /* the current segment, or the one whose parts are current; 0: none yet */
    WB_VEC(struct wb_disk_scan_part *) parts; /* its parts: the first `open` of these; others are kept for later ... */
    uint32_t failed;               /* a segment that could not be opened; 0: none */
    size_t open;                   /* ... 0: no segment is open; 1: a segment that was not split */
    size_t here;                   /* the first so many parts have the current block; 0: the next one must be found */
    struct wb_disk_scan_part *at;  /* the part of the current page, one of those */
    uint64_t logical;              /* the name of the current block */
    bool segment_done;             /* all blocks of the current segment were passed */
    size_t index;                  /* the number of the next entry, in the order of slots ... */
    size_t count;                  /* ... and how many there are in the block, in all parts */
    WB_VEC(uint64_t) order; /* if entries have another order: slot << 48 | part << 16 | entry, in the order of slots */

    /* ---- pages that are gone ---- */
    WB_VEC(struct wb_pageid) gone_ids; /* those to be returned next, in descending order */
    struct wb_pageid gone_next;        /* where to look for more */
    bool gone_done;                    /* there are no more */
    struct wb_segment_reader reader;
    struct wb_buf text;

    /* ---- parcels ---- */
    WB_VEC(struct wb_store_parcel_page) parcel_pages; /* of the last one */
    WB_VEC(bool) dropped;                             /* for each entry of the block: it is not part of the parcel */
    struct wb_buf rebuilt;                            /* the block without these */
    bool salvaging;                                   /* the block is damaged, and that was reported */
    struct wb_block_builder *builder;
    struct wb_scan_pack pack; /* for pages that are gone, and for blocks that were split */
};

/* Goes to the next block. Returns 1, or 0 if there is none left: then the phase of pages that are gone begins. */
int wb_disk_scan_block(struct wb_disk_scan *scan);

/*
 * Returns the index of the block's entry that is `number` in the order of slots; scan->at becomes its part. Outside:
 * it is before the place where the scan goes on, or behind the one where it ends. Hidden: the state does not show it.
 */
size_t wb_disk_scan_entry(struct wb_disk_scan *scan, size_t number, bool *outside_out, bool *hidden_out);

/* Reads the page of the block's next entry. Returns 1, or 0 if the view or the selection does not include it. */
int wb_disk_scan_page(struct wb_disk_scan *scan, struct wb_page *page_out);

/* ---- the parts of a segment (disk_parts.c) ---- */

/* Puts the segment rows into the order in which a scan passes them. */
void wb_disk_scan_sort(struct wb_catalog_rows *rows);

/*
 * Makes sure that a segment is open, with all its parts: the current one in its newest revision, or the next one.
 * Returns 1, or 0 if there is none left.
 */
int wb_disk_scan_choose(struct wb_disk_scan *scan);

/* Closes the current segment. */
void wb_disk_scan_leave(struct wb_disk_scan *scan);

/* Whether the scan wants this block of the current segment: of its share, and possibly with pages of its site. */
bool wb_disk_scan_wants(const struct wb_disk_scan *scan, const struct wb_block_head *head);

/* Finds the next block of the open parts that is wanted. Returns 1, or 0 if there is none left in this segment. */
int wb_disk_scan_merge(struct wb_disk_scan *scan);

/* Finds the order of slots, in which a scan passes the entries of the current block. */
int wb_disk_scan_order(struct wb_disk_scan *scan);

/* Makes room for one more part. */
int wb_disk_scan_add_part(struct wb_disk_scan *scan);
void wb_disk_scan_parts_release(struct wb_disk_scan *scan);

/* Opens the file of a segment on its node. scan->txn is held. */
int wb_disk_scan_open_file(struct wb_disk_scan *scan, const struct wb_catalog_segment *row,
                           struct wb_segment *segment_out);

/*
 * Remembers damage of the catalog, whose message is the current one, for the next call to return, unless this place was
 * returned before: one page of the catalog has the rows of pages in many blocks. Returns 0, or WB_E_NOMEM.
 */
int wb_disk_scan_note(struct wb_disk_scan *scan);

/* Returns the damage that was remembered, once. A scan asks for it before it goes on. */
int wb_disk_scan_late(struct wb_disk_scan *scan);

/* Names the current block in the current error message. */
int wb_disk_scan_name(const struct wb_disk_scan *scan);

/* The position after which the scan goes on, and the one at which it ends. WB_E_INVALID if it is a foreign one. */
int wb_disk_scan_take(struct wb_disk_scan *scan, const struct wb_store_position *position);
int wb_disk_scan_take_until(struct wb_disk_scan *scan, const struct wb_store_position *position);
void wb_disk_scan_parcel_release(struct wb_disk_scan *scan);

/* Returns 1 and the next page that is gone but has a past, or 0 if there is none left. */
int wb_disk_scan_gone(struct wb_disk_scan *scan, struct wb_page *page_out);

#endif
