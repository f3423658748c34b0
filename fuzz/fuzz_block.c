/*
 * fuzz_block.c - blocks and page records of arbitrary bytes.
 *
 * The first byte says what the rest is:
 *   0 a block, unchanged         1 a block whose checksums are corrected first
 *   2 a page record              3 the blocks of a segment, walked from block to block
 * A fuzzer cannot guess checksums and would never reach the code behind them; therefore they
 * are corrected in 1, and in 3 for the first block.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/block.h"
#include "store/block_bytes.h"
#include "store/segment.h"

#include <sys/mman.h>
#include <unistd.h>

enum { RAW_MAX = 4 << 20 }; /* a block with a correct checksum may claim any length; skip those that need more memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(struct wb_slice a, struct wb_slice b)
{
    WB_CHECK(wb_slice_equal(a, b));
}

/* A record that can be read can be written, and then reads as the same page. */
static void try_record(struct wb_slice bytes)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_page page, again;

    if (wb_page_decode(bytes, &page) < 0)
        return;
    WB_CHECK(page.body_bytes == page.body.len);
    WB_CHECK(wb_page_encode(&page, &record) == 0);
    WB_CHECK(wb_page_decode(wb_buf_slice(&record), &again) == 0);
    check_same(page.url, again.url);
    check_same(page.key, again.key);
    check_same(page.head, again.head);
    check_same(page.type, again.type);
    check_same(page.charset, again.charset);
    check_same(page.body, again.body);
    WB_CHECK(page.time_ms == again.time_ms && page.status == again.status && page.kind == again.kind &&
             page.lifetime == again.lifetime && page.truncated == again.truncated && page.digested == again.digested &&
             page.has_payload_sha1 == again.has_payload_sha1);
    WB_CHECK(wb_page_record_digest(&(struct wb_record_digest){record.ptr, record.len, page.body.len}, 1) == 0);
    WB_CHECK(wb_page_decode(wb_buf_slice(&record), &again) == 0 && again.digested);
    wb_buf_release(&record);
}

/* ---- correcting checksums ----------------------------------------------------------------------- */

static void mend_block(char *block, size_t size)
{
    size_t count = wb_get16(block + HEAD_COUNT_AT),
           directory_end = WB_BLOCK_HEADER_BYTES + count * WB_BLOCK_ENTRY_BYTES;
    uint64_t at = directory_end + wb_get32(block + HEAD_LEAD_STORED_AT);

    if (directory_end > size)
        return;
    if (at <= size)
        wb_put32(block + HEAD_LEAD_CHECK_AT, wb_hash32(block + directory_end, wb_get32(block + HEAD_LEAD_STORED_AT)));
    for (size_t i = 0; i < count; i++) {
        char *entry = block + WB_BLOCK_HEADER_BYTES + i * WB_BLOCK_ENTRY_BYTES;
        uint32_t stored = wb_get32(entry + ENTRY_STORED_AT);
        if (stored && at <= size && stored <= size - at)
            wb_put32(entry + ENTRY_CHECK_AT, wb_hash32(block + at, stored));
        at += stored;
    }
    wb_put64(block + HEAD_DIRECTORY_CHECK_AT, wb_hash64(block + WB_BLOCK_HEADER_BYTES, count * WB_BLOCK_ENTRY_BYTES));
    wb_block_stamp(block, wb_get64(block + HEAD_LOGICAL_AT), wb_get64(block + HEAD_COMMIT_AT));
}

/* ---- reading a block ------------------------------------------------------------------------------- */

