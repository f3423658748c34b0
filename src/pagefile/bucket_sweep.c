/*
 * bucket_sweep.c - changes buckets in place so that none of them is ever lost.
 *
 *   1 the new images go to the double-write file, one after the other; what is longer than a bucket, to new extents
 *   2 then its index and header; both files are synced
 *   3 the images are copied to their buckets, in the order of the file, which is synced again
 *
 * If the power fails before 3, the buckets are as they were. If it fails during 3, some may be torn, but each of them
 * is in the double-write file. That file is overwritten by the next sweep, which begins only after 3.
 *
 * Offset and, in brackets, bytes. Numbers are little-endian, checksums XXH3 with 64 bits.
 *
 *   header  0 "WBDW" (4)  4 format, 1 (2)  6 zero (2)  8 key of the bucket file (8)  16 stamp (8)
 *           24 end of the extents (8)  32 number of images, n (8)  40 checksum of the index (8)  48 zero (8)
 *           56 checksum of bytes 0 to 55 (8)  64 zero (4032)
 *   images  4096, n times a bucket
 *   index   n times: number of the bucket (8), in ascending order
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pagefile/bucket.h"

enum {
    DOUBLES_FORMAT = 1,
    DOUBLES_HEADER_BYTES = 64,
    DOUBLES_CHECK_AT = 56,
    IMAGES_AT = 4096,
    COPY_BYTES = 1 << 20,
};

_Static_assert((int)IMAGES_AT == (int)WB_BUCKET_FILE_HEADER_BYTES, "an empty file is as long as a header");

/* ---- reading ----------------------------------------------------------------------------------------------- */

struct doubles_header {
    uint64_t stamp, end, count, index_check;
};

static int damaged(const struct wb_bucket_file *file, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "the double-write file of %s %s", file->file.path, what);
}

static int read_header(const struct wb_bucket_file *file, struct doubles_header *header_out)
{
    char bytes[DOUBLES_HEADER_BYTES];
    size_t got;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    *header_out = (struct doubles_header){0};
    if (!file->doubles.node)
        return damaged(file, "is missing");
    int err = wb_node_file_read_at(&file->doubles, 0, bytes, sizeof bytes, &got);
    if (err < 0)
        return err;
    bool intact = got == sizeof bytes && memcmp(bytes, "WBDW", 4) == 0 &&
                  wb_get64(bytes + DOUBLES_CHECK_AT) == wb_hash64(bytes, DOUBLES_CHECK_AT);
    if (intact && wb_get16(bytes + 4) != DOUBLES_FORMAT)
        return wb_fail_format(file->doubles.path, wb_get16(bytes + 4), DOUBLES_FORMAT);
    if (!intact || wb_get64(bytes + 8) != file->key || wb_get64(bytes + 32) > file->count)
        return damaged(file, "is damaged: its header");
    *header_out =
        (struct doubles_header){wb_get64(bytes + 16), wb_get64(bytes + 24), wb_get64(bytes + 32), wb_get64(bytes + 40)};
    return 0;
}

void wb_bucket_swept_release(struct wb_bucket_swept *swept)
{
    wb_vec_release(&swept->buckets);
    *swept = (struct wb_bucket_swept){0};
}

/* Reads the index. */
static int read_index(const struct wb_bucket_file *file, const struct doubles_header *header,
                      struct wb_bucket_swept *swept)
{
    uint64_t at = IMAGES_AT + header->count * file->bucket_bytes, before = 0;
    char *bytes = wb_alloc((size_t)header->count * 8 + 8);
    size_t got = 0;

    WB_CHECK(header->count <= file->count);
    WB_CHECK(swept->buckets.count == 0);
    if (!bytes)
        return WB_E_NOMEM;
    int err = wb_node_file_read_at(&file->doubles, at, bytes, (size_t)header->count * 8, &got);
    if (err == 0 && (got < header->count * 8 || wb_hash64(bytes, got) != header->index_check))
        err = damaged(file, "is damaged: its index");
    if (err == 0)
        err = wb_vec_reserve(&swept->buckets, (size_t)header->count + 1);
    for (uint64_t i = 0; i < header->count && err == 0; i++) {
        uint64_t number = wb_get64(bytes + i * 8);
        if (number >= file->count || (i > 0 && number <= before))
            err = damaged(file, "is damaged: its index");
        swept->buckets.items[swept->buckets.count++] = before = number;
    }
    wb_free(bytes);
    return err;
}

