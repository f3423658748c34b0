/*
 * block.c - reads blocks of pages: checks them, decompresses pages, leaves dead ones out.
 * It works on bytes in memory and knows neither files nor the catalog.
 *
 * Header, 80 bytes. At, bytes, what; numbers are little-endian:
 *
 *   0   4  magic "WBBK"
 *   4   2  format, 1
 *   6   2  entries in the directory, n (1 to 4096)
 *   8   2  entries in the lead, k (0: the block has no lead)
 *   10  2  zero
 *   12  4  lead: stored bytes          16  4  lead: raw bytes
 *   20  4  lead: checksum of the stored bytes
 *   24  8  bytes of the whole block
 *   32  8  logical offset: the name of the block in its segment
 *   40  8  number of the catalog's last commit when the block was written
 *   48  8  hash of the site, or 0 if the pages belong to several sites
 *   56  8  checksum of the directory
 *   64  8  zero
 *   72  8  checksum of bytes 0 to 71
 *
 * Directory, 68 bytes for each entry, sorted by slot:
 *
 *   0   16 page id, big-endian
 *   16  2  slot                        18  2  flags: 1 in the lead, 2 dead
 *   20  4  raw bytes of the record's text (the record without its digests)
 *   24  4  stored bytes of its frame (0 in the lead)
 *   28  4  checksum of its frame (0 in the lead)
 *   32  36 the digests with which the record starts
 *
 * A block is valid if and only if
 *   - all checksums match (XXH3, 64 bits or the low 32); they cover every byte
 *   - slots increase
 *   - k entries are in the lead, and their raw lengths add up to that of the lead
 *   - no entry outside the lead is flagged as dead
 *   - header, directory, lead and frames together have exactly the block's bytes
 */
#include "store/block.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/block_bytes.h"

#include <zstd.h>

enum { READER_MAGIC = 0x57424252 };

struct wb_block_reader {
    uint32_t magic;
    ZSTD_DCtx *zstd;
};

int wb_block_head_read(const char *bytes, struct wb_block_head *head_out)
{
    struct wb_block_head head;

    WB_CHECK(bytes != NULL);
    *head_out = (struct wb_block_head){0};
    if (memcmp(bytes, BLOCK_MAGIC, HEAD_FORMAT_AT) != 0)
        return wb_fail(WB_E_CORRUPT, "no block starts here");
    if (wb_get64(bytes + HEAD_CHECK_AT) != wb_hash64(bytes, HEAD_CHECK_AT))
        return wb_fail(WB_E_CORRUPT, "the block's header does not match its checksum");
    if (wb_get16(bytes + HEAD_FORMAT_AT) != BLOCK_FORMAT)
        return wb_fail(WB_E_NEWER, "the block has format %u, which this program does not know",
                       wb_get16(bytes + HEAD_FORMAT_AT));
    head = (struct wb_block_head){
        .count = wb_get16(bytes + HEAD_COUNT_AT),
        .lead_count = wb_get16(bytes + HEAD_LEAD_COUNT_AT),
        .lead_stored_bytes = wb_get32(bytes + HEAD_LEAD_STORED_AT),
        .lead_raw_bytes = wb_get32(bytes + HEAD_LEAD_RAW_AT),
        .lead_check = wb_get32(bytes + HEAD_LEAD_CHECK_AT),
        .bytes = wb_get64(bytes + HEAD_BYTES_AT),
        .logical = wb_get64(bytes + HEAD_LOGICAL_AT),
        .commit = wb_get64(bytes + HEAD_COMMIT_AT),
        .site = wb_get64(bytes + HEAD_SITE_AT),
        .directory_check = wb_get64(bytes + HEAD_DIRECTORY_CHECK_AT),
    };
    if (head.count == 0 || head.count > WB_BLOCK_PAGES_MAX || head.lead_count > head.count ||
        head.bytes < wb_block_directory_end(&head) + head.lead_stored_bytes ||
        (head.lead_count == 0) != (head.lead_stored_bytes == 0) || head.lead_raw_bytes > LEAD_RAW_MAX)
        return wb_fail(WB_E_CORRUPT, "the block's header contradicts itself");
    *head_out = head;
    return 0;
}

