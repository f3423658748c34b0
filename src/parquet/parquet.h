/*
 * parquet.h - writes a table as Apache Parquet, for programs that read columns: DuckDB, pandas, Spark. It is a foreign
 * format, of which docs/formats/parquet.md describes the part that is written here. Nothing here reads it.
 *
 *   new -> row ... -> finish -> free          (free is safe at any time)
 *
 * Rows are gathered in groups. A group is in memory until it is complete, as compressed pages for each column, so
 * memory is bounded by the limits and the longest text. The bytes depend on the rows alone.
 */
#ifndef WB_PARQUET_PARQUET_H
#define WB_PARQUET_PARQUET_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct wb_parquet;

enum wb_parquet_kind {
    WB_PARQUET_TEXT,   /* UTF-8; bytes that are not become U+FFFD */
    WB_PARQUET_WHOLE,  /* 64 bits with a sign */
    WB_PARQUET_NUMBER, /* a double */
    WB_PARQUET_TIME,   /* given in milliseconds since 1970, written in microseconds, UTC */
};

struct wb_parquet_column {
    const char *name;
    enum wb_parquet_kind kind;
    bool always; /* every row has a value */
};

struct wb_parquet_cell {
    bool known;
    struct wb_slice text;
    int64_t whole; /* or a time */
    double number;
};

/* A page and a group end when they have reached these. */
struct wb_parquet_limits {
    size_t page_bytes, group_bytes; /* before and after compression */
    uint64_t group_rows;
};

#define WB_PARQUET_LIMITS ((struct wb_parquet_limits){1 << 20, 32 << 20, 100000})

/* Takes the next bytes of the file; a negative code ends the work. */
typedef int (*wb_parquet_sink)(void *context, const void *bytes, size_t len);

/* The columns and their names must stay. Writes the first bytes. */
int wb_parquet_new(const struct wb_parquet_column *columns, size_t count, const struct wb_parquet_limits *limits,
                   wb_parquet_sink sink, void *context, struct wb_parquet **parquet_out);

/* A cell for each column. WB_E_LIMIT for a text of more than 1 GiB, or a time that microseconds cannot express. */
int wb_parquet_row(struct wb_parquet *parquet, const struct wb_parquet_cell *cells);

/* Writes what is left, and the footer, without which the file is nothing. */
int wb_parquet_finish(struct wb_parquet *parquet);
void wb_parquet_free(struct wb_parquet *parquet);

#endif
