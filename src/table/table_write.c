/*
 * table_write.c - writes a table, front to back.
 *
 * Records become raw blocks, some blocks a batch; a batch is packed (by the caller, or by a thread of the pool while the
 * caller fills the next one) and written by the caller when its turn comes, so the bytes do not depend on threads.
 * There is a fixed number of batches, and who finds none free waits for the oldest. The first error stays: nothing is
 * written after it, and finish returns it.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"
#include "os/file.h"
#include "table/table_format.h"

#include <pthread.h>

enum {
    BATCH_BYTES = 128 << 10,   /* before packing: enough work that handing it over does not count */
    WRITE_BYTES = 256 << 10,
    WRITE_BACK_BYTES = 8 << 20,
    LARGE_BYTES = 2 << 20,     /* batches beyond are packed one at a time and their memory is given back */
    THREADS_MAX = 64,
};

/* A block of a batch. */
struct part {
    size_t raw_end, packed_end;
    size_t key_end; /* of its key in the index, in keys */
    uint32_t records;
};

struct batch {
    struct wb_table_writer *writer;
    struct wb_buf raw, packed, keys;
    struct wb_buf parts; /* struct part */
    ZSTD_CCtx *zstd;
    bool busy, done; /* handed over; packed. Under the writer's lock */
    struct wb_error_copy error;
};

struct wb_table_writer {
    struct wb_file file;
    struct wb_table_options options;
    struct wb_pool *pool; /* NULL: no threads */
    pthread_mutex_t lock;
    pthread_cond_t packed;
    struct batch *batches;
    unsigned batch_count, filling, oldest; /* a ring; oldest == filling: none is handed over */
    struct wb_table_block_builder block;
    bool any;                  /* block.last_key is a key */
    struct wb_buf pending;     /* bytes to be written at written */
    uint64_t written;
    uint64_t on_its_way;       /* up to here the kernel was asked to write to disk */
    struct wb_table_block_builder index_block;
    struct wb_buf index_raw;   /* of the index block being made */
    struct wb_buf index_packed; /* index blocks, hashes not yet salted */
    struct wb_table_foot foot;
    struct wb_error_copy error; /* the first; code 0: none */
};

static int keep_error(struct wb_table_writer *writer, int err)
{
    if (err < 0 && writer->error.code == 0)
        wb_error_save(err, &writer->error);
    return err;
}

static struct part *parts_of(const struct batch *batch, size_t *count_out)
{
    *count_out = batch->parts.len / sizeof(struct part);
    return (struct part *)(void *)batch->parts.ptr;
}

/* ---- beginning and end ---------------------------------------------------------------------------- */

static void free_writer(struct wb_table_writer *writer)
{
    wb_pool_free(writer->pool);
    for (unsigned i = 0; i < writer->batch_count; i++) {
        struct batch *batch = &writer->batches[i];
        wb_buf_release(&batch->raw);
        wb_buf_release(&batch->packed);
        wb_buf_release(&batch->keys);
        wb_buf_release(&batch->parts);
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

static int make_batches(struct wb_table_writer *writer)
{
    unsigned threads = writer->options.threads < THREADS_MAX ? writer->options.threads : THREADS_MAX;
    int err = 0;

    writer->batches = wb_alloc_zero(2 * threads + 1, sizeof *writer->batches);
    if (!writer->batches)
        return WB_E_NOMEM;
    writer->batch_count = 2 * threads + 1;
    for (unsigned i = 0; i < writer->batch_count; i++) {
        struct batch *batch = &writer->batches[i];
        batch->writer = writer;
        batch->zstd = ZSTD_createCCtx();
        if (!batch->zstd)
            return wb_fail_nomem();
        /* Levels that zstd does not have are as its highest or lowest. */
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(batch->zstd, ZSTD_c_compressionLevel, writer->options.level)));
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(batch->zstd, ZSTD_c_contentSizeFlag, 0)));
    }
    if (threads)
        err = wb_pool_new(threads, &writer->pool);
    return err;
}

