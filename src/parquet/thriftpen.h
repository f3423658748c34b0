/*
 * thriftpen.h - private to parquet: writes Thrift's compact protocol, in which the headers and the footer of a Parquet
 * file are.
 *
 *   a field    one byte: its number minus that of the field before << 4 | type; then the value
 *   i32, i64   zigzag varint            binary   varint length, bytes
 *   list       one byte: count << 4 | type, or 0xf0 | type and the count as varint; then the elements
 *   struct     fields in the order of their numbers, then a zero byte
 *
 * An error is kept, and nothing is written after it.
 */
#ifndef WB_PARQUET_THRIFTPEN_H
#define WB_PARQUET_THRIFTPEN_H

#include "base/buf.h"

enum wb_thrift_type { WB_THRIFT_I32 = 5, WB_THRIFT_BINARY = 8, WB_THRIFT_LIST = 9, WB_THRIFT_STRUCT = 12 };

enum { WB_THRIFT_DEPTH = 8 };

struct wb_thriftpen {
    struct wb_buf *out;
    int err;
    unsigned depth;
    int last[WB_THRIFT_DEPTH]; /* number of the last field, at each depth */
};

static inline struct wb_thriftpen wb_thriftpen(struct wb_buf *out)
{
    return (struct wb_thriftpen){.out = out};
}

/* Fields of the struct under way. */
void wb_thrift_bool(struct wb_thriftpen *pen, int field, bool value);
void wb_thrift_i8(struct wb_thriftpen *pen, int field, int8_t value);
void wb_thrift_i32(struct wb_thriftpen *pen, int field, int32_t value);
void wb_thrift_i64(struct wb_thriftpen *pen, int field, int64_t value);
void wb_thrift_binary(struct wb_thriftpen *pen, int field, struct wb_slice value);
void wb_thrift_struct(struct wb_thriftpen *pen, int field);
void wb_thrift_list(struct wb_thriftpen *pen, int field, enum wb_thrift_type type, size_t count);

/* Elements of a list. */
void wb_thrift_item_i32(struct wb_thriftpen *pen, int32_t value);
void wb_thrift_item_binary(struct wb_thriftpen *pen, struct wb_slice value);
void wb_thrift_item_struct(struct wb_thriftpen *pen);

/* Ends a struct: a field, an element, or the outermost one. */
void wb_thrift_end(struct wb_thriftpen *pen);

#endif