struct wb_block_entry wb_block_entry_read(const char *directory, size_t index)
{
    const char *at = directory + index * WB_BLOCK_ENTRY_BYTES;

    WB_CHECK(index < WB_BLOCK_PAGES_MAX);
    return (struct wb_block_entry){
        .id = wb_pageid_get(at),
        .slot = wb_get16(at + ENTRY_SLOT_AT),
        .flags = wb_get16(at + ENTRY_FLAGS_AT),
        .raw_bytes = wb_get32(at + ENTRY_RAW_AT),
        .stored_bytes = wb_get32(at + ENTRY_STORED_AT),
        .check = wb_get32(at + ENTRY_CHECK_AT),
        .digests = at + ENTRY_DIGESTS_AT,
    };
}

int wb_block_directory_check(const struct wb_block_head *head, const char *directory)
{
    WB_CHECK(head->bytes >= wb_block_directory_end(head) + head->lead_stored_bytes);
    WB_CHECK(head->count > 0);
    WB_CHECK(head->count <= WB_BLOCK_PAGES_MAX);

    uint64_t bytes = wb_block_directory_end(head) + head->lead_stored_bytes, lead_raw_bytes = 0;
    uint32_t lead_count = 0;
    int last_slot = -1;

    if (wb_hash64(directory, (size_t)head->count * WB_BLOCK_ENTRY_BYTES) != head->directory_check)
        return wb_fail(WB_E_CORRUPT, "the block's directory does not match its checksum");
    for (size_t i = 0; i < head->count; i++) {
        struct wb_block_entry entry = wb_block_entry_read(directory, i);
        bool in_lead = entry.flags & WB_BLOCK_ENTRY_LEAD;
        if (entry.slot <= last_slot || in_lead != (entry.stored_bytes == 0) ||
            (entry.flags & WB_BLOCK_ENTRY_DEAD && !in_lead))
            return wb_fail(WB_E_CORRUPT, "the block's directory contradicts itself");
        last_slot = entry.slot;
        bytes += entry.stored_bytes;
        if (in_lead) {
            lead_count++;
            lead_raw_bytes += entry.raw_bytes;
        }
    }
    if (bytes != head->bytes || lead_count != head->lead_count || lead_raw_bytes != head->lead_raw_bytes)
        return wb_fail(WB_E_CORRUPT, "the block's lengths do not add up");
    return 0;
}

bool wb_block_find_slot(const struct wb_block_head *head, const char *directory, uint16_t slot, size_t *index_out)
{
    size_t low = 0, high = head->count;

    WB_CHECK(head->bytes > WB_BLOCK_HEADER_BYTES);
    WB_CHECK(head->count > 0);
    WB_CHECK(head->count <= WB_BLOCK_PAGES_MAX);
    while (low < high) {
        size_t middle = (low + high) / 2;
        uint16_t here = wb_get16(directory + middle * WB_BLOCK_ENTRY_BYTES + ENTRY_SLOT_AT);
        if (here == slot) {
            *index_out = middle;
            return true;
        }
        if (here < slot)
            low = middle + 1;
        else
            high = middle;
    }
    *index_out = 0;
    WB_CHECK(low == high);
    return false;
}

