/*
 * segment.h - segment files: an append-only run of blocks, written by one process.
 *
 *   pages/00000007.seg      segment 7 as written
 *   pages/00000007.2.seg    segment 7 after its second compaction
 *
 * A block's name is its logical offset: where it stood in the file as first
 * written. Compaction moves blocks but keeps their names; a compacted file ends
 * with a map from names to places. So no catalog entry changes when a segment is
 * compacted.
 */
#ifndef WB_STORE_SEGMENT_H
#define WB_STORE_SEGMENT_H

#include "os/file.h"
#include "store/block.h"
#include "store/block_cache.h"
#include "store/catalog.h"

#define WB_SEGMENT_DIR "pages"

enum {
    WB_SEGMENT_HEADER_BYTES = 64,
    WB_SEGMENT_SEAL_BYTES = 32,
    WB_SEGMENT_NAME_MAX = 64,
};
#define WB_SEGMENT_BYTES_MAX ((uint64_t)1 << 30)

struct wb_segment_map_entry {
    uint64_t logical, physical;
};

struct wb_segment {
    struct wb_file file;
    uint32_t number, revision;
    struct wb_segment_map_entry *map; /* of compacted files, sorted by logical */
    size_t map_count;
};

#define WB_SEGMENT_INIT ((struct wb_segment){.file = {-1, NULL}})

/* "pages/00000007.2.seg" */
void wb_segment_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX]);

/* Reads a name without its directory; false where it is not a segment's. */
bool wb_segment_name_parse(const char *name, uint32_t *number_out, uint32_t *revision_out);

/* A new, empty file with its header, locked for this process. WB_E_INVALID where it is there. */
int wb_segment_create(const char *dir, const uint8_t *repo_id, uint32_t number, uint32_t revision, struct wb_segment *segment_out);

/* Opens a segment as its row describes it; checks the header and reads the map. */
int wb_segment_open(const char *dir, const uint8_t *repo_id, const struct wb_catalog_segment *row, bool write, struct wb_segment *segment_out);
void wb_segment_close(struct wb_segment *segment);

/* Opens the file for writing and looks at nothing in it: for one whose pages are all dead. WB_E_NOTFOUND. */
int wb_segment_open_unread(const char *dir, const struct wb_catalog_segment *row, struct wb_segment *segment_out);

/* Where the block of that name lies in the file; WB_E_CORRUPT where it does not. */
int wb_segment_locate(const struct wb_segment *segment, uint64_t logical, uint64_t *physical_out);

/* Appends the map of a compacted file at `at`; bytes_out is its size. */
int wb_segment_write_map(struct wb_segment *segment, uint64_t at, const struct wb_segment_map_entry *map, size_t count,
                         uint64_t *bytes_out);

/*
 * The seal: written after the last committed byte when a writer leaves, and
 * overwritten by the next. It says which commit the catalog had reached, so that a
 * catalog that lost commits is found out.
 */
int wb_segment_write_seal(struct wb_segment *segment, uint64_t at, uint64_t commit);
bool wb_segment_read_seal(const struct wb_segment *segment, uint64_t at, uint64_t *commit_out);

/* The seal that the file ends with, wherever a catalog that lost commits believes that the end is. */
bool wb_segment_last_seal(const struct wb_segment *segment, uint64_t *commit_out);

/* ---- reading one page --------------------------------------------------------------- */

/* Buffers for reading pages out of blocks, kept from one to the next. */
struct wb_segment_reader {
    struct wb_block_reader *zstd;
    struct wb_buf bytes; /* as they lie in the file */
    struct wb_block_cache cache;
};
int wb_segment_reader_init(struct wb_segment_reader *source);
void wb_segment_reader_release(struct wb_segment_reader *source);

/* The record of the page at place, which must have that id. */
int wb_segment_read_record(const struct wb_segment *segment, struct wb_segment_reader *source, const struct wb_catalog_place *place,
                           struct wb_pageid id, struct wb_buf *record_out);

/* ---- walking ---------------------------------------------------------------------------- */

struct wb_segment_walk {
    const struct wb_segment *segment;
    struct wb_buf window; /* bytes of the file from window_at */
    uint64_t window_at;
    uint64_t next;        /* place of the next block */
    uint64_t end;         /* of the blocks */
    uint64_t error_at;    /* place of the damage when a call returned WB_E_CORRUPT */
};

/* From the first block to end. */
void wb_segment_walk_init(struct wb_segment_walk *walk, const struct wb_segment *segment, uint64_t end);
void wb_segment_walk_release(struct wb_segment_walk *walk);

/*
 * The next block, its header and directory checked: 1, 0 at the end, or an error.
 * After WB_E_CORRUPT the next call goes on at the next block that can be found.
 * *block_out is valid until the next call.
 */
int wb_segment_walk_next(struct wb_segment_walk *walk, struct wb_block_head *head_out, const char **block_out, uint64_t *at_out);

#endif
