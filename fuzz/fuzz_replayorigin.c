/*
 * fuzz_replayorigin.c - arbitrary bytes as the host of a replay origin.
 *
 *   - what is read is written in the same way again, and nothing else is read
 *   - arbitrary bytes as a live URL: what is written is read again, as the same origin
 */
#include "base/check.h"
#include "base/error.h"
#include "replay/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(struct wb_slice text)
{
    static struct wb_url url;
    static struct wb_buf labels, origin;
    struct wb_slice time;

    wb_buf_clear(&labels);
    wb_buf_clear(&origin);
    if (wb_url_parse(text, NULL, &url) < 0 ||
        wb_replay_origin_labels(WB_SLICE_LIT("20260102030405"), &url, &labels) < 0)
        return;
    WB_CHECK(labels.len <= WB_REPLAY_LABELS_MAX);
    WB_CHECK(wb_replay_origin_parse(wb_buf_slice(&labels), &time, &origin) == 0);
    WB_CHECK(wb_slice_equal(time, WB_SLICE_LIT("20260102030405")));
    WB_CHECK(wb_slice_starts(wb_buf_slice(&origin), wb_url_scheme(&url)));
    WB_CHECK(memmem(origin.ptr, origin.len, wb_url_host(&url).ptr, wb_url_host(&url).len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct wb_replay_base base = {false, {"localhost:8081", 14}};
    static struct wb_url url;
    static struct wb_buf origin, again;
    struct wb_slice text = wb_slice((const char *)data, size), time, labels;

    wb_buf_clear(&origin);
    wb_buf_clear(&again);
    if (wb_replay_base_labels(&base, text, &labels))
        text = labels;
    int err = wb_replay_origin_parse(text, &time, &origin);
    WB_CHECK(err == 0 || err == WB_E_PROTO);
    if (err == 0) {
        WB_CHECK(wb_url_parse(wb_buf_slice(&origin), NULL, &url) == 0);
        WB_CHECK(wb_replay_origin_labels(time, &url, &again) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&again), text));
    }
    write_and_read(text);
    return 0;
}
