/*
 * column.c - records of one fixed size, written in order and read by number.
 *
 *   head, 64 bytes   0 "WBCOLUMN"   8 version (4)  12 kind (4)  16 bytes per record (4)  20 zero (36)
 *                    56 checksum of bytes 0 to 56
 *   records          one after the other
 *   sums             8 bytes for each 64 KiB piece of the records (the last piece may be shorter): its XXH3, combined
 *                    with its offset in the file
 *   foot, 64 bytes   0 "WBCFOOT\n"   8 records (8)  16 size of the file (8)  24 bytes per record (4)  28 kind (4)
 *                    32 version (4)  36 zero (20)  56 checksum of bytes 0 to 56
 *
 * A file is a column if and only if these parts follow each other without a gap and agree with each other.
 *
 * Opening a column checks head and foot only. wb_column_check() compares the pieces that a reader is about to use with
 * their sums; wb_column_verify() compares all of them. A column is never compressed: its use is random access.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/mapping.h"
#include "os/path.h"
#include "table/table_format.h"

enum {
    COLUMN_WRITER_MAGIC = 0x57424357, /* "WBCW" */
    COLUMN_VERSION = 1,
    COLUMN_END_BYTES = 64,       /* size of the head, and of the foot */
    COLUMN_PIECE_BYTES = 64 << 10, /* records that share one checksum */
    COLUMN_WRITE_BYTES = 4 * COLUMN_PIECE_BYTES,
    COLUMN_RECORD_MAX = 1 << 20,
};
_Static_assert(COLUMN_END_BYTES % 64 == 0, "records are aligned in the mapping");
_Static_assert(COLUMN_END_BYTES == 8 + 4 + TABLE_KIND_BYTES + 4 + 36 + 8, "the head as drawn above");
_Static_assert(COLUMN_END_BYTES == 8 + 8 + 8 + 4 + TABLE_KIND_BYTES + 4 + 20 + 8, "the foot as drawn above");
_Static_assert(COLUMN_WRITE_BYTES % COLUMN_PIECE_BYTES == 0, "what is written at once ends where a piece ends");
_Static_assert(COLUMN_RECORD_MAX <= UINT32_MAX, "the size of a record has 4 bytes");

struct wb_column_writer {
    uint32_t magic;
    struct wb_file file;
    char kind[5];
    size_t record_bytes;
    uint64_t count;             /* records added */
    struct wb_buf pending;      /* the next bytes of the file, not yet written */
    uint64_t written;           /* size of the file so far */
    struct wb_buf sums;         /* of the pieces written so far */
    struct wb_error_copy error; /* the first error; code 0 if there was none */
};
_Static_assert(sizeof((struct wb_column_writer *)0)->kind == TABLE_KIND_BYTES + 1, "a kind, and a zero after it");

/* ---- writing --------------------------------------------------------------------------------- */

static void free_column_writer(struct wb_column_writer *writer)
{
    WB_CHECK(writer->magic == COLUMN_WRITER_MAGIC);
    writer->magic = 0;
    wb_file_close(&writer->file);
    wb_buf_release(&writer->pending);
    wb_buf_release(&writer->sums);
    wb_free(writer);
}

static void put_head(const struct wb_column_writer *writer, char head[COLUMN_END_BYTES])
{
    WB_CHECK(strlen(writer->kind) == TABLE_KIND_BYTES);
    WB_CHECK(writer->record_bytes > 0);
    memset(head, 0, COLUMN_END_BYTES);
    memcpy(head, "WBCOLUMN", 8);
    wb_put32(head + 8, COLUMN_VERSION);
    memcpy(head + 12, writer->kind, 4);
    wb_put32(head + 16, (uint32_t)writer->record_bytes);
    wb_put64(head + 56, wb_hash64(head, 56));
}

static void put_foot(const struct wb_column_writer *writer, uint64_t file_bytes, char foot[COLUMN_END_BYTES])
{
    WB_CHECK(file_bytes >= 2 * COLUMN_END_BYTES + writer->count * writer->record_bytes);
    memset(foot, 0, COLUMN_END_BYTES);
    memcpy(foot, "WBCFOOT\n", 8);
    wb_put64(foot + 8, writer->count);
    wb_put64(foot + 16, file_bytes);
    wb_put32(foot + 24, (uint32_t)writer->record_bytes);
    memcpy(foot + 28, writer->kind, 4);
    wb_put32(foot + 32, COLUMN_VERSION);
    wb_put64(foot + 56, wb_hash64(foot, 56));
}

