/*
 * carousel_own.h - private to the two files that make up a carousel:
 *
 *   carousel.c         carousels and their windows
 *   carousel_member.c  the streams in them: joining, getting batches, leaving
 *
 * Locks: that of the set guards the list of carousels and how many members each of them has; that of a carousel guards
 * its window. The first is taken before the second. Nobody reads from the store or decompresses with a lock held:
 * `reading` and `busy` say that somebody does, and a member that needs the result waits for the condition.
 */
#ifndef WB_STREAM_CAROUSEL_OWN_H
#define WB_STREAM_CAROUSEL_OWN_H

#include "base/vec.h"
#include "stream/batch.h"
#include "stream/carousel.h"

#include <pthread.h>

#define WB_CAROUSEL_MAGIC 0x57424372u
#define WB_CAROUSELS_MAGIC 0x57424353u

struct wb_carousel {
    uint32_t magic; /* WB_CAROUSEL_MAGIC from new to free */
    struct wb_carousels *set;
    struct wb_carousel *next; /* in the set's list */
    uint32_t snapshot;
    size_t members; /* guarded by the set */
    bool listed;
    struct wb_store *store;
    struct wb_store_scan *scan; /* used by the thread that has set `reading` */
    uint64_t bars;              /* before the scan began: what was taken down later may be in batches */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool reading, ended;
    WB_VEC(struct wb_batch *) window;
    size_t gone;         /* items of the window that have left it */
    uint64_t first, end; /* numbers of the batches in the window: first to end - 1 */
    size_t parcel_bytes, page_bytes;
    uint64_t clock;      /* counts uses of pages */
    size_t users;        /* members, as far as decompressing is concerned */
    bool from_beginning; /* batch 0 is the beginning of the snapshot; otherwise it is after `origin` */
    struct wb_store_position origin;
    bool has_last;
    struct wb_store_position last; /* of the last page of the window */
};

struct wb_carousels {
    uint32_t magic; /* WB_CAROUSELS_MAGIC from new to free */
    char *dir;
    struct wb_carousel_limits limits;
    pthread_mutex_t mutex; /* guards what follows, and the members of all carousels */
    struct wb_carousel *list;
    struct wb_carousel_counts counts;
};

/* Starts a carousel for a request. Nobody else knows it yet. */
int wb_carousel_new(struct wb_carousels *set, const struct wb_supply_request *request, bool share,
                    struct wb_carousel **carousel_out);
void wb_carousel_free(struct wb_carousel *carousel);

/* ---- with the lock of the carousel held ---- */

/* A batch of the window. */
struct wb_batch *wb_carousel_batch(const struct wb_carousel *carousel, uint64_t number);

/* Reads the next parcel, without the lock meanwhile. Returns 1, 0 at the end, or an error. */
int wb_carousel_read(struct wb_carousel *carousel);

/* Decompresses the pages of a batch, without the lock meanwhile. */
int wb_carousel_unpack(struct wb_carousel *carousel, struct wb_batch *batch, enum wb_batch_depth depth,
                       struct wb_store_unpacker *unpacker);

#endif
