/*
 * segment.h - segment files: sequences of blocks (block.h) that hold the pages.
 *
 *   pages/00000007.seg      segment 7 as it was written: revision 0
 *   pages/00000007.2.seg    segment 7 after its second compaction: revision 2
 *
 *   +--------+-------+-------+- -  -+-------+  +------+
 *   | header | block | block |       | block |  | seal |     revision 0: blocks are appended
 *   +--------+-------+-------+- -  -+-------+  +------+
 *                                           ^ committed bytes end here; the catalog knows where
 *   +--------+-------+-------+- -  -+-------+-----+-------+- -  -+------+
 *   | header | block | block |       | block | map | block |       | seal |     after a compaction: behind the map
 *   +--------+-------+-------+- -  -+-------+-----+-------+- -  -+------+
 *
 * One process at a time appends to a segment; it has claimed the file (node.h).
 * Everything after the committed bytes is ignored by readers.
 *
 * A block is named by its *logical offset*: its position in revision 0. Compaction moves
 * blocks but keeps their names, and puts a map from names to positions behind them.
 * So the catalog's entries stay valid when a segment is compacted. Blocks that are appended behind
 * the map get the names that they would have got without the compaction, one after the other, so
 * these need no map: the difference between name and position is the same for all of them.
 *
 * Used by the organisations log and hashed-log. segment.c draws the bytes of header, map and
 * seal; docs/formats/segment.md is the reference.
 */
#ifndef WB_PAGEFILE_SEGMENT_H
#define WB_PAGEFILE_SEGMENT_H

#include "block/block.h"
#include "place/place.h"
#include "pagefile/block_cache.h"
#include "catalog/catalog.h"

#define WB_SEGMENT_DIR WB_NODE_DIR

enum {
    WB_SEGMENT_MAGIC = 0x57425347,
    WB_SEGMENT_HEADER_BYTES = 64,
    WB_SEGMENT_SEAL_BYTES = 32,
    WB_SEGMENT_NAME_MAX = 64,
};

/* A segment that has reached this size is full. */
#define WB_SEGMENT_BYTES_MAX ((uint64_t)1 << 30)

/* Where a block of a compacted segment is. */
struct wb_segment_map_entry {
    uint64_t logical;  /* its name */
    uint64_t physical; /* its position in the file */
};

/* An open segment file. */
struct wb_segment {
    uint32_t magic; /* 0 if it is closed */
    struct wb_node_file file;
    uint32_t number, revision;
    uint32_t origin; /* the number that its places have: its own, or that of the segment it was split off from */
    struct wb_segment_map_entry *map; /* in compacted files, sorted by logical offset */
    size_t map_count;
    uint64_t map_at; /* in compacted files: where the map is, among the blocks; otherwise 0 */
    uint64_t tail_at, tail_logical; /* position and name of the first block that was, or will be, appended */
};

#define WB_SEGMENT_INIT ((struct wb_segment){.magic = 0})

/* The name of the file, relative to its node: "pages/00000007.2.seg". */
void wb_segment_name(uint32_t number, uint32_t revision, char name_out[WB_SEGMENT_NAME_MAX]);

/* Parses a name without its directory; false if it is not the name of a segment. */
bool wb_segment_name_parse(const char *name, uint32_t *number_out, uint32_t *revision_out);

/* Creates a file with nothing but its header, and claims it. WB_E_INVALID if it exists. */
int wb_segment_create(struct wb_node *node, const uint8_t *repo_id, uint32_t number, uint32_t revision,
                      struct wb_segment *segment_out);

/* Opens the file that a row describes: checks its header and reads its map. WB_E_CORRUPT, also if it is missing. */
int wb_segment_open(struct wb_node *node, const uint8_t *repo_id, const struct wb_catalog_segment *row, bool write,
                    struct wb_segment *segment_out);

/* Opens the file for writing without reading anything: for a file whose pages are all dead. WB_E_NOTFOUND. */
int wb_segment_open_unread(struct wb_node *node, const struct wb_catalog_segment *row, struct wb_segment *segment_out);

/* Closes the file and ends its claim. Does nothing if it is closed. */
void wb_segment_close(struct wb_segment *segment);

/* Finds the position of a block; WB_E_CORRUPT if the map does not have it. */
int wb_segment_locate(const struct wb_segment *segment, uint64_t logical, uint64_t *physical_out);

