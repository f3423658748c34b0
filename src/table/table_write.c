/*
 * table_write.c - writes a table from front to back.
 *
 *   wb_table_add() -> raw block -> batch of blocks -> compressed -> written
 *
 * Threads of the pool compress full batches while the caller fills the next one; without threads the caller compresses
 * them. Only the caller writes, always the oldest batch first, so the bytes of the file do not depend on the threads.
 * The number of batches is fixed: if none is free, the caller waits for the oldest one.
 *
 * After the first error nothing more is written, and wb_table_finish() returns that error. This file never reads.
 */
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/path.h"
#include "table/table_format.h"

#include <pthread.h>

enum {
    TABLE_WRITER_MAGIC = 0x57425457, /* "WBTW" */
    BATCH_BYTES = 128 << 10,    /* before compression; large enough that handing it to a thread costs next to nothing */
    WRITE_BYTES = 256 << 10,    /* bytes written at once */
    WRITE_BACK_BYTES = 8 << 20, /* how often the kernel is asked to start writing to disk */
    LARGE_BYTES = 2 << 20,      /* larger batches are compressed one at a time, and their memory is freed afterwards */
    THREADS_MAX = 64,
};
_Static_assert(BATCH_BYTES < LARGE_BYTES, "an ordinary batch is not a large one");

/* One block of a batch: where its parts end in the buffers of the batch. They start where those of the last one end. */
struct batch_block {
    size_t raw_end, packed_end;
    size_t key_end; /* of its index key */
    uint32_t records;
};

/*
 * Life of a batch, of which the writer has a ring:
 *   free -> being filled by the caller -> busy: a thread compresses it -> done -> written by the caller -> free
 */
struct write_batch {
    struct wb_table_writer *writer;
    struct wb_buf raw, packed, keys; /* its blocks before and after compression, their index keys */
    WB_VEC(struct batch_block) blocks;
    ZSTD_CCtx *zstd;
    bool busy, done; /* protected by the writer's lock */
    struct wb_error_copy error;
};

struct wb_table_writer {
    uint32_t magic;
    struct wb_file file;
    struct wb_table_options options;
    struct wb_pool *pool; /* NULL without threads */
    pthread_mutex_t lock;
    pthread_cond_t packed;       /* a batch is done */
    struct write_batch *batches; /* a ring: from oldest up to, but not including, filling they are busy */
    unsigned batch_count, filling, oldest;
    struct wb_table_block_builder block;
    bool any;                   /* a key was added, so block.last_key is valid */
    struct wb_buf pending;      /* the next bytes of the file, not yet written */
    uint64_t written;           /* size of the file so far */
    uint64_t on_its_way;        /* the kernel was asked to write the file to disk up to here */
    struct wb_table_block_builder index_block;
    struct wb_buf index_raw;    /* the index block being built */
    struct wb_buf index_packed; /* finished index blocks, whose checksums do not include their offsets yet */
    struct wb_table_foot foot;  /* counts so far */
    struct wb_error_copy error; /* the first error; code 0 if there was none */
};

static void check_writer(const struct wb_table_writer *writer)
{
    WB_CHECK(writer->magic == TABLE_WRITER_MAGIC);
    WB_CHECK(writer->file.fd >= 0);
    WB_CHECK(writer->filling < writer->batch_count);
    WB_CHECK(writer->oldest < writer->batch_count);
    WB_CHECK(writer->on_its_way <= writer->written);
}

