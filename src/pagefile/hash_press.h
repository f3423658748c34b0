/*
 * hash_press.h - writes the buckets of a new file, one after the other; worker threads compress them.
 *
 *   fill draft --next--> [ being compressed ... the oldest ] --> extents, image
 *
 * The caller's thread fills the draft of a bucket, and goes on with the next one while the workers of the log's writer
 * compress the bucket. When so many wait that memory or places for them run out, the oldest is written. That happens in
 * the caller's thread and in the order of the buckets, and what is where in the file does not depend on how fast the
 * workers are, nor on their number.
 *
 *   struct wb_hash_press press;
 *   int err = wb_hash_press_new(log, &file, &end, stamp, &press);
 *   while (err == 0 && press.number < file.count) {
 *       ... // adds items and pages to press.draft; their records may be in press.arena
 *       err = wb_hash_press_next(&press);
 *   }
 *   if (err == 0)
 *       err = wb_hash_press_end(&press, &images);
 *   wb_hash_press_free(&press); // also after an error: waits for the workers
 */
#ifndef WB_PAGEFILE_HASH_PRESS_H
#define WB_PAGEFILE_HASH_PRESS_H

#include "base/arena.h"
#include "pagefile/bucket.h"
#include "pagefile/pagefile_files.h"

struct wb_hash_press_own;

struct wb_hash_press {
    struct wb_bucket_draft *draft; /* of the bucket that is being filled */
    struct wb_arena *arena;        /* what is in it stays there until the bucket was written */
    uint64_t number;               /* of that bucket; the file's count: all are filled, and draft is NULL */
    struct wb_hash_press_own *own;
};

/* The file has no images yet. *end is where its extents end; others may move it on between calls. */
int wb_hash_press_new(struct wb_pagefile *files, struct wb_bucket_file *file, uint64_t *end, uint64_t stamp,
                      struct wb_hash_press *press_out);

/* The bucket is complete; goes on with the next one. An error may be that of an earlier bucket. */
int wb_hash_press_next(struct wb_hash_press *press);

/* All buckets are complete: writes those that wait. *images_out is the length of all images together. */
int wb_hash_press_end(struct wb_hash_press *press, uint64_t *images_out);

/* Waits for the workers and frees everything. Does nothing if wb_hash_press_new() has failed. */
void wb_hash_press_free(struct wb_hash_press *press);

#endif