int wb_table_create(const char *path, const struct wb_table_options *options, struct wb_table_writer **writer_out)
{
    struct wb_table_writer *writer = wb_alloc_zero(1, sizeof *writer);
    char head[TABLE_HEAD_BYTES];
    int err;

    *writer_out = NULL;
    WB_CHECK(strlen(options->kind) == 4);
    if (!writer)
        return WB_E_NOMEM;
    writer->file = WB_FILE_INIT;
    writer->options = *options;
    if (options->block_bytes == 0)
        writer->options.block_bytes = TABLE_BLOCK_DEFAULT;
    if (writer->options.block_bytes < TABLE_BLOCK_MIN)
        writer->options.block_bytes = TABLE_BLOCK_MIN;
    if (writer->options.block_bytes > TABLE_BLOCK_MAX)
        writer->options.block_bytes = TABLE_BLOCK_MAX;
    if (options->level == 0)
        writer->options.level = TABLE_LEVEL_DEFAULT;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->packed, NULL);
    /* Not cut to nothing: whoever has the old one open goes on reading it. */
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
    if (writer)
        free_writer(writer);
}

/* ---- packing and writing ------------------------------------------------------------------------------- */

static void pack_batch(void *context)
{
    struct batch *batch = context;
    struct wb_table_writer *writer = batch->writer;
    size_t count, raw_start = 0;
    struct part *parts = parts_of(batch, &count);
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_slice raw = wb_slice(batch->raw.ptr + raw_start, parts[i].raw_end - raw_start);
        err = wb_table_block_pack(batch->zstd, raw, parts[i].records, TABLE_BLOCK_RECORDS, &batch->packed);
        parts[i].packed_end = batch->packed.len;
        raw_start = parts[i].raw_end;
    }
    if (err < 0)
        wb_error_save(err, &batch->error);
    pthread_mutex_lock(&writer->lock);
    batch->done = true;
    pthread_cond_signal(&writer->packed);
    pthread_mutex_unlock(&writer->lock);
}

static int flush_pending(struct wb_table_writer *writer)
{
    int err = wb_file_write_at(&writer->file, writer->written, writer->pending.ptr, writer->pending.len);

    if (err < 0)
        return err;
    writer->written += writer->pending.len;
    wb_buf_clear(&writer->pending);
    if (writer->written - writer->on_its_way >= WRITE_BACK_BYTES) { /* or finish would wait for all of it */
        wb_file_write_back(&writer->file, writer->on_its_way, writer->written - writer->on_its_way);
        writer->on_its_way = writer->written;
    }
    return 0;
}

/* Writes a packed block where the file ends now. */
static int write_block(struct wb_table_writer *writer, char *block, size_t size)
{
    uint64_t offset = writer->written + writer->pending.len;

    wb_put64(block, wb_table_checksum_at(wb_get64(block), offset));
    int err = wb_buf_append(&writer->pending, block, size);
    if (err == 0 && writer->pending.len >= WRITE_BYTES)
        err = flush_pending(writer);
    return err;
}

static int close_index_block(struct wb_table_writer *writer, ZSTD_CCtx *zstd)
{
    uint32_t records = writer->index_block.records;
    int err = wb_table_block_builder_finish(&writer->index_block, &writer->index_raw);

    if (err == 0)
        err = wb_table_block_pack(zstd, wb_buf_slice(&writer->index_raw), records, TABLE_BLOCK_INDEX, &writer->index_packed);
    wb_buf_clear(&writer->index_raw);
    return err;
}

static int add_to_index(struct wb_table_writer *writer, ZSTD_CCtx *zstd, struct wb_slice key, size_t block_bytes, uint32_t records)
{
    struct wb_table_block_builder *index = &writer->index_block;
    char bytes[2 * WB_VARINT_MAX];
    size_t len = wb_put_varint(bytes, block_bytes);
    int err = 0;

    len += wb_put_varint(bytes + len, records);
    struct wb_slice value = wb_slice(bytes, len);
    if (index->records && wb_table_block_builder_size_with(index, &writer->index_raw, key, value) > TABLE_INDEX_BLOCK)
        err = close_index_block(writer, zstd);
    if (err == 0)
        err = wb_table_block_builder_add(index, &writer->index_raw, key, wb_table_key_shared(wb_buf_slice(&index->last_key), key), value);
    return err;
}

