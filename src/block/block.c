/*
 * block.c - takes the header and the directory of a block apart and checks them. It works
 * on bytes in memory and knows neither files nor the catalog, and it decompresses nothing
 * (block_read.c does).
 *
 * Header, 80 bytes. At, bytes, what; numbers are little-endian:
 *
 *   0   4  magic "WBBK"
 *   4   2  format, 1
 *   6   2  entries in the directory, n (1 to 16384)
 *   8   2  frames, m (1 to n)          10  2  the frame that is stored first: the lead
 *   12  4  bytes of the directory
 *   16  4  the slot that the next page would get; all slots are smaller
 *   20  4  zero
 *   24  8  bytes of the whole block
 *   32  8  logical offset: the name of the block in its segment
 *   40  8  number of the catalog's last commit when the block was written
 *   48  8  hash of the site, or 0 if the pages belong to several sites
 *   56  8  checksum of the directory
 *   64  8  zero
 *   72  8  checksum of bytes 0 to 71
 *
 * Directory: m rows of 20 bytes, one for each frame, ...
 *
 *   0   4  stored bytes                4   4  raw bytes (decompressed)
 *   8   4  checksum of the stored bytes
 *   12  4  how many of the stored bytes are needed to decompress the heads
 *   16  2  its base, or 65535          18  2  entries, at least 1
 *
 * ... and then n entries, those of one frame next to each other and sorted by slot:
 *
 *   1 byte   flags: 1 dead, 2 the same page as the entry before, 4 the slot follows, 8 not the latest version
 *   varint   slot, with flag 4; otherwise one more than that of the entry before, or 0
 *   varints  bytes of the head and of the body
 *   16 bytes page id, big-endian; not with flag 2
 *   36 bytes the digests with which the record starts
 *
 * After the directory come the frames: the lead first, then the others in their order. A
 * frame contains the heads of its records and then their bodies.
 *
 * A block is valid if and only if
 *   - all checksums match (XXH3, 64 bits or the low 32); they cover every byte
 *   - slots increase in each frame, no two are equal, and all are smaller than the next slot
 *   - the heads and bodies of a frame's entries add up to its raw length
 *   - no frame has more than two others below it (its base, and the base of that)
 *   - header, directory and frames together have exactly the block's bytes
 */
#include "block/block.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/format.h"
#include "base/hash.h"
#include "block/block_bytes.h"

static bool head_is_sound(const char *bytes, struct wb_block_head *head)
{
    WB_CHECK(wb_get16(bytes + HEAD_FORMAT_AT) == BLOCK_FORMAT);
    head->frame_count = wb_get16(bytes + HEAD_FRAMES_AT);
    head->lead = wb_get16(bytes + HEAD_LEAD_AT);
    head->directory_bytes = wb_get32(bytes + HEAD_DIRECTORY_BYTES_AT);
    head->next_slot = wb_get32(bytes + HEAD_NEXT_SLOT_AT);
    uint64_t least = (uint64_t)head->frame_count * FRAME_ROW_BYTES + (uint64_t)head->count * WB_RECORD_DIGEST_BYTES;
    return head->count > 0 && head->count <= WB_BLOCK_PAGES_MAX && head->frame_count > 0 &&
           head->frame_count <= head->count && head->lead < head->frame_count && head->directory_bytes > least &&
           head->bytes > wb_block_directory_end(head) && head->next_slot >= head->count &&
           head->next_slot <= BLOCK_SLOTS_MAX && wb_get32(bytes + HEAD_ZERO_AT) == 0 &&
           wb_get64(bytes + HEAD_DIRECTORY_CHECK_AT + 8) == 0;
}

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
        return wb_fail_format("the block", wb_get16(bytes + HEAD_FORMAT_AT), BLOCK_FORMAT);
    head = (struct wb_block_head){
        .count = wb_get16(bytes + HEAD_COUNT_AT),
        .bytes = wb_get64(bytes + HEAD_BYTES_AT),
        .logical = wb_get64(bytes + HEAD_LOGICAL_AT),
        .commit = wb_get64(bytes + HEAD_COMMIT_AT),
        .site = wb_get64(bytes + HEAD_SITE_AT),
        .directory_check = wb_get64(bytes + HEAD_DIRECTORY_CHECK_AT),
    };
    if (!head_is_sound(bytes, &head))
        return wb_fail(WB_E_CORRUPT, "the block's header contradicts itself");
    *head_out = head;
    return 0;
}

static int contradiction(void)
{
    return wb_fail(WB_E_CORRUPT, "the block's directory contradicts itself");
}

