/*
 * block_cache.h - a cache of the parts of blocks that every page of a block needs to be
 * read: header, directory and decompressed lead. Each open store has one (segment.h).
 *
 * One lead serves all pages of its block, so memory spent on leads goes about thirty times
 * further than memory spent on pages: 64 MB of leads cover two gigabytes of pages.
 *
 * The cache is set-associative: a block may be in one of WB_BLOCK_CACHE_WAYS places of
 * the set that its name hashes to. The least recently used of them makes way for a new
 * block. When the cache is full, a block enters it only when it is asked for a second time
 * within a short time: in a store that is much larger than the cache, most blocks are not,
 * and copying them would cost more than it saves. A cache filled with zeros is valid and
 * empty.
 */
#ifndef WB_PAGEFILE_BLOCK_CACHE_H
#define WB_PAGEFILE_BLOCK_CACHE_H

#include "block/block.h"

/* Identifies a block: a file, and the name of the block in it. */
struct wb_block_name {
    uint32_t segment, revision;
    uint64_t logical;
};

/* The beginning of a block, as far as all its pages need it. */
struct wb_block_start {
    struct wb_block_name name;
    struct wb_block_index index; /* no entries: this place of the cache is empty */
    struct wb_buf directory;     /* from which the index borrows */
    struct wb_buf lead;          /* decompressed; empty if no frame is based on it */
    uint64_t used;                 /* when it was last used, counted in lookups */
};

enum { WB_BLOCK_CACHE_SETS = 512, WB_BLOCK_CACHE_WAYS = 4, WB_BLOCK_CACHE_SEEN = 1024 };

struct wb_block_cache {
    struct wb_block_start *starts; /* SETS x WAYS; NULL until the first block is put in */
    size_t bytes;                       /* memory of all directories, indexes and leads */
    bool full;                          /* something was emptied to make room */
    uint64_t seen[WB_BLOCK_CACHE_SEEN]; /* hashes of blocks that were not found, the last for each place */
    uint64_t now;                  /* number of lookups so far */
    uint64_t pressed;              /* for wb_kept_pressed() */
    size_t hand;                   /* the next place to be emptied when the cache holds too many bytes */
};

void wb_block_cache_release(struct wb_block_cache *cache);

/* Returns NULL if the block is not in the cache. The result is valid until the next put. */
const struct wb_block_start *wb_block_cache_find(struct wb_block_cache *cache, const struct wb_block_name *name);

/* Whether a block that was not found should be put into the cache. */
bool wb_block_cache_wants(struct wb_block_cache *cache, const struct wb_block_name *name);

void wb_block_start_release(struct wb_block_start *start);

/*
 * Moves a block into the cache: start is empty afterwards. If it still owns its buffers, on error too, it was not kept.
 */
int wb_block_cache_put(struct wb_block_cache *cache, struct wb_block_start *start);

/* Forgets the blocks of all revisions of a segment but one: that file was replaced. UINT32_MAX: of all of them. */
void wb_block_cache_forget(struct wb_block_cache *cache, uint32_t segment, uint32_t but);

#endif
