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
    struct wb_catalog_entry entry; /* of its latest version there; all zero: it has none */
    bool plain;   /* its latest version, and no other one, has bytes on the update nodes */
    bool known;   /* readers have it already, or had it */
    bool partly;  /* some of its versions are there, but others need a node that cannot be used */
    bool brought; /* everything of it is on the read nodes, or in what the next commit stores there */
    uint8_t out;  /* it needs a node that cannot be used: its number in wb_transfer.out, from 1 on; 0: it does not */
};

/* A node that cannot be used (transfer_nodes.c). */
struct wb_transfer_out {
    uint32_t node;
    bool reads;               /* it is a read node */
    uint64_t pages; /* that wait for it; known at the end */
    char why[512];
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
    struct wb_site_names sites;            /* of `waiting` */
    uint64_t known;
    uint64_t pages_done, bytes_done; /* brought to the read nodes */
    struct wb_move_transfer_counts counts, uncommitted;
    uint64_t uncommitted_pages, uncommitted_bytes;
    WB_VEC(uint32_t) fresh; /* pages that were brought since the last commit: where they are in the list */
    WB_VEC(struct wb_transfer_out) out;
    WB_VEC(uint32_t) without;           /* the update nodes among them */
    size_t reads_out;                   /* how many of them are read nodes */
    struct wb_parts from_parts;         /* of the segments of `waiting` */
    struct wb_catalog_segment from_row; /* the one that was looked for last */
    struct wb_pageview view, other;     /* of the page that is being brought */
    struct wb_repo_edit edit;           /* takes away from the update nodes what the next commit brings */
    WB_VEC(int64_t) deltas;             /* by how many pages each of `sites` shrinks there */
    bool everything;                    /* that commit brings all that waits */
    size_t attempt;                     /* of the commit under way: it is repeated if a node fails */
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

/* Divides the list by the first bits of ids. wb_transfer_list() does this. */
int wb_transfer_divide(struct wb_transfer *t);

/* This page will be looked for soon. */
void wb_transfer_foresee(const struct wb_transfer *t, struct wb_pageid id);

/* The page in the list, or NULL. */
struct wb_transfer_page *wb_transfer_find(const struct wb_transfer *t, struct wb_pageid id);

/* ---- transfer_pages.c ---- */

/* Brings all pages to the read nodes, in bounded commits. */
int wb_transfer_bring(struct wb_transfer *t);

/* Brings a plain page. */
int wb_transfer_bring_plain(struct wb_transfer *t, struct wb_transfer_page *waiting, const struct wb_page *page);

/*
 * What was to come arrives in this epoch, unless readers have it already: then it has arrived when it did. The epoch
 * may be WB_HISTORY_COMING.
 */
void wb_transfer_arrive(struct wb_history *history, const struct wb_history *readers, uint64_t epoch);

/* Takes note of damage on the update nodes, so that everything else is brought. Returns other errors as they are. */
int wb_transfer_absorb(struct wb_transfer *t, int err);

/* A page was brought: commits now and then. */
int wb_transfer_count(struct wb_transfer *t, struct wb_transfer_page *page, uint64_t bytes);

/* Whether the bytes of a version are on the update nodes. */
static inline bool wb_transfer_has_bytes(const struct wb_catalog_place *place)
{
    return place->segment != 0 && place->segment != WB_CATALOG_BASE_SEGMENT;
}

/* ---- transfer_blocks.c ---- */

/* Brings all plain pages, whole blocks if possible. */
int wb_transfer_bring_blocks(struct wb_transfer *t);

/* ---- transfer_nodes.c ---- */

/* Looks which nodes cannot be used, and adds them to the list. If one has failed, the current error says why. */
int wb_transfer_look(struct wb_transfer *t);

/* Marks the plain pages that are on such a node. */
int wb_transfer_mark(struct wb_transfer *t);

/* The update node that has a place, if it cannot be used: its number in the list, or 0. */
int wb_transfer_place_out(struct wb_transfer *t, struct wb_pageid id, const struct wb_catalog_place *place,
                          uint8_t *out);

/* The same for the read node that would have to take a page; new: it may need bytes there. */
int wb_transfer_refused(struct wb_transfer *t, struct wb_pageid id, bool new, uint8_t *out);

/* wb_transfer_bring(), and again without the node that has failed. */
int wb_transfer_bring_around(struct wb_transfer *t);

/* Counts what waits for each node; and the error that says so, or 0. */
void wb_transfer_count_waiting(struct wb_transfer *t);
int wb_transfer_report_waiting(const struct wb_transfer *t);

/* ---- transfer_empty.c ---- */

/* Begins the transaction in which the pages that the next commit brings are taken away from the update nodes. */
int wb_transfer_empty_begin(struct wb_transfer *t);

/* Whether the page in t->view, which was listed, has not changed since. */
int wb_transfer_is_unchanged(struct wb_transfer *t, bool *unchanged_out);

/* Takes a page away. If only part of it was brought: notes what readers have of it now. */
int wb_transfer_empty_page(struct wb_transfer *t, const struct wb_transfer_page *page,
                           const struct wb_history *readers);

/* Commits, unless there was an error before, which is returned. */
int wb_transfer_empty_end(struct wb_transfer *t, int err);

/* Whether nothing has come to a page. */
bool wb_transfer_is_same(const struct wb_pageview *a, const struct wb_pageview *b);

#endif
