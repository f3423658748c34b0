/*
 * table_read.c - opens a table: checks head and foot, reads the index into memory, and finds blocks in it.
 *
 * The index is accepted only as a whole: the blocks it lists must follow each other from the head to the index without
 * a gap, its counts must add up to those of the foot, and its keys must ascend. This file never reads a block of
 * records: cursors do.
 */
#include "table/table_read.h"
#include "base/error.h"
#include "base/mem.h"

static int damaged_index(const struct wb_table *table)
{
    return wb_fail(WB_E_CORRUPT, "%s: the index is damaged", table->file.path);
}

/* Appends the entries of one index block to the places; *next is the block that the first of them describes. */
static int take_entries(struct wb_table *table, const struct wb_table_block_view *view, char *key, uint64_t *next)
{
    const char *p = view->raw, *end = view->raw + view->end;
    struct wb_table_record_head head;
    size_t key_len = 0;

    WB_CHECK(view->records > 0);
    WB_CHECK(*next <= table->foot.blocks);
    for (uint32_t i = 0; i < view->records; i++) {
        struct wb_table_block_place *place = &table->places[*next];
        uint64_t bytes, records;
        if (*next == table->foot.blocks || !wb_table_record_head_get(&p, end, i % TABLE_RESTART ? key_len : 0, &head))
            return damaged_index(table);
        memcpy(key + head.shared, p, head.fresh);
        key_len = head.shared + head.fresh;
        p += head.fresh;
        const char *value_end = p + head.value;
        if (!wb_get_varint(&p, value_end, &bytes) || !wb_get_varint(&p, value_end, &records) || p != value_end)
            return damaged_index(table);
        if (bytes <= TABLE_BLOCK_HEAD_BYTES || bytes > table->foot.index_at - place->offset || records == 0 ||
            records > UINT32_MAX || records > table->foot.records - place->first)
            return damaged_index(table);
        if (wb_buf_append(&table->keys, key, key_len) < 0)
            return WB_E_NOMEM;
        place[1] = (struct wb_table_block_place){place->offset + bytes, place->first + records, table->keys.len};
        if (*next > 0 && wb_slice_compare(wb_table_block_key(table, *next - 1), wb_slice(key, key_len)) >= 0)
            return damaged_index(table); /* keys do not ascend */
        ++*next;
    }
    return p == end ? 0 : damaged_index(table);
}

/* Reads the index block at *at and moves *at behind it. bytes and raw are buffers that the caller reuses. */
static int read_index_block(struct wb_table *table, ZSTD_DCtx *zstd, uint64_t *at, struct wb_buf *bytes,
                            struct wb_buf *raw, struct wb_table_block_view *view_out)
{
    uint64_t end = table->foot.file_bytes - TABLE_FOOT_BYTES;
    char head[TABLE_BLOCK_HEAD_BYTES];
    int err = 0;

    WB_CHECK(*at >= table->foot.index_at);
    WB_CHECK(*at <= end);
    if (end - *at < sizeof head)
        return damaged_index(table);
    err = wb_file_read_exact(&table->file, *at, head, sizeof head);
    if (err < 0)
        return err;
    uint64_t size = wb_table_block_size(head);
    if (size == 0 || size > end - *at)
        return damaged_index(table);
    wb_buf_clear(bytes);
    err = wb_buf_reserve(bytes, (size_t)size);
    if (err == 0)
        err = wb_file_read_exact(&table->file, *at, bytes->ptr, (size_t)size);
    if (err == 0)
        err = wb_table_block_unpack(zstd, wb_slice(bytes->ptr, (size_t)size), *at, TABLE_BLOCK_INDEX, table->file.path,
                                    raw, view_out);
    *at += size;
    return err;
}

