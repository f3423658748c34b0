/*
 * parquet_column.c - the values of a column as pages:
 *
 *   header    PageHeader: sizes, CRC-32, number of rows
 *   body      compressed with zstd: [ length of the levels, 4 bytes | levels ] values
 *
 * Levels are there if values may be missing: a bit for each row, 1 if it has a value. They are one run of equal bits if
 * all are there, and otherwise groups of eight. Values are PLAIN: 8 bytes each, or a length of 4 bytes and a text.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "parquet/parquet_own.h"

#include <zlib.h>
#include <zstd_errors.h>

enum { LEVEL = 3, TEXT_MAX = 1 << 30 };

int32_t wb_parquet_type(enum wb_parquet_kind kind)
{
    return kind == WB_PARQUET_TEXT ? PARQUET_BYTE_ARRAY : kind == WB_PARQUET_NUMBER ? PARQUET_DOUBLE : PARQUET_INT64;
}

/* ---- values -------------------------------------------------------------------------------------- */

static int put64(struct wb_buf *out, uint64_t value)
{
    char bytes[8];

    wb_put64(bytes, value);
    return wb_buf_append(out, bytes, sizeof bytes);
}

/* Appends a text; a byte that is not part of a character becomes U+FFFD. */
static int put_utf8(struct wb_buf *out, struct wb_slice text)
{
    int err = 0;

    if (wb_utf8_valid(text))
        return wb_buf_append_slice(out, text);
    for (size_t i = 0; i < text.len && err == 0;) {
        size_t len = wb_utf8_length(text.ptr + i, text.len - i);
        err = len ? wb_buf_append(out, text.ptr + i, len) : wb_buf_append_str(out, "\xef\xbf\xbd");
        i += len ? len : 1;
    }
    return err;
}

static int add_text(struct wb_parquet_chunk *chunk, struct wb_slice text)
{
    size_t at = chunk->values.len;

    if (text.len > TEXT_MAX)
        return wb_fail(WB_E_LIMIT, "a value of the column %s has %zu bytes: too much for Parquet", chunk->column->name,
                       text.len);
    int err = wb_buf_append(&chunk->values, (char[4]){0}, 4);
    if (err == 0)
        err = put_utf8(&chunk->values, text);
    if (err < 0)
        return err;
    struct wb_slice written = wb_slice(chunk->values.ptr + at + 4, chunk->values.len - at - 4);
    WB_CHECK(written.len <= UINT32_MAX);
    wb_put32(chunk->values.ptr + at, (uint32_t)written.len);
    return wb_parquet_stats_text(&chunk->stats, written);
}

static int add_value(struct wb_parquet_chunk *chunk, const struct wb_parquet_cell *cell)
{
    int64_t whole = cell->whole;
    uint64_t bits;

    switch (chunk->column->kind) {
    case WB_PARQUET_TEXT:
        return add_text(chunk, cell->text);
    case WB_PARQUET_NUMBER:
        memcpy(&bits, &cell->number, sizeof bits);
        wb_parquet_stats_number(&chunk->stats, cell->number);
        return put64(&chunk->values, bits);
    case WB_PARQUET_TIME:
        if (__builtin_mul_overflow(whole, 1000, &whole))
            return wb_fail(WB_E_LIMIT, "a time of the column %s is too far away for Parquet", chunk->column->name);
        break;
    case WB_PARQUET_WHOLE:
        break;
    }
    wb_parquet_stats_whole(&chunk->stats, whole);
    return put64(&chunk->values, (uint64_t)whole);
}

int wb_parquet_chunk_add(struct wb_parquet_chunk *chunk, const struct wb_parquet_cell *cell)
{
    int err = chunk->page_rows % 8 == 0 ? wb_buf_append_char(&chunk->present, 0) : 0;

    WB_CHECK(cell->known || !chunk->column->always);
    if (err == 0 && cell->known) {
        chunk->present.ptr[chunk->page_rows / 8] |= (char)(1 << chunk->page_rows % 8);
        err = add_value(chunk, cell);
    }
    chunk->page_rows++;
    chunk->rows++;
    chunk->nulls += !cell->known;
    return err;
}

/* ---- pages --------------------------------------------------------------------------------------- */

