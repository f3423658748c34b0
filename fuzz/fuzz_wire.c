/*
 * fuzz_wire.c - a stream of arbitrary bytes from a server.
 *
 * The first byte: bits 0 and 1 say whether the checksums of frames and of their blocks are corrected first, which a
 * fuzzer cannot guess; the others in what pieces the bytes arrive.
 */
#include "base/check.h"
#include "base/mem.h"
#include "mend_block.h"
#include "stream/wire.h"

enum { FRAME_BYTES = 24, RAW_MAX = 4 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A block with correct checksums may claim any length; those that need much memory are left alone. */
static bool is_small(const char *block, size_t size)
{
    size_t frames = wb_get16(block + HEAD_FRAMES_AT);

    if (wb_get16(block + HEAD_FORMAT_AT) != BLOCK_FORMAT || frames * FRAME_ROW_BYTES > size - WB_BLOCK_HEADER_BYTES)
        return false;
    for (size_t i = 0; i < frames; i++)
        if (wb_get32(block + WB_BLOCK_HEADER_BYTES + i * FRAME_ROW_BYTES + FRAME_RAW_AT) > RAW_MAX)
            return false;
    return true;
}

static void mend(char *bytes, size_t size, bool blocks)
{
    for (size_t at = 0; size - at >= FRAME_BYTES;) {
        char *frame = bytes + at;
        uint64_t fields = wb_get32(frame + 4), block = wb_get64(frame + 8);
        if (fields > size - at - FRAME_BYTES)
            return;
        wb_put64(frame + 16, wb_hash64_seeded(frame + FRAME_BYTES, fields, wb_hash64(frame, 16)));
        at += FRAME_BYTES + fields;
        if (block > size - at)
            return;
        if (blocks && block >= WB_BLOCK_HEADER_BYTES && is_small(bytes + at, block))
            mend_block(bytes + at, block);
        at += block;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_wire_reader *reader;
    struct wb_stream_record record;
    int got = WB_WIRE_MORE;

    if (size < 1)
        return 0;
    size_t len = size - 1, piece = data[0] >> 2 ? (size_t)1 << (data[0] >> 2) % 16 : len;
    char *bytes = wb_alloc(len + 1);
    WB_CHECK(bytes && wb_wire_reader_new(&reader) == 0);
    memcpy(bytes, data + 1, len);
    if (data[0] & 1)
        mend(bytes, len, data[0] & 2);
    for (size_t at = 0; at < len && got >= 0; at += piece) {
        WB_CHECK(wb_wire_reader_feed(reader, wb_slice(bytes + at, len - at < piece ? len - at : piece)) == 0);
        do {
            got = wb_wire_reader_next(reader, &record);
            WB_CHECK(got != WB_WIRE_RECORD || (record.token.len && record.page.body.len == record.page.body_bytes));
        } while (got == WB_WIRE_RECORD || got == WB_WIRE_DAMAGE);
        WB_CHECK(got < 0 || got == WB_WIRE_MORE || got == WB_WIRE_END);
    }
    wb_wire_reader_free(reader);
    wb_free(bytes);
    return 0;
}
