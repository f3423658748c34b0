/*
 * mend_block.h - corrects the checksums of a block of arbitrary bytes, so that a fuzzer reaches the code behind them.
 */
#ifndef WB_FUZZ_MEND_BLOCK_H
#define WB_FUZZ_MEND_BLOCK_H

#include "base/bytes.h"
#include "base/hash.h"
#include "block/block_bytes.h"

/* Corrects the checksum of a stored frame at `at`, if it is within the block; check is where the checksum is. */
static inline void mend_frame(const char *block, size_t size, uint64_t at, uint32_t stored, char *check)
{
    if (stored && at <= size && stored <= size - at)
        wb_put32(check, wb_hash32(block + at, stored));
}

static inline void mend_frames(char *block, size_t size, size_t directory_bytes)
{
    size_t frames = wb_get16(block + HEAD_FRAMES_AT), lead = wb_get16(block + HEAD_LEAD_AT);
    uint64_t at = WB_BLOCK_HEADER_BYTES + directory_bytes;

    if (frames * FRAME_ROW_BYTES > directory_bytes || lead >= frames)
        return;
    for (size_t i = 0; i <= frames; i++) { /* the lead first */
        size_t frame = i == 0 ? lead : i - 1;
        char *row = block + WB_BLOCK_HEADER_BYTES + frame * FRAME_ROW_BYTES;
        if (i > 0 && frame == lead)
            continue;
        mend_frame(block, size, at, wb_get32(row + FRAME_STORED_AT), row + FRAME_CHECK_AT);
        at += wb_get32(row + FRAME_STORED_AT);
    }
}

/* size: at least that of a header. */
static inline void mend_block(char *block, size_t size)
{
    size_t directory_bytes = wb_get32(block + HEAD_DIRECTORY_BYTES_AT);

    if (directory_bytes > size - WB_BLOCK_HEADER_BYTES)
        return;
    mend_frames(block, size, directory_bytes);
    wb_put64(block + HEAD_DIRECTORY_CHECK_AT, wb_hash64(block + WB_BLOCK_HEADER_BYTES, directory_bytes));
    wb_block_stamp(block, wb_get64(block + HEAD_LOGICAL_AT), wb_get64(block + HEAD_COMMIT_AT));
}

#endif
