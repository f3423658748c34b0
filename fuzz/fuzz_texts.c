/*
 * fuzz_texts.c - reads a hostile file of kept texts, without checksums: opens it, and decodes the texts of its pages.
 *
 *   input   flags (1: bit 0: make the foot fit the rest), and then the data of the blob
 *
 * Nothing may be read outside of these bytes, and no text is longer than one may be.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "index/textfile.h"

#include <stdlib.h>
#include <zstd.h>

enum { FOOT_BYTES = 64, PAGES_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_texts(const struct wb_textfile *file)
{
    struct wb_text_decoder decoder;
    struct wb_slice title, text;
    unsigned flags;

    WB_CHECK(wb_text_decoder_init(&decoder) == 0);
    for (uint32_t page = 0; page < file->pages && page < PAGES_MAX; page++) {
        int more = wb_text_decoder_begin(&decoder, file, page);
        for (more = more < 0 ? more : 1; more > 0; more = wb_text_decoder_more(&decoder)) {
            WB_CHECK(decoder.kept.len <= WB_KEPT_MAX);
            if (wb_kept_text_split(wb_buf_slice(&decoder.kept), &flags, &title, &text))
                WB_CHECK(title.len + text.len < decoder.kept.len);
        }
    }
    wb_text_decoder_release(&decoder);
    (void)wb_textfile_verify(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_textfile file = {.pages = 0};

    if (size < 1 + FOOT_BYTES)
        return 0;
    size_t len = size - 1;
    char *copy = malloc(len), *foot = copy + len - FOOT_BYTES;
    atomic_uchar *checked = malloc(len / 65536 + 1);
    WB_CHECK(copy && checked);
    memcpy(copy, data + 1, len);
    memset(checked, 1, len / 65536 + 1);
    if (data[0] & 1) { /* as many records as are left; few pages, so that most inputs have some */
        uint64_t pages = wb_get64(foot + 8) % 40, samples = wb_get64(foot + 40) % 4, room = len - FOOT_BYTES;
        uint64_t dictionary = wb_get64(foot + 24) % (room + 1);
        uint64_t others = (pages + 63) / 64 * 8 + pages * 4 + dictionary + samples * 16;
        memcpy(foot, "WBTEXT1\n", 8);
        wb_put64(foot + 8, pages);
        wb_put64(foot + 16, others < room ? room - others : 0);
        wb_put64(foot + 24, dictionary);
        wb_put64(foot + 40, samples);
    }
    file.blob = (struct wb_blob){.data = copy, .bytes = len, .map = copy, .path = (char *)"fuzz", .checked = checked};
    if (wb_textfile_check(&file) == 0)
        read_texts(&file);
    ZSTD_freeDDict(file.decoder);
    free(checked);
    free(copy);
    return 0;
}
