/*
 * parquet_own.h - private to parquet.
 *
 *   a row -> parquet.c -> its cells -> parquet_column.c: values and levels of a page -> compressed pages of a group
 *                                      parquet_stats.c: least and greatest value of the group
 *   the group is full -> parquet.c: pages of all columns, one column after the other; what the footer says of them
 */
#ifndef WB_PARQUET_OWN_H
#define WB_PARQUET_OWN_H

#include "base/buf.h"
#include "parquet/parquet.h"
#include "parquet/thriftpen.h"

#include <zstd.h>

/* The numbers of the format. */
enum { PARQUET_INT64 = 2, PARQUET_DOUBLE = 5, PARQUET_BYTE_ARRAY = 6 };
enum { PARQUET_PLAIN = 0, PARQUET_RLE = 3 };
enum { PARQUET_ZSTD = 6 };

/* Bounds of the values of a group. Those of long texts are shorter than the texts. */
struct wb_parquet_stats {
    bool any, endless; /* there are values; no text is known that is greater than all of them */
    int64_t whole_min, whole_max;
    double number_min, number_max;
    struct wb_buf text_min, text_max;
};

void wb_parquet_stats_reset(struct wb_parquet_stats *stats);
void wb_parquet_stats_release(struct wb_parquet_stats *stats);
void wb_parquet_stats_whole(struct wb_parquet_stats *stats, int64_t value);
void wb_parquet_stats_number(struct wb_parquet_stats *stats, double value);
int wb_parquet_stats_text(struct wb_parquet_stats *stats, struct wb_slice value);

/* Writes the struct Statistics as a field. */
void wb_parquet_stats_write(const struct wb_parquet_stats *stats, enum wb_parquet_kind kind, uint64_t nulls,
                            struct wb_thriftpen *pen, int field);

/* A column of the group under way. */
struct wb_parquet_chunk {
    const struct wb_parquet_column *column; /* the caller's */
    struct wb_buf values, present;          /* of the page under way; present: a bit for each row */
    uint32_t page_rows;
    struct wb_buf pages; /* complete ones, with their headers */
    uint64_t rows, nulls, raw_bytes;
    struct wb_parquet_stats stats;
};

int wb_parquet_chunk_add(struct wb_parquet_chunk *chunk, const struct wb_parquet_cell *cell);

/* Completes the page, if it has rows. scratch is for anybody's use. */
int wb_parquet_chunk_page(struct wb_parquet_chunk *chunk, ZSTD_CCtx *zstd, struct wb_buf *scratch);
void wb_parquet_chunk_reset(struct wb_parquet_chunk *chunk);
void wb_parquet_chunk_release(struct wb_parquet_chunk *chunk);

int32_t wb_parquet_type(enum wb_parquet_kind kind);

#endif
