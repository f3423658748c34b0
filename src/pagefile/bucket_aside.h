/*
 * bucket_aside.h - a bucket file as it is at one moment, for those who carry it elsewhere while writers go on
 * (store/state). Buckets change in place. So those that are wanted are copied aside, to a file without a name:
 *
 *   1 without keeping anybody waiting: a bucket that is being written is left for later
 *   2 in a transaction of the catalog, in which nobody else changes buckets: what has changed since 1, and what was
 * left
 *
 * What was carried before (since) is known by the stamps of images, which only grow, and by the end of the extents,
 * which are only appended. The header of a file is carried without its seal, and with an empty double-write file:
 * nothing is torn in a copy, and no sweep was interrupted.
 */
#ifndef WB_PAGEFILE_BUCKET_ASIDE_H
#define WB_PAGEFILE_BUCKET_ASIDE_H

#include "base/vec.h"
#include "pagefile/bucket.h"

/* A bucket that was copied aside. */
struct wb_bucket_copied {
    uint64_t number, stamp; /* stamp 0: it is damaged, and so is the copy */
    uint64_t at;            /* where it is in the file without a name */
};

struct wb_bucket_aside {
    struct wb_bucket_file file;
    uint64_t since_stamp, since_end;        /* what was carried before; 0: nothing */
    uint64_t looked_at;                     /* the file's last committed stamp before the buckets were copied ... */
    bool whole;                             /* ... and whether all were copied that were wanted */
    WB_VEC(struct wb_bucket_copied) copies; /* in the order of the buckets */
    char header[WB_BUCKET_FILE_HEADER_BYTES], doubles[WB_BUCKET_FILE_HEADER_BYTES]; /* as they are carried */
};

/* The file without a name, which all bucket files of a state share. */
struct wb_bucket_room {
    struct wb_file file;
    uint64_t end;
    uint64_t copied; /* how many buckets were copied so far; those that were copied again count again */
};

/* Opens the file of a row. Close it even if this fails. */
int wb_bucket_aside_open(struct wb_node *node, const uint8_t *repo_id, const struct wb_catalog_segment *row,
                         struct wb_bucket_aside *aside_out);
void wb_bucket_aside_close(struct wb_bucket_aside *aside);

/*
 * Copies the buckets that are wanted and were not copied before as they are now. alone: the caller has the transaction
 * of the catalog, so that even a damaged bucket is final. row: of the newest state.
 */
int wb_bucket_aside_copy(struct wb_bucket_aside *aside, const struct wb_catalog_segment *row, bool alone,
                         struct wb_bucket_room *room);

/* In such a transaction: whether everything in the file is committed. If not, a writer must repair it first. */
int wb_bucket_aside_settled(const struct wb_bucket_aside *aside, const struct wb_catalog_segment *row,
                            bool *settled_out);

/* Reads bytes of the file before `end` as they were copied. WB_E_INVALID for a bucket that was not wanted. */
int wb_bucket_aside_read(const struct wb_bucket_aside *aside, const struct wb_bucket_room *room, uint64_t offset,
                         size_t len, char *bytes_out);

/* Calls each() for the ranges that were not carried before: the header, each bucket by itself, extents before `end`. */
int wb_bucket_aside_each(const struct wb_bucket_aside *aside, uint64_t end, uint64_t range_max,
                         int (*each)(void *context, uint64_t offset, uint64_t len), void *context);

#endif