uint64_t wb_block_frame_at(const struct wb_block_head *head, const char *directory, size_t index)
{
    WB_CHECK(head->count <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(index < head->count);

    uint64_t at = wb_block_directory_end(head) + head->lead_stored_bytes;

    for (size_t i = 0; i < index; i++)
        at += wb_get32(directory + i * WB_BLOCK_ENTRY_BYTES + ENTRY_STORED_AT);
    WB_CHECK(at <= head->bytes);
    return at;
}

size_t wb_block_lead_at(const char *directory, size_t index)
{
    size_t at = 0;

    WB_CHECK(index < WB_BLOCK_PAGES_MAX);
    for (size_t i = 0; i < index; i++) {
        struct wb_block_entry entry = wb_block_entry_read(directory, i);
        if (entry.flags & WB_BLOCK_ENTRY_LEAD)
            at += entry.raw_bytes;
    }
    WB_CHECK(at <= LEAD_RAW_MAX);
    return at;
}

int wb_block_reader_new(struct wb_block_reader **reader_out)
{
    struct wb_block_reader *reader = wb_alloc_zero(1, sizeof *reader);

    *reader_out = NULL;
    if (!reader)
        return WB_E_NOMEM;
    reader->zstd = ZSTD_createDCtx();
    if (!reader->zstd) {
        wb_free(reader);
        return wb_fail_nomem();
    }
    reader->magic = READER_MAGIC;
    *reader_out = reader;
    return 0;
}

void wb_block_reader_free(struct wb_block_reader *reader)
{
    if (!reader)
        return;
    WB_CHECK(reader->magic == READER_MAGIC);
    ZSTD_freeDCtx(reader->zstd);
    reader->magic = 0;
    wb_free(reader);
}

/* Decompresses a frame of exactly `raw` bytes to the end of out. */
static int decompress(struct wb_block_reader *reader, struct wb_slice frame, struct wb_slice dictionary, size_t raw,
                      struct wb_buf *out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(frame.len > 0);

    int err = wb_buf_reserve(out, raw + 1);

    if (err < 0)
        return err;
    /* The lead starts with a record's format number, so zstd never mistakes it for a dictionary with tables. */
    size_t n = ZSTD_decompress_usingDict(reader->zstd, out->ptr + out->len, raw, frame.ptr, frame.len, dictionary.ptr,
                                         dictionary.len);
    if (ZSTD_isError(n) || n != raw)
        return wb_fail(WB_E_CORRUPT, "a frame of the block does not decompress");
    out->len += raw;
    WB_CHECK(out->len <= out->cap);
    return 0;
}

int wb_block_read_lead(struct wb_block_reader *reader, const struct wb_block_head *head, const char *frame,
                       struct wb_buf *lead_out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(head->lead_count > 0);
    WB_CHECK(head->lead_raw_bytes <= LEAD_RAW_MAX);
    if (wb_hash32(frame, head->lead_stored_bytes) != head->lead_check)
        return wb_fail(WB_E_CORRUPT, "the block's lead does not match its checksum");
    wb_buf_clear(lead_out);
    return decompress(reader, wb_slice(frame, head->lead_stored_bytes), WB_SLICE_EMPTY, head->lead_raw_bytes,
                      lead_out);
}

/* Starts a record: its digests, with room for the text. */
static int begin_record(const struct wb_block_entry *entry, struct wb_buf *record_out)
{
    WB_CHECK(entry->digests != NULL);
    wb_buf_clear(record_out);
    int err = wb_buf_reserve(record_out, WB_RECORD_DIGEST_BYTES + (size_t)entry->raw_bytes + 1);
    return err < 0 ? err : wb_buf_append(record_out, entry->digests, WB_RECORD_DIGEST_BYTES);
}

int wb_block_lead_record(const struct wb_block_entry *entry, struct wb_slice lead, size_t lead_at,
                         struct wb_buf *record_out)
{
    WB_CHECK(lead.len <= LEAD_RAW_MAX);
    WB_CHECK(entry->flags & WB_BLOCK_ENTRY_LEAD);
    WB_CHECK(lead_at + entry->raw_bytes <= lead.len);
    int err = begin_record(entry, record_out);
    return err < 0 ? err : wb_buf_append(record_out, lead.ptr + lead_at, entry->raw_bytes);
}

/* Checks and decompresses the frame of an entry. */
static int append_text(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                       struct wb_slice lead, struct wb_buf *out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(lead.len <= LEAD_RAW_MAX);
    WB_CHECK(!(entry->flags & WB_BLOCK_ENTRY_LEAD));
    WB_CHECK(entry->stored_bytes > 0);
    /* The entry was covered by the directory's checksum, so raw_bytes is our own number: safe to allocate by. */
    if (wb_hash32(frame, entry->stored_bytes) != entry->check)
        return wb_fail(WB_E_CORRUPT, "a page's frame does not match its checksum");
    return decompress(reader, wb_slice(frame, entry->stored_bytes), lead, entry->raw_bytes, out);
}

int wb_block_read_text(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                       struct wb_slice lead, struct wb_buf *text_out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    wb_buf_clear(text_out);
    return append_text(reader, entry, frame, lead, text_out);
}

int wb_block_read_frame(struct wb_block_reader *reader, const struct wb_block_entry *entry, const char *frame,
                        struct wb_slice lead, struct wb_buf *record_out)
{
    WB_CHECK(entry->digests != NULL);
    WB_CHECK(reader->magic == READER_MAGIC);

    int err = begin_record(entry, record_out);

    return err < 0 ? err : append_text(reader, entry, frame, lead, record_out);
}

/* ---- thinning ------------------------------------------------------------------- */

/* Writes the directory of the thinned block and computes its size. Returns false if no page of the block is alive. */
static bool thin_directory(const struct wb_block_head *head, const char *block, const bool *dead, char *directory_out,
                           uint32_t *count_out, uint64_t *bytes_out)
{
    uint32_t live = 0;

    WB_CHECK(head->count > 0);
    *count_out = 0;
    *bytes_out = head->lead_stored_bytes;
    for (size_t i = 0; i < head->count; i++) {
        const char *from = block + WB_BLOCK_HEADER_BYTES + i * WB_BLOCK_ENTRY_BYTES;
        bool in_lead = wb_get16(from + ENTRY_FLAGS_AT) & WB_BLOCK_ENTRY_LEAD;
        live += !dead[i];
        if (dead[i] && !in_lead)
            continue;
        char *to = directory_out + (size_t)*count_out * WB_BLOCK_ENTRY_BYTES;
        memcpy(to, from, WB_BLOCK_ENTRY_BYTES);
        if (dead[i])
            wb_put16(to + ENTRY_FLAGS_AT, WB_BLOCK_ENTRY_LEAD | WB_BLOCK_ENTRY_DEAD);
        *bytes_out += wb_get32(from + ENTRY_STORED_AT);
        (*count_out)++;
    }
    *bytes_out += WB_BLOCK_HEADER_BYTES + (uint64_t)*count_out * WB_BLOCK_ENTRY_BYTES;
    WB_CHECK(live <= *count_out);
    WB_CHECK(*count_out <= head->count);
    WB_CHECK(*bytes_out <= head->bytes);
    return live > 0;
}

int wb_block_thin(const struct wb_block_head *head, const char *block, const bool *dead, struct wb_buf *block_out)
{
    uint64_t bytes;
    uint32_t count;
    int err;

    WB_CHECK(memcmp(block, BLOCK_MAGIC, HEAD_FORMAT_AT) == 0);
    WB_CHECK(head->count > 0);
    WB_CHECK(head->count <= WB_BLOCK_PAGES_MAX);
    err = wb_buf_reserve(block_out, (size_t)head->bytes);
    if (err < 0)
        return err;
    char *to = block_out->ptr + block_out->len;
    if (!thin_directory(head, block, dead, to + WB_BLOCK_HEADER_BYTES, &count, &bytes))
        return 0;
    memcpy(to, block, WB_BLOCK_HEADER_BYTES);
    wb_put16(to + HEAD_COUNT_AT, (uint16_t)count);
    wb_put64(to + HEAD_BYTES_AT, bytes);
    wb_put64(to + HEAD_DIRECTORY_CHECK_AT,
             wb_hash64(to + WB_BLOCK_HEADER_BYTES, (size_t)count * WB_BLOCK_ENTRY_BYTES));
    char *at = to + WB_BLOCK_HEADER_BYTES + (size_t)count * WB_BLOCK_ENTRY_BYTES;
    const char *from = block + wb_block_directory_end(head);
    memcpy(at, from, head->lead_stored_bytes);
    at += head->lead_stored_bytes;
    from += head->lead_stored_bytes;
    for (size_t i = 0; i < head->count; i++) {
        uint32_t stored = wb_get32(block + WB_BLOCK_HEADER_BYTES + i * WB_BLOCK_ENTRY_BYTES + ENTRY_STORED_AT);
        if (!dead[i]) {
            memcpy(at, from, stored);
            at += stored;
        }
        from += stored;
    }
    WB_CHECK((uint64_t)(from - block) == head->bytes);
    WB_CHECK((uint64_t)(at - to) == bytes);
    block_out->len += bytes;
    wb_block_stamp(to, head->logical, head->commit);
    return 0;
}