int wb_column_create(const char *path, const char *kind, size_t record_bytes, struct wb_column_writer **writer_out)
{
    struct wb_column_writer *writer = wb_alloc_zero(1, sizeof *writer);
    char head[COLUMN_END_BYTES];
    int err;

    *writer_out = NULL;
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(record_bytes > 0);
    WB_CHECK(record_bytes <= COLUMN_RECORD_MAX);
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = COLUMN_WRITER_MAGIC;
    writer->file = WB_FILE_INIT;
    memcpy(writer->kind, kind, sizeof writer->kind);
    writer->record_bytes = record_bytes;
    put_head(writer, head);
    err = wb_path_unlink(path);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &writer->file);
    if (err == 0)
        err = wb_file_write_at(&writer->file, 0, head, sizeof head);
    if (err < 0) {
        free_column_writer(writer);
        return err;
    }
    writer->written = COLUMN_END_BYTES;
    *writer_out = writer;
    return 0;
}

/* Writes the whole pieces that are pending and keeps the rest; at the end, writes the rest too. */
static int flush_column(struct wb_column_writer *writer, bool at_end)
{
    size_t len = at_end ? writer->pending.len : writer->pending.len - writer->pending.len % COLUMN_PIECE_BYTES;
    int err = 0;

    WB_CHECK((writer->written - COLUMN_END_BYTES) % COLUMN_PIECE_BYTES == 0);
    WB_CHECK(writer->sums.len == (writer->written - COLUMN_END_BYTES) / COLUMN_PIECE_BYTES * 8);
    for (size_t at = 0; at < len && err == 0; at += COLUMN_PIECE_BYTES) {
        size_t piece = len - at < COLUMN_PIECE_BYTES ? len - at : COLUMN_PIECE_BYTES;
        char sum[8];
        wb_put64(sum, wb_table_checksum_at(wb_hash64(writer->pending.ptr + at, piece), writer->written + at));
        err = wb_buf_append(&writer->sums, sum, sizeof sum);
    }
    if (err == 0 && len)
        err = wb_file_write_at(&writer->file, writer->written, writer->pending.ptr, len);
    if (err < 0)
        return err;
    writer->written += len;
    writer->pending.len -= len;
    if (writer->pending.len)
        memmove(writer->pending.ptr, writer->pending.ptr + len, writer->pending.len);
    WB_CHECK(writer->pending.len < COLUMN_PIECE_BYTES);
    WB_CHECK(!at_end || writer->pending.len == 0);
    return 0;
}

int wb_column_add(struct wb_column_writer *writer, const void *record)
{
    int err;

    WB_CHECK(record != NULL);
    WB_CHECK(writer->magic == COLUMN_WRITER_MAGIC);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    err = wb_buf_append(&writer->pending, record, writer->record_bytes);
    if (err == 0)
        writer->count++;
    if (err == 0 && writer->pending.len >= COLUMN_WRITE_BYTES)
        err = flush_column(writer, false);
    if (err < 0)
        wb_error_save(err, &writer->error);
    return err;
}

int wb_column_finish(struct wb_column_writer *writer, uint64_t *bytes_out)
{
    char foot[COLUMN_END_BYTES];
    uint64_t bytes = 0;

    WB_CHECK(writer->magic == COLUMN_WRITER_MAGIC);
    int err = writer->error.code ? wb_error_restore(&writer->error) : 0;
    if (err == 0)
        err = flush_column(writer, true);
    WB_CHECK(err < 0 || writer->written == COLUMN_END_BYTES + writer->count * writer->record_bytes);
    if (err == 0) {
        bytes = writer->written + writer->sums.len + sizeof foot;
        put_foot(writer, bytes, foot);
        err = wb_buf_append(&writer->sums, foot, sizeof foot);
    }
    if (err == 0)
        err = wb_file_write_at(&writer->file, writer->written, writer->sums.ptr, writer->sums.len);
    if (err == 0)
        err = wb_file_sync(&writer->file);
    free_column_writer(writer);
    if (bytes_out)
        *bytes_out = err == 0 ? bytes : 0;
    return err;
}

