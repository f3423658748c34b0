/* table_read.h - an open table as cursors and the verifier see it: the file and its index in memory. */
#ifndef WB_TABLE_TABLE_READ_H
#define WB_TABLE_TABLE_READ_H

#include "os/file.h"
#include "table/table_format.h"

enum { TABLE_MAGIC = 0x57425442 }; /* "WBTB" */

/* What the index knows about a block. One more entry follows the last block, so that place[1] always ends place[0]. */
struct wb_table_block_place {
    uint64_t offset;  /* in the file */
    uint64_t first;   /* number of its first record */
    uint64_t key_at;  /* where its index key starts in wb_table.keys */
};

/* Never changes once wb_table_open() has returned it, which is why threads can share it. */
struct wb_table {
    uint32_t magic;
    struct wb_file file;
    struct wb_table_foot foot;
    struct wb_table_block_place *places; /* foot.blocks + 1 of them */
    struct wb_buf keys;                  /* all index keys, one after the other */
};

/* The index key of a block: not greater than its first key, and greater than the last key of the previous block. */
static inline struct wb_slice wb_table_block_key(const struct wb_table *table, uint64_t block)
{
    const struct wb_table_block_place *place = &table->places[block];

    WB_CHECK(block < table->foot.blocks);
    WB_CHECK(place->key_at <= place[1].key_at); /* wb_table_open() has read them in order */
    return wb_slice(table->keys.ptr + place->key_at, place[1].key_at - place->key_at);
}

/* How many records the index says the block has. */
static inline uint32_t wb_table_block_records(const struct wb_table *table, uint64_t block)
{
    WB_CHECK(block < table->foot.blocks);
    WB_CHECK(table->places[block].first < table->places[block + 1].first); /* no block is empty */
    return (uint32_t)(table->places[block + 1].first - table->places[block].first);
}

/* The only block that can hold the key. The table must have blocks. */
uint64_t wb_table_find_block(const struct wb_table *table, struct wb_slice key);

/* The block that holds the record of this number, which must exist. */
uint64_t wb_table_find_number(const struct wb_table *table, uint64_t number);

#endif
