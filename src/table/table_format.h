/*
 * table_format.h - the bytes of a table file, shared by those who write, read and verify it.
 *
 *   head | block | block | ... | index block | ... | foot
 *
 *   head, 32 bytes    0 "WBTABLE\n"   8 version (4)  12 kind (4)  16 zero (8)  24 checksum of 0 to 24
 *   block             0 checksum (8)  8 stored bytes (4)  12 raw bytes (4)  16 records (4)
 *                     20 codec (1: 0 none, 1 zstd)  21 what (1: 1 records, 2 index)  22 zero (2)   24 the stored bytes
 *   raw bytes         records, then for every 16th record, from the first, its place in the raw bytes (4)
 *   record            varints: bytes of the key shared with the one before (every 16th: 0), bytes of the key that follow,
 *                     bytes of the value; then those bytes
 *   index block       a record for each block: its key is the shortest beginning of the block's first key that is greater
 *                     than the last key of the block before; its value: varints, bytes of the block, records in it
 *   foot, 64 bytes    0 "WBTFOOT\n"   8 place of the index (8)  16 blocks (8)  24 records (8)  32 bytes of keys and values (8)
 *                     40 bytes of the file (8)  48 kind (4)  52 version (4)  56 checksum of 0 to 56
 *
 * Every checksum is XXH3 of the bytes it covers, and of a block (all but the checksum itself) salted with its place:
 * a block moved elsewhere, or bytes of a value that look like one, do not pass. A file is a table if and only if
 * head, blocks, index blocks and foot follow each other without a gap and agree with one another.
 */
#ifndef WB_TABLE_TABLE_FORMAT_H
#define WB_TABLE_TABLE_FORMAT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "table/table.h"

#include <zstd.h>
#include <zstd_errors.h>

#define TABLE_HEAD_MAGIC "WBTABLE\n"
#define TABLE_FOOT_MAGIC "WBTFOOT\n"

enum {
    TABLE_VERSION = 1,
    TABLE_HEAD_BYTES = 32,
    TABLE_FOOT_BYTES = 64,
    TABLE_BLOCK_HEAD_BYTES = 24,
    TABLE_RESTART = 16, /* records from one whole key to the next */
    TABLE_BLOCK_DEFAULT = 16 << 10,
    TABLE_BLOCK_MIN = 256,
    TABLE_BLOCK_MAX = 16 << 20,
    TABLE_INDEX_BLOCK = 64 << 10,
    TABLE_LEVEL_DEFAULT = 1,
    TABLE_RECORD_HEAD_MAX = 3 * 5, /* three varints of 32 bits */
};

/* The largest raw block there is: one record of the largest size. */
#define TABLE_RAW_MAX ((uint32_t)(WB_TABLE_KEY_MAX + WB_TABLE_VALUE_MAX + TABLE_RECORD_HEAD_MAX + 4))
_Static_assert(TABLE_BLOCK_MAX < TABLE_RAW_MAX, "a block of ordinary records is no larger than one of the largest record");

enum wb_table_codec { TABLE_CODEC_NONE = 0, TABLE_CODEC_ZSTD = 1 };
enum wb_table_block_type { TABLE_BLOCK_RECORDS = 1, TABLE_BLOCK_INDEX = 2 };

struct wb_table_foot {
    uint64_t index_at, blocks, records, raw_bytes, file_bytes;
};

void wb_table_head_put(const char kind[4], char head_out[TABLE_HEAD_BYTES]);
void wb_table_foot_put(const struct wb_table_foot *foot, const char kind[4], char out[TABLE_FOOT_BYTES]);

/* WB_E_CORRUPT, WB_E_NEWER; path is for the message. */
int wb_table_head_get(const char head[TABLE_HEAD_BYTES], const char *kind, const char *path);
int wb_table_foot_get(const char bytes[TABLE_FOOT_BYTES], const char *kind, const char *path, struct wb_table_foot *foot_out);

/* The checksum of a block whose bytes (without the checksum) hash to hash and that lies at offset. */
uint64_t wb_table_checksum_at(uint64_t hash, uint64_t offset);

/* ---- making a block ---------------------------------------------------------------------------- */

/* Records on their way into a block: appended to raw, which may hold other blocks before. */
struct wb_table_block_builder {
    size_t start;             /* of this block in raw */
    uint32_t records;
    struct wb_buf restarts;   /* 4 bytes each */
    struct wb_buf last_key;
};

/* Bytes that the block has at most with this record. */
size_t wb_table_block_builder_size_with(const struct wb_table_block_builder *block, const struct wb_buf *raw, struct wb_slice key, struct wb_slice value);

/* shared: bytes that the key has in common with last_key. */
int wb_table_block_builder_add(struct wb_table_block_builder *block, struct wb_buf *raw, struct wb_slice key, size_t shared, struct wb_slice value);

/* Appends the restart points; the next record begins the next block. last_key stays. */
int wb_table_block_builder_finish(struct wb_table_block_builder *block, struct wb_buf *raw);
void wb_table_block_builder_release(struct wb_table_block_builder *block);

/* Appends head and stored bytes; where the checksum belongs there is the hash, to be salted when the place is known. */
int wb_table_block_pack(ZSTD_CCtx *zstd, struct wb_slice raw, uint32_t records, enum wb_table_block_type what, struct wb_buf *packed);

/* ---- reading a block ------------------------------------------------------------------------------ */

/* A block as it was before packing. */
struct wb_table_block_view {
    const char *raw;
    uint32_t records;
    uint32_t end; /* of the records; the restart points follow */
};

/*
 * Checks bytes (a whole block that lies at offset) and unpacks into raw_out, whose old contents go. WB_E_CORRUPT with a
 * message that names path and offset.
 */
int wb_table_block_unpack(ZSTD_DCtx *zstd, struct wb_slice bytes, uint64_t offset, enum wb_table_block_type what, const char *path,
                          struct wb_buf *raw_out, struct wb_table_block_view *view_out);

/* The whole size of the block whose head this is; 0: nonsense. */
uint64_t wb_table_block_size(const char head[TABLE_BLOCK_HEAD_BYTES]);

static inline uint32_t wb_table_block_restart(const struct wb_table_block_view *view, uint32_t number)
{
    return wb_get32(view->raw + view->end + 4 * (size_t)number);
}

static inline uint32_t wb_table_block_restart_count(uint32_t records)
{
    return records / TABLE_RESTART + (records % TABLE_RESTART != 0);
}

/* What stands before the bytes of a record. */
struct wb_table_record_head {
    uint32_t shared, fresh, value;
};

/* Moves *p behind the head; false where it, or the bytes it announces, do not lie before end. key_len: of the key before. */
static inline bool wb_table_record_head_get(const char **p, const char *end, size_t key_len, struct wb_table_record_head *head_out)
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
    if (shared > key_len || fresh > WB_TABLE_KEY_MAX || shared + fresh > WB_TABLE_KEY_MAX || value > WB_TABLE_VALUE_MAX ||
        fresh + value > (size_t)(end - *p))
        return false;
    *head_out = (struct wb_table_record_head){(uint32_t)shared, (uint32_t)fresh, (uint32_t)value};
    return true;
}

/* How many bytes two keys have in common at their begin. */
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

/* As memcmp, the shorter one first. */
static inline int wb_table_key_compare(struct wb_slice a, struct wb_slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least ? memcmp(a.ptr, b.ptr, least) : 0;

    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

#endif
