/*
 * table_verify.c - reads all of a table and says what is wrong with it. It goes on behind a damaged block, and looks at what
 * reading takes on trust: order, restart points, the keys of the index, the sum of all bytes.
 */
#include "base/error.h"
#include "base/mem.h"
#include "table/table_read.h"

#include <stdio.h>

struct check {
    struct wb_table *table;
    const char *path;
    wb_table_found found;
    void *context;
    ZSTD_DCtx *zstd;
    struct wb_buf bytes, raw;
    char *key;
    size_t key_len;
    bool any;            /* key is the last one seen */
    bool gap;            /* a block before could not be read: the last key is not that of the block before */
    uint64_t records, raw_bytes, problems;
};

static void tell(struct check *check, uint64_t offset, const char *message)
{
    check->problems++;
    check->found(check->context, check->path, offset, message);
}

/* The key in the index is a beginning of the block's first key, and just long enough to be greater than the last one. */
static bool index_key_right(const struct check *check, struct wb_slice index_key, struct wb_slice first)
{
    struct wb_slice last = wb_slice(check->key, check->key_len);

    if (!wb_slice_starts(first, index_key))
        return false;
    if (!check->any || check->gap)
        return check->any || check->gap || index_key.len == 0;
    return index_key.len == wb_table_key_shared(last, first) + 1;
}

/* NULL, or what is wrong. */
static const char *check_record(struct check *check, uint64_t block, const struct wb_table_block_view *view, uint32_t index, const char **p)
{
    const char *start = *p, *end = view->raw + view->end;
    struct wb_table_record_head head;
    bool restart = index % TABLE_RESTART == 0;

    if (!wb_table_record_head_get(p, end, restart ? 0 : check->key_len, &head))
        return "a record is damaged";
    if (restart && wb_table_block_restart(view, index / TABLE_RESTART) != (uint32_t)(start - view->raw))
        return "a restart point is wrong";
    struct wb_slice fresh = wb_slice(*p, head.fresh), rest = wb_slice(check->key + head.shared, check->key_len - head.shared);
    if (index == 0 && !index_key_right(check, wb_table_block_key(check->table, block), fresh))
        return "the index has a wrong key for this block";
    if (check->any && wb_table_key_compare(fresh, rest) <= 0)
        return "keys do not ascend";
    memcpy(check->key + head.shared, fresh.ptr, fresh.len);
    check->key_len = head.shared + head.fresh;
    check->any = true;
    check->gap = false;
    *p += head.fresh + head.value;
    check->records++;
    check->raw_bytes += check->key_len + head.value;
    return NULL;
}

static const char *check_records(struct check *check, uint64_t block, const struct wb_table_block_view *view)
{
    const char *p = view->raw, *wrong = NULL;

    if (view->records != wb_table_block_records(check->table, block))
        return "the index has another number of records for this block";
    for (uint32_t i = 0; i < view->records && !wrong; i++)
        wrong = check_record(check, block, view, i, &p);
    if (!wrong && p != view->raw + view->end)
        wrong = "there are bytes between the records and the restart points";
    return wrong;
}

static int check_block(struct check *check, uint64_t block)
{
    const struct wb_table_block_place *place = &check->table->places[block];
    size_t size = (size_t)(place[1].offset - place->offset);
    struct wb_table_block_view view;
    const char *wrong = NULL;
    int err;

    wb_buf_clear(&check->bytes);
    err = wb_buf_reserve(&check->bytes, size);
    if (err == 0)
        err = wb_file_read_exact(&check->table->file, place->offset, check->bytes.ptr, size);
    if (err == 0)
        err = wb_table_block_unpack(check->zstd, wb_slice(check->bytes.ptr, size), place->offset, TABLE_BLOCK_RECORDS, check->path,
                                    &check->raw, &view);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        wrong = wb_error_message();
    else
        wrong = check_records(check, block, &view);
    if (wrong) {
        tell(check, place->offset, wrong);
        check->gap = true;
    }
    return 0;
}

static int check_all(struct check *check)
{
    const struct wb_table_foot *foot = &check->table->foot;
    int err = 0;

    check->zstd = ZSTD_createDCtx();
    check->key = wb_alloc(WB_TABLE_KEY_MAX);
    if (!check->zstd || !check->key)
        return wb_fail_nomem();
    wb_file_sequential(&check->table->file);
    for (uint64_t block = 0; block < foot->blocks && err == 0; block++)
        err = check_block(check, block);
    if (err == 0 && check->problems == 0 && (check->raw_bytes != foot->raw_bytes || check->records != foot->records))
        tell(check, foot->file_bytes - TABLE_FOOT_BYTES, "the foot counts other bytes than there are in the records");
    return err;
}

int wb_table_verify(const char *path, const char *kind, wb_table_found found, void *context, uint64_t *records_out)
{
    struct check check = {.path = path, .found = found, .context = context};
    int err = wb_table_open(path, kind, &check.table);

    *records_out = 0;
    if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        tell(&check, 0, wb_error_message());
        return 0;
    }
    if (err == 0)
        err = check_all(&check);
    *records_out = check.records;
    wb_buf_release(&check.bytes);
    wb_buf_release(&check.raw);
    ZSTD_freeDCtx(check.zstd);
    wb_free(check.key);
    wb_table_close(check.table);
    return err;
}
