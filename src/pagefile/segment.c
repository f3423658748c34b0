/*
 * segment.c - the parts of a segment file that are not blocks, and reading one page from
 * its block. It does not know which pages are alive or which file counts: the catalog does.
 *
 * Offset and, in brackets, bytes. Numbers are little-endian, checksums XXH3 with 64 bits.
 *
 *   header  0 "WBSG" (4)  4 format, 1 (2)  6 zero (2)  8 number (4)  12 revision (4)
 *           16 repository id (16)  32 zero (24)  56 checksum of bytes 0 to 55 (8)
 *   blocks  see block.c; in revision 0 each is stored at its logical offset
 *   map     only in compacted files, behind what was compacted: 0 "WBMP" (4)  4 zero (4)  8 entries, n (8)
 *           16 checksum of the entries (8)  24 checksum of bytes 0 to 23 (8)
 *           32 n times: logical offset (8), position in this file (8); both increase
 *   seal    after the committed bytes: 0 "WBSL" (4)  4 zero (4)  8 commit (8)
 *           16 position of the seal (8)  24 checksum of bytes 0 to 23 (8)
 *
 * Header and seal are valid if and only if all their bytes are as expected; a map, if its
 * checksums match, n is what the catalog says, and both columns increase.
 */
#include "pagefile/segment.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/kept.h"
#include "base/mem.h"

#include <stdio.h>

enum {
    SEGMENT_FORMAT = 1,
    HEADER_CHECK_AT = 56,
    MAP_HEADER_BYTES = 32,
    MAP_CHECK_AT = 24,
    MAP_ENTRY_BYTES = 16,
    SEAL_CHECK_AT = 24,
    FIRST_READ_BYTES = 12 << 10, /* enough for the header, directory and lead of most blocks */
};

_Static_assert(HEADER_CHECK_AT + 8 == (int)WB_SEGMENT_HEADER_BYTES, "the checksum ends the header");
_Static_assert(MAP_CHECK_AT + 8 == MAP_HEADER_BYTES, "the checksum ends the map's header");
_Static_assert(SEAL_CHECK_AT + 8 == (int)WB_SEGMENT_SEAL_BYTES, "the checksum ends the seal");
_Static_assert((int)FIRST_READ_BYTES > (int)WB_BLOCK_HEADER_BYTES, "the first read has at least the header");

void wb_segment_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX])
{
    if (revision == 0)
        snprintf(name_out, WB_SEGMENT_NAME_MAX, WB_SEGMENT_DIR "/%08u.seg", number);
    else
        snprintf(name_out, WB_SEGMENT_NAME_MAX, WB_SEGMENT_DIR "/%08u.%u.seg", number, revision);
}

bool wb_segment_name_parse(const char *name, uint32_t *number_out, uint32_t *revision_out)
{
    char canonical[WB_SEGMENT_NAME_MAX];
    unsigned number = 0, revision = 0;

    *number_out = *revision_out = 0;
    if (sscanf(name, "%8u.%u.seg", &number, &revision) < 1)
        return false;
    wb_segment_name(number, revision, canonical); /* refuses leading zeros, ".0" and everything else we do not write */
    if (strcmp(canonical + sizeof WB_SEGMENT_DIR, name) != 0)
        return false;
    *number_out = number;
    *revision_out = revision;
    return true;
}

/* What all ways to open a file have in common: the struct is filled if err, the result of opening, is 0. */
static int opened(int err, uint32_t number, uint32_t revision, struct wb_segment *segment)
{
    WB_CHECK(number > 0);
    WB_CHECK(err < 0 || segment->file.node != NULL);
    segment->number = segment->origin = number;
    segment->revision = revision;
    segment->tail_at = segment->tail_logical = WB_SEGMENT_HEADER_BYTES; /* as written; otherwise see know_tail() */
    segment->magic = err == 0 ? WB_SEGMENT_MAGIC : 0;
    return err;
}

static int open_file(struct wb_node *node, const struct wb_catalog_segment *row, bool write,
                     struct wb_segment *segment_out)
{
    char name[WB_SEGMENT_NAME_MAX];

