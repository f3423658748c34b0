/*
 * bucket_image.c - the image of a bucket as bytes, and reading it.
 *
 * Offset and, in brackets, bytes. Numbers are little-endian, ids big-endian, checksums XXH3 with 64 bits.
 *
 *   head      0 "WBBK" (4)  4 format, 1 (2)  6 zero (2)  8 key of the file (8)  16 number of the bucket (8)
 *             24 stamp (8)  32 length of the image (8)  40 where its rest is (8)  48 copies of entries, p (4)
 *             52 versions, v (4)  56 checksum of the part in the bucket, without the head (8)
 *             64 checksum of the rest (8)  72 zero (16)  88 checksum of bytes 0 to 87 (8)
 *   versions  96, v times 64 bytes: id (16), logical (8), segment (4), slot (2), slot in the block (2),
 *             stored bytes (4), zero (4), dead since (8), extent (8), its length (8)
 *   copies    p times 96 bytes: id (16), logical (8), segment (4), slot (2), status (2), time (8), body bytes (4),
 *             stored bytes (4), epoch (8), content (8), floor (8), lifetime (2), days left (2), flags (4), site (8),
 *             zero (8)
 *   block     the rest of the image (block.c); may be missing
 *
 * Versions are sorted by id, segment, logical and slot, copies by id. What follows the image in its bucket is zero.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pagefile/bucket.h"

#include <stdio.h>
#include <unistd.h>

enum {
    IMAGE_FORMAT = 1,
    HEAD_CHECK_AT = 88,
    HAS_HISTORY = 1,
    READ_TRIES = 12,
};

#define IMAGE_MAX ((uint64_t)1 << 36) /* far beyond what a draft makes; keeps sums from running over */

void wb_bucket_release(struct wb_bucket *bucket)
{
    wb_vec_release(&bucket->versions);
    wb_vec_release(&bucket->pages);
    wb_buf_release(&bucket->image);
    wb_block_index_release(&bucket->index);
    *bucket = (struct wb_bucket){0};
}

int wb_bucket_corrupt(const struct wb_bucket_file *file, uint64_t number, const char *why)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(number < file->count);
    return wb_fail(WB_E_CORRUPT, "%s is damaged: bucket %llu at offset %llu: %s", file->file.path,
                   (unsigned long long)number, (unsigned long long)wb_bucket_at(file, number), why);
}

/* ---- making bytes ---------------------------------------------------------------------------------------- */

static void put_version(char *to, const struct wb_bucket_version *version)
{
    wb_pageid_put(version->id, to);
    wb_put64(to + 16, version->place.logical);
    wb_put32(to + 24, version->place.segment);
    wb_put16(to + 28, version->place.slot);
    wb_put16(to + 30, version->block_slot);
    wb_put32(to + 32, version->stored_bytes);
    wb_put32(to + 36, 0);
    wb_put64(to + 40, version->dead);
    wb_put64(to + 48, version->extent_at);
    wb_put64(to + 56, version->extent_bytes);
}

static void put_page(char *to, const struct wb_bucket_page *page)
{
    const struct wb_catalog_entry *entry = &page->entry;

    WB_CHECK(entry->place.segment > 0);
    WB_CHECK(!entry->ended);
    memset(to, 0, WB_BUCKET_PAGE_BYTES);
    wb_pageid_put(page->id, to);
    wb_put64(to + 16, entry->place.logical);
    wb_put32(to + 24, entry->place.segment);
    wb_put16(to + 28, entry->place.slot);
    wb_put16(to + 30, entry->status);
    wb_put64(to + 32, (uint64_t)entry->time_ms);
    wb_put32(to + 40, entry->body_bytes);
    wb_put32(to + 44, entry->stored_bytes);
    wb_put64(to + 48, entry->epoch);
    wb_put64(to + 56, entry->content);
    /* As in the row of the catalog: if the page has a history, that knows the floor. */
    wb_put64(to + 64, (uint64_t)(entry->history ? INT64_MIN : entry->floor_ms));
    wb_put16(to + 72, entry->lifetime);
    wb_put16(to + 74, entry->lifetime_count);
    wb_put32(to + 76, entry->history ? HAS_HISTORY : 0);
    wb_put64(to + 80, entry->site);
}