/* The levels: a header, twice the number of equal bits, or of groups of eight and 1; then the bit, or the groups. */
static int put_levels(const struct wb_parquet_chunk *chunk, bool all, struct wb_buf *out)
{
    char header[WB_VARINT_MAX], bytes[4];
    uint64_t rows = chunk->page_rows, groups = (rows + 7) / 8;
    size_t len = wb_put_varint(header, all ? rows << 1 : groups << 1 | 1);

    wb_put32(bytes, (uint32_t)(len + (all ? 1 : groups)));
    int err = wb_buf_append(out, bytes, sizeof bytes);
    if (err == 0)
        err = wb_buf_append(out, header, len);
    if (err == 0)
        err = all ? wb_buf_append_char(out, 1) : wb_buf_append_slice(out, wb_buf_slice(&chunk->present));
    return err;
}

static bool has_all(const struct wb_parquet_chunk *chunk)
{
    for (uint32_t row = 0; row < chunk->page_rows; row++)
        if (!((unsigned char)chunk->present.ptr[row / 8] >> row % 8 & 1))
            return false;
    return true;
}

static int put_header(const struct wb_parquet_chunk *chunk, size_t raw, struct wb_slice packed, struct wb_buf *out)
{
    struct wb_thriftpen pen = wb_thriftpen(out);
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)packed.ptr, (uInt)packed.len);

    if (raw > INT32_MAX || packed.len > INT32_MAX)
        return wb_fail(WB_E_LIMIT, "a page of the column %s is too large for Parquet", chunk->column->name);
    wb_thrift_i32(&pen, 1, 0); /* a data page */
    wb_thrift_i32(&pen, 2, (int32_t)raw);
    wb_thrift_i32(&pen, 3, (int32_t)packed.len);
    wb_thrift_i32(&pen, 4, (int32_t)crc);
    wb_thrift_struct(&pen, 5);
    wb_thrift_i32(&pen, 1, (int32_t)chunk->page_rows);
    wb_thrift_i32(&pen, 2, PARQUET_PLAIN);
    wb_thrift_i32(&pen, 3, PARQUET_RLE);
    wb_thrift_i32(&pen, 4, PARQUET_RLE);
    wb_thrift_end(&pen);
    wb_thrift_end(&pen);
    return pen.err;
}

/* Compresses the body into the rest of the scratch memory, behind the body itself. */
static int pack(ZSTD_CCtx *zstd, struct wb_buf *scratch, struct wb_slice *packed_out)
{
    size_t raw = scratch->len, bound = ZSTD_compressBound(raw);
    int err = wb_buf_reserve(scratch, bound);

    if (err < 0)
        return err;
    size_t got = ZSTD_compressCCtx(zstd, scratch->ptr + raw, bound, scratch->ptr, raw, LEVEL);
    if (ZSTD_isError(got))
        return ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation
                   ? wb_fail_nomem()
                   : wb_fail(WB_E_IO, "zstd: %s", ZSTD_getErrorName(got));
    *packed_out = wb_slice(scratch->ptr + raw, got);
    return 0;
}

int wb_parquet_chunk_page(struct wb_parquet_chunk *chunk, ZSTD_CCtx *zstd, struct wb_buf *scratch)
{
    size_t before = chunk->pages.len;
    struct wb_slice packed = WB_SLICE_EMPTY;
    int err = 0;

    if (chunk->page_rows == 0)
        return 0;
    wb_buf_clear(scratch);
    if (!chunk->column->always)
        err = put_levels(chunk, has_all(chunk), scratch);
    if (err == 0)
        err = wb_buf_append_slice(scratch, wb_buf_slice(&chunk->values));
    size_t raw = scratch->len;
    if (err == 0)
        err = pack(zstd, scratch, &packed);
    if (err == 0)
        err = put_header(chunk, raw, packed, &chunk->pages);
    if (err == 0) {
        chunk->raw_bytes += chunk->pages.len - before + raw;
        err = wb_buf_append_slice(&chunk->pages, packed);
    }
    chunk->page_rows = 0;
    wb_buf_clear(&chunk->values);
    wb_buf_clear(&chunk->present);
    return err;
}

void wb_parquet_chunk_reset(struct wb_parquet_chunk *chunk)
{
    WB_CHECK(chunk->page_rows == 0);
    wb_buf_clear(&chunk->pages);
    chunk->rows = chunk->nulls = chunk->raw_bytes = 0;
    wb_parquet_stats_reset(&chunk->stats);
}

void wb_parquet_chunk_release(struct wb_parquet_chunk *chunk)
{
    wb_buf_release(&chunk->values);
    wb_buf_release(&chunk->present);
    wb_buf_release(&chunk->pages);
    wb_parquet_stats_release(&chunk->stats);
}
