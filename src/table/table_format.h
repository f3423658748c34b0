/*
 * table_format.h - the bytes of a table file, for the files of this room that write, read and verify them.
 *
 *   head | block | block | ... | index block | ... | foot
 *
 *   head, 32 bytes    0 "WBTABLE\n"   8 format (4)  12 kind (4)  16 zero (8)  24 checksum of bytes 0 to 24
 *   block             0 checksum (8)  8 stored bytes (4)  12 raw bytes (4)  16 records (4)
 *                     20 codec (1: 0 none, 1 zstd)  21 type (1: 1 records, 2 index)  22 zero (2)  24 the stored bytes
 *   raw bytes         the records, then the restart points: for every 16th record, starting with the first, its offset
 *                     in the raw bytes (4)
 *   record            three varints: how many bytes of the key are shared with the previous key (0 at a restart point),
 *                     how many bytes of the key follow, how many bytes of the value follow; then those bytes
 *   index block       one record per block. Its key is the shortest prefix of the block's first key that is greater
 *                     than the last key of the previous block; its value is two varints: size of the block, records
 *   foot, 64 bytes    0 "WBTFOOT\n"   8 offset of the index (8)  16 blocks (8)  24 records (8)
 *                     32 bytes of keys and values (8)  40 size of the file (8)  48 kind (4)  52 format (4)
 *                     56 checksum of bytes 0 to 56
 *
 * Checksums are XXH3. The checksum of a block covers everything after itself and also its offset in the file. A block
 * that was moved, or bytes inside a value that look like a block, therefore do not pass.
 *
 * A file is a table if and only if head, blocks, index blocks and foot follow each other without a gap and agree with
 * each other.
 */
#ifndef WB_TABLE_TABLE_FORMAT_H
#define WB_TABLE_TABLE_FORMAT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "table/table.h"

#include <zstd.h>
#include <zstd_errors.h>

#define TABLE_HEAD_MAGIC "WBTABLE\n"
#define TABLE_FOOT_MAGIC "WBTFOOT\n"

enum {
    TABLE_FORMAT = 1,
    TABLE_HEAD_BYTES = 32,
    TABLE_FOOT_BYTES = 64,
    TABLE_BLOCK_HEAD_BYTES = 24,
    TABLE_RESTART = 16, /* every 16th record of a block stores its whole key */
    TABLE_BLOCK_DEFAULT = 16 << 10,
    TABLE_BLOCK_MIN = 256,
    TABLE_BLOCK_MAX = 16 << 20,
    TABLE_INDEX_BLOCK = 64 << 10,
    TABLE_LEVEL_DEFAULT = 1,
    TABLE_RECORD_HEAD_MAX = 3 * 5, /* three varints of numbers below 2^32 */
    TABLE_KIND_BYTES = 4,
};

/* The largest raw block: a single record of the largest size and its restart point. */
#define TABLE_RAW_MAX ((uint32_t)(WB_TABLE_KEY_MAX + WB_TABLE_VALUE_MAX + TABLE_RECORD_HEAD_MAX + 4))

_Static_assert(sizeof TABLE_HEAD_MAGIC == 8 + 1, "the head starts with 8 letters");
_Static_assert(sizeof TABLE_FOOT_MAGIC == 8 + 1, "the foot starts with 8 letters");
_Static_assert(TABLE_HEAD_BYTES == 8 + 4 + TABLE_KIND_BYTES + 8 + 8, "the head as drawn above");
_Static_assert(TABLE_FOOT_BYTES == 8 + 5 * 8 + TABLE_KIND_BYTES + 4 + 8, "the foot as drawn above");
_Static_assert(TABLE_BLOCK_HEAD_BYTES == 8 + 3 * 4 + 1 + 1 + 2, "the block head as drawn above");
_Static_assert(TABLE_BLOCK_MIN <= TABLE_BLOCK_DEFAULT, "the default is not too small");
_Static_assert(TABLE_BLOCK_DEFAULT <= TABLE_BLOCK_MAX, "the default is not too large");
_Static_assert(TABLE_BLOCK_MAX < TABLE_RAW_MAX, "a block of many records is smaller than one of the largest record");
_Static_assert(TABLE_INDEX_BLOCK < TABLE_RAW_MAX, "an index block passes the same checks as a block of records");

enum wb_table_codec { TABLE_CODEC_NONE = 0, TABLE_CODEC_ZSTD = 1 };
enum wb_table_block_type { TABLE_BLOCK_RECORDS = 1, TABLE_BLOCK_INDEX = 2 };

/* The foot as numbers; kind and format are checked and not kept. */
struct wb_table_foot {
    uint64_t index_at, blocks, records, raw_bytes, file_bytes;
};

void wb_table_head_put(const char kind[TABLE_KIND_BYTES], char head_out[TABLE_HEAD_BYTES]);
void wb_table_foot_put(const struct wb_table_foot *foot, const char kind[TABLE_KIND_BYTES],
                       char foot_out[TABLE_FOOT_BYTES]);

/* WB_E_CORRUPT, WB_E_NEWER; path is used in the message only. */
int wb_table_head_get(const char head[TABLE_HEAD_BYTES], const char *kind, const char *path);
int wb_table_foot_get(const char bytes[TABLE_FOOT_BYTES], const char *kind, const char *path,
                      struct wb_table_foot *foot_out);

