/*
 * convert.h - copies a repository into a new one of another design (wb_store_convert() in store_nodes.h).
 *
 * Both have a catalog that says everything about versions, captures and epochs. So its rows are copied, and only the
 * places of the bytes become others:
 *
 *   1 rows     snapshots, bars, revisits, sites, the epoch, the history policy          (convert_rows.c)
 *   2 copy     all records that a version needs, in the order of the disk               (convert_pages.c)
 *              notes, for each: page id, place there -> place here; sorted by page id
 *   3 adopt    the pages in the order of their ids, with all versions at their new places
 *
 *   convert.c         the directory of the copy: what it may be, the mark of an unfinished one, its end
 *   convert_source.c  the state of the other repository that is copied, and its records
 *
 * The copy is of one moment: the state of the catalog that was the newest when it began, which is held until it ends.
 */
#ifndef WB_STORE_CONVERT_H
#define WB_STORE_CONVERT_H

#include "store/log_adopt.h"
#include "store/store_nodes.h"

/* ---- the source (convert_source.c) ------------------------------------------------------------------------ */

/* The state that is copied. */
struct wb_convert_source {
    const char *dir;
    struct wb_superblock superblock;
    struct wb_catalog *catalog; /* holds the state and its epoch */
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    struct wb_log_nodes nodes;
    struct wb_block_reader *zstd;
    struct wb_buf record;
};

/* Close it even if this fails. dir must stay. */
int wb_convert_source_open(const char *dir, struct wb_convert_source *source_out);
void wb_convert_source_close(struct wb_convert_source *source);

/* A record that a version needs. */
struct wb_convert_record {
    struct wb_pageid id;
    struct wb_catalog_place place;
    struct wb_page page;   /* borrows from the record */
    struct wb_buf *record; /* the function may take it */
};

/* Calls each() for all of them, each place once, in the order of the disk. Damage that concerns one is an error. */
typedef int (*wb_convert_each)(void *context, const struct wb_convert_record *record);
int wb_convert_records(struct wb_convert_source *source, wb_convert_each each, void *context);

/* ---- the copy ------------------------------------------------------------------------------------------------ */

/* A copy in progress. */
struct wb_convert {
    struct wb_convert_source source;
    struct wb_log *target; /* open for writing */
    const struct wb_store_convert_sink *sink;
    uint64_t done, total; /* records and pages */
    struct wb_store_convert_counts counts;
};

/* Reports that `more` was done. WB_E_STOPPED if whoever is told wants to stop. */
int wb_convert_progress(struct wb_convert *convert, uint64_t more);

/* Copies everything in the catalog but pages and the files that hold them. */
int wb_convert_rows(struct wb_convert *convert);

/* Copies the pages. */
int wb_convert_pages(struct wb_convert *convert);

#endif
