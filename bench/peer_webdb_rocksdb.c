/*
 * peer_webdb_rocksdb.c - RocksDB as a database of pages and links: four column families, one for each table of the
 * paper.
 *
 *   pages       URL -> facts, the MD5 first
 *   contents    MD5, URL -> nothing
 *   outlinks    MD5, URL -> tag, flags, anchor
 *   inlinks     URL, 0, MD5 -> tag, flags, anchor
 *
 * The settings are meant to be fair:
 *   - zstd level 3 on every level, blocks of 16 KB;
 *   - Bloom filters of 10 bits, and one over the MD5 alone if it comes first in the key;
 *   - five eighths of the memory for memtables, three for the block cache (index and filters come on top);
 *   - two background threads and two sub-compactions;
 *   - no write-ahead log, which would only make it slower (a crash loses what was not flushed yet);
 *   - batches of 200 pages; finish flushes and compacts everything, two tables at a time.
 * The variant "bulk" does not compact before finish and has memtables that are cheap to fill (a vector if nothing is
 * read back, a hash by MD5).
 *
 * The old row is read before a page is replaced. Sources of links are not looked up, because the benchmark adds no link
 * without its source.
 */
#include "bench_webdb.h"

#include "base/error.h"
#include "base/mem.h"

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdlib.h>

enum { PAGES, CONTENTS, OUTLINKS, INLINKS, TABLES };
enum { BATCH_PAGES = 200, MD5 = WB_MD5_BYTES, KEY_MAX = GRAPH_URL_MAX + 1 + MD5 };

static const char *const table_names[TABLES + 1] = {"pages", "contents", "outlinks", "inlinks", "default"};

struct rocks {
    rocksdb_t *db;
    rocksdb_options_t *options[TABLES + 1];
    rocksdb_block_based_table_options_t *table;
    rocksdb_cache_t *cache;
    rocksdb_column_family_handle_t *tables[TABLES + 1];
    rocksdb_writeoptions_t *write;
    rocksdb_readoptions_t *read, *prefix;
    rocksdb_writebatch_t *batch;
    unsigned batched;
    struct wb_buf row;
};

static int rocks_fail(char *message)
{
    int err = wb_fail(WB_E_IO, "rocksdb: %s", message);

    rocksdb_free(message);
    return err;
}

/* ---- opening ------------------------------------------------------------------------------- */

static rocksdb_options_t *make_options(const struct rocks *r, const struct webdb_setting *setting, int table, bool bulk)
{
    rocksdb_options_t *o = rocksdb_options_create();

    rocksdb_options_set_create_if_missing(o, setting->build);
    rocksdb_options_set_create_missing_column_families(o, setting->build);
    rocksdb_options_increase_parallelism(o, (int)setting->threads);
    rocksdb_options_set_max_subcompactions(o, setting->threads);
    rocksdb_options_set_compression(o, rocksdb_zstd_compression);
    rocksdb_options_set_compression_options(o, -14, 3, 0, 0);
    rocksdb_options_set_db_write_buffer_size(o, setting->memory_bytes / 8 * 5);
    rocksdb_options_set_write_buffer_size(o, setting->memory_bytes / 4);
    rocksdb_options_set_max_write_buffer_number(o, 4);
    rocksdb_options_set_target_file_size_base(o, 128 << 20);
    rocksdb_options_set_max_bytes_for_level_base(o, 512 << 20);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    if (bulk) {
        rocksdb_options_set_disable_auto_compactions(o, 1);
        rocksdb_options_set_level0_slowdown_writes_trigger(o, 1 << 20);
        rocksdb_options_set_level0_stop_writes_trigger(o, 1 << 20);
        rocksdb_options_set_allow_concurrent_memtable_write(o, 0);
        if (table == INLINKS) /* is not read before it is flushed */
            rocksdb_options_set_memtable_vector_rep(o);
        if (table == CONTENTS || table == OUTLINKS) /* are read only by MD5 */
            rocksdb_options_set_hash_skip_list_rep(o, 1 << 17, 4, 4);
    }
    if (table == CONTENTS || table == OUTLINKS)
        rocksdb_options_set_prefix_extractor(o, rocksdb_slicetransform_create_fixed_prefix(MD5));
    rocksdb_options_set_block_based_table_factory(o, r->table);
    return o;
}