/* Remembers the first error, which every later call returns. */
static int keep_error(struct wb_table_writer *writer, int err)
{
    WB_CHECK(writer->magic == TABLE_WRITER_MAGIC);
    WB_CHECK(err <= 0);
    if (err < 0 && writer->error.code == 0)
        wb_error_save(err, &writer->error);
    return err;
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static void free_writer(struct wb_table_writer *writer)
{
    WB_CHECK(writer->magic == TABLE_WRITER_MAGIC);
    wb_pool_free(writer->pool); /* waits for batches that are still being compressed */
    writer->magic = 0;
    for (unsigned i = 0; i < writer->batch_count; i++) {
        struct write_batch *batch = &writer->batches[i];
        wb_buf_release(&batch->raw);
        wb_buf_release(&batch->packed);
        wb_buf_release(&batch->keys);
        wb_vec_release(&batch->blocks);
        ZSTD_freeCCtx(batch->zstd);
    }
    wb_free(writer->batches);
    wb_table_block_builder_release(&writer->block);
    wb_table_block_builder_release(&writer->index_block);
    wb_buf_release(&writer->pending);
    wb_buf_release(&writer->index_raw);
    wb_buf_release(&writer->index_packed);
    wb_file_close(&writer->file);
    pthread_mutex_destroy(&writer->lock);
    pthread_cond_destroy(&writer->packed);
    wb_free(writer);
}

/* Allocates two batches per thread and one that the caller fills meanwhile, and starts the threads. */
static int make_batches(struct wb_table_writer *writer)
{
    unsigned threads = writer->options.threads < THREADS_MAX ? writer->options.threads : THREADS_MAX;
    int err = 0;

    WB_CHECK(writer->options.block_bytes >= TABLE_BLOCK_MIN);
    WB_CHECK(writer->batches == NULL);
    writer->batches = wb_alloc_zero(2 * threads + 1, sizeof *writer->batches);
    if (!writer->batches)
        return WB_E_NOMEM;
    writer->batch_count = 2 * threads + 1;
    for (unsigned i = 0; i < writer->batch_count; i++) {
        struct write_batch *batch = &writer->batches[i];
        batch->writer = writer;
        batch->zstd = ZSTD_createCCtx();
        if (!batch->zstd)
            return wb_fail_nomem();
        /* zstd clamps a level that it does not have, so this cannot fail. */
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(batch->zstd, ZSTD_c_compressionLevel, writer->options.level)));
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(batch->zstd, ZSTD_c_contentSizeFlag, 0)));
    }
    if (threads)
        err = wb_pool_new(threads, &writer->pool);
    return err;
}

static void set_options(struct wb_table_writer *writer, const struct wb_table_options *options)
{
    writer->options = *options;
    if (options->block_bytes == 0)
        writer->options.block_bytes = TABLE_BLOCK_DEFAULT;
    if (writer->options.block_bytes < TABLE_BLOCK_MIN)
        writer->options.block_bytes = TABLE_BLOCK_MIN;
    if (writer->options.block_bytes > TABLE_BLOCK_MAX)
        writer->options.block_bytes = TABLE_BLOCK_MAX;
    if (options->level == 0)
        writer->options.level = TABLE_LEVEL_DEFAULT;
}

int wb_table_create(const char *path, const struct wb_table_options *options, struct wb_table_writer **writer_out)
{
    struct wb_table_writer *writer = wb_alloc_zero(1, sizeof *writer);
    char head[TABLE_HEAD_BYTES];
    int err;

    *writer_out = NULL;
    WB_CHECK(strlen(options->kind) == TABLE_KIND_BYTES);
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = TABLE_WRITER_MAGIC;
    writer->file = WB_FILE_INIT;
    set_options(writer, options);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->packed, NULL);
    /* Unlink the old file instead of truncating it: those who have it open can go on reading. */
    err = wb_path_unlink(path);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &writer->file);
    if (err == 0)
        err = make_batches(writer);
    if (err == 0) {
        wb_table_head_put(options->kind, head);
        err = wb_buf_append(&writer->pending, head, sizeof head);
    }
    if (err < 0) {
        free_writer(writer);
        return err;
    }
    *writer_out = writer;
    return 0;
}

void wb_table_abandon(struct wb_table_writer *writer)
{
    WB_CHECK(!writer || writer->magic == TABLE_WRITER_MAGIC);
    if (writer)
        free_writer(writer);
}

/* ---- compressing and writing ----------------------------------------------------------------- */

