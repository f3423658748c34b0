/*
 * repo_verify.h - a verification in progress, shared by the files that carry it out:
 *
 *   repo_verify_rows.c  the catalog by itself
 *   repo_verify.c       the segments, and the catalog against them
 */
#ifndef WB_STORE_REPO_VERIFY_H
#define WB_STORE_REPO_VERIFY_H

#include "store/repo.h"

/* Counts of one segment. */
struct wb_repo_tally {
    uint64_t entries; /* places in this segment that versions have */
    uint64_t old;     /* ... of which so many are not the latest version of their page */
    uint64_t found;   /* how many of those pages the segment really has */
};

struct wb_repo_verifier {
    const struct wb_superblock *superblock;
    const struct wb_pagefile_kind *kind;
    struct wb_catalog *catalog;
    struct wb_catalog_txn txn;
    bool sound;                    /* the catalog has passed step 1; otherwise pages are not looked up in it */
    struct wb_catalog_summary summary;
    struct wb_catalog_rows rows;
    struct wb_parts parts;
    struct wb_nodes nodes;
    uint32_t node;                 /* whose files are looked through in step 3 */
    struct wb_repo_tally *tallies; /* by segment number */
    uint64_t pages, versions, captures, gone;                       /* counted in step 1 ... */
    uint64_t bytes_pages, site_pages, sites, revisits, bars;
    uint64_t elsewhere; /* pages of update nodes whose latest version is on the read nodes */
    struct wb_pageview view;
    struct wb_block_reader *zstd;
    struct wb_buf record;
    wb_store_found found;
    void *found_context;
    wb_store_progress progress;
    void *progress_context;
    uint64_t done, total;
    struct wb_store_verify_counts *result;
};

/* Reports a problem, or a note. */
void wb_repo_verify_report(struct wb_repo_verifier *v, bool problem, const char *file, uint64_t offset,
                           const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Step 1. Opens v->txn, and fills v->summary, v->rows, v->nodes and v->tallies, which the other steps need. */
int wb_repo_verify_catalog(struct wb_repo_verifier *v);

#endif