static void rocks_close(void *state)
{
    struct rocks *r = state;

    for (int i = 0; i <= TABLES; i++)
        if (r->tables[i])
            rocksdb_column_family_handle_destroy(r->tables[i]);
    if (r->db)
        rocksdb_close(r->db);
    for (int i = 0; i <= TABLES; i++)
        rocksdb_options_destroy(r->options[i]);
    rocksdb_writebatch_destroy(r->batch);
    rocksdb_writeoptions_destroy(r->write);
    rocksdb_readoptions_destroy(r->read);
    rocksdb_readoptions_destroy(r->prefix);
    rocksdb_block_based_options_destroy(r->table);
    rocksdb_cache_destroy(r->cache);
    wb_buf_release(&r->row);
    wb_free(r);
}

static int open_with(const struct webdb_setting *setting, bool bulk, void **state_out)
{
    struct rocks *r = wb_alloc_zero(1, sizeof(*r));
    char *message = NULL;

    *state_out = NULL;
    if (!r)
        return WB_E_NOMEM;
    r->cache = rocksdb_cache_create_lru(setting->memory_bytes / 8 * 3);
    r->table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_size(r->table, 16 << 10);
    rocksdb_block_based_options_set_format_version(r->table, 5);
    rocksdb_block_based_options_set_filter_policy(r->table, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_block_cache(r->table, r->cache);
    for (int i = 0; i <= TABLES; i++)
        r->options[i] = make_options(r, setting, i, bulk);
    r->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(r->write, 1);
    r->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_total_order_seek(r->read, 1);
    r->prefix = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(r->prefix, 1);
    r->batch = rocksdb_writebatch_create();
    r->db = rocksdb_open_column_families(r->options[0], setting->dir, TABLES + 1, table_names,
                                         (const rocksdb_options_t *const *)r->options, r->tables, &message);
    if (!r->db) {
        rocks_close(r);
        return rocks_fail(message);
    }
    *state_out = r;
    return 0;
}

static int rocks_open(const struct webdb_setting *setting, void **state_out)
{
    return open_with(setting, setting->build, state_out);
}

static int rocks_open_bulk(const struct webdb_setting *setting, void **state_out)
{
    return open_with(setting, true, state_out);
}

/* ---- writing -------------------------------------------------------------------------------------- */

static size_t md5_key(const uint8_t *md5, struct wb_slice url, char *key_out)
{
    memcpy(key_out, md5, MD5);
    memcpy(key_out + MD5, url.ptr, url.len);
    return MD5 + url.len;
}

static size_t url_key(struct wb_slice url, const uint8_t *md5, char *key_out)
{
    memcpy(key_out, url.ptr, url.len);
    key_out[url.len] = 0;
    memcpy(key_out + url.len + 1, md5, MD5);
    return url.len + 1 + MD5;
}

/* A batch ends with the last link of a page, so that rows that are read back are never in the open batch. */
static int write_batch(struct rocks *r)
{
    char *message = NULL;

    rocksdb_write(r->db, r->write, r->batch, &message);
    rocksdb_writebatch_clear(r->batch);
    r->batched = 0;
    return message ? rocks_fail(message) : 0;
}

/* Finds out whether another page than url has the content. */
static bool has_other(const struct rocks *r, const uint8_t *md5, struct wb_slice url)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(r->db, r->prefix, r->tables[CONTENTS]);
    bool other = false;

    for (rocksdb_iter_seek(it, (const char *)md5, MD5); !other && rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        struct wb_slice key;

        key.ptr = rocksdb_iter_key(it, &key.len);
        other = !wb_slice_equal(wb_slice(key.ptr + MD5, key.len - MD5), url);
    }
    rocksdb_iter_destroy(it);
    return other;
}

static void delete_links(const struct rocks *r, const uint8_t *md5)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(r->db, r->prefix, r->tables[OUTLINKS]);
    char key[KEY_MAX];

    for (rocksdb_iter_seek(it, (const char *)md5, MD5); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        size_t len = 0;
        const char *link = rocksdb_iter_key(it, &len);

        rocksdb_writebatch_delete_cf(r->batch, r->tables[OUTLINKS], link, len);
        len = url_key(wb_slice(link + MD5, len - MD5), md5, key);
        rocksdb_writebatch_delete_cf(r->batch, r->tables[INLINKS], key, len);
    }
    rocksdb_iter_destroy(it);
}