int wb_bucket_encode(const struct wb_bucket_file *file, struct wb_slice block, struct wb_bucket *bucket)
{
    size_t directory = bucket->versions.count * WB_BUCKET_VERSION_BYTES + bucket->pages.count * WB_BUCKET_PAGE_BYTES;
    size_t bytes = WB_BUCKET_HEAD_BYTES + directory + block.len;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(bucket->number < file->count);
    WB_CHECK(bucket->stamp > 0);
    WB_CHECK((bytes > file->bucket_bytes) == (bucket->overflow_at != 0));
    wb_buf_clear(&bucket->image);
    int err = wb_buf_reserve(&bucket->image, bytes);
    if (err < 0)
        return err;
    char *head = bucket->image.ptr, *to = head + WB_BUCKET_HEAD_BYTES;
    for (size_t i = 0; i < bucket->versions.count; i++, to += WB_BUCKET_VERSION_BYTES)
        put_version(to, &bucket->versions.items[i]);
    for (size_t i = 0; i < bucket->pages.count; i++, to += WB_BUCKET_PAGE_BYTES)
        put_page(to, &bucket->pages.items[i]);
    if (block.len)
        memcpy(to, block.ptr, block.len);
    bucket->image.len = bytes;
    size_t inside = bytes < file->bucket_bytes ? bytes : file->bucket_bytes;
    bucket->overflow_bytes = bytes - inside;
    memset(head, 0, WB_BUCKET_HEAD_BYTES);
    memcpy(head, "WBBK", 4);
    wb_put16(head + 4, IMAGE_FORMAT);
    wb_put64(head + 8, file->key);
    wb_put64(head + 16, bucket->number);
    wb_put64(head + 24, bucket->stamp);
    wb_put64(head + 32, bytes);
    wb_put64(head + 40, bucket->overflow_at);
    wb_put32(head + 48, (uint32_t)bucket->pages.count);
    wb_put32(head + 52, (uint32_t)bucket->versions.count);
    wb_put64(head + 56, wb_hash64(head + WB_BUCKET_HEAD_BYTES, inside - WB_BUCKET_HEAD_BYTES));
    wb_put64(head + 64, wb_hash64(head + inside, bytes - inside));
    wb_put64(head + HEAD_CHECK_AT, wb_hash64(head, HEAD_CHECK_AT));
    return 0;
}

/* ---- taking them apart --------------------------------------------------------------------------------------- */

