/*
 * fuzz_httpdate.c - arbitrary bytes as HTTP dates, Retry-After values and robots directives.
 * A date that can be parsed can be written and parsed again.
 */
#include "base/check.h"
#include "base/date.h"
#include "extract/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice text = wb_slice(size ? (const char *)data : "", size);
    char again[WB_DATE_TEXT_MAX];
    int64_t ms, same;

    if (wb_http_date_parse(text, &ms)) {
        wb_date_format(ms, again);
        /* A time zone may move the date out of the years that can be written. */
        if (wb_http_date_parse(wb_slice_str(again), &same))
            WB_CHECK(same == ms);
        else
            WB_CHECK(ms < -62135596800000 || ms > 253402300799999);
    } else {
        WB_CHECK(ms == 0);
    }
    if (wb_http_retry_after(text, 1, &ms))
        WB_CHECK(ms >= -62135596800000 - WB_DAY_MS && ms <= 253402300799999 + WB_DAY_MS);
    unsigned flags = wb_robotstag_parse(text, WB_SLICE_LIT("webbase"));
    WB_CHECK((flags & ~0xfu) == 0 && (wb_robotstag_parse(text, WB_SLICE_EMPTY) & ~flags) == 0);
    return 0;
}
