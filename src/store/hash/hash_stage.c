/*
 * hash_stage.c - the records of a writer until it commits. They stay in memory, because only the commit knows the order
 * in which they go to the disk. If there are too many, they are moved to a file without a name, and are read from there
 * when their bucket is written.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/hash/hash_store.h"

enum { STORED_PART = 4 }; /* what a record frees when it dies is not known before it is compressed; an estimate */

/* Computes the digests of the records that have none. */
static int digest_records(struct wb_log_writer *writer)
{
    WB_VEC(struct wb_record_digest) digests = WB_VEC_INIT;
    int err = 0;

    WB_CHECK(writer->group_at <= writer->ops.count);
    for (size_t i = writer->group_at; i < writer->ops.count && err == 0; i++) {
        struct wb_log_op *op = &writer->ops.items[i];
        if (wb_log_op_has_bytes(op->kind) && op->record.len && !op->digested)
            err =
                wb_vec_push(&digests, (struct wb_record_digest){op->record.ptr, op->record.len, op->entry.body_bytes});
    }
    if (err == 0 && digests.count)
        err = wb_page_record_digest(digests.items, digests.count);
    wb_vec_release(&digests);
    for (size_t i = writer->group_at; i < writer->ops.count && err == 0; i++) {
        struct wb_log_op *op = &writer->ops.items[i];
        if (!wb_log_op_has_bytes(op->kind) || op->record.len == 0 || op->digested)
            continue;
        memcpy(op->sha1, op->record.ptr + WB_MD5_BYTES, WB_SHA1_BYTES); /* the record starts with its digests */
        op->entry.stored_bytes = (uint32_t)(op->record.len / STORED_PART + 1);
        op->digested = true;
    }
    return err;
}

/*
 * Makes the file, which disappears when it is closed, however the process ends. Another process may remove the name of
 * ours at any moment, as we remove it ourselves, but it cannot open ours.
 */
static int open_staging(struct wb_log *log)
{
    char *path = wb_path_join(log->dir, WB_HASH_STAGING_NAME);
    int err = path ? WB_E_INVALID : WB_E_NOMEM;

    WB_CHECK(log->hash->staging.fd < 0);
    while (err == WB_E_INVALID) {
        err = wb_path_unlink(path); /* one that a process left that died at just this moment */
        if (err == 0)
            err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &log->hash->staging);
    }
    if (err == 0)
        err = wb_path_unlink(path);
    if (err < 0)
        wb_file_close(&log->hash->staging);
    wb_free(path);
    return err;
}

/* Moves all records to the file. */
static int spill(struct wb_log *log)
{
    struct wb_hash *hash = log->hash;
    int err = hash->staging.fd < 0 ? open_staging(log) : 0;

    for (size_t i = 0; i < log->writer->ops.count && err == 0; i++) {
        struct wb_log_op *op = &log->writer->ops.items[i];
        if (!wb_log_op_has_bytes(op->kind) || op->record.len == 0)
            continue;
        WB_CHECK(op->digested);
        err = wb_file_write_at(&hash->staging, hash->staged_bytes, op->record.ptr, op->record.len);
        if (err < 0)
            break;
        op->staged_at = hash->staged_bytes;
        op->staged_bytes = op->record.len;
        op->staged_check = wb_hash64(op->record.ptr, op->record.len);
        hash->staged_bytes += op->record.len;
        wb_buf_release(&op->record);
    }
    return err;
}

int wb_hash_stage(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;
    uint64_t pending = 0;
    int err = digest_records(writer);

    WB_CHECK(log->hash != NULL);
    writer->group_at = writer->ops.count;
    writer->group_bytes = 0;
    for (size_t i = 0; i < writer->ops.count && err == 0; i++)
        if (wb_log_op_has_bytes(writer->ops.items[i].kind))
            pending += writer->ops.items[i].record.len;
    if (err == 0 && pending > wb_log_sizes.pending_bytes)
        err = spill(log);
    if (err < 0)
        wb_error_save(err, &writer->failed);
    return err;
}

int wb_hash_staged(struct wb_log *log, const struct wb_log_op *op, struct wb_buf *record_out)
{
    WB_CHECK(op->staged_bytes > 0);
    WB_CHECK(log->hash->staging.fd >= 0);
    wb_buf_clear(record_out);
    int err = wb_buf_reserve(record_out, (size_t)op->staged_bytes);
    if (err == 0)
        err = wb_file_read_exact(&log->hash->staging, op->staged_at, record_out->ptr, (size_t)op->staged_bytes);
    if (err < 0)
        return err;
    record_out->len = (size_t)op->staged_bytes;
    if (wb_hash64(record_out->ptr, record_out->len) != op->staged_check)
        return wb_fail(WB_E_CORRUPT, "a page that waited to be committed has changed on the disk");
    return 0;
}

void wb_hash_stage_clear(struct wb_log *log)
{
    WB_CHECK(log->hash != NULL);
    wb_file_close(&log->hash->staging); /* which frees its space */
    log->hash->staged_bytes = 0;
}
