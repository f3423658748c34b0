/*
 * scan_pack.h - parcels of pages that a scan reads one by one, because they are not stored next to each other.
 */
#ifndef WB_STORE_SCAN_PACK_H
#define WB_STORE_SCAN_PACK_H

#include "base/error.h"
#include "store/organisation.h"

struct wb_scan_pack {
    struct wb_store_packer *packer; /* NULL before the first parcel */
    struct wb_error_copy late;      /* an error behind the pages of the last parcel; code 0: none */
};

/*
 * Packs the next pages that next() returns, until there are no more, or the parcel is full. Their positions are what
 * the scan tells. Returns 1, or 0 if there was no page. An error behind the first page ends the parcel, and is kept.
 */
int wb_scan_pack(struct wb_scan_pack *pack, struct wb_store_scan *scan,
                 int (*next)(struct wb_store_scan *scan, struct wb_page *page_out), struct wb_store_parcel *parcel_out);

/* Returns the error that was kept, once. A scan asks for it before it goes on. */
int wb_scan_pack_late(struct wb_scan_pack *pack);
void wb_scan_pack_release(struct wb_scan_pack *pack);

#endif
