/*
 * fuzz_marks.c - two arbitrary pages, separated by the first NUL, whose differences are marked. The first byte chooses
 * the encoding. Without the marks, both are the same pages as before; with them, they have the same tags
 * (tests/unit/replay/same_marks.h).
 */
#include "../tests/unit/replay/same_marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const charsets[] = {"utf-8", "windows-1252"};
    static struct wb_replayer *replayer;
    const char *text = (const char *)data + (size > 0);
    size_t len = size - (size > 0);
    const char *nul = len ? memchr(text, '\0', len) : NULL;
    size_t first = nul ? (size_t)(nul - text) : len, past = nul ? first + 1 : len;
    struct wb_replay_page old = {WB_SLICE_LIT("https://example.org/dir/page.html"), WB_SLICE_LIT("20260102030405"),
                                 WB_SLICE_LIT("text/html"), wb_slice_str(charsets[size && data[0] & 1]),
                                 wb_slice(text, first)};
    struct wb_replay_page new = old;

    new.body = wb_slice(text + past, len - past);
    WB_CHECK(replayer || wb_replayer_new(&replayer) == 0);
    uint32_t changes = check_marks(replayer, &old, &new);
    WB_CHECK(changes == 0 || !wb_slice_equal(old.body, new.body));
    return 0;
}