    WB_CHECK(row->number > 0);
    *segment_out = WB_SEGMENT_INIT;
    wb_segment_name(row->number, row->revision, name);
    return opened(wb_node_file_open(node, name, write, &segment_out->file), row->number, row->revision, segment_out);
}

static void put_header(char *to, const uint8_t *repo_id, uint32_t number, uint32_t revision)
{
    WB_CHECK(number > 0);
    memset(to, 0, WB_SEGMENT_HEADER_BYTES);
    memcpy(to, "WBSG", 4);
    wb_put16(to + 4, SEGMENT_FORMAT);
    wb_put32(to + 8, number);
    wb_put32(to + 12, revision);
    memcpy(to + 16, repo_id, 16);
    wb_put64(to + HEADER_CHECK_AT, wb_hash64(to, HEADER_CHECK_AT));
}

int wb_segment_create(struct wb_node *node, const uint8_t *repo_id, uint32_t number, uint32_t revision,
                      struct wb_segment *segment_out)
{
    char header[WB_SEGMENT_HEADER_BYTES], name[WB_SEGMENT_NAME_MAX];

    WB_CHECK(node != NULL);
    WB_CHECK(number > 0);
    *segment_out = WB_SEGMENT_INIT;
    wb_segment_name(number, revision, name);
    int err = opened(wb_node_file_create(node, name, &segment_out->file), number, revision, segment_out);
    if (err < 0)
        return err;
    put_header(header, repo_id, number, revision);
    err = wb_node_file_write_at(&segment_out->file, 0, header, sizeof header);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_node_file_remove(&segment_out->file);
        wb_segment_close(segment_out);
        return wb_error_restore(&why);
    }
    return 0;
}

/* Copies the entries of a map into memory. Returns false if they do not increase. */
static bool decode_map(const char *entries, struct wb_segment *segment)
{
    uint64_t logical = 0, physical = 0;

    WB_CHECK(segment->revision > 0);
    WB_CHECK(segment->map != NULL || segment->map_count == 0);
    for (size_t i = 0; i < segment->map_count; i++) {
        struct wb_segment_map_entry *entry = &segment->map[i];
        entry->logical = wb_get64(entries + i * MAP_ENTRY_BYTES);
        entry->physical = wb_get64(entries + i * MAP_ENTRY_BYTES + 8);
        if (entry->logical <= logical || entry->physical <= physical)
            return false;
        logical = entry->logical;
        physical = entry->physical;
    }
    return true;
}

static int map_damaged(const struct wb_segment *segment, uint64_t at, const char *what)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    return wb_fail(WB_E_CORRUPT, "%s: the map at %llu %s", segment->file.path, (unsigned long long)at, what);
}

static int read_map(struct wb_segment *segment, uint64_t at, uint64_t count)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->revision > 0);
    WB_CHECK(!segment->map);

    char header[MAP_HEADER_BYTES];
    struct wb_buf bytes = WB_BUF_INIT;
    int err = wb_node_file_read_exact(&segment->file, at, header, sizeof header);

    if (err < 0)
        return err;
    if (memcmp(header, "WBMP", 4) != 0 || wb_get64(header + MAP_CHECK_AT) != wb_hash64(header, MAP_CHECK_AT) ||
        wb_get64(header + 8) != count)
        return map_damaged(segment, at, "is damaged");
    err = wb_buf_reserve(&bytes, (size_t)count * MAP_ENTRY_BYTES);
    if (err == 0)
        err = wb_node_file_read_exact(&segment->file, at + MAP_HEADER_BYTES, bytes.ptr,
                                      (size_t)count * MAP_ENTRY_BYTES);
    if (err < 0)
        goto done;
    if (wb_get64(header + 16) != wb_hash64(bytes.ptr, (size_t)count * MAP_ENTRY_BYTES)) {
        err = map_damaged(segment, at, "does not match its checksum");
        goto done;
    }
    segment->map = wb_alloc_zero((size_t)count, sizeof *segment->map);
    if (!segment->map) {
        err = WB_E_NOMEM;
        goto done;
    }
    segment->map_count = (size_t)count;
    wb_kept_need(WB_KEPT_SEGMENTS, segment->map_count * sizeof *segment->map);
    if (!decode_map(bytes.ptr, segment))
        err = map_damaged(segment, at, "is not in order");