/* A job of the pool: compresses the blocks of a batch. */
static void pack_batch(void *context)
{
    struct write_batch *batch = context;
    struct wb_table_writer *writer = batch->writer;
    struct batch_block *blocks = batch->blocks.items;
    size_t count = batch->blocks.count, raw_start = 0;
    int err = 0;

    WB_CHECK(writer->magic == TABLE_WRITER_MAGIC);
    WB_CHECK(batch->packed.len == 0);
    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_slice raw = wb_slice(batch->raw.ptr + raw_start, blocks[i].raw_end - raw_start);
        err = wb_table_block_pack(batch->zstd, raw, blocks[i].records, TABLE_BLOCK_RECORDS, &batch->packed);
        blocks[i].packed_end = batch->packed.len;
        raw_start = blocks[i].raw_end;
    }
    if (err < 0)
        wb_error_save(err, &batch->error);
    pthread_mutex_lock(&writer->lock);
    WB_CHECK(batch->busy);
    WB_CHECK(!batch->done);
    batch->done = true;
    pthread_cond_signal(&writer->packed);
    pthread_mutex_unlock(&writer->lock);
}

static int flush_pending(struct wb_table_writer *writer)
{
    check_writer(writer);
    WB_CHECK(writer->error.code == 0);
    int err = wb_file_write_at(&writer->file, writer->written, writer->pending.ptr, writer->pending.len);
    if (err < 0)
        return err;
    writer->written += writer->pending.len;
    wb_buf_clear(&writer->pending);
    /* Start the disk early: otherwise the sync at the end would wait for the whole file. */
    if (writer->written - writer->on_its_way >= WRITE_BACK_BYTES) {
        wb_file_write_back(&writer->file, writer->on_its_way, writer->written - writer->on_its_way);
        writer->on_its_way = writer->written;
    }
    return 0;
}

/* Appends a compressed block to the file. Its offset is known now, so the checksum is completed in place. */
static int write_block(struct wb_table_writer *writer, char *block, size_t size)
{
    check_writer(writer);
    uint64_t offset = writer->written + writer->pending.len;
    WB_CHECK(offset >= TABLE_HEAD_BYTES);
    WB_CHECK(size == wb_table_block_size(block));
    wb_put64(block, wb_table_checksum_at(wb_get64(block), offset));
    int err = wb_buf_append(&writer->pending, block, size);
    if (err == 0 && writer->pending.len >= WRITE_BYTES)
        err = flush_pending(writer);
    return err;
}

static int close_index_block(struct wb_table_writer *writer, ZSTD_CCtx *zstd)
{
    check_writer(writer);
    WB_CHECK(writer->index_raw.len > 0);
    uint32_t records = writer->index_block.records;
    WB_CHECK(records > 0);
    int err = wb_table_block_builder_finish(&writer->index_block, &writer->index_raw);
    if (err == 0)
        err = wb_table_block_pack(zstd, wb_buf_slice(&writer->index_raw), records, TABLE_BLOCK_INDEX,
                                  &writer->index_packed);
    wb_buf_clear(&writer->index_raw);
    return err;
}

/* Adds an index record for a block that was just written. */
static int add_to_index(struct wb_table_writer *writer, ZSTD_CCtx *zstd, struct wb_slice key, size_t block_bytes,
                        uint32_t records)
{
    struct wb_table_block_builder *index = &writer->index_block;
    char bytes[2 * WB_VARINT_MAX];
    size_t len = wb_put_varint(bytes, block_bytes);
    int err = 0;

    check_writer(writer);
    WB_CHECK(block_bytes > TABLE_BLOCK_HEAD_BYTES);
    WB_CHECK(records > 0);
    len += wb_put_varint(bytes + len, records);
    struct wb_slice value = wb_slice(bytes, len);
    if (index->records && wb_table_block_builder_size_with(index, &writer->index_raw, key, value) > TABLE_INDEX_BLOCK)
        err = close_index_block(writer, zstd);
    if (err == 0)
        err = wb_table_block_builder_add(index, &writer->index_raw, key,
                                         wb_table_key_shared(wb_buf_slice(&index->last_key), key), value);
    return err;
}