/* Turns the hash of some bytes into the checksum they have at this offset of a file. Columns use it too. */
uint64_t wb_table_checksum_at(uint64_t hash, uint64_t offset);

/* ---- building a block -------------------------------------------------------------------------- */

/*
 * Front-codes records into raw blocks. It appends to a buffer that the caller owns and that may already hold finished
 * blocks. One builder makes any number of blocks, one after the other; zeroed memory is a new builder.
 */
struct wb_table_block_builder {
    size_t start;             /* where the current block starts in the caller's buffer */
    uint32_t records;         /* in the current block */
    struct wb_buf restarts;   /* restart points of the current block, 4 bytes each */
    struct wb_buf last_key;   /* the last key added; it survives the end of a block */
};

/* An upper bound for the size of the current block if this record were added to it. */
size_t wb_table_block_builder_size_with(const struct wb_table_block_builder *builder, const struct wb_buf *raw,
                                        struct wb_slice key, struct wb_slice value);

/* shared: how many bytes the key has in common with last_key. */
int wb_table_block_builder_add(struct wb_table_block_builder *builder, struct wb_buf *raw, struct wb_slice key,
                               size_t shared, struct wb_slice value);

/* Appends the restart points. The next record starts the next block. */
int wb_table_block_builder_finish(struct wb_table_block_builder *builder, struct wb_buf *raw);
void wb_table_block_builder_release(struct wb_table_block_builder *builder);

/*
 * Compresses a raw block and appends head and stored bytes to packed. The offset of the block is not known yet: the
 * checksum field holds the plain hash, which the writer replaces by wb_table_checksum_at().
 */
int wb_table_block_pack(ZSTD_CCtx *zstd, struct wb_slice raw, uint32_t records, enum wb_table_block_type type,
                        struct wb_buf *packed);

/* ---- reading a block ------------------------------------------------------------------------- */

/* A decompressed block. Its checksum was right; nothing else about its records has been checked yet. */
struct wb_table_block_view {
    const char *raw;
    uint32_t records;
    uint32_t end; /* where the records end and the restart points start */
};

/*
 * bytes: a whole block from this offset of the file. Checks it and decompresses it into raw_out, replacing what was
 * there. WB_E_CORRUPT with a message that names path and offset.
 */
int wb_table_block_unpack(ZSTD_DCtx *zstd, struct wb_slice bytes, uint64_t offset, enum wb_table_block_type type,
                          const char *path, struct wb_buf *raw_out, struct wb_table_block_view *view_out);

/* The size of the block, head included, according to its head; 0 if the head makes no sense. */
uint64_t wb_table_block_size(const char head[TABLE_BLOCK_HEAD_BYTES]);

/* The restart point of this number: an offset in the raw bytes, not yet checked. */
static inline uint32_t wb_table_block_restart(const struct wb_table_block_view *view, uint32_t number)
{
    return wb_get32(view->raw + view->end + 4 * (size_t)number);
}

static inline uint32_t wb_table_block_restart_count(uint32_t records)
{
    return records / TABLE_RESTART + (records % TABLE_RESTART != 0);
}

/* The three numbers at the start of a record. */
struct wb_table_record_head {
    uint32_t shared; /* bytes of the key that are those of the previous key */
    uint32_t fresh;  /* bytes of the key that follow */
    uint32_t value;  /* bytes of the value */
};

/*
 * Reads a record head and moves *p behind it. key_len is the length of the previous key. Returns false if the head, or
 * the bytes that it announces, do not fit before end.
 */
static inline bool wb_table_record_head_get(const char **p, const char *end, size_t key_len,
                                            struct wb_table_record_head *head_out)
{
    const uint8_t *b = (const uint8_t *)*p;
    uint64_t shared, fresh, value;

    if (end - *p >= 3 && (b[0] | b[1] | b[2]) < 0x80) {
        shared = b[0];
        fresh = b[1];
        value = b[2];
        *p += 3;
    } else if (!wb_get_varint(p, end, &shared) || !wb_get_varint(p, end, &fresh) || !wb_get_varint(p, end, &value)) {
        return false;
    }
    if (shared > key_len || fresh > WB_TABLE_KEY_MAX || shared + fresh > WB_TABLE_KEY_MAX)
        return false;
    if (value > WB_TABLE_VALUE_MAX || fresh + value > (size_t)(end - *p))
        return false;
    *head_out = (struct wb_table_record_head){(uint32_t)shared, (uint32_t)fresh, (uint32_t)value};
    return true;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* How many bytes two keys have in common at their start. */
static inline size_t wb_table_key_shared(struct wb_slice a, struct wb_slice b)
{
    size_t least = a.len < b.len ? a.len : b.len, n = 0;

    while (n + 8 <= least) {
        uint64_t x, y;
        memcpy(&x, a.ptr + n, 8);
        memcpy(&y, b.ptr + n, 8);
        if (x != y) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return n + (size_t)__builtin_ctzll(x ^ y) / 8;
#else
            return n + (size_t)__builtin_clzll(x ^ y) / 8;
#endif
        }
        n += 8;
    }
    while (n < least && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

#endif
