/*
 * carousel.h - private to stream: scans of snapshots that many streams share, whatever they select (paper, section 4:
 * the multicast module).
 *
 *               window of batches, in memory
 *   store ---> [ 7 | 8 | 9 | 10 | 11 ] <--- next batch
 *                ^       ^         ^
 *             stream  stream    stream at the head: reads the next parcel itself
 *
 * A carousel has no thread. A stream that asks for a batch gets it from the window, or, at its end, reads the next
 * parcel of the scan for all. A batch keeps its parcel, and for a while its pages decompressed, which is done once. A
 * stream that needs a batch which has left the window is told to go on without this carousel.
 *
 * A new stream begins at the beginning if that is still in the window, and otherwise wherever the scan is. A stream
 * that needs a certain place gets a carousel that has it in its window, or else a new one that begins there, which
 * others can join.
 *
 * All functions may be called by any thread; a supplier belongs to one thread at a time.
 */
#ifndef WB_STREAM_CAROUSEL_H
#define WB_STREAM_CAROUSEL_H

#include "stream/supplier.h"

/* The carousels of one repository. */
struct wb_carousels;

struct wb_carousel_limits {
    size_t parcel_bytes; /* of a window: parcels as they are stored */
    size_t page_bytes;   /* of a window: pages, decompressed */
};
#define WB_CAROUSEL_LIMITS ((struct wb_carousel_limits){64u << 20, 64u << 20})

int wb_carousels_new(const char *dir, const struct wb_carousel_limits *limits, struct wb_carousels **set_out);

/* All suppliers must have been closed. */
void wb_carousels_free(struct wb_carousels *set);

/*
 * Joins a carousel, or starts one. A request without `after` and `until` may be answered by a supplier that begins
 * elsewhere (has_start). Nothing is shared if !share, if the snapshot is 0, or if the request names a site.
 */
int wb_carousels_join(struct wb_carousels *set, const struct wb_supply_request *request, bool share,
                      struct wb_supplier **supplier_out);

/* A test seam: carousels at this moment, parcels that were read from the store, batches decompressed. */
struct wb_carousel_counts {
    uint64_t carousels, parcels, batches;
};
void wb_carousels_count(struct wb_carousels *set, struct wb_carousel_counts *counts_out);

#endif