static void try_pages(struct wb_block_reader *reader, const struct wb_block_head *head, const char *block)
{
    const char *directory = block + WB_BLOCK_HEADER_BYTES;
    struct wb_buf lead = WB_BUF_INIT, record = WB_BUF_INIT;
    int err = 0;

    if (head->lead_count)
        err = wb_block_read_lead(reader, head, block + wb_block_directory_end(head), &lead);
    WB_CHECK(err < 0 || lead.len == head->lead_raw_bytes);
    for (size_t i = 0; i < head->count && err == 0; i++) {
        struct wb_block_entry entry = wb_block_entry_read(directory, i);
        size_t found;
        WB_CHECK(wb_block_find_slot(head, directory, entry.slot, &found) && found == i);
        int got;
        if (entry.flags & WB_BLOCK_ENTRY_LEAD)
            got = wb_block_lead_record(&entry, wb_buf_slice(&lead), wb_block_lead_at(directory, i), &record);
        else if (entry.raw_bytes <= RAW_MAX)
            got = wb_block_read_frame(reader, &entry, block + wb_block_frame_at(head, directory, i),
                                      wb_buf_slice(&lead), &record);
        else
            continue;
        if (got == 0)
            try_record(wb_buf_slice(&record));
    }
    wb_buf_release(&lead);
    wb_buf_release(&record);
}

/* A valid block without every other page is still a valid block. */
static void try_thinning(const struct wb_block_head *head, const char *block)
{
    bool dead[WB_BLOCK_PAGES_MAX];
    struct wb_buf thin = WB_BUF_INIT;
    struct wb_block_head thinned;
    bool any = false;

    for (size_t i = 0; i < head->count; i++) {
        dead[i] = i % 2 == 0 || wb_block_entry_read(block + WB_BLOCK_HEADER_BYTES, i).flags & WB_BLOCK_ENTRY_DEAD;
        any = any || !dead[i];
    }
    WB_CHECK(wb_block_thin(head, block, dead, &thin) == 0);
    WB_CHECK((thin.len > 0) == any);
    if (any) {
        WB_CHECK(wb_block_head_read(thin.ptr, &thinned) == 0 && thinned.bytes == thin.len &&
                 thinned.logical == head->logical);
        WB_CHECK(wb_block_directory_check(&thinned, thin.ptr + WB_BLOCK_HEADER_BYTES) == 0);
    }
    wb_buf_release(&thin);
}

static void try_block(struct wb_block_reader *reader, const char *block, size_t size)
{
    struct wb_block_head head;

    if (size < WB_BLOCK_HEADER_BYTES || wb_block_head_read(block, &head) < 0 || head.bytes != size)
        return;
    if (wb_block_directory_check(&head, block + WB_BLOCK_HEADER_BYTES) < 0)
        return;
    try_pages(reader, &head, block);
    try_thinning(&head, block);
}

/* ---- walking a segment ---------------------------------------------------------------------------------- */

static void walk_blocks(struct wb_block_reader *reader, const char *bytes, size_t size)
{
    static int fd = -1;
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, last = 0;
    size_t steps = 0;
    int more;

    if (fd < 0)
        fd = memfd_create("segment", 0);
    WB_CHECK(fd >= 0 && ftruncate(fd, 0) == 0);
    WB_CHECK(pwrite(fd, bytes, size, WB_SEGMENT_HEADER_BYTES) == (ssize_t)size);
    segment.magic = WB_SEGMENT_MAGIC;
    segment.number = 1;
    segment.file.fd = fd;
    segment.file.path = wb_strdup("segment");
    WB_CHECK(segment.file.path);
    wb_segment_walk_init(&walk, &segment, WB_SEGMENT_HEADER_BYTES + size);
    while ((more = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        WB_CHECK(more == 1 || more == WB_E_CORRUPT || more == WB_E_NEWER);
        WB_CHECK(at > last && ++steps <= size); /* the walk must always move forward */
        last = at;
        if (more == 1)
            try_pages(reader, &head, block);
    }
    wb_segment_walk_release(&walk);
    wb_free(segment.file.path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_block_reader *reader = NULL;

    if (size < 1)
        return 0;
    size_t len = size - 1;
    char *bytes = wb_alloc(len);
    WB_CHECK(bytes && wb_block_reader_new(&reader) == 0);
    memcpy(bytes, data + 1, len);
    if (data[0] & 1 && len >= WB_BLOCK_HEADER_BYTES)
        mend_block(bytes, len);
    if ((data[0] & 3) == 2)
        try_record(wb_slice(bytes, len));
    else if ((data[0] & 3) == 3)
        walk_blocks(reader, bytes, len);
    else
        try_block(reader, bytes, len);
    wb_block_reader_free(reader);
    wb_free(bytes);
    return 0;
}
