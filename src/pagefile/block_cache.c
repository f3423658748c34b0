/*
 * block_cache.c - keeps the starts of blocks in memory. Two rules remove them: within a
 * set, the least recently used one makes way for a new one; and while the whole cache
 * holds more than CACHE_BYTES_MAX, or the process more than it may (kept.h), a hand goes around and
 * empties one place after the other. It never reads a file: callers put in what they have read and
 * checked.
 */
#include "pagefile/block_cache.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/kept.h"
#include "base/mem.h"

#define CACHE_BYTES_MAX ((size_t)64 << 20)

enum { START_COUNT = WB_BLOCK_CACHE_SETS * WB_BLOCK_CACHE_WAYS };
_Static_assert((WB_BLOCK_CACHE_SETS & (WB_BLOCK_CACHE_SETS - 1)) == 0, "a hash is spread evenly over the sets");

/* The memory that an entry occupies. */
static size_t weight(const struct wb_block_start *start)
{
    WB_CHECK(start->directory.len <= start->directory.cap);
    WB_CHECK(start->lead.len <= start->lead.cap);
    return start->directory.cap + start->lead.cap + start->index.entries.cap * sizeof *start->index.entries.items +
           start->index.frames.cap * sizeof *start->index.frames.items;
}

void wb_block_start_release(struct wb_block_start *start)
{
    WB_CHECK(start->directory.len <= start->directory.cap);
    wb_buf_release(&start->directory);
    wb_buf_release(&start->lead);
    wb_block_index_release(&start->index);
}

static void drop(struct wb_block_cache *cache, struct wb_block_start *start)
{
    WB_CHECK(cache->starts != NULL);
    WB_CHECK(start >= cache->starts);
    WB_CHECK(start < cache->starts + START_COUNT);
    WB_CHECK(cache->bytes >= weight(start));
    cache->bytes -= weight(start);
    wb_kept_drop(WB_KEPT_BLOCKS, weight(start));
    wb_block_start_release(start);
    *start = (struct wb_block_start){0};
}

void wb_block_cache_release(struct wb_block_cache *cache)
{
    for (size_t i = 0; cache->starts && i < START_COUNT; i++)
        drop(cache, &cache->starts[i]);
    WB_CHECK(cache->bytes == 0);
    wb_kept_drop(WB_KEPT_BLOCKS, cache->starts ? START_COUNT * sizeof *cache->starts : 0);
    wb_free(cache->starts);
    *cache = (struct wb_block_cache){0};
}

static bool same_name(const struct wb_block_name *a, const struct wb_block_name *b)
{
    WB_CHECK(a->segment > 0);
    return a->logical == b->logical && a->segment == b->segment && a->revision == b->revision;
}

static uint64_t hash_of(const struct wb_block_name *name)
{
    char bytes[16];

    WB_CHECK(name->segment > 0);
    wb_put32(bytes, name->segment);
    wb_put32(bytes + 4, name->revision);
    wb_put64(bytes + 8, name->logical);
    return wb_hash64(bytes, sizeof bytes);
}

/* The set, WB_BLOCK_CACHE_WAYS neighbouring places, in which a block may be. */
static struct wb_block_start *set_of(const struct wb_block_cache *cache, const struct wb_block_name *name)
{
    WB_CHECK(cache->starts != NULL);
    return cache->starts + hash_of(name) % WB_BLOCK_CACHE_SETS * WB_BLOCK_CACHE_WAYS;
}

bool wb_block_cache_wants(struct wb_block_cache *cache, const struct wb_block_name *name)
{
    WB_CHECK(cache->hand < START_COUNT);

    uint64_t hash = hash_of(name), *seen = &cache->seen[hash / WB_BLOCK_CACHE_SETS % WB_BLOCK_CACHE_SEEN];
    bool again = *seen == hash;

    *seen = hash;
    return again || !cache->full;
}

const struct wb_block_start *wb_block_cache_find(struct wb_block_cache *cache, const struct wb_block_name *name)
{
    WB_CHECK(cache->hand < START_COUNT);
    WB_CHECK(name->segment > 0);
    if (!cache->starts)
        return NULL;
    struct wb_block_start *set = set_of(cache, name);
    for (size_t i = 0; i < WB_BLOCK_CACHE_WAYS; i++)
        if (set[i].index.entries.count && same_name(&set[i].name, name)) {
            set[i].used = ++cache->now;
            return &set[i];
        }
    return NULL;
}

/* Empties places until at most `most` bytes are kept. Returns false if nothing was. */
static bool empty_places(struct wb_block_cache *cache, size_t most)
{
    size_t before = cache->bytes;

    WB_CHECK(cache->starts != NULL);
    WB_CHECK(cache->hand < START_COUNT);
    while (cache->bytes > most) {
        drop(cache, &cache->starts[cache->hand]);
        cache->hand = (cache->hand + 1) % START_COUNT;
        cache->full = true;
    }
    return cache->bytes < before;
}

/* Makes room for so many bytes, and counts them. False: there is none, even if the cache is empty. */
static bool make_room(struct wb_block_cache *cache, size_t bytes)
{
    if (wb_kept_pressed(&cache->pressed))
        empty_places(cache, cache->bytes / 2);
    if (bytes > CACHE_BYTES_MAX)
        return false;
    empty_places(cache, CACHE_BYTES_MAX - bytes);
    while (!wb_kept_add(WB_KEPT_BLOCKS, bytes))
        if (!empty_places(cache, cache->bytes > bytes ? cache->bytes - bytes : 0))
            return false;
    return true;
}

void wb_block_cache_forget(struct wb_block_cache *cache, uint32_t segment, uint32_t but)
{
    WB_CHECK(segment > 0);
    for (size_t i = 0; cache->starts && i < START_COUNT; i++)
        if (cache->starts[i].index.entries.count && cache->starts[i].name.segment == segment &&
            cache->starts[i].name.revision != but)
            drop(cache, &cache->starts[i]);
}

int wb_block_cache_put(struct wb_block_cache *cache, struct wb_block_start *start)
{
    WB_CHECK(start->name.segment > 0);
    WB_CHECK(start->index.entries.count > 0);
    WB_CHECK(start->directory.len > 0);
    if (!cache->starts) {
        if (!wb_kept_add(WB_KEPT_BLOCKS, START_COUNT * sizeof *cache->starts))
            return 0;
        cache->starts = wb_alloc_zero(START_COUNT, sizeof *cache->starts);
        if (!cache->starts) {
            wb_kept_drop(WB_KEPT_BLOCKS, START_COUNT * sizeof *cache->starts);
            return WB_E_NOMEM;
        }
    }
    if (!make_room(cache, weight(start)))
        return 0;
    struct wb_block_start *set = set_of(cache, &start->name), *oldest = set;
    for (size_t i = 1; i < WB_BLOCK_CACHE_WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    cache->full = cache->full || oldest->index.entries.count > 0;
    drop(cache, oldest);
    *oldest = *start;
    oldest->used = ++cache->now;
    *start = (struct wb_block_start){0}; /* the cache owns its memory now */
    cache->bytes += weight(oldest);
    WB_CHECK(cache->bytes >= weight(oldest));
    WB_CHECK(oldest->index.entries.count > 0);
    return 0;
}
