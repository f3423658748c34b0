/*
 * table_format.c - turns head, foot and blocks of a table into bytes and back.
 *
 * It never touches a file. When reading, it uses nothing before the checksum has been verified, and even then it checks
 * every length, because a checksum does not show that the writer was right.
 */
#include "table/table_format.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"

/* ---- head and foot ------------------------------------------------------------------------------ */

void wb_table_head_put(const char kind[TABLE_KIND_BYTES], char head_out[TABLE_HEAD_BYTES])
{
    WB_CHECK(memchr(kind, 0, TABLE_KIND_BYTES) == NULL);
    memset(head_out, 0, TABLE_HEAD_BYTES);
    memcpy(head_out, TABLE_HEAD_MAGIC, 8);
    wb_put32(head_out + 8, TABLE_FORMAT);
    memcpy(head_out + 12, kind, TABLE_KIND_BYTES);
    wb_put64(head_out + 24, wb_hash64(head_out, 24));
}

void wb_table_foot_put(const struct wb_table_foot *foot, const char kind[TABLE_KIND_BYTES],
                       char foot_out[TABLE_FOOT_BYTES])
{
    WB_CHECK(foot->index_at >= TABLE_HEAD_BYTES);
    WB_CHECK(foot->file_bytes >= foot->index_at + TABLE_FOOT_BYTES);
    memcpy(foot_out, TABLE_FOOT_MAGIC, 8);
    wb_put64(foot_out + 8, foot->index_at);
    wb_put64(foot_out + 16, foot->blocks);
    wb_put64(foot_out + 24, foot->records);
    wb_put64(foot_out + 32, foot->raw_bytes);
    wb_put64(foot_out + 40, foot->file_bytes);
    memcpy(foot_out + 48, kind, TABLE_KIND_BYTES);
    wb_put32(foot_out + 52, TABLE_FORMAT);
    wb_put64(foot_out + 56, wb_hash64(foot_out, 56));
}

static int check_kind(const char *found, const char *kind, const char *path)
{
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    if (memcmp(found, kind, TABLE_KIND_BYTES) != 0)
        return wb_fail(WB_E_CORRUPT, "%s holds \"%.4s\", not \"%.4s\"", path, found, kind);
    return 0;
}