void wb_column_abandon(struct wb_column_writer *writer)
{
    WB_CHECK(!writer || writer->magic == COLUMN_WRITER_MAGIC);
    if (writer)
        free_column_writer(writer);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int damaged_column(const char *path, const char *part)
{
    return wb_fail(WB_E_CORRUPT, "%s: the %s is damaged", path, part);
}

static int check_head(const char *head, const char *kind, size_t record_bytes, const char *path)
{
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(record_bytes > 0);
    if (memcmp(head, "WBCOLUMN", 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is not a column", path);
    if (wb_get64(head + 56) != wb_hash64(head, 56))
        return damaged_column(path, "head");
    if (wb_get32(head + 8) > COLUMN_VERSION)
        return wb_fail(WB_E_NEWER, "%s has column format %u; this program reads formats up to %d", path,
                       wb_get32(head + 8), COLUMN_VERSION);
    if (wb_get32(head + 8) != COLUMN_VERSION)
        return damaged_column(path, "head");
    if (memcmp(head + 12, kind, 4) != 0)
        return wb_fail(WB_E_CORRUPT, "%s holds \"%.4s\", not \"%.4s\"", path, head + 12, kind);
    if (wb_get32(head + 16) != record_bytes)
        return wb_fail(WB_E_CORRUPT, "%s has records of %u bytes, not of %zu", path, wb_get32(head + 16), record_bytes);
    return 0;
}

/* How many pieces, and therefore checksums, this many bytes of records have. */
static uint64_t pieces_of(uint64_t record_area)
{
    return record_area / COLUMN_PIECE_BYTES + (record_area % COLUMN_PIECE_BYTES != 0);
}

/* The head has been checked already; size is that of the file. */
static int check_foot(const char *foot, const char *head, size_t record_bytes, uint64_t size, const char *path,
                      uint64_t *count_out)
{
    uint64_t count = wb_get64(foot + 8);

    WB_CHECK(record_bytes > 0);
    WB_CHECK(size >= 2 * COLUMN_END_BYTES);
    *count_out = 0;
    if (memcmp(foot, "WBCFOOT\n", 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s has no foot: it was never finished, or its end is missing", path);
    if (wb_get64(foot + 56) != wb_hash64(foot, 56))
        return damaged_column(path, "foot");
    if (wb_get64(foot + 16) != size || wb_get32(foot + 24) != record_bytes || memcmp(foot + 28, head + 12, 4) != 0 ||
        wb_get32(foot + 32) != COLUMN_VERSION || count > size / record_bytes ||
        size != 2 * COLUMN_END_BYTES + count * record_bytes + 8 * pieces_of(count * record_bytes))
        return wb_fail(WB_E_CORRUPT, "%s: the foot does not match the file", path);
    *count_out = count;
    return 0;
}

static int read_column_ends(const struct wb_file *file, const char *kind, size_t record_bytes, uint64_t *size_out,
                            uint64_t *count_out)
{
    char head[COLUMN_END_BYTES], foot[COLUMN_END_BYTES];
    int err = wb_file_size(file, size_out);

    *count_out = 0;
    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(record_bytes > 0);
    WB_CHECK(record_bytes <= COLUMN_RECORD_MAX);
    if (err < 0)
        return err;
    if (*size_out < COLUMN_END_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s is not a column: it has only %llu bytes", file->path,
                       (unsigned long long)*size_out);
    err = wb_file_read_exact(file, 0, head, sizeof head);
    if (err == 0)
        err = check_head(head, kind, record_bytes, file->path);
    if (err < 0)
        return err;
    if (*size_out < 2 * COLUMN_END_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s has no foot: it was never finished, or its end is missing", file->path);
    err = wb_file_read_exact(file, *size_out - COLUMN_END_BYTES, foot, sizeof foot);
    if (err == 0)
        err = check_foot(foot, head, record_bytes, *size_out, file->path, count_out);
    return err;
}

int wb_column_open(const char *path, const char *kind, size_t record_bytes, struct wb_column *column_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0, count = 0;
    void *map = NULL;
    int err = wb_file_open(path, WB_FILE_READ, &file);

    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(record_bytes > 0);
    WB_CHECK(record_bytes <= COLUMN_RECORD_MAX);
    *column_out = WB_COLUMN_INIT;
    if (err == 0)
        err = read_column_ends(&file, kind, record_bytes, &size, &count);
    if (err == 0)
        err = wb_mapping_open(&file, (size_t)size, &map);
    wb_file_close(&file);
    if (err < 0)
        return err;
    *column_out = (struct wb_column){.records = (const char *)map + COLUMN_END_BYTES, .count = count,
                                     .record_bytes = record_bytes, .map = map, .map_bytes = (size_t)size};
    WB_CHECK(count * record_bytes <= size - 2 * COLUMN_END_BYTES); /* check_foot() has compared them */
    column_out->path = wb_strdup(path);
    column_out->checked = wb_alloc_zero(pieces_of(count * record_bytes) + 1, sizeof *column_out->checked);
    if (!column_out->path || !column_out->checked) {
        wb_column_close(column_out);
        return WB_E_NOMEM;
    }
    return 0;
}

/* Compares piece n with its checksum. Two threads may do so at the same time: both will find the same. */
static int check_piece(const struct wb_column *column, uint64_t n)
{
    uint64_t area = column->count * column->record_bytes, at = n * COLUMN_PIECE_BYTES;
    size_t len = area - at < COLUMN_PIECE_BYTES ? (size_t)(area - at) : COLUMN_PIECE_BYTES;

    WB_CHECK(column->checked != NULL);
    WB_CHECK(at < area);
    uint64_t sum = wb_table_checksum_at(wb_hash64(column->records + at, len), COLUMN_END_BYTES + at);
    if (wb_get64(column->records + area + 8 * n) != sum)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: the records at %llu do not match their checksum", column->path,
                       (unsigned long long)(COLUMN_END_BYTES + at));
    atomic_store_explicit(&column->checked[n], 1, memory_order_relaxed);
    return 0;
}

int wb_column_check(const struct wb_column *column, uint64_t first, uint64_t count)
{
    int err = 0;

    WB_CHECK(first <= column->count);
    WB_CHECK(count <= column->count - first);
    if (count == 0)
        return 0;
    WB_CHECK(column->checked != NULL);
    uint64_t last = ((first + count) * column->record_bytes - 1) / COLUMN_PIECE_BYTES;
    for (uint64_t n = first * column->record_bytes / COLUMN_PIECE_BYTES; err == 0 && n <= last; n++)
        if (!atomic_load_explicit(&column->checked[n], memory_order_relaxed))
            err = check_piece(column, n);
    return err;
}

void wb_column_close(struct wb_column *column)
{
    WB_CHECK(!column->map || column->map_bytes >= 2 * COLUMN_END_BYTES);
    if (column->map)
        wb_mapping_close(column->map, column->map_bytes);
    wb_free(column->path);
    wb_free(column->checked);
    *column = WB_COLUMN_INIT;
}

/* ---- verifying ------------------------------------------------------------------------------- */

/* Reads with pread() instead of the mapping, so that a bad disk is reported and does not kill the process. */
static int check_sums(const struct wb_file *file, uint64_t record_area, wb_table_found found, void *context)
{
    char *piece = wb_alloc(COLUMN_PIECE_BYTES), sum[8];
    int err = piece ? 0 : WB_E_NOMEM;

    WB_CHECK(file->fd >= 0);
    for (uint64_t n = 0; err == 0 && n < pieces_of(record_area); n++) {
        uint64_t at = COLUMN_END_BYTES + n * COLUMN_PIECE_BYTES, left = record_area - n * COLUMN_PIECE_BYTES;
        size_t len = left < COLUMN_PIECE_BYTES ? (size_t)left : COLUMN_PIECE_BYTES;
        err = wb_file_read_exact(file, at, piece, len);
        if (err == 0)
            err = wb_file_read_exact(file, COLUMN_END_BYTES + record_area + 8 * n, sum, sizeof sum);
        if (err == 0 && wb_get64(sum) == wb_table_checksum_at(wb_hash64(piece, len), at))
            continue;
        found(context, file->path, at, err < 0 ? wb_error_message() : "records do not match their checksum");
        err = 0;
    }
    wb_free(piece);
    return err;
}

int wb_column_verify(const char *path, const char *kind, size_t record_bytes, wb_table_found found, void *context,
                     uint64_t *records_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0, count = 0;
    int err = wb_file_open(path, WB_FILE_READ, &file);

    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    *records_out = 0;
    WB_CHECK(found != NULL);
    if (err == 0)
        err = read_column_ends(&file, kind, record_bytes, &size, &count);
    if (err == 0) {
        *records_out = count;
        err = check_sums(&file, count * record_bytes, found, context);
    } else if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        found(context, path, 0, wb_error_message());
        err = 0;
    }
    wb_file_close(&file);
    return err;
}
