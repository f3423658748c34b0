/*
 * column.c - records of one fixed size, written in order and read by number.
 *
 *   head, 64 bytes   0 "WBCOLUMN"   8 format (4)  12 kind (4)  16 bytes per record (4)  20 zero (36)
 *                    56 checksum of bytes 0 to 56
 *   records          one after the other
 *   sums             8 bytes for each 64 KiB piece of the records (the last piece may be shorter): its XXH3, combined
 *                    with its offset in the file
 *   foot, 64 bytes   0 "WBCFOOT\n"   8 records (8)  16 size of the file (8)  24 bytes per record (4)  28 kind (4)
 *                    32 format (4)  36 zero (20)  56 checksum of bytes 0 to 56
 *
 * A file is a column if and only if these parts follow each other without a gap and agree with each other.
 *
 * Opening a column checks head and foot only. wb_column_check() compares the pieces that a reader is about to use with
 * their sums; wb_column_verify() compares all of them. A column is never compressed: its use is random access.
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
    COLUMN_WRITER_MAGIC = 0x57424357, /* "WBCW" */
    COLUMN_FORMAT = 1,
    COLUMN_END_BYTES = PIECES_END_BYTES,
    COLUMN_RECORD_MAX = 1 << 20,
};
_Static_assert(COLUMN_END_BYTES == 8 + 4 + TABLE_KIND_BYTES + 4 + 36 + 8, "the head as drawn above");
_Static_assert(COLUMN_END_BYTES == 8 + 8 + 8 + 4 + TABLE_KIND_BYTES + 4 + 20 + 8, "the foot as drawn above");
_Static_assert(COLUMN_RECORD_MAX <= UINT32_MAX, "the size of a record has 4 bytes");

struct wb_column_writer {
    uint32_t magic;
    struct wb_pieces_writer pieces;
    char kind[5];
    size_t record_bytes;
    uint64_t count;             /* records added */
    struct wb_error_copy error; /* the first error; code 0 if there was none */
};
_Static_assert(sizeof((struct wb_column_writer *)0)->kind == TABLE_KIND_BYTES + 1, "a kind, and a zero after it");

/* ---- writing --------------------------------------------------------------------------------- */

static void free_column_writer(struct wb_column_writer *writer)
{
    WB_CHECK(writer->magic == COLUMN_WRITER_MAGIC);
    writer->magic = 0;
    wb_pieces_release(&writer->pieces);
    wb_free(writer);
}

static void put_head(const struct wb_column_writer *writer, char head[COLUMN_END_BYTES])
{
    WB_CHECK(strlen(writer->kind) == TABLE_KIND_BYTES);
    WB_CHECK(writer->record_bytes > 0);
    memset(head, 0, COLUMN_END_BYTES);
    memcpy(head, "WBCOLUMN", 8);
    wb_put32(head + 8, COLUMN_FORMAT);
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
    wb_put32(foot + 32, COLUMN_FORMAT);
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
    memcpy(writer->kind, kind, sizeof writer->kind);
    writer->record_bytes = record_bytes;
    put_head(writer, head);
    err = wb_pieces_create(&writer->pieces, path, head);
    if (err < 0) {
        free_column_writer(writer);
        return err;
    }
    *writer_out = writer;
    return 0;
}

int wb_column_add(struct wb_column_writer *writer, const void *record)
{
    int err;

    WB_CHECK(record != NULL);
    WB_CHECK(writer->magic == COLUMN_WRITER_MAGIC);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    err = wb_pieces_append(&writer->pieces, record, writer->record_bytes);
    if (err == 0)
        writer->count++;
    else
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
        err = wb_pieces_end(&writer->pieces);
    WB_CHECK(err < 0 || writer->pieces.written == COLUMN_END_BYTES + writer->count * writer->record_bytes);
    if (err == 0) {
        bytes = wb_pieces_file_bytes(&writer->pieces);
        put_foot(writer, bytes, foot);
        err = wb_pieces_finish(&writer->pieces, foot);
    }
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
    if (memcmp(head, "WBCOLUMN", 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is not a column", path);
    if (wb_get64(head + 56) != wb_hash64(head, 56))
        return damaged_column(path, "head");
    if (wb_get32(head + 8) != COLUMN_FORMAT)
        return wb_fail_format(path, wb_get32(head + 8), COLUMN_FORMAT);
    if (memcmp(head + 12, kind, 4) != 0)
        return wb_fail(WB_E_CORRUPT, "%s holds \"%.4s\", not \"%.4s\"", path, head + 12, kind);
    if (wb_get32(head + 16) != record_bytes)
        return wb_fail(WB_E_CORRUPT, "%s has records of %u bytes, not of %zu", path, wb_get32(head + 16), record_bytes);
    return 0;
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
        wb_get32(foot + 32) != COLUMN_FORMAT || count > size / record_bytes ||
        size != 2 * COLUMN_END_BYTES + count * record_bytes + 8 * wb_pieces_of(count * record_bytes))
        return wb_fail(WB_E_CORRUPT, "%s: the foot does not match the file", path);
    *count_out = count;
    return 0;
}

static int read_column_ends(const struct wb_file *file, const char *kind, size_t record_bytes, uint64_t *size_out,
                            uint64_t *count_out)
{
    char head[COLUMN_END_BYTES], foot[COLUMN_END_BYTES];

    WB_CHECK(strlen(kind) == TABLE_KIND_BYTES);
    WB_CHECK(record_bytes > 0);
    WB_CHECK(record_bytes <= COLUMN_RECORD_MAX);
    *count_out = 0;
    int err = wb_file_size(file, size_out);
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
    column_out->path = wb_strdup(path);
    column_out->checked = wb_alloc_zero(wb_pieces_of(count * record_bytes) + 1, sizeof *column_out->checked);
    if (!column_out->path || !column_out->checked) {
        wb_column_close(column_out);
        return WB_E_NOMEM;
    }
    return 0;
}

int wb_column_check(const struct wb_column *column, uint64_t first, uint64_t count)
{
    struct wb_pieces pieces = {.data = column->records, .bytes = column->count * column->record_bytes,
                               .path = column->path, .what = "records", .checked = column->checked};

    WB_CHECK(first <= column->count);
    WB_CHECK(count <= column->count - first);
    return wb_pieces_check(&pieces, first * column->record_bytes, count * column->record_bytes);
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

int wb_column_verify(const char *path, const char *kind, size_t record_bytes, wb_table_found found, void *context,
                     uint64_t *records_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0, count = 0;

    WB_CHECK(found != NULL);
    *records_out = 0;
    int err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0)
        err = read_column_ends(&file, kind, record_bytes, &size, &count);
    if (err == 0) {
        *records_out = count;
        err = wb_pieces_verify(&file, count * record_bytes, "records", found, context);
    } else if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        found(context, path, 0, wb_error_message());
        err = 0;
    }
    wb_file_close(&file);
    return err;
}
