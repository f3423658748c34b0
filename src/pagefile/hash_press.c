/*
 * hash_press.c - compresses the buckets of a new file in worker threads, and writes them in order (hash_press.h).
 *
 * Buckets are in a ring of slots. A worker only touches the draft of its slot, and no file. `done` says whose slot it
 * is: until it is set the worker's, otherwise ours.
 */
#include "pagefile/hash_press.h"
#include "pagefile/append_block.h"
#include "base/check.h"
#include "base/mem.h"

#include <pthread.h>

enum {
    SLOTS = 18,              /* enough for two buckets for each of eight workers, one being filled, one being written */
    WAITING_BYTES = 8 << 20, /* buckets with more records than this do not wait; there is always at least one */
    KEPT_BYTES = 1 << 20,    /* buffers that had to grow beyond this are not kept for the next bucket */
    WRITE_BACK_BYTES = 8 << 20, /* how often the disk is asked to begin to write */
};

struct press_slot {
    struct wb_hash_press_own *own;
    struct wb_bucket_draft draft;
    struct wb_arena arena;
    uint64_t bytes; /* of its records */
    bool done;      /* compressed, or failed; protected by the lock */
    struct wb_error_copy error;
};

struct wb_hash_press_own {
    struct wb_pool *pool;
    struct wb_builders *builders;
    struct wb_bucket_file *file;
    uint64_t *end;
    uint64_t stamp;
    pthread_mutex_t lock;
    pthread_cond_t done;
    uint64_t written;                               /* buckets that were written; those up to press->number wait */
    uint64_t waiting;                               /* bytes of their records */
    uint64_t images;                                /* bytes of all images */
    uint64_t begun_bucket, begun_end, begun_images; /* up to where, and until when, the disk was asked to write */
    struct press_slot slots[SLOTS];
};

/* ---- one bucket -------------------------------------------------------------------------------------------- */

/* Runs in a worker. */
static void compress_bucket(void *context)
{
    struct press_slot *slot = context;
    struct wb_hash_press_own *own = slot->own;
    struct wb_block_builder *builder = wb_builder_take(own->builders);
    int err = wb_bucket_draft_compress(&slot->draft, builder);

    wb_builder_give(own->builders, builder);
    if (err < 0)
        wb_error_save(err, &slot->error);
    pthread_mutex_lock(&own->lock);
    slot->done = true;
    pthread_cond_signal(&own->done);
    pthread_mutex_unlock(&own->lock);
}

static void wait_for(struct press_slot *slot)
{
    struct wb_hash_press_own *own = slot->own;

    pthread_mutex_lock(&own->lock);
    while (!slot->done)
        pthread_cond_wait(&own->done, &own->lock);
    pthread_mutex_unlock(&own->lock);
}

/* So that a sync has less to wait for. */
static void begin_to_write(struct wb_hash_press_own *own)
{
    const struct wb_bucket_file *file = own->file;
    uint64_t at = wb_bucket_at(file, own->begun_bucket);

    WB_CHECK(own->written > own->begun_bucket);
    wb_node_file_hint(&file->file, WB_NODE_WRITE_BACK, at, wb_bucket_at(file, own->written) - at);
    if (*own->end > own->begun_end)
        wb_node_file_hint(&file->file, WB_NODE_WRITE_BACK, own->begun_end, *own->end - own->begun_end);
    own->begun_bucket = own->written;
    own->begun_end = *own->end;
    own->begun_images = own->images;
}

/* Writes the image of a draft. */
static int write_image(struct wb_hash_press_own *own, const struct wb_bucket *bucket)
{
    const struct wb_bucket_file *file = own->file;
    size_t inside = bucket->image.len < file->bucket_bytes ? bucket->image.len : file->bucket_bytes;

    WB_CHECK(bucket->number == own->written);
    WB_CHECK(bucket->image.len - inside == bucket->overflow_bytes);
    /* The rest of the bucket is a hole in the file, which reads as zeros and takes no space. */
    int err = wb_node_file_write_at(&file->file, wb_bucket_at(file, bucket->number), bucket->image.ptr, inside);
    if (err == 0 && bucket->overflow_bytes)
        err = wb_node_file_write_at(&file->file, bucket->overflow_at, bucket->image.ptr + inside,
                                    (size_t)bucket->overflow_bytes);
    return err;
}

