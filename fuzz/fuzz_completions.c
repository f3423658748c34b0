/*
 * fuzz_completions.c - reads a hostile file of completions, without checksums: completes what is in it, and verifies
 * it.
 *
 *   input   flags (1: bit 0: make the foot fit the rest), and then the file
 *
 * Nothing may be read outside of these bytes, and a search must end.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "index/completions.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(void *context, const struct wb_completion *completion)
{
    unsigned *count = context;
    unsigned sum = 0;

    WB_CHECK(completion->folded.len > 0 && completion->text.len > 0);
    for (size_t i = 0; i < completion->text.len; i++)
        sum += (uint8_t)completion->text.ptr[i];
    WB_CHECK(++*count <= WB_COMPLETION_TRIES_MAX);
    return sum == 1; /* so that all bytes are read */
}

static void try_all(const struct wb_completions *completions, struct wb_slice input)
{
    uint64_t at = 0;

    for (size_t i = 0; i < 40 && i < input.len; i++) {
        struct wb_slice any = wb_slice(input.ptr + i, input.len - i < 4 ? input.len - i : 1 + i % 4);
        unsigned count = 0;
        int err = wb_completions_find(completions, any, note, &count);
        WB_CHECK(err >= 0 || err == WB_E_CORRUPT);
    }
    const char *wrong = wb_completions_verify(completions, 1 << 16, &at);
    WB_CHECK(wrong || completions->texts <= completions->starts);
}

/* Makes the foot say how many bytes there are, of which as many as it said before are texts. */
static void mend(char *file, size_t len)
{
    char *foot = file + len - WB_COMPLETION_FOOT_BYTES;
    uint64_t rest = len - WB_COMPLETION_FOOT_BYTES, texts = wb_get64(foot + 8) % (rest + 1), starts = 0;

    for (uint64_t bytes = 0; bytes < rest - texts; starts++) {
        uint64_t next = (starts + 1) * WB_COMPLETION_START_BYTES;
        for (uint64_t count = starts + 1; count > 64; next += 2 * count)
            count = (count + 63) / 64;
        if (next > rest - texts)
            break;
        bytes = next;
        wb_put64(foot + 8, rest - next);
        wb_put64(foot + 24, starts + 1);
    }
    if (starts == 0) {
        wb_put64(foot + 8, rest);
        wb_put64(foot + 24, 0);
    }
    memcpy(foot, WB_COMPLETION_MAGIC, 8);
    wb_put64(foot + 16, wb_get64(foot + 16) % (wb_get64(foot + 8) / WB_COMPLETION_HEAD_BYTES + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_completions completions = {.blob = WB_BLOB_INIT};

    if (size < 1 + WB_COMPLETION_FOOT_BYTES || size > 1 << 16)
        return 0;
    size_t len = size - 1;
    char *copy = malloc(len);
    WB_CHECK(copy != NULL);
    memcpy(copy, data + 1, len);
    if (data[0] & 1)
        mend(copy, len);
    completions.blob = (struct wb_blob){.data = copy, .bytes = len, .map = copy, .path = (char *)"fuzz"};
    completions.blob.checked = malloc(len / 65536 + 1);
    WB_CHECK(completions.blob.checked != NULL);
    memset(completions.blob.checked, 1, len / 65536 + 1);
    if (wb_completions_check(&completions) == 0)
        try_all(&completions, wb_slice((const char *)data, size));
    free(completions.blob.checked);
    free(copy);
    return 0;
}
