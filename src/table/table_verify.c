/*
 * table_verify.c - reads a whole table and reports what is wrong with it.
 *
 * It continues after a damaged block. It also checks what a cursor takes on trust: that keys ascend, that restart
 * points and index keys belong to the records, and that the sizes add up to what the foot says. It never repairs
 * anything.
 */
#include "base/error.h"
#include "base/mem.h"
#include "table/table_read.h"

#include <stdio.h>

struct table_check {
    struct wb_table *table;
    const char *path;
    wb_table_found found;
    void *context;
    ZSTD_DCtx *zstd;
    struct wb_buf bytes, raw; /* the current block, as in the file and decompressed */
    char *key;                /* the last key that was read */
    size_t key_len;
    bool any;                 /* there is a last key */
    bool gap;                 /* the previous block was damaged: the last key is older than that block */
    uint64_t records, raw_bytes, problems;
};

static void report(struct table_check *check, uint64_t offset, const char *message)
{
    WB_CHECK(message != NULL);
    check->problems++;
    check->found(check->context, check->path, offset, message);
}

/* The index key must be the shortest prefix of the block's first key that is greater than the last key before it. */
static bool index_key_right(const struct table_check *check, struct wb_slice index_key, struct wb_slice first)
{
    struct wb_slice last = wb_slice(check->key, check->key_len);

    WB_CHECK(check->key_len <= WB_TABLE_KEY_MAX);
    WB_CHECK(check->any || check->key_len == 0);
    if (!wb_slice_starts(first, index_key))
        return false;
    if (check->gap) /* the last key before it is not known */
        return true;
    if (!check->any)
        return index_key.len == 0;
    return index_key.len == wb_table_key_shared(last, first) + 1;
}

/* Checks the record at *p, number index of its block, and moves *p behind it. Returns what is wrong, or NULL. */
static const char *check_record(struct table_check *check, uint64_t block, const struct wb_table_block_view *view,
                                uint32_t index, const char **p)
{
    const char *start = *p, *end = view->raw + view->end;
    struct wb_table_record_head head;
    bool restart = index % TABLE_RESTART == 0;

    WB_CHECK(index < view->records);
    WB_CHECK(block < check->table->foot.blocks);
    if (!wb_table_record_head_get(p, end, restart ? 0 : check->key_len, &head))
        return "a record is damaged";
    if (restart && wb_table_block_restart(view, index / TABLE_RESTART) != (uint32_t)(start - view->raw))
        return "a restart point is wrong";
    struct wb_slice fresh = wb_slice(*p, head.fresh);
    struct wb_slice rest = wb_slice(check->key + head.shared, check->key_len - head.shared); /* of the last key */
    if (index == 0 && !index_key_right(check, wb_table_block_key(check->table, block), fresh))
        return "the index has a wrong key for this block";
    if (check->any && wb_slice_compare(fresh, rest) <= 0)
        return "keys do not ascend";
    WB_CHECK(head.shared + head.fresh <= WB_TABLE_KEY_MAX); /* wb_table_record_head_get() has checked it */
    memcpy(check->key + head.shared, fresh.ptr, fresh.len);
    check->key_len = head.shared + head.fresh;
    check->any = true;
    check->gap = false;
    *p += head.fresh + head.value;
    check->records++;
    check->raw_bytes += check->key_len + head.value;
    return NULL;
}

static const char *check_records(struct table_check *check, uint64_t block, const struct wb_table_block_view *view)
{
    const char *p = view->raw, *wrong = NULL;

    WB_CHECK(block < check->table->foot.blocks);
    if (view->records != wb_table_block_records(check->table, block))
        return "the index gives a different number of records for this block";
    for (uint32_t i = 0; i < view->records && !wrong; i++)
        wrong = check_record(check, block, view, i, &p);
    WB_CHECK(p <= view->raw + view->end);
    if (!wrong && p != view->raw + view->end)
        wrong = "there are stray bytes between the records and the restart points";
    return wrong;
}

static int check_block(struct table_check *check, uint64_t block)
{
    WB_CHECK(block < check->table->foot.blocks);
    const struct wb_table_block_place *place = &check->table->places[block];
    size_t size = (size_t)(place[1].offset - place->offset);
    struct wb_table_block_view view;
    const char *wrong = NULL;
    int err;

    WB_CHECK(size > TABLE_BLOCK_HEAD_BYTES);
    wb_buf_clear(&check->bytes);
    err = wb_buf_reserve(&check->bytes, size);
    if (err == 0)
        err = wb_file_read_exact(&check->table->file, place->offset, check->bytes.ptr, size);
    if (err == 0)
        err = wb_table_block_unpack(check->zstd, wb_slice(check->bytes.ptr, size), place->offset, TABLE_BLOCK_RECORDS,
                                    check->path, &check->raw, &view);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        wrong = wb_error_message();
    else
        wrong = check_records(check, block, &view);
    if (wrong) {
        report(check, place->offset, wrong);
        check->gap = true;
    }
    return 0;
}

static int check_all(struct table_check *check)
{
    const struct wb_table_foot *foot = &check->table->foot;
    int err = 0;

    WB_CHECK(check->records == 0);
    WB_CHECK(!check->any);
    WB_CHECK(check->table->magic == TABLE_MAGIC);
    check->zstd = ZSTD_createDCtx();
    check->key = wb_alloc(WB_TABLE_KEY_MAX);
    if (!check->zstd || !check->key)
        return wb_fail_nomem();
    wb_file_sequential(&check->table->file);
    for (uint64_t block = 0; block < foot->blocks && err == 0; block++)
        err = check_block(check, block);
    if (err == 0 && check->problems == 0 && (check->raw_bytes != foot->raw_bytes || check->records != foot->records))
        report(check, foot->file_bytes - TABLE_FOOT_BYTES, "the counts in the foot do not match the records");
    return err;
}

int wb_table_verify(const char *path, const char *kind, wb_table_found found, void *context, uint64_t *records_out)
{
    WB_CHECK(found != NULL);
    struct table_check check = {.path = path, .found = found, .context = context};

    *records_out = 0;
    int err = wb_table_open(path, kind, &check.table);
    if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        report(&check, 0, wb_error_message());
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