static void empty_batch(struct wb_table_writer *writer, struct write_batch *batch)
{
    WB_CHECK(!batch->busy);
    WB_CHECK(!batch->done);
    if (batch->raw.len > LARGE_BYTES) {
        wb_buf_release(&batch->raw);
        wb_buf_release(&batch->packed);
        wb_buf_release(&writer->pending);
    }
    wb_buf_clear(&batch->raw);
    wb_buf_clear(&batch->packed);
    wb_buf_clear(&batch->keys);
    wb_vec_clear(&batch->blocks);
}

/* Waits for the oldest busy batch, writes it, and makes it free. */
static int write_oldest(struct wb_table_writer *writer)
{
    check_writer(writer);
    WB_CHECK(writer->error.code == 0);
    struct write_batch *batch = &writer->batches[writer->oldest];
    const struct batch_block *blocks = batch->blocks.items;
    size_t count = batch->blocks.count, packed_start = 0, key_start = 0;
    int err;

    WB_CHECK(count > 0);
    pthread_mutex_lock(&writer->lock);
    WB_CHECK(batch->busy);
    while (!batch->done)
        pthread_cond_wait(&writer->packed, &writer->lock);
    batch->busy = batch->done = false;
    pthread_mutex_unlock(&writer->lock);
    err = batch->error.code ? wb_error_restore(&batch->error) : 0;
    for (size_t i = 0; i < count && err == 0; i++) {
        size_t size = blocks[i].packed_end - packed_start;
        struct wb_slice key = wb_slice(wb_buf_slice(&batch->keys).ptr + key_start, blocks[i].key_end - key_start);
        err = write_block(writer, batch->packed.ptr + packed_start, size);
        if (err == 0)
            err = add_to_index(writer, batch->zstd, key, size, blocks[i].records);
        packed_start = blocks[i].packed_end;
        key_start = blocks[i].key_end;
        writer->foot.blocks++;
    }
    empty_batch(writer, batch);
    writer->oldest = (writer->oldest + 1) % writer->batch_count;
    return err;
}

static int write_all(struct wb_table_writer *writer)
{
    int err = 0;

    check_writer(writer);
    while (err == 0 && writer->batches[writer->oldest].busy)
        err = write_oldest(writer);
    return err;
}

/*
 * Has the batch that was filled compressed, and makes the next one of the ring the one to fill. A large batch is
 * written before the function returns, so that memory never holds two of them.
 */