done:
    wb_buf_release(&bytes);
    return err;
}

/* Where blocks are appended to a compacted file: directly behind the map. */
static uint64_t tail_of(const struct wb_catalog_segment *row)
{
    return row->map_at + MAP_HEADER_BYTES + row->map_count * MAP_ENTRY_BYTES;
}

uint64_t wb_segment_blocks_end(const struct wb_catalog_segment *row)
{
    return row->revision == 0 || row->bytes > tail_of(row) ? row->bytes : row->map_at;
}

/* Names and positions grow together with each block that is appended, so both ends tell where it began. */
static int know_tail(struct wb_segment *segment, const struct wb_catalog_segment *row)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(row->revision > 0);
    segment->map_at = row->map_at;
    segment->tail_at = tail_of(row);
    if (row->bytes < segment->tail_at || row->logical_end < row->bytes - segment->tail_at)
        return wb_fail(WB_E_CORRUPT, "%s: its map does not end where the catalog says", segment->file.path);
    segment->tail_logical = row->logical_end - (row->bytes - segment->tail_at);
    if (segment->map_count && segment->map[segment->map_count - 1].logical >= segment->tail_logical)
        return wb_fail(WB_E_CORRUPT, "%s: its map has blocks that were never written", segment->file.path);
    return 0;
}

int wb_segment_open(struct wb_node *node, const uint8_t *repo_id, const struct wb_catalog_segment *row, bool write,
                    struct wb_segment *segment_out)
{
    WB_CHECK(node != NULL);
    WB_CHECK(row->number > 0);

    char found[WB_SEGMENT_HEADER_BYTES], expected[WB_SEGMENT_HEADER_BYTES];
    int err = open_file(node, row, write, segment_out);

    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_CORRUPT, "a segment of %s is missing: number %u, revision %u", wb_node_label(node),
                       row->number, row->revision);
    if (err < 0)
        return err;
    segment_out->origin = wb_catalog_segment_origin(row);
    err = wb_node_file_read_exact(&segment_out->file, 0, found, sizeof found);
    if (err == 0) {
        put_header(expected, repo_id, row->number, row->revision);
        if (memcmp(found, "WBSG", 4) == 0 && wb_get16(found + 4) != SEGMENT_FORMAT &&
            wb_get64(found + HEADER_CHECK_AT) == wb_hash64(found, HEADER_CHECK_AT))
            err = wb_fail_format(segment_out->file.path, wb_get16(found + 4), SEGMENT_FORMAT);
        else if (memcmp(found, expected, sizeof found) != 0)
            err = wb_fail(WB_E_CORRUPT, "%s: the header is damaged, or of another repository", segment_out->file.path);
    }
    if (err == 0 && row->revision > 0)
        err = read_map(segment_out, row->map_at, row->map_count);
    if (err == 0 && row->revision > 0)
        err = know_tail(segment_out, row);
    if (err < 0)
        wb_segment_close(segment_out);
    return err;
}

int wb_segment_open_unread(struct wb_node *node, const struct wb_catalog_segment *row, struct wb_segment *segment_out)
{
    WB_CHECK(row->number > 0);
    WB_CHECK(row->live == 0);
    return open_file(node, row, true, segment_out);
}

void wb_segment_close(struct wb_segment *segment)
{
    WB_CHECK(segment->file.node == NULL || segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->map_count == 0 || segment->revision > 0);
    wb_node_file_close(&segment->file);
    wb_kept_drop(WB_KEPT_SEGMENTS, segment->map_count * sizeof *segment->map);
    wb_free(segment->map);
    *segment = WB_SEGMENT_INIT;
}

