/*
 * sorter_run.c - writes a run: sorted records, front-coded, appended to a temporary file.
 *
 * It never holds more than a few blocks in memory: a record larger than a block is written straight from where it is.
 *
 * The first runs are not compressed. Front coding alone halves link records, the page cache holds the rest, and even
 * the fastest zstd level costs half as much as the whole sort without it (docs/design/0010-tables.md). Once the runs
 * have grown to PLAIN_TIMES the memory limit, they no longer fit the page cache; then the disk is the bottleneck, and
 * further runs are compressed.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "table/sorter.h"

enum {
    RUN_LEVEL = 1,              /* zstd level */
    PLAIN_TIMES = 4,
    PENDING_BLOCKS = 4,         /* blocks written at once */
    RUN_ZSTD_BYTES = 300 << 10, /* memory of a zstd context at this level, for blocks of up to 64 KiB */
};

size_t wb_sorter_run_writer_cost(size_t block_bytes)
{
    WB_CHECK(block_bytes > TABLE_RECORD_HEAD_MAX);
    return block_bytes + (PENDING_BLOCKS + 1) * (RUN_HEAD_BYTES + ZSTD_compressBound(block_bytes)) + RUN_ZSTD_BYTES;
}

uint32_t wb_sorter_run_large_check(struct wb_slice before, struct wb_slice value)
{
    WB_CHECK(before.len > 0); /* a record has a head */
    return (uint32_t)wb_table_checksum_at(wb_hash64(before.ptr, before.len), wb_hash64(value.ptr, value.len));
}

bool wb_sorter_should_pack(struct wb_sorter *sorter)
{
    WB_CHECK(sorter->magic == SORTER_MAGIC);
    pthread_mutex_lock(&sorter->lock);
    bool packs = sorter->stat.run_bytes / PLAIN_TIMES > sorter->memory_bytes;
    pthread_mutex_unlock(&sorter->lock);
    return packs;
}

int wb_sorter_run_writer_init(struct wb_sorter_run_writer *writer, const struct wb_file *file, uint64_t offset,
                              size_t block_bytes, bool pack)
{
    int err = 0;

    WB_CHECK(file->fd >= 0);
    WB_CHECK(block_bytes > TABLE_RECORD_HEAD_MAX);
    *writer = (struct wb_sorter_run_writer){.block_bytes = block_bytes,
                                            .run = {.file = file, .offset = offset, .packed = pack}};
    if (pack) {
        writer->zstd = ZSTD_createCCtx();
        if (!writer->zstd)
            return wb_fail_nomem();
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, RUN_LEVEL)));
        WB_CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_contentSizeFlag, 0)));
    }
    err = wb_buf_reserve(&writer->raw, block_bytes);
    if (err == 0)
        err = wb_buf_reserve(&writer->pending,
                             (PENDING_BLOCKS + 1) * (RUN_HEAD_BYTES + ZSTD_compressBound(block_bytes)));
    return err;
}

void wb_sorter_run_writer_release(struct wb_sorter_run_writer *writer)
{
    ZSTD_freeCCtx(writer->zstd);
    wb_buf_release(&writer->raw);
    wb_buf_release(&writer->pending);
    *writer = (struct wb_sorter_run_writer){0};
}

static int write_bytes(struct wb_sorter_run_writer *writer, const void *bytes, size_t len)
{
    WB_CHECK(len == 0 || bytes != NULL);
    int err = len ? wb_file_write_at(writer->run.file, writer->run.offset + writer->run.bytes, bytes, len) : 0;
    if (err == 0)
        writer->run.bytes += len;
    return err;
}

static int write_pending(struct wb_sorter_run_writer *writer)
{
    int err = write_bytes(writer, writer->pending.ptr, writer->pending.len);

    wb_buf_clear(&writer->pending);
    return err;
}

static void put_run_head(char head[RUN_HEAD_BYTES], size_t stored, size_t raw, uint32_t check,
                         enum wb_sorter_run_codec codec)
{
    WB_CHECK(stored > 0);
    WB_CHECK(raw <= UINT32_MAX);
    WB_CHECK(stored <= raw);
    WB_CHECK(codec == RUN_ZSTD || stored == raw);
    wb_put32(head, (uint32_t)stored);
    wb_put32(head + 4, (uint32_t)raw);
    wb_put32(head + 8, check);
    wb_put32(head + 12, codec);
}

