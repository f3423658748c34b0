/*
 * map.h - a hash table of entries of any one type.
 *
 *   entries:  [ hash rest | 0 | hash rest | hash rest | 0 | ... ]      a power of two of them; hash 0: free
 *
 * An entry is a struct of the caller's whose first member is `uint64_t hash`. The rest of it holds the key, the value,
 * or pointers to them. The table stores entries by value, in one block of memory. It compares only hashes: whether
 * an entry with the right hash also has the right key is decided by the caller, in a loop.
 *
 *   struct name_entry {
 *       uint64_t hash;
 *       struct name *name;
 *   };
 *   WB_MAP(struct name_entry) names = WB_MAP_INIT(seed);
 *
 *   uint64_t hash = wb_hash64_seeded(text.ptr, text.len, seed);
 *   struct name_entry *entry = NULL;
 *   while ((entry = wb_map_next(&names, hash, entry)))       // every entry that has this hash: mostly one or none
 *       if (wb_slice_equal(entry->name->text, text))
 *           return entry->name;
 *   entry = wb_map_add(&names, hash);                        // a new entry, zero but for its hash; NULL: out of memory
 *   if (!entry)
 *       return WB_E_NOMEM;
 *   entry->name = name;
 *
 * A key that is a strong hash itself (a page id), or a number, needs no further hashing: pass (half of) it as the
 * hash. Hash 0 is stored as 1, so the hashes 0 and 1 are one and the same to the table.
 *
 * Strangers on the web choose many of our keys. They must not be able to choose ones that all belong into the same
 * place of the table, which would turn every lookup into a walk through all entries. Two things prevent this:
 *   - the place of an entry depends on its hash and on the table's seed. If strangers choose the keys, give the table
 *     a random seed (wb_random_bytes). Different hashes then meet by bad luck only, even if anybody can compute them;
 *   - bytes that strangers choose freely are hashed with a seed (wb_hash64_seeded), so that the hashes are different.
 *
 * Adding, removing, clearing and reserving move entries: pointers to entries are good only until then. A table in
 * which all bytes are zero is valid and empty, and its seed is 0.
 * These are macros: some evaluate their first argument several times.
 */
#ifndef WB_BASE_MAP_H
#define WB_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct wb_map {
    void *entries;
    size_t count, cap;
    uint64_t seed;
};

/*
 * A table of entries of a type. The second member is map.entries under its true type, which the macros below need.
 * A table that several functions take as an argument needs a name: `union name_map WB_MAP_OF(struct name_entry);`.
 */
#define WB_MAP_OF(type) { struct wb_map map; type *entry; }
#define WB_MAP(type) union WB_MAP_OF(type)
#define WB_MAP_INIT(secret) {.map = {NULL, 0, 0, (secret)}}

/* Finds entries by their hash: the first one if previous is NULL, else the next one after it. NULL: no more. */
#define wb_map_next(m, hash, previous) \
    ((__typeof__((m)->entry))wb_map_find(&(m)->map, sizeof *(m)->entry, (hash), (previous)))

/* Adds an entry of zero bytes with this hash, also if there are others with it. NULL when out of memory. */
#define wb_map_add(m, hash) ((__typeof__((m)->entry))wb_map_insert(&(m)->map, sizeof *(m)->entry, (hash)))

/* Removes an entry that wb_map_next(), wb_map_add() or wb_map_each() returned. */
#define wb_map_remove(m, gone) wb_map_erase(&(m)->map, sizeof *(m)->entry, (gone))

/*
 * Walks through all entries in no particular order: the first one if previous is NULL; NULL: no more. Do not add or
 * remove entries during a walk.
 */
#define wb_map_each(m, previous) \
    ((__typeof__((m)->entry))wb_map_walk(&(m)->map, sizeof *(m)->entry, (previous)))

/* Makes room for n entries in total, so that adding them cannot fail. 0 or WB_E_NOMEM. */
#define wb_map_reserve(m, n) wb_map_resize(&(m)->map, sizeof *(m)->entry, (n))

/* The number of entries. */
#define wb_map_count(m) ((size_t)(m)->map.count)

/* Removes all entries. Keeps the memory for the next ones, unless it is far more than these entries needed. */
#define wb_map_clear(m) wb_map_reset(&(m)->map, sizeof *(m)->entry)

/* Frees the memory. The table is empty, keeps its seed, and can be used again. */
#define wb_map_release(m) wb_map_free_entries(&(m)->map)

/* ---- what the macros call ------------------------------------------------------------------------------------ */

/*
 * Where the search for a hash begins, in a table of cap places (a power of two, at least 2). Both halves of the long
 * product count, so that rows of evenly spaced hashes, which anybody can make, do not stay rows: with one half alone,
 * they did for one seed in four hundred.
 */
static inline size_t wb_map_place(uint64_t hash, uint64_t seed, size_t cap)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    unsigned __int128 product = (unsigned __int128)(hash ^ seed) * golden;
    uint64_t spread = (uint64_t)product ^ (uint64_t)(product >> 64);

    return (size_t)(spread * ((seed ^ golden) | 1) >> (64 - __builtin_ctzll(cap)));
}

/* Every entry begins with its hash. */
static inline uint64_t wb_map_hash_at(const void *entry)
{
    return *(const uint64_t *)entry;
}

static inline void *wb_map_find(const struct wb_map *map, size_t entry_bytes, uint64_t hash, const void *previous)
{
    char *entries = map->entries;
    size_t at;

    if (map->count == 0)
        return NULL;
    hash += hash == 0;
    at = previous ? (size_t)((const char *)previous - entries) / entry_bytes + 1
                  : wb_map_place(hash, map->seed, map->cap);
    for (;; at++) {
        char *entry = entries + (at & (map->cap - 1)) * entry_bytes;
        if (wb_map_hash_at(entry) == hash)
            return entry;
        if (wb_map_hash_at(entry) == 0)
            return NULL;
    }
}

void *wb_map_insert(struct wb_map *map, size_t entry_bytes, uint64_t hash);
void wb_map_erase(struct wb_map *map, size_t entry_bytes, void *entry);
void *wb_map_walk(const struct wb_map *map, size_t entry_bytes, const void *previous);
int wb_map_resize(struct wb_map *map, size_t entry_bytes, size_t count);
void wb_map_reset(struct wb_map *map, size_t entry_bytes);
void wb_map_free_entries(struct wb_map *map);

#endif
