/*
 * blob.c - a file of bytes with checksums, written from front to back and read through a mapping.
 *
 *   head, 64 bytes   0 "WBBLOB\r\n"   8 format (4)  12 kind (4)  16 zero (40)  56 checksum of bytes 0 to 56
 *   bytes            what was appended
 *   sums             8 bytes for each 64 KiB piece of the bytes: see pieces.h
 *   foot, 64 bytes   0 "WBBFOOT\n"   8 bytes of data (8)  16 size of the file (8)  24 pieces (8)
 *                    32 checksum of the sums (8)  40 kind (4)  44 format (4)  48 zero (8)
 *                    56 checksum of bytes 0 to 56
 *
 * A file is a blob if and only if these parts follow each other without a gap and agree with each other.
 *
 * Opening a blob checks head, foot and sums. wb_blob_check() compares the pieces that a reader is about to use with
 * their sums; wb_blob_verify() compares all of them. A blob does not know what its bytes mean.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/mapping.h"
#include "table/pieces.h"
#include "table/table_format.h"

enum {
    BLOB_WRITER_MAGIC = 0x5742424c, /* "WBBL" */
    BLOB_FORMAT = 1,
    BLOB_END_BYTES = PIECES_END_BYTES,
};
_Static_assert(BLOB_END_BYTES == 8 + 4 + TABLE_KIND_BYTES + 40 + 8, "the head as drawn above");
_Static_assert(BLOB_END_BYTES == 8 + 8 + 8 + 8 + 8 + TABLE_KIND_BYTES + 4 + 8 + 8, "the foot as drawn above");
_Static_assert(BLOB_END_BYTES >= WB_BLOB_SLACK, "the foot lies behind the last byte of data");

struct wb_blob_writer {
    uint32_t magic;
    struct wb_pieces_writer pieces;
    char kind[5];
    uint64_t bytes;             /* appended */
    struct wb_error_copy error; /* the first error; code 0 if there was none */
};
_Static_assert(sizeof((struct wb_blob_writer *)0)->kind == TABLE_KIND_BYTES + 1, "a kind, and a zero after it");

/* ---- writing --------------------------------------------------------------------------------- */

static void free_blob_writer(struct wb_blob_writer *writer)
{
    WB_CHECK(writer->magic == BLOB_WRITER_MAGIC);
    writer->magic = 0;
    wb_pieces_release(&writer->pieces);
    wb_free(writer);
}

int wb_blob_create(const char *path, const char *kind, struct wb_blob_writer **writer_out)
{
    struct wb_blob_writer *writer = wb_alloc_zero(1, sizeof *writer);
    char head[BLOB_END_BYTES] = {0};
    int err;

    *writer_out = NULL;
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = BLOB_WRITER_MAGIC;
    memcpy(writer->kind, kind, sizeof writer->kind);
    memcpy(head, "WBBLOB\r\n", 8);
    wb_put32(head + 8, BLOB_FORMAT);
    memcpy(head + 12, kind, TABLE_KIND_BYTES);
    wb_put64(head + 56, wb_hash64(head, 56));
    err = wb_pieces_create(&writer->pieces, path, head);
    if (err < 0) {
        free_blob_writer(writer);
        return err;
    }
    *writer_out = writer;
    return 0;
}

int wb_blob_append(struct wb_blob_writer *writer, const void *bytes, size_t len)
{
    int err;

    WB_CHECK(writer->magic == BLOB_WRITER_MAGIC);
    WB_CHECK(bytes != NULL || len == 0);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    err = wb_pieces_append(&writer->pieces, bytes, len);
    if (err == 0)
        writer->bytes += len;
    else
        wb_error_save(err, &writer->error);
    return err;
}

uint64_t wb_blob_tell(const struct wb_blob_writer *writer)
{
    WB_CHECK(writer->magic == BLOB_WRITER_MAGIC);
    return writer->bytes;
}