/* Reads the table of frames. The entries of each are known only later. */
static bool read_frames(const char *table, struct wb_block_index *index)
{
    uint32_t first = 0;

    WB_CHECK(index->frames.cap >= index->head.frame_count);
    WB_CHECK(index->frames.count == 0);
    for (uint32_t i = 0; i < index->head.frame_count; i++) {
        const char *row = table + (size_t)i * FRAME_ROW_BYTES;
        uint16_t base = wb_get16(row + FRAME_BASE_AT);
        struct wb_block_frame frame = {
            .stored_bytes = wb_get32(row + FRAME_STORED_AT),
            .raw_bytes = wb_get32(row + FRAME_RAW_AT),
            .check = wb_get32(row + FRAME_CHECK_AT),
            .heads_stored = wb_get32(row + FRAME_HEADS_AT),
            .first = first,
            .count = wb_get16(row + FRAME_COUNT_AT),
            .base = base == BLOCK_NO_BASE ? -1 : base,
        };
        if (frame.stored_bytes == 0 || frame.raw_bytes == 0 || frame.heads_stored == 0 || frame.count == 0 ||
            frame.heads_stored > frame.stored_bytes || frame.base >= (int32_t)index->head.frame_count)
            return false;
        first += frame.count;
        index->frames.items[index->frames.count++] = frame;
    }
    return first == index->head.count;
}

/* Whether no frame has more frames below it than it may; in particular, none is its own base. */
static bool depths_are_sound(const struct wb_block_index *index)
{
    WB_CHECK(index->frames.count == index->head.frame_count);
    WB_CHECK(index->frames.count > 0);
    for (size_t i = 0; i < index->frames.count; i++) {
        int32_t frame = (int32_t)i;
        for (int depth = 0; frame >= 0; depth++, frame = index->frames.items[frame].base)
            if (depth == WB_BLOCK_DEPTH_MAX)
                return false;
    }
    return true;
}

/* Reads the entry of which the last one is `before`, or NULL. Its position in the frame is known only later. */
static bool read_entry(struct wb_fields *from, const struct wb_block_entry *before, struct wb_block_entry *entry_out)
{
    uint8_t flags = wb_fields_take_byte(from);
    uint64_t slot = before ? (uint64_t)before->slot + 1 : 0;

    WB_CHECK(from->at <= from->end);
    if (flags & ~ENTRY_FLAGS_KNOWN || (flags & ENTRY_SAME_PAGE && !before))
        return false;
    if (flags & ENTRY_SLOT)
        slot = wb_fields_take(from, BLOCK_SLOTS_MAX);
    *entry_out = (struct wb_block_entry){.slot = (uint16_t)slot};
    entry_out->flags =
        (uint16_t)((flags & ENTRY_DEAD ? WB_BLOCK_ENTRY_DEAD : 0) | (flags & ENTRY_OLD ? WB_BLOCK_ENTRY_OLD : 0));
    entry_out->head_bytes = (uint32_t)wb_fields_take(from, UINT32_MAX);
    entry_out->body_bytes = (uint32_t)wb_fields_take(from, UINT32_MAX);
    const char *id = flags & ENTRY_SAME_PAGE ? NULL : wb_fields_take_bytes(from, WB_PAGEID_BYTES);
    entry_out->digests = wb_fields_take_bytes(from, WB_RECORD_DIGEST_BYTES);
    if (from->ok)
        entry_out->id = id ? wb_pageid_get(id) : before->id;
    return from->ok && slot < BLOCK_SLOTS_MAX;
}

/* Computes where heads and bodies are in the decompressed frame. False if they do not fill it exactly. */
static bool place_entries(struct wb_block_index *index, struct wb_block_frame *frame, uint32_t number)
{
    struct wb_block_entry *entries = index->entries.items + frame->first;
    uint64_t heads = 0, bodies = 0;

    WB_CHECK(number < index->frames.count);
    WB_CHECK(frame->first + frame->count <= index->entries.count);
    for (size_t i = 0; i < frame->count; i++) {
        entries[i].frame = number;
        entries[i].head_at = (uint32_t)heads;
        heads += entries[i].head_bytes;
        bodies += entries[i].body_bytes;
    }
    if (heads + bodies != frame->raw_bytes)
        return false;
    frame->heads_raw = (uint32_t)heads;
    for (size_t i = 0; i < frame->count; i++) {
        entries[i].body_at = (uint32_t)heads;
        heads += entries[i].body_bytes;
    }
    return true;
}