/* Removes what must go when a page gets another content. */
static int replace_content(struct rocks *r, const struct wb_webdb_page *page)
{
    char *message = NULL, key[KEY_MAX];
    size_t len = 0;
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned_cf(r->db, r->read, r->tables[PAGES], page->url.ptr, page->url.len, &message);
    const char *row = message ? NULL : rocksdb_pinnableslice_value(pinned, &len);

    if (row && memcmp(row, page->md5, MD5) != 0) {
        uint8_t old[MD5];

        memcpy(old, row, MD5);
        rocksdb_writebatch_delete_cf(r->batch, r->tables[CONTENTS], key, md5_key(old, page->url, key));
        if (!has_other(r, old, page->url))
            delete_links(r, old);
    }
    if (pinned)
        rocksdb_pinnableslice_destroy(pinned);
    return message ? rocks_fail(message) : 0;
}

static int rocks_add_page(void *state, const struct wb_webdb_page *page)
{
    struct rocks *r = state;
    char key[KEY_MAX];
    int err = r->batched == BATCH_PAGES ? write_batch(r) : 0;

    if (err == 0)
        err = replace_content(r, page);
    r->row.len = 0;
    if (err == 0)
        err = pack_page(page, &r->row);
    if (err < 0)
        return err;
    rocksdb_writebatch_put_cf(r->batch, r->tables[PAGES], page->url.ptr, page->url.len, r->row.ptr, r->row.len);
    rocksdb_writebatch_put_cf(r->batch, r->tables[CONTENTS], key, md5_key(page->md5, page->url, key), "", 0);
    r->batched++;
    return 0;
}

static int rocks_add_link(void *state, const struct wb_webdb_link *link)
{
    struct rocks *r = state;
    char key[KEY_MAX], value[2 + GRAPH_ANCHOR_MAX];

    value[0] = (char)link->tag;
    value[1] = (char)link->flags;
    memcpy(value + 2, link->anchor.ptr, link->anchor.len);
    rocksdb_writebatch_put_cf(r->batch, r->tables[OUTLINKS], key, md5_key(link->from_md5, link->to, key), value,
                              2 + link->anchor.len);
    rocksdb_writebatch_put_cf(r->batch, r->tables[INLINKS], key, url_key(link->to, link->from_md5, key), value,
                              2 + link->anchor.len);
    return 0;
}

struct rocks_compaction {
    struct rocks *r;
    int first;
    rocksdb_compactoptions_t *options;
};

/* Compacts half of the tables: one of pages, one of links. */
static void *compact_half(void *context)
{
    struct rocks_compaction *c = context;

    for (int i = c->first; i < TABLES; i += 2)
        rocksdb_compact_range_cf_opt(c->r->db, c->r->tables[i], c->options, NULL, 0, NULL, 0);
    return NULL;
}

static int compact_all(struct rocks *r)
{
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    struct rocks_compaction halves[2] = {{r, 0, options}, {r, 1, options}};
    pthread_t other;
    int err = 0;

    rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
    if (pthread_create(&other, NULL, compact_half, &halves[1]) != 0)
        err = wb_fail(WB_E_NOMEM, "no thread");
    compact_half(&halves[0]);
    if (err == 0)
        pthread_join(other, NULL);
    rocksdb_compactoptions_destroy(options);
    return err;
}

