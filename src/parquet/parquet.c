/*
 * parquet.c - groups of rows and the footer:
 *
 *   "PAR1" | group: pages of column 1, pages of column 2, ... | group ... | footer | its length, 4 bytes | "PAR1"
 *
 * The footer is a struct FileMetaData of Thrift. What it says of a group is written as soon as the group is, into
 * memory: some 100 bytes for each column of it.
 */
#include "parquet/parquet.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "parquet/parquet_own.h"

static const char magic[4] = {'P', 'A', 'R', '1'};

struct wb_parquet {
    const struct wb_parquet_column *columns;
    size_t count;
    struct wb_parquet_limits limits;
    wb_parquet_sink sink;
    void *context;
    ZSTD_CCtx *zstd;
    struct wb_buf scratch;
    struct wb_buf groups; /* what the footer says of the groups */
    size_t group_count;
    uint64_t offset, rows, group_rows;
    int err; /* of the first call that failed */
    struct wb_parquet_chunk chunks[];
};

static int write_bytes(struct wb_parquet *p, const void *bytes, size_t len)
{
    int err = p->sink(p->context, bytes, len);

    p->offset += len;
    return err;
}

int wb_parquet_new(const struct wb_parquet_column *columns, size_t count, const struct wb_parquet_limits *limits,
                   wb_parquet_sink sink, void *context, struct wb_parquet **parquet_out)
{
    struct wb_parquet *p = wb_alloc_zero(1, sizeof *p + count * sizeof p->chunks[0]);

    *parquet_out = NULL;
    if (!p)
        return WB_E_NOMEM;
    p->columns = columns;
    p->count = count;
    p->limits = *limits;
    p->sink = sink;
    p->context = context;
    for (size_t i = 0; i < count; i++)
        p->chunks[i].column = &columns[i];
    p->zstd = ZSTD_createCCtx();
    int err = p->zstd ? write_bytes(p, magic, sizeof magic) : wb_fail_nomem();
    if (err < 0)
        wb_parquet_free(p);
    else
        *parquet_out = p;
    return err;
}

void wb_parquet_free(struct wb_parquet *parquet)
{
    if (!parquet)
        return;
    for (size_t i = 0; i < parquet->count; i++)
        wb_parquet_chunk_release(&parquet->chunks[i]);
    ZSTD_freeCCtx(parquet->zstd);
    wb_buf_release(&parquet->scratch);
    wb_buf_release(&parquet->groups);
    wb_free(parquet);
}

/* ---- groups -------------------------------------------------------------------------------------- */

/* ColumnChunk, with its ColumnMetaData. */
static void describe_chunk(const struct wb_parquet *p, const struct wb_parquet_chunk *chunk, uint64_t offset,
                           struct wb_thriftpen *pen)
{
    wb_thrift_item_struct(pen);
    wb_thrift_i64(pen, 2, 0); /* the metadata is here, and nowhere else */
    wb_thrift_struct(pen, 3);
    wb_thrift_i32(pen, 1, wb_parquet_type(chunk->column->kind));
    wb_thrift_list(pen, 2, WB_THRIFT_I32, 2);
    wb_thrift_item_i32(pen, PARQUET_PLAIN);
    wb_thrift_item_i32(pen, PARQUET_RLE);
    wb_thrift_list(pen, 3, WB_THRIFT_BINARY, 1);
    wb_thrift_item_binary(pen, wb_slice_str(chunk->column->name));
    wb_thrift_i32(pen, 4, PARQUET_ZSTD);
    wb_thrift_i64(pen, 5, (int64_t)chunk->rows);
    wb_thrift_i64(pen, 6, (int64_t)chunk->raw_bytes);
    wb_thrift_i64(pen, 7, (int64_t)chunk->pages.len);
    wb_thrift_i64(pen, 9, (int64_t)offset);
    wb_parquet_stats_write(&chunk->stats, chunk->column->kind, chunk->nulls, pen, 12);
    wb_thrift_end(pen);
    wb_thrift_end(pen);
    WB_CHECK(chunk->rows == p->group_rows);
}

/* RowGroup: writes what the footer says of the group, whose pages follow now. */
static int describe_group(struct wb_parquet *p)
{
    struct wb_thriftpen pen = wb_thriftpen(&p->groups);
    uint64_t offset = p->offset, raw = 0, packed = 0;

    wb_thrift_item_struct(&pen);
    wb_thrift_list(&pen, 1, WB_THRIFT_STRUCT, p->count);
    for (size_t i = 0; i < p->count; i++) {
        describe_chunk(p, &p->chunks[i], offset, &pen);
        offset += p->chunks[i].pages.len;
        raw += p->chunks[i].raw_bytes;
        packed += p->chunks[i].pages.len;
    }
    wb_thrift_i64(&pen, 2, (int64_t)raw);
    wb_thrift_i64(&pen, 3, (int64_t)p->group_rows);
    wb_thrift_i64(&pen, 5, (int64_t)p->offset);
    wb_thrift_i64(&pen, 6, (int64_t)packed);
    wb_thrift_end(&pen);
    WB_CHECK(pen.depth == 0);
    return pen.err;
}

static int write_group(struct wb_parquet *p)
{
    int err = 0;

    if (p->group_rows == 0)
        return 0;
    for (size_t i = 0; err == 0 && i < p->count; i++)
        err = wb_parquet_chunk_page(&p->chunks[i], p->zstd, &p->scratch);
    if (err == 0)
        err = describe_group(p);
    for (size_t i = 0; err == 0 && i < p->count; i++) {
        err = write_bytes(p, p->chunks[i].pages.ptr, p->chunks[i].pages.len);
        wb_parquet_chunk_reset(&p->chunks[i]);
    }
    p->group_count++;
    p->group_rows = 0;
    return err;
}