static void put_blob_foot(const struct wb_blob_writer *writer, char foot[BLOB_END_BYTES])
{
    const struct wb_buf *sums = &writer->pieces.sums;

    WB_CHECK(sums->len == 8 * wb_pieces_of(writer->bytes));
    memset(foot, 0, BLOB_END_BYTES);
    memcpy(foot, "WBBFOOT\n", 8);
    wb_put64(foot + 8, writer->bytes);
    wb_put64(foot + 16, wb_pieces_file_bytes(&writer->pieces));
    wb_put64(foot + 24, sums->len / 8);
    wb_put64(foot + 32, wb_hash64(sums->ptr, sums->len));
    memcpy(foot + 40, writer->kind, TABLE_KIND_BYTES);
    wb_put32(foot + 44, BLOB_FORMAT);
    wb_put64(foot + 56, wb_hash64(foot, 56));
}

int wb_blob_finish(struct wb_blob_writer *writer, uint64_t *bytes_out)
{
    char foot[BLOB_END_BYTES];
    uint64_t bytes = 0;

    WB_CHECK(writer->magic == BLOB_WRITER_MAGIC);
    int err = writer->error.code ? wb_error_restore(&writer->error) : 0;
    if (err == 0)
        err = wb_pieces_end(&writer->pieces);
    WB_CHECK(err < 0 || writer->pieces.written == BLOB_END_BYTES + writer->bytes);
    if (err == 0) {
        bytes = wb_pieces_file_bytes(&writer->pieces);
        put_blob_foot(writer, foot);
        err = wb_pieces_finish(&writer->pieces, foot);
    }
    free_blob_writer(writer);
    if (bytes_out)
        *bytes_out = err == 0 ? bytes : 0;
    return err;
}

