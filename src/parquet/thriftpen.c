/* thriftpen.c - Thrift's compact protocol. */
#include "parquet/thriftpen.h"
#include "base/bytes.h"
#include "base/check.h"

enum { TRUE = 1, FALSE = 2, I8 = 3, I64 = 6 };

static void put(struct wb_thriftpen *pen, const void *bytes, size_t len)
{
    if (pen->err == 0)
        pen->err = wb_buf_append(pen->out, bytes, len);
}

static void put_byte(struct wb_thriftpen *pen, unsigned byte)
{
    uint8_t b = (uint8_t)byte;

    put(pen, &b, 1);
}

static void put_varint(struct wb_thriftpen *pen, uint64_t value)
{
    char bytes[WB_VARINT_MAX];

    put(pen, bytes, wb_put_varint(bytes, value));
}

static void put_binary(struct wb_thriftpen *pen, struct wb_slice value)
{
    put_varint(pen, value.len);
    put(pen, value.ptr, value.len);
}

/* The fields that are used have numbers up to 15, so that a distance always fits. */
static void put_field(struct wb_thriftpen *pen, int field, unsigned type)
{
    int distance = field - pen->last[pen->depth];

    WB_CHECK(distance >= 1 && distance <= 15);
    put_byte(pen, (unsigned)distance << 4 | type);
    pen->last[pen->depth] = field;
}

static void begin(struct wb_thriftpen *pen)
{
    WB_CHECK(pen->depth + 1 < WB_THRIFT_DEPTH);
    pen->last[++pen->depth] = 0;
}

void wb_thrift_bool(struct wb_thriftpen *pen, int field, bool value)
{
    put_field(pen, field, value ? TRUE : FALSE);
}

void wb_thrift_i8(struct wb_thriftpen *pen, int field, int8_t value)
{
    put_field(pen, field, I8);
    put_byte(pen, (uint8_t)value);
}

void wb_thrift_i32(struct wb_thriftpen *pen, int field, int32_t value)
{
    put_field(pen, field, WB_THRIFT_I32);
    wb_thrift_item_i32(pen, value);
}

void wb_thrift_i64(struct wb_thriftpen *pen, int field, int64_t value)
{
    put_field(pen, field, I64);
    put_varint(pen, wb_zigzag((uint64_t)value));
}

void wb_thrift_binary(struct wb_thriftpen *pen, int field, struct wb_slice value)
{
    put_field(pen, field, WB_THRIFT_BINARY);
    put_binary(pen, value);
}

void wb_thrift_struct(struct wb_thriftpen *pen, int field)
{
    put_field(pen, field, WB_THRIFT_STRUCT);
    begin(pen);
}

void wb_thrift_list(struct wb_thriftpen *pen, int field, enum wb_thrift_type type, size_t count)
{
    put_field(pen, field, WB_THRIFT_LIST);
    put_byte(pen, (unsigned)(count < 15 ? count : 15) << 4 | type);
    if (count >= 15)
        put_varint(pen, count);
}

void wb_thrift_item_i32(struct wb_thriftpen *pen, int32_t value)
{
    put_varint(pen, wb_zigzag((uint64_t)(int64_t)value));
}

void wb_thrift_item_binary(struct wb_thriftpen *pen, struct wb_slice value)
{
    put_binary(pen, value);
}

void wb_thrift_item_struct(struct wb_thriftpen *pen)
{
    begin(pen);
}

void wb_thrift_end(struct wb_thriftpen *pen)
{
    put_byte(pen, 0);
    if (pen->depth)
        pen->depth--;
}