static int hand_over(struct wb_table_writer *writer)
{
    check_writer(writer);
    struct write_batch *batch = &writer->batches[writer->filling];
    bool large = batch->raw.len > LARGE_BYTES;
    int err = 0;

    WB_CHECK(!batch->busy);
    WB_CHECK(writer->block.records == 0); /* a block never spans two batches */
    if (batch->blocks.count == 0)
        return 0;
    if (large)
        err = write_all(writer);
    if (err < 0)
        return err;
    batch->busy = true;
    if (writer->pool)
        err = wb_pool_submit(writer->pool, pack_batch, batch);
    else
        pack_batch(batch);
    if (err < 0) {
        batch->busy = false;
        return err;
    }
    writer->filling = (writer->filling + 1) % writer->batch_count;
    if (large)
        err = write_all(writer);
    else if (writer->batches[writer->filling].busy) /* the ring is full: filling has caught up with oldest */
        err = write_oldest(writer);
    return err;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Ends the current block. The batch is handed over when it has enough blocks. */
static int close_block(struct wb_table_writer *writer)
{
    check_writer(writer);
    struct write_batch *batch = &writer->batches[writer->filling];
    struct batch_block block = {.records = writer->block.records, .key_end = batch->keys.len};

    WB_CHECK(!batch->busy);
    WB_CHECK(block.records > 0);
    int err = wb_table_block_builder_finish(&writer->block, &batch->raw);
    block.raw_end = batch->raw.len;
    if (err == 0)
        err = wb_vec_push(&batch->blocks, block);
    if (err == 0 && batch->raw.len >= BATCH_BYTES)
        err = hand_over(writer);
    return err;
}

/* shared: how many bytes the key has in common with the previous key. */
static int add_record(struct wb_table_writer *writer, struct wb_slice key, size_t shared, struct wb_slice value)
{
    struct wb_table_block_builder *block = &writer->block;
    const struct wb_buf *raw = &writer->batches[writer->filling].raw;
    int err = 0;

    WB_CHECK(writer->error.code == 0);
    WB_CHECK(!writer->any || shared < key.len); /* the key is greater than the last one */
    if (block->records && wb_table_block_builder_size_with(block, raw, key, value) > writer->options.block_bytes)
        err = close_block(writer);
    struct write_batch *batch = &writer->batches[writer->filling]; /* closing the block may have changed it */
    if (err == 0 && block->records == 0) /* the index key: the shortest prefix that is greater than the last key */
        err = wb_buf_append(&batch->keys, key.ptr, writer->any ? shared + 1 : 0);
    if (err == 0)
        err = wb_table_block_builder_add(block, &batch->raw, key, shared, value);
    if (err < 0)
        return err;
    writer->any = true;
    writer->foot.records++;
    writer->foot.raw_bytes += key.len + value.len;
    return 0;
}

int wb_table_add(struct wb_table_writer *writer, struct wb_slice key, struct wb_slice value)
{
    check_writer(writer);
    struct wb_slice last = wb_buf_slice(&writer->block.last_key);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    if (key.len > WB_TABLE_KEY_MAX || value.len > WB_TABLE_VALUE_MAX)
        return keep_error(writer, wb_fail(WB_E_LIMIT, "%s: a record is too large: its key has %zu bytes, its value %zu",
                                          writer->file.path, key.len, value.len));
    size_t shared = wb_table_key_shared(last, key);
    bool less = shared == key.len || (shared < last.len && (uint8_t)key.ptr[shared] < (uint8_t)last.ptr[shared]);
    if (writer->any && less)
        return keep_error(writer, wb_fail(WB_E_INVALID, "%s: the key of record %llu is not greater than the last one",
                                          writer->file.path, (unsigned long long)writer->foot.records));
    return keep_error(writer, add_record(writer, key, shared, value));
}

/* Writes index and foot and syncs the file. All blocks of records have been written. */
static int write_index(struct wb_table_writer *writer)
{
    char *block = NULL, foot[TABLE_FOOT_BYTES];
    int err = 0;

    check_writer(writer);
    WB_CHECK(writer->block.records == 0);
    WB_CHECK(writer->oldest == writer->filling);
    WB_CHECK(writer->foot.blocks <= writer->foot.records); /* no block is empty */
    WB_CHECK((writer->foot.blocks == 0) == (writer->foot.records == 0));
    writer->foot.index_at = writer->written + writer->pending.len;
    if (writer->index_block.records)
        err = close_index_block(writer, writer->batches[0].zstd);
    for (size_t at = 0; at < writer->index_packed.len && err == 0;) {
        block = writer->index_packed.ptr + at;
        size_t size = (size_t)wb_table_block_size(block);
        err = write_block(writer, block, size);
        at += size;
    }
    if (err < 0)
        return err;
    writer->foot.file_bytes = writer->written + writer->pending.len + TABLE_FOOT_BYTES;
    wb_table_foot_put(&writer->foot, writer->options.kind, foot);
    err = wb_buf_append(&writer->pending, foot, sizeof foot);
    if (err == 0)
        err = flush_pending(writer);
    if (err == 0)
        err = wb_file_sync(&writer->file);
    WB_CHECK(err < 0 || writer->written == writer->foot.file_bytes);
    return err;
}

int wb_table_finish(struct wb_table_writer *writer, struct wb_table_stat *stat_out)
{
    const struct wb_table_foot *foot = &writer->foot;

    check_writer(writer);
    int err = writer->error.code ? wb_error_restore(&writer->error) : 0;
    if (stat_out)
        *stat_out = (struct wb_table_stat){0};
    if (err == 0 && writer->block.records)
        err = close_block(writer);
    if (err == 0)
        err = hand_over(writer);
    if (err == 0)
        err = write_all(writer);
    if (err == 0)
        err = write_index(writer);
    if (err == 0 && stat_out)
        *stat_out = (struct wb_table_stat){foot->records, foot->blocks, foot->file_bytes, foot->raw_bytes};
    free_writer(writer);
    return err;
}