void wb_blob_abandon(struct wb_blob_writer *writer)
{
    WB_CHECK(!writer || writer->magic == BLOB_WRITER_MAGIC);
    if (writer)
        free_blob_writer(writer);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int check_blob_head(const char *head, const char *kind, const char *path)
{
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    if (memcmp(head, "WBBLOB\r\n", 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is not a blob", path);
    if (wb_get64(head + 56) != wb_hash64(head, 56))
        return wb_fail(WB_E_CORRUPT, "%s: the head is damaged", path);
    if (wb_get32(head + 8) != BLOB_FORMAT)
        return wb_fail_format(path, wb_get32(head + 8), BLOB_FORMAT);
    if (memcmp(head + 12, kind, TABLE_KIND_BYTES) != 0)
        return wb_fail(WB_E_CORRUPT, "%s holds \"%.4s\", not \"%.4s\"", path, head + 12, kind);
    return 0;
}

/* size is that of the file. */
static int check_blob_foot(const char *foot, const char *kind, uint64_t size, const char *path, uint64_t *bytes_out)
{
    uint64_t bytes = wb_get64(foot + 8);

    WB_CHECK(size >= 2 * BLOB_END_BYTES);
    *bytes_out = 0;
    if (memcmp(foot, "WBBFOOT\n", 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s has no foot: it was never finished, or its end is missing", path);
    if (wb_get64(foot + 56) != wb_hash64(foot, 56))
        return wb_fail(WB_E_CORRUPT, "%s: the foot is damaged", path);
    if (wb_get64(foot + 16) != size || bytes > size || wb_get64(foot + 24) != wb_pieces_of(bytes) ||
        memcmp(foot + 40, kind, TABLE_KIND_BYTES) != 0 || wb_get32(foot + 44) != BLOB_FORMAT ||
        size != 2 * BLOB_END_BYTES + bytes + 8 * wb_pieces_of(bytes))
        return wb_fail(WB_E_CORRUPT, "%s: the foot does not match the file", path);
    *bytes_out = bytes;
    return 0;
}

/* Reads both ends of an open file: *sum_out is the checksum of the sums. */
static int read_blob_ends(const struct wb_file *file, const char *kind, uint64_t *size_out, uint64_t *bytes_out,
                          uint64_t *sum_out)
{
    char head[BLOB_END_BYTES], foot[BLOB_END_BYTES];

    WB_CHECK(file->fd >= 0);
    *bytes_out = *sum_out = 0;
    int err = wb_file_size(file, size_out);
    if (err < 0)
        return err;
    if (*size_out < 2 * BLOB_END_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s is not a blob: it has only %llu bytes", file->path,
                       (unsigned long long)*size_out);
    err = wb_file_read_exact(file, 0, head, sizeof head);
    if (err == 0)
        err = check_blob_head(head, kind, file->path);
    if (err == 0)
        err = wb_file_read_exact(file, *size_out - BLOB_END_BYTES, foot, sizeof foot);
    if (err == 0)
        err = check_blob_foot(foot, kind, *size_out, file->path, bytes_out);
    if (err == 0)
        *sum_out = wb_get64(foot + 32);
    return err;
}

int wb_blob_open(const char *path, const char *kind, struct wb_blob *blob_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0, bytes = 0, sum = 0;
    void *map = NULL;

    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    *blob_out = WB_BLOB_INIT;
    int err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0)
        err = read_blob_ends(&file, kind, &size, &bytes, &sum);
    if (err == 0)
        err = wb_mapping_open(&file, (size_t)size, &map);
    wb_file_close(&file);
    if (err < 0)
        return err;
    *blob_out = (struct wb_blob){
        .data = (const char *)map + BLOB_END_BYTES, .bytes = bytes, .map = map, .map_bytes = (size_t)size};
    blob_out->path = wb_strdup(path);
    blob_out->checked = wb_alloc_zero(wb_pieces_of(bytes) + 1, sizeof *blob_out->checked);
    if (!blob_out->path || !blob_out->checked)
        err = WB_E_NOMEM;
    else if (wb_hash64(blob_out->data + bytes, (size_t)(8 * wb_pieces_of(bytes))) != sum)
        err = wb_fail(WB_E_CORRUPT, "%s: the checksums are damaged", path);
    if (err < 0)
        wb_blob_close(blob_out);
    return err;
}

void wb_blob_close(struct wb_blob *blob)
{
    WB_CHECK(!blob->map || blob->map_bytes >= 2 * BLOB_END_BYTES);
    if (blob->map)
        wb_mapping_close(blob->map, blob->map_bytes);
    wb_free(blob->path);
    wb_free(blob->checked);
    *blob = WB_BLOB_INIT;
}

int wb_blob_check(const struct wb_blob *blob, uint64_t offset, uint64_t length)
{
    struct wb_pieces pieces = {
        .data = blob->data, .bytes = blob->bytes, .path = blob->path, .what = "bytes", .checked = blob->checked};

    WB_CHECK(blob->map != NULL);
    if (offset > blob->bytes || length > blob->bytes - offset)
        return wb_fail(WB_E_CORRUPT, "%s has no bytes %llu to %llu: it ends at %llu", blob->path,
                       (unsigned long long)offset, (unsigned long long)(offset + length),
                       (unsigned long long)blob->bytes);
    return wb_pieces_check(&pieces, offset, length);
}

/* ---- verifying ------------------------------------------------------------------------------- */

/* Compares the sums with their checksum in the foot. */
static int verify_sums(const struct wb_file *file, uint64_t bytes, uint64_t sum, wb_table_found found, void *context)
{
    size_t len = (size_t)(8 * wb_pieces_of(bytes));

    WB_CHECK(file->fd >= 0);
    char *sums = wb_alloc(len + 1);
    int err = sums ? wb_file_read_exact(file, BLOB_END_BYTES + bytes, sums, len) : WB_E_NOMEM;
    if (sums && (err < 0 || wb_hash64(sums, len) != sum)) {
        found(context, file->path, BLOB_END_BYTES + bytes, err < 0 ? wb_error_message() : "the checksums are damaged");
        err = 0;
    }
    wb_free(sums);
    return err;
}

int wb_blob_verify(const char *path, const char *kind, wb_table_found found, void *context, uint64_t *bytes_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0, bytes = 0, sum = 0;

    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(found != NULL);
    *bytes_out = 0;
    int err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0)
        err = read_blob_ends(&file, kind, &size, &bytes, &sum);
    if (err == 0) {
        *bytes_out = bytes;
        err = verify_sums(&file, bytes, sum, found, context);
        if (err == 0)
            err = wb_pieces_verify(&file, bytes, "bytes", found, context);
    } else if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        found(context, path, 0, wb_error_message());
        err = 0;
    }
    wb_file_close(&file);
    return err;
}
