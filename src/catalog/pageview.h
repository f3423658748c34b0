/* pageview.h - one page with its past, as a transaction of the catalog sees it and changes it. */
#ifndef WB_CATALOG_PAGEVIEW_H
#define WB_CATALOG_PAGEVIEW_H

#include "catalog/catalog_tables.h"
#include "catalog/history.h"

/*
 * A view of one page: its past (history.h) together with what the catalog keeps about its latest version. A commit
 * loads a view, applies changes of the page, and saves it. A writer does the same without saving, to see its own
 * changes before they are committed.
 *
 *   load ---> apply, apply, ... ---> trim ---> save
 */

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

/* The same for a caller that has read the page's entry in this state; NULL: it has none. */
int wb_pageview_load_known(struct wb_catalog_txn *txn, bool any_gone, struct wb_pageid id,
                           const struct wb_catalog_entry *entry, struct wb_pageview *view_out);

/* Whether a version of the page has this place. */
bool wb_pageview_has(const struct wb_pageview *view, const struct wb_catalog_place *place);

/* No id comes behind this one. */
#define WB_PAGEVIEW_LAST ((struct wb_pageid){UINT64_MAX, UINT64_MAX})

/*
 * Calls each() for all pages that have versions and ids from `first` to `last`: first those that have an entry, in the
 * order of their ids, then those that have only a past. The view is good during the call, and may be changed. If each()
 * does not return 0, that ends it, and is returned.
 */
int wb_pageview_each(struct wb_catalog_txn *txn, struct wb_pageid first, struct wb_pageid last,
                     int (*each)(void *context, struct wb_pageview *view), void *context);

/* Says which versions are alive in the state of a transaction, page by page. */
struct wb_pageview_judge {
    struct wb_catalog_txn *txn;
    bool any_gone;           /* as above */
    bool viewed;             /* `view` is that of a page that was asked for */
    struct wb_pageview view; /* released by the caller */
};

/*
 * Whether a version of the page has this place, and whether it is the latest. entry is that of the page; NULL if it has
 * none. The past of a page is only read if it can matter, and once for questions that follow each other.
 */
int wb_pageview_ask(struct wb_pageview_judge *judge, struct wb_pageid id, const struct wb_catalog_entry *entry,
                    const struct wb_catalog_place *place, bool *live_out, bool *latest_out);

/*
 * In a view that includes changes which are not committed, bytes that have no place yet have this segment. No row has
 * this number.
 */
#define WB_PAGEVIEW_PENDING_SEGMENT UINT32_MAX

enum wb_pageview_change_kind {
    WB_PAGEVIEW_CAPTURE,
    WB_PAGEVIEW_TOUCH, /* a capture of the latest version, or of the content that is named */
    WB_PAGEVIEW_REMOVE,
    WB_PAGEVIEW_REMOVE_EVERYWHERE,
};

/* What happens to a page. */
struct wb_pageview_change {
    enum wb_pageview_change_kind kind;
    int64_t time_ms;   /* of a capture: when; of a removal: since when the page has been gone */
    uint64_t content;  /* of a capture (wb_history_content); of a touch: 0, or what was seen */
    uint64_t replaces; /* a content of its time that it replaces, because it is longer; or 0 */
    bool has_bytes;    /* they are stored if the content is not there yet: the following are known */
    struct wb_catalog_place place;
    uint32_t body_bytes, stored_bytes;
    uint16_t status;
    bool has_lifetime; /* the following are known */
    uint16_t lifetime, lifetime_count;
};

/* When a change is made. */
struct wb_moment {
    uint64_t epoch;
    struct wb_history_rule rule; /* its now_ms is the clock */
};

/*
 * Applies a change to the view. The outcome tells what became of a capture; of other changes it is PUT_KNOWN if they
 * changed nothing, and PUT_NEW if they did.
 */
int wb_pageview_apply(struct wb_pageview *view, const struct wb_pageview_change *change, const struct wb_moment *moment,
                      enum wb_store_outcome *outcome_out);

/* The entry of the latest version. There must be one. */
void wb_pageview_entry(struct wb_pageview *view, struct wb_catalog_entry *entry_out);

/* Whether table history must have rows of the page: there is more to its past than an entry can say. */
bool wb_pageview_needs_rows(struct wb_pageview *view);

/* Writes the view to the catalog. */
int wb_pageview_save(struct wb_catalog_txn *txn, struct wb_pageview *view);

#endif
