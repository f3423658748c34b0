/*
 * bucket_kept.c - keeps damaged bytes. A bucket whose image cannot be read is rewritten all the same, because new
 * pages must be stored in it. What was in its place may still be of use to somebody who can repair it, so these bytes
 * go to an extent, and the versions that were in the bucket point to it: reading one of them says what happened.
 *
 * Offset and, in brackets, bytes. Numbers are little-endian, checksums XXH3 with 64 bits.
 *
 *   head   0 "WBKB" (4)  4 format, 1 (2)  6 zero (2)  8 key of the file that had the bytes (8)
 *          16 number of the bucket (8)  24 where they were in that file (8)  32 how many there are, n (8)
 *          40 checksum of the bytes (8)  48 zero (8)  56 checksum of bytes 0 to 55 (8)
 *   bytes  64, n
 *
 * Nothing in it depends on where the extent is, so it can be copied as it is.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "pagefile/bucket.h"

enum {
    KEPT_FORMAT = 1,
    KEPT_HEAD_BYTES = 64,
    KEPT_CHECK_AT = 56,
    KEPT_BYTES_MIN = 64, /* so that an extent is never shorter than the header of a block */
};

_Static_assert((int)KEPT_HEAD_BYTES + (int)KEPT_BYTES_MIN >= (int)WB_BLOCK_HEADER_BYTES, "an extent of any kind");

bool wb_bucket_kept_is(struct wb_slice extent)
{
    return extent.len >= KEPT_HEAD_BYTES && memcmp(extent.ptr, "WBKB", 4) == 0 &&
           wb_get64(extent.ptr + KEPT_CHECK_AT) == wb_hash64(extent.ptr, KEPT_CHECK_AT) &&
           wb_get64(extent.ptr + 32) == extent.len - KEPT_HEAD_BYTES;
}

int wb_bucket_kept_error(struct wb_slice extent)
{
    WB_CHECK(wb_bucket_kept_is(extent));
    if (wb_get16(extent.ptr + 4) != KEPT_FORMAT)
        return wb_fail_format("an extent of damaged bytes", wb_get16(extent.ptr + 4), KEPT_FORMAT);
    return wb_fail(WB_E_CORRUPT,
                   "the page was in bytes that were damaged; what is left of them is here: the %llu bytes from offset "
                   "%llu of an earlier state of the file",
                   (unsigned long long)wb_get64(extent.ptr + 32), (unsigned long long)wb_get64(extent.ptr + 24));
}

/* Reads up to len bytes at `at`, and appends zeros for those that the file does not have. */
static int read_as_is(const struct wb_bucket_file *file, uint64_t at, size_t len, struct wb_buf *bytes_out)
{
    WB_CHECK(len > 0);
    size_t got = 0;
    int err = wb_buf_reserve(bytes_out, len);

    if (err == 0)
        err = wb_node_file_read_at(&file->file, at, bytes_out->ptr + bytes_out->len, len, &got);
    if (err < 0)
        return err;
    memset(bytes_out->ptr + bytes_out->len + got, 0, len - got);
    bytes_out->len += len;
    return 0;
}

int wb_bucket_read_bytes(const struct wb_bucket_file *file, uint64_t number, struct wb_buf *bytes_out)
{
    struct wb_bucket head = {0};
    uint64_t image_bytes, size = 0;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(number < file->count);
    wb_buf_clear(bytes_out);
    int err = read_as_is(file, wb_bucket_at(file, number), file->bucket_bytes, bytes_out);
    if (err == 0)
        err = wb_bucket_head_format(file, number, bytes_out->ptr);
    if (err == 0)
        err = wb_node_file_size(&file->file, &size);
    if (err < 0 || wb_bucket_head_check(file, number, bytes_out->ptr, &head, &image_bytes) ||
        head.overflow_bytes == 0 || head.overflow_at > size || head.overflow_bytes > size - head.overflow_at)
        return err; /* where its rest is, if it has one, is not known */
    return read_as_is(file, head.overflow_at, (size_t)head.overflow_bytes, bytes_out);
}

int wb_bucket_extent_read_bytes(const struct wb_bucket_file *file, uint64_t at, uint64_t bytes,
                                struct wb_buf *bytes_out)
{
    uint64_t size;

    WB_CHECK(at >= wb_bucket_extents_at(file));
    wb_buf_clear(bytes_out);
    int err = wb_node_file_size(&file->file, &size);
    if (err < 0)
        return err;
    uint64_t there = at < size ? size - at : 0;
    there = there < bytes ? there : bytes;
    return read_as_is(file, at, there > KEPT_BYTES_MIN ? (size_t)there : KEPT_BYTES_MIN, bytes_out);
}

int wb_bucket_keep(const struct wb_bucket_file *file, const struct wb_bucket_origin *origin, struct wb_slice bytes,
                   uint64_t *end, uint64_t *bytes_out)
{
    char head[KEPT_HEAD_BYTES] = "WBKB";

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(bytes.len >= KEPT_BYTES_MIN);
    *bytes_out = KEPT_HEAD_BYTES + bytes.len;
    if (*end + *bytes_out > WB_BUCKET_EXTENT_MAX)
        return wb_fail(WB_E_LIMIT, "%s would be too long", file->file.path);
    wb_put16(head + 4, KEPT_FORMAT);
    wb_put64(head + 8, origin->key);
    wb_put64(head + 16, origin->bucket);
    wb_put64(head + 24, origin->at);
    wb_put64(head + 32, bytes.len);
    wb_put64(head + 40, wb_hash64(bytes.ptr, bytes.len));
    wb_put64(head + KEPT_CHECK_AT, wb_hash64(head, KEPT_CHECK_AT));
    int err = wb_node_file_write_at(&file->file, *end, head, sizeof head);
    if (err == 0)
        err = wb_node_file_write_at(&file->file, *end + sizeof head, bytes.ptr, bytes.len);
    if (err == 0)
        *end += *bytes_out;
    return err;
}
