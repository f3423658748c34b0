/* idtable.h - docids by page id, in a hash table of 4 bytes per slot; ids are hashes already. */
#ifndef WB_INDEX_IDTABLE_H
#define WB_INDEX_IDTABLE_H

#include "index/index.h"

struct wb_idtable {
    uint32_t *slots; /* docid + 1; 0 is free */
    uint64_t mask;
    size_t bytes;
    const char *ids; /* the page ids by docid, as bytes; the caller's */
};

/* Fills the table with the first `count` docids. Close it even after an error. */
int wb_idtable_open(const char *temp_dir, const void *ids, uint64_t count, struct wb_idtable *table_out);
void wb_idtable_close(struct wb_idtable *table);

/* WB_DOCID_NONE if there is none. */
uint32_t wb_idtable_find(const struct wb_idtable *table, struct wb_pageid id);

#endif