static bool slots_are_unique(const struct wb_block_index *index)
{
    uint64_t used[(BLOCK_SLOTS_MAX + 64) / 64] = {0};

    WB_CHECK(index->entries.count <= WB_BLOCK_PAGES_MAX);
    for (size_t i = 0; i < index->entries.count; i++) {
        uint16_t slot = index->entries.items[i].slot;
        uint64_t *word = &used[slot / 64], bit = (uint64_t)1 << slot % 64;
        if (*word & bit)
            return false;
        *word |= bit;
    }
    return true;
}

/* Finds out whether all entries are sorted. False if those of a frame are not, or two have the same slot. */
static bool check_slots(struct wb_block_index *index)
{
    const struct wb_block_entry *entries = index->entries.items;

    WB_CHECK(index->entries.count == index->head.count);
    index->sorted = true;
    for (size_t i = 1; i < index->entries.count; i++)
        if (entries[i].slot <= entries[i - 1].slot) {
            if (entries[i].frame == entries[i - 1].frame)
                return false;
            index->sorted = false;
        }
    return index->sorted || slots_are_unique(index);
}

static int read_directory(const char *directory, struct wb_block_index *index)
{
    const struct wb_block_head *head = &index->head;
    size_t table_bytes = (size_t)head->frame_count * FRAME_ROW_BYTES;

    WB_CHECK(head->directory_bytes > table_bytes);
    if (!read_frames(directory, index) || !depths_are_sound(index))
        return contradiction();
    struct wb_fields from = wb_fields_of(wb_slice(directory + table_bytes, head->directory_bytes - table_bytes));
    for (size_t i = 0; i < head->count; i++) {
        struct wb_block_entry *entry = &index->entries.items[i];
        if (!read_entry(&from, i ? entry - 1 : NULL, entry) || entry->slot >= head->next_slot)
            return contradiction();
        index->entries.count++;
    }
    if (from.at != from.end)
        return contradiction();
    for (uint32_t i = 0; i < head->frame_count; i++)
        if (!place_entries(index, &index->frames.items[i], i))
            return wb_fail(WB_E_CORRUPT, "the lengths in a frame of the block do not add up");
    return check_slots(index) ? 0 : contradiction();
}

/* Computes where the frames are. The lead comes first. */
static int place_frames(struct wb_block_index *index)
{
    uint64_t at = wb_block_directory_end(&index->head);

    WB_CHECK(index->frames.count == index->head.frame_count);
    WB_CHECK(index->head.lead < index->frames.count);
    index->frames.items[index->head.lead].at = at;
    at += index->frames.items[index->head.lead].stored_bytes;
    for (size_t i = 0; i < index->frames.count; i++) {
        if (i == index->head.lead)
            continue;
        index->frames.items[i].at = at;
        at += index->frames.items[i].stored_bytes;
    }
    return at == index->head.bytes ? 0 : wb_fail(WB_E_CORRUPT, "the block's lengths do not add up");
}

int wb_block_index_read(const struct wb_block_head *head, const char *directory, struct wb_block_index *index)
{
    WB_CHECK(head->count > 0);
    WB_CHECK(head->count <= WB_BLOCK_PAGES_MAX);
    index->head = *head;
    wb_vec_clear(&index->entries);
    wb_vec_clear(&index->frames);
    if (wb_hash64(directory, head->directory_bytes) != head->directory_check)
        return wb_fail(WB_E_CORRUPT, "the block's directory does not match its checksum");
    int err = wb_vec_reserve(&index->entries, head->count);
    if (err == 0)
        err = wb_vec_reserve(&index->frames, head->frame_count);
    if (err == 0)
        err = read_directory(directory, index);
    return err < 0 ? err : place_frames(index);
}

void wb_block_index_release(struct wb_block_index *index)
{
    WB_CHECK(index->entries.count <= index->entries.cap);
    wb_vec_release(&index->entries);
    wb_vec_release(&index->frames);
    *index = (struct wb_block_index){0};
}

bool wb_block_is_base(const struct wb_block_index *index, uint32_t frame)
{
    WB_CHECK(frame < index->frames.count);
    for (size_t i = 0; i < index->frames.count; i++)
        if (index->frames.items[i].base == (int32_t)frame)
            return true;
    return false;
}

bool wb_block_find_slot(const struct wb_block_index *index, uint16_t slot, size_t *at_out)
{
    size_t low = 0, high = index->entries.count;

    WB_CHECK(high > 0);
    WB_CHECK(high <= WB_BLOCK_PAGES_MAX);
    if (!index->sorted) {
        while (low < high && index->entries.items[low].slot != slot)
            low++;
        *at_out = low;
        return low < high;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (index->entries.items[middle].slot < slot)
            low = middle + 1;
        else
            high = middle;
    }
    *at_out = low;
    return low < index->entries.count && index->entries.items[low].slot == slot;
}