/* The number of the first entry of the map whose name is not before `logical`. */
static size_t find_in_map(const struct wb_segment *segment, uint64_t logical)
{
    size_t low = 0, high = segment->map_count;

    WB_CHECK(segment->map != NULL || segment->map_count == 0);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (segment->map[middle].logical < logical)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int wb_segment_locate(const struct wb_segment *segment, uint64_t logical, uint64_t *physical_out)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->number > 0);
    *physical_out = logical;
    if (logical >= segment->tail_logical) {
        *physical_out = segment->tail_at + (logical - segment->tail_logical);
        return 0;
    }
    size_t at = find_in_map(segment, logical);
    if (at == segment->map_count || segment->map[at].logical != logical)
        return wb_fail(WB_E_CORRUPT, "%s has no block %llu", segment->file.path, (unsigned long long)logical);
    *physical_out = segment->map[at].physical;
    return 0;
}

uint64_t wb_segment_name_at(const struct wb_segment *segment, uint64_t physical)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(physical >= segment->tail_at);
    return segment->tail_logical + (physical - segment->tail_at);
}

uint64_t wb_segment_seek(const struct wb_segment *segment, uint64_t logical, uint64_t end)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    size_t entry = find_in_map(segment, logical);
    uint64_t at = segment->tail_at;

    if (entry < segment->map_count)
        at = segment->map[entry].physical;
    else if (logical > segment->tail_logical)
        at += logical - segment->tail_logical;
    return at < end ? at : end;
}

int wb_segment_write_map(struct wb_segment *segment, uint64_t at, const struct wb_segment_map_entry *map, size_t count,
                         uint64_t *bytes_out)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->revision > 0);
    WB_CHECK(at >= WB_SEGMENT_HEADER_BYTES);

    struct wb_buf bytes = WB_BUF_INIT;
    size_t size = MAP_HEADER_BYTES + count * MAP_ENTRY_BYTES;
    int err = wb_buf_reserve(&bytes, size);

    *bytes_out = 0;
    if (err < 0)
        return err;
    for (size_t i = 1; i < count; i++)
        WB_CHECK(map[i - 1].logical < map[i].logical && map[i - 1].physical < map[i].physical);
    char *to = bytes.ptr;
    memset(to, 0, MAP_HEADER_BYTES);
    for (size_t i = 0; i < count; i++) {
        wb_put64(to + MAP_HEADER_BYTES + i * MAP_ENTRY_BYTES, map[i].logical);
        wb_put64(to + MAP_HEADER_BYTES + i * MAP_ENTRY_BYTES + 8, map[i].physical);
    }
    memcpy(to, "WBMP", 4);
    wb_put64(to + 8, count);
    wb_put64(to + 16, wb_hash64(to + MAP_HEADER_BYTES, count * MAP_ENTRY_BYTES));
    wb_put64(to + MAP_CHECK_AT, wb_hash64(to, MAP_CHECK_AT));
    err = wb_node_file_write_at(&segment->file, at, to, size);
    wb_buf_release(&bytes);
    if (err == 0)
        *bytes_out = size;
    return err;
}

int wb_segment_write_seal(struct wb_segment *segment, uint64_t at, uint64_t commit)
{
    char seal[WB_SEGMENT_SEAL_BYTES] = "WBSL";

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(at >= WB_SEGMENT_HEADER_BYTES);
    wb_put64(seal + 8, commit);
    wb_put64(seal + 16, at);
    wb_put64(seal + SEAL_CHECK_AT, wb_hash64(seal, SEAL_CHECK_AT));
    return wb_node_file_write_at(&segment->file, at, seal, sizeof seal);
}

bool wb_segment_read_seal(const struct wb_segment *segment, uint64_t at, uint64_t *commit_out)
{
    char seal[WB_SEGMENT_SEAL_BYTES];
    size_t got;

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->file.node != NULL);
    *commit_out = 0;
    if (wb_node_file_read_at(&segment->file, at, seal, sizeof seal, &got) < 0 || got != sizeof seal)
        return false;
    if (memcmp(seal, "WBSL", 4) != 0 || wb_get64(seal + SEAL_CHECK_AT) != wb_hash64(seal, SEAL_CHECK_AT) ||
        wb_get64(seal + 16) != at)
        return false;
    *commit_out = wb_get64(seal + 8);
    return true;
}

