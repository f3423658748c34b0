/*
 * reconcile.h - compares webdb with the store while update merges the journal, in both directions:
 *
 *   stored, but webdb knows nothing of it     the journal was lost, or an import wrote none: the page is adopted
 *   fetched according to webdb, not stored    an import failed between journal and store: the row is corrected
 *
 *   open -> row (each page that the merge touches) ... -> rest -> confirm -> correct, adopt -> close
 */
#ifndef WB_CYCLE_RECONCILE_H
#define WB_CYCLE_RECONCILE_H

#include "base/vec.h"
#include "cycle/cycle.h"
#include "store/store.h"
#include "table/table.h"

/* How far a comparison is. */
enum wb_reconcile_stage {
    WB_RECONCILE_CLOSED,
    WB_RECONCILE_COMPARING, /* it is open, and rows come */
    WB_RECONCILE_COMPARED,  /* wb_reconcile_rest() was called */
};

struct wb_reconcile {
    enum wb_reconcile_stage stage;
    const struct wb_update_options *options;
    const struct wb_cycle_sink *sink;
    struct wb_store *store;
    struct wb_webdb *old;             /* the edition before this update; NULL: there is none */
    uint64_t epoch;                   /* everything that arrived until then is in the store's part of the comparison */
    struct wb_sorter *stored;         /* pages that arrived since the last edition, by SURT */
    struct wb_table_record next;      /* of them, the one that comes next; its key is NULL after the last */
    WB_VEC(struct wb_pageid) unheard; /* stored pages that webdb must adopt */
    size_t unheard_max;               /* so that memory is bounded */
    bool more;                        /* there are more than that */
    struct wb_buf unstored; /* URLs, one per line, of pages that the store does not have as webdb describes them */
    struct wb_url url;      /* work space, as these */
    struct wb_buf key, href, surt;
};

/*
 * Reads the store's epoch and then the pages that arrived since the last edition. Call it before the journal is read:
 * writers make their journal readable before they commit to the store. So each page that is seen here has its record
 * in the journal that is read afterwards, unless that was lost or never written. The writer of webdb must be open, so
 * that no other update changes webdb meanwhile. Close even after an error.
 */
int wb_reconcile_open(struct wb_reconcile *r, const struct wb_update_options *options,
                      const struct wb_cycle_sink *sink);
void wb_reconcile_close(struct wb_reconcile *r);

/* Compares a page that the merge touches, in the order of SURTs; and at the end what it did not touch. */
int wb_reconcile_row(struct wb_reconcile *r, const struct wb_webdb_page *page);
int wb_reconcile_rest(struct wb_reconcile *r);

/*
 * Looks once more whether the pages in `unstored` are stored, and keeps those that are not. As long as somebody writes
 * to the journal, it waits for some seconds: what was journaled a moment ago may be about to be committed.
 */
int wb_reconcile_confirm(struct wb_reconcile *r);

/* Makes the rows of unstored pages rows of pages that were not fetched. Stored versions are added to `unheard`. */
int wb_reconcile_correct(struct wb_reconcile *r, struct wb_webdb_writer *writer);

/* Adds the visits of unheard pages, as if the journal had them. */
int wb_reconcile_adopt(struct wb_reconcile *r, struct wb_webdb_writer *writer);

#endif
