/* pageview.h - one page with its past, as a transaction of the log sees it and changes it. */
#ifndef WB_STORE_LOG_VIEW_H
#define WB_STORE_LOG_VIEW_H

#include "catalog/catalog.h"
#include "catalog/history.h"

/*
 * A view of one page: its past (history.h) together with what the catalog keeps about its latest version. A commit
 * loads a view, applies the page's ops, and saves it. A writer does the same without saving, to see its own changes
 * before they are committed.
 *
 *   load ---> apply op, apply op, ... ---> trim ---> save
 */
struct wb_op;

struct wb_pageview {
    struct wb_pageid id;
    struct wb_history history;
    uint64_t site;                     /* hash of the page's site */
    uint16_t lifetime, lifetime_count; /* of the latest version */
    bool had_entry, had_rows;          /* in the tables pages and history, when it was loaded */
    struct wb_buf bytes;
};

void wb_pageview_release(struct wb_pageview *view);

/* Makes it the view of a page about which nothing is known. */
void wb_pageview_clear(struct wb_pageview *view, struct wb_pageid id);

/*
 * Reads what the catalog has; a page that it does not know gives an empty view. If no page is gone
 * (wb_catalog_summary.gone), a page without an entry cannot have a past, and is not looked for.
 */
int wb_pageview_load(struct wb_catalog_txn *txn, bool any_gone, struct wb_pageid id, struct wb_pageview *view_out);

/* When an op is applied. */
struct wb_moment {
    uint64_t epoch;
    struct wb_history_rule rule; /* its now_ms is the clock */
};

/*
 * Applies an op to the view. place is where the bytes of a put are. The outcome tells what became of the
 * capture; of other ops it is PUT_KNOWN if they changed nothing, and PUT_NEW if they did.
 */
int wb_pageview_apply(struct wb_pageview *view, const struct wb_op *op, struct wb_catalog_place place,
                      const struct wb_moment *moment, enum wb_store_outcome *outcome_out);

/* The entry of the latest version. There must be one. */
void wb_pageview_entry(struct wb_pageview *view, struct wb_catalog_entry *entry_out);

/* Whether table history must have rows of the page: there is more to its past than an entry can say. */
bool wb_pageview_needs_rows(struct wb_pageview *view);

/* Writes the view to the catalog. */
int wb_pageview_save(struct wb_catalog_txn *txn, struct wb_pageview *view);

#endif