bool wb_segment_last_seal(const struct wb_segment *segment, uint64_t *commit_out)
{
    uint64_t size;

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->file.node != NULL);
    *commit_out = 0;
    return wb_node_file_size(&segment->file, &size) == 0 && size >= WB_SEGMENT_HEADER_BYTES + WB_SEGMENT_SEAL_BYTES &&
           wb_segment_read_seal(segment, size - WB_SEGMENT_SEAL_BYTES, commit_out);
}

/* ---- reading one page -------------------------------------------------------------------- */

int wb_segment_reader_init(struct wb_segment_reader *source)
{
    *source = (struct wb_segment_reader){0};
    return wb_block_reader_new(&source->zstd);
}

void wb_segment_reader_release(struct wb_segment_reader *source)
{
    WB_CHECK(source->bytes.len <= source->bytes.cap);
    wb_block_reader_free(source->zstd);
    wb_buf_release(&source->bytes);
    wb_buf_release(&source->frame);
    wb_block_index_release(&source->index);
    wb_block_cache_release(&source->cache);
    source->zstd = NULL;
}

/* Makes sure that source->bytes has `need` bytes of the file from `at`. What it already has is not read again. */
static int require(const struct wb_segment *segment, struct wb_segment_reader *source, uint64_t at, size_t need)
{
    size_t have = source->bytes.len, got;
    int err = 0;

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(source->zstd != NULL);
    WB_CHECK(source->bytes.len <= source->bytes.cap);
    if (have >= need)
        return 0;
    err = wb_buf_reserve(&source->bytes, need - have);
    if (err == 0)
        err = wb_node_file_read_at(&segment->file, at + have, source->bytes.ptr + have, need - have, &got);
    if (err < 0)
        return err;
    source->bytes.len += got;
    return source->bytes.len < need ? wb_fail(WB_E_CORRUPT, "the file ends inside the block") : 0;
}

/* Reads the first bytes of a block: usually as many as will be needed, so that one read is enough. */
static int read_first(const struct wb_segment *segment, struct wb_segment_reader *source, uint64_t at)
{
    size_t got;
    int err;

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(source->zstd != NULL);
    wb_buf_clear(&source->bytes);
    err = wb_buf_reserve(&source->bytes, FIRST_READ_BYTES);
    if (err == 0)
        err = wb_node_file_read_at(&segment->file, at, source->bytes.ptr, FIRST_READ_BYTES, &got);
    if (err < 0)
        return err;
    source->bytes.len = got;
    return require(segment, source, at, WB_BLOCK_HEADER_BYTES);
}

/* A block from which a frame is wanted. */
struct block_place {
    const struct wb_segment *segment;
    struct wb_segment_reader *source;
    uint64_t at;       /* where the block starts in the file */
    size_t have_bytes; /* how much of it source->bytes has */
};

/* Provides stored bytes of a block (wb_block_fetch): those that were read with its directory, or others. */
static int fetch(void *context, uint64_t at, size_t size, const char **bytes_out)
{
    const struct block_place *place = context;
    struct wb_buf *frame = &place->source->frame;
    size_t got = 0;

    WB_CHECK(place->segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(place->have_bytes <= place->source->bytes.len);
    if (at + size <= place->have_bytes) {
        *bytes_out = place->source->bytes.ptr + at;
        return 0;
    }
    wb_buf_clear(frame);
    int err = wb_buf_reserve(frame, size);
    if (err == 0)
        err = wb_node_file_read_at(&place->segment->file, place->at + at, frame->ptr, size, &got);
    if (err == 0 && got < size)
        err = wb_fail(WB_E_CORRUPT, "the file ends inside the block");
    *bytes_out = frame->ptr;
    return err;
}

/* Reads and checks the header and the directory of a block: source->bytes and source->index. */
static int load_start(const struct wb_segment *segment, struct wb_segment_reader *source, uint64_t at)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(source->zstd != NULL);

    struct wb_block_head head;
    int err = read_first(segment, source, at);

    if (err == 0)
        err = wb_block_head_read(source->bytes.ptr, &head);
    if (err == 0)
        err = require(segment, source, at, wb_block_directory_end(&head));
    return err < 0 ? err : wb_block_index_read(&head, source->bytes.ptr + WB_BLOCK_HEADER_BYTES, &source->index);
}