int wb_bucket_head_format(const struct wb_bucket_file *file, uint64_t number, const char *bytes)
{
    char what[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    if (memcmp(bytes, "WBBK", 4) != 0 || wb_get16(bytes + 4) == IMAGE_FORMAT ||
        wb_get64(bytes + HEAD_CHECK_AT) != wb_hash64(bytes, HEAD_CHECK_AT))
        return 0;
    snprintf(what, sizeof what, "%s: bucket %llu", file->file.path, (unsigned long long)number);
    return wb_fail_format(what, wb_get16(bytes + 4), IMAGE_FORMAT);
}

const char *wb_bucket_head_check(const struct wb_bucket_file *file, uint64_t number, const char *bytes,
                                 struct wb_bucket *bucket, uint64_t *image_bytes_out)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    *image_bytes_out = 0;
    if (wb_get64(bytes + HEAD_CHECK_AT) != wb_hash64(bytes, HEAD_CHECK_AT))
        return "its head does not match its checksum";
    uint64_t image_bytes = wb_get64(bytes + 32), at = wb_get64(bytes + 40);
    uint64_t directory = (uint64_t)wb_get32(bytes + 52) * WB_BUCKET_VERSION_BYTES +
                         (uint64_t)wb_get32(bytes + 48) * WB_BUCKET_PAGE_BYTES;
    if (memcmp(bytes, "WBBK", 4) != 0 || wb_get16(bytes + 4) != IMAGE_FORMAT || wb_get16(bytes + 6) ||
        wb_get64(bytes + 72) || wb_get64(bytes + 80))
        return "its head is not one of a bucket";
    if (wb_get64(bytes + 8) != file->key || wb_get64(bytes + 16) != number)
        return "it is the image of another bucket";
    if (wb_get64(bytes + 24) == 0 || image_bytes > IMAGE_MAX || image_bytes < WB_BUCKET_HEAD_BYTES + directory ||
        (image_bytes > file->bucket_bytes ? at < wb_bucket_extents_at(file) || at > WB_BUCKET_EXTENT_MAX : at != 0))
        return "the lengths in its head are impossible";
    bucket->number = number;
    bucket->stamp = wb_get64(bytes + 24);
    bucket->overflow_at = at;
    bucket->overflow_bytes = at ? image_bytes - file->bucket_bytes : 0;
    *image_bytes_out = image_bytes;
    return NULL;
}

int wb_bucket_version_compare(const struct wb_bucket_version *version, struct wb_pageid id,
                              const struct wb_catalog_place *place)
{
    int order = wb_pageid_compare(version->id, id);

    if (order)
        return order;
    if (version->place.segment != place->segment)
        return version->place.segment < place->segment ? -1 : 1;
    if (version->place.logical != place->logical)
        return version->place.logical < place->logical ? -1 : 1;
    return version->place.slot < place->slot ? -1 : version->place.slot > place->slot;
}

static const char *decode_version(const struct wb_bucket_file *file, const char *from, struct wb_bucket *bucket)
{
    struct wb_bucket_version *version = &bucket->versions.items[bucket->versions.count];

    WB_CHECK(bucket->versions.count < bucket->versions.cap);
    *version = (struct wb_bucket_version){
        .id = wb_pageid_get(from),
        .place = {.logical = wb_get64(from + 16), .segment = wb_get32(from + 24), .slot = wb_get16(from + 28)},
        .block_slot = wb_get16(from + 30),
        .stored_bytes = wb_get32(from + 32),
        .dead = wb_get64(from + 40),
        .extent_at = wb_get64(from + 48),
        .extent_bytes = wb_get64(from + 56),
    };
    if (!wb_catalog_range_has(&file->range, version->id) || wb_bucket_of(file, version->id) != bucket->number)
        return "it has a page of another bucket";
    if (version->place.segment == 0 || wb_get32(from + 36))
        return "its directory is damaged";
    if (version->extent_at
            ? version->extent_at < wb_bucket_extents_at(file) || version->extent_at > WB_BUCKET_EXTENT_MAX ||
                  version->extent_bytes > IMAGE_MAX || version->extent_bytes < WB_BLOCK_HEADER_BYTES
            : version->extent_bytes != 0)
        return "an extent of it is nowhere in the file";
    if (bucket->versions.count && wb_bucket_version_compare(version - 1, version->id, &version->place) >= 0)
        return "its directory is not in order";
    bucket->versions.count++;
    return NULL;
}

