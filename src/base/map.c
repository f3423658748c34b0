/*
 * map.c - open addressing with linear probing.
 *
 * An entry is at the first place that was free when it came, counted from wb_map_place() of its hash; the last place is
 * followed by the first one. A table is never more than three quarters full, so every search soon ends at a free place.
 * Nothing marks removed entries: the ones behind a removed entry move up, as if it had never been there.
 *
 * It never looks at an entry beyond its hash, and takes no randomness: the seed comes from the caller.
 */
#include "base/map.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "64 bits: places are computed from 64-bit hashes");

enum {
    CAP_MIN = 16, /* a power of two */
    CAP_KEPT = 1024,  /* wb_map_clear() gives back more places than this... */
    KEPT_FACTOR = 16, /* ...if they were this many times the entries */
};

/* A table with cap places holds this many entries. */
static size_t limit_of(size_t cap)
{
    return cap / 4 * 3;
}

static char *entry_at(const struct wb_map *map, size_t entry_bytes, size_t at)
{
    return (char *)map->entries + at * entry_bytes;
}

/* Entries are a few words, so a loop is faster than a call of memcpy(). */
static void copy_entry(char *to, const char *from, size_t entry_bytes)
{
    for (size_t i = 0; i < entry_bytes; i += sizeof(uint64_t))
        memcpy(to + i, from + i, sizeof(uint64_t));
}

/* The first free place for a hash. */
static size_t free_place(const struct wb_map *map, size_t entry_bytes, uint64_t hash)
{
    size_t at = wb_map_place(hash, map->seed, map->cap);

    while (wb_map_hash_at(entry_at(map, entry_bytes, at)) != 0)
        at = (at + 1) & (map->cap - 1);
    return at;
}

int wb_map_resize(struct wb_map *map, size_t entry_bytes, size_t count)
{
    struct wb_map grown = {.count = map->count, .cap = map->cap ? map->cap : CAP_MIN, .seed = map->seed};

    WB_CHECK(entry_bytes % sizeof(uint64_t) == 0);
    if (map->cap && count <= limit_of(map->cap))
        return 0;
    while (limit_of(grown.cap) < count) {
        if (grown.cap > (size_t)PTRDIFF_MAX / 2 / entry_bytes)
            return wb_fail_nomem();
        grown.cap *= 2;
    }
    grown.entries = wb_alloc_zero(grown.cap, entry_bytes);
    if (!grown.entries)
        return WB_E_NOMEM;
    for (size_t i = 0; i < map->cap; i++) {
        char *entry = entry_at(map, entry_bytes, i);
        uint64_t hash = wb_map_hash_at(entry);
        if (hash)
            copy_entry(entry_at(&grown, entry_bytes, free_place(&grown, entry_bytes, hash)), entry, entry_bytes);
    }
    wb_free(map->entries);
    *map = grown;
    return 0;
}

void *wb_map_insert(struct wb_map *map, size_t entry_bytes, uint64_t hash)
{
    if (map->count >= limit_of(map->cap) && wb_map_resize(map, entry_bytes, map->count + 1) < 0)
        return NULL;
    hash += hash == 0;
    char *entry = entry_at(map, entry_bytes, free_place(map, entry_bytes, hash));
    memcpy(entry, &hash, sizeof hash);
    map->count++;
    WB_CHECK(map->count <= limit_of(map->cap)); /* a free place is left, so that every search ends */
    return entry;
}

/*
 * Removing an entry leaves a hole. An entry further on moves into the hole, unless that would put it before the place
 * where its search begins; the place that it left is then the hole. The first free place ends the row.
 */
void wb_map_erase(struct wb_map *map, size_t entry_bytes, void *gone)
{
    size_t mask = map->cap - 1;
    size_t hole = (size_t)((char *)gone - (char *)map->entries) / entry_bytes;

    WB_CHECK(map->count > 0 && hole < map->cap && wb_map_hash_at(gone) != 0);
    for (size_t at = (hole + 1) & mask;; at = (at + 1) & mask) {
        char *entry = entry_at(map, entry_bytes, at);
        uint64_t hash = wb_map_hash_at(entry);
        if (hash == 0)
            break;
        size_t start = wb_map_place(hash, map->seed, map->cap);
        if (((at - start) & mask) < ((at - hole) & mask))
            continue;
        copy_entry(entry_at(map, entry_bytes, hole), entry, entry_bytes);
        hole = at;
    }
    memset(entry_at(map, entry_bytes, hole), 0, entry_bytes);
    map->count--;
}

void *wb_map_walk(const struct wb_map *map, size_t entry_bytes, const void *previous)
{
    size_t at = previous ? (size_t)((const char *)previous - (const char *)map->entries) / entry_bytes + 1 : 0;

    for (; at < map->cap; at++)
        if (wb_map_hash_at(entry_at(map, entry_bytes, at)) != 0)
            return entry_at(map, entry_bytes, at);
    return NULL;
}

void wb_map_reset(struct wb_map *map, size_t entry_bytes)
{
    /* Otherwise one huge use would make every later clearing of a few entries as slow as itself. */
    if (map->cap > CAP_KEPT && map->count < map->cap / KEPT_FACTOR)
        wb_map_free_entries(map);
    else if (map->count)
        memset(map->entries, 0, map->cap * entry_bytes);
    map->count = 0;
}

void wb_map_free_entries(struct wb_map *map)
{
    wb_free(map->entries);
    *map = (struct wb_map){.seed = map->seed};
}