int wb_bucket_swept_read(const struct wb_bucket_file *file, uint64_t committed, struct wb_bucket_swept *swept_out)
{
    struct doubles_header header;
    int err = read_header(file, &header);

    *swept_out = (struct wb_bucket_swept){0};
    if (err < 0)
        return err;
    swept_out->stamp = header.stamp;
    swept_out->end = header.end;
    err = header.stamp > committed ? read_index(file, &header, swept_out) : 0;
    if (err < 0)
        wb_vec_release(&swept_out->buckets);
    return err;
}

int wb_bucket_swept_image(const struct wb_bucket_file *file, uint64_t number, char *image_out)
{
    struct wb_bucket_swept swept;
    int err = wb_bucket_swept_read(file, 0, &swept);
    size_t low = 0, high = swept.buckets.count;

    WB_CHECK(number < file->count);
    while (err == 0 && low < high) {
        size_t middle = (low + high) / 2;
        if (swept.buckets.items[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (err == 0 && (low == swept.buckets.count || swept.buckets.items[low] != number))
        err = wb_fail(WB_E_NOTFOUND, "the last sweep of %s did not change this bucket", file->file.path);
    if (err == 0)
        err = wb_node_file_read_exact(&file->doubles, IMAGES_AT + low * (uint64_t)file->bucket_bytes, image_out,
                                      file->bucket_bytes);
    wb_bucket_swept_release(&swept);
    return err;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_header(const struct wb_bucket_file *file, const struct doubles_header *header, char bytes[IMAGES_AT])
{
    WB_CHECK(header->count <= file->count);
    memset(bytes, 0, IMAGES_AT);
    memcpy(bytes, "WBDW", 4);
    wb_put16(bytes + 4, DOUBLES_FORMAT);
    wb_put64(bytes + 8, file->key);
    wb_put64(bytes + 16, header->stamp);
    wb_put64(bytes + 24, header->end);
    wb_put64(bytes + 32, header->count);
    wb_put64(bytes + 40, header->index_check);
    wb_put64(bytes + DOUBLES_CHECK_AT, wb_hash64(bytes, DOUBLES_CHECK_AT));
}

static int write_header(const struct wb_bucket_file *file, const struct doubles_header *header)
{
    char bytes[IMAGES_AT];

    put_header(file, header, bytes);
    return wb_node_file_write_at(&file->doubles, 0, bytes, sizeof bytes);
}

/* That of an empty file. */
static struct doubles_header empty_header(const struct wb_bucket_file *file)
{
    return (struct doubles_header){.end = wb_bucket_extents_at(file), .index_check = wb_hash64("", 0)};
}

void wb_bucket_doubles_header(const struct wb_bucket_file *file, char bytes_out[WB_BUCKET_FILE_HEADER_BYTES])
{
    struct doubles_header header = empty_header(file);

    put_header(file, &header, bytes_out);
}

int wb_bucket_swept_clear(const struct wb_bucket_file *file)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    struct doubles_header header = empty_header(file);
    int err = write_header(file, &header);

    if (err == 0)
        err = wb_node_file_truncate(&file->doubles, IMAGES_AT);
    return err < 0 ? err : wb_node_file_sync(&file->doubles);
}

void wb_bucket_sweep_begin(struct wb_bucket_sweep *sweep, struct wb_bucket_file *file, uint64_t stamp, uint64_t end)
{
    WB_CHECK(stamp > 0);
    WB_CHECK(end >= wb_bucket_extents_at(file));
    *sweep = (struct wb_bucket_sweep){.file = file, .stamp = stamp, .end = end, .end_before = end};
}

void wb_bucket_sweep_release(struct wb_bucket_sweep *sweep)
{
    wb_vec_release(&sweep->buckets);
    wb_buf_release(&sweep->bytes);
}

int wb_bucket_sweep_add(struct wb_bucket_sweep *sweep, const struct wb_bucket *bucket)
{
    const struct wb_bucket_file *file = sweep->file;
    size_t inside = bucket->image.len < file->bucket_bytes ? bucket->image.len : file->bucket_bytes;

    WB_CHECK(bucket->stamp == sweep->stamp);
    WB_CHECK(sweep->buckets.count == 0 || sweep->buckets.items[sweep->buckets.count - 1] < bucket->number);
    WB_CHECK(bucket->image.len - inside == bucket->overflow_bytes);
    wb_buf_clear(&sweep->bytes);
    int err = wb_buf_reserve(&sweep->bytes, file->bucket_bytes);
    if (err < 0)
        return err;
    memset(sweep->bytes.ptr, 0, file->bucket_bytes);
    memcpy(sweep->bytes.ptr, bucket->image.ptr, inside);
    err = wb_node_file_write_at(&file->doubles, IMAGES_AT + sweep->buckets.count * (uint64_t)file->bucket_bytes,
                                sweep->bytes.ptr, file->bucket_bytes);
    if (err == 0 && bucket->overflow_bytes)
        err = wb_node_file_write_at(&file->file, bucket->overflow_at, bucket->image.ptr + inside,
                                    (size_t)bucket->overflow_bytes);
    return err < 0 ? err : wb_vec_push(&sweep->buckets, bucket->number);
}

/* Step 2. */
static int end_doubles(struct wb_bucket_sweep *sweep)
{
    const struct wb_bucket_file *file = sweep->file;
    struct doubles_header header = {sweep->stamp, sweep->end, sweep->buckets.count, 0};
    uint64_t at = IMAGES_AT + header.count * file->bucket_bytes;

    WB_CHECK(sweep->buckets.count > 0);
    wb_buf_clear(&sweep->bytes);
    int err = wb_buf_reserve(&sweep->bytes, sweep->buckets.count * 8);
    if (err < 0)
        return err;
    for (size_t i = 0; i < sweep->buckets.count; i++)
        wb_put64(sweep->bytes.ptr + i * 8, sweep->buckets.items[i]);
    sweep->bytes.len = sweep->buckets.count * 8;
    header.index_check = wb_hash64(sweep->bytes.ptr, sweep->bytes.len);
    err = wb_node_file_write_at(&file->doubles, at, sweep->bytes.ptr, sweep->bytes.len);
    if (err == 0)
        err = write_header(file, &header);
    if (err == 0) /* nothing of an earlier sweep stays: it may have been taken down */
        err = wb_node_file_truncate(&file->doubles, at + sweep->bytes.len);
    if (err == 0)
        err = wb_node_file_sync(&file->doubles);
    if (err == 0 && sweep->end > sweep->end_before)
        err = wb_node_file_sync(&file->file);
    return err;
}

/* Copies images to their buckets; neighbours together. */
static int copy_images(struct wb_bucket_sweep *sweep)
{
    const struct wb_bucket_file *file = sweep->file;
    size_t most = COPY_BYTES / file->bucket_bytes ? COPY_BYTES / file->bucket_bytes : 1, run;
    int err = wb_buf_reserve(&sweep->bytes, most * file->bucket_bytes);

    WB_CHECK(most > 0);
    for (size_t i = 0; i < sweep->buckets.count && err == 0; i += run) {
        uint64_t first = sweep->buckets.items[i];
        for (run = 1; run < most && i + run < sweep->buckets.count; run++)
            if (sweep->buckets.items[i + run] != first + run)
                break;
        err = wb_node_file_read_exact(&file->doubles, IMAGES_AT + i * (uint64_t)file->bucket_bytes, sweep->bytes.ptr,
                                      run * file->bucket_bytes);
        if (err == 0)
            err = wb_node_file_write_at(&file->file, wb_bucket_at(file, first), sweep->bytes.ptr,
                                        run * file->bucket_bytes);
    }
    return err;
}

int wb_bucket_sweep_end(struct wb_bucket_sweep *sweep)
{
    WB_CHECK(sweep->file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(sweep->buckets.count > 0);
    int err = end_doubles(sweep);
    wb_buf_clear(&sweep->bytes);
    if (err == 0)
        err = copy_images(sweep);
    return err < 0 ? err : wb_node_file_sync(&sweep->file->file);
}