static const char *decode_page(const char *from, struct wb_bucket *bucket)
{
    struct wb_bucket_page *page = &bucket->pages.items[bucket->pages.count];
    size_t at;

    WB_CHECK(bucket->pages.count < bucket->pages.cap);
    *page = (struct wb_bucket_page){
        .id = wb_pageid_get(from),
        .entry =
            {
                .place = {.logical = wb_get64(from + 16), .segment = wb_get32(from + 24), .slot = wb_get16(from + 28)},
                .status = wb_get16(from + 30),
                .time_ms = (int64_t)wb_get64(from + 32),
                .body_bytes = wb_get32(from + 40),
                .stored_bytes = wb_get32(from + 44),
                .epoch = wb_get64(from + 48),
                .content = wb_get64(from + 56),
                .floor_ms = (int64_t)wb_get64(from + 64),
                .lifetime = wb_get16(from + 72),
                .lifetime_count = wb_get16(from + 74),
                .history = wb_get32(from + 76) & HAS_HISTORY,
                .site = wb_get64(from + 80),
            },
    };
    if (page->entry.place.segment == 0 || page->entry.epoch == 0 || wb_get32(from + 76) > HAS_HISTORY ||
        wb_get64(from + 88))
        return "a copy in its directory is not an entry";
    if (!wb_bucket_find(bucket, page->id, &page->entry.place, &at))
        return "it does not have the latest version of a page";
    if (bucket->pages.count && wb_pageid_compare((page - 1)->id, page->id) >= 0)
        return "its directory is not in order";
    bucket->pages.count++;
    return NULL;
}

/* Whether the block has a page where the directory says. */
static bool is_in_block(const struct wb_block_index *index, const struct wb_bucket_version *version)
{
    size_t at;

    return index->entries.count > 0 && wb_block_find_slot(index, version->block_slot, &at) &&
           wb_pageid_equal(index->entries.items[at].id, version->id) &&
           !(index->entries.items[at].flags & WB_BLOCK_ENTRY_DEAD);
}

static const char *decode_block(struct wb_bucket *bucket, int *err_out)
{
    const char *block = bucket->image.ptr + bucket->block_at;
    size_t bytes = bucket->image.len - bucket->block_at;
    struct wb_block_head head;

    WB_CHECK(bucket->block_at <= bucket->image.len);
    if (bytes == 0) {
        wb_vec_clear(&bucket->index.entries);
        wb_vec_clear(&bucket->index.frames);
    } else {
        if (bytes < WB_BLOCK_HEADER_BYTES || wb_block_head_read(block, &head) < 0 || head.bytes != bytes ||
            wb_block_directory_end(&head) > bytes)
            return "the head of its block is damaged";
        *err_out = wb_block_index_read(&head, block + WB_BLOCK_HEADER_BYTES, &bucket->index);
        if (*err_out < 0)
            return "the directory of its block is damaged";
    }
    for (size_t i = 0; i < bucket->versions.count; i++)
        if (bucket->versions.items[i].extent_at == 0 && !is_in_block(&bucket->index, &bucket->versions.items[i]))
            return "a page of its directory is not in its block";
    return NULL;
}

