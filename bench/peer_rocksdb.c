/*
 * peer_rocksdb.c - RocksDB as a page store: key = normal form, value = head + body.
 *
 * The settings are meant to be fair:
 *   - zstd on every level, at its default level 3;
 *   - two background threads, because the machine has two cores, and two sub-compactions;
 *   - a Bloom filter of 10 bits per key; a block cache of 64 MB (default 8 MB);
 *   - level compaction and memtables of 64 MB, the defaults;
 *   - one WriteBatch per commit, written with sync=1. The log is compressed with zstd too, which is
 *     not the default but makes RocksDB 1.5 times as fast here (fewer bytes to fsync);
 *   - finish = flush + compact_range over everything, until they are done;
 *   - the iterator reads ahead 2 MB and does not fill the cache; checksums are
 *     verified (the default).
 * Variants: its defaults (blocks of 4 KB, plain log), blocks of 64 KB, a dictionary.
 */
#include "bench.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"

#include <rocksdb/c.h>

struct rocks_state {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_writeoptions_t *write;
    rocksdb_readoptions_t *read;
};

static int rocks_fail(char *message)
{
    int err = wb_fail(WB_E_IO, "rocksdb: %s", message);

    rocksdb_free(message);
    return err;
}

struct rocks_variant {
    size_t block_bytes;
    int dict_bytes;
    bool plain_log;
};

static void set_options(struct rocks_state *s, bool create, const struct rocks_variant *variant)
{
    int dict_bytes = variant->dict_bytes;

    rocksdb_options_set_create_if_missing(s->options, create);
    rocksdb_options_increase_parallelism(s->options, 2);
    rocksdb_options_set_max_subcompactions(s->options, 2);
    rocksdb_options_set_compression(s->options, rocksdb_zstd_compression);
    /* Window -14, level 3 and strategy 0 are RocksDB's defaults for zstd. */
    rocksdb_options_set_compression_options(s->options, -14, 3, 0, dict_bytes);
    if (dict_bytes > 0)
        rocksdb_options_set_compression_options_zstd_max_train_bytes(s->options, dict_bytes * 100);
    if (!variant->plain_log)
        rocksdb_options_set_wal_compression(s->options, rocksdb_zstd_compression);
    rocksdb_block_based_options_set_block_size(s->table, variant->block_bytes);
    rocksdb_block_based_options_set_format_version(s->table, 5);
    rocksdb_block_based_options_set_filter_policy(s->table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_block_cache(s->table, s->cache);
    rocksdb_options_set_block_based_table_factory(s->options, s->table);
}

static void rocks_close(void *state)
{
    struct rocks_state *s = state;

    if (s->db)
        rocksdb_close(s->db);
    rocksdb_writeoptions_destroy(s->write);
    rocksdb_readoptions_destroy(s->read);
    rocksdb_options_destroy(s->options);
    rocksdb_block_based_options_destroy(s->table);
    rocksdb_cache_destroy(s->cache);
    wb_free(s);
}

static int rocks_open(const char *dir, bool create, const struct rocks_variant *variant, void **state_out)
{
    struct rocks_state *s = wb_alloc_zero(1, sizeof(*s));
    char *message = NULL;

    *state_out = NULL;
    if (!s)
        return WB_E_NOMEM;
    s->options = rocksdb_options_create();
    s->table = rocksdb_block_based_options_create();
    s->cache = rocksdb_cache_create_lru((size_t)64 << 20);
    s->write = rocksdb_writeoptions_create();
    s->read = rocksdb_readoptions_create();
    rocksdb_writeoptions_set_sync(s->write, 1);
    set_options(s, create, variant);
    s->db = rocksdb_open(s->options, dir, &message);
    if (!s->db) {
        rocks_close(s);
        return rocks_fail(message);
    }
    *state_out = s;
    return 0;
}

static int open_default(const char *dir, bool create, void **state_out)
{
    return rocks_open(dir, create, &(struct rocks_variant){.block_bytes = 4 << 10, .plain_log = true}, state_out);
}

static int open_16k(const char *dir, bool create, void **state_out)
{
    return rocks_open(dir, create, &(struct rocks_variant){.block_bytes = 16 << 10}, state_out);
}

static int open_64k(const char *dir, bool create, void **state_out)
{
    return rocks_open(dir, create, &(struct rocks_variant){.block_bytes = 64 << 10}, state_out);
}

static int open_dict(const char *dir, bool create, void **state_out)
{
    return rocks_open(dir, create, &(struct rocks_variant){.block_bytes = 16 << 10, .dict_bytes = 64 << 10}, state_out);
}

static int rocks_add(void *state, const struct wb_page *pages, size_t count)
{
    struct rocks_state *s = state;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    char *message = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct wb_page *page = &pages[i];
        char head_bytes[4];
        const char *values[] = {head_bytes, page->head.ptr, page->body.ptr};
        size_t sizes[] = {4, page->head.len, page->body.len};

        wb_put32(head_bytes, (uint32_t)page->head.len);
        rocksdb_writebatch_putv(batch, 1, &page->key.ptr, &page->key.len, 3, values, sizes);
    }
    rocksdb_write(s->db, s->write, batch, &message);
    rocksdb_writebatch_destroy(batch);
    return message ? rocks_fail(message) : 0;
}