/* Puts the block that was just read into the cache. Its lead goes with it, unless no frame is based on it. */
static int keep_start(struct wb_segment_reader *source, const struct wb_block_name *name)
{
    const struct wb_block_index *index = &source->index;
    struct wb_block_start start = {.name = *name};
    struct wb_slice lead = WB_SLICE_EMPTY;
    int err;

    WB_CHECK(index->frames.count > 0);
    WB_CHECK(index->head.lead < index->frames.count);
    err = wb_buf_append(&start.directory, source->bytes.ptr + WB_BLOCK_HEADER_BYTES, index->head.directory_bytes);
    if (err == 0)
        err = wb_block_index_read(&index->head, start.directory.ptr, &start.index);
    if (err == 0 && wb_block_is_base(index, index->head.lead))
        err = wb_block_read_frame(source->zstd, index->head.lead, &lead);
    if (err == 0)
        err = wb_buf_append_slice(&start.lead, lead);
    if (err == 0)
        err = wb_block_cache_put(&source->cache, &start);
    wb_block_start_release(&start);
    return err;
}

/* The record of a slot, from a block that was opened for reading. */
static int read_slot(struct wb_segment_reader *source, const struct wb_block_index *index, uint16_t slot,
                     struct wb_pageid id, struct wb_buf *record_out)
{
    size_t at;

    WB_CHECK(source->zstd != NULL);
    WB_CHECK(index->entries.count > 0);
    if (!wb_block_find_slot(index, slot, &at) || !wb_pageid_equal(index->entries.items[at].id, id))
        return wb_fail(WB_E_CORRUPT, "the block does not hold the page that the catalog says it holds");
    return wb_block_read_record(source->zstd, at, record_out);
}

/* The same as wb_segment_read_record(), with the position of the block; errors do not name the file. */
static int read_record(const struct wb_segment *segment, struct wb_segment_reader *source,
                       const struct wb_catalog_place *place, uint64_t at, struct wb_pageid id,
                       struct wb_buf *record_out)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(place->segment == segment->origin);

    struct wb_block_name name = {segment->number, segment->revision, place->logical};
    struct block_place block = {.segment = segment, .source = source, .at = at};
    const struct wb_block_start *start = wb_block_cache_find(&source->cache, &name);

    if (start) {
        wb_block_reader_open(source->zstd, &start->index, fetch, &block, wb_buf_slice(&start->lead));
        return read_slot(source, &start->index, place->slot, id, record_out);
    }
    int err = load_start(segment, source, at);
    if (err < 0)
        return err;
    block.have_bytes = source->bytes.len;
    wb_block_reader_open(source->zstd, &source->index, fetch, &block, WB_SLICE_EMPTY);
    err = read_slot(source, &source->index, place->slot, id, record_out);
    if (err == 0 && wb_block_cache_wants(&source->cache, &name))
        err = keep_start(source, &name);
    return err;
}

int wb_segment_read_record(const struct wb_segment *segment, struct wb_segment_reader *source,
                           const struct wb_catalog_place *place, struct wb_pageid id, struct wb_buf *record_out)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->origin == place->segment);

    char why[WB_ERROR_MESSAGE_MAX];
    uint64_t at;
    int err = wb_segment_locate(segment, place->logical, &at);

    if (err < 0)
        return err;
    err = read_record(segment, source, place, at, id, record_out);
    if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        snprintf(why, sizeof why, "%s", wb_error_message());
        return wb_fail(err, "%s at %llu: %s", segment->file.path, (unsigned long long)at, why);
    }
    return err;
}