/* The oldest batch that was handed over: waits for it, writes it and makes it free. */
static int write_oldest(struct wb_table_writer *writer)
{
    struct batch *batch = &writer->batches[writer->oldest];
    size_t count, packed_start = 0, key_start = 0;
    struct part *parts = parts_of(batch, &count);
    int err;

    WB_CHECK(batch->busy);
    pthread_mutex_lock(&writer->lock);
    while (!batch->done)
        pthread_cond_wait(&writer->packed, &writer->lock);
    batch->busy = batch->done = false;
    pthread_mutex_unlock(&writer->lock);
    err = batch->error.code ? wb_error_restore(&batch->error) : 0;
    for (size_t i = 0; i < count && err == 0; i++) {
        size_t size = parts[i].packed_end - packed_start;
        err = write_block(writer, batch->packed.ptr + packed_start, size);
        if (err == 0)
            err = add_to_index(writer, batch->zstd, wb_slice(batch->keys.ptr + key_start, parts[i].key_end - key_start), size,
                               parts[i].records);
        packed_start = parts[i].packed_end;
        key_start = parts[i].key_end;
        writer->foot.blocks++;
    }
    if (batch->raw.len > LARGE_BYTES) {
        wb_buf_release(&batch->raw);
        wb_buf_release(&batch->packed);
        wb_buf_release(&writer->pending);
    }
    wb_buf_clear(&batch->raw);
    wb_buf_clear(&batch->packed);
    wb_buf_clear(&batch->keys);
    wb_buf_clear(&batch->parts);
    writer->oldest = (writer->oldest + 1) % writer->batch_count;
    return err;
}

static int write_all(struct wb_table_writer *writer)
{
    int err = 0;

    while (err == 0 && writer->batches[writer->oldest].busy)
        err = write_oldest(writer);
    return err;
}

/* Hands the batch being filled over and takes the next one. */
static int hand_over(struct wb_table_writer *writer)
{
    struct batch *batch = &writer->batches[writer->filling];
    bool large = batch->raw.len > LARGE_BYTES;
    int err = 0;

    if (batch->parts.len == 0)
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
    else if (writer->batches[writer->filling].busy)
        err = write_oldest(writer);
    return err;
}

/* ---- adding ------------------------------------------------------------------------------------------------ */

static int close_block(struct wb_table_writer *writer)
{
    struct batch *batch = &writer->batches[writer->filling];
    struct part part = {.records = writer->block.records, .key_end = batch->keys.len};
    int err = wb_table_block_builder_finish(&writer->block, &batch->raw);

    part.raw_end = batch->raw.len;
    if (err == 0)
        err = wb_buf_append(&batch->parts, &part, sizeof part);
    if (err == 0 && batch->raw.len >= BATCH_BYTES)
        err = hand_over(writer);
    return err;
}

/* shared: what the key has in common with the last one. */
static int add_record(struct wb_table_writer *writer, struct wb_slice key, size_t shared, struct wb_slice value)
{
    struct wb_table_block_builder *block = &writer->block;
    int err = 0;

    if (block->records &&
        wb_table_block_builder_size_with(block, &writer->batches[writer->filling].raw, key, value) > writer->options.block_bytes)
        err = close_block(writer);
    struct batch *batch = &writer->batches[writer->filling];
    if (err == 0 && block->records == 0) /* the key in the index: as much of this one as tells it from the last one */
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
    struct wb_slice last = wb_buf_slice(&writer->block.last_key);

    if (writer->error.code)
        return wb_error_restore(&writer->error);
    if (key.len > WB_TABLE_KEY_MAX || value.len > WB_TABLE_VALUE_MAX)
        return keep_error(writer, wb_fail(WB_E_LIMIT, "%s: a record with a key of %zu bytes and a value of %zu is too large",
                                          writer->file.path, key.len, value.len));
    size_t shared = wb_table_key_shared(last, key);
    if (writer->any && (shared == key.len || (shared < last.len && (uint8_t)key.ptr[shared] < (uint8_t)last.ptr[shared])))
        return keep_error(writer, wb_fail(WB_E_INVALID, "%s: key number %llu is not greater than the one before",
                                          writer->file.path, (unsigned long long)writer->foot.records));
    return keep_error(writer, add_record(writer, key, shared, value));
}

static int write_index(struct wb_table_writer *writer)
{
    char *block = NULL, foot[TABLE_FOOT_BYTES];
    int err = 0;

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
    return err;
}

int wb_table_finish(struct wb_table_writer *writer, struct wb_table_stat *stat_out)
{
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
        *stat_out = (struct wb_table_stat){writer->foot.records, writer->foot.blocks, writer->foot.file_bytes, writer->foot.raw_bytes};
    free_writer(writer);
    return err;
}
