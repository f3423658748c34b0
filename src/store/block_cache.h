/*
 * block_cache.h - the starts of blocks that pages were read from: header,
 * directory and decompressed lead.
 *
 * A lead serves all pages of its block, so keeping leads is worth about twenty
 * times as much as keeping pages: 64 MB of them cover a gigabyte of pages.
 */
#ifndef WB_STORE_BLOCK_CACHE_H
#define WB_STORE_BLOCK_CACHE_H

#include "store/block.h"

/* Which block: a file and the block's name in it. */
struct wb_block_name {
    uint32_t segment, revision;
    uint64_t logical;
};

struct wb_block_start {
    struct wb_block_name name;
    struct wb_block_head head; /* count 0: this place is empty */
    struct wb_buf directory, lead;
    uint64_t used; /* when, in lookups */
};

enum { WB_BLOCK_CACHE_SETS = 512, WB_BLOCK_CACHE_WAYS = 4 };

struct wb_block_cache {
    struct wb_block_start *starts; /* SETS x WAYS; NULL until the first is put */
    size_t bytes;
    uint64_t now;
    size_t hand; /* the next to go when there are too many bytes */
};

void wb_block_cache_release(struct wb_block_cache *cache);

/* NULL where it is not there. Valid until the next put. */
const struct wb_block_start *wb_block_cache_find(struct wb_block_cache *cache, const struct wb_block_name *name);

/* Takes the buffers of start, which is empty afterwards, and returns the kept one. */
int wb_block_cache_put(struct wb_block_cache *cache, struct wb_block_start *start, const struct wb_block_start **kept_out);

#endif
