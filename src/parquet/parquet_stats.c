/*
 * parquet_stats.c - the least and the greatest value of a column in a group, by which readers pass over groups.
 *
 * Texts are compared as bytes. A bound of a long text is a beginning of it, for which the format allows: one that is
 * less than the text, or, with its last character increased, greater. Bounds are well-formed UTF-8, too.
 */
#include "base/bytes.h"
#include "base/utf8.h"
#include "parquet/parquet_own.h"

#include <math.h>

enum { TEXT_MAX = 64 };

void wb_parquet_stats_reset(struct wb_parquet_stats *stats)
{
    stats->any = stats->endless = false;
}

void wb_parquet_stats_release(struct wb_parquet_stats *stats)
{
    wb_buf_release(&stats->text_min);
    wb_buf_release(&stats->text_max);
}

void wb_parquet_stats_whole(struct wb_parquet_stats *stats, int64_t value)
{
    if (!stats->any || value < stats->whole_min)
        stats->whole_min = value;
    if (!stats->any || value > stats->whole_max)
        stats->whole_max = value;
    stats->any = true;
}

/* NaN has no place in an order. Both zeros are equal, so readers expect the bounds to include both. */
void wb_parquet_stats_number(struct wb_parquet_stats *stats, double value)
{
    if (isnan(value))
        return;
    if (!stats->any || value < stats->number_min)
        stats->number_min = value == 0 ? -0.0 : value;
    if (!stats->any || value > stats->number_max)
        stats->number_max = value == 0 ? 0.0 : value;
    stats->any = true;
}

static size_t cut(struct wb_slice text)
{
    size_t len = TEXT_MAX;

    while (len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
        len--;
    return len;
}

/*
 * Turns a beginning of a text into one that is greater than all texts with this beginning, by increasing its last
 * character that can be. Returns its new length, or 0 if there is none.
 */
static size_t increase(char *text, size_t len)
{
    while (len > 0) {
        size_t at = len - 1;
        while (((unsigned char)text[at] & 0xc0) == 0x80)
            at--;
        uint32_t cp = wb_utf8_decode(text + at, len - at) + 1;
        if (cp == 0xd800)
            cp = 0xe000;
        if (cp <= 0x10ffff)
            return at + wb_utf8_encode(cp, text + at);
        len = at;
    }
    return 0;
}

static int keep(struct wb_buf *bound, struct wb_slice value)
{
    wb_buf_clear(bound);
    return wb_buf_append_slice(bound, value);
}

int wb_parquet_stats_text(struct wb_parquet_stats *stats, struct wb_slice value)
{
    bool whole = value.len <= TEXT_MAX;
    struct wb_slice low = whole ? value : wb_slice(value.ptr, cut(value)), high = low;
    char text[TEXT_MAX + 4];
    int err = 0;

    if (!whole) {
        memcpy(text, low.ptr, low.len);
        high = wb_slice(text, increase(text, low.len));
        stats->endless = stats->endless || high.len == 0;
    }
    if (!stats->any || wb_slice_compare(low, wb_buf_slice(&stats->text_min)) < 0)
        err = keep(&stats->text_min, low);
    if (err == 0 && (!stats->any || wb_slice_compare(high, wb_buf_slice(&stats->text_max)) > 0))
        err = keep(&stats->text_max, high);
    stats->any = true;
    return err;
}

static void put_bound(struct wb_thriftpen *pen, int field, uint64_t bits)
{
    char bytes[8];

    wb_put64(bytes, bits);
    wb_thrift_binary(pen, field, wb_slice(bytes, sizeof bytes));
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void wb_parquet_stats_write(const struct wb_parquet_stats *stats, enum wb_parquet_kind kind, uint64_t nulls,
                            struct wb_thriftpen *pen, int field)
{
    wb_thrift_struct(pen, field);
    wb_thrift_i64(pen, 3, (int64_t)nulls);
    if (stats->any && kind == WB_PARQUET_TEXT) {
        if (!stats->endless)
            wb_thrift_binary(pen, 5, wb_buf_slice(&stats->text_max));
        wb_thrift_binary(pen, 6, wb_buf_slice(&stats->text_min));
    } else if (stats->any) {
        bool number = kind == WB_PARQUET_NUMBER;
        put_bound(pen, 5, number ? bits_of(stats->number_max) : (uint64_t)stats->whole_max);
        put_bound(pen, 6, number ? bits_of(stats->number_min) : (uint64_t)stats->whole_min);
    }
    wb_thrift_end(pen);
}