/* Ends the block that is being filled and adds it to the pending ones. Does nothing if it is empty. */
static int pack_block(struct wb_sorter_run_writer *writer)
{
    size_t bound = ZSTD_compressBound(writer->block_bytes);
    int err = 0;

    WB_CHECK(writer->raw.len <= writer->block_bytes);
    if (writer->raw.len == 0)
        return 0;
    if (writer->pending.cap - writer->pending.len < RUN_HEAD_BYTES + bound)
        err = write_pending(writer);
    if (err < 0)
        return err;
    WB_CHECK(writer->pending.cap - writer->pending.len >= RUN_HEAD_BYTES + bound);
    char *head = writer->pending.ptr + writer->pending.len, *stored = head + RUN_HEAD_BYTES;
    size_t size = SIZE_MAX;
    if (writer->zstd)
        size = ZSTD_compress2(writer->zstd, stored, bound, writer->raw.ptr, writer->raw.len);
    enum wb_sorter_run_codec codec = RUN_ZSTD;
    if (writer->zstd && ZSTD_isError(size) && ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
        return wb_fail_nomem();
    if (size > writer->raw.len - writer->raw.len / 16) { /* also true for errors, which are very large numbers */
        memcpy(stored, writer->raw.ptr, writer->raw.len);
        size = writer->raw.len;
        codec = RUN_PLAIN;
    }
    put_run_head(head, size, writer->raw.len, wb_hash32(stored, size), codec);
    writer->pending.len += RUN_HEAD_BYTES + size;
    wb_buf_clear(&writer->raw);
    return 0;
}

static size_t put_record_head(char *p, size_t shared, size_t fresh, size_t value)
{
    size_t n = wb_put_varint(p, shared);

    n += wb_put_varint(p + n, fresh);
    return n + wb_put_varint(p + n, value);
}

/* Writes a record that is larger than a block, without copying its value. */
static int write_large(struct wb_sorter_run_writer *writer, struct wb_slice fresh, size_t shared,
                       struct wb_slice value)
{
    char head[RUN_HEAD_BYTES];
    size_t size;

    WB_CHECK(TABLE_RECORD_HEAD_MAX + fresh.len + value.len > writer->block_bytes);
    int err = pack_block(writer);
    if (err == 0)
        err = write_pending(writer);
    if (err < 0)
        return err;
    WB_CHECK(writer->raw.len == 0);
    /* Everything before the value is put together in the buffer of the block: keys are much smaller than memory. */
    err = wb_buf_reserve(&writer->raw, TABLE_RECORD_HEAD_MAX + fresh.len);
    if (err < 0)
        return err;
    writer->raw.len = put_record_head(writer->raw.ptr, shared, fresh.len, value.len);
    wb_buf_append_slice(&writer->raw, fresh);
    size = writer->raw.len + value.len;
    put_run_head(head, size, size, wb_sorter_run_large_check(wb_buf_slice(&writer->raw), value), RUN_LARGE);
    if (size > writer->run.large_max)
        writer->run.large_max = size;
    err = write_bytes(writer, head, sizeof head);
    if (err == 0)
        err = write_bytes(writer, writer->raw.ptr, writer->raw.len);
    if (err == 0)
        err = write_bytes(writer, value.ptr, value.len);
    wb_buf_clear(&writer->raw);
    return err;
}

int wb_sorter_run_writer_add(struct wb_sorter_run_writer *writer, struct wb_slice key, size_t shared,
                             struct wb_slice value)
{
    WB_CHECK(key.len <= WB_TABLE_KEY_MAX);
    WB_CHECK(value.len <= WB_TABLE_VALUE_MAX);
    WB_CHECK(writer->block_bytes > 0);
    WB_CHECK(shared <= key.len);
    struct wb_slice fresh = wb_slice(key.ptr + shared, key.len - shared);
    size_t most = TABLE_RECORD_HEAD_MAX + fresh.len + value.len;
    int err = 0;

    if (key.len > writer->run.key_max)
        writer->run.key_max = key.len;
    if (most > writer->block_bytes)
        return write_large(writer, fresh, shared, value);
    if (most > writer->block_bytes - writer->raw.len)
        err = pack_block(writer);
    if (err < 0)
        return err;
    char *p = writer->raw.ptr + writer->raw.len;
    p += put_record_head(p, shared, fresh.len, value.len);
    memcpy(p, fresh.ptr, fresh.len);
    if (value.len)
        memcpy(p + fresh.len, value.ptr, value.len);
    writer->raw.len = (size_t)(p - writer->raw.ptr) + fresh.len + value.len;
    return 0;
}

int wb_sorter_run_writer_finish(struct wb_sorter_run_writer *writer, struct wb_sorter_run *run_out)
{
    WB_CHECK(writer->run.file != NULL);
    int err = pack_block(writer);
    if (err == 0)
        err = write_pending(writer);
    *run_out = writer->run;
    return err;
}