const char *wb_bucket_decode(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket, int *err_out)
{
    const char *bytes = bucket->image.ptr, *wrong;
    uint64_t image_bytes;

    *err_out = WB_E_CORRUPT;
    wrong = wb_bucket_head_check(file, number, bytes, bucket, &image_bytes);
    if (wrong)
        return wrong;
    size_t inside = image_bytes < file->bucket_bytes ? (size_t)image_bytes : file->bucket_bytes;
    if (bucket->image.len != image_bytes)
        return "its image is too short";
    if (wb_get64(bytes + 56) != wb_hash64(bytes + WB_BUCKET_HEAD_BYTES, inside - WB_BUCKET_HEAD_BYTES) ||
        wb_get64(bytes + 64) != wb_hash64(bytes + inside, bucket->image.len - inside))
        return "its image does not match its checksum";
    uint32_t pages = wb_get32(bytes + 48), versions = wb_get32(bytes + 52);
    wb_vec_clear(&bucket->versions);
    wb_vec_clear(&bucket->pages);
    if (wb_vec_reserve(&bucket->versions, versions + 1) < 0 || wb_vec_reserve(&bucket->pages, pages + 1) < 0) {
        *err_out = WB_E_NOMEM;
        return "";
    }
    const char *from = bytes + WB_BUCKET_HEAD_BYTES;
    for (uint32_t i = 0; i < versions && !wrong; i++, from += WB_BUCKET_VERSION_BYTES)
        wrong = decode_version(file, from, bucket);
    for (uint32_t i = 0; i < pages && !wrong; i++, from += WB_BUCKET_PAGE_BYTES)
        wrong = decode_page(from, bucket);
    if (wrong)
        return wrong;
    bucket->block_at = (size_t)(from - bytes);
    wrong = decode_block(bucket, err_out);
    if (!wrong)
        *err_out = 0;
    return wrong;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Reads the rest of an image whose first bytes are there, and takes it apart. */
static int complete(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket,
                    const char **wrong_out)
{
    uint64_t image_bytes;
    int err = 0;

    WB_CHECK(bucket->image.cap >= file->bucket_bytes);
    err = wb_bucket_head_format(file, number, bucket->image.ptr);
    if (err < 0)
        return err;
    *wrong_out = wb_bucket_head_check(file, number, bucket->image.ptr, bucket, &image_bytes);
    if (*wrong_out)
        return WB_E_CORRUPT;
    bucket->image.len = image_bytes < file->bucket_bytes ? (size_t)image_bytes : file->bucket_bytes;
    if (bucket->overflow_bytes) {
        uint64_t size;
        err = wb_node_file_size(&file->file, &size);
        *wrong_out = "its rest is behind the end of the file";
        if (err == 0 && (bucket->overflow_at > size || bucket->overflow_bytes > size - bucket->overflow_at))
            err = WB_E_CORRUPT;
        if (err == 0)
            err = wb_buf_reserve(&bucket->image, (size_t)bucket->overflow_bytes);
        if (err == 0)
            err = wb_node_file_read_exact(&file->file, bucket->overflow_at, bucket->image.ptr + bucket->image.len,
                                          (size_t)bucket->overflow_bytes);
        if (err < 0)
            return err;
        bucket->image.len += (size_t)bucket->overflow_bytes;
    }
    *wrong_out = wb_bucket_decode(file, number, bucket, &err);
    return err;
}

/* Reads a bucket from its place, or from the double-write file. *wrong_out says what is wrong if it is WB_E_CORRUPT. */
static int read_once(const struct wb_bucket_file *file, uint64_t number, bool doubles, struct wb_bucket *bucket,
                     const char **wrong_out)
{
    WB_CHECK(number < file->count);
    wb_buf_clear(&bucket->image);
    int err = wb_buf_reserve(&bucket->image, file->bucket_bytes);
    if (err < 0)
        return err;
    *wrong_out = "the file ends before it";
    err = doubles
              ? wb_bucket_swept_image(file, number, bucket->image.ptr)
              : wb_node_file_read_exact(&file->file, wb_bucket_at(file, number), bucket->image.ptr, file->bucket_bytes);
    return err < 0 ? err : complete(file, number, bucket, wrong_out);
}

int wb_bucket_read(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket)
{
    const char *wrong = NULL, *ignored = NULL;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    WB_CHECK(number < file->count);
    for (unsigned i = 0; i < READ_TRIES; i++) {
        int err = read_once(file, number, false, bucket, &wrong);
        if (err == WB_E_CORRUPT) /* somebody may be writing it right now, or it is torn: then there is another copy */
            err = read_once(file, number, true, bucket, &ignored) == 0 ? 0 : err;
        if (err != WB_E_CORRUPT)
            return err;
        usleep(1u << i);
    }
    return wb_bucket_corrupt(file, number, wrong);
}

int wb_bucket_read_strictly(const struct wb_bucket_file *file, uint64_t number, struct wb_bucket *bucket)
{
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    const char *wrong = NULL;
    int err = read_once(file, number, false, bucket, &wrong);

    if (err == 0 && bucket->overflow_bytes == 0) {
        /* The image was read into the same memory as the bucket, of which it is the beginning. */
        for (size_t i = bucket->image.len; i < file->bucket_bytes && err == 0; i++)
            if (bucket->image.ptr[i] != 0)
                err = WB_E_CORRUPT;
        wrong = "there is something behind its image";
    }
    return err == WB_E_CORRUPT ? wb_bucket_corrupt(file, number, wrong) : err;
}

int wb_bucket_read_raw(const struct wb_bucket_file *file, uint64_t number, char *bytes_out, uint64_t *stamp_out)
{
    struct wb_bucket head;
    uint64_t image_bytes;
    int err = wb_node_file_read_exact(&file->file, wb_bucket_at(file, number), bytes_out, file->bucket_bytes);

    *stamp_out = 0;
    if (err < 0 || wb_bucket_head_check(file, number, bytes_out, &head, &image_bytes))
        return err;
    size_t inside = image_bytes < file->bucket_bytes ? (size_t)image_bytes : file->bucket_bytes;
    if (wb_get64(bytes_out + 56) != wb_hash64(bytes_out + WB_BUCKET_HEAD_BYTES, inside - WB_BUCKET_HEAD_BYTES))
        return 0;
    for (size_t i = inside; i < file->bucket_bytes; i++)
        if (bytes_out[i] != 0) /* the end of another image: it is torn */
            return 0;
    *stamp_out = head.stamp;
    return 0;
}

int wb_bucket_read_stamp(const struct wb_bucket_file *file, uint64_t number, uint64_t *stamp_out)
{
    char bytes[WB_BUCKET_HEAD_BYTES];
    struct wb_bucket head;
    uint64_t image_bytes;
    int err = wb_node_file_read_exact(&file->file, wb_bucket_at(file, number), bytes, sizeof bytes);

    *stamp_out = err == 0 && !wb_bucket_head_check(file, number, bytes, &head, &image_bytes) ? head.stamp : 0;
    return err;
}

bool wb_bucket_find(const struct wb_bucket *bucket, struct wb_pageid id, const struct wb_catalog_place *place,
                    size_t *at_out)
{
    size_t low = 0, high = bucket->versions.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = wb_bucket_version_compare(&bucket->versions.items[middle], id, place);
        *at_out = middle;
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at_out = low;
    return false;
}

bool wb_bucket_find_page(const struct wb_bucket *bucket, struct wb_pageid id, struct wb_catalog_entry *entry_out)
{
    size_t low = 0, high = bucket->pages.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = wb_pageid_compare(bucket->pages.items[middle].id, id);
        if (order == 0) {
            *entry_out = bucket->pages.items[middle].entry;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *entry_out = (struct wb_catalog_entry){0};
    return false;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

int wb_bucket_reader_init(struct wb_bucket_reader *reader)
{
    *reader = (struct wb_bucket_reader){0};
    return wb_block_reader_new(&reader->zstd);
}

void wb_bucket_reader_release(struct wb_bucket_reader *reader)
{
    wb_block_reader_free(reader->zstd);
    wb_buf_release(&reader->extent);
    wb_block_index_release(&reader->index);
    *reader = (struct wb_bucket_reader){0};
}

void wb_bucket_reader_forget(struct wb_bucket_reader *reader)
{
    WB_CHECK(reader->zstd != NULL);
    reader->bucket = NULL;
    reader->extent_at = 0;
}

/* Reads the block in an extent. */
static int open_extent(struct wb_bucket_reader *reader, const struct wb_bucket_file *file,
                       const struct wb_bucket_version *version)
{
    struct wb_block_head head;
    uint64_t size;

    WB_CHECK(version->extent_at > 0);
    WB_CHECK(version->extent_bytes >= WB_BLOCK_HEADER_BYTES);
    if (reader->extent_at == version->extent_at && reader->extent_key == file->key && !reader->bucket)
        return 0;
    wb_bucket_reader_forget(reader);
    wb_buf_clear(&reader->extent);
    int err = wb_node_file_size(&file->file, &size);
    if (err == 0 && (version->extent_at > size || version->extent_bytes > size - version->extent_at))
        err = wb_fail(WB_E_CORRUPT, "the file ends before it");
    if (err == 0)
        err = wb_buf_reserve(&reader->extent, (size_t)version->extent_bytes);
    if (err == 0)
        err =
            wb_node_file_read_exact(&file->file, version->extent_at, reader->extent.ptr, (size_t)version->extent_bytes);
    if (err == 0 && wb_bucket_kept_is(wb_slice(reader->extent.ptr, (size_t)version->extent_bytes)))
        err = wb_bucket_kept_error(wb_slice(reader->extent.ptr, (size_t)version->extent_bytes));
    if (err == 0)
        err = wb_block_head_read(reader->extent.ptr, &head);
    if (err == 0 && (head.bytes != version->extent_bytes || wb_block_directory_end(&head) > head.bytes ||
                     head.logical != version->extent_at))
        err = wb_fail(WB_E_CORRUPT, "it is another block");
    if (err == 0)
        err = wb_block_index_read(&head, reader->extent.ptr + WB_BLOCK_HEADER_BYTES, &reader->index);
    if (err < 0)
        return err;
    wb_block_reader_open_bytes(reader->zstd, &reader->index, reader->extent.ptr);
    reader->extent_at = version->extent_at;
    reader->extent_key = file->key;
    return 0;
}

typedef int (*read_entry)(struct wb_block_reader *reader, size_t at, struct wb_buf *out);

static int read_with(struct wb_bucket_reader *reader, const struct wb_bucket_file *file, const struct wb_bucket *bucket,
                     size_t at, read_entry read, struct wb_buf *out)
{
    const struct wb_bucket_version *version = &bucket->versions.items[at];
    const struct wb_block_index *index = version->extent_at ? &reader->index : &bucket->index;
    char why[WB_ERROR_MESSAGE_MAX];
    size_t entry;
    int err = 0;

    WB_CHECK(at < bucket->versions.count);
    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    if (version->extent_at) {
        err = open_extent(reader, file, version);
    } else if (index->entries.count && reader->bucket != bucket) {
        wb_bucket_reader_forget(reader);
        wb_block_reader_open_bytes(reader->zstd, &bucket->index, bucket->image.ptr + bucket->block_at);
        reader->bucket = bucket;
    }
    if (err == 0 && !is_in_block(index, version))
        err = wb_fail(WB_E_CORRUPT, "a page of its directory is not in its block");
    if (err == 0) {
        bool found = wb_block_find_slot(index, version->block_slot, &entry);
        WB_CHECK(found);
        err = read(reader->zstd, entry, out);
    }
    if (err != WB_E_CORRUPT)
        return err;
    strcpy(why, wb_error_message());
    if (version->extent_at)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: bucket %llu: the extent at offset %llu: %s", file->file.path,
                       (unsigned long long)bucket->number, (unsigned long long)version->extent_at, why);
    return wb_bucket_corrupt(file, bucket->number, why);
}

int wb_bucket_read_record(struct wb_bucket_reader *reader, const struct wb_bucket_file *file,
                          const struct wb_bucket *bucket, size_t at, struct wb_buf *record_out)
{
    WB_CHECK(reader->zstd != NULL);
    return read_with(reader, file, bucket, at, wb_block_read_record, record_out);
}

int wb_bucket_append_record(struct wb_bucket_reader *reader, const struct wb_bucket_file *file,
                            const struct wb_bucket *bucket, size_t at, bool head, struct wb_buf *records_out)
{
    WB_CHECK(reader->zstd != NULL);
    return read_with(reader, file, bucket, at, head ? wb_block_read_head : wb_block_append_record, records_out);
}