/* Writes the oldest bucket that waits. */
static int write_oldest(struct wb_hash_press_own *own)
{
    struct press_slot *slot = &own->slots[own->written % SLOTS];

    wait_for(slot);
    int err = slot->error.code < 0 ? wb_error_restore(&slot->error) : wb_bucket_draft_store(&slot->draft);
    if (err == 0)
        err = write_image(own, &slot->draft.bucket);
    if (err < 0)
        return err;
    own->images += slot->draft.bucket.image.len;
    WB_CHECK(own->waiting >= slot->bytes);
    own->waiting -= slot->bytes;
    own->written++;
    wb_arena_clear(&slot->arena);
    if (slot->draft.extents.cap > KEPT_BYTES)
        wb_buf_release(&slot->draft.extents);
    if (own->images - own->begun_images > WRITE_BACK_BYTES)
        begin_to_write(own);
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

/* Begins the bucket press->number, whose slot is free. */
static void begin_bucket(struct wb_hash_press *press)
{
    struct wb_hash_press_own *own = press->own;
    struct press_slot *slot = &own->slots[press->number % SLOTS];

    WB_CHECK(press->number - own->written < SLOTS);
    press->draft = NULL;
    press->arena = NULL;
    if (press->number == own->file->count)
        return;
    slot->bytes = 0;
    slot->done = true;
    slot->error.code = 0;
    wb_bucket_draft_begin(&slot->draft, own->file, own->end, press->number, own->stamp);
    press->draft = &slot->draft;
    press->arena = &slot->arena;
}

int wb_hash_press_new(struct wb_pagefile *files, struct wb_bucket_file *file, uint64_t *end, uint64_t stamp,
                      struct wb_hash_press *press_out)
{
    struct wb_hash_press_own *own = wb_alloc_zero(1, sizeof *own);

    WB_CHECK(files->writer != NULL);
    WB_CHECK(file->count > 0);
    *press_out = (struct wb_hash_press){.own = own};
    if (!own)
        return WB_E_NOMEM;
    own->pool = files->writer->pool;
    own->builders = files->writer->builders;
    own->file = file;
    own->end = end;
    own->stamp = stamp;
    own->begun_end = *end;
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->done, NULL);
    for (size_t i = 0; i < SLOTS; i++) {
        own->slots[i].own = own;
        own->slots[i].draft.large_bytes = wb_pagefile_sizes.large_bytes;
    }
    begin_bucket(press_out);
    return 0;
}

int wb_hash_press_next(struct wb_hash_press *press)
{
    struct wb_hash_press_own *own = press->own;
    struct press_slot *slot = &own->slots[press->number % SLOTS];
    int err = 0;

    WB_CHECK(press->draft == &slot->draft);
    WB_CHECK(press->number < own->file->count);
    for (size_t i = 0; i < slot->draft.items.count; i++)
        slot->bytes += slot->draft.items.items[i].record.len;
    slot->done = false;
    err = wb_pool_submit(own->pool, compress_bucket, slot);
    if (err < 0) {
        slot->done = true; /* it was never begun */
        return err;
    }
    own->waiting += slot->bytes;
    press->number++;
    while (err == 0 && own->written < press->number &&
           (press->number - own->written == SLOTS || own->waiting > WAITING_BYTES))
        err = write_oldest(own);
    if (err == 0)
        begin_bucket(press);
    return err;
}

int wb_hash_press_end(struct wb_hash_press *press, uint64_t *images_out)
{
    struct wb_hash_press_own *own = press->own;
    int err = 0;

    WB_CHECK(press->number == own->file->count);
    while (err == 0 && own->written < press->number)
        err = write_oldest(own);
    *images_out = own->images;
    return err;
}

void wb_hash_press_free(struct wb_hash_press *press)
{
    struct wb_hash_press_own *own = press->own;

    if (!own)
        return;
    for (uint64_t i = own->written; i < press->number; i++)
        wait_for(&own->slots[i % SLOTS]);
    for (size_t i = 0; i < SLOTS; i++) {
        wb_bucket_draft_release(&own->slots[i].draft);
        wb_arena_release(&own->slots[i].arena);
    }
    pthread_mutex_destroy(&own->lock);
    pthread_cond_destroy(&own->done);
    wb_free(own);
    *press = (struct wb_hash_press){0};
}
