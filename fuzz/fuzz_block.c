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
#include "block/block.h"
#include "mend_block.h"
#include "os/nameless.h"
#include "pagefile/segment.h"

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

/* ---- reading a block ------------------------------------------------------------------------------- */

static bool is_small(const struct wb_block_index *index)
{
    for (size_t i = 0; i < index->frames.count; i++)
        if (index->frames.items[i].raw_bytes > RAW_MAX)
            return false;
    return true;
}

/* What can be read of a page says the same, with and without its body. */
static void try_pages(struct wb_block_reader *reader, const struct wb_block_index *index, const char *block)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_page page, facts;

    if (!is_small(index))
        return;
    for (size_t i = 0; i < index->entries.count; i++) {
        size_t found;
        WB_CHECK(wb_block_find_slot(index, index->entries.items[i].slot, &found) && found == i);
        wb_block_reader_open_bytes(reader, index, block);
        int known = wb_block_read_facts(reader, i, &facts);
        struct wb_slice key = facts.key;
        struct wb_pageid id = known == 0 ? wb_pageid_of_key(key) : (struct wb_pageid){0};
        int whole = wb_block_read_page(reader, i, &page);
        /* The heads may be shorter than the header claims and still be complete, or the bodies may be damaged. */
        if (known == 0 && whole == 0)
            WB_CHECK(wb_pageid_equal(id, wb_pageid_of_key(page.key)) && page.body_bytes == facts.body_bytes);
        if (wb_block_read_record(reader, i, &record) == 0)
            try_record(wb_buf_slice(&record));
    }
    wb_buf_release(&record);
}

/* A valid block without every other page, and with one more, is still a valid block. */
static void try_rewriting(struct wb_block_reader *reader, const struct wb_block_index *index, const char *block,
                          bool scrub)
{
    static struct wb_block_builder *builder;
    static const char record[] = "0123456789abcdef0123456789abcdef0123 a record that is not one";
    static bool dead[WB_BLOCK_PAGES_MAX], old[WB_BLOCK_PAGES_MAX];
    struct wb_block_page extra = {.record = wb_slice(record, sizeof record), .newest = 1};
    struct wb_block_change change = {.dead = dead, .scrub = scrub, .extra = &extra, .extra_count = 1};
    struct wb_block_index after = {0};
    struct wb_block_head head;
    struct wb_buf out = WB_BUF_INIT;

    if (!is_small(index))
        return;
    WB_CHECK(builder || wb_block_builder_new(&builder) == 0);
    for (size_t i = 0; i < index->entries.count; i++)
        dead[i] = i % 2 == 0 || index->entries.items[i].flags & WB_BLOCK_ENTRY_DEAD;
    for (size_t i = 0; i < index->entries.count; i++)
        old[i] = i % 4 == 3;
    change.old = index->entries.count % 4 < 2 ? old : NULL;
    int err = wb_block_rewrite(builder, reader, index, block, &change, &out);
    WB_CHECK(err == 0 || err == WB_E_CORRUPT || err == WB_E_LIMIT);
    WB_CHECK((out.len > 0) == (err == 0));
    if (err == 0) {
        WB_CHECK(wb_block_head_read(out.ptr, &head) == 0 && head.bytes == out.len &&
                 head.logical == index->head.logical);
        WB_CHECK(wb_block_index_read(&head, out.ptr + WB_BLOCK_HEADER_BYTES, &after) == 0);
    }
    wb_block_index_release(&after);
    wb_buf_release(&out);
}

static void try_block(struct wb_block_reader *reader, const char *block, size_t size)
{
    struct wb_block_head head;
    struct wb_block_index index = {0};

    if (size < WB_BLOCK_HEADER_BYTES || wb_block_head_read(block, &head) < 0 || head.bytes != size)
        return;
    if (wb_block_index_read(&head, block + WB_BLOCK_HEADER_BYTES, &index) == 0) {
        try_pages(reader, &index, block);
        try_rewriting(reader, &index, block, false);
        try_rewriting(reader, &index, block, true);
    }
    wb_block_index_release(&index);
}

/* ---- walking a segment ---------------------------------------------------------------------------------- */

/* A segment of a node, with these bytes after its header. */
static struct wb_segment segment_of(struct wb_node *node, const char *bytes, size_t size)
{
    struct wb_segment segment = WB_SEGMENT_INIT;

    segment.magic = WB_SEGMENT_MAGIC;
    segment.number = 1;
    segment.file.node = node;
    WB_CHECK(wb_nameless_memory(&segment.file.file) == 0);
    segment.file.path = segment.file.file.path;
    WB_CHECK(wb_file_write_at(&segment.file.file, WB_SEGMENT_HEADER_BYTES, bytes, size) == 0);
    return segment;
}

static void walk_blocks(struct wb_block_reader *reader, const char *bytes, size_t size)
{
    struct wb_node *node;
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, last = 0;
    size_t steps = 0;
    int more;

    WB_CHECK(wb_node_open(".", NULL, &node) == 0); /* closing the segment closes it */
    struct wb_segment segment = segment_of(node, bytes, size);
    wb_segment_walk_init(&walk, &segment, WB_SEGMENT_HEADER_BYTES + size);
    while ((more = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        WB_CHECK(more == 1 || more == WB_E_CORRUPT || more == WB_E_NEWER);
        WB_CHECK(at > last && ++steps <= size); /* the walk must always move forward */
        last = at;
        if (more == 1)
            try_pages(reader, &walk.index, block);
    }
    wb_segment_walk_release(&walk);
    wb_segment_close(&segment);
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
