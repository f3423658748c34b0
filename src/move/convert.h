/*
 * convert.h - copies a repository into a new one of another design (wb_move_convert() in store_nodes.h).
 *
 * Both have a catalog that says everything about versions, captures and epochs. So its rows are copied, and only the
 * places of the bytes become others:
 *
 *   rows     snapshots, bars, revisits, sites, the epoch, the history policy     convert_rows.c
 *   copy     the records of all versions
 *   adopt    the pages in the order of their ids, with all versions at their new places
 *
 * Between copying and adopting, pages are brought into the order of their ids (convert_pages.c): in a log by sorting
 * where records went, in buckets by sorting the records themselves, because a bucket is written with the entries of its
 * pages.
 *
 *   convert.c          the directory of the copy: what it may be, the mark of an unfinished one, its end
 *   convert_parts.c    the parts of designs: read nodes and update nodes
 *   convert_source.c   the state of the other repository that is copied, and its records
 *   convert_adopt.c    makes one page
 *   convert_lost.c     versions whose bytes cannot be read
 *
 * The copy is of one moment: the state of the catalog that was the newest when it began, which is held until it ends.
 */
#ifndef WB_MOVE_CONVERT_H
#define WB_MOVE_CONVERT_H

#include "move/move.h"
#include "pagefile/pagefile.h"
#include "store/inside.h"

/* ---- the source (convert_source.c) ------------------------------------------------------------------------ */

/* The state that is copied. */
struct wb_convert_source {
    const char *dir;
    struct wb_superblock superblock;
    struct wb_catalog *catalog; /* holds the state and its epoch */
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    struct wb_nodes nodes;
    struct wb_pagefile files;
    struct wb_buf record;
};

/* Close it even if this fails. dir and the source itself must stay where they are. */
int wb_convert_source_open(const char *dir, struct wb_convert_source *source);
void wb_convert_source_close(struct wb_convert_source *source);

/* Checks that a repository can be copied: WB_E_DOWN if a node that has any version is down. */
int wb_convert_source_check(const char *dir);

/* ---- the copy ------------------------------------------------------------------------------------------------ */

/* A copy in progress, or one part of it. */
struct wb_convert {
    struct wb_convert_source *source;
    struct wb_convert_source *read; /* the source of the read nodes, while update nodes are copied, too */
    struct wb_repo *target;         /* open for writing */
    const struct wb_move_convert_sink *sink;
    uint64_t done, total;        /* records and pages */
    uint64_t latest, gone;       /* pages of the source that were dealt with, with a latest version and without */
    WB_VEC(uint64_t) lost_sites; /* the hash of the site of each page whose latest version is lost */
    struct wb_move_convert_counts counts;
    uint64_t told; /* how many lost versions were reported */
};

/* Reports that `more` was done. WB_E_STOPPED if the caller wants to stop. */
int wb_convert_progress(struct wb_convert *convert, uint64_t more);

/*
 * Copies everything in the catalog but pages, the files that hold them and revisits; only the bars; only the revisits.
 */
int wb_convert_rows(struct wb_convert *convert);
int wb_convert_bars(struct wb_convert *convert);
int wb_convert_revisits(struct wb_convert *convert);

/* Takes the pages in lost_sites off the numbers of pages of their sites, which were copied as they are. */
int wb_convert_sites(struct wb_convert *convert);

/* Copies the pages. */
int wb_convert_pages(struct wb_convert *convert);

/*
 * Copies all parts of a design into a repository that was just created. read: the read nodes, or all there is. If that
 * is part of a batch design, the target must be of one, too; transfer: what waits is brought to its read nodes at once.
 */
int wb_convert_parts(struct wb_convert *convert, struct wb_convert_source *read, struct wb_store *target,
                     bool transfer);

/* ---- one page (convert_adopt.c) ------------------------------------------------------------------------------ */

/* Where a record was and is, and what is known about it only from its bytes. */
struct wb_convert_note {
    struct wb_catalog_place from, to;
    uint32_t stored_bytes;
    uint64_t content; /* hashes of contents differ between repositories */
    int64_t time_ms;
    uint16_t lifetime;
};

/* Fills in what follows from the page: all but `to` and stored_bytes. */
struct wb_convert_note wb_convert_note_of(const struct wb_convert *convert, const struct wb_page *page,
                                          const struct wb_catalog_place *from);

/* The key by which records and notes are sorted. */
enum { WB_CONVERT_PLACE_BYTES = 4 + 8 + 2, WB_CONVERT_KEY_BYTES = WB_PAGEID_BYTES + WB_CONVERT_PLACE_BYTES };
void wb_convert_place_put(const struct wb_catalog_place *place, char out[WB_CONVERT_PLACE_BYTES]);
struct wb_catalog_place wb_convert_place_get(const char *bytes);

/* Makes a page of the source in a transaction of the target. A version without a note is lost; one has a note. */
int wb_convert_adopt(struct wb_convert *convert, struct wb_repo_edit *edit, struct wb_pageid id,
                     const struct wb_convert_note *notes, size_t count);

/* ---- what is lost (convert_lost.c) --------------------------------------------------------------------------- */

/*
 * A version of the page in view was not found: finds out why, counts and reports it. WB_E_BUSY if the reason is that
 * the source has changed meanwhile.
 */
int wb_convert_lose(struct wb_convert *convert, struct wb_pageview *view, size_t version);

/* When all pages are made: finds those of which nothing could be read. All pages must be accounted for then. */
int wb_convert_complete(struct wb_convert *convert);

#endif
