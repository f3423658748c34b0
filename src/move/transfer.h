/*
 * transfer.h - what the files of a transfer share (transfer.c).
 */
#ifndef WB_MOVE_TRANSFER_H
#define WB_MOVE_TRANSFER_H

#include "move/move.h"
#include "store/batch/batched.h"
#include "store/inside.h"

enum { WB_TRANSFER_COMMIT_PAGES = 50000 }; /* after so many, pages are committed */

/* A page that waits. */
struct wb_transfer_page {
    struct wb_pageid id;
    uint64_t content; /* of its latest version there, and more of what its entry says */
    int64_t time_ms;
    uint64_t site;
    uint32_t body_bytes, stored_bytes;
    uint16_t status, lifetime, lifetime_count, slot;
    bool versions; /* it has a version on the update nodes */
    bool involved; /* there is more to it than one capture: several, or events */
    bool known;    /* readers have it already */
    bool certain;  /* it will be added, or replace what readers have */
    bool brought;  /* everything of it is on the read nodes, or in what the next commit stores there */
    uint8_t out;   /* it needs a node that cannot be used: its number in wb_transfer.out, from 1 on; 0: it does not */
};

/* A node that cannot be used (transfer_nodes.c). */
struct wb_transfer_out {
    uint32_t node;
    bool reads;               /* it is a read node */
    uint64_t pages, revisits; /* that wait for it; known at the end */
    char why[512];
};

/* A revisit that stays on the update nodes. */
struct wb_transfer_kept {
    struct wb_pageid id;
    int64_t time_ms;
    uint8_t out; /* as above */
};

/* A site of pages that wait. Pages know only its hash. */
struct wb_transfer_site {
    uint64_t hash;
    size_t name, len; /* in wb_transfer.names */
    bool named;       /* that is its name: keys of sites may be something else (catalog_sites.c) */
    int64_t delta;    /* by how many pages it shrinks in a transaction */
};

/*
 * A transfer under way. What is transferred is what waits in one state of the update nodes' catalog. What arrives later
 * stays where it is.
 */
struct wb_transfer {
    struct wb_batched *batch;
    struct wb_repo *from, *to;
    struct wb_catalog *catalog;            /* of `from`: a handle of our own ... */
    struct wb_catalog_txn waiting;         /* ... that holds the state ... */
    uint64_t epoch;                        /* ... of this epoch */
    WB_VEC(struct wb_transfer_page) pages; /* in the order of their ids */
    WB_VEC(uint32_t) starts;               /* where the pages whose ids begin with the same part_bits bits start */
    unsigned part_bits;
    WB_VEC(struct wb_transfer_site) sites; /* by hash */
    struct wb_buf names;
    uint64_t known, involved, revisits;
    uint64_t read_revisits;          /* revisits that wait on the read nodes */
    uint64_t pages_done, bytes_done; /* brought to the read nodes */
    struct wb_move_transfer_counts counts, uncommitted;
    uint64_t uncommitted_pages, uncommitted_bytes;
    WB_VEC(uint32_t) fresh; /* pages that were brought since the last commit: where they are in the list */
    WB_VEC(struct wb_transfer_kept) kept;
    WB_VEC(struct wb_transfer_out) out;
    WB_VEC(uint32_t) without;           /* the update nodes among them */
    size_t reads_out;                   /* how many of them are read nodes */
    struct wb_parts from_parts;         /* of the segments of `waiting` */
    struct wb_catalog_segment from_row; /* the one that was looked for last */
    int64_t began_ns;
    struct wb_error_copy damage; /* the first page that could not be read; code 0: there was none */
    int64_t commit_ns;           /* spent in commits of the read nodes' catalog */
    wb_store_progress progress;
    void *progress_context;
};

/* WB_E_STOPPED if the caller wants to stop. */
int wb_transfer_progress(struct wb_transfer *t);

/* ---- transfer_plan.c ---- */

/* The id lists: which pages wait. */
int wb_transfer_list(struct wb_transfer *t);

/* Their sites. */
int wb_transfer_list_sites(struct wb_transfer *t);

/* The site with a hash, or NULL; and its name. */
struct wb_transfer_site *wb_transfer_site(struct wb_transfer *t, uint64_t hash);
struct wb_slice wb_transfer_site_name(const struct wb_transfer *t, const struct wb_transfer_site *site);

/* The intersection with those that readers have. */
int wb_transfer_intersect(struct wb_transfer *t);

/* Divides the list by the first bits of ids. wb_transfer_list() does this. */
int wb_transfer_divide(struct wb_transfer *t);

/* This page will be looked for soon. */
void wb_transfer_foresee(const struct wb_transfer *t, struct wb_pageid id);

/* The page in the list, or NULL. */
struct wb_transfer_page *wb_transfer_find(const struct wb_transfer *t, struct wb_pageid id);

/* ---- transfer_pages.c ---- */

/* Brings all pages, events and revisits to the read nodes, in bounded commits. */
int wb_transfer_bring(struct wb_transfer *t);

/* Brings a page that has one capture and no events. */
int wb_transfer_bring_plain(struct wb_transfer *t, struct wb_transfer_page *waiting, const struct wb_page *page);

/* Takes note of damage on the update nodes, so that everything else is brought. Returns other errors as they are. */
int wb_transfer_absorb(struct wb_transfer *t, int err);

/* A page was brought: commits now and then. */
int wb_transfer_count(struct wb_transfer *t, struct wb_transfer_page *page, uint64_t bytes);

/* ---- transfer_blocks.c ---- */

/* Brings all pages that have one capture and no events, whole blocks if possible. */
int wb_transfer_bring_blocks(struct wb_transfer *t);

/* ---- transfer_nodes.c ---- */

/* Looks which nodes cannot be used, and adds them to the list. If one has failed, the current error says why. */
int wb_transfer_look(struct wb_transfer *t);

/* Marks the pages with one capture and no events that are on such a node. */
int wb_transfer_mark(struct wb_transfer *t);

/* The update node that has a place, or any version in a history, if it cannot be used: its number in the list, or 0. */
int wb_transfer_place_out(struct wb_transfer *t, struct wb_pageid id, const struct wb_catalog_place *place,
                          uint8_t *out);
int wb_transfer_history_out(struct wb_transfer *t, const struct wb_pageview *view, uint8_t *out);

/* The same for the read node that would have to take a page; new: it may need bytes there. */
int wb_transfer_refused(struct wb_transfer *t, struct wb_pageid id, bool new, uint8_t *out);

/* wb_transfer_bring(), and again without the node that has failed. */
int wb_transfer_bring_around(struct wb_transfer *t);

/* Counts what waits for each node; and the error that says so, or 0. */
void wb_transfer_count_waiting(struct wb_transfer *t);
int wb_transfer_report_waiting(const struct wb_transfer *t);

/* ---- transfer_empty.c ---- */

/* Takes away from the update nodes what was brought and has not changed since. */
int wb_transfer_empty(struct wb_transfer *t);

#endif
