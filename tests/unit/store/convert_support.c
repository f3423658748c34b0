/* convert_support.c - repositories for the tests of conversions (convert_support.h). */
#include "convert_support.h"
#include "base/hash.h"
#include "move/move.h"
#include "os/path.h"

#include <sys/stat.h>
#include <unistd.h>

const struct convert_design designs[DESIGNS] = {
    {"Incr[hash,log]", 1, 0},
    {"Incr[uniform,log]", 2, 0},
    {"Incr[hash,hashed-log]", 3, 0},
    {"Incr[uniform,hashed-log]", 1, 0},
    {"Incr[hash,hash]", 2, 0},
    {"Incr[uniform,hash]", 2, 0},
    {"Batch[U(hash,log),R(hash,hash)]", 1, 1},
    {"Batch[U(hash,hash),R(uniform,hashed-log)]", 2, 1},
    {"Batch[U(uniform,hashed-log),R(hash,log)]", 1, 2},
};

struct wb_store_options options_of(size_t i)
{
    struct wb_store_options options = {.nodes = {NULL, designs[i].nodes},
                                       .update_nodes = {NULL, designs[i].update_nodes}};

    must_ok(wb_design_parse(wb_slice_str(designs[i].design), &options.design));
    return options;
}

/* ---- repositories ------------------------------------------------------------------------------------------------ */

static struct spec random_page(uint64_t *chance, int64_t time_ms)
{
    return (struct spec){
        .site = (uint32_t)chance_below(chance, CONVERT_SITES),
        .number = (uint32_t)chance_below(chance, CONVERT_NUMBERS),
        .time_ms = time_ms,
        .size = (uint32_t)chance_below(chance, chance_one_in(chance, 30) ? 300000 : 3000),
        .variant = (uint32_t)chance_below(chance, 700),
        .content = (uint32_t)chance_below(chance, 4),
    };
}

static void put_revisit(struct wb_store *store, uint64_t *chance, const struct spec *spec)
{
    struct spec other = *spec;
    struct wb_buf room = WB_BUF_INIT;
    struct wb_store_revisit revisit = {.id = spec_id(spec),
                                       .site = spec_site(spec, &room),
                                       .time_ms = spec->time_ms,
                                       .has_sha1 = true,
                                       .original = spec_id(spec)};

    if (chance_one_in(chance, 2)) {
        other.number = (other.number + 1) % CONVERT_NUMBERS;
        revisit.original = spec_id(&other);
        revisit.url = WB_SLICE_LIT("http://a.example/waits");
    }
    for (size_t i = 0; i < sizeof revisit.sha1; i++)
        revisit.sha1[i] = (uint8_t)chance_below(chance, 256);
    must_ok(wb_store_put_revisit(store, &revisit, NULL));
    wb_buf_release(&room);
}

/* Something of the first so many of a hundred. */
static void change(struct wb_store *store, uint64_t *chance, int64_t time_ms, uint64_t kinds)
{
    struct spec spec = random_page(chance, time_ms);
    uint64_t r = chance_below(chance, kinds);
    int err = 0;

    if (r < 78)
        err = put_spec(store, &spec);
    else if (r < 84)
        err = remove_spec(store, &spec, r == 78);
    else if (r < 90)
        err = wb_store_touch(store, spec_id(&spec), time_ms);
    else if (r < 96)
        put_revisit(store, chance, &spec);
    else
        err = bar_spec(store, &spec, r == 96 ? WB_STORE_BAR_SITE : WB_STORE_BAR_PAGE, r > 97);
    must(err == 0 || err == WB_E_NOTFOUND);
}

void change_something(struct wb_store *store, uint64_t *chance, int64_t time_ms)
{
    change(store, chance, time_ms, 100);
}

void change_page(struct wb_store *store, uint64_t *chance, int64_t time_ms)
{
    change(store, chance, time_ms, 96);
}

/* Writes for a while; in a batch design everything but the last part is transferred. */
void fill(struct wb_store *store, uint64_t *chance, bool batch, int64_t start_ms)
{
    unsigned rounds = 4 + (unsigned)chance_below(chance, 4);
    struct wb_move_transfer_counts counts;

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < 40; i++)
            change_something(store, chance, start_ms + round * 1000 + i * 10);
        commit_store(store);
        if (batch && round + 1 < rounds)
            must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
        if (round % 2 == 0 && round + 1 < rounds)
            seal_store(store);
    }
}

void make_source(const char *dir, size_t design, uint64_t *chance)
{
    static const struct wb_store_history policies[] = {
        {WB_STORE_KEEP_ALL, 0}, {WB_STORE_KEEP_COUNT, 3}, {WB_STORE_KEEP_NEWEST, 0}, {WB_STORE_KEEP_ALL, 0}};
    struct wb_store_options options = options_of(design);
    struct wb_move_compact_counts compacted;

    options.history = policies[chance_below(chance, COUNT(policies))];
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    fill(store, chance, options.design.batch, 1000000);
    if (chance_one_in(chance, 2))
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
    wb_store_close(store);
}

const struct wb_move_convert_sink quiet = {.progress = NULL};