static int rocks_finish(void *state)
{
    struct rocks *r = state;
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    char *message = NULL;
    int err = write_batch(r);

    for (int i = 0; err == 0 && i < 2 * TABLES; i++) { /* first start all, then wait for all */
        rocksdb_flushoptions_set_wait(flush, i >= TABLES);
        rocksdb_flush_cf(r->db, flush, r->tables[i % TABLES], &message);
        err = message ? rocks_fail(message) : 0;
    }
    rocksdb_flushoptions_destroy(flush);
    return err < 0 ? err : compact_all(r);
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static int rocks_get_page(void *state, struct wb_slice url)
{
    struct rocks *r = state;
    char *message = NULL;
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned_cf(r->db, r->read, r->tables[PAGES], url.ptr, url.len, &message);

    if (message)
        return rocks_fail(message);
    if (!pinned)
        return wb_fail(WB_E_NOTFOUND, "%.*s: not found", WB_SLICE_ARG(url));
    rocksdb_pinnableslice_destroy(pinned);
    return 0;
}

static void sum_link(rocksdb_iterator_t *it, bool to, struct webdb_sum *sum)
{
    struct wb_webdb_link link = {.tag = 0};
    struct wb_slice key, value;

    sum->rows++;
    key.ptr = rocksdb_iter_key(it, &key.len);
    value.ptr = rocksdb_iter_value(it, &value.len);
    if (!sum->check)
        return;
    memcpy(link.from_md5, to ? key.ptr + key.len - MD5 : key.ptr, MD5);
    link.to = to ? wb_slice(key.ptr, key.len - MD5 - 1) : wb_slice(key.ptr + MD5, key.len - MD5);
    link.tag = (uint8_t)value.ptr[0];
    link.flags = (uint8_t)value.ptr[1];
    link.anchor = wb_slice(value.ptr + 2, value.len - 2);
    sum->mix += link_mix(&link);
}

static int walk_links(struct rocks *r, int table, struct wb_slice prefix, uint64_t limit, struct webdb_sum *sum)
{
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    char end[KEY_MAX], *message = NULL;
    rocksdb_iterator_t *it;

    rocksdb_readoptions_set_total_order_seek(read, 1);
    if (prefix.len > 0 && table == INLINKS) { /* it ends with 0, so adding one does not carry */
        memcpy(end, prefix.ptr, prefix.len);
        end[prefix.len - 1]++;
        rocksdb_readoptions_set_iterate_upper_bound(read, end, prefix.len);
    }
    it = rocksdb_create_iterator_cf(r->db, prefix.len > 0 && table == OUTLINKS ? r->prefix : read, r->tables[table]);
    for (rocksdb_iter_seek(it, prefix.ptr, prefix.len); rocksdb_iter_valid(it) && limit > 0;
         rocksdb_iter_next(it), limit--)
        sum_link(it, table == INLINKS, sum);
    rocksdb_iter_get_error(it, &message);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(read);
    return message ? rocks_fail(message) : 0;
}

static int rocks_links_to(void *state, struct wb_slice url, uint64_t limit, struct webdb_sum *sum)
{
    char prefix[KEY_MAX];

    memcpy(prefix, url.ptr, url.len);
    prefix[url.len] = 0;
    return walk_links(state, INLINKS, wb_slice(prefix, url.len + 1), limit, sum);
}

static int rocks_links_from(void *state, const uint8_t md5[WB_MD5_BYTES], struct webdb_sum *sum)
{
    return walk_links(state, OUTLINKS, wb_slice((const char *)md5, MD5), UINT64_MAX, sum);
}

/* Both tables must hold the same links; if one has a link that the other does not have, the sum shows it. */
static int rocks_links(void *state, struct webdb_sum *sum)
{
    struct webdb_sum other = {.check = sum->check};
    int err = walk_links(state, INLINKS, WB_SLICE_EMPTY, UINT64_MAX, sum);

    if (err == 0)
        err = walk_links(state, OUTLINKS, WB_SLICE_EMPTY, UINT64_MAX, &other);
    if (err == 0 && (other.rows != sum->rows || other.mix != sum->mix))
        err = wb_fail(WB_E_CORRUPT, "rocksdb: the tables of links differ");
    return err;
}

static uint64_t live_bytes(struct rocks *r, int table)
{
    char *text = rocksdb_property_value_cf(r->db, r->tables[table], "rocksdb.live-sst-files-size");
    uint64_t bytes = text ? strtoull(text, NULL, 10) : 0;

    rocksdb_free(text);
    return bytes;
}

static int rocks_sizes(void *state, uint64_t *pages_out, uint64_t *link_bytes_out)
{
    struct rocks *r = state;
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(r->db, r->read, r->tables[PAGES]);

    *pages_out = 0;
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it))
        ++*pages_out;
    rocksdb_iter_destroy(it);
    *link_bytes_out = live_bytes(r, OUTLINKS) + live_bytes(r, INLINKS);
    return 0;
}

#define ROCKS_SETTINGS "zstd level 3, blocks of 16 KB, Bloom 10 bits, no WAL, 2 background threads"

#define ROCKS_PEER(peer_name, words, open_function)                                                                    \
    {                                                                                                                  \
        .name = peer_name, .settings = ROCKS_SETTINGS words, .open = open_function, .add_page = rocks_add_page,        \
        .add_link = rocks_add_link, .finish = rocks_finish, .close = rocks_close, .open_read = rocks_open,             \
        .get_page = rocks_get_page, .links_to = rocks_links_to, .links_from = rocks_links_from, .links = rocks_links,  \
        .sizes = rocks_sizes, .close_read = rocks_close,                                                               \
    }

const struct webdb_peer webdb_rocksdb = ROCKS_PEER("rocksdb", "", rocks_open);
const struct webdb_peer webdb_rocksdb_bulk =
    ROCKS_PEER("rocksdb-bulk", ", no compaction before the end", rocks_open_bulk);