static int read_index(struct wb_table *table)
{
    struct wb_buf bytes = WB_BUF_INIT, raw = WB_BUF_INIT;
    struct wb_table_block_view view;
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    char *key = wb_alloc(WB_TABLE_KEY_MAX);
    uint64_t at = table->foot.index_at, next = 0;
    int err = 0;

    WB_CHECK(table->places == NULL);
    WB_CHECK(table->foot.index_at + TABLE_FOOT_BYTES <= table->foot.file_bytes);
    if (!zstd || !key)
        err = wb_fail_nomem();
    if (err == 0)
        err = wb_buf_reserve(&table->keys, 1); /* so that the pointer of an empty key is not NULL */
    if (err == 0)
        table->places = wb_alloc((table->foot.blocks + 1) * sizeof *table->places);
    if (err == 0 && !table->places)
        err = WB_E_NOMEM;
    if (err == 0)
        table->places[0] = (struct wb_table_block_place){TABLE_HEAD_BYTES, 0, 0};
    while (err == 0 && at < table->foot.file_bytes - TABLE_FOOT_BYTES) {
        err = read_index_block(table, zstd, &at, &bytes, &raw, &view);
        if (err == 0)
            err = take_entries(table, &view, key, &next);
    }
    if (err == 0 && (next != table->foot.blocks || table->places[next].offset != table->foot.index_at ||
                     table->places[next].first != table->foot.records ||
                     (next > 0 && wb_table_block_key(table, 0).len != 0)))
        err = damaged_index(table);
    wb_buf_release(&bytes);
    wb_buf_release(&raw);
    ZSTD_freeDCtx(zstd);
    wb_free(key);
    return err;
}

/* Reads and checks head and foot. */
static int read_ends(struct wb_table *table, const char *kind)
{
    char head[TABLE_HEAD_BYTES], foot[TABLE_FOOT_BYTES];
    const char *path = table->file.path;
    uint64_t size = 0;

    WB_CHECK(table->file.fd >= 0);
    int err = wb_file_size(&table->file, &size);
    if (err < 0)
        return err;
    if (size < TABLE_HEAD_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s is not a table: it has only %llu bytes", path, (unsigned long long)size);
    err = wb_file_read_exact(&table->file, 0, head, sizeof head);
    if (err == 0)
        err = wb_table_head_get(head, kind, path);
    if (err < 0)
        return err;
    if (size < TABLE_HEAD_BYTES + TABLE_FOOT_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s has no foot: it was never finished, or its end is missing", path);
    err = wb_file_read_exact(&table->file, size - TABLE_FOOT_BYTES, foot, sizeof foot);
    if (err == 0)
        err = wb_table_foot_get(foot, kind, path, &table->foot);
    if (err < 0)
        return err;
    if (table->foot.file_bytes != size || table->foot.index_at < TABLE_HEAD_BYTES ||
        table->foot.index_at > size - TABLE_FOOT_BYTES ||
        table->foot.blocks > (table->foot.index_at - TABLE_HEAD_BYTES) / TABLE_BLOCK_HEAD_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s: the foot does not match the file", path);
    return 0;
}

int wb_table_open(const char *path, const char *kind, struct wb_table **table_out)
{
    struct wb_table *table = wb_alloc_zero(1, sizeof *table);
    int err;

    *table_out = NULL;
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    if (!table)
        return WB_E_NOMEM;
    table->magic = TABLE_MAGIC;
    err = wb_file_open(path, WB_FILE_READ, &table->file);
    if (err == 0)
        err = read_ends(table, kind);
    if (err == 0)
        err = read_index(table);
    if (err < 0) {
        wb_table_close(table);
        return err;
    }
    *table_out = table;
    return 0;
}

void wb_table_close(struct wb_table *table)
{
    if (!table)
        return;
    WB_CHECK(table->magic == TABLE_MAGIC);
    table->magic = 0;
    wb_file_close(&table->file);
    wb_free(table->places);
    wb_buf_release(&table->keys);
    wb_free(table);
}

void wb_table_stat(const struct wb_table *table, struct wb_table_stat *stat_out)
{
    const struct wb_table_foot *foot = &table->foot;

    WB_CHECK(table->magic == TABLE_MAGIC);
    *stat_out = (struct wb_table_stat){foot->records, foot->blocks, foot->file_bytes, foot->raw_bytes};
}

uint64_t wb_table_find_block(const struct wb_table *table, struct wb_slice key)
{
    uint64_t low = 0, high = table->foot.blocks; /* the key of block low is not greater than key, that of high is */

    WB_CHECK(table->magic == TABLE_MAGIC);
    WB_CHECK(high > 0);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (wb_slice_compare(wb_table_block_key(table, middle), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t wb_table_find_number(const struct wb_table *table, uint64_t number)
{
    uint64_t low = 0, high = table->foot.blocks;

    WB_CHECK(table->magic == TABLE_MAGIC);
    WB_CHECK(number < table->foot.records);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (table->places[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    WB_CHECK(number >= table->places[low].first);
    WB_CHECK(number < table->places[low + 1].first);
    return low;
}