void convert(const char *from, const char *to, size_t design)
{
    struct wb_store_options options = options_of(design);
    struct wb_move_convert_counts counts;
    struct wb_store_stat stat;

    must_ok(wb_move_convert(from, to, &options, &quiet, &counts));
    struct wb_store *store = open_store(to, WB_STORE_READ);
    must_ok(wb_store_stat(store, &stat));
    must(stat.pages == counts.pages && stat.versions == counts.versions);
    must(memcmp(&stat.design, &options.design, sizeof stat.design) == 0);
    wb_store_close(store);
}

/* ---- comparing ------------------------------------------------------------------------------------------------------
 */

static int hash_entry(void *context, const struct wb_path_entry *entry);

struct tree_hash {
    const char *dir;
    uint64_t hash;
};

/* A hash of the names and bytes of all files below a directory. */
uint64_t hash_tree(const char *dir)
{
    struct tree_hash tree = {.dir = dir};

    must_ok(wb_path_each(dir, hash_entry, &tree));
    return tree.hash;
}

static int hash_entry(void *context, const struct wb_path_entry *entry)
{
    struct tree_hash *tree = context;
    struct wb_buf bytes = WB_BUF_INIT;
    char path[4 * DIR_MAX];
    uint64_t hash = wb_hash64(entry->name, strlen(entry->name));

    snprintf(path, sizeof path, "%s/%s", tree->dir, entry->name);
    if (entry->kind == WB_PATH_DIR) {
        hash ^= hash_tree(path);
    } else {
        must_ok(wb_path_read(path, 1u << 30, &bytes));
        hash ^= wb_hash64_seeded(bytes.ptr, bytes.len, 7);
    }
    wb_buf_release(&bytes);
    tree->hash = wb_hash64_seeded(&hash, sizeof hash, tree->hash);
    return 0;
}

static void compare_whole(struct pair *p)
{
    struct wb_store_stat a, b;
    struct sights found = {0}, expected = {0};

    must_ok(wb_store_stat(p->log, &a));
    must_ok(wb_store_stat(p->twin, &b));
    if (a.pages != b.pages || a.versions != b.versions || a.captures != b.captures)
        fprintf(stderr, "pages %llu and %llu, versions %llu and %llu, captures %llu and %llu\n",
                (unsigned long long)a.pages, (unsigned long long)b.pages, (unsigned long long)a.versions,
                (unsigned long long)b.versions, (unsigned long long)a.captures, (unsigned long long)b.captures);
    must(a.pages == b.pages && a.sites == b.sites && a.versions == b.versions && a.captures == b.captures);
    must(a.revisits == b.revisits && a.bars == b.bars && a.snapshots == b.snapshots && a.snapshot == b.snapshot);
    must(a.bytes_pages == b.bytes_pages && a.epoch == b.epoch);
    must(a.history.keep == b.history.keep && a.history.value == b.history.value);
    compare_snapshots(p);
    scan_all(p->log, &(struct wb_store_scan_options){0}, 0, &found);
    scan_all(p->twin, &(struct wb_store_scan_options){0}, 0, &expected);
    compare_sights("scan", &found, &expected);
    scan_all(p->log, &(struct wb_store_scan_options){.gone = true}, WITHOUT_LIFETIME, &found);
    scan_all(p->twin, &(struct wb_store_scan_options){.gone = true}, WITHOUT_LIFETIME, &expected);
    compare_sights("scan of pages that are gone, too", &found, &expected);
    sights_release(&found);
    sights_release(&expected);
}

/* Everything that can be asked. */
void compare_stores(struct wb_store *a, struct wb_store *b)
{
    struct pair p = {.log = a, .twin = b, .committed = true};

    for (uint32_t site = 0; site < CONVERT_SITES; site++)
        for (uint32_t number = 0; number < CONVERT_NUMBERS; number++) {
            struct spec spec = {.site = site, .number = number};
            struct wb_pageid id = spec_id(&spec);
            compare_get(&p, id);
            compare_timeline(&p, id);
            compare_in_snapshots(&p, id);
            compare_revisits(&p, id);
            compare_bars(&p, &spec);
            compare_get_when(&p, id, &(struct wb_store_when){.kind = WB_STORE_WHEN_TIME, .time_ms = 1002000});
        }
    compare_whole(&p);
}

void compare_dirs(const char *a, const char *b)
{
    struct wb_store *x = open_store(a, WB_STORE_READ), *y = open_store(b, WB_STORE_READ);

    compare_stores(x, y);
    wb_store_close(x);
    wb_store_close(y);
}

/* The same things happen to both; afterwards they must still be alike. */
void go_on(const char *a, bool a_batch, const char *b, bool b_batch, uint64_t chance)
{
    struct wb_move_transfer_counts counts;
    struct wb_store *x = open_store(a, WB_STORE_WRITE), *y = open_store(b, WB_STORE_WRITE);
    uint64_t same = chance;

    if (a_batch)
        must_ok(wb_move_transfer(x, NULL, NULL, NULL, NULL, &counts));
    if (b_batch)
        must_ok(wb_move_transfer(y, NULL, NULL, NULL, NULL, &counts));
    compare_stores(x, y);
    for (unsigned i = 0; i < 30; i++) {
        change_something(x, &chance, 3000000 + i * 10);
        change_something(y, &same, 3000000 + i * 10);
    }
    commit_store(x);
    commit_store(y);
    if (!a_batch && !b_batch)
        compare_stores(x, y);
    wb_store_close(x);
    wb_store_close(y);
}
