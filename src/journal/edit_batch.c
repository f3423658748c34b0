/*
 * edit_batch.c - packs several records into one with zstd, and unpacks them. It never touches a file.
 *
 * This saves much space, because pages that were imported one after another have most of their links in common.
 *
 *   BATCH record:   count     number of records in it
 *                   until_ms  their length before packing, in bytes
 *                   text      a zstd frame:  [ record | record | record ... ]
 *
 * Each of these is a record as in a log (edit.c), but its salt is 0 and it has no predecessor. A batch is valid if
 * and only if the frame unpacks to exactly the stated length, and that is exactly the stated number of valid records,
 * none of which is a batch itself.
 */
#include "journal/edit_batch.h"
#include "base/check.h"
#include "base/error.h"
#include "journal/edit.h"

#include <zstd.h>

enum {
    LEVEL = 3,
    UNPACKED_MAX = 2 * WB_EDIT_BYTES_MAX,
};

_Static_assert(WB_EDIT_BATCH_BYTES + WB_EDIT_BYTES_MAX <= UNPACKED_MAX,
               "a batch that is almost full can take one more record, of any size");

int wb_edit_batch_add(struct wb_edit_batch *batch, const struct wb_edit *edit)
{
    size_t before = batch->records.len;
    int err = wb_edit_encode(edit, 0, &batch->records);

    WB_CHECK(edit->prev.log == 0); /* the records of a batch belong to no chain */
    WB_CHECK(before <= WB_EDIT_BATCH_BYTES);
    batch->count += err == 0;
    return err;
}

int wb_edit_batch_pack(struct wb_edit_batch *batch, struct wb_edit *edit_out)
{
    size_t bound = ZSTD_compressBound(batch->records.len);

    WB_CHECK((batch->count == 0) == (batch->records.len == 0));
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
    WB_CHECK(packed <= bound);
    WB_CHECK(batch->records.len <= UNPACKED_MAX);
    batch->packed.len = packed;
    *edit_out = (struct wb_edit){.kind = WB_EDIT_BATCH, .count = batch->count, .until_ms = (int64_t)batch->records.len,
                                 .text = wb_buf_slice(&batch->packed)};
    WB_CHECK(edit_out->count > 0);
    WB_CHECK(edit_out->text.len > 0);
    batch->count = 0;
    wb_buf_clear(&batch->records);
    return 0;
}

void wb_edit_batch_release(struct wb_edit_batch *batch)
{
    WB_CHECK(batch->count == 0 || batch->records.len > 0);
    wb_buf_release(&batch->records);
    wb_buf_release(&batch->packed);
    *batch = (struct wb_edit_batch){.count = 0};
}

int wb_edit_batch_reader_start(const struct wb_edit *batch, struct wb_edit_batch_reader *reader_out)
{
    WB_CHECK(batch->kind == WB_EDIT_BATCH);
    reader_out->at = 0;
    reader_out->left = 0;
    wb_buf_clear(&reader_out->records);
    if (batch->until_ms < WB_EDIT_HEAD_BYTES || batch->until_ms > UNPACKED_MAX)
        return wb_fail(WB_E_CORRUPT, "a batch of journal records states an impossible length");
    size_t bytes = (size_t)batch->until_ms;
    int err = wb_buf_reserve(&reader_out->records, bytes);
    if (err < 0)
        return err;
    if (ZSTD_decompress(reader_out->records.ptr, bytes, batch->text.ptr, batch->text.len) != bytes)
        return wb_fail(WB_E_CORRUPT, "a batch of journal records cannot be unpacked");
    reader_out->records.len = bytes;
    reader_out->left = batch->count;
    WB_CHECK(reader_out->records.len <= reader_out->records.cap);
    return 0;
}

static int next_record(struct wb_edit_batch_reader *reader, struct wb_edit *edit_out)
{
    WB_CHECK(reader->left > 0);
    WB_CHECK(reader->at <= reader->records.len);
    const char *p = reader->records.ptr + reader->at;
    size_t left = reader->records.len - reader->at, length = left >= WB_EDIT_HEAD_BYTES ? wb_edit_length(p) : 0;

    if (length == 0 || length > left || !wb_edit_is_intact(wb_slice(p, length), 0))
        return WB_E_CORRUPT;
    reader->at += length;
    WB_CHECK(reader->at <= reader->records.len);
    int err = wb_edit_decode(wb_slice(p, length), edit_out);
    return err == 0 && (edit_out->prev.log != 0 || edit_out->kind == WB_EDIT_BATCH) ? WB_E_CORRUPT : err;
}

int wb_edit_batch_reader_next(struct wb_edit_batch_reader *reader, struct wb_edit *edit_out)
{
    *edit_out = (struct wb_edit){0};
    WB_CHECK(reader->at <= reader->records.len);
    if (reader->left == 0)
        return 0;
    int err = next_record(reader, edit_out);
    /* No bytes may follow the last record. */
    if (err == 0 && --reader->left == 0 && reader->at != reader->records.len)
        err = WB_E_CORRUPT;
    if (err == 0)
        return 1;
    reader->left = 0;
    *edit_out = (struct wb_edit){0};
    return err == WB_E_CORRUPT ? wb_fail(WB_E_CORRUPT, "a batch of journal records is damaged") : err;
}

void wb_edit_batch_reader_release(struct wb_edit_batch_reader *reader)
{
    wb_buf_release(&reader->records);
    *reader = (struct wb_edit_batch_reader){.at = 0};
}
