/*
 * fuzz_control.c - arbitrary bytes as what is in DIR/control: the dashboard's history, the latest fetches, the
 * operators' log.
 *
 *   input   which (1): 0 a record, 1 a fetch, 2 a line of the log; bit 7: its checksum is corrected    and then its
 * bytes
 *
 * What is taken is written as the same bytes again, and its parts lie within it.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "crawl/recent.h"
#include "serve/chronicle.h"
#include "serve/orders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_record(uint8_t *bytes, bool mend)
{
    uint8_t again[WB_CHRONICLE_RECORD_BYTES];
    struct wb_chronicle_record record;

    if (mend) {
        wb_put32(bytes + 12, 0);
        wb_put32(bytes + 12, wb_hash32(bytes, WB_CHRONICLE_RECORD_BYTES));
    }
    for (enum wb_chronicle_level level = 0; level < WB_CHRONICLE_LEVELS; level++) {
        int64_t slot =
            (int64_t)(wb_get64(bytes) / (uint64_t)wb_chronicle_period(level) % (uint64_t)wb_chronicle_slots(level));
        if (wb_chronicle_decode(level, slot, bytes, &record) != WB_CHRONICLE_RECORD)
            continue;
        WB_CHECK(record.start_s >= 0 && record.start_s % wb_chronicle_period(level) == 0 && record.watched_ms > 0);
        wb_chronicle_encode(&record, again);
        WB_CHECK(memcmp(again, bytes, sizeof again) == 0);
    }
}

static void check_within(struct wb_slice text, const uint8_t *bytes)
{
    WB_CHECK((const uint8_t *)text.ptr >= bytes &&
             (const uint8_t *)text.ptr + text.len <= bytes + WB_RECENT_SLOT_BYTES);
}

static void try_fetch(uint8_t *bytes, bool mend)
{
    uint8_t first[WB_RECENT_SLOT_BYTES], second[WB_RECENT_SLOT_BYTES];
    struct wb_recent_fetch fetch;

    if (mend) {
        wb_put32(bytes + 8, 0);
        wb_put32(bytes + 8, wb_hash32(bytes, WB_RECENT_SLOT_BYTES));
    }
    if (!wb_recent_decode(bytes, &fetch))
        return;
    check_within(fetch.url, bytes);
    check_within(fetch.result, bytes);
    check_within(fetch.reason, bytes);
    /* Texts that are longer than ours are cut once, and then stay. */
    wb_recent_encode(&fetch, first);
    WB_CHECK(wb_recent_decode(first, &fetch));
    wb_recent_encode(&fetch, second);
    WB_CHECK(memcmp(first, second, sizeof first) == 0);
}

static void try_line(char *text, size_t len, bool mend)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_order order;
    char check[17];

    if (mend && len > 17) {
        snprintf(check, sizeof check, "%016" PRIx64, wb_hash64(text + 17, len - 17));
        memcpy(text, check, 16);
        text[16] = ' ';
    }
    if (wb_orders_decode(wb_slice(text, len), &mem, &order))
        WB_CHECK(order.what.len + order.subject.len + order.said.len <= mem.len);
    wb_buf_release(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t sizes[] = {WB_CHRONICLE_RECORD_BYTES, WB_RECENT_SLOT_BYTES};
    unsigned which = size ? data[0] & 0x7f : 3;
    bool mend = size && data[0] & 0x80;

    if (which > 2)
        return 0;
    /* A copy of the exact size, so that a sanitizer notices a read past its end. */
    size_t len = which == 2 ? size - 1 : sizes[which];
    uint8_t *bytes = calloc(1, len ? len : 1);
    WB_CHECK(bytes);
    memcpy(bytes, data + 1, size - 1 < len ? size - 1 : len);
    if (which == 0)
        try_record(bytes, mend);
    else if (which == 1)
        try_fetch(bytes, mend);
    else
        try_line((char *)bytes, len, mend);
    free(bytes);
    return 0;
}
