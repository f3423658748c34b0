/* table_read.h - an open table: its file and its index. */
#ifndef WB_TABLE_TABLE_READ_H
#define WB_TABLE_TABLE_READ_H

#include "os/file.h"
#include "table/table_format.h"

/* A block as the index knows it. The entry behind the last one says where the last one ends. */
struct wb_table_block_place {
    uint64_t offset;
    uint64_t first;   /* number of its first record */
    uint64_t key_at;  /* of its key in keys */
};

struct wb_table {
    struct wb_file file;
    struct wb_table_foot foot;
    struct wb_table_block_place *places; /* foot.blocks + 1 */
    struct wb_buf keys;
};

static inline struct wb_slice wb_table_block_key(const struct wb_table *table, uint64_t block)
{
    const struct wb_table_block_place *place = &table->places[block];

    return wb_slice(table->keys.ptr + place->key_at, place[1].key_at - place->key_at);
}

static inline uint32_t wb_table_block_records(const struct wb_table *table, uint64_t block)
{
    return (uint32_t)(table->places[block + 1].first - table->places[block].first);
}

/* The block that holds the key if any does; or the record of this number. There must be blocks, and the number must be there. */
uint64_t wb_table_find_block(const struct wb_table *table, struct wb_slice key);
uint64_t wb_table_find_number(const struct wb_table *table, uint64_t number);

#endif
