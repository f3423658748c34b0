/*
 * fuzz_difference.c - two arbitrary texts, separated by the first NUL: the runs between them give both, neighbouring
 * runs differ in kind, and equal texts have no other run than one.
 */
#include "base/check.h"
#include "replay/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wb_buf old_again, new_again;
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    size_t len = nul ? (size_t)(nul - data) : size, past = nul ? len + 1 : size;
    struct wb_slice old = wb_slice((const char *)data, len), new = wb_slice((const char *)data + past, size - past);
    struct wb_difference difference;

    WB_CHECK(wb_difference_of(old, new, &difference) == 0);
    wb_buf_clear(&old_again);
    wb_buf_clear(&new_again);
    for (size_t i = 0; i < difference.count; i++) {
        const struct wb_difference_run *run = &difference.items[i];
        WB_CHECK(run->text.len > 0 && (i == 0 || run[-1].kind != run->kind));
        if (run->kind != WB_DIFFERENCE_ADDED)
            WB_CHECK(wb_buf_append_slice(&old_again, run->text) == 0);
        if (run->kind != WB_DIFFERENCE_REMOVED)
            WB_CHECK(wb_buf_append_slice(&new_again, run->text) == 0);
    }
    WB_CHECK(wb_slice_equal(wb_buf_slice(&old_again), old) && wb_slice_equal(wb_buf_slice(&new_again), new));
    if (wb_slice_equal(old, new))
        WB_CHECK(difference.count == (old.len > 0));
    wb_difference_release(&difference);
    return 0;
}
