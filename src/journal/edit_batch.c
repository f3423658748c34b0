/*
 * edit_batch.c - several records as one, packed with zstd. Pages that follow one another have most of their links in common.
 *
 * A batch is a record whose count is the number of records in it, whose time (until_ms) is their length before packing, and whose text is a zstd frame of
 * them; each is a record as in a log, with salt 0 and no predecessor. It never touches a file.
 */
#include "journal/edit_batch.h"
#include "base/error.h"
#include "journal/edit.h"

#include <zstd.h>

enum {
    LEVEL = 3,
    UNPACKED_MAX = 2 * WB_EDIT_BYTES_MAX, /* one record of the largest size may come behind almost a whole batch */
};

int wb_edit_batch_add(struct wb_edit_batch *batch, const struct wb_edit *edit)
{
    int err = wb_edit_encode(edit, 0, &batch->records);

    batch->count += err == 0;
    return err;
}

int wb_edit_batch_pack(struct wb_edit_batch *batch, struct wb_edit *edit_out)
{
    size_t bound = ZSTD_compressBound(batch->records.len);

    *edit_out = (struct wb_edit){0};
    if (!batch->count)
        return 0;
    wb_buf_clear(&batch->packed);
    int err = wb_buf_reserve(&batch->packed, bound);
    if (err < 0)
        return err;
    size_t packed = ZSTD_compress(batch->packed.ptr, bound, batch->records.ptr, batch->records.len, LEVEL);
    if (ZSTD_isError(packed))
        return wb_fail(WB_E_NOMEM, "zstd: %s", ZSTD_getErrorName(packed));
    batch->packed.len = packed;
    *edit_out = (struct wb_edit){.kind = WB_EDIT_BATCH, .count = batch->count, .until_ms = (int64_t)batch->records.len,
                                 .text = wb_buf_slice(&batch->packed)};
    batch->count = 0;
    wb_buf_clear(&batch->records);
    return 0;
}

void wb_edit_batch_release(struct wb_edit_batch *batch)
{
    wb_buf_release(&batch->records);
    wb_buf_release(&batch->packed);
    *batch = (struct wb_edit_batch){.count = 0};
}

int wb_edit_batch_reader_start(const struct wb_edit *batch, struct wb_edit_batch_reader *unpacked_out)
{
    unpacked_out->at = 0;
    unpacked_out->left = 0;
    wb_buf_clear(&unpacked_out->records);
    if (batch->until_ms < WB_EDIT_HEAD_BYTES || batch->until_ms > UNPACKED_MAX)
        return wb_fail(WB_E_CORRUPT, "a batch of records has a length that none has");
    size_t bytes = (size_t)batch->until_ms;
    int err = wb_buf_reserve(&unpacked_out->records, bytes);
    if (err < 0)
        return err;
    if (ZSTD_decompress(unpacked_out->records.ptr, bytes, batch->text.ptr, batch->text.len) != bytes)
        return wb_fail(WB_E_CORRUPT, "a batch of records cannot be unpacked");
    unpacked_out->records.len = bytes;
    unpacked_out->left = batch->count;
    return 0;
}

static int next_record(struct wb_edit_batch_reader *unpacked, struct wb_edit *edit_out)
{
    const char *p = unpacked->records.ptr + unpacked->at;
    size_t left = unpacked->records.len - unpacked->at, length = left >= WB_EDIT_HEAD_BYTES ? wb_edit_length(p) : 0;

    if (length == 0 || length > left || !wb_edit_is_intact(wb_slice(p, length), 0))
        return WB_E_CORRUPT;
    unpacked->at += length;
    int err = wb_edit_decode(wb_slice(p, length), edit_out);
    return err == 0 && (edit_out->prev.log != 0 || edit_out->kind == WB_EDIT_BATCH) ? WB_E_CORRUPT : err;
}

int wb_edit_batch_reader_next(struct wb_edit_batch_reader *unpacked, struct wb_edit *edit_out)
{
    *edit_out = (struct wb_edit){0};
    if (unpacked->left == 0)
        return 0;
    int err = next_record(unpacked, edit_out);
    /* What is behind the last one belongs to none. */
    if (err == 0 && --unpacked->left == 0 && unpacked->at != unpacked->records.len)
        err = WB_E_CORRUPT;
    if (err == 0)
        return 1;
    unpacked->left = 0;
    *edit_out = (struct wb_edit){0};
    return err == WB_E_CORRUPT ? wb_fail(WB_E_CORRUPT, "a batch of records does not add up") : err;
}

void wb_edit_batch_reader_release(struct wb_edit_batch_reader *unpacked)
{
    wb_buf_release(&unpacked->records);
    *unpacked = (struct wb_edit_batch_reader){.at = 0};
}