static int add_row(struct wb_parquet *p, const struct wb_parquet_cell *cells)
{
    size_t bytes = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < p->count; i++) {
        struct wb_parquet_chunk *chunk = &p->chunks[i];
        err = wb_parquet_chunk_add(chunk, &cells[i]);
        if (err == 0 && chunk->values.len >= p->limits.page_bytes)
            err = wb_parquet_chunk_page(chunk, p->zstd, &p->scratch);
        bytes += chunk->pages.len;
    }
    p->rows++;
    p->group_rows++;
    if (err == 0 && (p->group_rows >= p->limits.group_rows || bytes >= p->limits.group_bytes))
        err = write_group(p);
    return err;
}

int wb_parquet_row(struct wb_parquet *parquet, const struct wb_parquet_cell *cells)
{
    if (parquet->err == 0)
        parquet->err = add_row(parquet, cells);
    return parquet->err;
}

/* ---- the footer ---------------------------------------------------------------------------------- */

/* What the 64 bits or the bytes of a column mean: ConvertedType for older readers, LogicalType for all others. */
static void describe_meaning(enum wb_parquet_kind kind, struct wb_thriftpen *pen)
{
    static const int32_t converted[] = {[WB_PARQUET_TEXT] = 0 /* UTF8 */,
                                        [WB_PARQUET_WHOLE] = 18 /* INT_64 */,
                                        [WB_PARQUET_TIME] = 10 /* ..._MICROS */};

    if (kind == WB_PARQUET_NUMBER)
        return;
    wb_thrift_i32(pen, 6, converted[kind]);
    wb_thrift_struct(pen, 10);
    if (kind == WB_PARQUET_TEXT) {
        wb_thrift_struct(pen, 1);
    } else if (kind == WB_PARQUET_WHOLE) {
        wb_thrift_struct(pen, 10);
        wb_thrift_i8(pen, 1, 64);
        wb_thrift_bool(pen, 2, true);
    } else {
        wb_thrift_struct(pen, 8);
        wb_thrift_bool(pen, 1, true); /* UTC */
        wb_thrift_struct(pen, 2);
        wb_thrift_struct(pen, 2); /* microseconds */
        wb_thrift_end(pen);
        wb_thrift_end(pen);
    }
    wb_thrift_end(pen);
    wb_thrift_end(pen);
}

/* SchemaElement of the table, and of each column. */
static void describe_columns(const struct wb_parquet *p, struct wb_thriftpen *pen)
{
    wb_thrift_list(pen, 2, WB_THRIFT_STRUCT, p->count + 1);
    wb_thrift_item_struct(pen);
    wb_thrift_binary(pen, 4, WB_SLICE_LIT("schema"));
    wb_thrift_i32(pen, 5, (int32_t)p->count);
    wb_thrift_end(pen);
    for (size_t i = 0; i < p->count; i++) {
        wb_thrift_item_struct(pen);
        wb_thrift_i32(pen, 1, wb_parquet_type(p->columns[i].kind));
        wb_thrift_i32(pen, 3, p->columns[i].always ? 0 : 1); /* required, optional */
        wb_thrift_binary(pen, 4, wb_slice_str(p->columns[i].name));
        describe_meaning(p->columns[i].kind, pen);
        wb_thrift_end(pen);
    }
}

static int put_footer(struct wb_parquet *p, struct wb_buf *out)
{
    struct wb_thriftpen pen = wb_thriftpen(out);

    wb_thrift_i32(&pen, 1, 1);
    describe_columns(p, &pen);
    wb_thrift_i64(&pen, 3, (int64_t)p->rows);
    wb_thrift_list(&pen, 4, WB_THRIFT_STRUCT, p->group_count);
    if (pen.err == 0)
        pen.err = wb_buf_append_slice(out, wb_buf_slice(&p->groups));
    wb_thrift_binary(&pen, 6, WB_SLICE_LIT("webbase version " WB_VERSION));
    wb_thrift_list(&pen, 7, WB_THRIFT_STRUCT, p->count); /* bounds are in the order of the type: the only one */
    for (size_t i = 0; i < p->count; i++) {
        wb_thrift_item_struct(&pen);
        wb_thrift_struct(&pen, 1);
        wb_thrift_end(&pen);
        wb_thrift_end(&pen);
    }
    wb_thrift_end(&pen);
    WB_CHECK(pen.depth == 0);
    return pen.err;
}

static int finish(struct wb_parquet *p)
{
    struct wb_buf footer = WB_BUF_INIT;
    char end[8];
    int err = write_group(p);

    if (err == 0)
        err = put_footer(p, &footer);
    if (err == 0 && footer.len > INT32_MAX)
        err = wb_fail(WB_E_LIMIT, "there are too many rows for a Parquet file");
    if (err == 0)
        err = write_bytes(p, footer.ptr, footer.len);
    wb_put32(end, (uint32_t)footer.len);
    memcpy(end + 4, magic, sizeof magic);
    if (err == 0)
        err = write_bytes(p, end, sizeof end);
    wb_buf_release(&footer);
    return err;
}

int wb_parquet_finish(struct wb_parquet *parquet)
{
    if (parquet->err == 0)
        parquet->err = finish(parquet);
    return parquet->err;
}