/* The name of a block that is appended at this position. */
uint64_t wb_segment_name_at(const struct wb_segment *segment, uint64_t physical);

/* The position of the first block whose name is not before `logical`; at most `end`, where the blocks end. */
uint64_t wb_segment_seek(const struct wb_segment *segment, uint64_t logical, uint64_t end);

/* Where the blocks of a row's file end: at its map, if nothing was appended since it was compacted. */
uint64_t wb_segment_blocks_end(const struct wb_catalog_segment *row);

/* The position of the next block, if the last one ended at `at`: passes over the map if blocks follow it. */
static inline uint64_t wb_segment_pass_map(const struct wb_segment *segment, uint64_t at, uint64_t end)
{
    return segment->map_at && at == segment->map_at && segment->tail_at < end ? segment->tail_at : at;
}

/* How far blocks may reach that begin at `at`: to the map or, behind it, to where the blocks end. */
static inline uint64_t wb_segment_stretch_end(const struct wb_segment *segment, uint64_t at, uint64_t end)
{
    return segment->map_at && at < segment->map_at && segment->map_at < end ? segment->map_at : end;
}

/* Writes the map of a compacted file at offset `at`. */
int wb_segment_write_map(struct wb_segment *segment, uint64_t at, const struct wb_segment_map_entry *map, size_t count,
                         uint64_t *bytes_out);

/*
 * The seal follows the last committed byte. A writer that leaves cleanly writes it, and
 * the next writer overwrites it. It records which commit the catalog had reached, so
 * that a catalog that has lost commits since is noticed.
 */
int wb_segment_write_seal(struct wb_segment *segment, uint64_t at, uint64_t commit);
bool wb_segment_read_seal(const struct wb_segment *segment, uint64_t at, uint64_t *commit_out);

/* Reads the seal at the end of the file, even if the catalog believes that the file ends somewhere else. */
bool wb_segment_last_seal(const struct wb_segment *segment, uint64_t *commit_out);

/* ---- reading one page --------------------------------------------------------------- */

/* Buffers and the cache of blocks, used again for each page. Works for any number of segments. */
struct wb_segment_reader {
    struct wb_block_reader *zstd;
    struct wb_buf bytes;         /* the beginning of a block, at least header and directory */
    struct wb_buf frame;         /* a frame that is not in bytes */
    struct wb_block_index index; /* of the block in bytes */
    struct wb_block_cache cache;
};
int wb_segment_reader_init(struct wb_segment_reader *reader);
void wb_segment_reader_release(struct wb_segment_reader *reader);

/* Reads the record of the page at place, and checks that the block's directory has this id there. */
int wb_segment_read_record(const struct wb_segment *segment, struct wb_segment_reader *reader,
                           const struct wb_catalog_place *place, struct wb_pageid id, struct wb_buf *record_out);

/* ---- walking through all blocks (segment_walk.c) -------------------------------------------- */

/*
 * Bytes of a file that somebody else is reading, for a walk. wait() provides `need` bytes from `at`, and says how many
 * there are from there on. It waits until they are there; false: they will never be, and the walk reads the file.
 */
struct wb_segment_ahead {
    bool (*wait)(struct wb_segment_ahead *ahead, uint64_t at, size_t need, const char **bytes_out, size_t *have_out);
};

struct wb_segment_walk {
    const struct wb_segment *segment;
    struct wb_segment_ahead *ahead; /* NULL: the walk reads all by itself */
    struct wb_buf window; /* the bytes of the file from window_at */
    uint64_t window_at;
    uint64_t next;        /* position of the next block */
    uint64_t end;         /* where the blocks end */
    uint64_t error_at;    /* after WB_E_CORRUPT: where the damage starts; it ends at `next` */
    struct wb_block_index index; /* of the last block that was returned; borrows from it */
};

/* Starts at the first block; end is where the blocks end. */
void wb_segment_walk_init(struct wb_segment_walk *walk, const struct wb_segment *segment, uint64_t end);
void wb_segment_walk_release(struct wb_segment_walk *walk);

/*
 * Returns 1 and the next block, with its header and directory checked, and walk->index
 * filled; 0 at the end; or an error. *block_out is valid until the next call. After WB_E_CORRUPT, the next call
 * continues with the next block that can be found.
 */
int wb_segment_walk_next(struct wb_segment_walk *walk, struct wb_block_head *head_out, const char **block_out,
                         uint64_t *at_out);

#endif