int wb_table_head_get(const char head[TABLE_HEAD_BYTES], const char *kind, const char *path)
{
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(path != NULL);
    if (memcmp(head, TABLE_HEAD_MAGIC, 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is not a table", path);
    if (wb_get64(head + 24) != wb_hash64(head, 24))
        return wb_fail(WB_E_CORRUPT, "%s: the head is damaged", path);
    if (wb_get32(head + 8) != TABLE_FORMAT)
        return wb_fail_format(path, wb_get32(head + 8), TABLE_FORMAT);
    if (wb_get64(head + 16) != 0)
        return wb_fail(WB_E_CORRUPT, "%s: the head is damaged", path);
    return check_kind(head + 12, kind, path);
}

int wb_table_foot_get(const char bytes[TABLE_FOOT_BYTES], const char *kind, const char *path,
                      struct wb_table_foot *foot_out)
{
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(path != NULL);
    *foot_out = (struct wb_table_foot){0};
    if (memcmp(bytes, TABLE_FOOT_MAGIC, 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s has no foot: it was never finished, or its end is missing", path);
    if (wb_get64(bytes + 56) != wb_hash64(bytes, 56) || wb_get32(bytes + 52) != TABLE_FORMAT)
        return wb_fail(WB_E_CORRUPT, "%s: the foot is damaged", path);
    foot_out->index_at = wb_get64(bytes + 8);
    foot_out->blocks = wb_get64(bytes + 16);
    foot_out->records = wb_get64(bytes + 24);
    foot_out->raw_bytes = wb_get64(bytes + 32);
    foot_out->file_bytes = wb_get64(bytes + 40);
    return check_kind(bytes + 48, kind, path);
}

uint64_t wb_table_checksum_at(uint64_t hash, uint64_t offset)
{
    char both[16];

    wb_put64(both, hash);
    wb_put64(both + 8, offset);
    return wb_hash64(both, sizeof both);
}

/* ---- building a block -------------------------------------------------------------------------- */

size_t wb_table_block_builder_size_with(const struct wb_table_block_builder *builder, const struct wb_buf *raw,
                                        struct wb_slice key, struct wb_slice value)
{
    WB_CHECK(raw->len >= builder->start);
    /* Counts the whole key. Subtracting the shared bytes would mean comparing the keys twice, which costs more. */
    return raw->len - builder->start + builder->restarts.len + 4 + TABLE_RECORD_HEAD_MAX + key.len + value.len;
}

/* fresh: the bytes of the key that the previous key does not have. */
static int append_record(struct wb_buf *raw, size_t shared, struct wb_slice fresh, struct wb_slice value)
{
    WB_CHECK(shared + fresh.len <= WB_TABLE_KEY_MAX);
    WB_CHECK(value.len <= WB_TABLE_VALUE_MAX);
    int err = wb_buf_reserve(raw, TABLE_RECORD_HEAD_MAX + fresh.len + value.len);
    if (err < 0)
        return err;
    raw->len += wb_put_varint(raw->ptr + raw->len, shared);
    raw->len += wb_put_varint(raw->ptr + raw->len, fresh.len);
    raw->len += wb_put_varint(raw->ptr + raw->len, value.len);
    if (fresh.len)
        memcpy(raw->ptr + raw->len, fresh.ptr, fresh.len);
    raw->len += fresh.len;
    if (value.len)
        memcpy(raw->ptr + raw->len, value.ptr, value.len);
    raw->len += value.len;
    return 0;
}

int wb_table_block_builder_add(struct wb_table_block_builder *builder, struct wb_buf *raw, struct wb_slice key,
                               size_t shared, struct wb_slice value)
{
    size_t left_out = shared;
    int err = 0;

    WB_CHECK(builder->records < UINT32_MAX);
    WB_CHECK(shared <= key.len);
    WB_CHECK(shared <= builder->last_key.len);
    if (builder->records == 0)
        builder->start = raw->len;
    if (builder->records % TABLE_RESTART == 0) {
        char offset[4];
        wb_put32(offset, (uint32_t)(raw->len - builder->start));
        err = wb_buf_append(&builder->restarts, offset, sizeof offset);
        left_out = 0;
    }
    if (err == 0)
        err = append_record(raw, left_out, wb_slice(key.ptr + left_out, key.len - left_out), value);
    if (err < 0)
        return err;
    builder->last_key.len = shared;
    err = wb_buf_append(&builder->last_key, key.ptr + shared, key.len - shared);
    builder->records++;
    return err;
}

int wb_table_block_builder_finish(struct wb_table_block_builder *builder, struct wb_buf *raw)
{
    WB_CHECK(builder->restarts.len / 4 == wb_table_block_restart_count(builder->records));
    int err = wb_buf_append_slice(raw, wb_buf_slice(&builder->restarts));
    WB_CHECK(raw->len - builder->start <= TABLE_RAW_MAX);
    wb_buf_clear(&builder->restarts);
    builder->records = 0;
    return err;
}

void wb_table_block_builder_release(struct wb_table_block_builder *builder)
{
    wb_buf_release(&builder->restarts);
    wb_buf_release(&builder->last_key);
}

int wb_table_block_pack(ZSTD_CCtx *zstd, struct wb_slice raw, uint32_t records, enum wb_table_block_type type,
                        struct wb_buf *packed)
{
    WB_CHECK(zstd != NULL);
    WB_CHECK(records > 0);
    WB_CHECK(raw.len > 4 * (size_t)wb_table_block_restart_count(records));
    WB_CHECK(raw.len <= TABLE_RAW_MAX);
    size_t start = packed->len, bound = ZSTD_compressBound(raw.len);
    int err = wb_buf_reserve(packed, TABLE_BLOCK_HEAD_BYTES + bound);
    if (err < 0)
        return err;
    char *head = packed->ptr + start, *stored = head + TABLE_BLOCK_HEAD_BYTES;
    size_t size = ZSTD_compress2(zstd, stored, bound, raw.ptr, raw.len);
    enum wb_table_codec codec = TABLE_CODEC_ZSTD;
    if (ZSTD_isError(size) && ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
        return wb_fail_nomem();
    /* If compression saves less than 1/16, store the bytes as they are: that is faster to read. */
    if (ZSTD_isError(size) || size > raw.len - raw.len / 16) {
        memcpy(stored, raw.ptr, raw.len);
        size = raw.len;
        codec = TABLE_CODEC_NONE;
    }
    wb_put32(head + 8, (uint32_t)size);
    wb_put32(head + 12, (uint32_t)raw.len);
    wb_put32(head + 16, records);
    wb_put32(head + 20, (uint32_t)codec | (uint32_t)type << 8);
    wb_put64(head, wb_hash64(head + 8, TABLE_BLOCK_HEAD_BYTES - 8 + size));
    WB_CHECK(wb_table_block_size(head) == TABLE_BLOCK_HEAD_BYTES + size);
    packed->len += TABLE_BLOCK_HEAD_BYTES + size;
    return 0;
}

/* ---- reading a block ------------------------------------------------------------------------- */

uint64_t wb_table_block_size(const char head[TABLE_BLOCK_HEAD_BYTES])
{
    uint32_t stored = wb_get32(head + 8);

    return stored > TABLE_RAW_MAX ? 0 : (uint64_t)TABLE_BLOCK_HEAD_BYTES + stored;
}

/* Returns WB_E_CORRUPT without a message: the caller knows which block of which file this is. */
static int unpack_stored(ZSTD_DCtx *zstd, uint32_t codec, struct wb_slice stored, size_t raw_bytes,
                         struct wb_buf *raw_out)
{
    WB_CHECK(codec == TABLE_CODEC_NONE || codec == TABLE_CODEC_ZSTD);
    WB_CHECK(raw_bytes <= TABLE_RAW_MAX);
    wb_buf_clear(raw_out);
    if (wb_buf_reserve(raw_out, raw_bytes) < 0)
        return WB_E_NOMEM;
    if (codec == TABLE_CODEC_NONE) {
        if (stored.len != raw_bytes)
            return WB_E_CORRUPT;
        memcpy(raw_out->ptr, stored.ptr, stored.len);
    } else {
        size_t size = ZSTD_decompressDCtx(zstd, raw_out->ptr, raw_bytes, stored.ptr, stored.len);
        if (ZSTD_isError(size) || size != raw_bytes)
            return WB_E_CORRUPT;
    }
    raw_out->len = raw_bytes;
    return 0;
}

int wb_table_block_unpack(ZSTD_DCtx *zstd, struct wb_slice bytes, uint64_t offset, enum wb_table_block_type type,
                          const char *path, struct wb_buf *raw_out, struct wb_table_block_view *view_out)
{
    const char *head = bytes.ptr;
    int err = WB_E_CORRUPT;

    WB_CHECK(zstd != NULL);
    WB_CHECK(offset >= TABLE_HEAD_BYTES);
    *view_out = (struct wb_table_block_view){0};
    if (bytes.len < TABLE_BLOCK_HEAD_BYTES || wb_table_block_size(head) != bytes.len ||
        wb_get64(head) != wb_table_checksum_at(wb_hash64(head + 8, bytes.len - 8), offset))
        return wb_fail(WB_E_CORRUPT, "%s: the block at %llu does not match its checksum", path,
                       (unsigned long long)offset);
    uint32_t raw_bytes = wb_get32(head + 12), records = wb_get32(head + 16), codec = wb_get32(head + 20) & 0xff;
    uint64_t restarts = 4 * (uint64_t)wb_table_block_restart_count(records);
    struct wb_slice stored = wb_slice(head + TABLE_BLOCK_HEAD_BYTES, bytes.len - TABLE_BLOCK_HEAD_BYTES);
    if (wb_get32(head + 20) >> 8 == (uint32_t)type && codec <= TABLE_CODEC_ZSTD && raw_bytes <= TABLE_RAW_MAX &&
        records > 0 && restarts < raw_bytes)
        err = unpack_stored(zstd, codec, stored, raw_bytes, raw_out);
    if (err == WB_E_CORRUPT)
        return wb_fail(WB_E_CORRUPT, "%s: the block at %llu is damaged", path, (unsigned long long)offset);
    if (err < 0)
        return err;
    *view_out = (struct wb_table_block_view){raw_out->ptr, records, raw_bytes - (uint32_t)restarts};
    return 0;
}
