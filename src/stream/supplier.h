/*
 * supplier.h - private to stream: where a stream in the stored order gets its pages from.
 *
 * A supplier hands out the pages of one snapshot in the order of the disk, a batch at a time, and knows the place of
 * each. The stream picks those that it wants, so a supplier may serve many streams with different selections.
 *
 *   private   a scan of the store for this stream alone (wb_supplier_scan, supplier.c)
 *   carousel  a scan that several streams share. It starts at the place where the scan is, and goes on to the end of
 *             the snapshot. The stream then asks for the pages before that place: {after: NULL, until: start}
 *
 * Lifetime: open -> next, tell ... -> close. A supplier belongs to one thread at a time.
 */
#ifndef WB_STREAM_SUPPLIER_H
#define WB_STREAM_SUPPLIER_H

#include "store/store.h"
#include "stream/memo.h"

/* Which pages are wanted. The site is borrowed until the supplier is closed. */
struct wb_supply_request {
    uint32_t snapshot;                     /* 0: the latest state, as of the moment of opening */
    bool facts;                            /* pages without their bodies are enough */
    bool parcels;                          /* parcels are wanted: pages have no bodies ... */
    bool ids;                              /* ... and are not needed at all */
    struct wb_slice site;                  /* if not empty, pages of other sites may be left out, but need not be */
    const struct wb_store_position *after; /* start after this place; NULL: at the beginning */
    const struct wb_store_position *until; /* end after this place; NULL: at the end of the snapshot */
    bool at_once;                          /* WB_E_BUSY if a scan cannot begin because a transfer is under way */
};

/* A batch: at least one page. Valid until the next call. */
struct wb_supply {
    const struct wb_page *pages; /* NULL if only ids are wanted */
    size_t count;
    struct wb_memo_set *memos; /* what others have made of the pages (memo.h), or NULL; ... */
    size_t memo;               /* ... that of the first page has this number */
    uint64_t bars;             /* what was taken down before (wb_store_bar_version) is not in it */

    /* ---- if parcels were asked for ---- */
    const struct wb_store_parcel *parcel;
    const uint32_t *entries; /* for each page, its number in the parcel; NULL: its own number */
};

struct wb_supplier;

struct wb_supplier_kind {
    /*
     * Returns 1 and the next batch; 0 at the end; or an error. WB_E_CORRUPT: a damaged place was skipped, and the next
     * call goes on behind it. WB_E_BUSY: the stream is too slow for a scan that others share; it must go on with a
     * private supplier after the last page that it got.
     */
    int (*next)(struct wb_supplier *supplier, struct wb_supply *supply_out);

    /* The place of a page of the last batch. */
    void (*tell)(const struct wb_supplier *supplier, size_t index, struct wb_store_position *position_out);
    void (*close)(struct wb_supplier *supplier);
};

/* The first member of every supplier. */
struct wb_supplier {
    const struct wb_supplier_kind *kind;
    bool shared;                    /* others read from the same scan */
    bool has_start;                 /* it began after this place instead of at the beginning: the stream is there now */
    struct wb_store_position start;
};

/* A scan for one stream. The store must stay open. */
int wb_supplier_scan(struct wb_store *store, const struct wb_supply_request *request,
                     struct wb_supplier **supplier_out);

static inline void wb_supplier_close(struct wb_supplier *supplier)
{
    if (supplier)
        supplier->kind->close(supplier);
}

#endif