static int rocks_finish(void *state)
{
    struct rocks_state *s = state;
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    char *message = NULL;

    rocksdb_flushoptions_set_wait(flush, 1);
    rocksdb_flush(s->db, flush, &message);
    rocksdb_flushoptions_destroy(flush);
    if (message)
        return rocks_fail(message);
    rocksdb_compact_range(s->db, NULL, 0, NULL, 0);
    return 0;
}

static void sum_value(struct scan_sum *sum, struct wb_slice key, struct wb_slice value)
{
    size_t head = value.len >= 4 ? wb_get32(value.ptr) : 0;

    sum->pages++;
    sum->bytes += value.len - 4;
    if (sum->check)
        sum->mix += page_mix(key, wb_slice(value.ptr + 4, head), wb_slice(value.ptr + 4 + head, value.len - 4 - head));
}

static int rocks_get(void *state, struct wb_slice key, struct scan_sum *sum)
{
    struct rocks_state *s = state;
    char *message = NULL;
    size_t len = 0;
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(s->db, s->read, key.ptr, key.len, &message);
    const char *value;

    if (message)
        return rocks_fail(message);
    value = rocksdb_pinnableslice_value(pinned, &len);
    if (!value)
        return wb_fail(WB_E_NOTFOUND, "%.*s: not found", WB_SLICE_ARG(key));
    sum_value(sum, key, wb_slice(value, len));
    rocksdb_pinnableslice_destroy(pinned);
    return 0;
}

static int rocks_scan(void *state, unsigned part, unsigned parts, const struct wb_slice *split, struct scan_sum *sum)
{
    struct rocks_state *s = state;
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_iterator_t *it;
    char *message = NULL;

    rocksdb_readoptions_set_fill_cache(read, 0);
    rocksdb_readoptions_set_readahead_size(read, 2 << 20);
    if (part + 1 < parts)
        rocksdb_readoptions_set_iterate_upper_bound(read, split[part].ptr, split[part].len);
    it = rocksdb_create_iterator(s->db, read);
    if (part > 0)
        rocksdb_iter_seek(it, split[part - 1].ptr, split[part - 1].len);
    else
        rocksdb_iter_seek_to_first(it);
    for (; rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        struct wb_slice key, value;

        key.ptr = rocksdb_iter_key(it, &key.len);
        value.ptr = rocksdb_iter_value(it, &value.len);
        sum_value(sum, key, value);
    }
    rocksdb_iter_get_error(it, &message);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(read);
    return message ? rocks_fail(message) : 0;
}

#define ROCKS_PEER(peer_name, words, open_function)                                                                    \
    {                                                                                                                  \
        .name = peer_name,                                                                                             \
        .settings = "zstd level 3, " words ", Bloom 10 bits, cache 64 MB, 2 background threads, sync=1",               \
        .open = open_function, .add = rocks_add, .finish = rocks_finish, .get = rocks_get, .scan = rocks_scan,         \
        .close = rocks_close,                                                                                          \
    }

const struct peer peer_rocksdb = ROCKS_PEER("rocksdb", "blocks of 16 KB, log zstd'd", open_16k);
const struct peer peer_rocksdb_default = ROCKS_PEER("rocksdb-default", "blocks of 4 KB, log plain", open_default);
const struct peer peer_rocksdb_64k = ROCKS_PEER("rocksdb-64k", "blocks of 64 KB, log zstd'd", open_64k);
const struct peer peer_rocksdb_dict =
    ROCKS_PEER("rocksdb-dict", "blocks of 16 KB, dictionary of 64 KB, log zstd'd", open_dict);
