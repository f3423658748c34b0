/*
 * textcache.c - texts of results that were made before, for the searchers of several threads: snippets, URLs and
 * titles, words for misspelt ones.
 *
 * Making a snippet means reading a page and splitting it into words, which takes much longer than finding it. People
 * ask the same things again and again, and a word has the same best pages in many queries. The texts depend on the
 * generation, the page and the words alone, so nothing in here ever becomes wrong; what is not asked for any more is
 * driven out. What was taken down is not found, so nobody asks for its texts.
 *
 * The cache is set-associative: an entry is in one of WAYS places of the set that its key hashes to, and takes the
 * place of the one that was used least recently. Entries are small, so the number of places bounds the memory; and
 * the process may keep less (kept.h). Texts of a generation go when the next one is in use.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/kept.h"
#include "base/mem.h"
#include "query/present.h"

#include <pthread.h>
#include <string.h>

enum { WAYS = 4, LOCKS = 16, ENTRY_MAX = 1024 };

struct cached_text {
    uint64_t used; /* when, counted in lookups of the lock */
    uint32_t key_len, len;
    char bytes[]; /* the key, then the text */
};

struct cache_lock {
    pthread_mutex_t mutex;
    uint64_t now;
};

enum { TEXT_CACHE_MAGIC = 0x57425443 }; /* "WBTC" */

struct wb_text_cache {
    uint32_t magic;
    struct cache_lock locks[LOCKS]; /* lock i guards the sets whose number ends with i */
    size_t sets;
    uint64_t seed; /* strangers choose the keys */
    struct cached_text **places;
};

int wb_text_cache_new(size_t bytes, uint64_t seed, struct wb_text_cache **cache_out)
{
    struct wb_text_cache *cache = wb_alloc_zero(1, sizeof *cache);
    size_t sets = bytes / ENTRY_MAX / WAYS + 1;

    *cache_out = NULL;
    if (!cache)
        return WB_E_NOMEM;
    cache->places = wb_alloc_zero(sets * WAYS, sizeof *cache->places);
    if (!cache->places) {
        wb_free(cache);
        return WB_E_NOMEM;
    }
    cache->magic = TEXT_CACHE_MAGIC;
    cache->sets = sets;
    wb_kept_need(WB_KEPT_TEXTS, sets * WAYS * sizeof *cache->places);
    cache->seed = seed;
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_init(&cache->locks[i].mutex, NULL);
    *cache_out = cache;
    return 0;
}

static size_t weight(const struct cached_text *entry)
{
    return sizeof *entry + entry->key_len + entry->len;
}

static void drop(struct cached_text *entry)
{
    if (entry)
        wb_kept_drop(WB_KEPT_TEXTS, weight(entry));
    wb_free(entry);
}

void wb_text_cache_free(struct wb_text_cache *cache)
{
    if (!cache)
        return;
    WB_CHECK(cache->magic == TEXT_CACHE_MAGIC);
    cache->magic = 0;
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_destroy(&cache->locks[i].mutex);
    for (size_t i = 0; i < cache->sets * WAYS; i++)
        drop(cache->places[i]);
    wb_kept_drop(WB_KEPT_TEXTS, cache->sets * WAYS * sizeof *cache->places);
    wb_free(cache->places);
    wb_free(cache);
}

static bool has_key(const struct cached_text *entry, struct wb_slice key)
{
    return entry && wb_slice_equal(wb_slice(entry->bytes, entry->key_len), key);
}

static size_t set_of(const struct wb_text_cache *cache, struct wb_slice key)
{
    return wb_hash64_seeded(key.ptr, key.len, cache->seed) % cache->sets;
}

int wb_text_cache_find(struct wb_text_cache *cache, struct wb_slice key, struct wb_arena *arena,
                       struct wb_slice *text_out)
{
    WB_CHECK(cache->magic == TEXT_CACHE_MAGIC);
    size_t set = set_of(cache, key);
    struct cache_lock *lock = &cache->locks[set % LOCKS];
    int found = 0;

    pthread_mutex_lock(&lock->mutex);
    for (size_t way = 0; way < WAYS && !found; way++) {
        struct cached_text *entry = cache->places[set * WAYS + way];
        if (!has_key(entry, key))
            continue;
        entry->used = ++lock->now;
        int err = wb_arena_copy(arena, wb_slice(entry->bytes + key.len, entry->len), text_out);
        found = err < 0 ? err : 1;
    }
    pthread_mutex_unlock(&lock->mutex);
    return found;
}

/* Empties a set. */
static void drop_all(struct wb_text_cache *cache, size_t set)
{
    struct cache_lock *lock = &cache->locks[set % LOCKS];

    WB_CHECK(set < cache->sets);
    pthread_mutex_lock(&lock->mutex);
    for (size_t at = set * WAYS; at < set * WAYS + WAYS; at++) {
        drop(cache->places[at]);
        cache->places[at] = NULL;
    }
    pthread_mutex_unlock(&lock->mutex);
}

void wb_text_cache_put(struct wb_text_cache *cache, struct wb_slice key, struct wb_slice text)
{
    WB_CHECK(cache->magic == TEXT_CACHE_MAGIC);
    size_t set = set_of(cache, key), oldest = set * WAYS;
    struct cache_lock *lock = &cache->locks[set % LOCKS];

    if (sizeof(struct cached_text) + key.len > ENTRY_MAX || text.len > ENTRY_MAX - sizeof(struct cached_text) - key.len)
        return;
    size_t bytes = sizeof(struct cached_text) + key.len + text.len;
    if (!wb_kept_add(WB_KEPT_TEXTS, bytes)) {
        drop_all(cache, set); /* so that texts give up something, too, and the next one may be kept */
        return;
    }
    struct cached_text *entry = wb_alloc(bytes), *old = NULL;
    if (!entry) { /* it can be made again */
        wb_kept_drop(WB_KEPT_TEXTS, bytes);
        return;
    }
    entry->key_len = (uint32_t)key.len;
    entry->len = (uint32_t)text.len;
    memcpy(entry->bytes, key.ptr, key.len);
    memcpy(entry->bytes + key.len, text.ptr, text.len);
    pthread_mutex_lock(&lock->mutex);
    for (size_t at = set * WAYS; at < set * WAYS + WAYS; at++) {
        old = cache->places[at];
        if (!old || has_key(old, key)) { /* another thread made the same one meanwhile */
            oldest = at;
            break;
        }
        oldest = old->used < cache->places[oldest]->used ? at : oldest;
    }
    old = cache->places[oldest];
    entry->used = ++lock->now;
    cache->places[oldest] = entry;
    pthread_mutex_unlock(&lock->mutex);
    drop(old);
}

void wb_text_cache_forget(struct wb_text_cache *cache, uint32_t generation)
{
    WB_CHECK(cache->magic == TEXT_CACHE_MAGIC);
    for (size_t at = 0; at < cache->sets * WAYS; at++) {
        struct cache_lock *lock = &cache->locks[at / WAYS % LOCKS];
        pthread_mutex_lock(&lock->mutex);
        struct cached_text *entry = cache->places[at];
        if (entry && (entry->key_len < 4 || wb_get32(entry->bytes) != generation)) { /* keys begin with it */
            cache->places[at] = NULL;
            drop(entry);
        }
        pthread_mutex_unlock(&lock->mutex);
    }
}
